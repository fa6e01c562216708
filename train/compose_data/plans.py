"""What a planner is asked and what it answers, as the product writes both (music/planner_text.cpp), in words and as tokens.

An answer is a thought, lines of metadata, and then the song's audio codes. The product gives no song with a planner fewer
than SHORTEST seconds."""

import random

from compose_data import captions, score

SHORTEST, LONGEST = 10, 16  # seconds
CODES = 5  # a second
TOKENS = 256  # of prompt and answer
# Kinds of rows, of every song: with everything, and the two prompts that the product's guidance leads away from.
KINDS = ("all",) * 8 + ("no caption", "no thought")
NO_THOUGHT = "<think>\n\n</think>\n\n"
END = "<|im_end|>"
DURATIONS = {"train": ("{d} seconds", "{d} s", "{d} seconds long", "lasting {d} seconds"),
             "test": ("for {d} seconds", "{d} seconds of it")}  # fmt: skip


def added_tokens(codes):
    """A planner's, besides those that a byte-level BPE has."""
    return ["<|endoftext|>", "<|im_start|>", END, "<think>", "</think>", *(f"<|audio_code_{i}|>" for i in range(codes))]


def chat(user):
    return (f"<|im_start|>system\n# Instruction\n{captions.INSTRUCTIONS['cover']}\n\n<|im_end|>\n<|im_start|>user\n{user}"
            "<|im_end|>\n<|im_start|>assistant\n")  # fmt: skip


def prompt(caption, lines):
    """`caption` None: the first phase's without guidance."""
    return chat(f"# Lyric\n{lines}\n" if caption is None else f"# Caption\n{caption}\n\n# Lyric\n{lines}\n")


def metadata_lines(made, seconds, key, language):
    return (f"bpm: {made.bpm}\nduration: {seconds}\nkeyscale: {key}\nlanguage: {language}\n"
            f"timesignature: {made.beats}\n")  # fmt: skip


def read_lines(text):
    """Metadata as {name: value}; what is no such line is left out."""
    return dict(line.split(": ", 1) for line in text.split("\n") if ": " in line)


def spellings(made):
    mode = "minor" if made.minor else "major"
    return [f"{names[made.tonic]} {mode}" for names in (captions.SHARP, captions.FLAT)]


def caption(chance, made, split, seconds):
    """In words; one in three says the duration."""
    words = captions.caption(chance, made, split)
    if chance.random() < 1 / 3:
        words += ", " + chance.choice(DURATIONS[split]).format(d=seconds)
    return words


def key_in(chance, words, made):
    """The song's key as a caption spells it, or as it may be spelled."""
    return next((key for key in spellings(made) if key in words), chance.choice(spellings(made)))


def row(tokenizer, chance, made, codes, kind):
    """Token ids; where the answer begins; where its codes begin. `codes` are LONGEST seconds of the song's."""
    seconds = chance.randint(SHORTEST, LONGEST)
    words = caption(chance, made, "train", seconds)
    key, lines, language = key_in(chance, words, made), captions.lines(chance), chance.choice(captions.LANGUAGES)
    thought = f"<think>\n{metadata_lines(made, seconds, key, language)}</think>\n\n"
    asked = tokenizer.encode(prompt(None if kind == "no caption" else words, lines))
    before = asked + tokenizer.encode(NO_THOUGHT if kind == "no thought" else thought)
    first = tokenizer.vocabulary["<|audio_code_0|>"]
    answer = [first + code for code in codes[: CODES * seconds]] + [tokenizer.vocabulary[END]]
    return before + answer, len(before) if kind == "no thought" else len(asked), len(before)


def rows(tokenizer, seed, codes):
    """A song's, one of each of KINDS."""
    made, found = score.make(seed, "train", 1), []
    for i, kind in enumerate(KINDS):
        chance = random.Random(f"plan {seed} {i}")
        found.append(row(tokenizer, chance, made, codes, kind))
        while len(found[-1][0]) > TOKENS:
            found[-1] = row(tokenizer, chance, made, codes, kind)
    return found
