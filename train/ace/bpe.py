"""A byte-level BPE tokenizer as Qwen's: trained, written as tokenizer.json, and encoding ASCII, which is all that the
training texts are."""

import json
import re
from collections import Counter

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
WORDS = re.compile(PATTERN.replace(r"[^\r\n\p{L}\p{N}]", r"[^\r\na-zA-Z0-9]").replace(r"[^\s\p{L}\p{N}]", r"[^\sa-zA-Z0-9]")
                   .replace(r"\p{L}", "[a-zA-Z]").replace(r"\p{N}", "[0-9]"))  # fmt: skip
END = "<|endoftext|>"
SPECIAL = [END, "<|im_start|>", "<|im_end|>"]


def byte_letters():
    """GPT-2's printable stand-in for every byte, by byte."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [b for b in range(256) if b not in kept]
    return {**{b: chr(b) for b in kept}, **{b: chr(256 + i) for i, b in enumerate(moved)}}


LETTERS = byte_letters()
BYTES = {letter: byte for byte, letter in LETTERS.items()}


def letters_of(word):
    return tuple(LETTERS[b] for b in word.encode())


def joined(parts, pair):
    out, i = [], 0
    while i < len(parts):
        both = parts[i : i + 2] == pair
        out.append(parts[i] + parts[i + 1] if both else parts[i])
        i += 2 if both else 1
    return tuple(out)


def train(texts, size):
    """A tokenizer of at most `size` tokens with the special ones last."""
    words = Counter(word for text in texts for part in text.split(END) for word in WORDS.findall(part))
    words = {letters_of(word): count for word, count in words.items()}
    tokens, merges = sorted(LETTERS.values()), []
    while len(tokens) < size - len(SPECIAL):
        pairs = Counter()
        for word, count in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        # The alphabet breaks ties, so that the same texts give the same tokenizer.
        best = max(pairs, key=lambda pair: (pairs[pair], pair), default=None)
        if best is None or pairs[best] < 3:
            break
        merges.append(best)
        tokens.append(best[0] + best[1])
        words = {joined(word, best): count for word, count in words.items()}
    return Tokenizer({token: i for i, token in enumerate([*tokens, *SPECIAL])}, merges)


class Tokenizer:
    """`added` are tokens that no merge makes, found in a text before anything else."""

    def __init__(self, vocabulary, merges, added=tuple(SPECIAL)):
        self.vocabulary, self.merges, self.added = vocabulary, merges, added
        self.ranks, self.known = {tuple(pair): i for i, pair in enumerate(merges)}, {}
        self.tokens = {i: token for token, i in vocabulary.items()}
        self.between = re.compile("(" + "|".join(map(re.escape, added)) + ")")

    @classmethod
    def read(cls, text):
        document = json.loads(text)
        vocabulary = dict(document["model"]["vocab"])
        added = {token["content"]: token["id"] for token in document["added_tokens"]}
        return cls({**vocabulary, **added}, [tuple(pair) for pair in document["model"]["merges"]], tuple(added))

    def with_added(self, added):
        """The same merges, and other tokens after what they make."""
        kept = [self.tokens[i] for i in sorted(self.tokens) if self.tokens[i] not in self.added]
        return Tokenizer({token: i for i, token in enumerate([*kept, *added])}, self.merges, tuple(added))

    def __len__(self):
        return len(self.vocabulary)

    def word(self, word):
        if word not in self.known:
            parts = letters_of(word)
            while len(parts) > 1:
                best = min(zip(parts, parts[1:]), key=lambda pair: self.ranks.get(pair, len(self.ranks)))
                if best not in self.ranks:
                    break
                parts = joined(parts, best)
            self.known[word] = [self.vocabulary[part] for part in parts]
        return self.known[word]

    def encode(self, text):
        ids = []
        for i, part in enumerate(self.between.split(text)):
            if i % 2:
                ids.append(self.vocabulary[part])
                continue
            for word in WORDS.findall(part):
                ids += self.word(word)
        return ids

    def decode(self, ids):
        letters = "".join(self.tokens[i] for i in ids)
        return bytes(BYTES[letter] for letter in letters).decode(errors="replace")

    def json(self):
        added = [{"id": self.vocabulary[token], "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                  "normalized": False, "special": token.startswith("<|")} for token in self.added]  # fmt: skip
        split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}
        levels = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
        model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                 "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                 "vocab": {token: i for token, i in self.vocabulary.items() if token not in self.added},
                 "merges": [list(pair) for pair in self.merges]}  # fmt: skip
        return json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
                           "normalizer": {"type": "NFC"},
                           "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, levels]},
                           "post_processor": None,
                           "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
                           "model": model}, ensure_ascii=False, separators=(",", ":")) + "\n"  # fmt: skip
