"""Records what `assay gate music` holds a model against: songs by the training modules, in fp32 on the CPU.

usage: python3 train/compose_fixture.py MODEL_DIR OUT    writes OUT.fixture.json and OUT.fixture.safetensors

The modules answer as diffusers' own pipeline does, within fp32 rounding: train/check_ace.py holds them against that
pipeline's recorded songs. The format is oracle/ace_oracle.py's. Needs torch."""

import argparse
import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from ace import bpe, files, sampler  # noqa: E402
from ace.audio_tokens import POOL  # noqa: E402
from ace.dit import context_of  # noqa: E402
from check_ace import as_heard  # noqa: E402
from compose_data import captions, score, synth  # noqa: E402

MADE_BY = "train/compose_fixture.py: the training modules in fp32 on the CPU, which train/check_ace.py compares with diffusers"
FRAMES_A_SECOND = 25
CLEAR = 0.01  # of a level: what is nearer to the border of two is decided by rounding


def cases():
    """A song from text and a cover: every part of a checkpoint, in few bytes."""
    return [
        {"id": "text", "prompt": "cheerful piano, bass and drums, C major", "lyrics": "", "audio_duration": 0.8, "bpm": 120,
         "keyscale": "C major", "timesignature": "4", "vocal_language": "en"},
        {"id": "cover", "prompt": "sad, slow, organ and strings, 70 bpm", "lyrics": "", "audio_duration": 0,
         "task_type": "cover", "vocal_language": "en", "src": True},
    ]  # fmt: skip


class Source:
    """0.4 s of a generated song, its latents and its codes, none of which hangs on rounding."""

    def __init__(self, model, seconds=0.4):
        for seed in range(100):
            self.sound = synth.render([score.make(seed, "train", 8)], seconds).float()
            mean, _ = model.vae.moments(self.sound)
            self.latents = mean.transpose(1, 2)
            quantizer = model.audio_tokenizer.quantizer
            pooled = model.audio_tokenizer.pooled(self.latents.reshape(-1, POOL, self.latents.shape[-1]))
            self.codes = quantizer.codes(pooled)
            if levels_apart(quantizer, pooled) > CLEAR:
                return
        sys.exit("compose_fixture: all sources have codes on the border of two; expected one that has not")


def levels_apart(quantizer, x):
    """How near to the border of two levels the nearest number is, in levels."""
    scaled, _ = quantizer.scaled(x)
    return float((scaled - scaled.floor() - 0.5).abs().min())


def texts_of(case, seconds):
    task = "cover" if "src" in case else "text"
    prompt = captions.prompt(case["prompt"], case.get("bpm"), case.get("timesignature"), case.get("keyscale"), seconds, task)
    return prompt, captions.lyric(case["vocal_language"], case["lyrics"])


def led_by(model, case, source):
    """The source latents of the song, and how long it is."""
    if "src" in case:
        return model.hints(source.codes.unsqueeze(0)), source.sound.shape[-1] / 48000
    return model.silence_of(round(case["audio_duration"] * FRAMES_A_SECOND)), case["audio_duration"]


def record(model, tokenizer, case, source, noise_seed):
    """The case with what the gate needs to know of it, and its tensors by stage."""
    leading, seconds = led_by(model, case, source)
    text, lyric = texts_of(case, seconds)
    ids = [tokenizer.encode(part) for part in (text, lyric)]
    condition, _ = model.condition(*(torch.tensor([part]) for part in ids))
    noise = torch.randn(leading.shape, generator=torch.Generator().manual_seed(noise_seed))
    context, velocities = context_of(leading), []

    def velocity(x, t):
        velocities.append(model.transformer(context, x, torch.tensor([t]), condition))
        return velocities[-1]

    latents = sampler.sample(velocity, noise, dcw=None)  # the authors' pipeline has no correction, so the gate has none
    raw = model.vae.decode(latents.transpose(1, 2))[0]
    stages = {"noise": noise[0], "condition": condition[0], "velocity_first": velocities[0][0], "velocity_last": velocities[-1][0],
              "latents": latents[0], "wav": as_heard(raw)}  # fmt: skip
    if "src" in case:
        stages |= {"src_audio": source.sound[0], "src_latents": source.latents[0], "codes": source.codes.to(torch.int32)}
    known = {"latent_frames": leading.shape[1], "steps": len(velocities), "text": text, "lyric_text": lyric, "text_ids": ids[0],
             "lyric_ids": ids[1], "raw_peak": float(raw.abs().max()), "latents_std": float(latents.std())}  # fmt: skip
    return {**case, **known}, stages


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="a checkpoint in the diffusers layout")
    parser.add_argument("out", type=Path, help="the fixture's name, without .fixture.json")
    arguments = parser.parse_args()
    model = files.load(arguments.model)
    tokenizer = bpe.Tokenizer.read((arguments.model / "tokenizer/tokenizer.json").read_text())
    recorded, tensors = [], {}
    with torch.no_grad():
        source = Source(model)
        for i, case in enumerate(cases()):
            known, stages = record(model, tokenizer, case, source, noise_seed=100 + i)
            recorded.append(known)
            tensors |= {f"{case['id']}.{stage}": tensor for stage, tensor in stages.items()}
    document = {"model": arguments.out.name, "made_by": MADE_BY, "cases": recorded}
    text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    Path(f"{arguments.out}.fixture.json").write_text(text, encoding="utf-8")
    files.write_exactly(Path(f"{arguments.out}.fixture.safetensors"), tensors, made_by=MADE_BY)


if __name__ == "__main__":
    main()
