"""The numbers of build/bench/agent.json as the tables of docs/performance.md."""
import re

import scrapes

START = "<!-- numbers: written by ./run bench agent --write-docs -->"
END = "<!-- end of numbers -->"


def ms(seconds):
    return f"{seconds * 1e3:.2f} ms"


def mb(size):
    return f"{size / 1e6:.1f} MB"


def spread(ratio):
    return f"{ratio['median']:.2f} ({ratio['min']:.2f}–{ratio['max']:.2f})"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def case_rows(case):
    bare, scrape, nvitop = (case["against_bare_loop"], case["scrape"],
                            case["against_nvitop_exporter"])
    cpu, memory = bare["cpu_seconds_per_cycle"], bare["memory"]
    yield ("driver calls per cycle, agent / bare loop",
           f"{case['calls']['agent_total']:.0f} / {case['calls']['bare_loop_total']:.0f}"
           if case["calls"] else "not counted", "the same calls")
    yield ("CPU per cycle, agent", f"{ms(cpu['agent'])} (serving {ms(cpu['serving'])}, worker "
           f"{ms(cpu['worker'])})", "")
    yield "CPU per cycle, bare loop", ms(cpu["bare_loop"]), ""
    yield "agent ÷ bare loop", spread(bare["agent_over_bare_loop"]), "≤ 1.5"
    yield "resident memory of both processes", mb(memory["rss_bytes"]), "≤ 40 MB"
    yield "the same, shared pages divided (PSS)", mb(memory["pss_bytes"]), ""
    for kind, name in scrapes.KINDS.items():
        times = scrape[kind]
        aim = "≤ 50 ms" if kind == "while_the_driver_hangs" else "p99 ≤ 5 ms"
        yield (f"one scrape, {name}: p50, p99, slowest", f"{ms(times['p50_seconds'])}, "
               f"{ms(times['p99_seconds'])}, {ms(times['max_seconds'])}", aim)
    yield "size of /metrics", f"{scrape['metrics_bytes'] / 1e3:.0f} kB", ""
    if nvitop:
        cpu = nvitop["cpu_seconds_per_cycle"]
        yield "CPU per cycle, scraped each second, agent", ms(cpu["agent"]), ""
        yield "the same, nvitop-exporter", ms(cpu["nvitop_exporter"]), ""
        ratio = nvitop["agent_over_nvitop_exporter"]["median"]
        yield "agent ÷ nvitop-exporter", f"1/{1 / ratio:.0f}", "≤ 1/20"


def attribution_rows(rows):
    for row in rows:
        cpu = row["cpu_seconds_per_cycle"]
        yield (row["processes"], ms(cpu["with"]), ms(cpu["without"]),
               spread(row["with_over_without"]), "≤ 1.20" if row["processes"] == 64 else "")


def growth_rows(rows):
    for row in rows:
        cpu = row["cpu_seconds_per_cycle"]
        yield (row["gpus"], row["processes"], ms(cpu["agent"]), ms(cpu["bare_loop"]),
               f"{row['agent_over_bare_loop']:.2f}", mb(row["memory"]["rss_bytes"]),
               f"{row['metrics_bytes'] / 1e3:.0f} kB")


def markdown(result):
    machine = result["machine"]
    lines = [f"Measured on {machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}; "
             f"medians of {result['runs']} runs of {result['seconds_per_run']:g} s. Load average "
             f"when it began: {result['load_average']:.1f}."]
    for name, case in result["cases"].items():
        lines += ["", f"### {name}", ""]
        lines += table(("what", "measured", "aim"), case_rows(case))
    if result.get("attribution"):
        lines += ["", "### What attribution adds", ""]
        lines += table(("processes", "CPU per cycle with attribution", "without", "ratio", "aim"),
                       attribution_rows(result["attribution"]))
    if result.get("growth"):
        lines += ["", "### How it grows", ""]
        lines += table(("GPUs", "processes", "CPU per cycle, agent", "bare loop", "ratio",
                        "resident memory", "/metrics"), growth_rows(result["growth"]))
    return "\n".join(lines) + "\n"


def write_docs(path, result):
    text = path.read_text(encoding="utf-8")
    block = f"{START}\n{markdown(result)}{END}"
    path.write_text(re.sub(re.escape(START) + ".*?" + re.escape(END), lambda _: block, text,
                           flags=re.S), encoding="utf-8")
