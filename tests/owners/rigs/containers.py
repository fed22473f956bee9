"""Docker and Podman as they come from Debian, with one image of busybox; the host's network."""
import json
import pathlib

from . import common, images


class ContainerRig(common.Rig):
    """What both have in common. cgroup_root: the cgroup that the runtime makes its own below."""

    run_options = ("--detach", "--network", "host")

    def __init__(self, directory, tools, cgroup_root):
        self.directory = pathlib.Path(directory)
        self.programs = common.Programs(tools)
        self.cgroup_root = cgroup_root
        self.owns_cgroup = False
        self.namespace = None
        self.daemon = None

    def start(self):
        if common.processes_in_cgroup(self.cgroup_root):
            raise common.RigError(f"containers run on this machine already, in /{self.cgroup_root}")
        self.owns_cgroup = True
        self.namespace = common.namespace_with_own_paths(self.programs, self.directory)
        self.start_runtime()
        archive = self.directory / "images.tar"
        images.write_archive(archive, self.programs.find("busybox"))
        self.client("load", "--input", archive)

    def inside(self, *command):
        return self.namespace.inside([self.programs.find(command[0]), *command[1:]])

    def call(self, *command):
        return self.programs.call(*self.inside(*command), **self.variables())

    def variables(self):
        return {"HOME": str(self.directory)}

    def run(self, name, *options, command="exec sleep 100000"):
        """Returns (id of the container, PID of its process as the machine counts)."""
        self.client("run", *self.run_options, "--name", name, *options, images.BUSYBOX,
                    "/bin/sh", "-c", command)
        found = json.loads(self.client("inspect", name))[0]
        return found["Id"], int(found["State"]["Pid"])

    def stop(self):
        if not self.owns_cgroup:
            return
        for pid in common.processes_in_cgroup(self.cgroup_root):
            common.end(pid, common.start_of(pid))
        if self.daemon:
            self.daemon.stop()
        if self.namespace:
            self.namespace.close()
        common.end_all_in_cgroup(self.cgroup_root)


class DockerRig(ContainerRig):
    def __init__(self, directory, tools):
        super().__init__(directory, tools, "docker")

    def start_runtime(self):
        socket = self.directory / "run/docker.sock"
        self.daemon = common.Daemon(
            self.programs,
            self.inside("dockerd", "--host", f"unix://{socket}", "--bridge=none",
                        "--iptables=false", "--ip6tables=false", "--exec-opt",
                        "native.cgroupdriver=cgroupfs"),
            self.directory / "dockerd.log", **self.variables())
        self.daemon.ready(lambda: self.client("version"), "dockerd")

    def client(self, *command):
        return self.call("docker", "--host", f"unix://{self.directory}/run/docker.sock", *command)


class PodmanRig(ContainerRig):
    # Its own limits are higher than some machines let root set.
    run_options = (*ContainerRig.run_options, "--ulimit", "nofile=1024:1024", "--ulimit",
                   "nproc=1024:1024")

    def __init__(self, directory, tools):
        super().__init__(directory, tools, "libpod_parent")
        self.runtime = None

    def start_runtime(self):
        """It has no daemon, only a policy that must exist."""
        folder = self.directory / ".config/containers"
        folder.mkdir(parents=True)
        (folder / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        # conmon starts the runtime without an environment, so without its libraries.
        libraries = self.programs.environment()["LD_LIBRARY_PATH"]
        self.runtime = self.directory / "runtime"
        self.runtime.write_text(f"#!/bin/sh\nexport LD_LIBRARY_PATH='{libraries}'\n"
                                f"exec {self.programs.find('runc')} \"$@\"\n")
        self.runtime.chmod(0o755)

    def client(self, *command):
        return self.call("podman", "--cgroup-manager", "cgroupfs", "--events-backend", "none",
                         "--runtime", self.runtime,
                         "--conmon", self.programs.find("conmon"), *command)
