"""Starts the built agent on loopback and talks to it. Shared by the agent tests."""

import os
import pathlib
import signal
import subprocess
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("GPUASSAY_TEST_PROGRAM", str(ROOT / "build/bin/gpuassay"))
LIBRARY = os.environ.get(
    "GPUASSAY_SIM_LIBRARY_DIR", str(ROOT / "build/sim")) + "/libnvidia-ml.so.1"
SCENARIOS = ROOT / "sim/scenarios"

# How long a test waits for something that must happen; only a hang takes that long.
PATIENCE_S = 30


class Agent:
    """`gpuassay agent` on the simulated driver; use as a context manager.

    inside: words before the command, such as those of nsenter.
    """

    def __init__(self, tmp_path, *arguments, scenario=None, source=None, start=None, inside=()):
        self.port_file = tmp_path / f"port-{time.monotonic_ns()}"
        self.log_path = tmp_path / f"log-{time.monotonic_ns()}"
        environment = dict(os.environ)
        if scenario is not None:
            environment["GPUASSAY_SIM_SCENARIO"] = str(scenario)
            environment["GPUASSAY_SIM_START"] = repr(time.time() if start is None else start)
        self.log_file = open(self.log_path, "wb")
        self.process = subprocess.Popen(
            [*inside, PROGRAM, "agent", "--address", "127.0.0.1:0", "--port-file",
             str(self.port_file), "--source", source or f"nvml={LIBRARY}", *arguments],
            stdout=self.log_file, stderr=self.log_file, env=environment)

    def __enter__(self):
        try:
            wait_for(lambda: self.port_file.exists() or self.process.poll() is not None,
                     "the port file", self)
            assert self.process.poll() is None, self.log()
            self.url = f"http://127.0.0.1:{int(self.port_file.read_text())}"
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log_file.close()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def get(self, path, accept=None):
        """Status and body, whatever the status."""
        request = urllib.request.Request(self.url + path)
        if accept:
            request.add_header("Accept", accept)
        try:
            with urllib.request.urlopen(request, timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def ready(self):
        return self.get("/readyz")[0] == 200

    def wait_ready(self, wanted=True):
        wait_for(lambda: self.ready() == wanted, f"ready to be {wanted}", self)

    def metrics(self):
        """{(name, frozenset of labels): value} of the Prometheus text."""
        status, body = self.get("/metrics")
        assert status == 200
        return parse(body)

    def series(self, name, **labels):
        wanted = set(labels.items())
        return {labels_: value for (name_, labels_), value in self.metrics().items()
                if name_ == name and wanted <= labels_}

    def value(self, name, **labels):
        found = list(self.series(name, **labels).values())
        assert len(found) == 1, f"{name}{labels}: {found}"
        return found[0]

    def signal(self, number):
        self.process.send_signal(number)

    def workers(self):
        """PIDs of the living children."""
        children = []
        for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = status.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == self.process.pid and fields[0] not in "ZX":
                children.append(int(status.parent.name))
        return children


def parse(text):
    from prometheus_client.parser import text_string_to_metric_families
    series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in series, f"twice: {key}"
            series[key] = sample.value
    return series


def wait_for(condition, what, agent=None):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            log = agent.log() if agent else ""
            raise AssertionError(f"waited {PATIENCE_S} s for {what}\n{log}")
        time.sleep(0.05)


def run(*arguments, **options):
    """Runs the program to its end; returns CompletedProcess with text."""
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, **options)


def scenario_file(tmp_path, text, name="scenario.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return path


__all__ = ["Agent", "LIBRARY", "PROGRAM", "ROOT", "SCENARIOS", "parse", "run", "scenario_file",
           "signal", "wait_for"]
