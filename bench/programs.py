"""The programs that the benchmark compares, on the simulated driver, and what they cost."""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

START_SECONDS_MAX = 30
CPU_CLOCK_OF_PROCESS = 2  # CPUCLOCK_SCHED of the kernel's clock ids


def cpu_seconds(pids):
    """CPU time of whole processes, exact to the scheduler's nanoseconds."""
    return sum(time.clock_gettime(((~pid) << 3) | CPU_CLOCK_OF_PROCESS) for pid in pids)


def memory_bytes(pid):
    wanted = {"Rss:": "rss_bytes", "Pss:": "pss_bytes"}
    found = {}
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[0] in wanted:
            found[wanted[words[0]]] = int(words[1]) * 1024
    return found


def children(pid):
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return [int(word) for task in tasks for word in (task / "children").read_text().split()]


def driver_environment(build, scenario):
    return {**os.environ, "LD_LIBRARY_PATH": str(build / "sim"),
            "GPUASSAY_SIM_SCENARIO": str(scenario), "GPUASSAY_SIM_START": repr(time.time())}


def wait_until(condition, what):
    deadline = time.monotonic() + START_SECONDS_MAX
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"bench: {what} did not start within {START_SECONDS_MAX} s")
        time.sleep(0.05)


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


class Program:
    """A child process that is ended at the end of the `with`."""

    def __init__(self, command, environment):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen([str(word) for word in command], env=environment,
                                        stdout=self.log, stderr=self.log)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def output(self):
        self.log.seek(0)
        return self.log.read()

    def still_runs(self):
        if self.process.poll() is not None:
            sys.exit(f"bench: {self.process.args[0]} ended:\n{self.output()}")
        return True


class Agent(Program):
    def __init__(self, build, scenario, library=None, environment=None, arguments=()):
        self.folder = tempfile.TemporaryDirectory()
        port_file = pathlib.Path(self.folder.name) / "port"
        library = library or build / "sim" / "libnvidia-ml.so.1"
        super().__init__(
            [build / "bin" / "gpuassay", "agent", "--source", f"nvml={library}", "--address",
             "127.0.0.1:0", "--port-file", port_file, "--collect-interval", "1s",
             *arguments],
            {**driver_environment(build, scenario), **(environment or {})})
        wait_until(lambda: self.still_runs() and port_file.exists(), "the agent")
        self.url = f"http://127.0.0.1:{port_file.read_text().strip()}"
        wait_until(lambda: answers(self.url + "/readyz"), "the agent's driver worker")

    def pids(self):
        """The serving process, then the driver worker."""
        return [self.pid] + children(self.pid)

    def __exit__(self, *arguments):
        super().__exit__(*arguments)
        self.folder.cleanup()


class BareLoop(Program):
    def __init__(self, build, scenario, library=None, environment=None):
        library = library or build / "sim" / "libnvidia-ml.so.1"
        super().__init__([build / "bench" / "bare_loop", library],
                         {**driver_environment(build, scenario), **(environment or {})})
        wait_until(lambda: self.still_runs() and "calls per cycle" in self.output(),
                   "the bare loop")


class IdleProcesses:
    """Processes of this machine that do nothing, for the agent to find out about."""

    def __init__(self, count):
        self.processes = [subprocess.Popen(["sleep", "86400"]) for _ in range(count)]

    def __enter__(self):
        return [process.pid for process in self.processes]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


def nvitop_exporter_path(build):
    path = build / "venv" / "bin" / "nvitop-exporter"
    return str(path) if path.exists() else shutil.which("nvitop-exporter")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class NvitopExporter(Program):
    def __init__(self, build, scenario):
        port = free_port()
        super().__init__(
            [nvitop_exporter_path(build), "--hostname", "127.0.0.1", "--port", port, "--interval",
             "1.0"], driver_environment(build, scenario))
        self.url = f"http://127.0.0.1:{port}"
        wait_until(lambda: self.still_runs() and answers(self.url + "/metrics"), "nvitop-exporter")
