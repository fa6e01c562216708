"""What a planner is worth: does it write what captions say, and as many codes as it says seconds? In two phases and with
guidance, as the product asks (music/planner.cpp), but free of the product's grammar."""

import random

import torch

from ace import bpe, files
from captured_steps import DEVICE, say
from compose_data import plans, score

GUIDANCE, TEMPERATURE, TOP_P, DCW = 2.0, 0.85, 0.9, (0.02, 0.06)  # the product's


def drawn(logits, temperature):
    """A token of each row; the likeliest where the temperature is 0. What is likely is chosen before the temperature, as in
    the product."""
    if temperature == 0:
        return logits.argmax(-1)
    likely, tokens = torch.softmax(logits, -1).sort(-1, descending=True)
    kept = likely.cumsum(-1) - likely <= TOP_P
    logits = logits.gather(-1, tokens).masked_fill(~kept, -torch.inf) / temperature
    return tokens.gather(-1, torch.multinomial(torch.softmax(logits, -1), 1)).squeeze(-1)


@torch.no_grad()
def written(planner, prompts, unguided, allowed, end, most, temperature):
    """Token ids after each prompt, up to the end token or `most`. `allowed` [vocabulary] are booleans."""
    texts, songs = prompts + unguided, torch.arange(2 * len(prompts), device=DEVICE)
    lengths = torch.tensor([len(text) for text in texts], device=DEVICE)
    longest = max(map(len, texts))
    ids = torch.tensor([text + [0] * (longest + most - len(text)) for text in texts], device=DEVICE)
    ended, found = torch.zeros(len(prompts), dtype=torch.bool, device=DEVICE), []
    for step in range(most):
        last = planner.hidden(ids[:, : longest + step])[songs, lengths - 1]
        guided, other = planner.logits(last).chunk(2)
        logits = (other + GUIDANCE * (guided - other)).masked_fill(~allowed, -torch.inf)
        tokens = drawn(logits, temperature)
        ids[songs, lengths] = torch.cat([tokens, tokens])
        lengths += 1
        ended |= tokens == end
        found.append(torch.where(ended, -1, tokens))
        if bool(ended.all()):
            break
    return [[token for token in row if token >= 0] for row in torch.stack(found, 1).tolist()]


class Question:
    """A test song's caption, and what it names: tempo, key and duration by name."""

    def __init__(self, seed):
        chance = random.Random(f"question {seed}")
        made, seconds = score.make(seed, "test", 1), chance.randint(plans.SHORTEST, plans.LONGEST)
        self.caption = plans.caption(chance, made, "test", seconds)
        self.named = {}
        if f"{made.bpm} bpm" in self.caption:
            self.named["bpm"] = lambda text: text.isdigit() and abs(int(text) / made.bpm - 1) <= 0.05
        if any(key in self.caption for key in plans.spellings(made)):
            self.named["keyscale"] = lambda text: text in plans.spellings(made)
        if f"{seconds} seconds" in self.caption:
            self.named["duration"] = lambda text: text == str(seconds)


def is_whole(lines):
    return set(lines) == {"bpm", "duration", "keyscale", "language", "timesignature"} and lines["duration"].isdigit()


def share(values):
    return round(sum(values) / len(values), 3) if values else None


def answered(planner, tokenizer, questions, temperature):
    """Shares of what captions name that the metadata has, and of songs that end where their metadata says."""
    names, encode = tokenizer.vocabulary, tokenizer.encode
    is_code = torch.tensor([token.startswith("<|audio_code_") for token in names], device=DEVICE)
    is_end = torch.tensor([token == plans.END for token in names], device=DEVICE)
    asked = [encode(plans.prompt(question.caption, "") + "<think>\n") for question in questions]
    without = [encode(plans.prompt(None, "") + "<think>\n")] * len(questions)
    ids = written(planner, asked, without, ~is_code, names["</think>"], 64, temperature)
    texts = [tokenizer.decode(row) for row in ids]
    lines = [plans.read_lines(text) for text in texts]
    right = {name: share([question.named[name](found.get(name, "")) for question, found in zip(questions, lines)
                          if name in question.named]) for name in ("bpm", "keyscale", "duration")}  # fmt: skip
    whole = [is_whole(found) for found in lines]
    thought = [(q.caption, text, found) for q, text, found, fits in zip(questions, texts, lines, whole) if fits]
    as_long = []
    if thought:
        prompts = [encode(plans.prompt(words, "") + f"<think>\n{text}</think>\n\n") for words, text, _ in thought]
        others = [encode(plans.prompt(words, "") + plans.NO_THOUGHT) for words, _, _ in thought]
        most = plans.CODES * (plans.LONGEST + 4)
        codes = written(planner, prompts, others, is_code | is_end, names[plans.END], most, temperature)
        as_long = [len(row) == plans.CODES * int(found["duration"]) for row, (_, _, found) in zip(codes, thought)]
    return {"bpm_within_5_percent": right["bpm"], "key_right": right["keyscale"], "duration_right": right["duration"],
            "metadata_whole": share(whole), "as_many_codes_as_said": share(as_long),
            "named": {name: sum(name in q.named for q in questions) for name in right}}  # fmt: skip


def judge(planner, tokenizer, seed, count):
    questions, found = [Question(seed * 10_000_000 + 9_500_000 + i) for i in range(count)], {}
    for name, temperature in (("greedy", 0), ("drawn", TEMPERATURE)):
        found[name] = answered(planner, tokenizer, questions, temperature)
        say(f"plans, {name}: {found[name]}")
    return {"test_captions": count, **found}


@torch.no_grad()
def songs(model, folder, jury, count):
    """What a jury hears in test songs that are led by a planner's codes, with all metadata given."""
    planner, tokenizer = files.load_planner(folder).to(DEVICE), bpe.Tokenizer.read((folder / "tokenizer.json").read_text())
    scores = jury.scores(9_500_000, count, "test")
    guided, unguided = [], []
    for made in scores:
        words, key = jury.asked(made)
        asked = plans.prompt(words, "")
        lines = plans.metadata_lines(made, plans.SHORTEST, key, "en")
        guided.append(tokenizer.encode(f"{asked}<think>\n{lines}</think>\n\n"))
        unguided.append(tokenizer.encode(asked + plans.NO_THOUGHT))
    is_code = torch.tensor([token.startswith("<|audio_code_") for token in tokenizer.vocabulary], device=DEVICE)
    ids = written(planner, guided, unguided, is_code, -1, plans.CODES * plans.SHORTEST, TEMPERATURE)
    codes = torch.tensor(ids, device=DEVICE) - tokenizer.vocabulary["<|audio_code_0|>"]
    hints = model.hints(codes)[:, : 25 * jury.seconds]
    return jury.heard_of(model, jury.latents(model, scores, task="cover", dcw=DCW, hints=hints), scores)
