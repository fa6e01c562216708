"""The same weights in another layout give the same answers."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import program
from program import ProgramTest


def oracle(script, *arguments):
    command = [sys.executable, "-B", program.ROOT / "oracle" / script, *arguments]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


class Checkpoints(ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.made = pathlib.Path(folder.name)
        cls.requests, cls.plain = {}, {}
        for name in program.CHECKPOINTS:
            oracle("make_variants.py", program.run_dir(name), cls.made / name)
            cls.requests[name] = [record["request"] for record in program.fixture(name)["records"]]

    def answers(self, name, model, **options):
        done = self.succeed(
            "decide", "--model", model, "--jsonl", "--raw", "--precision", "fp32",
            stdin=program.lines_of(self.requests[name]), **options,
        )  # fmt: skip
        return [program.json.loads(line)["raw"] for line in done.splitlines()]

    def plain_answers(self, name):
        if name not in self.plain:
            self.plain[name] = self.answers(name, program.run_dir(name))
        return self.plain[name]

    def check_same_bits(self, variant, **options):
        for name in program.CHECKPOINTS:
            with self.subTest(checkpoint=name):
                answers = self.answers(name, self.made / name / variant / "run", **options)
                self.assertEqual(answers, self.plain_answers(name))

    def check_close(self, name, model, tolerance):
        pairs = zip(self.answers(name, model), self.plain_answers(name))
        worst = max(
            abs(p - q)
            for found, plain in pairs
            for question in plain
            for p, q in zip(found[question]["probabilities"], plain[question]["probabilities"])
        )
        self.assertLessEqual(worst, tolerance)

    def test_names_of_a_multimodal_model_and_its_other_parts_ignored(self):
        self.check_same_bits("language-model-prefix")

    def test_three_shards_with_an_index(self):
        self.check_same_bits("sharded")

    def test_rank_stabilised_adapter(self):
        self.check_same_bits("rslora")

    def test_text_model_nested_in_the_configuration(self):
        self.check_same_bits("nested-config")

    def test_base_named_by_its_hub_id_and_found_in_the_local_cache(self):
        for name in program.CHECKPOINTS:
            home = self.made / name / "hf-cache"
            with self.subTest(checkpoint=name):
                answers = self.answers(name, home / "run", environment={"HF_HOME": str(home)})
                self.assertEqual(answers, self.plain_answers(name))

    def test_fp16_base(self):
        for name in program.CHECKPOINTS:
            with self.subTest(checkpoint=name):
                self.check_close(name, self.made / name / "fp16" / "run", 1e-5)

    def test_gguf_of_every_supported_type(self):
        # f32 is exact but for exp(A_log), which the converter rounds; the others round every weight. What a type does to
        # the dense model's tensors it does to the hybrid's too.
        for kind, tolerance in {"f32": 1e-4, "f16": 0.01, "bf16": 0.05, "q8_0": 0.05}.items():
            for name in program.CHECKPOINTS if kind in ("f32", "q8_0") else program.CHECKPOINTS[:1]:
                path = self.folder / f"{name}.{kind}.gguf"
                oracle("make_gguf.py", program.run_dir(name), path, "--type", kind)
                with self.subTest(checkpoint=name, type=kind):
                    self.check_close(name, path, tolerance)

    def test_base_given_on_the_command_line(self):
        name = program.CHECKPOINTS[0]
        run = self.copy_checkpoint(name)
        (run.parent / "base").rename(self.folder / "elsewhere")
        message = self.fail_with(2, "decide", "--model", run, stdin=program.lines_of(self.requests[name][:1]))
        self.assertIn("--base", message)
        text = self.succeed(
            "decide", "--model", run, "--base", self.folder / "elsewhere", "--jsonl", "--raw", "--precision", "fp32",
            stdin=program.lines_of(self.requests[name]),
        )  # fmt: skip
        answers = [program.json.loads(line)["raw"] for line in text.splitlines()]
        self.assertEqual(answers, self.plain_answers(name))


if __name__ == "__main__":
    unittest.main()
