#!/usr/bin/env python3
"""Checks what no compiler checks: the order of the layers, and that the tree stands by itself.

A folder may include its own headers and those of the layers below it (docs/architecture.md). Headers guard
themselves with #pragma once. No file names a path of somebody's machine.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Lowest first; folders of one rank are siblings, and may not include each other.
RANKS = [
    {"base"},
    {"device"},
    {"formats", "text", "audio"},
    {"ops"},
    {"backbone"},
    {"decision", "music"},
    {"lab"},
    {"cli", "serve"},
]
RANK = {folder: rank for rank, folders in enumerate(RANKS) for folder in folders}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(?:home|root|mnt|work|Users)/\w+")
SOURCES = {".cpp", ".hpp", ".cu", ".h"}
# Test data may quote paths in other programs' files.
UNCHECKED = ("tests/data/", "fuzz/corpus/", "models/")


def tracked_files():
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True
    )
    if listing.returncode == 0:
        return [name for name in listing.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    # An unpacked archive has no index.
    return [
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*")
        if path.is_file() and "build" not in path.relative_to(ROOT).parts[:1]
    ]


def layer_faults(name, text):
    folder = name.split("/")[0]
    if folder not in RANK:
        return
    for match in INCLUDE.finditer(text):
        target = match.group(1)
        other = target.split("/")[0]
        line = text.count("\n", 0, match.start()) + 1
        if "/" not in target:
            yield f'{name}:{line}: "{target}" is not a path from the root of the tree'
        elif other in RANK and other != folder and RANK[other] >= RANK[folder]:
            yield f"{name}:{line}: {folder}/ may not include {other}/, which is not below it"


def faults(name):
    path = ROOT / name
    if name.startswith(UNCHECKED):
        return
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    if path.suffix in SOURCES:
        yield from layer_faults(name, text)
    if path.suffix == ".hpp" and "#pragma once" not in text:
        yield f"{name}:1: no #pragma once"
    if "tests" in path.parent.parts:
        return  # a test may make paths up
    for match in MACHINE_PATH.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{name}:{line}: names a path of one machine, {match.group(0)}"


def main():
    files = tracked_files()
    found = [fault for name in files for fault in faults(name)]
    for fault in found:
        print(fault, file=sys.stderr)
    print(f"check: {len(files)} files, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
