"""A real Kubernetes of one node: etcd, an API server, containerd, a kubelet. No scheduler.

The programs run in a mount namespace of their own, in which /var/lib, /var/log and /run are folders
of the cluster's directory: the kubelet's paths are its usual ones and nothing of the machine's is
touched. Everything else is the machine's: /proc, the cgroups, the network. Pods name the node they
run on and use the host's network. docs/testing-kubernetes.md says more.
"""
import contextlib
import json
import pathlib
import secrets
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "owners"))

from rigs import common, images  # noqa: E402 (the rigs are no package of this folder's)

NODE = "gpu-node-1"
CGROUP_ROOT = "gpuassay-test-cluster"
DAEMONS = common.CGROUPS / "pids" / CGROUP_ROOT / "daemons"

CONTAINERD_CONFIG = """\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{runc}"
"""

KUBELET_CONFIG = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "address": "127.0.0.1",
    "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}},
    "authorization": {"mode": "Webhook"},
    "readOnlyPort": 0,
    "cgroupDriver": "cgroupfs",
    "cgroupRoot": f"/{CGROUP_ROOT}",
    "failCgroupV1": False,
    "failSwapOn": False,
    "enforceNodeAllocatable": [],
    "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
    "makeIPTablesUtilChains": False,
    "imageGCHighThresholdPercent": 100,
    "imageGCLowThresholdPercent": 99,
    "evictionHard": {"memory.available": "0%", "nodefs.available": "0%",
                     "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
    "localStorageCapacityIsolation": False,
    "oomScoreAdj": 0,
    "resolvConf": "",
    "registerNode": True,
    "syncFrequency": "5s",
    "nodeStatusUpdateFrequency": "2s",
}


class ApiError(common.RigError):
    def __init__(self, status, text):
        super().__init__(f"the API server answers {status}: {text}")
        self.status = status


class Cluster(common.Rig):
    """directory: empty, with a short path: Unix sockets lie below it."""

    def __init__(self, directory, tools):
        self.directory = pathlib.Path(directory)
        self.tools = pathlib.Path(tools)
        self.programs = common.Programs(self.tools / "debian")
        [self.binaries] = [common.Programs(path) for path in self.tools.glob("v1.*")]
        self.daemons = {}
        self.namespace = None
        self.lock = None
        self.tokens = {name: secrets.token_hex(16) for name in ("admin", "kubelet")}
        self.etcd_port, self.api_port, self.kubelet_port, self.health_port = (
            common.free_port() for _ in range(4))

    # --- paths outside the mount namespace --------------------------------------------------

    @property
    def kubelet_directory(self):
        return self.directory / "var/lib/kubelet"

    @property
    def pod_resources_socket(self):
        return self.kubelet_directory / "pod-resources/kubelet.sock"

    @property
    def certificate(self):
        return self.directory / "pki/apiserver.crt"

    # --- start and stop ----------------------------------------------------------------------

    def start(self):
        self.lock = common.only_one("cluster")
        common.end_all_in_cgroup(CGROUP_ROOT)  # what a run that was killed has left
        for name in ("pki", "log", "etcd"):
            (self.directory / name).mkdir()
        self.namespace = common.namespace_with_own_paths(self.programs, self.directory)
        self.write_configuration()
        self.start_etcd()
        self.start_api_server()
        self.start_containerd()
        self.start_kubelet()

    def daemon(self, name, programs, *command):
        # In a cgroup of theirs: containerd's shims, which outlive it, are found there.
        join = f'echo $$ >{DAEMONS}/cgroup.procs && exec "$@"'
        inside = self.namespace.inside(
            ["sh", "-c", join, name, programs.find(command[0]), *command[1:]])
        self.daemons[name] = common.Daemon(self.programs, inside,
                                           self.directory / f"log/{name}.log")
        return self.daemons[name]

    def write_configuration(self):
        pki = self.directory / "pki"
        self.programs.call("openssl", "genrsa", "-out", pki / "accounts.key", "2048")
        (pki / "tokens.csv").write_text(
            f'{self.tokens["admin"]},admin,1,"system:masters"\n'
            f'{self.tokens["kubelet"]},system:node:{NODE},2,"system:nodes,system:masters"\n')
        (self.directory / "containerd.toml").write_text(CONTAINERD_CONFIG.format(
            pause=images.PAUSE, runc=self.programs.find("runc")))
        config = {**KUBELET_CONFIG, "port": self.kubelet_port, "healthzPort": self.health_port,
                  "healthzBindAddress": "127.0.0.1"}
        (self.directory / "kubelet.json").write_text(json.dumps(config, indent=1))
        for path in common.CGROUPS.iterdir():
            if path.is_dir() and path.name != "unified":
                (path / CGROUP_ROOT).mkdir(exist_ok=True)
        DAEMONS.mkdir()

    def start_etcd(self):
        client = f"http://127.0.0.1:{self.etcd_port}"
        peer = f"http://127.0.0.1:{common.free_port()}"
        etcd = self.daemon(
            "etcd", self.programs, "etcd", f"--data-dir={self.directory}/etcd",
            f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}", "--unsafe-no-fsync")
        etcd.ready(lambda: urllib.request.urlopen(f"{client}/health").status == 200, "etcd")

    def start_api_server(self):
        pki = self.directory / "pki"
        server = self.daemon(
            "kube-apiserver", self.binaries, "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}", "--bind-address=127.0.0.1",
            f"--secure-port={self.api_port}", f"--cert-dir={pki}",
            f"--token-auth-file={pki}/tokens.csv", "--authorization-mode=RBAC",
            f"--service-account-key-file={pki}/accounts.key",
            f"--service-account-signing-key-file={pki}/accounts.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/24", "--endpoint-reconciler-type=none",
            "--disable-admission-plugins=ServiceAccount")
        server.ready(self.api_is_ready, "the API server")
        self.write_kubeconfig("kubelet", self.tokens["kubelet"])

    def api_is_ready(self):
        return self.request("GET", "/readyz", plain=True) == "ok" and self.request(
            "GET", "/api/v1/namespaces/default")

    def start_containerd(self):
        daemon = self.daemon("containerd", self.programs, "containerd",
                             "--config", self.directory / "containerd.toml")
        daemon.ready(lambda: self.ctr("version"), "containerd")
        archive = self.directory / "images.tar"
        images.write_archive(archive, self.programs.find("busybox"))
        self.ctr("images", "import", archive)

    def ctr(self, *command):
        return self.programs.call("ctr", "--address",
                                  self.directory / "run/containerd/containerd.sock",
                                  "--namespace", "k8s.io", *command)

    def start_kubelet(self):
        kubelet = self.daemon(
            "kubelet", self.binaries, "kubelet", f"--config={self.directory}/kubelet.json",
            f"--kubeconfig={self.directory}/kubelet.kubeconfig", f"--hostname-override={NODE}",
            "--v=2")
        kubelet.ready(self.kubelet_is_ready, "the kubelet")

    def start_device_plugin(self, program, scenario, resources):
        """The stand-in of sim/device_plugin. resources: those that the node must then have."""
        plugin = common.Daemon(
            self.programs, [program, "--scenario", scenario, "--directory",
                            self.kubelet_directory / "device-plugins"],
            self.directory / "log/device-plugin.log")
        self.daemons["device-plugin"] = plugin
        plugin.ready(lambda: self.allocatable().keys() >= set(resources), "the node's resources")

    def allocatable(self):
        """{resource: how many} of the node, without those that have none."""
        found = self.node()["status"].get("allocatable", {})
        return {name: int(count) for name, count in found.items()
                if "/" in name and count != "0"}

    def kubelet_is_ready(self):
        url = f"http://127.0.0.1:{self.health_port}/healthz"
        return (urllib.request.urlopen(url).status == 200 and self.pod_resources_socket.exists()
                and self.request("GET", f"/api/v1/nodes/{NODE}"))

    def stop(self):
        if not self.lock:
            return
        with contextlib.suppress(common.RigError, OSError):
            self.delete_pods()
        for name in ("device-plugin", "kubelet", "containerd", "kube-apiserver", "etcd"):
            if name in self.daemons:
                self.daemons[name].stop()
        if self.namespace:
            self.namespace.close()  # and the shims of containerd, which outlive it
        common.end_all_in_cgroup(CGROUP_ROOT)
        self.lock.close()

    # --- the API ------------------------------------------------------------------------------

    def request(self, method, path, body=None, plain=False, token=None, content="json"):
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.api_port}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token or self.tokens['admin']}",
                     "Content-Type": f"application/{content}"})
        context = ssl.create_default_context(cafile=str(self.certificate))
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            raise ApiError(error.code, error.read().decode(errors="replace")) from error
        return text if plain else json.loads(text)

    def write_kubeconfig(self, name, token):
        path = self.directory / f"{name}.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": f"https://127.0.0.1:{self.api_port}",
                "certificate-authority": str(self.certificate)}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
            "users": [{"name": name, "user": {"token": token}}]}, indent=1))
        return path

    # --- pods ---------------------------------------------------------------------------------

    def create_pod(self, name, resources=None, command="exec sleep 100000", **more):
        """resources: {"nvidia.com/gpu": 1}. Returns the pod once its container runs."""
        limits = {key: str(value) for key, value in (resources or {}).items()}
        container = {"name": "main", "image": images.BUSYBOX, "imagePullPolicy": "Never",
                     "command": ["/bin/sh", "-c", command],
                     "resources": {"limits": limits} if limits else {}}
        self.request("POST", "/api/v1/namespaces/default/pods", {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, **more.pop("metadata", {})},
            "spec": {"nodeName": NODE, "hostNetwork": True, "restartPolicy": "Never",
                     "terminationGracePeriodSeconds": 1, "dnsPolicy": "Default",
                     "containers": [container], **more}})
        return self.wait_for_phase(name, "Running")

    def pod(self, name):
        return self.request("GET", f"/api/v1/namespaces/default/pods/{name}")

    def wait_for_phase(self, name, phase):
        def in_phase():
            pod = self.pod(name)
            return pod if pod["status"].get("phase") == phase else None

        try:
            return common.wait_for(in_phase, f"pod {name} to be {phase}")
        except common.RigError as error:
            raise common.RigError(f"{error}\n{json.dumps(self.pod(name)['status'], indent=1)}\n"
                                  f"{self.daemons['kubelet'].said()}") from error

    def delete_pod(self, name):
        """Returns when the kubelet has let go of it."""
        self.request("DELETE", f"/api/v1/namespaces/default/pods/{name}")

        def gone():
            try:
                self.pod(name)
            except ApiError as error:
                return error.status == 404
            return False

        common.wait_for(gone, f"pod {name} to be gone")

    def delete_pods(self):
        path = "/api/v1/namespaces/default/pods"
        for pod in self.request("GET", path)["items"]:
            self.request("DELETE", f"{path}/{pod['metadata']['name']}")
        common.wait_for(lambda: not self.request("GET", path)["items"], "the pods to be gone")

    def container_id(self, name):
        [status] = self.pod(name)["status"]["containerStatuses"]
        return status["containerID"].partition("://")[2]

    def pid(self, name):
        """Of the container's process, as the machine counts."""
        container = self.container_id(name)
        for line in self.ctr("tasks", "list").splitlines()[1:]:
            found, pid, *_ = line.split()
            if found == container:
                return int(pid)
        raise LookupError(f"containerd runs no container {container}")

    def node(self):
        return self.request("GET", f"/api/v1/nodes/{NODE}")
