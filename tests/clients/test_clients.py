"""Real clients of NVML on the simulated driver: each must list what the scenario says.

Paths come from the environment, see README.md. A missing tool skips its tests, and fails them where
CI=true.
"""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest
from screen import Screen

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build"
PYTHON = os.environ.get("GPUASSAY_TEST_PYTHON", sys.executable)
NVTOP = os.environ.get("GPUASSAY_TEST_NVTOP", shutil.which("nvtop") or "/usr/bin/nvtop")
GO_CLIENT = os.environ.get("GPUASSAY_TEST_GO_CLIENT", str(BUILD / "tools" / "go_nvml_client"))
LIBRARY_DIR = os.environ.get("GPUASSAY_SIM_LIBRARY_DIR", str(BUILD / "sim"))
SCENARIOS = ROOT / "sim" / "scenarios"
CLIENTS = SCENARIOS / "clients.yaml"

H100 = "NVIDIA H100 80GB HBM3"
H100_MIB = 81559
NO_INSTANCE = 0xFFFFFFFF
# By GPU of clients.yaml: processes as (PID, MiB) and the memory used, in MiB.
COMPUTE = [
    [[51000, 60000]],
    [[51001, 60000]],
    [[51002, 60000]],
    [[51003, 60000]],
    [[51100, 40960], [51101, 1104]],
    [],
    [],
    [[51300, 20000], [51301, 4000]],
]
GRAPHICS = [[], [], [], [], [], [[51200, 200]], [], []]
USED_MIB = [60000, 60000, 60000, 60000, 42064, 200, 0, 24000]
# MIG devices of the last GPU: profile, MiB, processes.
MIG = [
    ("3g.40gb", 40448, [[51300, 20000]]),
    ("2g.20gb", 20096, []),
    ("1g.10gb", 9984, [[51301, 4000]]),
    ("1g.10gb", 9984, []),
]


def missing(what):
    reason = f"{what} is not here; see tests/clients/README.md"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def need_file(path, what):
    if not pathlib.Path(path).exists():
        missing(f"{what} ({path})")
    return path


def need_module(name):
    found = subprocess.run([PYTHON, "-c", f"import {name}"], capture_output=True, check=False)
    if found.returncode != 0:
        missing(f"the Python package {name} of {PYTHON}")


@pytest.fixture(autouse=True)
def library():
    need_file(pathlib.Path(LIBRARY_DIR) / "libnvidia-ml.so.1", "the simulated driver")


def environment(scenario, **more):
    """The story began half a minute ago, so that every sampler has something."""
    added = {
        "LD_LIBRARY_PATH": f"{LIBRARY_DIR}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":"),
        "GPUASSAY_SIM_SCENARIO": str(scenario),
        "GPUASSAY_SIM_START": f"{time.time() - 30:.3f}",
    }
    return {**os.environ, **added, **more}


def run(command, scenario=CLIENTS, **more):
    done = subprocess.run(
        command,
        env=environment(scenario, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def tool(name):
    """A command line tool of the Python environment."""
    return str(pathlib.Path(PYTHON).parent / name)


@pytest.fixture
def live(tmp_path):
    """clients.yaml with PIDs that exist, for tools that look them up: (file, PIDs by old)."""
    old = [51000, 51001, 51002, 51003, 51100, 51101, 51200, 51300, 51301]
    sleepers = [subprocess.Popen(["sleep", "120"]) for _ in old]
    pid = {was: sleeper.pid for was, sleeper in zip(old, sleepers)}
    text = CLIENTS.read_text()
    spread = re.search(r"  - pid: 51000\n(?:    .*\n)+", text).group(0)
    by_gpu = "".join(
        spread.replace("51000", str(51000 + gpu))
        .replace("gpus: 0-3", f"gpus: {gpu}")
        .replace("    spread: true\n", "")
        for gpu in range(4)
    )
    text = text.replace(spread, by_gpu)
    text = re.sub(r"pid: (\d+)", lambda match: f"pid: {pid[int(match.group(1))]}", text)
    path = tmp_path / "live.yaml"
    path.write_text(text)
    yield path, pid
    for sleeper in sleepers:
        sleeper.kill()
        sleeper.wait()


# --- nvidia-ml-py


def test_nvidia_ml_py_lists_gpus_processes_and_mig():
    need_module("pynvml")
    seen = json.loads(run([PYTHON, str(HERE / "list_nvml.py")]))
    assert seen["driver"] == "570.86.15"
    assert seen["cuda"] == 12080
    gpus = seen["gpus"]
    assert [gpu["name"] for gpu in gpus] == [H100] * 8
    assert [gpu["memory_mib"] for gpu in gpus] == [H100_MIB] * 8
    assert [gpu["used_mib"] for gpu in gpus] == USED_MIB
    assert [gpu["reserved_mib"] for gpu in gpus] == [479] * 8
    assert [gpu["power_limit_w"] for gpu in gpus] == [700] * 8
    assert [gpu["energy_field"] for gpu in gpus] == [0] * 8
    assert len({gpu["bus_id"] for gpu in gpus}) == 8
    # Kernels of 1 ms at 900/s and of 2 ms at 100/s; the GPU in MIG mode does not tell.
    assert [gpu["utilization"] for gpu in gpus[:4]] == [100] * 4
    assert 15 <= gpus[4]["utilization"] <= 100
    assert [gpu["utilization"] for gpu in gpus[5:]] == [0, 0, None]
    for gpu, compute, graphics in zip(gpus[:7], COMPUTE, GRAPHICS):
        assert gpu["compute"] == [[*process, NO_INSTANCE] for process in compute]
        assert gpu["graphics"] == [[*process, NO_INSTANCE] for process in graphics]
        assert not gpu["mig_enabled"]
    assert gpus[7]["mig_enabled"]
    assert [process[:2] for process in gpus[7]["compute"]] == COMPUTE[7]
    mig = gpus[7]["mig"]
    assert [device["name"] for device in mig] == [f"{H100} MIG {profile}" for profile, _, _ in MIG]
    assert [device["memory_mib"] for device in mig] == [mib for _, mib, _ in MIG]
    assert [[p[:2] for p in device["processes"]] for device in mig] == [own for _, _, own in MIG]
    assert all(re.fullmatch(r"MIG-[0-9a-f-]{36}", device["uuid"]) for device in mig)


def test_an_old_driver_lacks_newer_functions_for_nvidia_ml_py():
    need_module("pynvml")
    functions = [
        "nvmlDeviceGetName",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetComputeRunningProcesses_v2",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetNumGpuCores",
        "nvmlDeviceGetTotalEnergyConsumption",
    ]
    script = str(HERE / "list_nvml.py")
    seen = json.loads(run([PYTHON, script, *functions], SCENARIOS / "old-driver.yaml"))
    assert seen == {
        "nvmlDeviceGetName": "answers",
        "nvmlDeviceGetMemoryInfo": "answers",
        "nvmlDeviceGetComputeRunningProcesses_v2": "answers",
        "nvmlDeviceGetComputeRunningProcesses_v3": "NVMLError_FunctionNotFound",
        "nvmlDeviceGetNumGpuCores": "NVMLError_FunctionNotFound",
        "nvmlDeviceGetTotalEnergyConsumption": "NVMLError_NotSupported",
    }


# --- the library itself


def symbols(scenario, names):
    script = (
        "import ctypes, json, sys\n"
        "library = ctypes.CDLL('libnvidia-ml.so.1')\n"
        "print(json.dumps([hasattr(library, name) for name in sys.argv[1:]]))\n"
    )
    return json.loads(run([sys.executable, "-c", script, *names], scenario))


def test_newer_symbols_are_missing_for_dlsym_under_an_old_driver():
    names = [
        "nvmlInit_v2",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlGpmSampleGet",
    ]
    assert symbols(CLIENTS, names) == [True, True, True, True]
    assert symbols(SCENARIOS / "old-driver.yaml", names) == [True, True, False, False]


def test_the_library_exports_nvml_and_nothing_else():
    library = pathlib.Path(LIBRARY_DIR) / "libnvidia-ml.so.1"
    if shutil.which("nm") is None:
        missing("nm of binutils")
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True
    ).stdout
    exported = [line.split()[-1].split("@")[0] for line in listing.splitlines()]
    assert len(exported) > 150
    assert [name for name in exported if not name.startswith("nvml")] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"GPUASSAY_SIM_SCENARIO": ""}, "GPUASSAY_SIM_SCENARIO is not set"),
        ({"GPUASSAY_SIM_SCENARIO": "/nowhere.yaml"}, "/nowhere.yaml: No such file or directory"),
        ({"GPUASSAY_SIM_SPEED": "0"}, "GPUASSAY_SIM_SPEED=0: want a factor above 0"),
        ({"GPUASSAY_SIM_SPEED": "fast"}, "GPUASSAY_SIM_SPEED=fast: not a number"),
    ],
)
def test_a_bad_environment_is_said_in_one_line(change, said):
    script = "import ctypes; print(ctypes.CDLL('libnvidia-ml.so.1').nvmlInit_v2())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(CLIENTS, **change),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "9\n"  # driver not loaded
    assert done.stderr.startswith(f"simulated NVIDIA driver: {said}")
    assert done.stderr.count("\n") == 1


def test_scenario_time_runs_faster_by_the_factor():
    # 30 s ago is scenario second 150 at five times the speed: after the new layout of second 60.
    script = (
        "import ctypes\n"
        "nvml = ctypes.CDLL('libnvidia-ml.so.1')\n"
        "nvml.nvmlInit_v2()\n"
        "gpu, mig = ctypes.c_void_p(), ctypes.c_void_p()\n"
        "nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu))\n"
        "print(nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 3, ctypes.byref(mig)))\n"
    )
    command = [sys.executable, "-c", script]
    scenario = SCENARIOS / "mig-repartition.yaml"
    assert run(command, scenario) == "6\n"  # not found
    assert run(command, scenario, GPUASSAY_SIM_SPEED="5") == "0\n"


# --- nvitop


def test_nvitop_lists_gpus_processes_and_mig():
    need_module("nvitop")
    gpus = json.loads(run([PYTHON, str(HERE / "list_nvitop.py")]))["gpus"]
    assert [gpu["name"] for gpu in gpus] == [H100] * 8
    assert [gpu["total_mib"] for gpu in gpus] == [H100_MIB] * 8
    assert [gpu["used_mib"] for gpu in gpus] == USED_MIB
    assert [gpu["mig_enabled"] for gpu in gpus] == [False] * 7 + [True]
    assert [gpu["utilization"] for gpu in gpus[:4]] == [100] * 4
    assert gpus[7]["utilization"] is None
    for gpu, compute, graphics in zip(gpus, COMPUTE, GRAPHICS):
        expected = [[*p, "C"] for p in compute] + [[*p, "G"] for p in graphics]
        assert gpu["processes"] == expected
    mig = gpus[7]["mig"]
    assert [device["total_mib"] for device in mig] == [mib for _, mib, _ in MIG]
    assert [device["processes"] for device in mig] == [own for _, _, own in MIG]


def test_nvitop_draws_gpus_processes_and_mig():
    need_module("nvitop")
    drawn = run([tool("nvitop"), "-1"], COLUMNS="120", LINES="80", LANG="C.UTF-8")
    assert "Driver Version: 570.86.15" in drawn
    assert "CUDA Driver Version: 12.8" in drawn
    assert len(re.findall(r"^│ +\d  H100 80GB HBM3", drawn, re.M)) == 8
    assert re.search(r"42064MiB / 79\.65GiB|41\.08GiB / 79\.65GiB", drawn)
    assert [*re.findall(r"^│ 7:(\d) +(\S+) @ GI/CI", drawn, re.M)] == [
        (str(index), profile) for index, (profile, _, _) in enumerate(MIG)
    ]
    for pid in (51000, 51003, 51100, 51101, 51200, 51300, 51301):
        assert re.search(rf"^│ +\S+ +{pid} [CG] ", drawn, re.M), pid


# --- gpustat


def test_gpustat_lists_gpus_and_processes(live):
    need_module("gpustat")
    scenario, pid = live
    gpus = json.loads(run([tool("gpustat"), "--json"], scenario))["gpus"]
    assert [gpu["name"] for gpu in gpus] == [H100] * 8
    assert [gpu["memory.total"] for gpu in gpus] == [H100_MIB] * 8
    assert [gpu["memory.used"] for gpu in gpus] == USED_MIB
    assert [gpu["enforced.power.limit"] for gpu in gpus] == [700] * 8
    assert [gpu["utilization.gpu"] for gpu in gpus[:4]] == [100] * 4
    assert gpus[7]["utilization.gpu"] is None  # MIG
    for gpu, compute, graphics in zip(gpus, COMPUTE, GRAPHICS):
        found = sorted([p["pid"], p["gpu_memory_usage"]] for p in gpu["processes"])
        assert found == sorted([pid[was], mib] for was, mib in compute + graphics)


# --- go-nvml


def test_go_nvml_lists_gpus_processes_and_mig():
    need_file(GO_CLIENT, "the go-nvml client")
    gpus = json.loads(run([GO_CLIENT]))
    assert [gpu["name"] for gpu in gpus] == [H100] * 8
    assert [gpu["memory_mib"] for gpu in gpus] == [H100_MIB] * 8
    assert [gpu["used_mib"] for gpu in gpus] == USED_MIB
    assert [gpu["power_limit_mw"] for gpu in gpus] == [700000] * 8
    assert [gpu["mig_enabled"] for gpu in gpus] == [False] * 7 + [True]
    for gpu, compute, graphics in zip(gpus, COMPUTE, GRAPHICS):
        assert [[p["pid"], p["memory_mib"]] for p in gpu["processes"]] == compute
        assert [[p["pid"], p["memory_mib"]] for p in gpu["graphics"]] == graphics
    mig = gpus[7]["mig"]
    assert [device["name"] for device in mig] == [f"{H100} MIG {profile}" for profile, _, _ in MIG]
    assert [[[p["pid"], p["memory_mib"]] for p in device["processes"]] for device in mig] == [
        own for _, _, own in MIG
    ]


# --- nvtop


def draw(command, scenario, seconds=3.0, rows=120, columns=200, **more):
    """What the program shows after `seconds` in a terminal of that size."""
    environ = environment(scenario, TERM="xterm", LANG="C", **more)
    child, terminal = pty.fork()
    if child == 0:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(0, termios.TIOCSWINSZ, size)
        os.execve(command[0], command, environ)
    screen = Screen(rows, columns)
    end = time.monotonic() + seconds
    try:
        while (left := end - time.monotonic()) > 0:
            if select.select([terminal], [], [], left)[0]:
                screen.feed(os.read(terminal, 65536).decode("utf-8", "replace"))
    except OSError:  # the program ended
        pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
    return screen.text()


def test_nvtop_draws_gpus_and_processes(live, tmp_path):
    need_file(NVTOP, "nvtop")
    scenario, pid = live
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    drawn = draw([NVTOP], scenario, **home)
    devices = re.findall(r"Device (\d) \[NVIDIA H100 80GB HBM3\]", drawn)
    assert sorted(devices) == list("01234567"), drawn
    # "MEM[|||   59.062Gi/79.647Gi]": with the reserve, as the first version of the call counts it.
    used = [f"{(mib + 479) / 1024:.3f}" for mib in USED_MIB]
    assert re.findall(r"([0-9.]+)Gi/79\.647Gi\]", drawn) == used, drawn
    assert len(re.findall(r"GPU\[\|* *100%\]", drawn)) == 4, drawn
    assert len(re.findall(r"GPU\[ *N/A\]", drawn)) == 1, drawn  # MIG
    for processes in COMPUTE + GRAPHICS:
        for was, mib in processes:
            line = rf"{pid[was]}\s.*\s{mib}MiB\s"
            assert re.search(line, drawn), f"{pid[was]} with {mib} MiB\n{drawn}"
    assert len(re.findall(r"Compute\b", drawn)) == sum(len(found) for found in COMPUTE), drawn
    assert len(re.findall(r"Graphic\b", drawn)) == 1, drawn
