"""The measure runs on synthetic weights and reports what it says it reports."""

import json
import unittest

from program import ProgramTest


class Bench(ProgramTest):
    COMMAND = ("bench", "decision", "--shape", "kev-tiny", "--rows", "40,94", "--questions", "1,6", "--repeat", "2")

    def test_the_json_report_holds_every_case_and_its_sums_hold(self):
        report = json.loads(self.succeed(*self.COMMAND, "--json"))
        cases = [(case["row_tokens"], case["questions"], case["total_tokens"]) for case in report["cases"]]
        self.assertEqual(cases, [(40, 1, 40), (40, 6, 200), (94, 1, 94), (94, 6, 254)])
        for case in report["cases"]:
            self.assertEqual(len(case["samples_milliseconds"]), 2)
            self.assertLessEqual(sum(op["share"] for op in case["ops"]), 1.0)
            work = sum(case["operations"].values())
            rate = work / (case["milliseconds"]["median"] * 1e-3) * 1e-12
            self.assertAlmostEqual(rate, case["tflops"], delta=1e-6 * rate)
        self.assertGreater(report["peak_bytes"], report["weight_bytes"])

    def test_the_table_names_shape_forms_and_every_row(self):
        text = self.succeed(*self.COMMAND, "--precision", "fp32", "--form", "gated_delta_rule=reference")
        for words in ("kev-tiny", "fp32", "gated_delta_rule=reference", "TFLOP/s"):
            self.assertIn(words, text)

    def test_numbers_out_of_range_and_unknown_shapes_are_refused(self):
        self.assertIn("--rows", self.fail_with(2, "bench", "decision", "--shape", "kev-tiny", "--rows", "32"))
        self.assertIn("kev-4b", self.fail_with(2, "bench", "decision", "--shape", "kev-9t"))


if __name__ == "__main__":
    unittest.main()
