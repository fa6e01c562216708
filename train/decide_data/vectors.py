"""How words are used, from vectors.npz as make_vectors.py writes it. Only training's and development's samples use it."""

import functools
from pathlib import Path

FILE = Path(__file__).parent / "vectors.npz"


class Vectors:
    def __init__(self, arrays):
        self.words, self.vectors = str(arrays["words"]).split("\n"), arrays["vectors"]
        self.listed, self.near = arrays["listed"].tolist(), arrays["near"].tolist()
        self.place = {word: i for i, word in enumerate(self.words)}

    def neighbours(self, index):
        """The words nearest to a listed one, nearest first."""
        return [self.words[i] for i in self.near[index]]


@functools.cache
def vectors():
    import numpy as np

    if not FILE.exists():
        raise SystemExit(f"{FILE} is missing: train/make_vectors.py writes it")
    with np.load(FILE) as arrays:
        return Vectors(arrays)
