"""Output that does not arrive is an error of every command, and a reader that has seen enough is none."""

import json
import os
import re
import signal
import subprocess
import unittest

import program
from program import ProgramTest


def subcommands(*command):
    """The commands below one, as its help lists them, each with those below it."""
    text = program.assay(*command, "--help").stdout.decode()
    listed = re.search(r"^Subcommands:\n((?:  .*\n?)*)", text, re.MULTILINE)
    for line in listed.group(1).splitlines() if listed else []:
        if name := re.match(r"  (\S+)", line):
            yield (*command, name.group(1))
            yield from subcommands(*command, name.group(1))


class Output(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.commands = [(), *subcommands()]

    def run_into(self, stdout, command, **options):
        return subprocess.run(
            [program.PROGRAM, *map(str, command)], stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            timeout=program.TIMEOUT, env={**os.environ, "ASSAY_SELECTION": "off"}, **options,
        )  # fmt: skip

    def writers(self):
        """A quick call of every command that prints, with --json where it has that."""
        model = program.run_dir("kev-tiny-dense")
        fixture = program.fixture("kev-tiny-dense")
        fixture["records"] = fixture["records"][:1]
        short = self.folder / "short.json"
        short.write_text(json.dumps(fixture))
        example = program.ROOT / "examples" / "ticket.json"
        bench = ("bench", "decision", "--shape", "kev-tiny", "--rows", "34", "--questions", "1", "--repeat", "1")
        yield from (
            ("--version",),
            ("decide", "--model", model, "--request", example),
            ("decide", "--model", model, "--request", example, "--table"),
            ("gate", "run", program.ROOT / "lab" / "gates" / "op-rope.json", "--precision", "fp32"),
        )
        for command in (
            ("forms",),
            ("forms", "--why"),
            ("inspect", model),
            bench,
            ("gate", "decision", "--model", model, "--fixture", short, "--precision", "fp32"),
        ):
            yield command
            yield (*command, "--json")
        for command in self.commands:
            yield (*command, "--help")

    def test_commands_are_found_in_the_help(self):
        self.assertIn(("decide",), self.commands)
        self.assertIn(("gate", "run"), self.commands)

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_a_full_disk_is_an_error_of_every_command(self):
        for command in self.writers():
            with self.subTest(command=command), open("/dev/full", "wb") as full:
                done = self.run_into(full, command)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, rb"^assay: standard output: No space left on device")

    def test_a_closed_output_is_an_error_of_every_command(self):
        for command in self.writers():
            with self.subTest(command=command):
                done = self.run_into(None, command, preexec_fn=lambda: os.close(1))
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, rb"^assay: standard output: closed")

    def test_a_file_never_takes_the_place_of_a_closed_output(self):
        folder = self.folder / "swept"
        gate = program.ROOT / "lab" / "gates" / "op-rope.json"
        done = self.run_into(
            None, ("gate", "sweep", gate, "--precision", "fp32", "--out", folder),
            preexec_fn=lambda: os.close(1),
        )  # fmt: skip
        self.assertEqual(done.returncode, 2, done.stderr)
        for path in folder.iterdir():
            self.assertNotIn(b"closed", path.read_bytes())
            if path.suffix == ".json":
                json.loads(path.read_text())

    def test_a_reader_that_goes_away_is_told_nothing(self):
        def ignore():
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)

        for prepare, status in ((None, -signal.SIGPIPE), (ignore, 2)):
            with self.subTest(status=status):
                reader, writer = os.pipe()
                os.close(reader)
                done = self.run_into(writer, ("forms",), preexec_fn=prepare)
                os.close(writer)
                self.assertEqual((done.returncode, done.stderr), (status, b""))


if __name__ == "__main__":
    unittest.main()
