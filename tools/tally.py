#!/usr/bin/env python3
"""Counts test results. Every runner leaves JUnit XML in one folder per stage.

  tally.py --stage DIR --status N   one stage: prints "N passed[, N failed][, N skipped]"
  tally.py --total DIR              all stages under DIR: prints "N passed, N failed, N skipped"

Google Test writes one file per program, ctest.xml lists the programs: a program that ended without
writing its own file (a crash) counts as one failure. A stage without any XML counts as one test.
With CI=true a skipped test makes the exit code 1.
"""
import argparse
import os
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def count_cases(root):
    """(passed, failed, skipped) of one JUnit document."""
    passed = failed = skipped = 0
    for case in root.iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            failed += 1
        elif "skipped" in kinds or case.get("status") in ("notrun", "disabled"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def programs_that_failed(root):
    return [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None]


def count_stage(directory, status):
    passed = failed = skipped = 0
    crashed_programs = []
    programs_with_cases = set()
    for path in sorted(directory.glob("*.xml")):
        try:
            root = ElementTree.parse(path).getroot()
        except ElementTree.ParseError:
            failed += 1
            continue
        if path.name == "ctest.xml":
            crashed_programs = programs_that_failed(root)
            continue
        counts = count_cases(root)
        passed, failed, skipped = (a + b for a, b in zip((passed, failed, skipped), counts))
        if counts[1]:
            programs_with_cases.add(path.stem.removesuffix("_tests"))
    failed += len([name for name in crashed_programs if name not in programs_with_cases])
    if status == 0 and passed + failed + skipped == 0:
        passed = 1
    if status != 0 and failed == 0:
        failed = 1
    return passed, failed, skipped


def stage_text(counts):
    passed, failed, skipped = counts
    parts = [f"{passed} passed"]
    if failed:
        parts.append(f"{failed} failed")
    if skipped:
        parts.append(f"{skipped} skipped")
    return ", ".join(parts)


def sum_stages(directory):
    total = [0, 0, 0]
    for path in sorted(directory.glob("*/total")):
        for place, count in enumerate(path.read_text(encoding="utf-8").split()):
            total[place] += int(count)
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stage", type=pathlib.Path)
    parser.add_argument("--status", type=int, default=0)
    parser.add_argument("--total", type=pathlib.Path)
    options = parser.parse_args()
    strict = os.environ.get("CI") == "true"
    if options.stage:
        counts = count_stage(options.stage, options.status)
        (options.stage / "total").write_text(" ".join(map(str, counts)), encoding="utf-8")
        note = " (not allowed with CI=true)" if strict and counts[2] else ""
        print(stage_text(counts) + note)
        return 1 if strict and counts[2] else 0
    counts = sum_stages(options.total)
    print("{} passed, {} failed, {} skipped".format(*counts))
    return 1 if counts[1] or (strict and counts[2]) else 0


if __name__ == "__main__":
    sys.exit(main())
