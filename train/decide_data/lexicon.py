"""Reads lexicon/*.txt: groups of concepts, each with names, descriptions and phrases; words by topic; synonyms; languages.

    == group [ordered] [where its phrases stand]
    n: names; !names of the test
    d: descriptions; !descriptions of the test
    = concept
    n: ...      d: ...
    phrase      ! phrase of the test
"""

import functools
from pathlib import Path

from .grammar import Phrases

FOLDER = Path(__file__).parent / "lexicon"
FURTHER_FILES = ("service_words.txt", "world_words.txt", "tones.txt")


class Named:
    def __init__(self, key):
        self.key, self.names, self.descriptions = key, Phrases([key]), None


class Concept(Named):
    def __init__(self, key, group):
        super().__init__(key)
        self.group, self.lines = group, []
        self.phrases = None

    def __repr__(self):
        return f"{self.group.key}/{self.key}"


class Group(Named):
    def __init__(self, header):
        words = header.split()
        self.ordered = "ordered" in words
        self.place = words[-1] if self.ordered or words[-1] in ("message", "chat", "sentence") else "topic"
        cut = words.index("ordered") if self.ordered else (len(words) - (self.place != "topic"))
        super().__init__(" ".join(words[:cut]))
        self.concepts = []


def lines_of(name):
    for line in (FOLDER / name).read_text(encoding="utf-8").split("\n"):
        if line.strip() and not line.startswith("#"):
            yield line.strip()


def read_groups(name):
    groups, current = [], None
    for line in lines_of(name):
        if line.startswith("== "):
            current = Group(line[3:])
            groups.append(current)
        elif line.startswith("= "):
            current = Concept(line[2:], groups[-1])
            groups[-1].concepts.append(current)
        elif line.startswith("n: "):
            current.names = Phrases(line[3:].split(";"))
        elif line.startswith("d: "):
            current.descriptions = Phrases(line[3:].split(";"))
        else:
            current.lines.append(line)
    more, further = more_phrases(), further_words()
    for group in groups:
        add_further(group, further.get((group.key, ""), []))
        for concept in group.concepts:
            concept.phrases = Phrases(concept.lines)
            concept.phrases.add(more.get(concept.key, []))
            own = (group.key, "" if concept.key == group.key else concept.key)
            add_further(concept, further.get(own, []))
    return groups


def add_further(named, lines):
    """Names, descriptions and phrases that only training and development have."""
    kinds = {"n: ": named.names, "d: ": named.descriptions}
    for start, phrases in kinds.items():
        found = [word for line in lines if line.startswith(start) for word in line[3:].split(";")]
        if found and phrases:
            phrases.add([word.strip() for word in found])
    rest = [line for line in lines if not line.startswith(tuple(kinds))]
    if rest and isinstance(named, Concept):
        named.phrases.add(rest)


@functools.cache
def further_words():
    """(group, concept or "") -> lines for training and development, from FURTHER_FILES."""
    further = {}
    for name in FURTHER_FILES:
        for line in lines_of(name):
            if line.startswith("= "):
                group, _, concept = line[2:].partition(" / ")
                current = further.setdefault((group.strip(), concept.strip()), [])
            else:
                current.append(line)
    return further


@functools.cache
def more_phrases():
    """Concept -> phrases for training alone, from more_phrases.txt."""
    more = {}
    for line in lines_of("more_phrases.txt"):
        if line.startswith("= "):
            current = more.setdefault(line[2:].strip(), [])
        else:
            current.append(line)
    return more


TOPIC_FILES = ("topics_service.txt", "topics_life.txt", "topics_it.txt", "topics_news.txt")
TOPICS = [group for name in TOPIC_FILES for group in read_groups(name)]
CONCEPTS = [concept for group in TOPICS for concept in group.concepts]
AXES = {group.key: group for group in read_groups("axes.txt")}
BY_KEY = {concept.key: concept for concept in CONCEPTS}


def read_words():
    """(names, words) of every topic."""
    topics = []
    for line in lines_of("words.txt"):
        head, words = line.split(": ", 1)
        name, _, more = head.partition("|")
        topics.append(([name, *[x.strip() for x in more.split(",") if x.strip()]], [w.strip() for w in words.split(",")]))
    return topics


def read_synonyms(name):
    """(words, words of the contrary) of every line."""
    pairs = []
    for line in lines_of(name):
        one, _, other = line.partition(" / ")
        pairs.append(([w.strip() for w in one.split(",")], [w.strip() for w in other.split(",") if w.strip()]))
    return pairs


class SharedNames:
    """What a language is called is a word of the language in every split."""

    def __init__(self, names):
        self.names = names

    def choose(self, rng, _split):
        return rng.choice(self.names)


class Language(Named):
    def __init__(self, key, names):
        super().__init__(key)
        self.names, self.kinds = names, {}


def read_languages():
    languages, raw = [], {}
    for line in lines_of("languages.txt"):
        if line.startswith("== "):
            key, _, names = line[3:].partition(" | ")
            languages.append(Language(key, SharedNames([x.strip() for x in names.split(";")])))
            raw[key] = {}
            continue
        test_kind = line.startswith("!")
        kind, _, phrase = line.lstrip("!").partition(": ")
        if test_kind and not phrase.startswith("!"):
            phrase = "!" + phrase
        raw[languages[-1].key].setdefault(kind, []).append(phrase)
    for language in languages:
        language.kinds = {kind: Phrases(lines) for kind, lines in raw[language.key].items()}
    return languages


WORDS = read_words()
SYNONYMS = read_synonyms("synonyms.txt")
THESAURUS = read_synonyms("thesaurus.txt")  # training's alone
LANGUAGES = read_languages()
