"""A request for which there is no memory is that request's error. (Not under a sanitizer, which needs more.)"""

import json
import resource
import subprocess
import unittest

import program
from program import ProgramTest

MIB = 1 << 20


def request(state, questions=1):
    question = {"type": "noul", "instructions": "Is it so?"}
    return {"state": state, "questions": {f"q{i}": question for i in range(questions)}}


class Memory(ProgramTest):
    def decide(self, lines, limit):
        done = subprocess.run(
            [program.PROGRAM, "decide", "--jsonl", "--threads", "2", "--model", program.run_dir("kev-tiny-dense")],
            input=lines.encode(), capture_output=True, timeout=program.TIMEOUT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )  # fmt: skip
        self.assertNotIn(b"internal", done.stderr)
        return done

    def enough_for(self, lines):
        """The least limit, in steps of 8 MiB, under which the lines are answered."""
        for limit in range(8 * MIB, 1024 * MIB, 8 * MIB):
            if self.decide(lines, limit).returncode == 0:
                return limit
        self.fail("a small request needs a gigabyte")

    def test_a_line_without_memory_gets_an_error_and_the_next_one_its_answer(self):
        small = program.lines_of([request("It rains.")])
        limit = self.enough_for(small * 3)
        for name, large in (
            ("tokens", json.dumps(request("7" * 8000, 20))),
            ("values", json.dumps({"state": [[]] * 900_000})),
            ("text", json.dumps(request("a" * 30_000_000))),
            ("line", "x" * 33_000_000),
        ):
            with self.subTest(large=name):
                done = self.decide(small + large + "\n" + small, limit)
                self.assertEqual(done.returncode, 1, done.stderr)
                first, bad, last = (json.loads(line) for line in done.stdout.splitlines())
                self.assertEqual(first["answers"], last["answers"])
                self.assertEqual((bad["error"]["line"], bad["error"]["kind"]), (2, "limit exceeded"))
                self.assertIn("out of memory", bad["error"]["message"])


if __name__ == "__main__":
    unittest.main()
