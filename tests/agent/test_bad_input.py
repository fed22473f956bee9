"""Bad input: one clear line that says where and what instead, exit code 2, nothing started."""

import ctypes.util
import os
import socket

import pytest

from agent_process import LIBRARY, SCENARIOS, run, scenario_file

AGENT = ("agent", "--address", "127.0.0.1:0")


def refused(result, *words):
    assert result.returncode == 2, (result.returncode, result.stdout, result.stderr)
    lines = [line for line in result.stderr.splitlines() if " info: " not in line]
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0], lines[0]
    return lines[0]


@pytest.mark.parametrize("command", [
    ["agent"], ["snapshot"], ["simulate", "x.yaml"], ["demo"], ["metrics"], ["explain", "util"],
    ["record", "x.rec"]])
def test_an_unknown_flag(command):
    refused(run(*command, "--no-such-flag"), "--no-such-flag")


def test_an_unknown_command():
    refused(run("snapshoot"), "snapshoot")


def test_a_scenario_with_a_mistake_says_line_and_column(tmp_path):
    bad = scenario_file(tmp_path, "name: x\ngpus:\n  - {model: h100-sxm5-80bg}\n")
    for command in (["simulate", bad], ["demo", bad], [*AGENT, "--source", f"simulator={bad}"]):
        refused(run(*command), f"{bad}:3:", "h100-sxm5-80gb")


def test_a_scenario_that_is_not_there():
    refused(run("simulate", "/nowhere.yaml"), "/nowhere.yaml")
    refused(run(*AGENT, "--source", "simulator=/nowhere.yaml"), "/nowhere.yaml")


def test_a_port_in_use():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused(run("agent", "--address", f"127.0.0.1:{port}", "--source",
                    f"simulator={SCENARIOS / 'demo.yaml'}"), str(port), "in use")


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:99999", "127.0.0.1:", "[::1", "1.2.3.4.5:80"])
def test_an_address_that_is_none(address):
    refused(run("agent", "--address", address, "--source",
                f"simulator={SCENARIOS / 'demo.yaml'}"), address)


def test_a_library_that_is_not_nvml(tmp_path):
    text = tmp_path / "libtext.so"
    text.write_text("this is no library\n")
    refused(run(*AGENT, "--source", f"nvml={text}"), str(text))
    refused(run("snapshot", "--source", f"nvml={text}"), str(text))
    library = ctypes.util.find_library("c")
    refused(run(*AGENT, "--source", f"nvml={library}"), library, "nvmlInit_v2")
    refused(run(*AGENT, "--source", f"nvml={tmp_path}/absent.so"), f"{tmp_path}/absent.so")


def test_a_root_that_cannot_be_read(tmp_path):
    refused(run(*AGENT, "--root", tmp_path / "absent", "--source", f"nvml={LIBRARY}"),
            str(tmp_path / "absent"))
    (tmp_path / "file").write_text("")
    refused(run(*AGENT, "--root", tmp_path / "file", "--source", f"nvml={LIBRARY}"),
            "not a directory")


@pytest.mark.parametrize("arguments,word", [
    (["--source", "nmvl"], "simulator=SCENARIO"),
    (["--dcgm-names", "5.0"], "4.8"),
    (["--collect-interval", "soon"], "soon"),
    (["--collect-interval", "0"], "--collect-interval"),
])
def test_a_value_that_is_none_of_the_allowed(arguments, word):
    refused(run(*AGENT, *arguments), word)


def test_a_recording_that_is_none(tmp_path):
    other = tmp_path / "other"
    other.write_text("hello")
    refused(run("snapshot", "--source", f"replay={other}"), str(other))
    refused(run(*AGENT, "--source", f"replay={other}"), str(other))


def test_a_recording_is_never_overwritten(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("data")
    result = run("record", precious, "--source", f"simulator={SCENARIOS / 'demo.yaml'}", "--for",
                 "1s")
    assert result.returncode in (1, 2) and str(precious) in result.stderr
    assert precious.read_text() == "data"


def test_a_metric_that_does_not_exist_suggests_the_nearest():
    refused(run("explain", "sm_activ_ratio"), "sm_active_ratio")


def test_a_driver_that_cannot_be_read_is_a_failure_with_its_reason(tmp_path):
    environment = dict(os.environ, GPUASSAY_SIM_SCENARIO=str(tmp_path / "absent.yaml"))
    result = run("snapshot", "--source", f"nvml={LIBRARY}", env=environment)
    assert result.returncode == 1
    assert "driver" in result.stderr
