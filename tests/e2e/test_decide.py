"""Answers to the recorded requests, and the ways to ask."""

import json
import os
import subprocess
import unittest

import program
from program import ProgramTest


def expected_answer(question, row):
    """A question's answer by the System One contract, from recorded probabilities."""
    p = row["probabilities"]
    kind = question["type"]
    mode = max(range(len(p)), key=p.__getitem__)
    if kind == "noul":
        return {"noul": p[1]}
    if kind == "choice":
        names = list(question["criteria"])
        spread = 1 - 1 / len(p)
        confidence = (p[mode] - 1 / len(p)) / spread if spread else 1.0
        return {"choice": names[mode], "confidence": confidence, "probabilities": dict(zip(names, p))}
    levels = question["criteria"]
    away = sum(abs(i - mode) * x for i, x in enumerate(p))
    return {
        "score": sum(i * x for i, x in enumerate(p)),
        "confidence": 1 - away / (len(p) - 1),
        "legend": {str(i): level for i, level in enumerate(levels)},
        "probabilities": {str(i): x for i, x in enumerate(p)},
    }


class Decide(ProgramTest):
    def assert_close(self, found, expected, tolerance, where):
        if isinstance(expected, dict):
            self.assertEqual(list(found), list(expected), where)
            for key in expected:
                self.assert_close(found[key], expected[key], tolerance, f"{where}.{key}")
        elif isinstance(expected, float):
            self.assertLessEqual(abs(found - expected), tolerance, where)
        else:
            self.assertEqual(found, expected, where)

    def check_response(self, response, record):
        questions = record["request"]["questions"]
        self.assertEqual(list(response["answers"]), list(questions), record["id"])
        self.assertEqual(response["model"], record["request"]["model"])
        for row in record["rows"]:
            name = row["question"]
            where = f"{record['id']}.{name}"
            raw = response["raw"][name]["probabilities"]
            self.assertLessEqual(max(abs(a - b) for a, b in zip(raw, row["probabilities"])), 1e-4, where)
            answer = dict(response["answers"][name])
            self.assertEqual(answer.pop("type"), row["type"])
            expected = expected_answer(questions[name], row)
            if "choice" in expected:
                self.check_choice(answer, expected, row["probabilities"], where)
            # Half a hundredth of rounding, and what fp32 may differ by.
            order = {key: answer[key] for key in expected}
            self.assert_close(order, expected, 0.005 + 1e-3, where)

    def check_choice(self, answer, expected, probabilities, where):
        top = sorted(probabilities, reverse=True)
        if len(top) > 1 and top[0] - top[1] <= 1e-3:
            expected["choice"] = answer["choice"]  # a tie may fall either way
        self.assertEqual(answer["choice"], expected["choice"], where)

    def test_recorded_requests_get_the_recorded_answers_in_the_order_asked(self):
        for checkpoint in program.CHECKPOINTS:
            records = program.fixture(checkpoint)["records"]
            requests = [record["request"] for record in records]
            responses = self.decide(program.run_dir(checkpoint), requests, "--precision", "fp32")
            self.assertEqual(len(responses), len(records))
            for response, record in zip(responses, records):
                with self.subTest(checkpoint=checkpoint, record=record["id"]):
                    self.check_response(response, record)

    def test_a_file_standard_input_and_a_stream_give_one_answer(self):
        request = program.fixture("kev-tiny-hybrid")["records"][1]["request"]
        text = json.dumps(request, ensure_ascii=False)
        path = self.folder / "request.json"
        path.write_text(text, encoding="utf-8")
        common = ("decide", "--model", program.run_dir("kev-tiny-hybrid"), "--raw")
        answers = [
            self.succeed(*common, "--request", path),
            self.succeed(*common, "--request", "-", stdin=text),
            self.succeed(*common, stdin=json.dumps(request, indent=2)),
            self.succeed(*common, "--jsonl", stdin=text + "\r\n\n"),
        ]
        responses = [json.loads(answer) for answer in answers]
        for response in responses:
            del response["latency_ms"]
            self.assertEqual(response, responses[0])

    def test_a_bad_line_gets_an_error_in_its_place_and_the_others_their_answers(self):
        request = program.fixture("kev-tiny-dense")["records"][0]["request"]
        lines = program.lines_of([request]) + '{"state": 1\n' + program.lines_of([request])
        done = program.assay("decide", "--model", program.run_dir("kev-tiny-dense"), "--jsonl", stdin=lines)
        self.assertEqual(done.returncode, 1)
        first, bad, last = (json.loads(line) for line in done.stdout.decode().splitlines())
        self.assertEqual(first["answers"], last["answers"])
        self.assertEqual(bad["error"]["line"], 2)

    def test_what_a_stream_says_of_a_line_names_the_line(self):
        request = program.fixture("kev-tiny-dense")["records"][0]["request"]
        lines = program.lines_of([request, {**request, "mood": 1}]) + "\n" + '{"state": 1\n'
        model = ("decide", "--model", program.run_dir("kev-tiny-dense"), "--jsonl")
        done = program.assay(*model, stdin=lines)
        self.assertIn("line 2: request.mood: an unknown field", done.stderr.decode())
        self.assertIn("standard input: 1 of 3 requests", done.stderr.decode())
        done = program.assay(*model, "--table", stdin=lines)
        self.assertEqual(done.returncode, 1)
        first, second, bad = done.stdout.decode().split("\n\n")
        self.assertTrue(first.startswith("line 1\nquestion"))
        self.assertTrue(second.startswith("line 2\nquestion"))
        self.assertTrue(bad.startswith("line 4: request"))

    def test_one_request_over_several_lines_is_recognised(self):
        model = ("decide", "--model", program.run_dir("kev-tiny-dense"), "--jsonl")
        request = program.ROOT / "examples" / "ticket.json"
        message = self.fail_with(1, *model, "--request", request)
        self.assertIn("leave --jsonl out", message)
        self.assertNotIn("leave --jsonl out", self.fail_with(1, *model, stdin='{"state": 1\n'))

    def test_a_pipe_without_a_writer_is_waited_for_and_said_so(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        model = program.run_dir("kev-tiny-dense")
        waiting = subprocess.Popen(
            [program.PROGRAM, "decide", "--model", str(model), "--request", str(pipe)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.assertIn("nobody has written to", waiting.stderr.readline().decode())
        pipe.write_bytes((program.ROOT / "examples" / "ticket.json").read_bytes())
        out, errors = waiting.communicate(timeout=program.TIMEOUT)
        self.assertEqual(waiting.returncode, 0, errors.decode())
        self.assertIn("answers", json.loads(out))

    def test_a_folder_of_requests_is_refused_with_advice(self):
        said = self.fail_with(2, "decide", "--model", program.run_dir("kev-tiny-dense"), "--request", self.folder)
        self.assertIn("a directory; expected a file of requests", said)

    def test_the_table_has_a_line_for_every_question(self):
        text = self.succeed(
            "decide", "--model", program.run_dir("kev-tiny-hybrid"), "--table",
            "--request", program.ROOT / "examples" / "ticket.json",
        )  # fmt: skip
        for word in ("angry", "team", "urgency", "noul", "choice", "score"):
            self.assertIn(word, text)

    def test_usage_counts_every_token_once(self):
        record = program.fixture("kev-tiny-hybrid")["records"][1]
        rows = record["rows"]
        tokens = len(rows[0]["state_ids"]) + sum(len(row["branch_ids"]) for row in rows)
        (response,) = self.decide(program.run_dir("kev-tiny-hybrid"), [record["request"]])
        self.assertEqual(response["usage"]["input_tokens"], tokens)


if __name__ == "__main__":
    unittest.main()
