"""Reads the declarations of a C header as plain as ours: structures, unions, enumerators."""

import dataclasses
import re


@dataclasses.dataclass
class Declarations:
    members: dict  # type name -> paths of its members, "metricInfo.unit"
    constants: list  # names of enumerators


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)


def _block_end(text, start):
    """The place after the closing brace of the block that opens at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    raise ValueError("a brace is not closed")


def _members(body, prefix=""):
    found = []
    place = 0
    while place < len(body):
        nested = re.compile(r"\s*(?:struct|union)\s*\{").match(body, place)
        if nested:
            opens = nested.end() - 1
            end = _block_end(body, opens)
            name = re.compile(r"\s*(\w+)\s*;").match(body, end)
            found += _members(body[opens + 1 : end - 1], f"{prefix}{name.group(1)}.")
            place = name.end()
            continue
        member = re.compile(r"\s*[\w\s*]+?[\s*](\w+)\s*(?:\[[^\]]*\])?\s*;").match(body, place)
        if member is None:
            if body[place:].strip():
                raise ValueError(f"not understood: {body[place:].strip()[:60]!r}")
            break
        found.append(prefix + member.group(1))
        place = member.end()
    return found


def read(text):
    text = without_comments(text)
    members = {}
    for opening in re.finditer(r"typedef\s+(?:struct|union)\s*\{", text):
        opens = opening.end() - 1
        end = _block_end(text, opens)
        name = re.compile(r"\s*(\w+)\s*;").match(text, end).group(1)
        members[name] = _members(text[opens + 1 : end - 1])
    constants = []
    for opening in re.finditer(r"enum\s*(?::[\w\s]+)?\{", text):
        end = _block_end(text, opening.end() - 1)
        constants += re.findall(r"(\w+)\s*=", text[opening.end() : end])
    return Declarations(members, constants)


def functions(text, macro):
    """Names in a .def list of `macro`(name, introduced, (parameters)), with its REQUIRED ones."""
    text = without_comments(text)
    entry = re.compile(rf"^(?:{macro}\((\w+),\s*\d+,|NVML_REQUIRED\((\w+),)\s*\(", re.M)
    return [first or second for first, second in entry.findall(text)]
