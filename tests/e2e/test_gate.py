"""The gate passes what equals the oracle, fails what does not, and admits every form of the recurrence."""

import json
import math
import unittest

import program
from program import ProgramTest


def form_names(op):
    listing = json.loads(program.assay("forms", "--json").stdout)
    return [form["form"] for form in listing["forms"] if form["op"] == op and form["supported"]]


class Gate(ProgramTest):
    def gate(self, checkpoint, *options, fixture=None):
        return program.assay(
            "gate", "decision", "--model", program.run_dir(checkpoint),
            "--fixture", fixture or program.fixture_path(checkpoint), *options,
        )  # fmt: skip

    def assert_pass(self, done):
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr).decode())

    def tampered(self, change, change_all=lambda fixture: None):
        """The hybrid's fixture with one thing wrong."""
        fixture = program.fixture("kev-tiny-hybrid")
        if change:
            change(fixture["records"])
        change_all(fixture)
        path = self.folder / "tampered.json"
        path.write_text(json.dumps(fixture), encoding="utf-8")
        return path

    def first_records(self, checkpoint, count):
        """The head of a fixture, for forms so slow that the whole would take minutes."""
        fixture = program.fixture(checkpoint)
        del fixture["records"][count:]
        path = self.folder / f"{checkpoint}-{count}.json"
        path.write_text(json.dumps(fixture), encoding="utf-8")
        return path

    def assert_red(self, change):
        done = self.gate("kev-tiny-hybrid", "--precision", "fp32", fixture=self.tampered(change))
        self.assertEqual(done.returncode, 1, (done.stdout + done.stderr).decode())
        self.assertIn("FAIL", done.stdout.decode())

    def test_both_checkpoints_pass_at_both_precisions(self):
        for checkpoint in program.CHECKPOINTS:
            for precision in ("fp32", "bf16"):
                with self.subTest(checkpoint=checkpoint, precision=precision):
                    done = self.gate(checkpoint, "--precision", precision)
                    self.assert_pass(done)
                    self.assertIn("PASS", done.stdout.decode())

    def test_every_supported_form_of_every_op_passes(self):
        ops = {form["op"] for form in json.loads(program.assay("forms", "--json").stdout)["forms"]}
        self.assertIn("gated_delta_rule", ops)
        # Songs alone run convolutions: their forms have gates of their own, and no decision changes with them.
        songs = {"conv1d", "conv_transpose1d", "snake"}
        for op in sorted(ops - songs - {"matmul"}):
            for form in form_names(op):
                # The recurrence is what differs most between forms; the rest is in the hybrid too.
                whole = op == "gated_delta_rule"
                for checkpoint in program.CHECKPOINTS if whole else program.CHECKPOINTS[:1]:
                    with self.subTest(checkpoint=checkpoint, form=f"{op}={form}"):
                        fixture = program.fixture_path(checkpoint) if whole else self.first_records(checkpoint, 8)
                        options = ("--precision", "fp32", "--form", f"{op}={form}")
                        self.assert_pass(self.gate(checkpoint, *options, fixture=fixture))

    def test_every_supported_form_of_matmul_passes_at_its_precision(self):
        listing = json.loads(program.assay("forms", "--json").stdout)["forms"]
        for form in listing:
            if form["op"] != "matmul" or not form["supported"]:
                continue
            with self.subTest(form=form["form"]):
                options = ("--precision", form["precision"], "--form", f"matmul={form['form']}")
                plain = form["form"].startswith("reference")
                fixture = self.first_records("kev-tiny-hybrid", 4) if plain else None
                self.assert_pass(self.gate("kev-tiny-hybrid", *options, fixture=fixture))

    def test_the_red_arms_fail_and_so_the_whole_gate_passes(self):
        for checkpoint in program.CHECKPOINTS:
            with self.subTest(checkpoint=checkpoint):
                self.assert_pass(self.gate(checkpoint, "--red"))

    def test_a_fixture_with_the_states_of_other_records_fails(self):
        def swap_states(records):
            states = [record["request"]["state"] for record in records]
            for record, state in zip(records, states[1:] + states[:1]):
                record["request"]["state"] = state

        self.assert_red(swap_states)

    def test_one_wrong_answer_fails(self):
        def shift(records):
            row = records[3]["rows"][0]
            row["logits"][0] += 0.2
            weights = [math.exp(logit) for logit in row["logits"]]
            row["probabilities"] = [weight / sum(weights) for weight in weights]

        self.assert_red(shift)

    def refuse(self, *says, checkpoint="kev-tiny-hybrid", fixture=None):
        done = self.gate(checkpoint, "--precision", "fp32", fixture=fixture)
        message = done.stderr.decode()
        self.assertEqual(done.returncode, 2, message or done.stdout.decode())
        for words in says:
            self.assertIn(words, message)

    def test_a_fixture_of_another_model_is_an_error_and_no_verdict(self):
        hybrid, dense = program.CHECKPOINTS
        self.refuse("fixture.json: checkpoint", "qwen3_5", fixture=program.fixture_path(hybrid), checkpoint=dense)
        self.refuse("fixture.json: checkpoint", "qwen3,", fixture=program.fixture_path(dense))

        def rename(fixture):
            fixture["checkpoint"]["head_sha256"] = "0" * 64

        self.refuse("checkpoint", "head 000000000000", fixture=self.tampered(None, rename))

    def test_a_fixture_that_does_not_say_its_checkpoint_is_taken(self):
        fixture = self.tampered(None, lambda fixture: fixture.pop("checkpoint"))
        self.assert_pass(self.gate("kev-tiny-hybrid", "--precision", "fp32", fixture=fixture))

    def test_a_fixture_that_contradicts_itself_is_an_error_and_no_verdict(self):
        def shift(records):
            records[3]["rows"][0]["probabilities"][0] += 0.03

        self.refuse("records[3].rows[0].probabilities: a sum of 1.03", fixture=self.tampered(shift))

        def zero(records):
            records[3]["rows"][0]["logits"] = [0.0] * len(records[3]["rows"][0]["logits"])

        self.refuse("records[3].rows[0].probabilities[0]", "softmax", fixture=self.tampered(zero))
        text = program.fixture_path("kev-tiny-hybrid").read_text(encoding="utf-8")
        twice = self.folder / "twice.json"
        twice.write_text(text[:-1] + ', "records": []}', encoding="utf-8")
        self.refuse("twice.json.records: given more than once", fixture=twice)

    def test_a_record_that_cannot_be_run_is_named(self):
        def lengthen(records):
            records[3]["request"]["state"] = "7" * 9000

        self.refuse("tampered.json: r003: state", fixture=self.tampered(lengthen))

    def test_the_report_as_json_says_what_the_verdict_rests_on(self):
        done = self.gate("kev-tiny-dense", "--precision", "fp32", "--json")
        self.assert_pass(done)
        report = json.dumps(json.loads(done.stdout))
        self.assertIn("PASS", report)


if __name__ == "__main__":
    unittest.main()
