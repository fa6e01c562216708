"""Phrases with alternatives and slots, and which of them training, development and test data may use.

A phrase is text with (alternative|alternative) and {slot}. A list of phrases is parted once for all by its text
alone: lines that begin with "!" belong to the test, and of two or more the last of the others, so that the test has
plain wordings as well as unusual ones. Of the rest some are withheld from training for development, which so differs from
training as the test does, and on which choices are made without a look at the test.
"""

import functools
import hashlib
import re
from pathlib import Path

SPLITS = ("train", "dev", "test")
GROUP = re.compile(r"\(([^()|]*(?:\|[^()|]*)+)\)")
SLOT = re.compile(r"\{([a-z_]+?)(2?)\}")


def digest(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


@functools.cache
def more_wordings():
    """First line of a list -> further lines of it for training alone, from lexicon/more_wordings.txt."""
    more = {}
    file = Path(__file__).parent / "lexicon/more_wordings.txt"
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            current = more.setdefault(line[2:].strip(), [])
        elif line.strip() and not line.startswith("#"):
            current.append(line.strip())
    return more


def withheld(items, least=4):
    """Those of training's items that development has for itself: one in five, and one at least of `least` or more."""
    order = sorted(items, key=lambda item: digest(f"dev {item}"))
    return order[: max(len(items) // 5, int(len(items) >= least))]


def divided(items):
    """split -> the items of a list for training that it may use."""
    kept = withheld(items)
    return {"train": [item for item in items if item not in kept], "dev": kept or list(items)}


def parted(table):
    """{"train": ..., "test": ...} of lists or dicts, with a share of training's withheld as "dev"."""
    both = divided(list(table["train"]))
    if isinstance(table["train"], dict):
        both = {split: {key: table["train"][key] for key in keys} for split, keys in both.items()}
    return {**table, **both, "all": table["train"]}


class Phrases:
    """Lists of templates for each split. `lines`: text, one phrase a line, or a list of phrases; `tested`: whether the test
    has some of them."""

    TESTED = set()  # every line that only the test has, in lower case

    def __init__(self, lines, tested=True):
        if isinstance(lines, str):
            lines = lines.split("\n")
        lines = [line.strip() for line in lines if line.strip()]
        plain = [line for line in lines if not line.startswith("!")]
        test = [line[1:].strip() for line in lines if line.startswith("!")]
        self.unusual = set(test)
        first = plain[0] if plain else ""
        if len(plain) >= 2 and tested:
            test.append(plain.pop())
        self.lists, self.checked = {"test": test or plain}, set()
        self.own_test = bool(test)
        self.TESTED.update(line.lower() for line in test)
        self.train_on(plain + more_wordings().get(first, []))

    def train_on(self, lines):
        self.lists.update(divided(lines))

    def add(self, lines):
        """Further phrases that the test does not have."""
        known = self.lists["train"] + (self.lists["dev"] if self.lists["dev"] != self.lists["train"] else [])
        self.train_on([*known, *lines])

    def usable(self, split):
        """The split's lines; training and development use none that some list has for the test alone."""
        if split != "test" and split not in self.checked:
            self.checked.add(split)
            self.lists[split] = untested(self.lists[split]) or untested(self.lists["train"]) or self.lists[split][:1]
        return self.lists[split]

    def choose(self, rng, split):
        lines = self.usable(split)
        if split != "test" or len(lines) < 2:
            return rng.choice(lines)
        # However many there are of each: plain wordings four times in five, unusual ones else.
        unusual = [line for line in lines if line in self.unusual]
        usual = [line for line in lines if line not in self.unusual]
        if unusual and usual:
            return rng.choice(unusual if rng.random() < 0.2 else usual)
        return rng.choice(lines)


def untested(items):
    """Those whose text the test does not have for itself; of tuples all texts count."""
    return [item for item in items if not {x.lower() for x in ([item] if isinstance(item, str) else item)} & Phrases.TESTED]


def expand(template, rng):
    """One of the readings of the alternatives of `template`, innermost groups first."""
    while True:
        found = GROUP.search(template)
        if not found:
            break
        template = template[: found.start()] + rng.choice(found[1].split("|")) + template[found.end() :]
    return re.sub(r" +([?.,!:;])", r"\1", re.sub(r"  +", " ", template)).strip()


def fill(template, rng, slots):
    """Text of a template: alternatives chosen, then every slot replaced by slots(name, second)."""
    return SLOT.sub(lambda m: slots(m[1], bool(m[2])), expand(template, rng))
