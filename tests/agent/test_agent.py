"""The agent as people run it: faults of the driver, signals, its two processes."""

import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from agent_process import (Agent, LIBRARY, PROGRAM, SCENARIOS, run, scenario_file, wait_for)

EIGHT = """
name: test
noise: 0
driver: {version: 570.86.15, cuda: "12.8"}
gpus: [{model: h100-sxm5-80gb, count: 8}]
processes:
  - {pid: 4001, name: train, gpus: all, memory: 10 GiB,
     activity: {kernel: 1ms, launches: 900/s, sm_active: 0.8, sm_occupancy: 0.5, tensor: 0.5, dram: 0.4}}
"""


def eight_gpus(tmp_path, faults=""):
    return scenario_file(tmp_path, EIGHT + ("faults:\n" + faults if faults else ""))


def test_both_metric_families_and_the_api(tmp_path):
    with Agent(tmp_path, scenario=eight_gpus(tmp_path)) as agent:
        agent.wait_ready()
        wait_for(lambda: len(agent.series("gpuassay_gpu_sm_active_ratio")) == 8, "GPM", agent)
        assert len(agent.series("DCGM_FI_DEV_GPU_UTIL")) == 8
        assert set(agent.series("gpuassay_gpu_up").values()) == {1}
        status, body = agent.get("/api/v1/snapshot")
        assert status == 200
        assert len(json.loads(body)["gpus"]) == 8
        assert agent.get("/healthz")[0] == 200
        assert agent.get("/nothing")[0] == 404


def test_counters_go_up_and_match_the_gauges(tmp_path):
    with Agent(tmp_path, scenario=eight_gpus(tmp_path)) as agent:
        agent.wait_ready()
        name = "gpuassay_gpu_sm_active_seconds_total"
        wait_for(lambda: agent.series(name, gpu="0"), "the counter", agent)
        first, observed_first = agent.value(name, gpu="0"), agent.value(
            "gpuassay_gpu_observed_seconds_total", gpu="0")
        wait_for(lambda: agent.value("gpuassay_gpu_observed_seconds_total", gpu="0")
                 >= observed_first + 3, "three seconds", agent)
        metrics = agent.metrics()
        find = lambda n: next(v for (m, labels), v in metrics.items()
                              if m == n and ("gpu", "0") in labels)
        share = (find(name) - first) / (find("gpuassay_gpu_observed_seconds_total")
                                        - observed_first)
        assert share == pytest.approx(find("gpuassay_gpu_sm_active_ratio"), abs=0.1)


def test_a_hanging_driver_turns_ready_red_and_metrics_stay(tmp_path):
    scenario = eight_gpus(tmp_path, "  - {kind: driver_hang, at: 3s, for: 8s}\n")
    with Agent(tmp_path, scenario=scenario) as agent:
        agent.wait_ready()
        agent.wait_ready(False)
        wait_for(lambda: "does not return" in agent.get("/readyz")[1], "the reason", agent)
        status, why = agent.get("/readyz")
        assert status == 503 and why.startswith("nvml: driver call nvml")
        assert agent.value("gpuassay_source_hanging") == 1
        assert agent.value("gpuassay_source_up", source="nvml") == 0
        assert agent.value("gpuassay_source_age_seconds", source="nvml") > 2
        assert agent.get("/healthz")[0] == 200
        assert len(agent.series("gpuassay_gpu_power_watts")) == 8  # the last values, with their age
        agent.wait_ready()  # the driver answers again, in the same worker
        assert agent.value("gpuassay_source_hanging") == 0
        assert agent.value("gpuassay_source_worker_starts_total") == 1


def test_values_disappear_when_they_are_too_old_and_counters_stay(tmp_path):
    scenario = eight_gpus(tmp_path, "  - {kind: driver_hang, at: 3s}\n")
    with Agent(tmp_path, "--stale-after", "4s", scenario=scenario) as agent:
        agent.wait_ready()
        wait_for(lambda: not agent.series("gpuassay_gpu_power_watts"), "values to go", agent)
        assert len(agent.series("gpuassay_gpu_energy_joules_total")) == 8
        assert set(agent.series("gpuassay_gpu_up").values()) == {0}
        assert not agent.series("DCGM_FI_DEV_POWER_USAGE")


def test_a_worker_that_hangs_for_ever_is_replaced(tmp_path):
    scenario = eight_gpus(tmp_path, "  - {kind: driver_hang, at: 3s, for: 10s}\n")
    # The replacement hangs too, until the fault is over.
    with Agent(tmp_path, "--replace-after", "5s", scenario=scenario) as agent:
        agent.wait_ready()
        first = agent.workers()
        wait_for(lambda: agent.value("gpuassay_source_worker_starts_total") >= 2, "another", agent)
        agent.wait_ready()
        assert agent.workers() != first
        assert len(agent.workers()) == 1


def test_one_hanging_gpu_does_not_hide_the_others(tmp_path):
    scenario = eight_gpus(tmp_path, "  - {kind: driver_hang, at: 3s, gpu: 3}\n")
    with Agent(tmp_path, "--replace-after", "4s", scenario=scenario) as agent:
        agent.wait_ready()
        agent.wait_ready(False)
        wait_for(lambda: "on GPU 3" in agent.get("/readyz")[1], "the reason", agent)
        agent.wait_ready()
        up = {labels: value for labels, value in agent.series("gpuassay_gpu_up").items()}
        assert sorted(up.values()) == [0] + [1] * 7
        assert len(agent.series("gpuassay_gpu_power_watts")) == 7
        assert not agent.series("gpuassay_gpu_power_watts", gpu="3")
        (left_out,) = agent.series("gpuassay_gpu_up", gpu="3")
        assert dict(left_out)["uuid"].startswith("GPU-")


def test_seven_gpus_when_the_eighth_is_lost(tmp_path):
    scenario = eight_gpus(tmp_path, "  - {kind: gpu_lost, at: 3s, gpu: 7}\n")
    with Agent(tmp_path, scenario=scenario) as agent:
        agent.wait_ready()
        wait_for(lambda: agent.value("gpuassay_gpu_up", gpu="7") == 0, "the loss", agent)
        assert agent.ready()
        assert len(agent.series("gpuassay_gpu_power_watts")) == 7
        assert len(agent.series("DCGM_FI_DEV_GPU_TEMP")) == 7
        assert agent.value("gpuassay_gpu_missing_readings", gpu="7", reason="gpu_lost") > 50
        lost = json.loads(agent.get("/api/v1/snapshot")[1])["gpus"][7]
        assert "gpu_lost" in json.dumps(lost)


def test_the_library_is_opened_again_after_a_version_mismatch(tmp_path):
    scenario = eight_gpus(tmp_path, "  - {kind: version_mismatch, at: 3s, for: 5s}\n")
    with Agent(tmp_path, scenario=scenario) as agent:
        agent.wait_ready()
        first = agent.workers()
        agent.wait_ready(False)
        wait_for(lambda: "version" in agent.get("/readyz")[1], "the reason", agent)
        agent.wait_ready()
        assert agent.workers() != first
        assert len(agent.series("gpuassay_gpu_power_watts")) == 8


def test_xids_are_counted_as_events(tmp_path):
    faults = "  - {kind: xid, at: 3s, gpu: 2, value: 13, count: 3, every: 500ms}\n"
    with Agent(tmp_path, scenario=eight_gpus(tmp_path, faults)) as agent:
        agent.wait_ready()
        wait_for(lambda: agent.series("gpuassay_gpu_xid_errors_total", gpu="2", xid="13")
                 and agent.value("gpuassay_gpu_xid_errors_total", gpu="2", xid="13") == 3,
                 "three events", agent)
        time.sleep(1.5)  # and no more
        assert agent.value("gpuassay_gpu_xid_errors_total", gpu="2", xid="13") == 3
        assert not agent.series("gpuassay_gpu_xid_errors_total", gpu="1")
        assert agent.value("DCGM_FI_DEV_XID_ERRORS", gpu="2") == 13


def test_signals_release_the_devices_and_take_them_back(tmp_path):
    with Agent(tmp_path, scenario=eight_gpus(tmp_path)) as agent:
        agent.wait_ready()
        agent.signal(signal.SIGUSR1)
        wait_for(lambda: not agent.workers(), "the worker to go", agent)
        wait_for(lambda: "released" in agent.get("/readyz")[1], "the reason", agent)
        assert agent.get("/readyz")[0] == 503
        assert not agent.series("gpuassay_gpu_power_watts")
        assert agent.series("gpuassay_gpu_missing_readings", reason="released")
        agent.signal(signal.SIGUSR2)
        agent.wait_ready()
        assert len(agent.series("gpuassay_gpu_power_watts")) == 8


def test_only_the_worker_holds_the_driver_library(tmp_path):
    with Agent(tmp_path, scenario=eight_gpus(tmp_path)) as agent:
        agent.wait_ready()
        maps = lambda pid: pathlib.Path(f"/proc/{pid}/maps").read_text()
        assert "libnvidia-ml" not in maps(agent.process.pid)
        (worker,) = agent.workers()
        assert "libnvidia-ml" in maps(worker)


def test_a_crashed_worker_is_replaced_and_an_orphan_ends(tmp_path):
    with Agent(tmp_path, scenario=eight_gpus(tmp_path)) as agent:
        agent.wait_ready()
        (first,) = agent.workers()
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: agent.workers() not in ([], [first]), "another worker", agent)
        wait_for(lambda: agent.value("gpuassay_source_worker_starts_total") == 2, "start 2", agent)
        agent.wait_ready()
        (second,) = agent.workers()
        agent.process.kill()
        agent.process.wait()
        wait_for(lambda: not pathlib.Path(f"/proc/{second}").exists()
                 or ") Z" in pathlib.Path(f"/proc/{second}/stat").read_text(), "the orphan to end")


def test_it_ends_quickly_and_cleanly_on_sigterm(tmp_path):
    with Agent(tmp_path, scenario=eight_gpus(tmp_path)) as agent:
        agent.wait_ready()
        (worker,) = agent.workers()
        agent.process.terminate()
        assert agent.process.wait(10) == 0
        assert not pathlib.Path(f"/proc/{worker}").exists()


def test_a_missing_driver_is_waited_for(tmp_path):
    with Agent(tmp_path, source="nvml") as agent:  # the default library, absent on this machine
        wait_for(lambda: "libnvidia-ml.so.1" in agent.get("/readyz")[1], "the reason", agent)
        assert agent.get("/readyz")[0] == 503
        assert agent.get("/healthz")[0] == 200
        assert agent.get("/metrics")[0] == 200
        assert agent.process.poll() is None


def test_openmetrics_by_negotiation(tmp_path):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
    with Agent(tmp_path, scenario=eight_gpus(tmp_path)) as agent:
        agent.wait_ready()
        _, body = agent.get("/metrics", accept="application/openmetrics-text; version=1.0.0")
        assert body.endswith("# EOF\n")
        assert len(list(text_string_to_metric_families(body))) > 50


@pytest.mark.parametrize("names,present,absent", [
    ("4.8", "DCGM_FI_DEV_GPU_TEMP", None),
    ("off", "gpuassay_gpu_temperature_celsius", "DCGM_FI_DEV_GPU_TEMP"),
])
def test_dcgm_names_can_be_chosen(tmp_path, names, present, absent):
    with Agent(tmp_path, "--dcgm-names", names, scenario=eight_gpus(tmp_path)) as agent:
        agent.wait_ready()
        assert len(agent.series(present)) == 8
        assert absent is None or not agent.series(absent)


def test_a_recorded_run_is_a_source(tmp_path):
    recording = tmp_path / "run.rec"
    environment = dict(os.environ, GPUASSAY_SIM_SCENARIO=str(eight_gpus(tmp_path)))
    recorded = run("record", recording, "--source", f"nvml={LIBRARY}", "--for", "3s",
                   "--every", "1s", env=environment)
    assert recorded.returncode == 0, recorded.stderr
    with Agent(tmp_path, source=f"replay={recording}") as agent:
        wait_for(lambda: len(agent.series("gpuassay_gpu_power_watts")) == 8, "values", agent)
        wait_for(lambda: "recording has ended" in agent.get("/readyz")[1], "the end", agent)


def test_the_demo_prints_its_address_and_serves(tmp_path):
    demo = subprocess.Popen([PROGRAM, "demo", "--address", "127.0.0.1:0"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True)
    try:
        url = None
        for line in demo.stdout:
            if "/metrics" in line:
                url = line[line.index("http://"):].split()[0]
                break
        assert url is not None
        import urllib.request

        def body():
            return urllib.request.urlopen(url, timeout=5).read().decode()
        wait_for(lambda: "gpuassay_gpu_power_watts{" in body(), "values")
        assert "DCGM_FI_DEV_GPU_UTIL{" in body()
    finally:
        demo.terminate()
        assert demo.wait(10) == 0
