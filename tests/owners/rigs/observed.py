"""The agent on a simulated driver that lists processes which really run on this machine.

The driver is the only thing that is simulated: /proc, cgroups, kubelet and API server are real.
"""
import json
import sys

from . import common

sys.path.insert(0, str(common.ROOT / "tests" / "agent"))

from agent_process import Agent, LIBRARY, PROGRAM, run  # noqa: E402 (of another folder)

GPUS = "\ngpus:\n  - {model: t4, count: 4}\n"


def story(uses, node=GPUS):
    """uses: [(PID, GPU index, MIG index or None)]; each holds 1 GiB and works a little."""
    lines = ["name: observed", "noise: 0", node.strip("\n"), "processes:"]
    for pid, gpu, mig in uses:
        of_mig = "" if mig is None else f"mig: {mig}, "
        lines.append(f"  - {{pid: {pid}, name: trainer, gpus: {gpu}, {of_mig}memory: 1 GiB, "
                     "activity: {kernel: 1ms, launches: 200/s, sm_active: 0.2}}")
    return "\n".join(lines if uses else lines[:-1]) + "\n"


class Observer:
    """An agent and what it says now. `inside`: a MountNamespace, or None for the machine."""

    def __init__(self, directory, text, *arguments, inside=None):
        directory.mkdir(parents=True, exist_ok=True)
        scenario = directory / "scenario.yaml"
        scenario.write_text(text)
        self.agent = Agent(directory, *arguments, scenario=scenario,
                           inside=inside.inside([]) if inside else ())

    def __enter__(self):
        self.agent.__enter__()
        self.agent.wait_ready()
        return self

    def __exit__(self, *problem):
        self.agent.__exit__(*problem)

    def views(self):
        return json.loads(self.agent.get("/api/v1/views")[1])

    def snapshot(self):
        return json.loads(self.agent.get("/api/v1/snapshot")[1])

    def owner(self, pid):
        """As the snapshot has it; {} while nobody is known."""
        for gpu in self.snapshot()["gpus"]:
            for process in gpu["processes"]:
                if process["pid"] == pid:
                    return process.get("owner", {})
        raise LookupError(f"the agent lists no process {pid}")

    def error_of(self, source):
        """What is wrong with a source now; "" when nothing is."""
        [status] = [one for one in self.snapshot()["sources"] if one["name"] == source]
        return status["error"] or ""

    def wait_until(self, condition, what):
        try:
            return common.wait_for(condition, what, pause_s=0.2)
        except common.RigError as error:
            said = json.dumps(self.snapshot().get("scheduler"), indent=1)
            sources = json.dumps(self.snapshot()["sources"], indent=1)
            raise common.RigError(f"{error}\n{sources}\n{said}\n{self.agent.log()}") from error


__all__ = ["LIBRARY", "Observer", "PROGRAM", "run", "story"]
