#!/usr/bin/env python3
"""What the agent costs: `./run bench agent`. Writes build/bench/agent.json and prints a summary.

Everything runs on the simulated driver in real time, at one reading per second:
  * CPU time per cycle of the agent (serving process + driver worker) beside a bare loop that makes
    the same driver calls, and beside nvitop-exporter; each runs at the same time as the agent;
  * resident memory of both processes of the agent;
  * time of one scrape, over a connection that stays open and over a new one each time;
  * CPU time per cycle with attribution and without, side by side, on real processes;
  * the same for more GPUs, MIG instances and processes, and how it grows.

CPU time is the kernel's own count for the whole process in nanoseconds (clock_gettime on the
process's CPU clock), so it contains every thread and nothing else.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import calls  # noqa: E402
import growth  # noqa: E402
import programs  # noqa: E402
import report  # noqa: E402
import scrapes  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = {
    "8 GPUs, 64 processes": "bench-8x64.yaml",
    "16 GPUs x 7 MIG instances, 200 processes": "bench-16x7mig-200.yaml",
}
ATTRIBUTION_GPUS = 8
ATTRIBUTION_PROCESSES = (64, 500)
ATTRIBUTION_WARM_UP = 60  # seconds; a process is looked at more often while it is new


def cpu_per_second(groups, seconds):
    """{name: CPU seconds per second} of groups of processes, all over the same time."""
    start = time.monotonic()
    before = {name: programs.cpu_seconds(pids) for name, pids in groups.items()}
    time.sleep(seconds)
    after = {name: programs.cpu_seconds(pids) for name, pids in groups.items()}
    elapsed = time.monotonic() - start
    return {name: (after[name] - before[name]) / elapsed for name in groups}


def median_of(runs, name):
    return statistics.median(run[name] for run in runs)


def ratios(runs, name, other):
    """Ratio within each run, so that both sides saw the same machine; the median of those."""
    values = [run[name] / run[other] for run in runs]
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def measure_against_bare_loop(build, scenario, options):
    with programs.Agent(build, scenario) as agent, programs.BareLoop(build, scenario) as bare:
        time.sleep(options.warm_up)
        groups = {"agent": agent.pids(), "serving": agent.pids()[:1], "worker": agent.pids()[1:],
                  "bare_loop": [bare.pid]}
        runs = [cpu_per_second(groups, options.seconds) for _ in range(options.runs)]
        memory = [programs.memory_bytes(pid) for pid in agent.pids()]
    return {
        "runs": runs,
        "cpu_seconds_per_cycle": {name: median_of(runs, name) for name in runs[0]},
        "agent_over_bare_loop": ratios(runs, "agent", "bare_loop"),
        "memory": {
            "serving": memory[0],
            "worker": memory[1],
            "rss_bytes": sum(part["rss_bytes"] for part in memory),
            "pss_bytes": sum(part["pss_bytes"] for part in memory),
        },
    }


def measure_against_nvitop(build, scenario, options):
    """Both are scraped once a second, as by Prometheus. None without nvitop-exporter."""
    if not programs.nvitop_exporter_path(build):
        return None
    with programs.Agent(build, scenario) as agent, \
            programs.NvitopExporter(build, scenario) as nvitop:
        with scrapes.EverySecond([agent.url + "/metrics", nvitop.url + "/metrics"]):
            time.sleep(options.warm_up)
            groups = {"agent": agent.pids(), "nvitop_exporter": [nvitop.pid]}
            runs = [cpu_per_second(groups, options.seconds) for _ in range(options.runs)]
        sizes = {"agent": len(scrapes.get(agent.url + "/metrics")),
                 "nvitop_exporter": len(scrapes.get(nvitop.url + "/metrics"))}
    return {
        "runs": runs,
        "cpu_seconds_per_cycle": {name: median_of(runs, name) for name in runs[0]},
        "agent_over_nvitop_exporter": ratios(runs, "agent", "nvitop_exporter"),
        "metrics_bytes": sizes,
    }


def measure_attribution(build, options):
    """The agent with attribution and without, at the same time, on processes that exist.

    The simulated driver lists the PIDs of real idle processes, so the agent reads the real /proc.
    No kubelet is asked: it would be once in ten seconds.
    """
    rows = []
    print("\nattribution: processes | agent ms per cycle with, without, ratio", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for count in ATTRIBUTION_PROCESSES:
            with programs.IdleProcesses(count) as pids:
                scenario = growth.write_scenario_of(pathlib.Path(folder), ATTRIBUTION_GPUS, pids)
                with programs.Agent(build, scenario, arguments=["--attribution", "on"]) as on, \
                        programs.Agent(build, scenario, arguments=["--attribution", "off"]) as off:
                    owned = scrapes.get(on.url + "/api/v1/snapshot").count(b'"user"')
                    time.sleep(max(options.warm_up, ATTRIBUTION_WARM_UP))
                    groups = {"with": on.pids(), "without": off.pids()}
                    runs = [cpu_per_second(groups, options.seconds)
                            for _ in range(options.runs)]
            row = {"processes": count, "processes_with_owner": owned, "runs": runs,
                   "cpu_seconds_per_cycle": {name: median_of(runs, name) for name in runs[0]},
                   "with_over_without": ratios(runs, "with", "without")}
            rows.append(row)
            cpu = row["cpu_seconds_per_cycle"]
            print(f"  {count:6} | {cpu['with'] * 1e3:8.3f} {cpu['without'] * 1e3:8.3f} "
                  f"{row['with_over_without']['median']:5.2f}", flush=True)
    return rows


def measure_scrapes(build, scenario, options):
    with programs.Agent(build, scenario) as agent:
        time.sleep(options.warm_up)
        url = agent.url + "/metrics"
        return {"metrics_bytes": len(scrapes.get(url)),
                "same_connection": scrapes.durations(url, options.scrapes, reuse=True),
                "new_connection": scrapes.durations(url, options.scrapes, reuse=False)}


def measure_hanging(build, scenario, options):
    """Scrapes while no driver call returns, until values are too old and a bit beyond."""
    with tempfile.TemporaryDirectory() as folder:
        story = pathlib.Path(folder) / "hanging.yaml"
        story.write_text(scenario.read_text(encoding="utf-8")
                         + "\nfaults: [{kind: driver_hang, at: 5s}]\n", encoding="utf-8")
        with programs.Agent(build, story) as agent:
            programs.wait_until(lambda: not programs.answers(agent.url + "/readyz"), "the hang")
            return scrapes.durations(agent.url + "/metrics", options.scrapes, reuse=False)


def measure_case(name, build, scenario, options):
    print(f"\n{name} ({scenario.name})", flush=True)
    result = {"scenario": scenario.name,
              "calls": calls.compare(build, scenario, options.count_seconds)}
    for line in calls.summary(result["calls"]):
        print(f"  {line}")
    result["against_bare_loop"] = measure_against_bare_loop(build, scenario, options)
    result["scrape"] = measure_scrapes(build, scenario, options)
    result["scrape"]["while_the_driver_hangs"] = measure_hanging(build, scenario, options)
    result["against_nvitop_exporter"] = measure_against_nvitop(build, scenario, options)
    for line in case_summary(result):
        print(f"  {line}", flush=True)
    return result


def case_summary(result):
    bare = result["against_bare_loop"]
    cpu = bare["cpu_seconds_per_cycle"]
    yield (f"CPU per cycle: agent {cpu['agent'] * 1e3:.3f} ms (serving {cpu['serving'] * 1e3:.3f}, "
           f"worker {cpu['worker'] * 1e3:.3f}), bare loop {cpu['bare_loop'] * 1e3:.3f} ms, "
           f"ratio {bare['agent_over_bare_loop']['median']:.2f}")
    memory = bare["memory"]
    yield (f"memory of both processes: RSS {memory['rss_bytes'] / 1e6:.1f} MB, "
           f"PSS {memory['pss_bytes'] / 1e6:.1f} MB")
    for kind in scrapes.KINDS:
        times = result["scrape"][kind]
        yield (f"scrape, {kind.replace('_', ' ')}: p50 {times['p50_seconds'] * 1e3:.2f} ms, "
               f"p99 {times['p99_seconds'] * 1e3:.2f} ms, "
               f"slowest {times['max_seconds'] * 1e3:.2f} ms of {times['count']}, "
               f"{result['scrape']['metrics_bytes']} bytes")
    nvitop = result["against_nvitop_exporter"]
    if nvitop is None:
        yield "nvitop-exporter is not installed: not compared"
        return
    cpu = nvitop["cpu_seconds_per_cycle"]
    yield (f"scraped each second: agent {cpu['agent'] * 1e3:.3f} ms, "
           f"nvitop-exporter {cpu['nvitop_exporter'] * 1e3:.3f} ms per cycle, "
           f"ratio 1/{1 / nvitop['agent_over_nvitop_exporter']['median']:.0f}")


def measure_growth(build, options):
    rows = []
    print("\ngrowth: GPUs processes | agent ms, bare loop ms per cycle, ratio | RSS MB | bytes",
          flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for gpus, processes in growth.POINTS:
            scenario = growth.write_scenario(pathlib.Path(folder), gpus, processes)
            result = measure_against_bare_loop(build, scenario, options)
            with programs.Agent(build, scenario) as agent:
                time.sleep(2)
                size = len(scrapes.get(agent.url + "/metrics"))
            cpu = result["cpu_seconds_per_cycle"]
            row = {"gpus": gpus, "processes": processes, "metrics_bytes": size,
                   "cpu_seconds_per_cycle": cpu, "memory": result["memory"],
                   "agent_over_bare_loop": result["agent_over_bare_loop"]["median"]}
            rows.append(row)
            print(f"  {gpus:4} {processes:6} | {cpu['agent'] * 1e3:8.3f} "
                  f"{cpu['bare_loop'] * 1e3:8.3f} {row['agent_over_bare_loop']:5.2f} | "
                  f"{row['memory']['rss_bytes'] / 1e6:6.1f} | {size}", flush=True)
    return rows


def machine():
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release()}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--runs", type=int, default=5, help="runs; the median counts")
    parser.add_argument("--seconds", type=float, default=20, help="length of one run")
    parser.add_argument("--scrapes", type=int, default=1000)
    parser.add_argument("--count-seconds", type=float, default=calls.SECONDS,
                        help="how long to count driver calls")
    parser.add_argument("--warm-up", type=float, default=3, help="seconds before the first run")
    parser.add_argument("--only-attribution", action="store_true",
                        help="measure only what attribution adds")
    parser.add_argument("--no-growth", action="store_true", help="leave out the growth table")
    parser.add_argument("--write-docs", action="store_true",
                        help="put the numbers into docs/performance.md")
    parser.add_argument("--quick", action="store_true", help="one short run: does it work at all?")
    options = parser.parse_args()
    if options.quick:
        options.runs, options.seconds, options.scrapes, options.count_seconds = 1, 4, 100, 10
    return options


def main():
    options = parse_arguments()
    result = {"machine": machine(), "load_average": os.getloadavg()[0], "runs": options.runs,
              "seconds_per_run": options.seconds, "cases": {}}
    print(f"{result['machine']['cpu']}, {result['machine']['cores']} cores; "
          f"{options.runs} runs of {options.seconds:g} s", flush=True)
    if options.only_attribution:
        measure_attribution(options.build, options)
        return 0
    for name, file in CASES.items():
        scenario = ROOT / "sim" / "scenarios" / file
        result["cases"][name] = measure_case(name, options.build, scenario, options)
    result["attribution"] = measure_attribution(options.build, options)
    if not options.no_growth:
        short = argparse.Namespace(**{**vars(options), "runs": min(options.runs, 3),
                                      "seconds": min(options.seconds, 10)})
        result["growth"] = measure_growth(options.build, short)
    output = options.build / "bench" / "agent.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"\nwritten: {output}")
    if options.write_docs:
        report.write_docs(ROOT / "docs" / "performance.md", result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
