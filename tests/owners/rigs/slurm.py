"""A Slurm of one node: munged, slurmctld and slurmd of Slurm 22.05 on 127.0.0.1."""
import contextlib
import dataclasses
import pathlib
import re
import socket

from . import common

SLURM_CONF = """\
ClusterName=cluster
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={directory}/munge/socket
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
ProctrackType=proctrack/{tracking}
TaskPlugin=task/{task}
JobAcctGatherType=jobacct_gather/none
PrologFlags=contain
PropagateResourceLimits=NONE
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=500 State=UNKNOWN
PartitionName=gpu Nodes={host} Default=YES MaxTime=INFINITE DefMemPerNode=10 State=UP
"""
CGROUP_CONF = """\
CgroupPlugin=cgroup/v1
CgroupMountpoint={cgroups}
ConstrainDevices=no
ConstrainCores=no
ConstrainRAMSpace=no
"""
HOST = socket.gethostname()
CGROUP_ROOT = f"slurm_{HOST}"  # Debian builds Slurm with the node's name in it
# Says its PID, then holds the device.
HOLD = "echo $$ >{directory}/pids/$SLURM_JOB_ID.{name}; exec 3<{device}; exec sleep 600"


@dataclasses.dataclass(frozen=True)
class Member:
    """A process of a job step. pid: as the machine counts."""

    pid: int
    job_id: str
    step_id: str
    array_job_id: str = ""
    array_task_id: str = ""


class SlurmRig(common.Rig):
    """tracking: "cgroup" or "linuxproc" (then only the environment knows the job)."""

    def __init__(self, directory, tools, tracking="cgroup"):
        self.directory = pathlib.Path(directory)
        self.programs = common.Programs(tools)
        self.tracking = tracking
        self.daemons = []
        self.owns_cgroup = False
        self.namespace = None
        self.members = []
        self.conf = self.directory / "slurm.conf"

    def start(self):
        if common.processes_in_cgroup(CGROUP_ROOT):
            raise common.RigError(f"a Slurm runs on this machine already, in /{CGROUP_ROOT}")
        self.owns_cgroup = True
        for name in ("munge", "state", "spool", "pids"):
            (self.directory / name).mkdir(parents=True)
        # Programs of other users look for the socket and write their PIDs.
        self.directory.chmod(0o755)
        (self.directory / "pids").chmod(0o1777)
        self.devices = common.make_devices(self.directory, ["nvidia0"])
        self.write_configuration()
        self.make_namespace()
        self.start_munge()
        self.add("slurmctld", "slurmctld-wlm", "-D", "-i", "-f", self.conf)
        node = self.add("slurmd", "slurmd-wlm", "-D", "-f", self.conf,
                        "-d", self.programs.find("slurmstepd-wlm"))
        node.ready(lambda: self.client("sinfo", "-h", "-o", "%t") == "idle", "the node to be idle")

    def make_namespace(self):
        """Slurm looks for its plugins where Debian would install them."""
        libraries = "/usr/lib/x86_64-linux-gnu"
        [package] = self.programs.folder.glob("slurm-wlm-basic-plugins")
        layers = f"lowerdir={package}{libraries}:{libraries}"
        self.namespace = common.MountNamespace(
            self.programs, f"mount -t overlay plugins -o '{layers}' {libraries}", self.directory)

    def add(self, name, *command):
        inside = self.namespace.inside([self.programs.find(command[0]), *command[1:]])
        self.daemons.append(common.Daemon(self.programs, inside, self.directory / f"{name}.log"))
        return self.daemons[-1]

    def start_munge(self):
        folder = self.directory / "munge"
        folder.chmod(0o755)
        key = folder / "key"
        key.write_bytes(bytes(range(256)) * 4)
        key.chmod(0o600)
        munge = self.add("munged", "munged", "-F", "--force", f"--key-file={key}",
                         f"--socket={folder}/socket", f"--pid-file={folder}/pid",
                         f"--log-file={folder}/log", f"--seed-file={folder}/seed")
        munge.ready(lambda: (folder / "socket").exists(), "munged's socket")

    def write_configuration(self):
        with_cgroups = self.tracking == "cgroup"
        self.conf.write_text(SLURM_CONF.format(
            host=HOST, controller_port=common.free_port(), node_port=common.free_port(),
            directory=self.directory, tracking=self.tracking,
            task="cgroup" if with_cgroups else "none"))
        (self.directory / "cgroup.conf").write_text(CGROUP_CONF.format(cgroups=common.CGROUPS))

    def client(self, *command):
        inside = self.namespace.inside([self.programs.find(command[0]), *command[1:]])
        return self.programs.call(*inside, cwd=self.directory, SLURM_CONF=str(self.conf))

    def batch(self, *options, body):
        script = self.directory / f"script-{len(list(self.directory.glob('script-*')))}"
        script.write_text("#!/bin/sh\n" + body + "\n")
        return self.client("sbatch", "--parsable", "--output=/dev/null", *options, script)

    def hold(self, name):
        return HOLD.format(directory=self.directory, name=name, device=self.devices / "nvidia0")

    def member(self, job, name, **known):
        file = self.directory / "pids" / f"{job}.{name}"
        pid = int(common.wait_for(lambda: file.exists() and file.read_text().strip(),
                                  f"the PID of job {job}"))
        common.wait_for(lambda: pathlib.Path(f"/proc/{pid}/comm").read_text() == "sleep\n",
                        f"process {pid}")
        member = Member(pid=pid, job_id=job, **known)
        self.members.append((pid, common.start_of(pid)))
        return member

    def run_batch(self, *options):
        """The script of a job itself: step "batch"."""
        job = self.batch(*options, body=self.hold("batch"))
        return self.member(job, "batch", step_id="batch")

    def run_step(self, *options):
        """A task that srun starts: step 0."""
        job = self.batch(*options, body=f"srun sh -c '{self.hold('0')}'")
        return self.member(job, "0", step_id="0")

    def run_array(self):
        """Task 3 of an array: a job with a number of its own."""
        array = self.batch("--array=3", body=self.hold("batch"))
        job = common.wait_for(lambda: self.job_of_task(array, 3), "the array's job")
        return self.member(job, "batch", step_id="batch", array_job_id=array, array_task_id="3")

    def job_of_task(self, array, task):
        shown = self.client("scontrol", "show", "job", f"{array}_{task}")
        found = re.search(r"JobId=(\d+)", shown)
        return found and found[1] if "JobState=RUNNING" in shown else None

    def stop(self):
        if not self.owns_cgroup:
            return
        for pid, start in self.members:
            common.end(pid, start)
        if len(self.daemons) == 3:
            with contextlib.suppress(common.RigError):
                self.client("scancel", "--partition=gpu")
                common.wait_for(lambda: not self.client("squeue", "-h"), "the jobs to end", 20)
        for daemon in reversed(self.daemons):
            daemon.stop()
        self.daemons = []
        if self.namespace:
            self.namespace.close()
        common.end_all_in_cgroup(CGROUP_ROOT)
