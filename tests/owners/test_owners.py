"""Who a process belongs to, with real runtimes and the real /proc: Docker, Podman, Slurm, nothing.

Everything is read by the agent, which sees the processes on a simulated GPU. Needs root.
"""
import os
import pathlib
import pwd
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from rigs import common, containers, observed, slurm  # noqa: E402

TOOLS = pathlib.Path(os.environ.get("GPUASSAY_TEST_OWNERS_TOOLS")
                     or common.ROOT / "build" / "tools" / "owners")
NOBODY = pwd.getpwnam("nobody")


@pytest.fixture
def short_path():
    """Unix sockets lie below it, whose paths have at most 107 bytes; other users write there."""
    with tempfile.TemporaryDirectory(prefix="gpuassay-", ignore_cleanup_errors=True) as path:
        pathlib.Path(path).chmod(0o755)
        yield pathlib.Path(path)


def wait_for_owner(observer, pid, condition):
    return observer.wait_until(
        lambda: condition(observer.owner(pid)) and observer.owner(pid), f"the owner of {pid}")


@pytest.mark.parametrize("rig, runtime", [(containers.DockerRig, "docker"),
                                          (containers.PodmanRig, "podman")])
def test_a_process_belongs_to_its_container_and_user(rig, runtime, short_path, tmp_path):
    with rig(short_path, TOOLS) as started:
        container, pid = started.run("trainer", "--user", str(NOBODY.pw_uid))
        other, other_pid = started.run("notebook")
        text = observed.story([(pid, 0, None), (other_pid, 0, None)])
        with observed.Observer(tmp_path, text, inside=started.namespace) as observer:
            owner = wait_for_owner(observer, pid, lambda found: found.get("container"))
            assert owner["container"]["id"] == container
            assert owner["container"]["runtime"] == runtime
            assert owner["container"]["name"] == "trainer"
            assert owner["user"] == "nobody"
            assert "pod" not in owner and "job" not in owner
            second = wait_for_owner(observer, other_pid, lambda found: found.get("container"))
            assert second["container"]["id"] == other
            assert second["container"]["name"] == "notebook"
            assert second["user"] == "root"


def test_what_docker_gives_a_container_is_its_allocation(short_path, tmp_path):
    gpu = "GPU-00000000-1111-2222-3333-444444444444"
    with containers.DockerRig(short_path, TOOLS) as docker:
        container, pid = docker.run("trainer", "--env", f"NVIDIA_VISIBLE_DEVICES={gpu}")
        text = observed.story([(pid, 0, None)], f"gpus: [{{model: t4, uuid: {gpu}}}]")
        with observed.Observer(tmp_path, text) as observer:
            def allocations():
                scheduler = observer.snapshot()["scheduler"]
                return scheduler and scheduler["allocations"]

            [allocation] = observer.wait_until(allocations, "the allocation")
            assert allocation["scheduler"] == "container"
            assert allocation["gpu_uuid"] == gpu
            assert allocation["owner"]["container"]["id"] == container


def assert_job(owner, member, tracking):
    job = {"kind": "slurm", "id": member.job_id, "step": member.step_id}
    if member.array_job_id:
        job["id"] = f"{member.array_job_id}_{member.array_task_id}"
    if tracking == "linuxproc" and member.step_id == "batch":
        del job["step"]  # only the cgroup tells: a batch script's environment has no step
    assert owner["job"] == job
    assert "container" not in owner


@pytest.mark.parametrize("tracking", ["cgroup", "linuxproc"])
def test_a_process_belongs_to_its_job_and_step(tracking, short_path, tmp_path):
    with slurm.SlurmRig(short_path, TOOLS, tracking) as rig:
        members = [rig.run_batch(), rig.run_step(), rig.run_array()]
        text = observed.story([(member.pid, 0, None) for member in members])
        with observed.Observer(tmp_path, text) as observer:
            for member in members:
                owner = wait_for_owner(observer, member.pid, lambda found: found.get("job"))
                assert_job(owner, member, tracking)
                assert owner["user"] == "root"


def test_a_job_belongs_to_the_user_who_gave_it(short_path, tmp_path):
    with slurm.SlurmRig(short_path, TOOLS) as rig:
        member = rig.run_batch(f"--uid={NOBODY.pw_uid}")
        with observed.Observer(tmp_path, observed.story([(member.pid, 0, None)])) as observer:
            owner = wait_for_owner(observer, member.pid, lambda found: found.get("job"))
            assert_job(owner, member, "cgroup")
            assert owner["user"] == "nobody"


def test_a_process_outside_everything_belongs_to_its_user(tmp_path):
    with subprocess.Popen(["sleep", "100000"], user=NOBODY.pw_uid) as process:
        try:
            text = observed.story([(process.pid, 0, None)])
            with observed.Observer(tmp_path, text) as observer:
                owner = wait_for_owner(observer, process.pid, lambda found: found.get("user"))
                assert owner["user"] == "nobody"
                assert "container" not in owner and "pod" not in owner and "job" not in owner
        finally:
            process.kill()
