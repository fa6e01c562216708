"""Makes tests/data/python-cases.json: what CPython itself makes of JSON, for the code that must print as it does.

usage: python3 oracle/python_cases.py > tests/data/python-cases.json

`flat`: JSON texts and the labelled lines of jaredpalmer/kev's text layout for what json.loads reads of them.
`round`: doubles and round(x, 2). `dumps`: strings and json.dumps of them. Only the standard library is used.
"""
import json
import random
import struct

SPACES = [
    "", " ", "\t", "\n", "\r\n", "\u00a0", "\u1680", "\u2003", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000",
    "\x1c", "\x1f", "\x85", "\x0b", "\u200b", "\ufeff", "\u180e",
]
WORDS = ["a", "order", "naïve", "日本語", "<|fim_suffix|>", "- x", "k: v", "line\nbreak", "👍🏽", "", "True", "null"]
NUMBERS = [
    "0", "-0", "7", "-12", "18446744073709551616", "-9223372036854775809", "1" * 320, "0.0", "-0.0", "1.0", "100.0",
    "1e5", "1E5", "1e15", "1e16", "1e+16", "123456789012345678", "1234567890123456.7", "1e-4", "1e-5", "0.00001234",
    "1.5e300", "5e-324", "1e-400", "-1e-400", "2.5", "0.1", "1e22", "1e23", "9007199254740993.0",
    "1.7976931348623157e308", "4.35", "0.30000000000000004", "123e-7", "-1.25E+2",
]


def flat(value, depth=0):
    """The text layout, by its description: scalars by str, null as nothing, two spaces a level."""
    pad = "  " * depth
    if isinstance(value, dict):
        return "\n".join(
            pad + key + (":\n" + flat(item, depth + 1) if isinstance(item, (dict, list)) else ": " + flat(item))
            for key, item in value.items())
    if isinstance(value, list):
        return "\n".join(pad + "- " + flat(item, depth + 1).lstrip() for item in value)
    return "" if value is None else str(value)


def text_of(rng):
    return rng.choice(SPACES) * rng.randint(0, 2) + rng.choice(WORDS) + rng.choice(SPACES)


def value_of(rng, depth):
    """JSON text of a random value; members may repeat."""
    kind = rng.choice("sssnnbN" if depth == 0 else "ssnbNaaoo")
    space = rng.choice(["", " ", "\n"])
    if kind == "s":
        return json.dumps(text_of(rng), ensure_ascii=rng.random() < 0.5)
    if kind in "nbN":
        return rng.choice({"n": NUMBERS, "b": ["true", "false"], "N": ["null"]}[kind])
    items = [value_of(rng, depth - 1) for _ in range(rng.choice([0, 1, 2, 3]))]
    if kind == "a":
        return "[" + space + ("," + space).join(items) + space + "]"
    return "{" + ",".join(json.dumps(text_of(rng)) + ":" + space + item for item in items) + "}"


def doubles(rng):
    yield from [0.0, 0.005, 0.015, 0.125, 0.375, 0.625, 0.875, 0.995, 0.9949999999999999, 1.0]
    yield from [2.675, 1.005, 254.0, 3.145, -0.125, 1e-300]
    for _ in range(300):
        yield rng.random()
    for _ in range(100):
        yield rng.randint(0, 2000) / 200
    for _ in range(100):
        yield struct.unpack("f", struct.pack("f", rng.random()))[0] * rng.choice([1, 9, 254])


def main():
    rng = random.Random(20)
    texts = list(NUMBERS) + ["{}", "[]", "[[]]", "[[],{}]", '{"":""}', '{"a":{}}', '"\\ud83d\\ude00"']
    texts += ['{"a":1,"b":2,"a":3}', '{"a":{"x":1},"b":[],"a":[1]}', '[[[1,2],[3]],[{"a":[{"b":null}]}]]']
    texts += ['[" a\\n b"]', '[{" k":1," l":2}]']
    texts += [value_of(rng, rng.randint(0, 5)) for _ in range(400)]
    strings = ["", "plain", "\"\\/\b\f\n\r\t", "\x00\x1f\x7f\x80", "é日👍", "\u2028\u2029"]
    cases = {
        "flat": [{"json": text, "text": flat(json.loads(text))} for text in texts],
        "round": [[x, round(x, 2)] for x in doubles(rng)],
        "dumps": [[text, json.dumps(text)] for text in strings],
    }
    print(json.dumps(cases, indent=0))


main()
