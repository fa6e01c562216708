#!/usr/bin/env python3
"""clang-tidy (.clang-tidy) on every source whose last clean run is not on record. Any finding fails.

    lint.py [--jobs N] [--all] [--record]

A whole run takes half an hour on two cores, so scripts/lint.sums keeps, for each source found clean, the SHA-256 of
what decided it: the source, the project's headers that it names, and .clang-tidy. `make lint` records. Compile
commands come from build/asan.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMS = ROOT / "scripts" / "lint.sums"
BUILD = ROOT / "build" / "asan"
INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def sources():
    commands = json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))
    files = {pathlib.Path(command["file"]) for command in commands}
    return sorted(file for file in files if ROOT in file.parents and BUILD not in file.parents)


def decided_by(source):
    """SHA-256 of the source, the headers it names and the configuration."""
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    text = source.read_bytes()
    digest.update(text)
    for name in sorted(set(INCLUDE.findall(text))):
        header = ROOT / os.fsdecode(name)
        if header.is_file():
            digest.update(name + b"\0" + header.read_bytes())
    return digest.hexdigest()


def read_sums():
    if not SUMS.exists():
        return {}
    lines = SUMS.read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def write_sums(sums):
    temporary = SUMS.with_suffix(".new")
    temporary.write_text("".join(f"{sums[name]}  {name}\n" for name in sorted(sums)), encoding="utf-8")
    temporary.replace(SUMS)


def lint(source):
    command = ["clang-tidy-14", "--quiet", "-p", str(BUILD), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode == 0, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--all", action="store_true", help="also what is on record as clean")
    parser.add_argument("--record", action="store_true", help="write scripts/lint.sums")
    options = parser.parse_args()

    wanted = {str(source.relative_to(ROOT)): source for source in sources()}
    known = read_sums()
    clean = {}
    to_lint = []
    for name, source in wanted.items():
        digest = decided_by(source)
        if known.get(name) == digest and not options.all:
            clean[name] = digest
        else:
            to_lint.append((name, source, digest))
    print(f"lint: {len(clean)} sources on record as clean, {len(to_lint)} to look at", flush=True)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = {pool.submit(lint, source): (name, digest) for name, source, digest in to_lint}
        for run in concurrent.futures.as_completed(runs):
            name, digest = runs[run]
            passed, output = run.result()
            if passed:
                clean[name] = digest
                if options.record:
                    write_sums(clean)
            else:
                failed += 1
                print(f"lint: {name}\n{output}", flush=True)
    if options.record:
        write_sums(clean)
    print(f"lint: {failed} of {len(to_lint)} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
