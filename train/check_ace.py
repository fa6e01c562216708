"""Holds the training modules against the recorded answers of diffusers' own pipeline (tests/data/ace-tiny.fixture.*), and
the planner against those of transformers (tests/data/ace-tiny-planner.fixture.*).

usage: python3 train/check_ace.py

Prints the largest relative error of every stage of the fixture's text-to-music songs, of its audio codes and of a planner's
logits; fails above what fp32 rounding explains, or where the planner's texts or tokens are others. What passes is trained
as it is run. Needs torch."""

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from ace import bpe, files, sampler  # noqa: E402
from ace.dit import context_of  # noqa: E402
from compose_data import plans  # noqa: E402

DATA = Path(__file__).resolve().parent.parent / "tests/data"
LIMIT = 2e-3  # of the largest value, for what eight steps of a random model and a decoder have made of rounding


class Report:
    def __init__(self):
        self.failed = False

    def __call__(self, what, found, wanted, limit=LIMIT):
        error = float((found - wanted).abs().max() / wanted.abs().max())
        wrong = not error <= limit
        self.failed |= wrong
        print(f"{what:24} {error:.1e}{'  WRONG' if wrong else ''}", flush=True)


def as_heard(sound):
    """Divided by its peak where that is above 1, then brought to -1 dBFS, loud or not (diffusers' pipeline_ace_step.py)."""
    sound = sound / sound.abs().max().clamp_min(1)
    return sound * (10 ** (-1 / 20) / sound.abs().max().clamp_min(1e-6))


def check_song(model, case, recorded, report):
    name, noise = case["id"], recorded[case["id"] + ".noise"].unsqueeze(0)
    ids = [torch.tensor(case[key]).unsqueeze(0) for key in ("text_ids", "lyric_ids")]
    if name + ".text_hidden" in recorded:
        report(f"{name} text", model.text_encoder(ids[0])[0], recorded[name + ".text_hidden"], 1e-4)
    condition, _ = model.condition(*ids)
    report(f"{name} condition", condition[0], recorded[name + ".condition"], 1e-4)
    context, velocities = context_of(model.silence_of(noise.shape[1])), []

    def velocity(x, t):
        velocities.append(model.transformer(context, x, torch.tensor([t]), condition))
        return velocities[-1]

    times = sampler.schedule(case["steps"], case.get("shift", sampler.SHIFT))
    latents = sampler.sample(velocity, noise, times, dcw=None)
    report(f"{name} first velocity", velocities[0][0], recorded[name + ".velocity_first"], 1e-4)
    report(f"{name} last velocity", velocities[-1][0], recorded[name + ".velocity_last"])
    report(f"{name} latents", latents[0], recorded[name + ".latents"])
    sound = model.vae.decode(latents.transpose(1, 2))[0]
    report(f"{name} sound", as_heard(sound), recorded[name + ".wav"])


def check_padding(model, case, report):
    """A batch with padding gives what each song gives by itself."""
    ids = [torch.tensor(case[key]).unsqueeze(0) for key in ("text_ids", "lyric_ids")]
    alone, _ = model.condition(*ids)
    noise = torch.randn(1, 33, 64)
    context, t = context_of(model.silence_of(33)), torch.tensor([0.4])
    wanted = model.transformer(context, noise, t, alone)
    padded = [torch.nn.functional.pad(x, (0, 7)) for x in ids]
    present = [torch.arange(p.shape[1]).unsqueeze(0) < x.shape[1] for p, x in zip(padded, ids)]
    condition, rows = model.condition(*padded, *present)
    report("padded velocity", model.transformer(context, noise, t, condition, rows), wanted, 1e-4)


def check_codes(model, recorded, report):
    mean, _ = model.vae.moments(recorded["e.src_audio"].unsqueeze(0))
    report("source latents", mean[0].T, recorded["e.src_latents"])
    windows = recorded["e.src_latents"].reshape(-1, 5, 64)
    codes = model.audio_tokenizer.quantizer.codes(model.audio_tokenizer.pooled(windows))
    report("codes", codes.float(), recorded["e.codes"].flatten().float(), 0)


def check_planner(report):
    """The prompts in words and tokens, and the logits after each token of the recorded codes."""
    model = files.load_planner(DATA / "ace-tiny-planner")
    tokenizer = bpe.Tokenizer.read((DATA / "ace-tiny-planner/tokenizer.json").read_text())
    recorded = files.read_tensors(DATA / "ace-tiny-planner.fixture.safetensors")
    for song in json.loads((DATA / "ace-tiny-planner.fixture.json").read_text())["songs"]:
        asked = plans.prompt(song["caption"], song["lyrics"])
        texts = {"metadata": asked, "metadata_unguided": plans.prompt(None, song["lyrics"]),
                 "codes": f"{asked}<think>\n{song['metadata_lines']}</think>\n\n",
                 "codes_unguided": asked + plans.NO_THOUGHT}  # fmt: skip
        for name, text in texts.items():
            encoded = not text.isascii() or tokenizer.encode(text) == song["ids"][name]
            if text != song["texts"][name] or not encoded:
                report.failed = print(f"planner {song['id']} {name}  WRONG") or True
        ids, after = song["ids"]["codes"] + song["forced_tokens"], len(song["ids"]["codes"]) - 1
        report(f"planner {song['id']} logits", model.logits(model.hidden(torch.tensor([ids])))[0, after:],
               recorded[song["id"] + ".logits"], 1e-4)  # fmt: skip


def main():
    torch.manual_seed(0)
    model = files.load(DATA / "ace-tiny")
    record = json.loads((DATA / "ace-tiny.fixture.json").read_text())
    recorded, report = files.read_tensors(DATA / "ace-tiny.fixture.safetensors"), Report()
    tokenizer = bpe.Tokenizer.read((DATA / "ace-tiny/tokenizer/tokenizer.json").read_text())
    with torch.no_grad():
        for case in record["cases"]:
            texts = [(case["text"], case["text_ids"]), (case["lyric_text"], case["lyric_ids"])]
            for text, ids in texts:
                if text.isascii() and tokenizer.encode(text) != ids:
                    report.failed = print(f"{case['id']} token ids  WRONG") or True
            if "src" not in case and "audio_codes" not in case:
                check_song(model, case, recorded, report)
        check_padding(model, record["cases"][0], report)
        check_codes(model, recorded, report)
        check_planner(report)
    print("differs from the recorded answers" if report.failed else "equal to the recorded answers within fp32 rounding")
    sys.exit(report.failed)


if __name__ == "__main__":
    main()
