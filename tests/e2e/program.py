"""The built program and the recorded checkpoints, as the end-to-end tests use them.

CTest gives the program's path in ASSAY. Nothing beyond Python's standard library is needed.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
CHECKPOINTS = ("kev-tiny-hybrid", "kev-tiny-dense")
PROGRAM = os.environ.get("ASSAY", str(ROOT / "build" / "release" / "cli" / "assay"))
# A run that takes longer hangs.
TIMEOUT = 600


def run_dir(checkpoint):
    return DATA / checkpoint / "run"


def fixture_path(checkpoint):
    return DATA / f"{checkpoint}.fixture.json"


def fixture(checkpoint):
    return json.loads(fixture_path(checkpoint).read_text(encoding="utf-8"))


def assay(*arguments, stdin="", environment=None):
    """Runs the program; stdin and the outputs are text."""
    return subprocess.run(
        [PROGRAM, *map(str, arguments)],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        timeout=TIMEOUT,
        env={**os.environ, "ASSAY_SELECTION": "off", **(environment or {})},
    )


def lines_of(requests):
    return "".join(json.dumps(request, ensure_ascii=False) + "\n" for request in requests)


class ProgramTest(unittest.TestCase):
    """Adds what every test needs: a folder of its own, and the program's outcome in a failure's message."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def succeed(self, *arguments, **options):
        done = assay(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        return done.stdout.decode()

    def fail_with(self, status, *arguments, **options):
        """What the program said on standard error when it ended with that status."""
        done = assay(*arguments, **options)
        message = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, status, message or done.stdout.decode(errors="replace"))
        return message

    def decide(self, model, requests, *options):
        """The responses to requests, streamed through one process."""
        text = self.succeed("decide", "--model", model, "--jsonl", "--raw", *options, stdin=lines_of(requests))
        return [json.loads(line) for line in text.splitlines()]

    def copy_checkpoint(self, checkpoint):
        """A copy that may be broken; gives its run directory."""
        target = self.folder / checkpoint
        shutil.copytree(DATA / checkpoint, target, copy_function=shutil.copyfile)
        for path in [target, *target.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        return target / "run"
