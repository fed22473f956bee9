"""What the rigs share: where programs are, daemons, stand-in devices, leaving nothing behind."""
import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
LIBRARIES = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu",
             "usr/lib/x86_64-linux-gnu/slurm-wlm")
FOLDERS = ("usr/sbin", "usr/bin", "sbin", "bin")
CGROUPS = pathlib.Path("/sys/fs/cgroup")
# Longer than anything here takes on a slow machine; only ends a test that would wait for ever.
PATIENCE_S = 120
LOG_TAIL = 3000


class RigError(RuntimeError):
    """A program that does not start or does not do as it is told, with what it said."""


def wait_for(condition, what, timeout_s=PATIENCE_S, pause_s=0.05):
    """The first true result of condition(); an error in it counts as not yet."""
    end = time.monotonic() + timeout_s
    error = None
    while time.monotonic() < end:
        try:
            result = condition()
            if result:
                return result
        except (OSError, RigError, ValueError, LookupError) as failure:
            error = failure
        time.sleep(pause_s)
    raise RigError(f"waited {timeout_s} s for {what}" + (f": {error}" if error else ""))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Programs:
    """Programs of packages that are unpacked below a folder, each in one of its own."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def environment(self, **more):
        folders = [str(path) for part in FOLDERS for path in sorted(self.folder.glob(f"*/{part}"))]
        libraries = [str(path) for part in LIBRARIES
                     for path in sorted(self.folder.glob(f"*/{part}"))]
        system = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        return {"PATH": ":".join([str(self.folder), *folders, *system]),
                "LD_LIBRARY_PATH": ":".join(libraries), "LC_ALL": "C.UTF-8", **more}

    def find(self, name):
        found = shutil.which(name, path=self.environment()["PATH"])
        if not found:
            raise RigError(f"{name} is not below {self.folder}; ./run test unpacks it")
        return found

    def call(self, *command, timeout_s=PATIENCE_S, cwd=None, **variables):
        """What it says on standard output; RigError with all it says when it fails."""
        done = subprocess.run(
            [self.find(command[0]), *map(str, command[1:])], capture_output=True, text=True,
            check=False, timeout=timeout_s, stdin=subprocess.DEVNULL,
            env=self.environment(**variables), cwd=cwd)
        if done.returncode != 0:
            said = f"{done.stdout}{done.stderr}".strip()
            raise RigError(f"{command[0]} ended with {done.returncode}: {said}")
        return done.stdout.strip()


class Daemon:
    """One program in the foreground, its output in a log. It does not outlive this process."""

    def __init__(self, programs, command, log, **variables):
        self.programs, self.log, self.variables = programs, pathlib.Path(log), variables
        self.command = [programs.find(command[0]), *map(str, command[1:])]
        self.name = pathlib.Path(log).stem
        self.process = None
        self.start()

    def start(self):
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *self.command],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=self.programs.environment(**self.variables), start_new_session=True)

    def said(self):
        return self.log.read_text(errors="replace")[-LOG_TAIL:]

    def ready(self, condition, what):
        """Waits for the condition, no longer than the program runs."""
        def ended_or_ready():
            return self.process.poll() is not None or condition()

        try:
            wait_for(ended_or_ready, what)
        except RigError as error:
            raise RigError(f"{error}\n{self.said()}") from error
        if self.process.poll() is not None:
            raise RigError(f"{self.name} ended with {self.process.returncode}:\n{self.said()}")

    def stop(self, patience_s=20):
        self.process.terminate()
        try:
            self.process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait()


class MountNamespace:
    """A mount namespace in which `mounts`, lines of shell, have been done. A process keeps it."""

    def __init__(self, programs, mounts, directory):
        ready = pathlib.Path(directory) / "mounted"
        script = f"set -e\n{mounts}\ntouch '{ready}'\nexec sleep infinity"
        self.holder = Daemon(
            programs, ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
            pathlib.Path(directory) / "mounts.log")
        self.holder.ready(ready.exists, "the mount namespace")

    @property
    def pid(self):
        return self.holder.process.pid

    def inside(self, command):
        """The command that runs this command in it; nsenter becomes the program: same PID."""
        return ["nsenter", f"--mount=/proc/{self.pid}/ns/mnt", "--", *command]

    def close(self):
        """Ends every process in it."""
        here = os.readlink(f"/proc/{self.pid}/ns/mnt")
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                pid = int(folder.name)
                if pid != self.pid and os.readlink(folder / "ns/mnt") == here:
                    end(pid, start_of(pid))
        self.holder.kill()


def namespace_with_own_paths(programs, directory):
    """A mount namespace in which what a runtime writes to at fixed paths lies in the directory."""
    paths = ("var/lib", "var/log", "run")
    for path in paths:
        (pathlib.Path(directory) / path).mkdir(parents=True)
    mounts = "\n".join(f"mount --bind '{directory}/{path}' /{path}" for path in paths)
    return MountNamespace(programs, mounts, directory)


def make_devices(directory, names):
    """Character devices that read as zeros, in DIRECTORY/dev."""
    folder = pathlib.Path(directory) / "dev"
    folder.mkdir(exist_ok=True)
    for name in names:
        path = folder / name
        if not path.exists():
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
            path.chmod(0o666)
    return folder


def only_one(name):
    """Holds back a second run on this machine until the first has ended, however it ends."""
    path = pathlib.Path(tempfile.gettempdir()) / f"gpuassay-test-{name}.lock"
    file = open(path, "w")  # noqa: SIM115 (the lock is held while it is open)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def end_all_in_cgroup(name):
    """Ends the processes of a top cgroup and removes it."""
    for pid in processes_in_cgroup(name):
        end(pid, start_of(pid))
    for folder in cgroup_folders(name):
        remove_cgroup(folder)


def end(pid, start=None):
    """Kills one process, unless another one has its PID by now; waits until it is gone."""
    if start is not None and start_of(pid) != start:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(RigError):
        wait_for(lambda: start_of(pid) in (None, "zombie") or start_of(pid) != start,
                 f"{pid} to end", 5)


def start_of(pid):
    """Clock ticks since boot at which the process started; None when there is none."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return "zombie" if fields[0] == "Z" else fields[19]


def processes_in_cgroup(name):
    """PIDs in a top cgroup of this name or below it."""
    found = set()
    for top in cgroup_folders(name):
        for file in top.rglob("cgroup.procs"):
            with contextlib.suppress(OSError):
                found.update(int(line) for line in file.read_text().split())
    return sorted(found)


def cgroup_folders(name):
    """Top folders of this name in all hierarchies that are mounted."""
    tops = [CGROUPS, *CGROUPS.iterdir()]
    return [path for path in (hierarchy / name for hierarchy in tops) if path.is_dir()]


def remove_cgroup(folder):
    """An empty tree of cgroups; one that still has processes stays."""
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(path)


class Rig:
    """Context manager around start() and stop(); a failed start() cleans up too."""

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()
