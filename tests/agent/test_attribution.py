"""Owners as the agent serves them: the parts add up to the device, the views name the pods."""

import json

from agent_process import Agent, SCENARIOS, wait_for

SOURCE = f"simulator={SCENARIOS / 't4-three-processes.yaml'}"
MIB = 2**20


def wait_for_pods(agent):
    wait_for(lambda: agent.series("gpuassay_owner_memory_used_bytes", pod="notebook-3"),
             "the pods", agent)


def test_parts_of_a_shared_gpu_add_up_to_it(tmp_path):
    with Agent(tmp_path, source=SOURCE) as agent:
        wait_for_pods(agent)
        wait_for(lambda: agent.value("gpuassay_gpu_energy_joules_total") > 0, "energy", agent)
        metrics = agent.metrics()
    for parts, device in (("gpuassay_owner_memory_used_bytes", "gpuassay_gpu_memory_used_bytes"),
                          ("gpuassay_owner_power_watts", "gpuassay_gpu_power_watts"),
                          ("gpuassay_owner_energy_joules_total",
                           "gpuassay_gpu_energy_joules_total")):
        whole = sum(value for (name, _), value in metrics.items() if name == device)
        assert whole > 0
        total = sum(value for (name, _), value in metrics.items() if name == parts)
        assert abs(total - whole) < 1e-6 * whole, parts
    memory = {dict(labels)["pod"]: value / MIB for (name, labels), value in metrics.items()
              if name == "gpuassay_owner_memory_used_bytes" and "pod" in dict(labels)}
    assert memory == {"training-job-1": 4234, "inference-svc": 2896, "notebook-3": 1104}


def test_no_pod_of_a_shared_gpu_has_the_series_of_the_whole(tmp_path):
    with Agent(tmp_path, source=SOURCE) as agent:
        wait_for_pods(agent)
        metrics = agent.metrics()
    exporter = [dict(labels) for (name, labels) in metrics if name.startswith("DCGM_")]
    assert exporter
    assert not [labels for labels in exporter if "pod" in labels]


def test_views_name_the_pods_of_a_device(tmp_path):
    with Agent(tmp_path, source=SOURCE) as agent:
        wait_for_pods(agent)
        wait_for(lambda: "ml/training-job-1" in agent.get("/api/v1/views")[1], "the views", agent)
        views = json.loads(agent.get("/api/v1/views")[1])
    assert views["allocations_known"]
    allocations = views["devices"][0]["scheduler"]["allocations"]
    assert sorted(one["pod"] for one in allocations) == [
        "ml/training-job-1", "notebooks/notebook-3", "serving/inference-svc"]


def test_without_attribution_nothing_but_the_driver_is_read(tmp_path):
    with Agent(tmp_path, "--attribution", "off", source=SOURCE) as agent:
        wait_for(lambda: agent.series("gpuassay_process_memory_used_bytes"), "processes", agent)
        metrics = agent.metrics()
    assert not [labels for (_, labels) in metrics if "pod" in dict(labels)]
    assert not [name for (name, _) in metrics if name.startswith("gpuassay_allocat")]
