"""English words with their senses and relations, from dictionary.txt.gz as make_dictionary.py writes it.

Only training's and development's samples use it; the test's are made without it.
"""

import functools
import gzip
from pathlib import Path

from .grammar import digest

FILE = Path(__file__).parent / "dictionary.txt.gz"
# Words that hold sentences together: dictionaries know nouns and verbs that are written like them.
FUNCTION_WORDS = set("""a about above across after again against all alone along also although always am among an and another any
are around as at away back be because been before being below between both but by can cannot could did do does doing done down
during each either else enough even ever every few for free from further get gets getting go goes going gone good got had has have
having he her here hers him his how however i if in into is it its itself just know known less let like made make makes making many
may me might mine more most much must my near need never no none nor not nothing now of off often on once one only or other our ours
out over own past per please put quite rather right same see set she should since so some soon still such take taken takes tell than
that the their them then there these they thing things this those though three through till time to together too two under until up
upon us use used very via was way we well went were what when where whether which while who whom whose why will with within without
would yes yet you your yours first last next new old great back light fast hard fine fair mean kind open close order book issue
short mad cold fit past dear leave love try turn play show stage share mark paper note line key code cross blue left current fall
day week month year hour minute man men day""".split())  # fmt: skip

CONCRETE = {"noun.artifact", "noun.food", "noun.animal", "noun.object", "noun.plant"}


class Sense:
    __slots__ = ("part", "field", "words", "counts", "definition", "examples", "hypernyms", "similar", "antonyms", "domains", "narrower")

    def __init__(self, fields):
        self.part, self.field, words, self.definition, examples, hypernyms, similar, antonyms, domains = fields
        pairs = [word.rsplit(":", 1) for word in words.split("|")]
        self.words, self.counts = [word for word, _ in pairs], [int(count) for _, count in pairs]
        self.examples = [e for e in examples.split("|") if e]
        self.hypernyms, self.similar, self.domains = ([int(n) for n in x.split("|") if n] for x in (hypernyms, similar, domains))
        self.antonyms = dict(pair.split("=") for pair in antonyms.split("|") if pair)
        self.narrower = []


class Dictionary:
    def __init__(self, lines):
        self.senses, self.frequency, self.valence, self.irregular = [], {}, {}, {}
        for line in lines:
            kind, *fields = line.rstrip("\n").split("\t")
            if kind == "s":
                self.senses.append(Sense(fields))
            elif kind == "f":
                self.frequency[fields[0]] = int(fields[1])
            elif kind == "v":
                self.valence[fields[0]] = int(fields[1])
            else:
                self.irregular.setdefault((fields[0], fields[2]), []).append(fields[1])
        self.by_word = {}
        for sense in self.senses:
            for word, count in zip(sense.words, sense.counts):
                self.by_word.setdefault(word, []).append((sense, count))
            for above in sense.hypernyms:
                self.senses[above].narrower.append(sense)

    def known(self, word):
        """How usual a word is: its rarest part's count in definitions and examples."""
        return min((self.frequency.get(part, 0) for part in word.lower().replace("-", " ").split()), default=0)

    def share(self, word, sense):
        """How much of a word's use is of one sense."""
        found = self.by_word.get(word, [])
        return sum(count + 0.5 for s, count in found if s is sense) / max(0.5, sum(count + 0.5 for _, count in found))

    def main_sense(self, word, share=0.5):
        """The sense that `word` mostly has, or None."""
        if word in FUNCTION_WORDS or word not in self.by_word:
            return None
        sense = max(self.by_word[word], key=lambda pair: pair[1])[0]
        return sense if self.share(word, sense) >= share else None

    @functools.cached_property
    def things(self):
        """Usual names of things that one can see, of one word."""
        return sorted({w for sense in self.senses if sense.field in CONCRETE for w in sense.words if w.isalpha() and w.islower()
                       and 2 < len(w) < 12 and self.known(w) > 2 and self.share(w, sense) > 0.3})  # fmt: skip

    def past(self, verb):
        irregular = [form for form in self.irregular.get(("v", verb), []) if not form.endswith("ing")]
        if len(irregular) > 1:
            return None
        return irregular[0] if irregular else regular(verb, "ed")

    def forms(self, word, part):
        """kind -> form of a word: singular and plural, or the four of a regular verb."""
        if part == "n":
            irregular = self.irregular.get(("n", word))
            return {"": word, "s": irregular[0] if irregular else regular(word, "s")}
        if part == "v":
            ing = [form for form in self.irregular.get(("v", word), []) if form.endswith("ing")]
            return {"": word, "s": regular(word, "s"), "ed": self.past(word), "ing": ing[0] if ing else regular(word, "ing")}
        return {"": word}


def regular(word, ending):
    """A word with -s, -ed or -ing."""
    if ending == "s":
        if word.endswith(("s", "x", "z", "ch", "sh")):
            return word + "es"
        return word[:-1] + "ies" if word.endswith("y") and word[-2:-1] not in "aeiou" else word + "s"
    if word.endswith("e") and not word.endswith(("ee", "ye", "oe")):
        return word + "d" if ending == "ed" else word[:-1] + "ing"
    if ending == "ed" and word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ied"
    return word + ending


def withheld(word):
    """Words that development asks about and training does not."""
    return digest("withheld " + word) % 16 == 0


@functools.cache
def dictionary():
    if not FILE.exists():
        raise SystemExit(f"{FILE} is missing: train/make_dictionary.py writes it")
    with gzip.open(FILE, "rt", encoding="utf-8") as file:
        return Dictionary(file)


@functools.cache
def substitutes():
    """Form of a word -> forms of others that mean the same, for words of one usual meaning."""
    book, table = dictionary(), {}
    for word in book.by_word:
        if " " in word or "-" in word or len(word) < 3 or book.known(word) < 3:
            continue
        sense = book.main_sense(word)
        if not sense:
            continue
        others = [w for w in sense.words if w != word and w == w.lower() and book.known(w) >= 3 and w not in FUNCTION_WORDS
                  and book.share(w, sense) >= 0.34 and not set(w.split()) & {"up", "out", "off"}]  # fmt: skip
        for kind, form in book.forms(word, sense.part).items():
            made = [book.forms(other, sense.part).get(kind) for other in others if kind == "" or " " not in other]
            if form and any(made):
                table.setdefault(form, []).extend(m for m in made if m)
    return table
