"""Questions with their targets: how options are worded and shuffled, and how levels are placed on a scale."""

import math

from .grammar import Phrases, fill
from .vocab import Slots


class World:
    """What one sample is made with: the random numbers, the split, the slots of its state."""

    def __init__(self, rng, split):
        self.rng, self.split = rng, split
        self.slots = Slots(rng, split)

    def say(self, phrases):
        return fill(phrases.choose(self.rng, self.split), self.rng, self.slots)

    def reworded(self, text):
        """Now and then with other words of the same meaning: training's alone."""
        from .texts import varied

        return varied(self, text, 0.15)

    def chance(self, probability):
        return self.rng.random() < probability

    def pick(self, items):
        return self.rng.choice(items)

    def sample(self, items, count):
        return self.rng.sample(items, min(count, len(items)))


def noul(instructions, probability, criteria=None):
    question = {"type": "noul", "instructions": instructions}
    if criteria:
        question["criteria"] = criteria
    return question, [1 - probability, probability]


def choice(world, instructions, options, right, other=0.0):
    """`options`: name -> text or None; `right`: a name, or name -> probability. `other`: what the wrong share together."""
    names = list(options)
    world.rng.shuffle(names)
    wanted = right if isinstance(right, dict) else {right: 1.0}
    target = [wanted.get(name, 0.0) * (1 - other) + (other / len(names)) for name in names]
    total = sum(target)
    return {"type": "choice", "instructions": instructions, "criteria": {name: options[name] for name in names}}, [
        p / total for p in target
    ]


def score(instructions, levels, target):
    total = sum(target)
    return {"type": "score", "instructions": instructions, "criteria": list(levels)}, [p / total for p in target]


def uniform(question):
    kind, criteria = question["type"], question.get("criteria")
    count = 2 if kind == "noul" else len(criteria)
    return [1 / count] * count


def named(world, concepts, style=None):
    """Options for concepts: name -> description, in one of three styles. Returns (options, concept -> name)."""
    style = style or world.pick(["names", "names", "both", "both", "descriptions"])
    options, chosen = {}, {}
    for concept in concepts:
        name = None
        for _ in range(8):
            use_description = style == "descriptions" and concept.descriptions
            name = world.reworded(world.say(concept.descriptions if use_description else concept.names))
            if name not in options and (world.split == "test" or name.lower() not in Phrases.TESTED):
                break
        if name in options:
            continue
        text = world.reworded(world.say(concept.descriptions)) if style == "both" and concept.descriptions and world.chance(0.85) else None
        if world.chance(0.12):
            name = world.pick([str.upper, str.title, lambda t: t.replace(" ", "_"), lambda t: t.replace(" ", "-")])(name)
        if name in options:
            continue
        options[name], chosen[concept.key] = text, name
    return options, chosen


OTHER = Phrases("other\nnone of these\nsomething else\nanother topic\nnone\nnone of the above\nelse\n!a different matter\n!not listed")
SCALE_ENDS = Phrases("0\n1")


def spread(position, count, width=0.35):
    """Weights over `count` evenly spaced levels for something at `position` in 0..1."""
    places = [i / (count - 1) for i in range(count)]
    weights = [math.exp(-(((place - position) * (count - 1)) ** 2) / (2 * width * (count - 1) * 0.5 + 1e-9)) for place in places]
    total = sum(weights)
    return [w / total for w in weights]


NUMBERED = ["{}", "{} points", "level {}", "{} stars", "{} out of {top}", "grade {}"]


def numbered_levels(world):
    first, last = world.pick([(1, 5), (1, 5), (0, 10), (1, 10), (0, 3), (1, 3), (0, 4), (1, 4), (1, 7)])
    form = world.pick(NUMBERED[:1] * 3 + NUMBERED)
    return [form.format(i, top=last) for i in range(first, last + 1)]


def scale_question(world, instructions, axis, index):
    """A score question on an ordered axis whose true level is `index`: all its levels, some of them, or numbers."""
    count = len(axis.concepts)
    if world.chance(0.25):
        levels = numbered_levels(world)
        ends = axis.concepts[0], axis.concepts[-1]
        low, high = (world.say(c.descriptions if c.descriptions and world.chance(0.4) else c.names) for c in ends)
        if world.chance(0.6):
            levels[0], levels[-1] = f"{levels[0]}: {low}", f"{levels[-1]}: {high}"
        elif instructions and isinstance(instructions, str):
            instructions += f" ({levels[0]} = {low}, {levels[-1]} = {high})"
        return score(instructions, levels, spread(index / (count - 1), len(levels)))
    kept = list(range(count))
    if count > 2 and world.chance(0.35):
        kept = sorted(world.sample(kept, world.rng.randint(2, count - 1)))
    describe = world.chance(0.3)
    levels = []
    for i in kept:
        concept = axis.concepts[i]
        text = world.reworded(world.say(concept.names))
        if describe and concept.descriptions:
            text = world.say(concept.descriptions) if world.chance(0.5) else f"{text}: {world.say(concept.descriptions)}"
        levels.append(text)
    if index in kept:
        target = [0.94 if i == index else 0.0 for i in kept]
        near = [j for j, i in enumerate(kept) if abs(i - index) == 1]
        for j in near:
            target[j] += 0.06 / len(near)
    else:
        below = [j for j, i in enumerate(kept) if i < index]
        above = [j for j, i in enumerate(kept) if i > index]
        target = [0.0] * len(kept)
        for j in ([below[-1]] if below else []) + ([above[0]] if above else []):
            target[j] = 1.0
    return score(instructions, levels, target)
