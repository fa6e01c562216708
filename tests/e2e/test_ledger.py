"""The ledger from the first hypothesis to the rendered page; what was kept elsewhere, imported whole; and what
happens when it is tampered with, killed, out of space or used twice at once."""

import collections
import copy
import hashlib
import json
import random
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest

import program
from program import ProgramTest

try:
    import jsonschema
except ImportError:
    jsonschema = None

SEED = program.DATA / "ledger" / "ace-step-optimization-ledger.md"
SCHEMA = program.ROOT / "ledger" / "schema" / "experiment.schema.json"


def count_seed():
    """The seed's rows, read another way than the program does: the text between one ID and the next."""
    text = SEED.read_text(encoding="utf-8")
    starts = [match.start() for match in re.finditer(r"^\| OPT-\d{4} \|", text, re.MULTILINE)]
    end = text.index("Experiment IDs are allocated")
    rows = []
    for start, stop in zip(starts, starts[1:] + [end]):
        cells = text[start:stop].replace("\n", " ").split("|")[1:-1]
        rows.append([cell.strip() for cell in cells])
    return rows


PLAN = {
    "schema": "assay.window-plan/1",
    "name": "rows",
    "device": "cpu",
    "items": [{"name": "row", "op": "rms_norm", "sizes": {"rows": 8, "dim": 64}}],
    "forms": [{"name": name, "ops": {"rms_norm": name}} for name in ("reference", "vector")],
}
RUN = [{"name": name, "forms": f"matmul=vector rms_norm={name}"} for name in ("reference", "vector")]


class Repository(ProgramTest):
    """A git repository with a subject's code, a gate and a plan."""

    def setUp(self):
        super().setUp()
        self.root = self.folder / "repository"
        (self.root / "code").mkdir(parents=True)
        (self.root / "code" / "kernel.cpp").write_text("int answer();\n")
        self.gate = self.root / "gate.json"
        self.gate.write_text('{"name": "decisions"}\n')
        self.plan = self.root / "plan.json"
        self.plan.write_text(json.dumps(PLAN))
        self.ledger = self.root / "ledger"
        self.git("init", "--quiet")
        self.commit("Start")

    def git(self, *arguments):
        who = ["-c", "user.name=lab", "-c", "user.email=lab@lab.example", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", self.root, *who, *arguments], check=True, capture_output=True)

    def commit(self, message):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)

    def run_ledger(self, command, *arguments):
        return self.succeed("ledger", command, "--ledger", self.ledger, *arguments)

    def refuse(self, command, *arguments):
        return self.fail_with(2, "ledger", command, "--ledger", self.ledger, *arguments)

    def new(self, *options, subject="matmul: one token"):
        said = self.run_ledger("new", "--subject", subject, "--hypothesis", "It is faster.", "--mechanism",
                               "It reads less.", "--risk", "exact", *options)  # fmt: skip
        return said.split()[0]

    def freeze(self, identifier):
        self.run_ledger("freeze", identifier, "--gate", self.gate, "--window", self.plan, "--min-ratio", "1.05")

    def receipt(self, kind, subject, result):
        body = {
            "schema": "assay.receipt/1",
            "kind": kind,
            "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "program": {},
            "device": {"id": "cpu-test"},
            "subject": subject,
            "result": result,
        }
        data = json.dumps(body).encode()
        path = self.folder / f"{hashlib.sha256(data).hexdigest()}.json"
        path.write_bytes(data)
        return path

    def gate_receipt(self, verdict="PASS", form="rms_norm=vector"):
        sha256 = hashlib.sha256(self.gate.read_bytes()).hexdigest()
        return self.receipt("gate", {"gate": {"name": "decisions", "sha256": sha256}, "forms": form}, {"result": verdict})

    def window_receipt(self, ratio):
        sha256 = hashlib.sha256(self.plan.read_bytes()).hexdigest()
        pair = {
            "item": "row",
            "baseline": "reference",
            "candidate": "vector",
            "ratio": ratio,
            "interval": [ratio - 0.02, ratio + 0.02],
            "verdict": "faster" if ratio > 1.02 else "inconclusive",
            "suspicious": False,
        }
        return self.receipt(
            "window",
            {"plan": {"name": "rows", "sha256": sha256}, "forms": RUN},
            {"clean": True, "times": [], "pairs": [pair]},
        )

    def decided(self, ratio, disposition, *options):
        identifier = self.new(*options)
        self.freeze(identifier)
        self.run_ledger("record", identifier, self.gate_receipt(), self.window_receipt(ratio))
        self.run_ledger("decide", identifier, "--disposition", disposition, "--reason", "measured")
        return identifier

    def good_ledger(self):
        self.decided(1.2, "integrated")
        self.decided(0.8, "abandoned")
        self.decided(1.04, "benchmark-only", "--supersedes", "EXP-0002")
        self.new()
        self.commit("Experiments")

    def bytes_of_ledger(self):
        return {path: path.read_bytes() for path in self.ledger.rglob("*.json")}


class Workflow(Repository):
    def test_evidence_follows_from_the_frozen_rule(self):
        self.good_ledger()
        listed = json.loads(self.run_ledger("list", "--json"))["experiments"]
        self.assertEqual([item.get("decision", {}).get("evidence") for item in listed],
                         ["positive", "negative", "inconclusive", None])  # fmt: skip
        self.assertIn("EXP-0004  proposed", self.run_ledger("list"))
        self.assertIn("4 experiments", self.run_ledger("check"))
        shown = json.loads(self.run_ledger("show", "EXP-0002"))
        self.assertEqual(shown["superseded_by"], "EXP-0003")

    def test_nothing_is_integrated_without_positive_evidence(self):
        identifier = self.new()
        self.freeze(identifier)
        self.run_ledger("record", identifier, self.gate_receipt("FAIL"), self.window_receipt(1.2))
        said = self.refuse("decide", identifier, "--disposition", "integrated", "--reason", "wanted")
        self.assertIn("negative", said)

    def test_what_the_gate_command_writes_is_evidence(self):
        shutil.copyfile(program.ROOT / "lab" / "gates" / "op-rms_norm.json", self.gate)
        self.commit("A real gate")
        identifier = self.new()
        self.run_ledger("freeze", identifier, "--gate", self.gate, "--device", "this")
        self.succeed("gate", "run", self.gate, "--receipts", self.ledger / "receipts")
        self.run_ledger("record", identifier, *(self.ledger / "receipts").iterdir())
        self.run_ledger("decide", identifier, "--disposition", "integrated", "--reason", "it passed")
        self.assertEqual(json.loads(self.run_ledger("show", identifier))["decision"]["evidence"], "positive")
        self.run_ledger("check")

    def test_a_freeze_needs_committed_sources_and_stays(self):
        identifier = self.new("--source", self.root / "code")
        (self.root / "code" / "kernel.cpp").write_text("int changed();\n")
        said = self.refuse("freeze", identifier, "--gate", self.gate)
        self.assertIn("code/kernel.cpp", said)
        self.commit("Code")
        self.freeze(identifier)
        self.assertIn("new ID", self.refuse("freeze", identifier, "--gate", self.gate))

    def test_what_is_wrong_with_a_rule_is_said_of_its_own_file(self):
        identifier = self.new()
        rule = self.folder / "rule.json"
        clause = {"min_ratio": 1.05, "interval_excludes_1": True, "clean": True}
        for change, words in (
            ({"schema": None, "window": clause}, "no field 'schema'"),
            ({"window": {**clause, "refuted_below": 2}}, "at most min_ratio"),
            ({"window": {"min_ratio": 1.05}}, "no field 'interval_excludes_1'"),
        ):
            body = {"schema": "assay.rule/1", "gates": "all pass", **change}
            rule.write_text(json.dumps({name: value for name, value in body.items() if value is not None}))
            said = self.refuse("freeze", identifier, "--gate", self.gate, "--window", self.plan, "--rule", rule)
            self.assertIn(str(rule), said)
            self.assertIn(words, said)
            self.assertNotIn("EXP-0001-", said)

    def test_the_page_has_every_experiment_and_needs_no_network(self):
        self.good_ledger()
        self.run_ledger("import", SEED, "--name", "ace-step")
        self.run_ledger("render")
        page = (self.ledger / "index.html").read_text(encoding="utf-8")
        self.assertEqual(page.count("<article "), 4 + 91)
        for outside in ("http://", "https://", "src=", "@import", "url("):
            self.assertNotIn(outside, re.sub(r"<dd>.*?</dd>", "", page), outside)
        for link in re.findall(r'href="((?:receipts|frozen)/[^"]+)"', page):
            self.assertTrue((self.ledger / link).is_file(), link)
        self.assertIn("| EXP-0003 |", (self.ledger / "LEDGER.md").read_text(encoding="utf-8"))

    def test_the_sources_of_the_ledger_are_checked_wherever_it_runs(self):
        self.good_ledger()
        done = subprocess.run([program.PROGRAM, "ledger", "check"], cwd=self.root, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Imported(Repository):
    def import_seed(self, name="seed"):
        said = self.run_ledger("import", SEED, "--name", name)
        record = json.loads((self.ledger / "imported" / f"{name}.json").read_text(encoding="utf-8"))
        return said, record

    def test_every_cell_of_the_seed_is_there_and_the_counts_are_the_files(self):
        expected = count_seed()
        self.assertEqual(len(expected), 91)
        said, record = self.import_seed()
        self.assertEqual([list(row.values()) for row in record["rows"]], expected)
        listed = json.loads(self.run_ledger("list", "--json"))["imported"][0]
        for column, place in (("evidence", 3), ("disposition", 4)):
            counts = collections.Counter(row[place] for row in expected)
            self.assertEqual(listed[column], dict(counts))
            for value, count in counts.items():
                self.assertIn(f"{count} {value}", said)

    def test_import_render_import_changes_no_cell_and_no_prose(self):
        _, first = self.import_seed()
        self.run_ledger("render")
        self.run_ledger("import", self.ledger / "imported" / "seed.md", "--name", "again")
        second = json.loads((self.ledger / "imported" / "again.json").read_text(encoding="utf-8"))
        for field in ("before", "columns", "delimiter", "rows", "after"):
            self.assertEqual(first[field], second[field], field)
        text = SEED.read_text(encoding="utf-8")
        self.assertTrue(text.startswith(first["before"]))
        self.assertTrue(text.endswith(first["after"]))

    def test_a_row_is_shown_and_none_is_overwritten(self):
        self.import_seed()
        self.assertEqual(json.loads(self.run_ledger("show", "OPT-0037"))["Subsystem"], "DiT dense integration")
        self.import_seed()
        other = self.folder / "other.md"
        other.write_text("| ID | Evidence |\n|---|---|\n| OPT-0001 | positive |\n")
        self.assertIn("another record", self.refuse("import", other, "--name", "seed"))

    def test_a_table_with_a_gap_or_a_broken_row_is_refused(self):
        text = SEED.read_text(encoding="utf-8")
        cases = {
            "OPT-0050": re.sub(r"^\| OPT-0050 .*?(?=^\| OPT-0051)", "", text, flags=re.MULTILINE | re.DOTALL),
            "OPT-0012": text.replace("| OPT-0012 |", "| OPT-0011 |"),
            "line 5": text.replace("| OPT-0001 | profiler |", "| OPT-0001 profiler |"),
            "no table": "Nothing here.\n",
        }
        for expected, broken in cases.items():
            with self.subTest(expected):
                path = self.folder / "broken.md"
                path.write_text(broken, encoding="utf-8")
                self.assertIn(expected, self.refuse("import", path))


class Tampering(Repository):
    def setUp(self):
        super().setUp()
        self.good_ledger()

    def edit(self, number, change):
        path = next((self.ledger / "experiments").glob(f"EXP-{number:04}-*"))
        body = json.loads(path.read_text(encoding="utf-8"))
        change(body)
        path.write_text(json.dumps(body), encoding="utf-8")

    def first_receipt(self):
        path = next((self.ledger / "experiments").glob("EXP-0001-*"))
        sha256 = json.loads(path.read_text(encoding="utf-8"))["receipts"][0]["sha256"]
        return self.ledger / "receipts" / f"{sha256}.json"

    def remove(self, number):
        next((self.ledger / "experiments").glob(f"EXP-{number:04}-*")).unlink()

    def plantings(self):
        def moved(body):
            body["frozen"]["rule"]["window"]["min_ratio"] = 0.5

        def changed_evidence(body):
            body["decision"]["evidence"] = "positive"

        def changed_hypothesis(body):
            body["proposal"]["hypothesis"] = "It is smaller."

        def integrated(body):
            body["decision"]["dispositions"][-1]["disposition"] = "integrated"

        return {
            "an edited receipt": lambda: self.first_receipt().write_bytes(self.first_receipt().read_bytes()[:-1]),
            "a removed receipt": lambda: self.first_receipt().unlink(),
            "a moved threshold": lambda: self.edit(2, moved),
            "changed evidence": lambda: self.edit(3, changed_evidence),
            "a changed hypothesis": lambda: self.edit(1, changed_hypothesis),
            "a reused ID": lambda: shutil.copy(
                next((self.ledger / "experiments").glob("EXP-0001-*")),
                self.ledger / "experiments" / "EXP-0001-another.json",
            ),
            "a gap": lambda: self.remove(2),
            "a removed experiment": lambda: self.remove(4),
            "integrated on negative evidence": lambda: self.edit(2, integrated),
            "a link of one way": lambda: self.edit(2, lambda body: body.pop("superseded_by")),
            "an unknown field": lambda: self.edit(1, lambda body: body.update(waiver="granted")),
            "an edited gate": lambda: self.gate.write_text('{"name": "looser"}\n'),
            "an edited frozen copy": lambda: next((self.ledger / "frozen").iterdir()).write_text("{}"),
        }

    def test_check_finds_each_planted_tampering_before_and_after_its_commit(self):
        for name, plant in self.plantings().items():
            with self.subTest(name):
                plant()
                for committed in (False, True):
                    if committed:
                        self.commit("Nothing to see")
                    done = program.assay("ledger", "check", "--json", "--ledger", self.ledger)
                    audit = json.loads(done.stdout)
                    self.assertEqual(done.returncode, 1, name)
                    self.assertFalse(audit["sound"])
                    self.assertTrue(audit["problems"])
                self.git("reset", "--quiet", "--hard", "HEAD~1")
                self.git("clean", "--quiet", "-fd")
                self.run_ledger("check")


class Accidents(Repository):
    def new_process(self, **options):
        return subprocess.Popen(
            [program.PROGRAM, "ledger", "new", "--ledger", self.ledger, "--subject", "matmul", "--hypothesis", "a",
             "--mechanism", "b", "--risk", "exact"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
        )  # fmt: skip

    def test_commands_at_once_get_ids_of_their_own(self):
        running = [self.new_process() for _ in range(8)]
        said = [process.communicate()[0].decode() for process in running]
        self.assertEqual(sorted(line.split()[0] for line in said), [f"EXP-{i:04}" for i in range(1, 9)])
        self.run_ledger("check")

    def test_killed_commands_leave_a_sound_ledger(self):
        self.good_ledger()
        before = self.bytes_of_ledger()
        chance = random.Random(5)
        for _ in range(25):
            process = self.new_process()
            time.sleep(chance.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
            process.communicate()
        after = self.bytes_of_ledger()
        self.assertEqual({path: after[path] for path in before}, before)
        self.run_ledger("check")
        self.new()

    def test_a_full_disk_is_an_error_and_earlier_evidence_stands(self):
        self.good_ledger()
        before = self.bytes_of_ledger()

        def little_space():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

        process = self.new_process(preexec_fn=little_space, restore_signals=False)
        self.assertIn(b"too large", process.communicate()[1])
        self.assertEqual(process.returncode, 2)
        self.assertEqual(self.bytes_of_ledger(), before)
        self.run_ledger("check")


@unittest.skipIf(jsonschema is None, "needs Python's jsonschema")
class Schema(Repository):
    def variants(self):
        """Good documents of every state, and each with one thing wrong."""
        self.good_ledger()
        identifier = self.new()
        self.freeze(identifier)
        for path in sorted((self.ledger / "experiments").iterdir()):
            good = json.loads(path.read_text(encoding="utf-8"))
            yield path.name, good
            for where in self.places(good):
                for change in ("removed", "number", "text", "empty", "list", "null", "extra"):
                    document = copy.deepcopy(good)
                    if self.change(document, where, change):
                        yield path.name, document

    def places(self, value, before=()):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield before + (key,)
            if isinstance(value[key], (dict, list)):
                yield from self.places(value[key], before + (key,))

    @staticmethod
    def change(document, where, change):
        parent = document
        for key in where[:-1]:
            parent = parent[key]
        if change == "removed":
            del parent[where[-1]]
        elif change == "extra":
            if not isinstance(parent[where[-1]], dict):
                return False
            parent[where[-1]]["extra"] = 1
        else:
            parent[where[-1]] = {"number": -1, "text": "some text", "empty": "", "list": [], "null": None}[change]
        return True

    def test_the_reader_and_the_schema_agree(self):
        validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
        variants = list(self.variants())
        chance = random.Random(3)
        good = [item for item in variants if validator.is_valid(item[1])]
        bad = [item for item in variants if not validator.is_valid(item[1])]
        self.assertGreater(len(good), 10)
        self.assertGreater(len(bad), 300)
        for name, document in chance.sample(good, min(40, len(good))) + chance.sample(bad, 120):
            folder = self.folder / "one" / "experiments"
            shutil.rmtree(folder.parent, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / name).write_text(json.dumps(document), encoding="utf-8")
            done = program.assay("ledger", "show", document.get("id", "EXP-0001"), "--ledger", folder.parent) if (
                isinstance(document.get("id", ""), str)
            ) else program.assay("ledger", "list", "--ledger", folder.parent)  # fmt: skip
            expected = validator.is_valid(document)
            # What the schema cannot say: the file's name has the ID, and a rule does not contradict itself.
            if expected and (not name.startswith(document["id"]) or b"refuted_below" in done.stderr):
                continue
            self.assertEqual(done.returncode == 0, expected, json.dumps(document) + done.stderr.decode())
            if not expected:
                self.assertNotIn(b"internal", done.stderr)


if __name__ == "__main__":
    unittest.main()
