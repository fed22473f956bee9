"""Scenarios of any size, to see how the cost grows."""

# (GPUs, processes on the node)
POINTS = [(1, 64), (2, 64), (4, 64), (8, 0), (8, 64), (8, 200), (8, 500), (16, 64)]
FIRST_PID = 10000

HEAD = """\
name: growth-{gpus}x{processes}
driver: 570.86.15
gpus:
  - {{model: h100-sxm5-80gb, count: {gpus}}}
"""
PROCESS = """\
  - {{pid: {pid}, name: python3, gpus: [{gpu}], count: {count}, memory: 256 MiB,
     activity: {{kernel: 1ms, launches: 10/s, sm_active: 1%, dram: 1%}}}}
"""


def write_scenario(folder, gpus, processes):
    """The processes are dealt out evenly; returns the path."""
    text = HEAD.format(gpus=gpus, processes=processes)
    if processes:
        text += "processes:\n"
    pid = FIRST_PID
    for gpu in range(gpus):
        count = processes // gpus + (1 if gpu < processes % gpus else 0)
        if count:
            text += PROCESS.format(pid=pid, gpu=gpu, count=count)
        pid += count
    path = folder / f"growth-{gpus}x{processes}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def write_scenario_of(folder, gpus, pids):
    """The same of processes that exist, all of them active."""
    text = HEAD.format(gpus=gpus, processes=len(pids)) + "processes:\n"
    for place, pid in enumerate(pids):
        text += PROCESS.format(pid=pid, gpu=place % gpus, count=1)
    path = folder / f"real-{gpus}x{len(pids)}.yaml"
    path.write_text(text, encoding="utf-8")
    return path
