"""Gates from their files: run, swept over forms, bisected; what they leave behind; what they refuse."""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import unittest

import program
from program import ProgramTest

GATES = program.ROOT / "lab" / "gates"
HYBRID = "kev-tiny-hybrid"


def taps_path(checkpoint):
    return program.DATA / f"{checkpoint}.fixture.taps.safetensors"


def on(checkpoint, fixture=None):
    return ("--model", program.run_dir(checkpoint), "--fixture", fixture or program.fixture_path(checkpoint))


class GateFiles(ProgramTest):
    def receipts(self):
        return [json.loads(path.read_text()) for path in sorted((self.folder / "receipts").glob("*.json"))]

    def changed(self, gate, change):
        """A copy of one of the project's gates with one thing otherwise."""
        document = json.loads((GATES / gate).read_text())
        change(document)
        path = self.folder / gate
        path.write_text(json.dumps(document))
        return path

    def test_a_run_leaves_a_receipt_that_names_the_gate_by_its_hash(self):
        gate = GATES / "decision-fp32.json"
        out = self.succeed("gate", "run", gate, *on(HYBRID), "--json", "--receipts", self.folder / "receipts")
        self.assertEqual(json.loads(out)["result"], "PASS")
        (receipt,) = self.receipts()
        self.assertEqual(receipt["kind"], "gate")
        self.assertEqual(receipt["subject"]["gate"]["sha256"], hashlib.sha256(gate.read_bytes()).hexdigest())
        self.assertEqual({arm["outcome"] for arm in receipt["result"]["red_arms"].values()}, {"RED"})

    def test_a_threshold_that_the_run_misses_is_exit_status_1(self):
        gate = self.changed("decision-bf16.json", lambda gate: gate["thresholds"].update(max_abs_dp=1e-9))
        done = program.assay("gate", "run", gate, *on(HYBRID))
        self.assertEqual(done.returncode, 1, done.stderr.decode())
        self.assertTrue(done.stdout.decode().endswith("FAIL\n"))

    def test_a_gate_whose_red_arm_passes_fails(self):
        def blunt(gate):
            gate["thresholds"]["nrmse"] = 10
            gate["red_arms"] = [{"arm": "scaled_output", "factor": 1.5}]

        out = self.changed("op-rope.json", blunt)
        done = program.assay("gate", "run", out, "--json")
        self.assertEqual(done.returncode, 1)
        report = json.loads(done.stdout)
        self.assertEqual((report["run"]["result"], report["result"]), ("PASS", "FAIL"))
        self.assertEqual(report["red_arms"]["scaled_output"]["outcome"], "GREEN")

    def test_a_sweep_writes_one_table_as_text_json_and_a_page(self):
        dense = "kev-tiny-dense"
        self.succeed(
            "gate", "sweep", GATES / "taps-fp32.json", *on(HYBRID, taps_path(HYBRID)), *on(dense, taps_path(dense)),
            "--vary", "gated_delta_rule", "--precision", "fp32", "--out", self.folder / "out",
            "--receipts", self.folder / "receipts",
        )  # fmt: skip
        table = json.loads((self.folder / "out" / "sweep.json").read_text())
        rows = table["result"]["rows"]
        self.assertIn("not run", {row["result"] for row in rows})
        self.assertNotIn("FAIL", {row["result"] for row in rows})
        names = {path.stem for path in (self.folder / "receipts").glob("*.json")}
        self.assertLessEqual({row["receipt"] for row in rows if row["result"] == "PASS"}, names)
        self.assertIn("PASS", (self.folder / "out" / "sweep.txt").read_text())
        page = (self.folder / "out" / "sweep.html").read_text()
        self.assertIn("prefers-color-scheme", page)
        self.assertNotIn("://", page)

    def test_a_bisection_names_layers_and_tensor_sets(self):
        gate = self.changed("taps-fp32.json", lambda gate: gate["subject"].pop("precision"))
        out = self.succeed(
            "gate", "bisect", gate, *on(HYBRID, taps_path(HYBRID)), "--precision", "bf16",
            "--form", "matmul=reference_bf16", "--elsewhere", "matmul=vector", "--json",
            "--receipts", self.folder / "receipts",
        )  # fmt: skip
        report = json.loads(out)["result"]
        self.assertEqual((report["everywhere"]["result"], report["nowhere"]["result"]), ("FAIL", "PASS"))
        self.assertTrue(report["parts"])
        self.assertEqual([receipt["kind"] for receipt in self.receipts()], ["bisect"])

    def sweep(self, *more):
        gates = [GATES / f"op-{op}.json" for op in ("rope", "swiglu", "embed", "gated_delta_rule", "attention")]
        return ["gate", "sweep", *gates, "--precision", "fp32", "--vary", "gated_delta_rule",
                "--receipts", self.folder / "receipts", *more]  # fmt: skip

    def test_a_sweep_that_is_stopped_keeps_the_rows_that_are_done(self):
        sweep = subprocess.Popen(
            [program.PROGRAM, *map(str, self.sweep("--out", self.folder / "out"))],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "ASSAY_SELECTION": "off"},
        )  # fmt: skip
        self.assertIn("sweep: row 1 of ", sweep.stderr.readline().decode())
        sweep.send_signal(signal.SIGINT)
        out, errors = sweep.communicate(timeout=program.TIMEOUT)
        self.assertEqual(sweep.returncode, 2, errors.decode())
        self.assertIn("stopped by a signal", errors.decode())
        self.assertIn("INCOMPLETE: ", out.decode())
        document = json.loads((self.folder / "out" / "sweep.json").read_text())
        self.assertIn("rows done", document["incomplete"])
        rows = document["result"]["rows"]
        self.assertEqual(rows[0]["result"], "PASS")
        self.assertIn("INCOMPLETE", (self.folder / "out" / "sweep.html").read_text())
        self.assertIn("INCOMPLETE", (self.folder / "out" / "sweep.txt").read_text())
        self.assertEqual([receipt["kind"] for receipt in self.receipts()], ["gate"] * len(rows))

    def test_a_table_that_cannot_be_printed_leaves_no_receipt(self):
        command = ["gate", "run", GATES / "op-rope.json", "--receipts", self.folder / "receipts"]
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [program.PROGRAM, *map(str, command)], stdout=full, stderr=subprocess.PIPE, timeout=program.TIMEOUT
            )
        self.assertEqual(done.returncode, 2)
        self.assertIn("standard output", done.stderr.decode())
        self.assertEqual(self.receipts(), [])

    def test_a_folder_that_takes_no_receipt_is_found_first(self):
        (self.folder / "receipts").write_text("a file in the way")
        for command in (self.sweep(), ["gate", "run", GATES / "op-rope.json", "--receipts", self.folder / "receipts"]):
            done = program.assay(*command)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertIn("nothing was run yet", done.stderr.decode())

    def test_names_from_files_steer_no_terminal(self):
        gate = self.changed("op-rope.json", lambda gate: gate.update(name="x\x1b[2J\nPASS\u202e"))
        fixture = self.folder / "f\x1b[31m.json"
        fixture.write_text("{}")
        for command in (
            ("gate", "run", gate),
            ("gate", "sweep", gate, "--precision", "fp32"),
            ("gate", "run", gate, "--precision", "bf16", "--fixture", fixture),
        ):
            done = program.assay(*command)
            for text in (done.stdout.decode(), done.stderr.decode()):
                self.assertFalse(set("\x1b\u202e") & set(text), text)
                self.assertNotIn("\nPASS\\x", text)

    def test_bad_gates_and_fixtures_are_errors_that_name_file_and_field(self):
        def expect(part, change, *options, gate="decision-fp32.json"):
            with self.subTest(part=part):
                self.assertIn(part, self.fail_with(2, "gate", "run", self.changed(gate, change), *options))

        model = on(HYBRID)
        expect("unknown field 'treshold'", lambda gate: gate.update(treshold=1), *model)
        expect("thresholds.max_abs_dp", lambda gate: gate["thresholds"].update(max_abs_dp=-1), *model)
        expect("no field 'max_abs_dp'", lambda gate: gate["thresholds"].pop("max_abs_dp"), *model)
        expect("not JSON", lambda gate: gate["thresholds"].update(max_abs_dp=float("nan")), *model)
        other = self.folder / "other.json"
        other.write_text(json.dumps({**program.fixture(HYBRID), "temperature": 9.5}))
        expect("use the fixture that was made with this checkpoint", lambda gate: None, *on(HYBRID, other))
        expect("taps of 3 layers", lambda gate: None, *on(HYBRID, taps_path("kev-tiny-dense")), gate="taps-fp32.json")
        expect("none.json", lambda gate: None, *on(HYBRID, self.folder / "none.json"))
        expect("a run at bf16", lambda gate: None, *model, "--precision", "bf16")
        expect("no such form", lambda gate: None, *model, "--form", "rope=fast")
        empty = self.folder / "empty.json"
        fixture = program.fixture(HYBRID)
        fixture["records"] = []
        empty.write_text(json.dumps(fixture))
        expect("no records", lambda gate: None, *on(HYBRID, empty))
        expect("that the gate pins", lambda gate: gate.update(
            fixtures=[{"path": str(program.fixture_path(HYBRID)), "sha256": "0" * 64}]), *model[:2])  # fmt: skip
        self.assertIn("none.json", self.fail_with(2, "gate", "run", pathlib.Path("none.json")))


if __name__ == "__main__":
    unittest.main()
