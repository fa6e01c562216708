"""From receipts to the forms that a run uses: made, read, explained, refused."""

import json

import program
from program import ProgramTest

REQUEST = json.dumps({"state": "x", "model": "m", "questions": {"q": {"type": "noul", "instructions": "Is it so?"}}})
GATES = program.ROOT / "lab" / "gates"


class Selection(ProgramTest):
    def select(self):
        """Runs one op's gate for two forms, and makes a selection from the receipts."""
        receipts = self.folder / "receipts"
        for form in ("vector", "reference"):
            gate = GATES / "op-swiglu.json"
            self.succeed("gate", "run", gate, "--form", f"swiglu={form}", "--precision", "fp32", "--receipts", receipts)
        file = self.folder / "selection.json"
        text = self.succeed("lab", "select", "--receipts", receipts, "--gates", GATES, "--out", file)
        return file, text

    def test_receipts_become_choices_that_runs_follow(self):
        file, text = self.select()
        selection = json.loads(file.read_text())
        self.assertEqual(
            [(choice["op"], choice["precision"], choice["form"]) for choice in selection["choices"]],
            [("swiglu", "fp32", "vector"), ("swiglu", "bf16", "vector")],
            text,
        )
        self.assertIn("never timed", text)
        selection["choices"][0]["form"] = "reference"
        file.write_text(json.dumps(selection))
        chosen = {"ASSAY_SELECTION": str(file)}
        listing = json.loads(program.assay("forms", "--json", environment=chosen).stdout)
        self.assertEqual(listing["selection"], str(file))
        used = [form["form"] for form in listing["forms"] if form["op"] == "swiglu" and "fp32" in form["selected"]]
        self.assertEqual(used, ["reference"])
        gate = ("gate", "decision", "--model", program.run_dir("kev-tiny-dense"), "--precision", "fp32")
        fixture = ("--fixture", program.fixture_path("kev-tiny-dense"))
        run = program.assay(*gate, *fixture, environment=chosen)
        self.assertIn(b"swiglu=reference", run.stdout)
        overridden = program.assay(*gate, *fixture, "--form", "swiglu=vector", environment=chosen)
        self.assertIn(b"swiglu=vector", overridden.stdout)

    def test_every_choice_and_refusal_is_explained(self):
        file, _ = self.select()
        text = program.assay("forms", "--why", environment={"ASSAY_SELECTION": str(file)}).stdout.decode()
        self.assertIn(str(file), text)
        self.assertIn("gate op-swiglu passed", text)
        self.assertIn("no receipt of a gate for it", text)

    def test_an_edited_receipt_stops_the_selection(self):
        file, _ = self.select()
        receipt = next((self.folder / "receipts").iterdir())
        receipt.write_bytes(receipt.read_bytes().replace(b"PASS", b"FAIL", 1))
        before = file.read_bytes()
        arguments = ("--receipts", self.folder / "receipts", "--gates", GATES, "--out", file)
        self.assertIn(receipt.name, self.fail_with(2, "lab", "select", *arguments))
        self.assertEqual(file.read_bytes(), before)

    def test_a_selection_that_does_not_fit_is_an_error_not_a_fallback(self):
        file, _ = self.select()
        selection = json.loads(file.read_text())
        run = ("decide", "--model", program.run_dir("kev-tiny-dense"))
        for change, says in (
            ({"device": "cpu-of-another"}, "cpu-of-another"),
            ({"waiver": True}, "waiver"),
            ({"choices": [{**selection["choices"][0], "form": "imagined"}]}, "imagined"),
        ):
            file.write_text(json.dumps({**selection, **change}))
            chosen = {"ASSAY_SELECTION": str(file)}
            self.assertIn(says, self.fail_with(2, *run, stdin=REQUEST, environment=chosen))
        nowhere = {"ASSAY_SELECTION": "/nowhere.json"}
        self.assertIn("nowhere", self.fail_with(2, *run, stdin=REQUEST, environment=nowhere))
