"""The decision model that comes with the program: what its training and its test share, and what it is worth."""

import json
import sys
import unittest

import program
from program import ProgramTest

sys.path.insert(0, str(program.ROOT / "train"))

from decide_data import asking, binding, comparing, grammar, lexicon, numbers_and_rules, reading, suite, texts, topics, vocab, words  # noqa: E402

RUN = program.ROOT / "models/assay-mini-decide/run"
SUITES = program.DATA / "decide"


def phrase_lists(value):
    if isinstance(value, grammar.Phrases):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from phrase_lists(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from phrase_lists(item)


def all_lists():
    for module in (asking, binding, comparing, numbers_and_rules, reading, texts, topics, words):
        for name, value in vars(module).items():
            if name.isupper():
                yield from phrase_lists(value)
    groups = [*lexicon.TOPICS, *lexicon.AXES.values()]
    for named in [*groups, *(concept for group in groups for concept in group.concepts)]:
        yield from phrase_lists([named.names, named.descriptions, getattr(named, "phrases", None)])
    for language in lexicon.LANGUAGES:
        yield from phrase_lists(language.kinds)


class Data(unittest.TestCase):
    def test_test_phrases_are_not_in_training(self):
        lists = list(all_lists())
        self.assertGreater(len(lists), 500)
        tested = {line.lower() for phrases in lists if phrases.own_test for line in phrases.lists["test"]}
        shared = [line for phrases in lists for split in ("train", "dev") for line in phrases.usable(split) if line.lower() in tested]
        self.assertEqual(shared, [])

    def test_development_phrases_are_not_in_training(self):
        withheld = 0
        for phrases in all_lists():
            if phrases.lists["dev"] != phrases.lists["train"]:
                self.assertFalse(set(phrases.lists["dev"]) & set(phrases.lists["train"]))
                withheld += len(phrases.lists["dev"])
        self.assertGreater(withheld, 300)

    def test_names_and_things_are_not_shared(self):
        for kind, words in vocab.LISTS.items():
            self.assertFalse(set(words["all"]) & set(words["test"]), kind)
            self.assertFalse(set(words["train"]) & set(words["dev"]), kind)
        self.assertFalse(set(vocab.SYLLABLES["all"]) & set(vocab.SYLLABLES["test"]))

    def test_the_suite_is_what_the_generator_makes(self):
        kept = (SUITES / "test.jsonl").read_text(encoding="utf-8").splitlines()
        made = [json.dumps(line, ensure_ascii=False) for line in suite.lines("test", 2400, 1)]
        self.assertEqual(kept, made)
        self.assertGreaterEqual(sum(len(json.loads(line)["expected"]) for line in kept), 2000)


class Model(ProgramTest):
    def everyday(self):
        """(expected, answer, levels less one) of each everyday question."""
        records = [json.loads(line) for line in (SUITES / "everyday.jsonl").read_text(encoding="utf-8").splitlines()]
        responses = self.decide(RUN, [record["request"] for record in records])
        for record, response in zip(records, responses):
            for name, expected in record["expected"].items():
                yield expected, response["answers"][name], len(response["raw"][name]["probabilities"]) - 1

    def test_three_in_four_everyday_questions_are_answered_as_agreed(self):
        right = []
        for expected, answer, top in self.everyday():
            if answer["type"] == "noul":
                right.append((answer["noul"] > 0.5) == expected)
            elif answer["type"] == "choice":
                right.append(answer["choice"] == expected)
            else:
                right.append(abs(answer["score"] - expected) <= 0.25 * top)
        self.assertGreaterEqual(len(right), 100)
        self.assertGreaterEqual(sum(right) / len(right), 0.74)

    def test_it_answers_where_no_model_is_named(self):
        request = json.loads((program.ROOT / "examples/ticket.json").read_text(encoding="utf-8"))
        done = program.assay("decide", stdin=json.dumps(request))
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"no --model: assay-mini-decide", done.stderr)
        self.assertEqual(done.stderr.count(b"\n"), 1)
        answers = json.loads(done.stdout)["answers"]
        self.assertEqual(answers["team"]["choice"], "billing")
        self.assertGreater(answers["urgency"]["score"], 1.5)

    def test_eval_prints_the_figures_of_a_suite(self):
        found = json.loads(self.succeed("eval", "--suite", SUITES / "everyday.jsonl", "--json"))
        self.assertEqual(found["records"], 100)
        self.assertGreaterEqual(found["all"]["share"], 0.74)
        wrong = sum(found[kind]["asked"] - found[kind]["right"] for kind in ("noul", "choice"))
        self.assertEqual(wrong, sum(c["count"] for kind in ("noul", "choice") for c in found[f"{kind}_confusions"]))
        text = self.succeed("eval", "--suite", SUITES / "everyday.jsonl", "--confusions", 3)
        self.assertIn("calibration error", text)
        self.assertIn(" -> ", text)

    def test_a_suite_that_is_none_is_refused(self):
        self.assertIn("suite", self.fail_with(2, "eval", "--suite", self.folder / "suite"))
        (self.folder / "suite").write_text('{"id": 1}\n')
        self.assertIn("suite: line 1", self.fail_with(2, "eval", "--suite", self.folder / "suite"))

    def test_its_answers_are_those_of_the_authors_code(self):
        fixture = program.DATA / "assay-mini-decide.fixture.json"
        for precision in ("fp32", "bf16"):
            gate = self.succeed("gate", "decision", "--model", RUN, "--fixture", fixture, "--precision", precision)
            self.assertTrue(gate.endswith("PASS\n"), gate)


if __name__ == "__main__":
    unittest.main()
