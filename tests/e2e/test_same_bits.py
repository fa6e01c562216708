"""An answer depends on its own row alone: the same question has the same bits however it is asked."""

import copy
import unittest

import program
from program import ProgramTest


def one_by_one(request):
    for name, question in request["questions"].items():
        yield {**request, "questions": {name: question}}


class SameBits(ProgramTest):
    plain = {}  # (checkpoint, precision) -> its answers to the fixture's requests, asked once

    def check(self, compare):
        """compare(ask, requests, plain) on every checkpoint and precision. ask(requests, options…) gives the questions'
        logits and probabilities, all digits, per request; `plain` is that of the fixture's requests with no options."""
        for checkpoint in program.CHECKPOINTS:
            requests = [record["request"] for record in program.fixture(checkpoint)["records"]]
            for precision in ("fp32", "bf16"):

                def ask(asked, *options):
                    common = (program.run_dir(checkpoint), asked, "--precision", precision)
                    return [response["raw"] for response in self.decide(*common, *options)]

                with self.subTest(checkpoint=checkpoint, precision=precision):
                    if (checkpoint, precision) not in self.plain:
                        self.plain[checkpoint, precision] = ask(requests)
                    compare(ask, requests, self.plain[checkpoint, precision])

    def test_with_one_thread_three_and_one_a_core(self):
        def compare(ask, requests, plain):
            self.assertEqual(plain, ask(requests, "--threads", "1"))
            self.assertEqual(plain, ask(requests, "--threads", "3"))

        self.check(compare)

    def test_asked_whole_and_question_by_question(self):
        def compare(ask, requests, plain):
            parts = iter(ask([single for request in requests for single in one_by_one(request)]))
            for answers in plain:
                for name in answers:
                    self.assertEqual(next(parts), {name: answers[name]})

        self.check(compare)

    def test_with_the_state_from_the_cache_evicted_or_never_kept(self):
        def compare(ask, requests, plain):
            self.assertEqual(plain, ask(requests, "--state-cache", "0"))
            twice = [request for request in requests for _ in range(2)]
            for size in ("1G", "2M"):
                found = ask(twice, "--state-cache", size)
                self.assertEqual(plain, found[0::2], size)
                self.assertEqual(plain, found[1::2], size)

        self.check(compare)

    def test_after_other_requests_and_in_another_order_of_requests_and_questions(self):
        def compare(ask, requests, plain):
            turned = copy.deepcopy(requests[::-1])
            for request in turned:
                request["questions"] = dict(reversed(request["questions"].items()))
            # Dictionaries compare without order.
            self.assertEqual(plain, ask(turned)[::-1])

        self.check(compare)

    def test_the_ids_of_questions_are_never_read_by_the_model(self):
        def compare(ask, requests, plain):
            renamed = copy.deepcopy(requests)
            for request in renamed:
                request["questions"] = {f"renamed {name}": q for name, q in request["questions"].items()}
            values = [list(answers.values()) for answers in plain]
            self.assertEqual(values, [list(answers.values()) for answers in ask(renamed)])

        self.check(compare)


if __name__ == "__main__":
    unittest.main()
