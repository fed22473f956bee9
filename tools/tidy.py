#!/usr/bin/env python3
"""Checks that compilers and clang-format cannot make: layers, bans, sizes, the catalogue, the docs.

  tools/tidy.py               prints `path:line: rule: what is wrong; what instead`
  tools/tidy.py --self-test   shows that each rule catches its example and leaves a good one alone
  tools/tidy.py --rules       lists the rules

The rules are in tidy_code.py (C++ and Python) and tidy_project.py (catalogue, tests, docs).
"""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tidy_code  # noqa: E402
import tidy_project  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
RULES = tidy_code.RULES + tidy_project.RULES
SKIPPED_FOLDERS = {".git", "build", "__pycache__", "node_modules"}
FILE_BYTES_MAX = 1 << 20


def read_tree(folder):
    """{path relative to folder: text} of every text file; binary files have the text ''."""
    tree = {}
    for path in sorted(folder.iterdir()):
        if path.name in SKIPPED_FOLDERS or path.name.startswith("build-") or path.is_symlink():
            continue
        if path.is_dir():
            tree.update({f"{path.name}/{name}": text for name, text in read_tree(path).items()})
        elif path.stat().st_size <= FILE_BYTES_MAX:
            try:
                tree[path.name] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                tree[path.name] = ""
    return tree


def check(tree):
    errors = []
    for rule in RULES:
        errors += [(path, line, rule.name, text) for path, line, text in rule.function(tree)]
    return sorted(errors)


def self_test():
    """Each rule must complain about its bad trees and say nothing about its good ones."""
    failures = []
    for rule in RULES:
        if not rule.bad:
            failures.append(f"{rule.name}: has no example of what it catches")
        for tree in rule.bad:
            if not list(rule.function(tree)):
                failures.append(f"{rule.name}: misses {tree}")
        for tree in rule.good:
            for error in rule.function(tree):
                failures.append(f"{rule.name}: complains about {tree}: {error}")
    for failure in failures:
        print(failure)
    print(f"tidy self-test: {len(RULES)} rules, {len(failures)} failures")
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:] == ["--rules"]:
        for rule in RULES:
            print(f"{rule.name:16} {rule.function.__doc__.splitlines()[0]}")
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    tree = read_tree(ROOT)
    errors = check(tree)
    for path, line, name, text in errors:
        print(f"{path}:{line}: {name}: {text}")
    print(f"tidy: {len(tree)} files, {len(RULES)} rules, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
