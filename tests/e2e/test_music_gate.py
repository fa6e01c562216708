"""The music gate: the oracle's songs stage by stage, red arms, fixtures that are not of the model."""

import json
import shutil
import unittest

import program
from program import ProgramTest

MODEL = program.DATA / "ace-tiny"
FIXTURE = program.DATA / "ace-tiny.fixture.json"
ON = ("--model", MODEL, "--fixture", FIXTURE)
# Shorter songs, for what runs them often.
SHORT = ("--model", program.ROOT / "models/assay-mini-compose", "--fixture", program.DATA / "assay-mini-compose.fixture.json")
GATES = program.ROOT / "lab" / "gates"


class MusicGate(ProgramTest):
    def test_every_stage_of_every_song_is_the_oracles(self):
        report = json.loads(self.succeed("gate", "music", *ON, "--json"))
        self.assertEqual(report["result"], "PASS")
        cases = json.loads(FIXTURE.read_text(encoding="utf-8"))["cases"]
        self.assertEqual(report["run"]["cases"], len(cases))
        arrays = report["run"]["arrays_by_name"]
        for case in cases:
            for stage in ("condition", "velocity_first", "velocity_last", "latents", "wav"):
                self.assertLessEqual(arrays[f"{case['id']}.{stage}"]["nrmse"], 1e-4)
        for extra in ("a.text_hidden", "e.src_latents", "e.codes"):
            self.assertLessEqual(arrays[extra]["nrmse"], 1e-4)

    def test_the_projects_gates_pass_and_their_red_arms_are_red(self):
        for precision in ("fp32", "bf16"):
            gate = GATES / f"music-{precision}.json"
            report = json.loads(self.succeed("gate", "run", gate, *ON, "--json"))
            self.assertEqual({arm["outcome"] for arm in report["red_arms"].values()}, {"RED"}, precision)

    def copy_fixture(self, change):
        document = json.loads(FIXTURE.read_text(encoding="utf-8"))
        change(document)
        path = self.folder / "other.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        shutil.copyfile(FIXTURE.with_suffix(".safetensors"), path.with_suffix(".safetensors"))
        return path

    def test_a_fixture_that_does_not_fit_is_refused_with_the_reason(self):
        def expect(part, change):
            self.assertIn(part, self.fail_with(2, "gate", "music", "--model", MODEL, "--fixture", self.copy_fixture(change)))

        expect("unknown field 'guidance'", lambda fixture: fixture["cases"][0].update(guidance=2))
        expect("token ids", lambda fixture: fixture["cases"][0]["text_ids"].__setitem__(0, 7))
        expect("a tensor", lambda fixture: fixture["cases"].pop())
        message = self.fail_with(2, "gate", "music", "--model", MODEL, "--fixture", self.folder / "none.json")
        self.assertIn("none.json", message)

    def test_a_sweep_runs_every_form_over_the_songs(self):
        self.succeed(
            "gate", "sweep", GATES / "music-fp32.json", *SHORT, "--vary", "conv_transpose1d", "--precision", "fp32",
            "--out", self.folder / "out", "--receipts", self.folder / "receipts",
        )  # fmt: skip
        rows = json.loads((self.folder / "out" / "sweep.json").read_text())["result"]["rows"]
        self.assertIn("conv_transpose1d=reference", {row["form"] for row in rows})
        names = {path.stem for path in (self.folder / "receipts").glob("*.json")}
        for row in rows:
            self.assertEqual((row["result"], set(row["red_arms"].values())), ("PASS", {"RED"}), row["form"])
            self.assertIn(row["receipt"], names)
        self.assertIn("conv_transpose1d=vector", (self.folder / "out" / "sweep.html").read_text())


if __name__ == "__main__":
    unittest.main()
