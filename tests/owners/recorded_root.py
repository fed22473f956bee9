#!/usr/bin/env python3
"""Recorded roots: a few processes of /proc, with what belongs to them, in one text file.

  recorded_root.py record PID... [--root /] [--comment TEXT]   prints a recorded root
  recorded_root.py unpack FILE DIRECTORY                       makes the files below DIRECTORY

The format is in README.md. `unpack` makes a directory that a program takes for the file-system root;
`record` keeps only what says who owns a process, and makes it neutral: user names, the hostname and
addresses are replaced, and of the environment only names in ENVIRONMENT_KEPT stay.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import socket
import sys

ENTRY = re.compile(r"-- (.+) --")
EXPECT = re.compile(r"# expect (\d+):(.*)")
ENVIRONMENT_KEPT = re.compile(rb"(SLURM_|SLURMD_|NVIDIA_|CUDA_|KUBERNETES_|APPTAINER_|SINGULARITY_|PBS_)\w*"
                              rb"|container|HOSTNAME|MASTER_ADDR|RANK|WORLD_SIZE|LOCAL_RANK|JOB_ID|LSB_JOBID")
ENVIRONMENT_SECRET = re.compile(rb"TOKEN|SECRET|PASS|KEY|CRED|SLURM_CONF$")
ADDRESS = re.compile(rb"\b(?!127\.)(?!192\.0\.2\.)(?:\d{1,3}\.){3}\d{1,3}\b")
PROCESS_FILES = ("stat", "status", "cgroup", "cmdline", "comm", "environ", "io")
THREADS_MAX = 4
NEUTRAL_HOST = b"node1"
NEUTRAL_USERS = {0: "root", 1000: "alice", 1001: "bob"}


@dataclasses.dataclass
class RecordedRoot:
    """comment: lines without `# `. entries: path to bytes, `Link` or None for a directory."""

    comment: list
    entries: dict

    def expectations(self):
        """{PID: {key: value}} of the lines `# expect PID: key=value ...`."""
        found = {}
        for line in self.comment:
            match = EXPECT.fullmatch("# " + line)
            if match:
                found[int(match[1])] = dict(word.split("=", 1) for word in match[2].split())
        return found


@dataclasses.dataclass(frozen=True)
class Link:
    target: str


class FormatError(ValueError):
    pass


def escape(content):
    """The lines of a file's content in the format."""
    if not content:
        return ""
    text = content.decode("utf-8").replace("\\", "\\\\").replace("\0", "\\0")
    for line in text.split("\n"):
        if ENTRY.fullmatch(line):
            raise FormatError(f"a line of the content looks like an entry: {line}")
    return text if text.endswith("\n") else text + "\\c\n"


def unescape(lines):
    text = "".join(line + "\n" for line in lines)
    out = []
    place = 0
    while place < len(text):
        char = text[place]
        if char != "\\":
            out.append(char)
            place += 1
            continue
        code = text[place + 1]
        if code == "c" and text[place + 2:] == "\n":
            break
        if code not in "0\\":
            raise FormatError(f"unknown escape \\{code}")
        out.append("\0" if code == "0" else "\\")
        place += 2
    return "".join(out).encode("utf-8")


def parse(text):
    comment = []
    entries = {}
    path, lines = None, []

    def finish():
        if path is not None:
            entries[path] = unescape(lines)

    for line in text.removesuffix("\n").split("\n"):
        match = ENTRY.fullmatch(line)
        if match:
            finish()
            path, lines = None, []
            name, arrow, target = match[1].partition(" -> ")
            if name.removesuffix("/") in entries or name.startswith("/") or ".." in name.split("/"):
                raise FormatError(f"entry twice or outside the root: {name}")
            if arrow:
                entries[name] = Link(target)
            elif name.endswith("/"):
                entries[name.removesuffix("/")] = None
            else:
                path = name
        elif path is not None:
            lines.append(line)
        elif entries or not line.startswith("#"):
            raise FormatError(f"a line that belongs to no file: {line}")
        else:
            comment.append(line.removeprefix("#").removeprefix(" "))
    finish()
    return RecordedRoot(comment, entries)


def write(root):
    text = "".join(f"# {line}".rstrip() + "\n" for line in root.comment)
    for path, content in root.entries.items():
        if content is None:
            text += f"-- {path}/ --\n"
        elif isinstance(content, Link):
            text += f"-- {path} -> {content.target} --\n"
        else:
            text += f"-- {path} --\n" + escape(content)
    return text


def read(path):
    return parse(pathlib.Path(path).read_text(encoding="utf-8"))


def unpack(root, directory):
    for name, content in root.entries.items():
        path = pathlib.Path(directory) / name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Link):
            path.symlink_to(content.target)
        else:
            path.write_bytes(content)


# --- recording ------------------------------------------------------------------------------------


def neutral_environment(content, replace):
    kept = []
    for variable in content.split(b"\0"):
        name, equals, value = variable.partition(b"=")
        if not equals or not ENVIRONMENT_KEPT.fullmatch(name) or ENVIRONMENT_SECRET.search(name):
            continue
        kept.append(name + b"=" + neutral(value, replace) + b"\0")
    return b"".join(kept)


def neutral(content, replace):
    """Without the hostname, addresses and what the caller named."""
    for old, new in replace.items():
        content = content.replace(old.encode(), new.encode())
    host = socket.gethostname().encode()
    if host:
        content = re.sub(rb"(?<![\w.-])" + re.escape(host) + rb"(?![\w-])", NEUTRAL_HOST, content)
    return ADDRESS.sub(b"192.0.2.1", content)


def read_bytes(path):
    """None where the kernel says no: the process is a zombie or has gone."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def device_links(folder):
    """{number: target} of the open devices, without terminals."""
    links = {}
    try:
        numbers = sorted(os.listdir(folder), key=int)
    except OSError:
        return links
    for number in numbers:
        try:
            target = os.readlink(folder / number)
        except OSError:
            continue
        if target.startswith("/dev/") and not target.startswith(("/dev/pts", "/dev/tty")):
            links[number] = target
    return links


def record_process(proc, pid, replace):
    folder = proc / str(pid)
    entries = {}
    for name in PROCESS_FILES:
        content = read_bytes(folder / name)
        if content is None:
            continue
        content = neutral_environment(content, replace) if name == "environ" else neutral(content, replace)
        entries[f"proc/{pid}/{name}"] = content
    links = device_links(folder / "fd")
    entries.update({f"proc/{pid}/fd/{number}": Link(target) for number, target in links.items()})
    if not links:
        entries[f"proc/{pid}/fd"] = None
    for name in ("pid", "user"):
        try:
            entries[f"proc/{pid}/ns/{name}"] = Link(os.readlink(folder / "ns" / name))
        except OSError:
            continue
    for thread in sorted(os.listdir(folder / "task"), key=int)[:THREADS_MAX]:
        content = read_bytes(folder / "task" / thread / "stat")
        if content is not None:
            entries[f"proc/{pid}/task/{thread}/stat"] = neutral(content, replace)
        links = device_links(folder / "task" / thread / "fd") if int(thread) != pid else {}
        entries.update({f"proc/{pid}/task/{thread}/fd/{number}": Link(target)
                        for number, target in links.items()})
    return entries


def record(pids, comment, root="/", replace=None, users=None):
    """replace: {text: neutral text}. users: {uid: neutral name}, besides NEUTRAL_USERS."""
    proc = pathlib.Path(root) / "proc"
    entries = {}
    for pid in pids:
        entries.update(record_process(proc, pid, replace or {}))
    boot = re.search(rb"^btime \d+\n", (proc / "stat").read_bytes(), re.M)
    entries["proc/stat"] = boot[0] if boot else b""
    # A recorder without all capabilities of process 1 may not read its links; it shares them.
    entries.update({f"proc/1/ns/{name}": Link(os.readlink(proc / "self" / "ns" / name))
                    for name in ("pid", "user")})
    names = {**NEUTRAL_USERS, **(users or {})}
    entries["etc/passwd"] = "".join(
        f"{name}:x:{uid}:{uid}::{'/root' if uid == 0 else '/home/' + name}:/bin/bash\n"
        for uid, name in sorted(names.items())).encode()
    return RecordedRoot(list(comment), entries)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record")
    recorder.add_argument("pids", nargs="+", type=int, metavar="PID")
    recorder.add_argument("--root", default="/")
    recorder.add_argument("--comment", action="append", default=[])
    unpacker = commands.add_parser("unpack")
    unpacker.add_argument("file")
    unpacker.add_argument("directory")
    options = parser.parse_args()
    if options.command == "record":
        sys.stdout.write(write(record(options.pids, options.comment, options.root)))
    else:
        unpack(read(options.file), options.directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
