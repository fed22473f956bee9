"""The agent beside a real kubelet and a real API server (cluster.py). Needs root.

The driver is simulated and lists processes that really run in the pods' containers. What the agent
must say is taken from elsewhere: the API, containerd, and NVIDIA_VISIBLE_DEVICES in the container,
which the device plugin set when the kubelet asked it for these units.
"""
import contextlib
import json
import os
import pathlib
import tempfile

import pytest

import cluster as clusters
from cluster import NODE, common

from rigs import observed  # beside rigs.common, which cluster.py has found

TOOLS = pathlib.Path(os.environ.get("GPUASSAY_TEST_KUBERNETES_TOOLS")
                     or common.ROOT / "build" / "tools" / "kubernetes")
PLUGIN = pathlib.Path(observed.LIBRARY).parent / "gpuassay-device-plugin"

GPUS = """
hostname: gpu-node-1
gpus:
  - {model: t4, uuid: GPU-00000000-0000-0000-0000-000000000000}
  - {model: t4, uuid: GPU-11111111-1111-1111-1111-111111111111}
  - {model: t4, uuid: GPU-22222222-2222-2222-2222-222222222222}
  - {model: t4, uuid: GPU-33333333-3333-3333-3333-333333333333}
  - model: a100-sxm4-40gb
    uuid: GPU-44444444-4444-4444-4444-444444444444
    mig: [1g.5gb, 1g.5gb, 2g.10gb, 3g.20gb]
kubernetes:
  resources:
    - {name: nvidia.com/gpu, gpus: [0, 1]}
    - {name: nvidia.com/gpu.shared, gpus: [2], replicas: 4}
    - {name: example.com/gpu, gpus: [3], replicas: 2}
    - {name: nvidia.com/mig-1g.5gb, gpus: [4], mig: 1g.5gb}
    - {name: nvidia.com/mig-2g.10gb, gpus: [4], mig: 2g.10gb}
"""
UNITS = {"nvidia.com/gpu": 2, "nvidia.com/gpu.shared": 4, "example.com/gpu": 2,
         "nvidia.com/mig-1g.5gb": 2, "nvidia.com/mig-2g.10gb": 1}
# Pod: what it asks for.
PODS = {"whole": {"nvidia.com/gpu": 1},
        "sharer-a": {"nvidia.com/gpu.shared": 1},
        "sharer-b": {"nvidia.com/gpu.shared": 2},
        "renamed": {"example.com/gpu": 1},
        "small-mig": {"nvidia.com/mig-1g.5gb": 1},
        "large-mig": {"nvidia.com/mig-2g.10gb": 1},
        "none": {}}
# What the API server lets the agent do, as the Helm chart will have it.
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
         {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"],
          "verbs": ["get", "list", "watch"]}]
ARGUMENTS = ("--node-name", NODE, "--nvidia-resource-names", "example.com/gpu",
             "--pod-labels", "team,app.kubernetes.io/*")


@pytest.fixture(scope="module")
def cluster():
    with contextlib.ExitStack() as stack:
        # Unix sockets lie below it, whose paths have at most 107 bytes.
        directory = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="gpuassay-", ignore_cleanup_errors=True)))
        scenario = directory / "node.yaml"
        scenario.write_text(GPUS)
        started = stack.enter_context(clusters.Cluster(directory, TOOLS))
        started.start_device_plugin(PLUGIN, scenario, UNITS)
        grant(started)
        for name, resources in PODS.items():
            started.create_pod(name, resources, metadata={
                "labels": {"team": f"team-of-{name}", "secret": "not-to-be-read"},
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "training",
                                     "uid": "0-0-0", "controller": True}]})
        yield started


def grant(cluster):
    """A service account "gpuassay" with RULES, one "nobody" without; kubeconfigs for both."""
    roles = "/apis/rbac.authorization.k8s.io/v1"
    cluster.request("POST", f"{roles}/clusterroles", {
        "metadata": {"name": "gpuassay"}, "rules": RULES})
    cluster.request("POST", f"{roles}/clusterrolebindings", {
        "metadata": {"name": "gpuassay"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "gpuassay"},
        "subjects": [{"kind": "ServiceAccount", "name": "gpuassay", "namespace": "default"}]})
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    for name in ("gpuassay", "nobody"):
        cluster.request("POST", accounts, {"metadata": {"name": name}})
        token = cluster.request("POST", f"{accounts}/{name}/token", {"spec": {}})
        cluster.write_kubeconfig(name, token["status"]["token"])


@pytest.fixture
def observe(cluster, tmp_path):
    """observe(user=, socket=): an agent that has found its sources."""
    with contextlib.ExitStack() as stack:
        def start(user="gpuassay", socket=None):
            arguments = [*ARGUMENTS]
            if user:
                arguments += ["--kubeconfig", str(cluster.directory / f"{user}.kubeconfig")]
            if socket:
                arguments += ["--pod-resources-kubelet-socket", str(socket)]
            # Beside the kubelet: its socket and the pods' logs are where they usually are.
            return stack.enter_context(observed.Observer(
                tmp_path, story(cluster), *arguments, inside=cluster.namespace))

        yield start


def visible(cluster, pod):
    """The device that the container was told, as the device plugin has it."""
    environment = pathlib.Path(f"/proc/{cluster.pid(pod)}/environ").read_text().split("\0")
    return dict(line.split("=", 1) for line in environment if line)["NVIDIA_VISIBLE_DEVICES"]


def story(cluster):
    """Each pod works on its device; "none" on the GPU that nobody was given."""
    devices = devices_of_story(cluster)
    uses = []
    for pod, resources in PODS.items():
        uuid = visible(cluster, pod) if resources else free_gpu(cluster)
        uses.append((cluster.pid(pod), *devices[uuid]))
    return observed.story(uses, GPUS)


def free_gpu(cluster):
    of_nvidia_com_gpu = {"GPU-00000000-0000-0000-0000-000000000000",
                         "GPU-11111111-1111-1111-1111-111111111111"}
    [free] = of_nvidia_com_gpu - {visible(cluster, "whole")}
    return free


def devices_of_story(cluster):
    """{UUID: (GPU index, MIG index or None)} as the simulated driver says it."""
    source = f"simulator={cluster.directory}/node.yaml"
    said = observed.run("snapshot", "--source", source, "--json")
    assert said.returncode == 0, said.stderr
    found = {}
    for gpu in json.loads(said.stdout)["gpus"]:
        found[gpu["uuid"]] = (gpu["index"], None)
        found.update({mig["uuid"]: (gpu["index"], mig["index"]) for mig in gpu["mig"]})
    return found


def pods_of(views):
    return {pod["name"]: pod for pod in views["pods"]}


def wait_for_pods(observer, names=tuple(PODS)):
    """The views once they have these pods and none more: UIDs by the API, units by the kubelet."""
    def complete():
        views = observer.views()
        pods = pods_of(views)
        known = set(pods) == set(names) and all(pod["uid"] for pod in pods.values())
        units = {name: len(pods[name]["units"]) for name in PODS} if known else None
        return views if units == {name: sum(PODS[name].values()) for name in PODS} else None

    return observer.wait_until(complete, f"the pods {names}")


def test_the_units_are_those_of_the_device_plugin(cluster, observe):
    assert cluster.allocatable() == UNITS
    views = wait_for_pods(observe())
    assert {one["resource"]: one["units"] for one in views["resources"]} == UNITS
    assert {one["resource"]: one["allocated"] for one in views["resources"]} == {
        "nvidia.com/gpu": 1, "nvidia.com/gpu.shared": 3, "example.com/gpu": 1,
        "nvidia.com/mig-1g.5gb": 1, "nvidia.com/mig-2g.10gb": 1}
    assert {one["resource"]: one["devices"] for one in views["resources"]} == {
        "nvidia.com/gpu": 2, "nvidia.com/gpu.shared": 1, "example.com/gpu": 1,
        "nvidia.com/mig-1g.5gb": 2, "nvidia.com/mig-2g.10gb": 1}


def test_each_pod_has_the_device_that_its_container_sees(cluster, observe):
    pods = pods_of(wait_for_pods(observe()))
    for name, resources in PODS.items():
        units = pods[name]["units"]
        assert len(units) == sum(resources.values())
        for unit in units:
            assert [unit["resource"]] == list(resources)
            assert (unit["mig_uuid"] or unit["gpu_uuid"]) == visible(cluster, name)
            shared = unit["resource"] in ("nvidia.com/gpu.shared", "example.com/gpu")
            assert (unit["replica"] is not None) == shared
    replicas = [unit["replica"] for name in ("sharer-a", "sharer-b")
                for unit in pods[name]["units"]]
    assert len(set(replicas)) == 3


def test_each_process_belongs_to_its_container_and_pod(cluster, observe):
    observer = observe()
    wait_for_pods(observer)
    for name in PODS:
        pid, uid = cluster.pid(name), cluster.pod(name)["metadata"]["uid"]
        owner = observer.wait_until(
            lambda p=pid: observer.owner(p).get("pod", {}).get("name") and observer.owner(p),
            f"the owner of {pid}")
        assert owner["pod"] == {"namespace": "default", "name": name, "uid": uid}
        # No runtime: with cgroup v1 and no systemd containerd's paths are as any other's.
        assert owner["container"] == {"id": cluster.container_id(name), "name": "main"}
        assert owner["job"] == {"kind": "Job", "id": "training"}


def test_pods_have_what_the_api_server_says_and_only_labels_that_may_be_read(cluster, observe):
    observer = observe()
    wait_for_pods(observer)
    pods = {pod["name"]: pod for pod in observer.snapshot()["scheduler"]["pods"]}
    for name, resources in PODS.items():
        assert pods[name]["phase"] == "Running"
        assert pods[name]["labels"] == {"team": f"team-of-{name}"}
        assert pods[name]["controller"] == {"kind": "Job", "name": "training"}
        assert [one["id"] for one in pods[name]["containers"]] == [cluster.container_id(name)]
        assert {one["resource"]: one["amount"] for one in pods[name]["requests"]} == resources


def kinds(views, place):
    return {one["kind"] for thing in views[place] for one in thing["disagreements"]}


def test_the_disagreements_are_named(cluster, observe):
    observer = observe()
    wait_for_pods(observer)

    def both():
        views = observer.views()
        return views if "used_without_allocation" in kinds(views, "pods") and (
            "units_are_one_device" in kinds(views, "devices")) else None

    views = observer.wait_until(both, "the disagreements")
    offenders = [pod["name"] for pod in views["pods"]
                 if any(one["kind"] == "used_without_allocation"
                        for one in pod["disagreements"])]
    assert offenders == ["none"]


def test_the_metrics_name_the_pod(cluster, observe):
    observer = observe()
    wait_for_pods(observer)

    def pods_with_memory():
        found = {}
        for (name, labels), value in observer.agent.metrics().items():
            labels = dict(labels)
            if name == "gpuassay_process_memory_used_bytes" and labels.get("pod"):
                found[labels["pod"]] = found.get(labels["pod"], 0) + value
        return found if set(found) == set(PODS) else None

    found = observer.wait_until(pods_with_memory, "memory of each pod")
    assert set(found.values()) == {1024 ** 3}


def test_a_pod_that_is_deleted_disappears(cluster, observe):
    cluster.create_pod("short", {"nvidia.com/gpu": 1})
    observer = observe()
    views = wait_for_pods(observer, (*PODS, "short"))
    assert len(pods_of(views)["short"]["units"]) == 1
    cluster.delete_pod("short")
    wait_for_pods(observer)

    def allocations():
        return [one["pod"] for device in observer.views()["devices"]
                for one in device["scheduler"]["allocations"]]

    observer.wait_until(lambda: "default/short" not in allocations(), "the unit to be free")
    assert sorted(set(allocations())) == sorted(
        f"default/{name}" for name, resources in PODS.items() if resources)


def test_a_new_pod_is_noticed(cluster, observe):
    observer = observe()
    wait_for_pods(observer)
    cluster.create_pod("late", {"example.com/gpu": 1})
    try:
        views = wait_for_pods(observer, (*PODS, "late"))
        observer.wait_until(lambda: pods_of(observer.views())["late"]["units"], "its unit")
        assert pods_of(views)["late"]["uid"] == cluster.pod("late")["metadata"]["uid"]
    finally:
        cluster.delete_pod("late")


def units_of(observer):
    return {name: pod["units"] for name, pod in pods_of(observer.views()).items()}


def test_a_kubelet_that_stops_leaves_what_is_known_and_is_found_again(cluster, observe):
    observer = observe()
    wait_for_pods(observer)
    before = units_of(observer)
    assert observer.error_of("pod_resources") == ""
    cluster.daemons["kubelet"].kill()
    error = observer.wait_until(lambda: observer.error_of("pod_resources"), "the error")
    assert "kubelet" in error
    assert units_of(observer) == before
    cluster.daemons["kubelet"].start()
    cluster.daemons["kubelet"].ready(cluster.kubelet_is_ready, "the kubelet")
    observer.wait_until(lambda: observer.error_of("pod_resources") == "", "the kubelet again")
    observer.wait_until(
        lambda: {one["resource"]: one["units"] for one in observer.views()["resources"]} == UNITS,
        "the device plugin to have registered again")
    # A kubelet tells no devices of its pods for a moment, until it has looked at them again.
    observer.wait_until(lambda: units_of(observer) == before, "the units again")


def test_an_api_server_that_stops_leaves_what_is_known_and_is_found_again(cluster, observe):
    observer = observe()
    wait_for_pods(observer)
    assert observer.error_of("kubernetes_api") == ""
    server = cluster.daemons["kube-apiserver"]
    server.kill()
    observer.wait_until(lambda: observer.error_of("kubernetes_api"), "the error")
    assert set(pods_of(observer.views())) == set(PODS)
    assert observer.error_of("pod_resources") == ""
    server.start()
    server.ready(cluster.api_is_ready, "the API server")
    observer.wait_until(lambda: observer.error_of("kubernetes_api") == "", "the API server again")
    cluster.create_pod("after", {"example.com/gpu": 1})
    try:
        wait_for_pods(observer, (*PODS, "after"))
    finally:
        cluster.delete_pod("after")


def test_without_the_right_to_read_pods_the_kubelet_names_them(cluster, observe):
    observer = observe(user="nobody")
    error = observer.wait_until(lambda: observer.error_of("kubernetes_api"), "the refusal")
    assert "forbidden" in error

    def units():
        return {pod["name"]: len(pod["units"]) for pod in observer.views()["pods"]
                if pod["units"]}

    expected = {name: sum(resources.values()) for name, resources in PODS.items() if resources}
    observer.wait_until(lambda: units() == expected, "the pods of the kubelet")
    owner = observer.wait_until(
        lambda: observer.owner(cluster.pid("whole")).get("pod", {}).get("name")
        and observer.owner(cluster.pid("whole")), "its owner")
    assert owner["pod"] == {"namespace": "default", "name": "whole",
                            "uid": cluster.pod("whole")["metadata"]["uid"]}
    assert owner["container"]["id"] == cluster.container_id("whole")


def test_with_nothing_but_proc_the_logs_of_the_kubelet_name_the_pods(cluster, observe):
    observer = observe(user=None, socket="off")
    for name in PODS:
        pid = cluster.pid(name)
        owner = observer.wait_until(
            lambda p=pid: observer.owner(p).get("pod", {}).get("name") and observer.owner(p),
            f"the owner of {pid}")
        assert owner["pod"] == {"namespace": "default", "name": name,
                                "uid": cluster.pod(name)["metadata"]["uid"]}
        assert owner["container"]["id"] == cluster.container_id(name)
