"""What a machine can do and what a model costs on it: measured, judged and written as receipts."""

import hashlib
import json
import unittest
import xml.etree.ElementTree

from program import CHECKPOINTS, ProgramTest, fixture, run_dir


class LabCost(ProgramTest):
    def receipt(self, kind, *arguments):
        """The one receipt that a measurement writes; standard output is its result as JSON."""
        folder = self.folder / "receipts" / kind
        result = json.loads(self.succeed("lab", *arguments, "--json", "--receipts", folder))
        (path,) = folder.iterdir()
        self.assertEqual(path.stem, hashlib.sha256(path.read_bytes()).hexdigest())
        body = json.loads(path.read_text())
        self.assertEqual(body["kind"], kind)
        self.assertEqual(body["result"], result)
        return path, body

    def test_ceilings_are_measured_and_a_profile_uses_them(self):
        path, body = self.receipt("ceilings", "ceilings", "--threads", "1", "--repetitions", "3")
        self.assertEqual(body["subject"]["threads"], [1])
        self.assertIn("fp32_fma", [peak["kernel"] for peak in body["result"]["peaks"]])
        self.assertEqual(len(body["result"]["bandwidths"]), 12)

        trace = self.folder / "trace.json"
        request = self.folder / "request.json"
        request.write_text(json.dumps(fixture(CHECKPOINTS[0])["records"][0]["request"]))
        model = ("--model", run_dir(CHECKPOINTS[0]), "--threads", "1", "--ceilings", path)
        _, profile = self.receipt("profile", "profile", *model, "--request", request, "--trace", trace)
        self.assertEqual(profile["subject"]["ceilings"], path.stem)
        result = profile["result"]
        self.assertAlmostEqual(
            sum(line["milliseconds"] for line in result["lines"]) + result["unaccounted_milliseconds"],
            result["wall_milliseconds"],
            places=6,
        )
        self.assertIn("matmul", [line["op"] for line in result["lines"]])
        events = json.loads(trace.read_text())["traceEvents"]
        ops = [event for event in events if event["ph"] == "X" and event["cat"] == "op"]
        self.assertEqual(len(ops), round(3 * sum(line["calls"] for line in result["lines"])))

    def test_ceilings_of_other_threads_or_no_ceilings_are_refused(self):
        path, _ = self.receipt("ceilings", "ceilings", "--threads", "1", "--repetitions", "3")
        model = ("--model", run_dir(CHECKPOINTS[0]), "--tokens", "8")
        message = self.fail_with(2, "lab", "profile", *model, "--threads", "3", "--ceilings", path)
        self.assertIn("3 threads", message)
        edited = self.folder / path.name
        edited.write_text(path.read_text().replace('"repetitions": 3', '"repetitions": 4'))
        self.assertIn("SHA-256", self.fail_with(2, "lab", "profile", *model, "--ceilings", edited))

    def test_a_call_cost_has_a_curve_for_every_set_of_forms_and_a_drawing(self):
        drawing = self.folder / "cost.svg"
        _, body = self.receipt(
            "call-cost", "call-cost", "--model", run_dir(CHECKPOINTS[0]), "--lengths", "1,8,17,33,40", "--rounds", "3",
            "--forms", "default", "--forms", "gated_delta_rule=vector,attention=reference", "--plot", drawing,
        )
        labels = [curve["label"] for curve in body["result"]["curves"]]
        self.assertEqual(labels, ["default", "attention=reference,gated_delta_rule=vector"])
        for curve in body["result"]["curves"]:
            self.assertEqual([point["tokens"] for point in curve["points"]], [1, 8, 17, 33, 40])
            self.assertIn(curve["fit"]["chosen"], ("line", "tiles", "pieces"))
        svg = xml.etree.ElementTree.fromstring(drawing.read_text())
        self.assertEqual(len(svg.findall(".//{http://www.w3.org/2000/svg}circle")), 2 * 5 + 2)

    def test_a_footprint_is_a_fresh_processs_and_grows_by_what_is_loaded(self):
        _, body = self.receipt("footprint", "footprint", "--model", run_dir(CHECKPOINTS[0]), "--tokens", "128")
        stages = body["result"]["process"]["stages"]
        self.assertEqual([stage["stage"] for stage in stages], ["start", "loaded", "first use", "end"])
        self.assertLess(stages[0]["resident"], stages[1]["resident"])
        for stage in stages:
            self.assertEqual(stage["resident"], stage["anonymous"] + stage["file_mapped"])
            self.assertLessEqual(stage["proportional"], stage["resident"])
        # The kernel's counter behind the peak may lag by some pages; the stages are exact.
        slack = 4 << 20
        self.assertGreaterEqual(body["result"]["process"]["peak"] + slack, stages[-1]["resident"])
        self.assertEqual([device["device"] for device in body["result"]["devices"]], ["cpu"])

    def test_neither_checkpoint_keeps_growing_while_call_lengths_change(self):
        for checkpoint in CHECKPOINTS:
            folder = self.folder / checkpoint
            text = self.succeed(
                "lab", "footprint", "--growth", "--model", run_dir(checkpoint), "--shortest", "1", "--tokens", "256",
                "--calls", "240", "--receipts", folder,
            )
            self.assertIn("verdict: not growing", text)
            (path,) = folder.iterdir()
            body = json.loads(path.read_text())
            self.assertEqual(body["result"]["distinct_lengths"], 240)
            self.assertEqual(len(body["result"]["held_bytes"]), 240)

    def test_bad_input_is_named_and_nothing_is_written(self):
        model = ("--model", run_dir(CHECKPOINTS[0]))
        cases = {
            "--model, --shape": ("call-cost",),
            "kev-0.8b": ("call-cost", "--shape", "kev-9t"),
            "--lengths": ("call-cost", *model, "--lengths", "1,2"),
            "--plot": ("call-cost", *model, "--plot", "drawing.png"),
            "--form": ("call-cost", *model, "--forms", "matmul"),
            "--threads": ("ceilings", "--threads", "100000"),
            "--repetitions": ("ceilings", "--repetitions", "1"),
            "--tokens": ("footprint", *model, "--tokens", "1"),
            "threshold": ("footprint", "--growth", *model, "--threshold", "0"),
            "no-such-request.json": ("profile", *model, "--request", "no-such-request.json"),
            "no-such-receipt.json": ("profile", *model, "--ceilings", "no-such-receipt.json"),
            "--precision": ("profile", *model, "--precision", "int4"),
        }
        for words, arguments in cases.items():
            receipts = self.folder / "none"
            self.assertIn(words, self.fail_with(2, "lab", *arguments, "--receipts", receipts))
            # The folder is made before anything is measured, so that no measurement is lost; it stays empty.
            self.assertEqual(list(receipts.glob("*")), [])

    def test_the_process_behind_a_footprint_is_in_no_help(self):
        self.assertNotIn("footprint-process", self.succeed("lab", "--help"))


if __name__ == "__main__":
    unittest.main()
