"""Counts the driver calls of the agent and of the bare loop: are they really the same?"""
import pathlib
import re
import struct
import tempfile
import time

import programs

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 10


def function_names():
    text = (ROOT / "src/sources/nvml/nvml_functions.def").read_text(encoding="utf-8")
    return re.findall(r"^NVML_(?:REQUIRED|FUNCTION)\((\w+),", text, re.M)


def read_counts(file, names):
    return dict(zip(names, struct.unpack(f"{len(names)}Q", file.read_bytes())))


def calls_per_cycle(program, build, scenario, **arguments):
    """{function: calls per second} after the first seconds, in which everything is asked once."""
    names = function_names()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "counts"
        environment = {"GPUASSAY_CALL_COUNT_LIBRARY": str(build / "sim" / "libnvidia-ml.so.1"),
                       "GPUASSAY_CALL_COUNT_FILE": str(file)}
        library = build / "bench" / "libcall_count.so"
        with program(build, scenario, library=library, environment=environment, **arguments):
            programs.wait_until(file.exists, "the counted driver")
            time.sleep(3.5)
            before = read_counts(file, names)
            time.sleep(SECONDS)
            after = read_counts(file, names)
    return {name: round((after[name] - before[name]) / SECONDS, 1)
            for name in names if after[name] != before[name]}


def compare(build, scenario):
    agent = calls_per_cycle(programs.Agent, build, scenario)
    bare = calls_per_cycle(programs.BareLoop, build, scenario)
    different = sorted(name for name in agent.keys() | bare.keys()
                       if abs(agent.get(name, 0) - bare.get(name, 0)) > 0.1 * agent.get(name, 0))
    return {"agent": agent, "bare_loop": bare, "different": different,
            "agent_total": sum(agent.values()), "bare_loop_total": sum(bare.values())}


def summary(result):
    yield (f"driver calls per cycle: agent {result['agent_total']:.0f}, "
           f"bare loop {result['bare_loop_total']:.0f}")
    for name in result["different"]:
        yield (f"  {name}: agent {result['agent'].get(name, 0)}, "
               f"bare loop {result['bare_loop'].get(name, 0)}")
