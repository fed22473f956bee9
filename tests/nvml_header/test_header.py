"""Compares our declarations of NVML with NVIDIA's own header, by letting a compiler do it.

The header comes from the PyPI package nvidia-nvml-dev (tests/clients/requirements.txt), found in
the Python that runs the tests or in GPUASSAY_TEST_NVML_HEADER_DIR. Skipped without it, unless
CI=true.
"""

import os
import pathlib
import subprocess
import sysconfig

import declarations
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ABI = ROOT / "src" / "sources" / "nvml" / "nvml_abi.h"
ABI_MORE = ROOT / "sim" / "driver" / "abi_more.h"
FUNCTIONS = ROOT / "src" / "sources" / "nvml" / "nvml_functions.def"
SIM_FUNCTIONS = ROOT / "sim" / "driver" / "functions.def"

# Ours alone.
OUR_CONSTANTS = {"GPUASSAY_GPM_METRICS_MAX", "NVML_NVLINK_MAX_LINKS_BEFORE_BLACKWELL"}
# The header's array grows with every release; the library touches only the used part.
SIZES_DIFFER = {"nvmlGpmMetricsGet_t": {"metrics"}}
# The header has kept the older names of these.
HEADER_NAMES = {
    f"nvmlClocksEventReason{reason}": f"nvmlClocksThrottleReason{reason}"
    for reason in ("HwSlowdown", "HwThermalSlowdown", "HwPowerBrakeSlowdown")
}
# Functions whose structure has another size on purpose: see SIZES_DIFFER; and the fabric's, where
# the header declares the newest version and takes the older ones by their version word.
STRUCTURES_DIFFER = {"nvmlGpmMetricsGet", "nvmlDeviceGetGpuFabricInfoV"}
# Version words of structures: our macro's arguments, and the header's macro.
VERSIONS = {
    ("nvmlMemory_v2_t", 2): "nvmlMemory_v2",
    ("nvmlMarginTemperature_v1_t", 1): "nvmlMarginTemperature_v1",
    ("nvmlGpuFabricInfo_v2_t", 2): "nvmlGpuFabricInfo_v2",
    ("nvmlGpuFabricInfo_v3_t", 3): "nvmlGpuFabricInfo_v3",
    ("nvmlPciInfoExt_v1_t", 1): "nvmlPciInfoExt_v1",
    ("nvmlTemperature_v1_t", 1): "nvmlTemperature_v1",
    ("nvmlProcessDetailList_v1_t", 1): "nvmlProcessDetailList_v1",
    ("nvmlProcessesUtilizationInfo_v1_t", 1): "nvmlProcessesUtilizationInfo_v1",
    ("nvmlGpuInstanceProfileInfo_v2_t", 2): "nvmlGpuInstanceProfileInfo_v2",
    ("nvmlGpuInstanceProfileInfo_v3_t", 3): "nvmlGpuInstanceProfileInfo_v3",
    ("nvmlSystemDriverBranchInfo_v1_t", 1): "nvmlSystemDriverBranchInfo_v1",
}

# Parameters match when they are passed alike: as many, each a pointer to something as large or a
# number as wide. Ours call enumerations `unsigned int`.
COMPARE_SIGNATURES = """
template <class T, class = void>
inline constexpr std::size_t kSize = 0;  // of something incomplete: a handle
template <class T>
inline constexpr std::size_t kSize<T, std::void_t<decltype(sizeof(T))>> = sizeof(T);

template <class Ours, class Theirs>
constexpr bool SameParameter() {
  if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using From = std::remove_pointer_t<Ours>;
    using To = std::remove_pointer_t<Theirs>;
    if constexpr (std::is_pointer_v<From> || std::is_pointer_v<To>) {
      return std::is_pointer_v<From> && std::is_pointer_v<To>;
    } else {
      return kSize<From> == kSize<To> && std::is_class_v<From> == std::is_class_v<To> &&
             std::is_const_v<From> == std::is_const_v<To>;
    }
  } else {
    constexpr bool ours = std::is_integral_v<Ours> || std::is_enum_v<Ours>;
    constexpr bool theirs = std::is_integral_v<Theirs> || std::is_enum_v<Theirs>;
    return ours && theirs && sizeof(Ours) == sizeof(Theirs);
  }
}

template <class Ours, class Theirs>
struct SameFunction;
template <class OurReturn, class... Ours, class TheirReturn, class... Theirs>
struct SameFunction<OurReturn(Ours...), TheirReturn(Theirs...)> {
  static constexpr bool Get() {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
      return false;
    } else {
      return SameParameter<OurReturn, TheirReturn>() && (SameParameter<Ours, Theirs>() && ...);
    }
  }
};
"""


def header_directory():
    given = os.environ.get("GPUASSAY_TEST_NVML_HEADER_DIR")
    if given:
        found = [pathlib.Path(given) / "nvml.h"]
    else:
        packages = pathlib.Path(sysconfig.get_paths()["purelib"])
        found = sorted(packages.glob("nvidia/*/include/nvml.h"))
    found = [path for path in found if path.exists()]
    if not found:
        reason = "NVIDIA's nvml.h is not here: pip install nvidia-nvml-dev"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found[-1].parent


def program(abi=None, functions=None, sim_functions=None):
    """A source text that compiles only when ours are NVIDIA's. The arguments replace our files."""
    abi = abi or ABI.read_text()
    functions = functions or FUNCTIONS.read_text()
    sim_functions = sim_functions or SIM_FUNCTIONS.read_text()
    more = ABI_MORE.read_text().replace('#include "sources/nvml/nvml_abi.h"', "")
    ours = declarations.read(abi + more)
    constants = [name for name in ours.constants if name not in OUR_CONSTANTS]
    sim = sim_functions.replace('#include "sources/nvml/nvml_functions.def"', "")
    called = declarations.functions(functions, "NVML_FUNCTION")
    called += declarations.functions(sim, "SIM_FUNCTION")
    assert len(ours.members) > 30 and len(constants) > 150 and len(called) > 130
    lines = ["#include <cstddef>", "#include <cstdint>", "#include <type_traits>"]
    lines += ["namespace ours {", abi.replace("#pragma once", ""), more.replace("#pragma once", "")]
    lines += ["namespace functions {"]
    as_type = "(name, introduced, parameters) using name = nvmlReturn_t parameters;"
    lines += [f"#define NVML_FUNCTION{as_type}", functions, f"#define SIM_FUNCTION{as_type}"]
    lines += ["#define SIM_UNSUPPORTED(name, introduced)"]
    lines += [sim.replace("#define NVML_FUNCTION", "//")]
    lines += ["}"]
    # The header's constants are macros, so ours are kept under other names before it comes.
    lines += [
        f"constexpr auto value_of_{name} = static_cast<long long>({name});" for name in constants
    ]
    lines += [
        f"constexpr auto version_of_{name}_{number} = NVML_STRUCT_VERSION_OF({name}, {number}U);"
        for name, number in VERSIONS
    ]
    lines += [f"using function_{name} = functions::{name};" for name in called]
    lines += ["}", "#define NVML_NO_UNVERSIONED_FUNC_DEFS"]
    lines += ["namespace theirs {", "#include <nvml.h>", COMPARE_SIGNATURES]
    for name, members in ours.members.items():
        differing = SIZES_DIFFER.get(name, set())
        if not differing:
            lines.append(f'static_assert(sizeof(ours::{name}) == sizeof({name}), "{name}: size");')
        for member in members:
            lines.append(
                f"static_assert(offsetof(ours::{name}, {member}) == offsetof({name}, {member}), "
                f'"{name}.{member}: place");'
            )
            if member not in differing:
                lines.append(
                    f"static_assert(sizeof(static_cast<ours::{name}*>(nullptr)->{member}) == "
                    f'sizeof(static_cast<{name}*>(nullptr)->{member}), "{name}.{member}: size");'
                )
    for name in constants:
        lines.append(
            f"static_assert(ours::value_of_{name} == "
            f'static_cast<long long>({HEADER_NAMES.get(name, name)}), "{name}: value");'
        )
    for (name, number), macro in VERSIONS.items():
        word = f"ours::version_of_{name}_{number}"
        lines.append(f'static_assert({word} == {macro}, "{macro}: word");')
    for name in called:
        if name in STRUCTURES_DIFFER:
            continue
        lines.append(
            f"static_assert(SameFunction<ours::function_{name}, decltype({name})>::Get(), "
            f'"{name}: parameters");'
        )
    lines += ["}", ""]
    return "\n".join(lines)


def compile_errors(source):
    compiler = os.environ.get("CXX", "g++")
    done = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", "-w", f"-I{header_directory()}", "-xc++", "-"],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    return [line for line in done.stderr.splitlines() if "error:" in line]


def test_our_declarations_are_nvidias():
    assert compile_errors(program()) == []


def changed(path, old, new):
    text = path.read_text()
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("kind", "path", "old", "new", "said"),
    [
        (
            "abi",
            ABI,
            "  unsigned long long reserved;\n  unsigned long long free;",
            "  unsigned long long free;\n  unsigned long long reserved;",
            "nvmlMemory_v2_t.free: place",
        ),
        ("abi", ABI, "char busIdLegacy[16]", "char busIdLegacy[32]", "nvmlPciInfo_t: size"),
        ("abi", ABI, "unsigned int uiVal;", "unsigned long uiVal;", "nvmlValue_t.uiVal: size"),
        (
            "abi",
            ABI,
            "NVML_FI_DEV_POWER_AVERAGE = 185",
            "NVML_FI_DEV_POWER_AVERAGE = 184",
            "NVML_FI_DEV_POWER_AVERAGE: value",
        ),
        (
            "functions",
            FUNCTIONS,
            "nvmlDeviceGetMinorNumber, 0, (nvmlDevice_t device, unsigned int* minor)",
            "nvmlDeviceGetMinorNumber, 0, (nvmlDevice_t device, unsigned long* minor)",
            "nvmlDeviceGetMinorNumber: parameters",
        ),
        (
            "sim_functions",
            SIM_FUNCTIONS,
            "(nvmlDevice_t device, unsigned int fan, unsigned int* percent)",
            "(nvmlDevice_t device, unsigned int* percent)",
            "nvmlDeviceGetFanSpeed_v2: parameters",
        ),
    ],
)
def test_a_wrong_declaration_is_found(kind, path, old, new, said):
    errors = compile_errors(program(**{kind: changed(path, old, new)}))
    assert any(said in error for error in errors), errors
