"""Rows for training and evaluation: samples of decide_data as token ids, in batches of one length, made by processes."""

import itertools
import multiprocessing
import os
import random
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "train"), str(ROOT / "oracle")]

import kev_oracle as kev  # noqa: E402
from decide_data import binding, reading  # noqa: E402
from decide_data.samples import UNCLEAR, sample  # noqa: E402

LONGEST = 512
STEP = 32
MOST_OPTIONS = 12
# What training begins with, and for how many samples (some 1,500 batches): to find a name again is learnt all at once or not at
# all, and the sooner the less else goes on beside it.
BEGINNING, FIRST = {binding.word_pairs: 3, binding.recital: 3, binding.binding: 2, reading.copying: 1}, 100_000
TOLD, TOLD_BY_FAMILY = 0.5, {"word_pairs": 0.9, "recital": 0.9}  # of the rows of which every word counts: with other questions and their answers before their own
# Families whose every word counts: no word of theirs is blotted out.
EXACT = {"binding", "recital", "word_pairs", "opposites", "statuses", "limits", "rankings", "punctuality", "defining", "relations", "kinds", "subject_fields", "domains", "gaps", "neighbouring",
         "mentioned", "rule", "table", "calendar", "tiers", "fields", "warranty", "copying", "duties", "places", "events", "agreement", "lexical", "plain_numbers",
         "states_of_things"}  # fmt: skip


class Encoder:
    """Requests to rows, by the same layout as the oracle's, on the bare tokenizer, which is faster."""

    def __init__(self, tokenizer_file):
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(tokenizer_file))
        self.state, self.question, self.open, self.close, self.decide = (self.tokenizer.token_to_id(t) for t in kev.DELIMITERS)

    def rows(self, state, questions, before=()):
        """(ids, option ends) for each question. `before`: for each, where there are any, those that come before it in training with an
        answer each after the decision's token, as indices [(question, option)]."""
        pieces = [kev.flat(state)]
        for question in questions:
            pieces += [kev.flat(question["instructions"]), *kev.option_texts(question)]
        encoded = self.tokenizer.encode_batch([kev.CONTROL.sub("<\u00a6\\1\u00a6>", p) for p in pieces], add_special_tokens=False)
        ids = iter([e.ids for e in encoded])
        prefix = [self.state, *next(ids)]
        asked = [(next(ids), [next(ids) for _ in kev.option_texts(question)]) for question in questions]
        for (instructions, options), others in itertools.zip_longest(asked, before, fillvalue=()):
            row, ends = [*prefix], []
            for other, option in others:
                row += [self.question, *asked[other][0], self.decide, *asked[other][1][option]]
            row += [self.question, *instructions]
            for option in options:
                row += [self.open, *option, self.close]
                ends.append(len(row) - 1)
            yield [*row, self.decide], ends


def told_before(chance, questions, asked):
    """Other questions on the same state with their answers, in any order, as indices. A row with them has several places where the
    answer has to be found, and each is learnt from (decide.language_loss)."""
    best = [max(range(len(target)), key=target.__getitem__) for _, target in questions]
    others = [(i, best[i]) for i, (_, target) in enumerate(questions) if i != asked and target[best[i]] >= UNCLEAR]
    return chance.sample(others, len(others))


def training_rows(encoder, made, chance):
    """(row, ends, target, whether every word counts) of every question of a sample."""
    questions, exact, told = made["questions"], made["family"] in EXACT, TOLD_BY_FAMILY.get(made["family"], TOLD)
    before = [told_before(chance, questions, i) if exact and chance.random() < told else () for i in range(len(questions))]
    rows = encoder.rows(made["state"], [question for question, _ in questions], before)
    for (ids, ends), (_, target) in zip(rows, questions):
        yield ids, ends, target, exact


def packed(rows, length):
    """rows: (ids, ends, target, exact). Arrays of one batch, padded on the right."""
    count = max(MOST_OPTIONS, *(len(ends) for _, ends, _, _ in rows))  # the same for all batches
    ids = np.zeros((len(rows), length), np.int16)
    ends, target = np.zeros((len(rows), count), np.int16), np.full((len(rows), count), -1, np.float32)
    last, exact = np.zeros(len(rows), np.int16), np.zeros(len(rows), bool)
    for i, (row, row_ends, row_target, is_exact) in enumerate(rows):
        ids[i, : len(row)] = row
        ends[i, : len(row_ends)], target[i, : len(row_target)] = row_ends, row_target
        last[i], exact[i] = len(row) - 1, is_exact
    return ids, ends, target, last, exact


def padded(length):
    return -(-length // STEP) * STEP


def produce(index, workers, seed, tokenizer_file, tokens, queue):
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.nice(5)
    encoder, buckets, i = Encoder(tokenizer_file), {}, index
    while True:
        made = sample(seed * 1_000_000_000 + i, "train", BEGINNING if i < FIRST else None)
        i += workers
        for row in training_rows(encoder, made, random.Random(i)):
            ids, ends = row[:2]
            if len(ids) > LONGEST or len(ends) > MOST_OPTIONS:
                continue
            length = padded(len(ids))
            bucket = buckets.setdefault(length, [])
            bucket.append(row)
            if len(bucket) * length >= tokens:
                queue.put(packed(bucket, length))
                buckets[length] = []


class Producer:
    """Batches without end, deterministic for each process; their order is that of their making."""

    def __init__(self, seed, tokenizer_file, tokens, workers):
        context = multiprocessing.get_context("spawn")
        self.queue = context.Queue(maxsize=3 * workers)
        self.processes = [
            context.Process(target=produce, args=(k, workers, seed, str(tokenizer_file), tokens, self.queue), daemon=True)
            for k in range(workers)
        ]
        for process in self.processes:
            process.start()

    def get(self):
        return self.queue.get()

    def stop(self):
        for process in self.processes:
            process.terminate()


def evaluation_rows(encoder, samples):
    """(row, ends, target, family, type) of every question, in order."""
    for made in samples:
        questions = [question for question, _ in made["questions"]]
        for (ids, ends), (question, target) in zip(encoder.rows(made["state"], questions), made["questions"]):
            yield ids, ends, target, made["family"], question["type"]
