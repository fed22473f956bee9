"""Counts the driver calls of the agent and of the bare loop: are they really the same?"""
import contextlib
import pathlib
import re
import struct
import tempfile
import time

import programs

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The slow fields are read once a minute: by the agent one GPU after the other, by the bare loop all
# at once.
SECONDS = 60
COUNTED = {"agent": programs.Agent, "bare_loop": programs.BareLoop}


def function_names():
    text = (ROOT / "src/sources/nvml/nvml_functions.def").read_text(encoding="utf-8")
    return re.findall(r"^NVML_(?:REQUIRED|FUNCTION)\((\w+),", text, re.M)


def read_counts(file, names):
    return dict(zip(names, struct.unpack(f"{len(names)}Q", file.read_bytes())))


def compare(build, scenario, seconds=SECONDS):
    """Calls per cycle by function; both run at once, each on a counting library of its own."""
    names = function_names()
    library = build / "bench" / "libcall_count.so"
    if not library.exists():
        return None
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        files = {who: pathlib.Path(folder) / who for who in COUNTED}
        for who, program in COUNTED.items():
            environment = {"GPUASSAY_CALL_COUNT_LIBRARY": str(build / "sim" / "libnvidia-ml.so.1"),
                           "GPUASSAY_CALL_COUNT_FILE": str(files[who])}
            stack.enter_context(program(build, scenario, library, environment))
        time.sleep(3.5)
        before = {who: read_counts(file, names) for who, file in files.items()}
        time.sleep(seconds)
        after = {who: read_counts(file, names) for who, file in files.items()}
    counts = {who: {name: (after[who][name] - before[who][name]) / seconds for name in names}
              for who in COUNTED}
    return report(names, counts)


def report(names, counts):
    agent, bare = counts["agent"], counts["bare_loop"]
    # One cycle more or less at the ends of the time.
    different = [name for name in names
                 if abs(agent[name] - bare[name]) > 0.05 * max(agent[name], bare[name]) + 1.0]
    return {"agent": {name: count for name, count in agent.items() if count},
            "bare_loop": {name: count for name, count in bare.items() if count},
            "different": different, "agent_total": sum(agent.values()),
            "bare_loop_total": sum(bare.values())}


def summary(result):
    if result is None:
        yield "driver calls were not counted: x86-64 only"
        return
    yield (f"driver calls per cycle: agent {result['agent_total']:.0f}, "
           f"bare loop {result['bare_loop_total']:.0f}")
    for name in result["different"]:
        yield (f"  {name}: agent {result['agent'].get(name, 0):.1f}, "
               f"bare loop {result['bare_loop'].get(name, 0):.1f}")
