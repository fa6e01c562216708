"""The examples in the documentation print what they are said to print."""

import os
import re
import subprocess
import unittest

import program
from program import ProgramTest

PAGES = ("docs/decide.md", "docs/compose.md")
# What no two runs share.
TIMES = re.compile(r"\d+\.\d+ ms|(?<=\"latency_ms\":)[\d.]+")


def examples(page):
    """(command, output) of every command after a "$ " in a block of the page."""
    for block in re.findall(r"^```\n(\$ .*?)^```", page, re.MULTILINE | re.DOTALL):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = example.partition("\n")
            yield command, output


class Documentation(ProgramTest):
    def run_example(self, command):
        (self.folder / "assay").unlink(missing_ok=True)
        (self.folder / "assay").symlink_to(program.PROGRAM)
        done = subprocess.run(
            ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=program.ROOT,
            timeout=program.TIMEOUT,
            env={**os.environ, "ASSAY_SELECTION": "off", "PATH": f"{self.folder}:{os.environ['PATH']}"},
        )  # fmt: skip
        return done.stdout.decode()

    def test_every_example_prints_what_the_page_says(self):
        for page in PAGES:
            found = list(examples((program.ROOT / page).read_text(encoding="utf-8")))
            self.assertGreater(len(found), 3, page)
            for command, output in found:
                with self.subTest(page=page, command=command):
                    self.assertEqual(TIMES.sub("…", self.run_example(command)), TIMES.sub("…", output))


if __name__ == "__main__":
    unittest.main()
