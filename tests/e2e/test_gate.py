"""The gate passes what equals the oracle, fails what does not, and admits every form of the recurrence."""

import json
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

    def tampered(self, change):
        """The hybrid's fixture with one thing wrong."""
        fixture = program.fixture("kev-tiny-hybrid")
        change(fixture["records"])
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
        for op in sorted(ops - {"matmul"}):
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

    def test_one_wrong_probability_fails(self):
        def shift(records):
            probabilities = records[3]["rows"][0]["probabilities"]
            probabilities[0], probabilities[-1] = probabilities[0] + 0.03, probabilities[-1] - 0.03

        self.assert_red(shift)

    def test_the_report_as_json_says_what_the_verdict_rests_on(self):
        done = self.gate("kev-tiny-dense", "--precision", "fp32", "--json")
        self.assert_pass(done)
        report = json.dumps(json.loads(done.stdout))
        self.assertIn("PASS", report)


if __name__ == "__main__":
    unittest.main()
