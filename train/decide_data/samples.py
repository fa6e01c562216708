"""The mixture: one call makes one state with its questions and their targets, from a seed, for one split."""

import random

from . import numbers_and_rules as rules
from . import reading, topics
from .asking import World

FAMILIES = {
    topics.message: 27, topics.moods: 24, topics.log: 3, topics.support_chat: 5,
    rules.rule: 12, rules.table: 4, rules.calendar: 5, rules.tiers: 3, rules.fields: 3, rules.warranty: 1.5,
    reading.duties: 3, reading.places: 3, reading.events: 3, reading.agreement: 2, reading.review: 6, reading.states_of_things: 5,
    reading.lexical: 9, reading.foreign: 9, reading.unknowable: 1.5, reading.irony: 1.5, reading.copying: 4,
}  # fmt: skip
# Training sees more of what is learnt last, matching of names and comparing of numbers, and it in its plainest form too.
MORE = {rules.plain_numbers: 8, reading.copying: 12, rules.table: 8, rules.rule: 18, reading.lexical: 14, reading.states_of_things: 8,
        reading.duties: 7, reading.places: 6, reading.events: 5, rules.calendar: 7, rules.tiers: 5}  # fmt: skip
TRAINING = {**FAMILIES, **MORE}
UNCLEAR = 0.62  # a target with no option above this has no right answer


def sample(seed, split):
    """A dict: family, state, questions as [(question, target)]."""
    rng = random.Random(f"{split} {seed}")
    mixture = TRAINING if split == "train" else FAMILIES
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
