"""An answer depends on its own row alone: the same question has the same bits however it is asked."""

import copy
import unittest

import program
from program import ProgramTest


def raw(responses):
    """Per request its questions' logits and probabilities, all digits."""
    return [response["raw"] for response in responses]


def one_by_one(request):
    for name, question in request["questions"].items():
        single = copy.deepcopy(request)
        single["questions"] = {name: question}
        yield single


class SameBits(ProgramTest):
    PRECISIONS = ("fp32", "bf16")

    def setUp(self):
        super().setUp()
        self.records = {name: program.fixture(name)["records"] for name in program.CHECKPOINTS}

    def each_run(self):
        for checkpoint in program.CHECKPOINTS:
            requests = [record["request"] for record in self.records[checkpoint]]
            for precision in self.PRECISIONS:
                with self.subTest(checkpoint=checkpoint, precision=precision):
                    yield program.run_dir(checkpoint), requests, ("--precision", precision)

    def test_with_one_thread_two_and_three(self):
        for model, requests, options in self.each_run():
            one = raw(self.decide(model, requests, *options, "--threads", "1"))
            for threads in ("2", "3"):
                self.assertEqual(one, raw(self.decide(model, requests, *options, "--threads", threads)))

    def test_asked_whole_and_question_by_question(self):
        for model, requests, options in self.each_run():
            whole = raw(self.decide(model, requests, *options))
            singles = [single for request in requests for single in one_by_one(request)]
            parts = raw(self.decide(model, singles, *options))
            together = iter(parts)
            for answers in whole:
                for name in answers:
                    self.assertEqual(next(together), {name: answers[name]})

    def test_with_the_state_from_the_cache_evicted_or_never_kept(self):
        for model, requests, options in self.each_run():
            twice = [request for request in requests for _ in range(2)]
            never = raw(self.decide(model, twice, *options, "--state-cache", "0"))
            kept = raw(self.decide(model, twice, *options, "--state-cache", "1G"))
            cramped = raw(self.decide(model, twice, *options, "--state-cache", "2M"))
            self.assertEqual(never[0::2], never[1::2])
            self.assertEqual(kept, never)
            self.assertEqual(cramped, never)

    def test_after_other_requests_and_in_another_order_of_requests_and_questions(self):
        for model, requests, options in self.each_run():
            forwards = raw(self.decide(model, requests, *options))
            turned = copy.deepcopy(requests[::-1])
            for request in turned:
                request["questions"] = dict(reversed(request["questions"].items()))
            backwards = raw(self.decide(model, turned, *options))[::-1]
            self.assertEqual(forwards, backwards)  # dictionaries compare without order

    def test_the_ids_of_questions_are_never_read_by_the_model(self):
        for model, requests, options in self.each_run():
            renamed = copy.deepcopy(requests)
            for request in renamed:
                request["questions"] = {f"renamed {name}": q for name, q in request["questions"].items()}
            plain = [list(answers.values()) for answers in raw(self.decide(model, requests, *options))]
            other = [list(answers.values()) for answers in raw(self.decide(model, renamed, *options))]
            self.assertEqual(plain, other)


if __name__ == "__main__":
    unittest.main()
