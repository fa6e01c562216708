"""The planner: a small Qwen3 that writes a song's metadata and then its audio codes, asked as the product asks.

Its texts are music/planner_text.cpp's: the chat with caption and lyrics, a thought of YAML lines, five codes a second, the end
token. One row in ten has what guidance leads away from: no caption, or no thought. The thought's caption is another one of the
same song, with every instrument in it."""

import json
import random
import re

import torch
import torch.nn.functional as F

import compose_dit
import compose_vae
from ace import bpe, files
from ace.audio_tokens import POOL
from ace.blocks import Sizes, initialize
from ace.conditions import TextEncoder
from captured_steps import DEVICE, say
from compose_data import captions, score, synth
from compose_tools import adam, clip, set_rate

VOCABULARY = 640  # tokens of text
SECONDS = (10, 12, 16)  # the authors' planner knows none shorter
LONGEST = 480
STEP = 32
THOUGHT = ["<think>", "</think>"]
END = "<|im_end|>"
INSTRUCTION = "Generate audio semantic tokens based on the given conditions:"
TEMPERATURE, TOP_P, GUIDANCE = 0.85, 0.9, 2.0  # the product's


# ---- texts


def yaml_line(name, value):
    """As music/planner_text.cpp writes it: quoted where a colon or a leading sign asks for it, folded after column 80."""
    plain = value[0] not in "#,[]{}&*!|>'\"%@`" and ": " not in value and " #" not in value and value[-1] != ":"
    words = (value if plain else "'" + value.replace("'", "''") + "'").split(" ")
    line, column = name + ":", len(name) + 1
    for i, word in enumerate(words):
        fold = column > 80 and i > 0
        line += "\n  " if fold else " "
        column = (2 if fold else column + 1) + len(word)
        line += word
    return line + "\n"


def thought(bpm, caption, seconds, key, language, beats):
    return (f"<think>\nbpm: {bpm}\n" + yaml_line("caption", caption) + f"duration: {seconds}\n" + yaml_line("keyscale", key)
            + yaml_line("language", language) + f"timesignature: {beats}\n</think>\n\n")  # fmt: skip


def chat(user):
    return (f"<|im_start|>system\n# Instruction\n{INSTRUCTION}\n\n<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n"
            "<|im_start|>assistant\n")  # fmt: skip


def song_block(caption, lyrics):
    return f"# Caption\n{caption}\n\n# Lyric\n{lyrics}\n"


def written(chance, made, seconds):
    """Prompt and answer of a song, without its codes."""
    sung = chance.random()
    lyrics = "" if sung < 0.5 else "[Instrumental]" if sung < 0.9 else " ".join(captions.stranger(chance) for _ in range(3))
    asked = captions.caption(chance, made, "train")
    planned = captions.caption(chance, made, "train", complete=True, strangers=False)
    answer = thought(made.bpm, planned, seconds, captions.key_of(chance, made), "en" if sung >= 0.9 else "unknown", made.beats)
    kind = chance.random()
    if kind < 0.1:
        return chat(f"# Lyric\n{lyrics}\n"), answer
    if kind < 0.2:
        return chat(song_block(asked, lyrics)) + "<think>\n\n</think>\n\n", ""
    return chat(song_block(asked, lyrics)), answer


def tokenizer_for(codes, seed, count=2000):
    """A tokenizer of the planner's texts, its codes last."""
    texts = []
    for i in range(count):
        chance = random.Random(f"planner words {seed} {i}")
        texts += written(chance, score.make(seed * 10_000_000 + i, "train", 4), chance.choice(SECONDS))
    numbers = [f"bpm: {n}\nduration: {n}\n" for n in range(10, 300)]
    pieces = [piece for text in texts + numbers for piece in bpe.CONTROL.split(text)[::2]]
    return bpe.train(pieces, VOCABULARY).extended(THOUGHT + [f"<|audio_code_{i}|>" for i in range(codes)], plain=THOUGHT)


# ---- model


class Planner(TextEncoder):
    """Qwen3ForCausalLM with its head tied to the table; plain rotary frequencies."""

    def __init__(self, vocabulary):
        super().__init__(Sizes(hidden=128, inner=320, heads=2, kv_heads=1, head_dim=64), 3, vocabulary)
        initialize(self, 3)
        with torch.no_grad():
            self.embed_tokens.weight.mul_(0.04 / self.embed_tokens.weight.std())
        self.bf16_frequencies = False

    def logits(self, ids):
        return F.linear(self(ids), self.embed_tokens.weight)

    def config(self):
        fields = self.sizes.fields()
        del fields["rope_theta"]
        return {**fields, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_act": "silu", "dtype": "bfloat16",
                "num_hidden_layers": len(self.layers), "rope_parameters": {"rope_theta": self.sizes.theta, "rope_type": "default"},
                "vocab_size": self.embed_tokens.num_embeddings, "tie_word_embeddings": True, "sliding_window": None,
                "layer_types": ["full_attention"] * len(self.layers), "max_position_embeddings": 4096, "max_window_layers": 28,
                "use_sliding_window": False, "use_cache": True, "initializer_range": 0.02, "transformers_version": "5.17.0"}  # fmt: skip


def save(planner, tokenizer, directory):
    directory.mkdir(parents=True, exist_ok=True)
    tensors = files.renamed({"model." + name: tensor for name, tensor in planner.state_dict().items()}, files.QWEN)
    files.write_tensors(directory / "model.safetensors", tensors)
    files.write_json(directory / "config.json", planner.config())
    files.write_json(directory / "generation_config.json", {"_from_model_config": True, "transformers_version": "5.17.0", "use_cache": True})
    (directory / "tokenizer.json").write_text(tokenizer.json())
    files.write_json(directory / "tokenizer_config.json", {"backend": "tokenizers", "eos_token": END, "pad_token": bpe.END,
                                                           "model_max_length": 4096, "tokenizer_class": "TokenizersBackend"})  # fmt: skip


# ---- training


@torch.no_grad()
def codes_of(model, latents):
    """[songs, windows] of latents [songs, frames, 64]."""
    songs, frames, _ = latents.shape
    tokenizer = model.audio_tokenizer
    parts = [tokenizer.quantizer.codes(tokenizer.pooled(part)) for part in latents.reshape(-1, POOL, 64).split(16384)]
    return torch.cat(parts).reshape(songs, frames // POOL)


def rows_of(tokenizer, codes, first, seconds, variants, seed):
    """(ids, where the answer begins) of songs whose scores have the seeds `first` and on."""
    code, end, rows = tokenizer.vocabulary["<|audio_code_0|>"], tokenizer.vocabulary[END], []
    for i, song in enumerate(codes.tolist()):
        made = score.make(first + i, "train", seconds)
        for k in range(variants):
            chance = random.Random(f"planner {seed} {i} {k}")
            length = chance.choice([s for s in SECONDS if s <= seconds] or [seconds])
            prompt, answer = (tokenizer.encode(text) for text in written(chance, made, length))
            ids = prompt + answer + [code + c for c in song[: 5 * length]] + [end]
            if len(ids) <= LONGEST:
                rows.append((ids, len(prompt)))
    return rows


def batch_of(rows):
    """Ids padded to a multiple of STEP, and the targets: -100 where nothing is asked."""
    length = -(-max(len(ids) for ids, _ in rows) // STEP) * STEP
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    wanted = torch.full((len(rows), length), -100)
    for i, (row, begin) in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
        wanted[i, begin - 1 : len(row) - 1] = torch.tensor(row[begin:])
    return ids.to(DEVICE), wanted.to(DEVICE)


def loss_of(planner, batch):
    ids, wanted = batch
    return F.cross_entropy(planner.logits(ids).float().flatten(0, 1), wanted.flatten(), ignore_index=-100)


@torch.no_grad()
def held_out_loss(planner, rows, first_code):
    """Of a token of text and of a code."""
    found = {"text": [0.0, 0], "codes": [0.0, 0]}
    for i in range(0, len(rows), 32):
        ids, wanted = batch_of(rows[i : i + 32])
        each = F.cross_entropy(planner.logits(ids).float().flatten(0, 1), wanted.flatten(), ignore_index=-100, reduction="none")
        asked, code = wanted.flatten() >= 0, wanted.flatten() >= first_code
        for name, some in (("text", asked & ~code), ("codes", asked & code)):
            found[name][0] += float(each[some].sum())
            found[name][1] += int(some.sum())
    return {f"loss_{name}": round(total / max(count, 1), 3) for name, (total, count) in found.items()}


def train(model, bank, run, found):
    """Trains a planner on the bank's songs; figures go to `found`."""
    seconds, levels = bank.seconds[-1], model.audio_tokenizer.quantizer.levels
    codes = codes_of(model, bank.latents)
    tokenizer = tokenizer_for(int(torch.tensor(levels).prod()), run.seed, 100 if run.smoke else 2000)
    rows = rows_of(tokenizer, codes[: 8 if run.smoke else 5000], run.seed * 10_000_000 + 5_000_000, seconds, 2, run.seed)
    held, rows = rows[: len(rows) // 20 + 1], rows[len(rows) // 20 + 1 :]
    say(f"planner: {len(rows)} rows, {len(tokenizer)} tokens")
    planner = Planner(len(tokenizer)).to(DEVICE)
    chance, size = random.Random(run.seed), 4 if run.smoke else 64
    optimizer, course, parameters = adam(list(planner.parameters()), (0.9, 0.98), 0.05), run.course("planner", 4), list(planner.parameters())
    for step in course:
        set_rate(optimizer, course.rate(2e-3, 200))
        loss = loss_of(planner, batch_of(chance.sample(rows, min(size, len(rows)))))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        clip(parameters, 1.0)
        optimizer.step()
        if course.due():
            say(f"planner {step} {course.done:.2f}: loss {float(loss.detach()):.3f}, {course.pace(size):.0f} songs a second")
    planner.eval()
    found.update(steps=course.step, weights=sum(p.numel() for p in parameters), **held_out_loss(planner, held, tokenizer.vocabulary["<|audio_code_0|>"]))
    say("planner:", found)
    return planner, tokenizer


# ---- what it is worth


def chosen(logits):
    """Of the likeliest that make up TOP_P, one by chance."""
    p, order = torch.softmax(logits.float() / TEMPERATURE, -1).sort(-1, descending=True)
    p = p * (p.cumsum(-1) - p < TOP_P)
    return order.gather(-1, torch.multinomial(p, 1))[..., 0]


@torch.no_grad()
def thoughts(planner, tokenizer, prompts, most=120):
    """What it thinks of each prompt, as text."""
    stop, found = tokenizer.vocabulary["</think>"], []
    texts = {i: token for token, i in tokenizer.vocabulary.items()}
    back = {letter: byte for byte, letter in bpe.LETTERS.items()}
    for prompt in prompts:
        ids = tokenizer.encode(prompt + "<think>\n")
        begin = len(ids)
        while len(ids) < begin + most and ids[-1] != stop:
            ids.append(int(chosen(planner.logits(torch.tensor([ids], device=DEVICE))[:, -1])))
        written = [texts[i] for i in ids[begin:]]
        text = "".join(t if t in tokenizer.added else bytes(back[c] for c in t).decode(errors="replace") for t in written)
        found.append(text)
    return found


@torch.no_grad()
def codes_for(planner, tokenizer, guided, unguided, count):
    """[songs, count] codes by two prompts for each, which all have one length in each list."""
    first, last = tokenizer.vocabulary["<|audio_code_0|>"], len(tokenizer)
    ids = [torch.tensor([tokenizer.encode(p)], device=DEVICE) for p in (guided, unguided)]
    codes = []
    for _ in range(count):
        song, none = (planner.logits(i)[:, -1, first:last] for i in ids)
        code = chosen(none + GUIDANCE * (song - none))
        codes.append(code)
        ids = [torch.cat([i, (code + first).view(1, 1)], 1) for i in ids]
    return torch.stack(codes, 1)[0]


def share(values):
    return round(sum(values) / max(len(values), 1), 3)


def metadata_figures(planner, tokenizer, scores):
    """Shares of test captions whose thought has the form, the tempo and the key where the caption says them."""
    asked = []
    for made in scores:
        chance = random.Random(f"planned {made.seed}")
        words = captions.caption(chance, made, "test", complete=True)
        asked.append((made, f"{words}, {captions.key_of(chance, made)}, {made.bpm} bpm"))
    found = thoughts(planner, tokenizer, [chat(song_block(words, "[Instrumental]")) for _, words in asked])
    form = re.compile(r"bpm: (\d+)\ncaption: .+\n(?:  .+\n)*duration: (\d+)\nkeyscale: ([A-G][#b]?) (major|minor)\n"
                      r"language: \w+\ntimesignature: [2346]\n</think>$")  # fmt: skip
    right = [form.match(text) for text in found]
    names = {**{n: i for i, n in enumerate(captions.SHARP)}, **{n: i for i, n in enumerate(captions.FLAT)}}

    def key(m, made):
        return names.get(m[3]) == made.tonic and (m[4] == "minor") == made.minor

    return {"captions": len(asked), "form_right": share([bool(m) for m in right]),
            "tempo_as_said": share([bool(m) and abs(int(m[1]) / made.bpm - 1) <= 0.05 for m, (made, _) in zip(right, asked)]),
            "key_as_said": share([bool(m) and key(m, made) for m, (made, _) in zip(right, asked)]),
            "example": found[0]}  # fmt: skip


@torch.no_grad()
def planned_songs(model, planner, tokenizer, jury, scores, seconds=SECONDS[0]):
    """Songs made by way of the planner's codes, as the product makes them with metadata given, judged."""
    lyrics, hints = "[Instrumental]", []
    for made in scores:
        chance = random.Random(f"prompt {made.seed}")  # the jury's own captions and keys
        words, key = captions.caption(chance, made, "test", complete=True), captions.key_of(chance, made)
        prompt = chat(song_block(words, lyrics))
        codes = codes_for(planner, tokenizer, prompt + thought(made.bpm, words, seconds, key, "unknown", made.beats),
                          prompt + "<think>\n\n</think>\n\n", 5 * seconds)  # fmt: skip
        hints.append(model.audio_token_detokenizer(model.audio_tokenizer.quantizer.embed(codes)).reshape(1, -1, 64))
    latents = jury.latents(model, scores, task="cover", dcw=(0.02, 0.06), hints=torch.cat(hints)[:, : 25 * jury.seconds])
    return jury.heard_of(model, latents, scores)
