"""An answer depends on its own row alone: the same question has the same bits however it is asked."""

import copy
import unittest

import program
from program import ProgramTest


def one_by_one(request):
    for name, question in request["questions"].items():
        yield {**request, "questions": {name: question}}


class SameBits(ProgramTest):
    def check(self, compare):
        """compare(ask, requests) on every checkpoint and precision. ask(requests, options…) gives the questions'
        logits and probabilities, all digits, per request."""
        for checkpoint in program.CHECKPOINTS:
            requests = [record["request"] for record in program.fixture(checkpoint)["records"]]
            for precision in ("fp32", "bf16"):

                def ask(asked, *options):
                    common = (program.run_dir(checkpoint), asked, "--precision", precision)
                    return [response["raw"] for response in self.decide(*common, *options)]

                with self.subTest(checkpoint=checkpoint, precision=precision):
                    compare(ask, requests)

    def test_with_one_thread_two_and_three(self):
        def compare(ask, requests):
            one = ask(requests, "--threads", "1")
            self.assertEqual(one, ask(requests, "--threads", "2"))
            self.assertEqual(one, ask(requests, "--threads", "3"))

        self.check(compare)

    def test_asked_whole_and_question_by_question(self):
        def compare(ask, requests):
            parts = iter(ask([single for request in requests for single in one_by_one(request)]))
            for answers in ask(requests):
                for name in answers:
                    self.assertEqual(next(parts), {name: answers[name]})

        self.check(compare)

    def test_with_the_state_from_the_cache_evicted_or_never_kept(self):
        def compare(ask, requests):
            twice = [request for request in requests for _ in range(2)]
            never = ask(twice, "--state-cache", "0")
            self.assertEqual(never[0::2], never[1::2])
            self.assertEqual(never, ask(twice, "--state-cache", "1G"))
            self.assertEqual(never, ask(twice, "--state-cache", "2M"))

        self.check(compare)

    def test_after_other_requests_and_in_another_order_of_requests_and_questions(self):
        def compare(ask, requests):
            turned = copy.deepcopy(requests[::-1])
            for request in turned:
                request["questions"] = dict(reversed(request["questions"].items()))
            # Dictionaries compare without order.
            self.assertEqual(ask(requests), ask(turned)[::-1])

        self.check(compare)

    def test_the_ids_of_questions_are_never_read_by_the_model(self):
        def compare(ask, requests):
            renamed = copy.deepcopy(requests)
            for request in renamed:
                request["questions"] = {f"renamed {name}": q for name, q in request["questions"].items()}
            plain = [list(answers.values()) for answers in ask(requests)]
            self.assertEqual(plain, [list(answers.values()) for answers in ask(renamed)])

        self.check(compare)


if __name__ == "__main__":
    unittest.main()
