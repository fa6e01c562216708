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
        self.refuse("gate", "decision", says=["--model"])
        self.refuse("decide", "--base", self.model, says=["--base", "--model"])
        self.refuse("decide", "--model", self.model, "--precision", "fp8", says=["--precision", "fp8"])
        self.refuse("decide", "--model", self.model, "--form", "matmul=magic", says=["matmul", "magic"])
        self.refuse("decide", "--model", self.model, "--form", "magic=vector", says=["magic"])
        self.refuse("decide", "--model", self.model, "--state-cache", "lots", says=["--state-cache", "lots"])
        self.refuse("decide", "--model", self.model, "--threads", "4000", says=["4000"])
        self.refuse("conjure", says=["'conjure'", "decide, compose, gate"])
        self.refuse("gate", "conjure", says=["gate", "'conjure'", "decision"])

    def test_a_value_of_another_form_is_refused_by_flag(self):
        decide = ("decide", "--model", self.model)
        for flag, value, expected in (
            ("--threads", "-1", "whole number"),
            ("--threads", "x", "whole number"),
            ("--threads", "1.5", "whole number"),
            ("--threads", "010", "whole number"),
            ("--threads", "0x10", "whole number"),
            ("--threads", "99999999999999999999999", "smaller number"),
            ("--threads", "", "a value"),
            ("--state-cache", "", "a value"),
            ("--base", "", "a value"),
            ("--request", "", "a value"),
            ("--model", "", "a value"),
            ("--precision", "", "a value"),
        ):
            with self.subTest(flag=flag, value=value):
                self.refuse(*decide, flag, value, says=[flag, f'"{value}"', expected])
        self.refuse("bench", "decision", "--rows", "94,x", says=["--rows", '"x"', "whole number"])
        number = ("ledger", "freeze", "EXP-0001", "--min-ratio")
        for value in ("x", "nan", "1.0.0"):
            self.refuse(*number, value, says=["--min-ratio", value, "a number"])

    def test_what_a_message_quotes_steers_no_terminal(self):
        evil = "\x1b[31m\u009b\u202e\u2028"
        question = {"type": evil, "instructions": evil}
        for arguments, request in (
            (("decide", "--model", self.model), {**REQUEST, "questions": {evil: question}}),
            (("decide", "--model", self.model, evil), REQUEST),
            (("decide", "--model", self.model, f"--{evil}"), REQUEST),
            ((evil,), REQUEST),
            (("decide", "--model", evil), REQUEST),
            (("decide", "--model", self.model, "--form", evil), REQUEST),
            (("decide", "--model", self.model, "--threads", evil), REQUEST),
            (("inspect", evil), REQUEST),
            (("gate", "decision", "--model", self.model, "--fixture", evil), REQUEST),
        ):
            with self.subTest(arguments=arguments):
                message = self.fail_with(2, *arguments, stdin=json.dumps(request))
                self.assertIn("\\x", message)
                for steering in "\x1b\u009b\u202e\u2028":
                    self.assertNotIn(steering, message)
        warned = program.assay("decide", "--model", self.model, stdin=json.dumps({**REQUEST, evil: 1}))
        self.assertEqual(warned.returncode, 0)
        self.assertIn("unknown field", warned.stderr.decode())
        self.assertNotIn("\u202e", warned.stderr.decode())

    def test_paths_that_cannot_be_examined_are_named_with_the_reason(self):
        loop = self.folder / "loop"
        loop.symlink_to("loop")
        request = self.folder / "request.json"
        request.write_text(json.dumps(REQUEST))
        for path, reason in ((loop, "Too many levels"), (loop / "below", "Too many levels"), ("x" * 5000, "too long")):
            name = str(path)[:100]
            with self.subTest(path=name):
                self.refuse("decide", "--model", path, says=[name, reason])
                self.refuse("inspect", path, says=[name, reason])
                self.refuse("decide", "--model", self.model, "--request", path, says=[name, reason])
                self.refuse("decide", "--model", self.model, "--base", path, says=[name, reason])
                self.refuse("gate", "decision", "--model", self.model, "--fixture", path, says=[name, reason])
                self.refuse("gate", "run", path, says=[name, reason])
                self.refuse("ledger", "list", "--ledger", path, says=[name, reason])
                self.refuse("window", "run", path, says=[name, reason])

    def test_a_base_is_refused_where_it_has_no_meaning(self):
        base = self.model.parent / "base"
        gate = program.ROOT / "lab" / "gates" / "op-rope.json"
        for command in (
            ("gate", "run", gate),
            ("gate", "sweep", gate),
            ("lab", "call-cost", "--shape", "kev-tiny"),
        ):
            with self.subTest(command=command):
                self.refuse(*command, "--base", base, says=["base"])

    def test_a_link_to_nothing_is_not_passed_over(self):
        for name in ("tokenizer.json", "adapter_config.json", "head.pt", "adapter_model.safetensors"):
            with self.subTest(file=name):
                self.folder, kept = self.folder / name, self.folder
                run = self.copy_checkpoint("kev-tiny-dense")
                self.folder = kept
                (run / name).unlink()
                (run / name).symlink_to("gone")
                self.refuse("decide", "--model", run, says=[name])

    @unittest.skipIf(os.geteuid() == 0, "permissions do not bind the superuser")
    def test_a_folder_that_may_not_be_read_is_named(self):
        run = self.copy_checkpoint("kev-tiny-dense")
        for folder in (run, run.parent / "base"):
            folder.chmod(0)
            self.refuse("decide", "--model", run, says=["Permission denied"])
            folder.chmod(0o755)

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

    def test_places_in_messages_have_no_stray_dots_and_numbers_agree_with_their_nouns(self):
        for text in ('{"state": {', '{"state": {"a": 1,', '{"state": {"a": 1, 2', '{"state": [1, {"a": [', "{", '{"a" 1'):
            message = self.fail_with(2, "decide", "--model", self.model, stdin=text)
            self.assertNotRegex(message, r"\.[:.]|\.$", text)
        self.refuse_request({**REQUEST, "questions": {"": {"type": "x", "instructions": 1}}}, says=['questions."".type'])
        one_level = {"type": "score", "instructions": "?", "criteria": ["only"]}
        self.refuse_request({**REQUEST, "questions": {"q": one_level}}, says=["1 level;"])

    def test_a_text_of_megabytes_is_refused_at_once(self):
        # Each would take many seconds to tokenise whole.
        for text in ("a" * 30_000_000, "ab " * 10_000_000, "<|" * 10_000_000, "\u4e2d" * 5_000_000):
            self.refuse_request({**REQUEST, "state": text}, says=["state: more than 32768 tokens", "at most 8192"])
        question = {"type": "choice", "instructions": "?", "criteria": {str(i): "ab " * 30_000 for i in range(250)}}
        self.refuse_request({**REQUEST, "questions": {"q": question}}, says=["questions.q: more than 32768 tokens"])

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

    def test_inspect_says_that_a_broken_checkpoint_would_not_load(self):
        self.assertEqual(program.assay("inspect", self.model).returncode, 0)
        run = self.copy_checkpoint("kev-tiny-dense")
        (run / "head.pt").write_bytes(b"PK not really")
        done = program.assay("inspect", run)
        self.assertIn("head.pt", (done.stdout + done.stderr).decode())
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
