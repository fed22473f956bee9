"""Rules of tools/tidy.py about C++ and Python files. A rule yields (path, line, message)."""
import ast
import dataclasses
import re

COLUMNS_MAX = {".py": 120}  # 100 elsewhere
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600

# A folder may include itself and the folders named here; data flows from the top to the bottom.
# "sources" itself is the interface source.h.
LAYERS = {
    "src/base": [],
    "src/model": ["src/base"],
    "src/counters": ["src/base", "src/model"],
    "src/sources": ["src/base", "src/model"],
    "src/sources/nvml": ["src/base", "src/model", "src/sources"],
    "sim/models": ["src/base"],
    "sim/scenario": ["src/base", "sim/models"],
    "sim/engine": ["src/base", "sim/models", "sim/scenario"],
    "sim/driver": ["src/base", "sim/models", "sim/scenario", "sim/engine"],
    "src/sources/simulator": ["src/base", "src/model", "src/sources", "src/sources/nvml",
                              "sim/scenario", "sim/engine", "sim/driver"],
    "src/sources/replay": ["src/base", "src/model", "src/sources"],
    "src/attribution/join": ["src/base", "src/model", "src/attribution/node",
                             "src/attribution/kubernetes", "src/attribution/split",
                             "src/progress"],
    "src/attribution/node": ["src/base", "src/model"],
    "src/attribution/kubernetes": ["src/base", "src/model"],
    "src/attribution/split": ["src/base", "src/model", "src/counters"],
    "src/progress": ["src/base", "src/model"],
    "src/views": ["src/base", "src/model"],
    "sim/world": ["src/base", "sim/models", "sim/scenario", "sim/engine"],
    "sim/device_plugin": ["src/base", "sim/models", "sim/scenario", "sim/engine"],
    "src/exposition": ["src/base", "src/model", "src/counters"],
    "src/web": ["src/base", "src/model", "src/counters", "src/views", "src/exposition"],
    "src/agent": ["src/base", "src/model", "src/counters", "src/sources", "src/sources/nvml",
                  "src/sources/simulator", "src/sources/replay", "src/attribution/join",
                  "src/attribution/kubernetes", "src/attribution/split", "src/progress",
                  "src/exposition", "src/web", "sim/scenario", "sim/world"],
    "src/cli": None,  # on top: may include everything
    "fuzz": None,
    "bench": None,
    "tests": None,
}
# The simulated driver exports the interface that the client declares, and shares nothing else.
LAYER_FILES = {
    "sim/driver": ["sources/nvml/nvml_abi.h", "sources/nvml/nvml_functions.def"],
    "sim/engine": ["sources/nvml/nvml_abi.h"],
}
# What a folder's tests may include besides.
TEST_LAYERS = {
    "src/exposition": ["src/attribution/split"],
    "src/sources/nvml": ["sim/models", "sim/scenario", "sim/engine", "sim/driver"],
    "sim/world": ["src/model", "src/attribution/node", "src/attribution/kubernetes"],
}
HEAVY_HEADERS = ["nlohmann/json.hpp", "CLI/CLI.hpp", "yaml-cpp/yaml.h"]


@dataclasses.dataclass
class Rule:
    name: str
    function: object
    bad: list  # trees that must be caught
    good: list  # trees that must not


def suffix(path):
    return path[path.rfind("."):] if "." in path else ""


def is_cpp(path):
    return suffix(path) in (".h", ".cc", ".c") and path.split("/")[0] in (
        "src", "sim", "fuzz", "bench", "tests")


def is_test(path):
    return path.endswith("_test.cc") or path.startswith("tests/")


def folder_of(path):
    return path.rsplit("/", 1)[0] if "/" in path else ""


def code_only(line):
    """The line without its comment and without the content of its strings."""
    line = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)
    return re.sub(r"//.*", "", line)


def layer_of(path):
    folder = folder_of(path)
    while folder and folder not in LAYERS:
        folder = folder_of(folder)
    return folder


def check_layers(tree):
    """A folder includes only the folders above it."""
    for path, text in tree.items():
        if not is_cpp(path):
            continue
        layer = layer_of(path)
        if not layer:
            yield path, 1, "unknown folder; give it a place in LAYERS (tools/tidy_code.py)"
            continue
        if LAYERS[layer] is None:
            continue
        allowed = [layer] + LAYERS[layer] + (TEST_LAYERS.get(layer, []) if is_test(path) else [])
        for number, line in enumerate(text.splitlines(), 1):
            match = re.match(r'#include "([^"]+/[^"/]+)"', line)
            if not match or match[1] in LAYER_FILES.get(layer, []):
                continue
            target = match[1] if match[1].startswith("sim/") else "src/" + match[1]
            if folder_of(target) not in allowed:
                yield path, number, (f"{layer} may not include {match[1]}; it may include "
                                     f"{', '.join(allowed[1:]) or 'nothing but itself'}")


def check_headers(tree):
    """A header starts with a comment, has #pragma once and no heavy library."""
    for path, text in tree.items():
        if not is_cpp(path) or suffix(path) != ".h":
            continue
        if not text.startswith("// "):
            yield path, 1, "a header starts with a comment that says what it is for"
        if "\n#pragma once\n" not in text:
            yield path, 1, "no include guard; write #pragma once after the first comment"
        for number, line in enumerate(text.splitlines(), 1):
            if any(heavy in line for heavy in HEAVY_HEADERS):
                yield path, number, "too heavy for a header; include it in the .cc file only"
            if re.match(r"\s*using namespace\b", line):
                yield path, number, "using namespace in a header; write the names out"


@dataclasses.dataclass
class Ban:
    pattern: str
    instead: str
    allowed: tuple = ()  # path prefixes
    tests: bool = False  # applies to tests too
    keep_strings: bool = False
    folders: tuple = ("src/", "sim/")


BANS = [
    Ban(r"\bstd::endl\b", "'\\n'", tests=True),
    Ban(r"#include <(format|print)>", "fmt/format.h (g++ 12 has neither)", tests=True),
    Ban(r"_clock::now\(|\bgettimeofday\(|\bclock_gettime\(|\bstd::time\(",
        "a Clock argument (base/clock.h)", ("src/base/", "src/agent/", "src/cli/")),
    Ban(r"\bgetenv\(", "an option set by agent/ or cli/",
        ("src/base/", "src/agent/", "src/cli/", "sim/driver/library.cc")),
    Ban(r"\bstd::(cout|cerr)\b|(?<![\w:])(std::)?f?printf\(|\bputs\(|\bfmt::print\(",
        "Log() of base/log.h, or return the text", ("src/cli/", "src/agent/", "src/base/")),
    # A private constructor needs `unique_ptr<T>(new T)`.
    Ban(r"^(?!.*_ptr<).*\bnew\s+[A-Za-z_:]+\s*[({;\[]|\bdelete(\[\])?\s+[A-Za-z_]",
        "std::make_unique or a value"),
    Ban(r"\bmalloc\(|\bfree\(\w", "std::vector or std::string"),
    # yaml_tree.cc throws to leave a recursion and catches it itself.
    Ban(r"\bthrow\b", "Result<T> and Fail() of base/result.h", ("sim/scenario/yaml_tree.cc",)),
    Ban(r"\.value_or\((0|0\.0|0\.|\{\}|-1)[uUlLfF]*\)",
        "a Reading with its reason: unknown is never zero",
        ("sim/", "src/base/", "src/sources/replay/")),
    Ban(r'"/(proc|sys|etc|dev|var|usr|tmp|run)\b', "a path option, or RootFs::Read",
        # What a made-up /proc says is no path that is opened.
        ("src/base/", "src/agent/", "src/cli/", "sim/world/"), keep_strings=True),
    Ban(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b", "do it, or file an issue", tests=True,
        keep_strings=True,
        folders=("src/", "sim/", "fuzz/", "bench/", "tests/", "tools/", "cmake/")),
]


def check_bans(tree):
    """Things that have a better replacement here."""
    for path, text in tree.items():
        for ban in BANS:
            if not path.startswith(ban.folders) or path.startswith(ban.allowed):
                continue
            if suffix(path) not in (".h", ".cc", ".c", ".py", ".def", ".cmake"):
                continue
            if is_test(path) and not ban.tests:
                continue
            for number, line in enumerate(text.splitlines(), 1):
                match = re.search(ban.pattern, line if ban.keep_strings else code_only(line))
                if not match:
                    continue
                if ban.keep_strings and not ban.tests and is_root_fs_use(line):
                    continue
                yield path, number, f"'{match[0].strip()}' is banned; use {ban.instead}"


def is_root_fs_use(line):
    """Paths inside an injected root are absolute by design, and comments may name any path."""
    return bool(re.search(r"\b(Read|Resolve)\(", line)) or line.lstrip().startswith("//")


def check_macros(tree):
    """Macros exist only to read a .def list."""
    allowed = {"NVML_STRUCT_VERSION_OF"}
    for path, text in tree.items():
        if not is_cpp(path) or not path.startswith(("src/", "sim/")):
            continue
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            match = re.match(r"#define (\w+)", line)
            if not match or match[1] in allowed:
                continue
            following = lines[number:number + 12]
            if not any(re.match(r'#include "[^"]+\.def"', line) for line in following):
                yield path, number, f"macro {match[1]}; write a constant or a function"


def check_sizes(tree):
    """Lines, functions and files stay short."""
    for path, text in tree.items():
        if not (is_cpp(path) or suffix(path) == ".py" or path == "run"):
            continue
        lines = text.splitlines()
        if len(lines) > FILE_LINES_MAX:
            yield path, FILE_LINES_MAX, f"{len(lines)} lines; split it (at most {FILE_LINES_MAX})"
        columns_max = COLUMNS_MAX.get(suffix(path), 100)
        for number, line in enumerate(without_raw_strings(lines), 1):
            if len(line) > columns_max:
                yield path, number, f"{len(line)} columns; break it (at most {columns_max})"
        for start, length in functions(path, text):
            if length > FUNCTION_LINES_MAX:
                yield path, start, (f"function of {length} lines; move a part into a function of "
                                    f"its own (at most {FUNCTION_LINES_MAX})")


def without_raw_strings(lines):
    """The lines, those inside R"(...)" as empty ones: text for people is as wide as it must be."""
    inside = False
    for line in lines:
        yield "" if inside else line
        if not inside and re.search(r'R"\w*\((?!.*\)\w*")', line):
            inside = True
        elif inside and re.search(r'\)\w*"', line):
            inside = False


def functions(path, text):
    """(first line, length) of each function."""
    if suffix(path) == ".py":
        return [(node.lineno, node.end_lineno - node.lineno + 1)
                for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return shell_functions(text) if path == "run" else cpp_functions(text)


def shell_functions(text):
    return blocks(text.splitlines(), r"\w+\(\) [{(]", 0)


def cpp_functions(text):
    """In clang-format's layout a function ends at a lone brace in the column where it started."""
    lines = text.splitlines()
    no_function = r"(?!namespace\b|class\b|struct\b|enum\b|union\b|extern\b)"
    return blocks(lines, no_function + "[A-Za-z_~]", 0) + \
        blocks(lines, "  " + no_function + "[A-Za-z_~]", 2)


def blocks(lines, start_pattern, indent):
    found = []
    start = None
    for number, line in enumerate(lines, 1):
        if line == " " * indent + "}":
            if start:
                found.append((start, number - start + 1))
            start = None
        elif re.match(start_pattern, line) and not line.endswith(":"):
            start = number
    return found


def check_tests_assert(tree):
    """A test asserts something and its name is a sentence."""
    for path, text in tree.items():
        if not path.endswith("_test.cc"):
            continue
        for match in re.finditer(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)(.*?)^}", text, re.M | re.S):
            line = text.count("\n", 0, match.start()) + 1
            if not re.search(r"EXPECT|ASSERT|Expect|FAIL\(", match[3]):
                yield path, line, f"{match[2]} asserts nothing; compare with a literal value"
            if len(re.findall(r"[A-Z0-9]+", match[2])) < 2:
                yield path, line, f"'{match[2]}' is no sentence; say what holds (SilentWhenIdle)"


LONG_FUNCTION = "void F() {\n" + "  G();\n" * 70 + "}\n"
GOOD_HEADER = "// What it is for.\n#pragma once\nint F();\n"
RULES = [
    Rule("layers", check_layers,
         bad=[{"src/model/a.cc": '#include "agent/worker.h"\n'},
              {"src/sources/nvml/a.cc": '#include "sim/driver/driver.h"\n'},
              {"sim/driver/a.cc": '#include "sources/nvml/nvml_source.h"\n'},
              {"sim/engine/a.cc": '#include "model/snapshot.h"\n'},
              {"src/new_folder/a.cc": "int a;\n"}],
         good=[{"src/model/a.cc": '#include "base/clock.h"\n#include <vector>\n'},
               {"src/sources/nvml/a_test.cc": '#include "sim/driver/driver.h"\n'},
               {"sim/driver/a.cc": '#include "sources/nvml/nvml_abi.h"\n'}]),
    Rule("headers", check_headers,
         bad=[{"src/base/a.h": "#pragma once\n"}, {"src/base/a.h": "// Comment.\nint F();\n"},
              {"src/base/a.h": GOOD_HEADER + "using namespace std;\n"},
              {"src/base/a.h": GOOD_HEADER + "#include <nlohmann/json.hpp>\n"}],
         good=[{"src/base/a.h": GOOD_HEADER}]),
    Rule("bans", check_bans,
         bad=[{"src/model/a.cc": line + "\n"} for line in (
             "out << std::endl;", "#include <format>", "auto t = std::chrono::steady_clock::now();",
             'getenv("HOME");', 'std::cout << "x";', 'printf("x");', 'fmt::print("x");',
             "auto* a = new Thing();", "delete thing;", "throw Broken();", "x.value_or(0)",
             "x.value_or(0.0)", 'Open("/proc/stat");', "// TO" "DO: later", "malloc(4);")],
         good=[{"src/model/a.cc": line + "\n"} for line in (
             "A(const A&) = delete;", '// "/proc" is a file system', 'fs.Read("/proc/stat");',
             "snprintf(buffer, 4, x);", 'Log("printf( is banned");', "int renew = 1;")]
         + [{"src/cli/a.cc": 'getenv("HOME"); fmt::print("x");\n'},
            {"src/model/a_test.cc": "x.value_or(0);\n"}]),
    Rule("macros", check_macros,
         bad=[{"src/model/a.cc": "#define LIMIT 3\nint a = LIMIT;\n"}],
         good=[{"src/model/a.cc": '#define A_METRIC(x, ...) x;\n#include "model/metrics.def"\n'}]),
    Rule("sizes", check_sizes,
         bad=[{"src/base/a.cc": LONG_FUNCTION}, {"src/base/a.cc": "int a;\n" * 601},
              {"src/base/a.cc": "// " + "x" * 98 + "\n"},
              {"src/base/a.cc": 'a = R"(\nx)";\n// ' + "x" * 98 + "\n"},
              {"tools/a.py": "def f():\n" + "    g()\n" * 70},
              {"src/base/a.cc": "class A {\n  void F() {\n" + "    G();\n" * 70 + "  }\n};\n"}],
         good=[{"src/base/a.cc": LONG_FUNCTION.replace("  G();\n", "", 2)},
               {"src/base/a.cc": "int kTable[] = {\n" + "    1,\n" * 80 + "};\n"},
               {"src/base/a.cc": 'a = R"(\n' + "x" * 110 + '\n)";\n'}]),
    Rule("assertions", check_tests_assert,
         bad=[{"src/base/a_test.cc": "TEST(A, ReadsNothing) {\n  F();\n}\n"},
              {"src/base/a_test.cc": "TEST(A, Works) {\n  EXPECT_EQ(F(), 1);\n}\n"}],
         good=[{"src/base/a_test.cc": "TEST(A, GivesOne) {\n  EXPECT_EQ(F(), 1);\n}\n"}]),
]
