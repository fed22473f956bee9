"""Real consumers of the export: Prometheus scrapes it, promtool checks it, strict parsers read it.

Paths come from the environment, see README.md. A missing tool skips its tests, and fails them where
CI=true.
"""

import contextlib
import json
import math
import os
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOLS = ROOT / "build" / "tools" / "prometheus" / "usr" / "bin"
PROGRAM = os.environ.get("GPUASSAY_TEST_PROGRAM", str(ROOT / "build" / "bin" / "gpuassay"))
SCENARIO = ROOT / "sim" / "scenarios" / "demo.yaml"
MIG_SCENARIO = ROOT / "sim" / "scenarios" / "a100-mig.yaml"
TEXT = "text/plain;version=0.0.4"
OPEN_METRICS = "application/openmetrics-text;version=1.0.0"
# Longer than anything here takes on a slow machine; only ends a test that would wait for ever.
PATIENCE_S = 60
# What Prometheus must have seen before it is asked.
SCRAPES = 15

HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def missing(what):
    reason = f"{what} is not here; see tests/consumers/README.md"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def tool(name):
    """The path of a program of Prometheus: from the environment, build/tools or PATH."""
    named = os.environ.get(f"GPUASSAY_TEST_{name.upper()}")
    if named:
        return named if pathlib.Path(named).exists() else missing(f"{name} ({named})")
    unpacked = TOOLS / name
    return str(unpacked) if unpacked.exists() else shutil.which(name) or missing(name)


def get(url, accept="*/*"):
    """Content type and text of a page."""
    request = urllib.request.Request(url, headers={"Accept": accept})
    with HTTP.open(request, timeout=PATIENCE_S) as answer:
        return answer.headers["Content-Type"], answer.read().decode("utf-8")


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with contextlib.suppress(OSError, urllib.error.URLError):
            result = condition()
            if result:
                return result
        time.sleep(0.1)
    return pytest.fail(f"waited {PATIENCE_S} s for {what}")


@contextlib.contextmanager
def running(command, log_path):
    with open(log_path, "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def agent(directory, *arguments, scenario=SCENARIO):
    """The URL of an agent that has read the driver at least three times."""
    if not pathlib.Path(PROGRAM).exists():
        missing(f"the agent ({PROGRAM})")
    port_file = directory / "port"
    log = directory / "agent.log"
    command = [PROGRAM, "agent", "--source", f"simulator={scenario}", "--address", "127.0.0.1:0"]
    command += ["--port-file", str(port_file), "--hostname", "demo-node", *arguments]
    with running(command, log) as process:

        def port():
            if process.poll() is not None:
                pytest.fail(f"the agent ended with {process.returncode}: {log.read_text()}")
            return port_file.exists() and port_file.read_text().strip()

        url = f"http://127.0.0.1:{wait_for(port, 'the port')}"

        def reads():
            text = get(url + "/metrics")[1]
            lines = [x for x in text.splitlines() if x.startswith("gpuassay_source_reads_total")]
            return bool(lines) and float(lines[0].split()[-1]) >= 3

        wait_for(reads, "three readings")
        yield url


@pytest.fixture(scope="module", params=["off", "4.8", "4.9"])
def exports(request, tmp_path_factory):
    """Both formats of one agent for each set of names, and of one with MIG instances."""
    texts = {}
    for scenario in (SCENARIO, MIG_SCENARIO):
        directory = tmp_path_factory.mktemp("agent")
        with agent(directory, f"--dcgm-names={request.param}", scenario=scenario) as url:
            content_type, text = get(url + "/metrics", TEXT)
            assert content_type.startswith("text/plain; version=0.0.4")
            content_type, open_metrics = get(url + "/metrics", OPEN_METRICS)
            assert content_type.startswith("application/openmetrics-text; version=1.0.0")
        texts[scenario.name] = (text, open_metrics)
    return request.param, texts


def promtool_check(text):
    return subprocess.run(
        [tool("promtool"), "check", "metrics"],
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_promtool_reads_the_export(exports):
    """Nothing to say about our own metrics; NVIDIA's names are NVIDIA's, but must be readable."""
    names, texts = exports
    for text, _ in texts.values():
        done = promtool_check(text)
        complaints = (done.stdout + done.stderr).splitlines()
        ours = [line for line in complaints if not line.startswith("DCGM_")]
        assert not ours
        if names == "off":
            assert done.returncode == 0
            assert not complaints
        else:
            assert done.returncode in (0, 3)  # 3: complaints; 1: unreadable


def series_of(families):
    """Name and labels of each sample, with its value; fails on a repeated one."""
    series = {}
    for family in families:
        for sample in family.samples:
            name = sample.name
            # The parser of the text format appends _total to a counter that lacks it.
            if name.startswith("DCGM_"):
                name = name.removesuffix("_total")
            key = (name, tuple(sorted(sample.labels.items())))
            assert key not in series, f"twice: {key}"
            assert math.isfinite(sample.value), key
            series[key] = sample.value
    return series


def parse(text, open_metrics):
    try:
        from prometheus_client import parser
        from prometheus_client.openmetrics import parser as strict
    except ImportError:
        missing("the Python package prometheus_client")
    chosen = strict if open_metrics else parser
    return list(chosen.text_string_to_metric_families(text))


def test_strict_parsers_read_both_formats_and_find_the_same_series(exports):
    names, texts = exports
    for text, open_metrics in texts.values():
        plain = series_of(parse(text, open_metrics=False))
        strict = series_of(parse(open_metrics, open_metrics=True))
        # A scrape counts itself: the first one's request is only in the second.
        own = {key for key in plain.keys() | strict.keys() if "http_requests" in key[0]}
        # Live values may come and go between the two requests (a clock reason, a process).
        differ = (plain.keys() ^ strict.keys()) - own
        assert len(differ) <= 0.02 * len(plain), differ
        dcgm = {name for name, _ in plain if name.startswith("DCGM_")}
        assert bool(dcgm) == (names != "off")


def test_every_family_is_told_once(exports):
    for pair in exports[1].values():
        for text in pair:
            types = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")]
            assert len(types) == len(set(types))
            helps = [line.split()[2] for line in text.splitlines() if line.startswith("# HELP ")]
            assert helps == types


def labels_of(text, name):
    found = [labels for (key, labels) in series_of(parse(text, open_metrics=False)) if key == name]
    return [dict(labels) for labels in found]


def test_mig_instances_carry_the_exporters_labels(exports):
    names, texts = exports
    if names != "4.8":
        return
    text = texts[MIG_SCENARIO.name][0]
    used = labels_of(text, "DCGM_FI_DEV_FB_USED")
    instances = [labels for labels in used if "GPU_I_ID" in labels]
    assert instances
    assert all(labels["GPU_I_PROFILE"][0].isdigit() for labels in instances)
    # Power is the card's: once each, not once per instance.
    power = labels_of(text, "DCGM_FI_DEV_POWER_USAGE")
    assert len({labels["gpu"] for labels in power}) == len(power)
    assert not [labels for labels in power if "GPU_I_ID" in labels]


class Prometheus:
    def __init__(self, url):
        self.url = url

    def api(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        answer = json.loads(get(f"{self.url}/api/v1/{path}?{query}")[1])
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression):
        """{labels: value} of an instant query."""
        result = self.api("query", query=expression)["result"]
        return [(item["metric"], float(item["value"][1])) for item in result]

    def by_gpu(self, expression):
        return {labels["gpu"]: value for labels, value in self.query(expression)}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """A real server that has scraped the agent, every second, often enough to be asked."""
    program = tool("prometheus")
    directory = tmp_path_factory.mktemp("prometheus")
    with agent(directory) as url:
        config = directory / "prometheus.yml"
        target = url.removeprefix("http://")
        config.write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
            "scrape_configs:\n"
            "  - job_name: gpuassay\n"
            f"    static_configs: [{{targets: ['{target}']}}]\n"
        )
        port = free_port()
        command = [program, f"--config.file={config}", f"--storage.tsdb.path={directory / 'data'}"]
        command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
        with running(command, directory / "prometheus.log"):
            server = Prometheus(f"http://127.0.0.1:{port}")

            def scraped():
                counts = server.query("count_over_time(up[2m])")
                return bool(counts) and counts[0][1] >= SCRAPES

            wait_for(scraped, "the scrapes")
            yield server


def test_prometheus_finds_the_target_up(prometheus):
    assert [value for _, value in prometheus.query("up")] == [1]
    (target,) = prometheus.api("targets")["activeTargets"]
    assert target["health"] == "up"
    assert target["lastError"] == ""


def test_prometheus_has_the_series_of_both_families_for_each_gpu(prometheus):
    gpus = {str(i) for i in range(8)}
    for name in (
        "DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_XID_ERRORS",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "gpuassay_gpu_utilization_ratio",
        "gpuassay_gpu_sm_active_ratio",
        "gpuassay_gpu_energy_joules_total",
    ):
        found = prometheus.query(name)
        assert {labels["gpu"] for labels, _ in found} == gpus, name
        assert len(found) == 8, name
        for labels, _ in found:
            assert labels["modelName" if name.startswith("DCGM") else "model_name"]
            assert labels["hostname"] == "demo-node"


def test_both_families_say_the_same(prometheus):
    percent = prometheus.by_gpu("DCGM_FI_DEV_GPU_UTIL")
    ratio = prometheus.by_gpu("gpuassay_gpu_utilization_ratio")
    assert {gpu: round(value * 100) for gpu, value in ratio.items()} == percent


def test_the_rate_of_energy_is_the_power(prometheus):
    """Over the same readings: joules per observed second against the mean of the gauge."""
    window = f"[{SCRAPES - 3}s]"
    from_energy = prometheus.by_gpu(
        f"rate(gpuassay_gpu_energy_joules_total{window})"
        f" / on (gpu) rate(gpuassay_gpu_observed_seconds_total{window})"
    )
    from_power = prometheus.by_gpu(f"avg_over_time(gpuassay_gpu_power_watts{window})")
    assert len(from_energy) == 8
    for gpu, watts in from_power.items():
        assert from_energy[gpu] == pytest.approx(watts, rel=0.15), gpu


def test_the_idle_notebook_holds_its_gpu(prometheus):
    held = prometheus.by_gpu(
        f"rate(gpuassay_gpu_held_idle_seconds_total[{SCRAPES - 3}s])"
        f" / on (gpu) rate(gpuassay_gpu_observed_seconds_total[{SCRAPES - 3}s])"
    )
    assert held["6"] == pytest.approx(1, abs=0.2)
    assert held["0"] < 0.5


def test_counters_never_fall(prometheus):
    for name in ("gpuassay_gpu_energy_joules_total", "gpuassay_gpu_sm_active_seconds_total"):
        assert {value for _, value in prometheus.query(f"resets({name}[2m])")} == {0}
