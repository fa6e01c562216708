"""What `assay inspect` says of good and broken files: what they hold, and whether they would load."""

import json
import shutil
import struct

import program
from program import ProgramTest


class Inspect(ProgramTest):
    def report(self, status, *arguments):
        done = program.assay("inspect", "--json", *arguments)
        self.assertEqual(done.returncode, status, done.stderr.decode(errors="replace"))
        return json.loads(done.stdout)

    def refuse(self, path, *says):
        report = self.report(1, path)
        self.assertFalse(report["loads"])
        problems = "\n".join(report["problems"])
        for words in says:
            self.assertIn(words, problems)

    def test_a_run_is_shown_whole(self):
        for checkpoint, family in (("kev-tiny-hybrid", "Qwen3.5"), ("kev-tiny-dense", "Qwen3")):
            report = self.report(0, program.run_dir(checkpoint))
            self.assertEqual(report["kind"], "Kev run directory")
            self.assertTrue(report["loads"])
            self.assertEqual(report["problems"], [])
            self.assertEqual(report["facts"]["model"]["family"], family)
            adapter = json.loads((program.run_dir(checkpoint) / "adapter_config.json").read_text())
            self.assertEqual(report["facts"]["adapter"]["rank"], adapter["r"])

    def test_every_tensor_of_a_safetensors_file_is_listed_as_its_header_says(self):
        path = program.DATA / "kev-tiny-hybrid" / "base" / "model.safetensors"
        data = path.read_bytes()
        header = json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])
        header.pop("__metadata__", None)
        tensors = {tensor["name"]: tensor for tensor in self.report(0, path)["tensors"]}
        self.assertEqual(set(tensors), set(header))
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            expected = {"name": name, "type": entry["dtype"], "shape": entry["shape"], "bytes": end - begin}
            self.assertEqual(tensors[name], expected)

    def test_each_kind_of_file_is_known_by_what_it_holds(self):
        run = program.run_dir("kev-tiny-hybrid")
        base = run.parent / "base"
        for path, kind in (
            (run / "head.pt", "head.pt"),
            (run / "tokenizer.json", "tokenizer"),
            (base / "config.json", "config"),
            (base, "model directory"),
        ):
            report = self.report(0, path)
            self.assertIn(kind, report["kind"], path)
            self.assertTrue(report["loads"], path)

    def test_the_table_says_what_the_json_says(self):
        text = self.succeed("inspect", program.run_dir("kev-tiny-dense"))
        report = self.report(0, program.run_dir("kev-tiny-dense"))
        self.assertIn("would load: yes", text)
        for tensor in report["tensors"]:
            self.assertIn(tensor["name"], text)

    def test_what_would_not_load_is_said_by_file_and_tensor(self):
        run = self.copy_checkpoint("kev-tiny-hybrid")
        weights = run.parent / "base" / "model.safetensors"
        data = weights.read_bytes()
        weights.write_bytes(data[:-1])
        self.refuse(run, "model.safetensors")
        weights.write_bytes(data.replace(b"layers.0.input_layernorm", b"layers.0.other_layernorm"))
        self.refuse(run, "layers.0.input_layernorm.weight")
        weights.unlink()
        self.refuse(run, "base")

    def test_a_music_model_is_shown_with_its_planner(self):
        model = self.folder / "model"
        shutil.copytree(program.ROOT / "models/assay-mini-compose", model)
        shown = self.report(0, model)
        listed = [tensor["name"] for tensor in shown["tensors"] if tensor["name"].startswith("planner/")]
        alone = self.report(0, model / "planner/model.safetensors")["tensors"]
        self.assertEqual(len(listed), len(alone))
        self.assertEqual(shown["facts"]["planner"]["hidden size"], 128)
        shutil.rmtree(model / "planner")
        self.assertNotIn("planner", self.report(0, model)["facts"])

    def test_a_planner_that_cannot_plan_is_said(self):
        """What `assay compose --plan` would refuse."""
        model = self.folder / "model"
        shutil.copytree(program.ROOT / "models/assay-mini-compose", model)
        planner = model / "planner"
        tokenizer = json.loads((planner / "tokenizer.json").read_text())
        without_codes = {**tokenizer, "added_tokens": [t for t in tokenizer["added_tokens"] if "audio_code" not in t["content"]]}
        more = {"id": 2026, "content": "<|audio_code_1000|>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True}  # fmt: skip
        config = json.loads((planner / "config.json").read_text())
        for name, contents in (
            ("model.safetensors", bytes(9)),
            ("tokenizer.json", b""),
            ("tokenizer.json", json.dumps(without_codes).encode()),
            ("tokenizer.json", json.dumps({**tokenizer, "added_tokens": [*tokenizer["added_tokens"], more]}).encode()),
            ("config.json", json.dumps({**config, "vocab_size": 1500}).encode()),
            ("tokenizer_config.json", json.dumps({"eos_token": "none such"}).encode()),
        ):
            whole = (planner / name).read_bytes()
            (planner / name).write_bytes(contents)
            self.refuse(model, "planner")
            done = program.assay("compose", "--model", model, "--prompt", "x", "--plan", "--duration", "10", "-o", self.folder / "x.wav")
            self.assertEqual(done.returncode, 2, name)
            (planner / name).write_bytes(whole)
        for name in ("config.json", "tokenizer.json"):
            (planner / name).rename(self.folder / name)
            self.refuse(model, f"planner/{name}")
            (self.folder / name).rename(planner / name)
        self.report(0, model)
        shutil.rmtree(planner)
        planner.write_text("no folder")
        self.refuse(model, "planner")

    def test_check_reads_every_value(self):
        run = self.copy_checkpoint("kev-tiny-dense")
        weights = run.parent / "base" / "model.safetensors"
        data = bytearray(weights.read_bytes())
        data[-2:] = b"\xff\x7f"  # a bf16 NaN
        weights.write_bytes(data)
        self.assertTrue(self.report(0, weights)["loads"])
        self.assertIn("values were not read", self.succeed("inspect", weights))
        report = self.report(1, weights, "--check")
        self.assertIn("model.safetensors", report["problems"][0])

    def test_all_problems_are_listed_at_once(self):
        run = self.copy_checkpoint("kev-tiny-dense")
        (run / "head.pt").write_bytes(b"PK\x03\x04 no archive")
        (run / "adapter_config.json").write_text("{")
        self.refuse(run, "head.pt", "adapter_config.json")

    def test_what_is_not_there_or_nothing_known_is_an_error(self):
        self.assertIn("nowhere", self.fail_with(2, "inspect", self.folder / "nowhere"))
        self.refuse(self.folder, str(self.folder))
        empty = self.folder / "empty.safetensors"
        empty.write_bytes(b"")
        self.refuse(empty, "empty.safetensors")

    def test_what_is_no_model_is_called_what_it_is(self):
        for path, kind in (
            (program.ROOT / "examples" / "ticket.json", "System One request"),
            (program.fixture_path("kev-tiny-dense"), "decision fixture"),
        ):
            self.assertEqual(self.report(0, path)["kind"], kind)
        text = self.folder / "notes.txt"
        other = self.folder / "other.json"
        for content in (b"hello", b"", b"\0" * 100, b"[1, 2]", b"[" * 1000, b"# { }"):
            text.write_bytes(content)
            report = self.report(1, text)
            self.assertEqual(report["kind"], "", content)
            self.assertIn("notes.txt", report["problems"][0])
        for content in ('{"a": 1}', "[1, 2]"):
            other.write_text(content)
            report = self.report(1, other)
            self.assertEqual(report["kind"], "")
            self.assertIn("JSON of no kind", report["problems"][0])

    def test_a_downloaded_model_is_found_by_its_id(self):
        cache = self.folder / "hub" / "models--org--kev"
        (cache / "refs").mkdir(parents=True)
        (cache / "refs" / "main").write_text("abc")
        (cache / "snapshots").mkdir()
        (cache / "snapshots" / "abc").symlink_to(program.run_dir("kev-tiny-dense"))
        done = program.assay("inspect", "--json", "org/kev", environment={"HF_HOME": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["path"], report["kind"]), ("org/kev", "Kev run directory"))
        self.assertIn("snapshots/abc", report["facts"]["sources"]["path"])
        missing = program.assay("inspect", "org/other", environment={"HF_HOME": str(self.folder)})
        self.assertEqual(missing.returncode, 2)
        self.assertIn(b"org/other", missing.stderr)

    def test_a_base_is_refused_where_it_has_no_meaning(self):
        run = program.run_dir("kev-tiny-dense")
        base = run.parent / "base"
        self.report(0, run, "--base", base)
        for path in (base, run / "head.pt", base / "model.safetensors", base / "config.json"):
            self.assertIn("--base", self.fail_with(2, "inspect", path, "--base", base))

    def test_names_from_a_file_steer_no_terminal(self):
        evil = "a\x1b[31m\nwould load: yes\u202e\u009b"
        path = self.folder / (evil.replace("/", "") + ".safetensors")
        header = json.dumps({evil: {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}}).encode()
        path.write_bytes(struct.pack("<Q", len(header)) + header)
        text = self.succeed("inspect", path)
        for steering in "\x1b\u202e\u009b":
            self.assertNotIn(steering, text)
        self.assertEqual(text.count("\nwould load"), 1)
