"""The mixture: one call makes one state with its questions and their targets, from a seed, for one split."""

import random

from . import binding, comparing, reading, topics, words
from . import numbers_and_rules as rules
from .asking import World

FAMILIES = {
    topics.message: 27, topics.moods: 24, topics.log: 3, topics.support_chat: 5,
    rules.rule: 12, rules.table: 4, rules.calendar: 5, rules.tiers: 3, rules.fields: 3, rules.warranty: 1.5,
    reading.duties: 3, reading.places: 3, reading.events: 3, reading.agreement: 2, reading.review: 6, reading.states_of_things: 5,
    reading.lexical: 9, reading.foreign: 9, reading.unknowable: 1.5, reading.irony: 1.5, reading.copying: 4,
}  # fmt: skip
# What makes its words from the dictionary: training's alone.
DICTIONARY = {words.defining: 12, words.fitting: 22, words.relations: 12, words.kinds: 9, words.subject_fields: 5, words.domains: 6, words.gaps: 6,
              words.valence: 16, words.mentioned: 3, words.neighbouring: 24}  # fmt: skip
OPEN = {binding.binding: 40, binding.recital: 20, binding.word_pairs: 4, binding.opposites: 6, binding.statuses: 8, comparing.limits: 20, comparing.rankings: 10, comparing.punctuality: 9}
# Training sees more of what is learnt last, matching of names and comparing of numbers, and it in its plainest form too.
MORE = {topics.message: 64, topics.moods: 50, topics.support_chat: 10, topics.log: 5, rules.plain_numbers: 6, reading.copying: 7, rules.table: 6,
        rules.rule: 14, reading.states_of_things: 8, reading.duties: 7, reading.places: 5, reading.events: 6, rules.calendar: 6, rules.tiers: 5,
        reading.review: 9, rules.warranty: 3}  # fmt: skip
TRAINING = {**FAMILIES, **MORE, **DICTIONARY, **OPEN}
UNCLEAR = 0.62  # a target with no option above this has no right answer


def sample(seed, split, mixture=None):
    """A dict: family, state, questions as [(question, target)]. `mixture`: family -> weight, else the split's."""
    rng = random.Random(f"{split} {seed}")
    mixture = mixture or (TRAINING if split == "train" else FAMILIES)
    family = rng.choices(list(mixture), list(mixture.values()))[0]
    world = World(rng, split)
    state, questions = family(world)
    return {"family": family.__name__, "state": state, "questions": questions}


def answer(question, target):
    """What a suite expects: true or false, an option's name, a level's number; None where there is no right answer."""
    best = max(range(len(target)), key=target.__getitem__)
    if question["type"] == "score":
        return sum(i * p for i, p in enumerate(target))
    if target[best] < UNCLEAR:
        return None
    return best == 1 if question["type"] == "noul" else list(question["criteria"])[best]
