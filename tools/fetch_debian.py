#!/usr/bin/env python3
"""Unpacks Debian packages into a folder without installing them.

  fetch_debian.py --directory build/tools --component contrib prometheus nvtop

Some programs that the tests need should not be installed: prometheus would start a service, nvtop
is in a component that a machine may not have switched on. apt runs with a configuration of its own:
the machine's sources with the component added, package lists under the folder. Each package ends up
in DIRECTORY/NAME, as `dpkg -x` lays it out. A package that is there already is left alone.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

SYSTEM_LIST = pathlib.Path("/etc/apt/sources.list")
SYSTEM_PARTS = pathlib.Path("/etc/apt/sources.list.d")


def add_to_one_line(text, component):
    """One-line format: `deb [options] URI suite main other`. Keeps lines with component main."""
    lines = []
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        if not line.startswith("deb ") or "main" not in line.split():
            continue
        lines.append(line if component in line.split() else f"{line} {component}")
    return "\n".join(lines) + "\n" if lines else ""


def add_to_deb822(text, component):
    """deb822 format: stanzas with a Components field. Keeps stanzas with component main."""
    stanzas = []
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if line.strip() and not line.startswith("#")]
        for place, line in enumerate(lines):
            name, _, value = line.partition(":")
            if name.lower() != "components":
                continue
            names = value.split()
            if "main" in names:
                lines[place] = "Components: " + " ".join(dict.fromkeys(names + [component]))
                stanzas.append("\n".join(lines))
    return "\n\n".join(stanzas) + "\n" if stanzas else ""


def write_sources(directory, component):
    """Returns the number of source files written to `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    parts = sorted(SYSTEM_PARTS.glob("*.list")) + sorted(SYSTEM_PARTS.glob("*.sources"))
    written = 0
    for number, path in enumerate(path for path in [SYSTEM_LIST, *parts] if path.is_file()):
        convert = add_to_deb822 if path.suffix == ".sources" else add_to_one_line
        text = convert(path.read_text(encoding="utf-8"), component)
        if text:
            (directory / f"{number}{path.suffix}").write_text(text, encoding="utf-8")
            written += 1
    return written


def apt_options(apt):
    return [
        "-o", "Dir::Etc::sourcelist=/dev/null",
        "-o", f"Dir::Etc::sourceparts={apt}/sources.list.d",
        "-o", f"Dir::State::lists={apt}/lists",
        "-o", f"Dir::Cache={apt}/cache",
        "-o", "APT::Sandbox::User=root",
        "-o", "Acquire::Languages=none",
    ]


def fetch(directory, component, packages):
    apt = (directory / "apt").resolve()
    for folder in ("sources.list.d", "lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    if not write_sources(apt / "sources.list.d", component):
        raise RuntimeError("no Debian source with component main in /etc/apt")
    subprocess.run(["apt-get", *apt_options(apt), "update", "-q"], check=True)
    for package in packages:
        with tempfile.TemporaryDirectory(dir=apt) as folder:
            subprocess.run(["apt-get", *apt_options(apt), "download", "-q", package], check=True,
                           cwd=folder)
            [archive] = pathlib.Path(folder).glob("*.deb")
            unpacked = pathlib.Path(folder) / "unpacked"
            subprocess.run(["dpkg-deb", "-x", str(archive), str(unpacked)], check=True)
            unpacked.rename(directory / package)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", type=pathlib.Path, required=True)
    parser.add_argument("--component", default="contrib")
    parser.add_argument("packages", nargs="+")
    options = parser.parse_args()
    wanted = [name for name in options.packages if not (options.directory / name).exists()]
    if not wanted:
        return 0
    print(f"Unpacking Debian packages under {options.directory}: {' '.join(wanted)}", flush=True)
    try:
        fetch(options.directory, options.component, wanted)
    except (subprocess.CalledProcessError, RuntimeError, OSError) as error:
        print(f"fetch_debian.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
