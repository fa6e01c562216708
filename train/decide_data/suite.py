"""Writes a suite of questions with the answers that they should get.

usage: python3 train/decide_data/suite.py OUT.jsonl [--questions N] [--split test|dev] [--seed S]

One line a request: {"id", "family", "request": {"state", "questions"}, "expected": {question: answer}}. An answer is true
or false, an option's name, or a score's mean level; null where the state cannot tell, and then every answer but an even
one is wrong.
"""

import argparse
import json
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from decide_data.samples import answer, sample


def lines(split, questions, seed):
    count, i = 0, 0
    while count < questions:
        made = sample(seed * 1_000_000 + i, split)
        i += 1
        asked = {f"q{k}": question for k, (question, _) in enumerate(made["questions"])}
        expected = {f"q{k}": answer(*pair) for k, pair in enumerate(made["questions"])}
        count += len(asked)
        yield {"id": f"{split}-{i:05d}", "family": made["family"], "request": {"state": made["state"], "questions": asked},
               "expected": expected}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--questions", type=int, default=2400)
    parser.add_argument("--split", choices=["dev", "test"], default="test")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with open(arguments.out, "w", encoding="utf-8") as file:
        for line in lines(arguments.split, arguments.questions, arguments.seed):
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
