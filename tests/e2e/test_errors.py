"""What cannot be done is said: which file, tensor, field or flag, and status 2. Nothing crashes or hangs."""

import json
import os
import unittest

import program
from program import ProgramTest

REQUEST = {"state": "x", "model": "kev-latest", "questions": {"q": {"type": "noul", "instructions": "Is it so?"}}}


class Errors(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model = program.run_dir("kev-tiny-dense")

    def refuse(self, *arguments, stdin=json.dumps(REQUEST), says):
        message = self.fail_with(2, *arguments, stdin=stdin)
        for words in says:
            self.assertIn(words, message)
        self.assertNotIn("internal error", message)

    def refuse_request(self, request, says):
        text = request if isinstance(request, (str, bytes)) else json.dumps(request)
        self.refuse("decide", "--model", self.model, stdin=text, says=says)

    def test_usage_errors_name_the_flag(self):
        self.refuse("decide", says=["--model"])
        self.refuse("decide", "--model", self.model, "--precision", "fp8", says=["--precision", "fp8"])
        self.refuse("decide", "--model", self.model, "--form", "matmul=magic", says=["matmul", "magic"])
        self.refuse("decide", "--model", self.model, "--form", "magic=vector", says=["magic"])
        self.refuse("decide", "--model", self.model, "--state-cache", "lots", says=["--state-cache", "lots"])
        self.refuse("decide", "--model", self.model, "--threads", "4000", says=["4000"])
        self.refuse("conjure", says=["'conjure'", "decide, gate"])
        self.refuse("gate", "conjure", says=["gate", "'conjure'", "decision"])

    def test_a_missing_model_or_request_is_named(self):
        self.refuse("decide", "--model", self.folder / "nowhere", says=["nowhere"])
        self.refuse("decide", "--model", self.model, "--request", self.folder / "none.json", says=["none.json"])
        empty = self.folder / "empty"
        empty.mkdir()
        self.refuse("decide", "--model", empty, says=["empty"])

    def test_bad_requests_are_refused_by_field(self):
        self.refuse_request("", says=["request"])
        self.refuse_request('{"state": 1,', says=["request"])
        self.refuse_request(b'{"state": "\xff\xfe"}', says=["UTF-8"])
        self.refuse_request([], says=["object"])
        self.refuse_request({"model": "m", "state": 1}, says=["questions"])
        self.refuse_request({**REQUEST, "questions": {"q": {"type": "riddle"}}}, says=["type", "riddle"])
        one_level = {"type": "score", "instructions": "?", "criteria": ["only"]}
        self.refuse_request({**REQUEST, "questions": {"q": one_level}}, says=["criteria"])
        options = {str(i): None for i in range(256)}
        many = {"type": "choice", "instructions": "?", "criteria": options}
        self.refuse_request({**REQUEST, "questions": {"q": many}}, says=["criteria", "256"])

    def test_absurd_nesting_is_refused(self):
        depth = 100_000
        self.refuse_request('{"state": ' + "[" * depth + "]" * depth + "}", says=["nest"])

    def test_over_a_limit_says_which_and_by_how_much(self):
        long_state = {**REQUEST, "state": "word " * 20_000}
        self.refuse_request(long_state, says=["8192"])
        long_question = {"type": "noul", "instructions": "word " * 20_000}
        self.refuse_request({**REQUEST, "questions": {"q": long_question}}, says=["8192"])

    def test_broken_weights_name_the_file(self):
        run = self.copy_checkpoint("kev-tiny-dense")
        weights = run.parent / "base" / "model.safetensors"
        whole = weights.read_bytes()
        for size in (0, 7, 100, len(whole) // 2, len(whole) - 1):
            with self.subTest(bytes_left=size):
                weights.write_bytes(whole[:size])
                self.refuse("decide", "--model", run, says=["model.safetensors"])
        nan = bytearray(whole)
        nan[-2:] = b"\xff\x7f"
        weights.write_bytes(nan)
        self.refuse("decide", "--model", run, says=["model.safetensors"])

    def test_a_missing_tensor_and_a_wrong_shape_are_named(self):
        run = self.copy_checkpoint("kev-tiny-dense")
        weights = run.parent / "base" / "model.safetensors"
        whole = weights.read_bytes()
        weights.write_bytes(whole.replace(b"layers.1.input_layernorm", b"layers.1.INPUT_LAYERNORM"))
        self.refuse("decide", "--model", run, says=["layers.1.input_layernorm.weight", "model.safetensors"])
        weights.write_bytes(whole)
        config = run.parent / "base" / "config.json"
        fields = json.loads(config.read_text())
        config.write_text(json.dumps({**fields, "intermediate_size": 512}))
        self.refuse("decide", "--model", run, says=["mlp.", "512"])

    def test_broken_head_adapter_and_tokenizer_name_the_file(self):
        for name in ("head.pt", "adapter_model.safetensors", "adapter_config.json", "tokenizer.json"):
            with self.subTest(file=name):
                folder = self.folder / name
                folder.mkdir()
                self.folder, kept = folder, self.folder
                run = self.copy_checkpoint("kev-tiny-dense")
                self.folder = kept
                path = run / name
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
                self.refuse("decide", "--model", run, says=[name])
                path.unlink()
                (run.parent / "base" / name).unlink(missing_ok=True)  # a tokenizer may come from the base
                self.refuse("decide", "--model", run, says=[name])

    def test_a_fixture_that_is_none_is_refused(self):
        path = self.folder / "fixture.json"
        for text in ("", "{}", '{"model": "x", "temperature": 1, "records": []}'):
            path.write_text(text)
            self.refuse("gate", "decision", "--model", self.model, "--fixture", path, says=["fixture.json"])

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = program.subprocess.run(
                [program.PROGRAM, "decide", "--model", str(self.model)],
                input=json.dumps(REQUEST).encode(), stdout=full, stderr=program.subprocess.PIPE, timeout=60,
            )  # fmt: skip
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"standard output", done.stderr)

    def test_inspect_says_that_a_broken_checkpoint_would_not_load(self):
        self.assertEqual(program.assay("inspect", self.model).returncode, 0)
        run = self.copy_checkpoint("kev-tiny-dense")
        (run / "head.pt").write_bytes(b"PK not really")
        done = program.assay("inspect", run)
        self.assertIn("head.pt", (done.stdout + done.stderr).decode())
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
