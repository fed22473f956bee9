"""Rules of tools/tidy.py about the catalogue, the tests, the scenarios and the documentation."""
import re

from tidy_code import Rule, folder_of, is_test, suffix

# Source files with a header of their own that no test beside them includes, each with its reason.
TESTED_ELSEWHERE = {
    "src/base/check.cc": "ends the process",
    "src/base/log.cc": "a write to standard error; tests/agent reads it",
    "src/attribution/split/device_share.cc": "ledger_test.cc tests it through the ledger",
    "src/agent/agent.cc": "wiring; tests/agent runs it as a program",
    "src/agent/worker.cc": "a process; tests/agent and supervisor_test.cc run it",
    "sim/scenario/reader.cc": "errors_test.cc tests it through whole files",
    "sim/engine/conditions.cc": "faults_test.cc, through the engine",
    "sim/engine/device.cc": "engine_test.cc, through the engine",
    "sim/engine/hash.cc": "engine_test.cc: the same story twice",
    "sim/engine/load.cc": "engine_test.cc: the worked examples",
    "sim/engine/physics.cc": "engine_test.cc: power, heat and clocks",
    "sim/engine/timeline.cc": "engine_test.cc: phases",
    "sim/world/cgroup_text.cc": "root_test.cc and owners_test.cc, through a whole root",
    "sim/world/kube_json.cc": "servers_test.cc, through the product's parsers",
    "sim/world/kubelet.cc": "servers_test.cc, through the product's client",
    "sim/world/names.cc": "every test of this folder goes through it",
    "sim/world/proc_text.cc": "root_test.cc, byte for byte",
    "sim/world/root_directory.cc": "root_test.cc: what comes and goes",
    "sim/world/world.cc": "every test of this folder goes through it",
    "sim/driver/core.cc": "every test of this folder goes through it",
    "sim/driver/symbols.cc": "changes a loaded library; tests/clients looks with dlsym",
}

UNIT_SUFFIXES = {
    "kRatio": "_ratio",
    "kBytes": "_bytes",
    "kBytesPerSecond": "_bytes_per_second",
    "kWatts": "_watts",
    "kJoules": "_joules",
    "kCelsius": "_celsius",
    "kHertz": "_hertz",
    "kSeconds": "_seconds",
    "kTimestamp": "_timestamp_seconds",
    "kState": "",
    "kCode": "",
    "kCount": "",
}
SCOPE_PREFIXES = {
    "GPU": "gpuassay_gpu_",
    "LINK": "gpuassay_nvlink_",
    "MIG": "gpuassay_mig_",
    "PROCESS": "gpuassay_process_",
    "SOURCE": "gpuassay_source_",
    "OWNER": "gpuassay_owner_",
}
METRIC = re.compile(
    r'^(\w+)_METRIC\((\w+), "(\w+)", "((?:[^"\\]|\\.)*)", (k\w+), (k\w+), (k\w+), (k\w+), '
    r'"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"\)$', re.M)


def check_catalogue(tree):
    """metrics.def: names carry their unit, counters end in _total, help comes once."""
    path = "src/model/metrics.def"
    text = tree.get(path, "")
    entries = list(METRIC.finditer(text))
    written = len(re.findall(r"^\w+_METRIC\(", text, re.M))
    if len(entries) != written:
        yield path, 1, f"{written} lines, {len(entries)} can be read; see the first comment"
    seen = {"fields": set(), "series": set(), "names": {}, "last": ""}
    for entry in entries:
        line = text.count("\n", 0, entry.start()) + 1
        for message in check_metric(entry.groups(), seen):
            yield path, line, message


def check_metric(metric, seen):
    scope, field, name, labels, family, kind, unit, pace, _source, text = metric
    if (scope, field) in seen["fields"]:
        yield f"field {field} is there twice; choose another name"
    if (name, labels) in seen["series"]:
        yield f"{name}{{{labels}}} is there twice; tell them apart by a label"
    seen["fields"].add((scope, field))
    seen["series"].add((name, labels))
    yield from check_metric_name(scope, name, kind, unit)
    if pace not in ("kFast", "kSlow", "kDerived"):
        yield f"pace {pace}; write kFast, kSlow or kDerived"
    if labels and not re.fullmatch(r'(\w+=\\"[^"\\]*\\",?)+', labels):
        yield 'labels that cannot be read; write key=\\"value\\"'
    if name not in seen["names"]:
        seen["names"][name] = (family, kind, unit)
        if not text.endswith("."):
            yield "the first line of a name has the help: one sentence with a full stop"
    else:
        if text:
            yield "help is given once, on the first line of a name; write \"\" here"
        if seen["last"] != name:
            yield f"the lines of {name} stand apart; put them together"
        if seen["names"][name] != (family, kind, unit):
            yield f"the lines of {name} differ in family, kind or unit"
    seen["last"] = name


def check_metric_name(scope, name, kind, unit):
    prefix = SCOPE_PREFIXES.get(scope, "?")
    if not name.startswith(prefix):
        yield f"{name} does not start with {prefix}"
    if kind not in ("kCounter", "kGauge"):
        yield f"kind {kind}; write kCounter or kGauge"
    if (kind == "kCounter") != name.endswith("_total"):
        yield f"{name}: counters end in _total, gauges do not"
    bare = name.removesuffix("_total")
    expected = UNIT_SUFFIXES.get(unit)
    if expected is None:
        yield f"unit {unit} is not a base unit; {', '.join(UNIT_SUFFIXES)}"
    elif not bare.endswith(expected):
        yield f"{name}: unit {unit} wants the ending {expected}"
    elif not expected and bare.endswith(tuple(end for end in UNIT_SUFFIXES.values() if end)):
        yield f"{name} ends like a unit, but its unit is {unit}"


def check_tests_exist(tree):
    """Every source file has a test beside it: of its name, or one that includes its header."""
    for path in tree:
        if suffix(path) != ".cc" or is_test(path) or not path.startswith(("src/", "sim/")):
            continue
        if path.endswith("/main.cc") or path == "sim/driver/library.cc" or path in TESTED_ELSEWHERE:
            continue
        folder, stem = folder_of(path), path.rsplit("/", 1)[1].removesuffix(".cc")
        tests = [name for name in tree if folder_of(name) == folder and is_test(name)]
        if f"{folder}/{stem}.h" in tree:
            header = f'#include "{folder.removeprefix("src/")}/{stem}.h"'
            tests = [name for name in tests
                     if name == f"{folder}/{stem}_test.cc" or header in tree[name]]
        if not tests:
            yield path, 1, (f"no {stem}_test.cc and no test here includes {stem}.h; write one, or "
                            "give the reason in TESTED_ELSEWHERE (tools/tidy_project.py)")
    for path in TESTED_ELSEWHERE:
        if "src/base/result.h" in tree and path not in tree:
            yield path, 1, "is in TESTED_ELSEWHERE but not in the repository; remove the line"


def check_tests_run(tree):
    """No test lies outside the build and outside ./run test."""
    modules = set(re.findall(r"DIRECTORY ([\w/]+)", tree.get("CMakeLists.txt", "")))
    script = tree.get("run", "")
    for path in tree:
        if path.endswith("_test.cc") and folder_of(path) not in modules:
            yield path, 1, "is in no gpuassay_module; add the folder to CMakeLists.txt"
        match = re.match(r"(tests/\w+)/(?:.*/)?test_\w+\.py$", path)
        if match and match[1] not in script:
            yield path, 1, f"{match[1]} is not run by ./run test; add a stage"


def check_scenarios(tree):
    """Every scenario is used: by a test, a benchmark, a command or the documentation."""
    for path in tree:
        match = re.match(r"sim/scenarios/(?:.*/)?([\w.-]+)\.yaml$", path)
        if not match:
            continue
        users = (text for other, text in tree.items()
                 if other != path and not other.startswith("sim/scenarios/"))
        if not any(re.search(rf"\b{re.escape(match[1])}\b", text) for text in users):
            yield path, 1, "nothing uses this scenario; write the test it is for"


def check_fuzz_seeds(tree):
    """Every fuzz target has seeds."""
    for path in tree:
        match = re.match(r"fuzz/(\w+)_fuzz\.cc$", path)
        if not match or match[1].startswith("scenario"):
            continue
        if not any(other.startswith(f"fuzz/seeds/{match[1]}/") for other in tree):
            yield path, 1, f"no seeds; put small valid inputs into fuzz/seeds/{match[1]}/"


PATH_IN_TEXT = re.compile(r"`((?:src|sim|tests|docs|tools|fuzz|bench|cmake)/[\w./-]+)`")


def heading_anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors_of(text):
    return {heading_anchor(match[1]) for match in re.finditer(r"^#+ (.*)$", text, re.M)}


def resolve(folder, target):
    parts = [part for part in folder.split("/") if part]
    for part in target.split("/"):
        if part == "..":
            if parts:
                parts.pop()
        elif part not in (".", ""):
            parts.append(part)
    return "/".join(parts)


def check_links(tree):
    """Links and paths in the documentation lead somewhere."""
    folders = {name[:place] for name in tree for place, char in enumerate(name) if char == "/"}
    for path, text in tree.items():
        if suffix(path) != ".md":
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                yield from check_link(tree, folders, path, number, target)
            for target in PATH_IN_TEXT.findall(line.replace("NAME", "*")):
                if target.rstrip("/") not in tree and target.rstrip("/") not in folders:
                    yield path, number, f"{target} does not exist"


def check_link(tree, folders, path, number, target):
    if re.match(r"[a-z]+:", target):
        return
    name, _, anchor = target.partition("#")
    file = resolve(folder_of(path), name) if name else path
    if file not in tree and file not in folders:
        yield path, number, f"link to {target}, which does not exist"
    elif anchor and file in tree and anchor not in anchors_of(tree[file]):
        yield path, number, f"link to {target}: there is no such heading"


def check_docs_listed(tree):
    """docs/README.md lists every document."""
    index = tree.get("docs/README.md", "")
    for path in tree:
        if re.match(r"docs/.+\.md$", path) and path != "docs/README.md":
            if f"({path.removeprefix('docs/')})" not in index:
                yield path, 1, "is not linked from docs/README.md; add a line there"


def check_words(tree):
    """No package registry by host, no path of one machine."""
    hosts = re.compile(r"//[\w.-]*\b(debian|npmjs|pypi|pythonhosted|golang|crates|maven)\."
                       r"(org|com|io|dev)")
    machine = re.compile(r"/wor[k]/|/roo[t]/\.")
    for path, text in tree.items():
        for number, line in enumerate(text.splitlines(), 1):
            if hosts.search(line):
                yield path, number, "names a registry's host; use the machine's configuration"
            if machine.search(line):
                yield path, number, "a path of one machine; take it as an argument"


METRIC_HEAD = ('GPU_METRIC(a_ratio, "gpuassay_gpu_a_ratio", "", kCompute, kGauge, kRatio, kFast, '
               '"x",\n')
GOOD_METRIC = METRIC_HEAD + '  "What it is.")\n'
LABELLED = ('GPU_METRIC({0}, "gpuassay_gpu_b", "k=\\"{0}\\"", kCompute, kGauge, kState, kFast, '
            '"x", "{1}")\n')


def catalogue(text):
    return {"src/model/metrics.def": text}


RULES = [
    Rule("catalogue", check_catalogue,
         bad=[catalogue(text) for text in (
             GOOD_METRIC + GOOD_METRIC,
             METRIC_HEAD + '  "")\n',
             METRIC_HEAD + '  "no full stop")\n',
             GOOD_METRIC.replace("kRatio", "kPercent"),
             GOOD_METRIC.replace("kRatio", "kWatts"),
             GOOD_METRIC.replace("kRatio", "kCode"),
             GOOD_METRIC.replace("kGauge", "kCounter"),
             GOOD_METRIC.replace("kFast", "kOften"),
             GOOD_METRIC.replace("gpuassay_gpu_", "gpu_"),
             LABELLED.format("one", "What.") + LABELLED.format("two", "Again."),
             LABELLED.format("one", "What.") + GOOD_METRIC + LABELLED.format("two", ""),
             "GPU_METRIC(unreadable)\n")],
         good=[catalogue(GOOD_METRIC + LABELLED.format("one", "What.")
                         + LABELLED.format("two", ""))]),
    Rule("tests exist", check_tests_exist,
         bad=[{"src/model/a.cc": ""},
              {"src/model/a.cc": "", "src/model/a.h": "", "src/model/b_test.cc": ""}],
         good=[{"src/model/a.cc": "", "src/model/a_test.cc": ""},
               {"src/model/a.cc": "", "src/model/a.h": "",
                "src/model/b_test.cc": '#include "model/a.h"\n'},
               {"sim/driver/part.cc": "", "sim/driver/driver_test.cc": ""}]),
    Rule("tests run", check_tests_run,
         bad=[{"src/x/a_test.cc": "", "CMakeLists.txt": ""},
              {"tests/new/test_a.py": "", "run": ""}],
         good=[{"src/x/a_test.cc": "", "CMakeLists.txt": "gpuassay_module(x DIRECTORY src/x)"},
               {"tests/new/test_a.py": "", "run": "run_pytest tests/new"}]),
    Rule("scenarios", check_scenarios,
         bad=[{"sim/scenarios/lonely.yaml": "", "README.md": "quiet"}],
         good=[{"sim/scenarios/used.yaml": "", "src/a_test.cc": '"sim/scenarios/used.yaml"'}]),
    Rule("fuzz seeds", check_fuzz_seeds,
         bad=[{"fuzz/http_fuzz.cc": ""}],
         good=[{"fuzz/http_fuzz.cc": "", "fuzz/seeds/http/get": ""},
               {"fuzz/scenario_fuzz.cc": ""}]),
    Rule("links", check_links,
         bad=[{"docs/a.md": "[x](gone.md)"}, {"a.md": "[x](#gone)\n# Here\n"},
              {"a.md": "see `src/gone.h`"}],
         good=[{"docs/a.md": "[x](../b.md#two-words) [y](https://example.org)",
                "b.md": "# Two words\n"},
               {"a.md": "`src/base/`, `src/NAME.h`, [base](src/base)", "src/base/x.h": ""}]),
    Rule("docs listed", check_docs_listed,
         bad=[{"docs/README.md": "", "docs/decisions/0001-a.md": ""}],
         good=[{"docs/README.md": "[A](decisions/0001-a.md)", "docs/decisions/0001-a.md": ""}]),
    Rule("words", check_words,
         bad=[{"run": "curl https:/" "/deb.debian" ".org/x"}, {"a.md": "see /wor" "k/main"}],
         good=[{"run": "apt-get install debian-goodies"}]),
]
