"""What a music model is worth: do songs do what their captions say?

usage: python3 train/compose_eval.py MODEL_DIR [--songs N] [--seed S]

Detectors listen to the sound alone. Tempo: autocorrelation of onset strength in four bands, read by a small network. Key: the
loudness of every pitch, early, late and overall, read by a network that treats all twelve tonics alike. Instruments: a small
convolutional network on the spectrogram. All three are trained on synthetic sound of other seeds than those they are
checked on; their own accuracy on true sound is reported first, then on true sound that went through the autoencoder, then that of
generated songs. Beside them stand two estimates that learned nothing: the strongest lag of the autocorrelation, and
Krumhansl's key profiles. Needs torch."""

import argparse
import json
import random
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent))

import compose_dit  # noqa: E402
import compose_vae  # noqa: E402
from ace import bpe, files  # noqa: E402
from captured_steps import DEVICE, say  # noqa: E402
from compose_data import captions, score, synth  # noqa: E402
from compose_tools import adam, set_rate  # noqa: E402

SECONDS = 8
HOP = 480  # 10 ms
BANDS, GROUPS, LAGS = 64, 4, 300
INSTRUMENTS = ("piano", "organ", "strings", "guitar", "flute", "bell", "synth", "bass", "drums")
TEMPO_BINS = 56  # 2 % each
KRUMHANSL = ((6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88),
             (6.33, 2.68, 3.52, 5.38, 2.60, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17))  # fmt: skip


# ---- what is heard


def triangles(bands, bins, window):
    """Overlapping bands from 30 Hz to 12 kHz, evenly spaced by ratio, as a matrix [bands, bins]."""
    centre = torch.logspace(torch.log10(torch.tensor(30.0)), torch.log10(torch.tensor(12000.0)), bands + 2)
    hertz = torch.arange(bins) * synth.RATE / window
    # A band is never narrower than a bin.
    width = torch.maximum(centre[2:] - centre[:-2], torch.tensor(2.5 * synth.RATE / window)) / 2
    return (1 - (hertz - centre[1:-1, None]).abs() / width[:, None]).clamp_min(0)


def magnitudes(mono, window, hop):
    shape = torch.hann_window(window, device=mono.device)
    found = torch.stft(mono, window, hop, window=shape, return_complex=True)
    return torch.view_as_real(found).square().sum(-1).sqrt()


def band_levels(mono):
    """[songs, BANDS, frames] of log loudness."""
    found = magnitudes(mono, 2048, HOP)
    return torch.log(triangles(BANDS, found.shape[1], 2048).to(mono.device) @ found + 0.02)


def onset_lags(levels):
    """Autocorrelation of onset strength [songs, GROUPS, LAGS]."""
    rise = (levels[:, :, 1:] - levels[:, :, :-1]).clamp_min(0)
    strength = rise.unflatten(1, (GROUPS, -1)).sum(2)
    strength = strength - strength.mean(-1, keepdim=True)
    count = strength.shape[-1]
    power = torch.fft.rfft(strength, 2 * max(count, LAGS)).abs().square()
    lags = torch.fft.irfft(power)[..., :LAGS]
    return lags / lags[..., :1].clamp_min(1e-6)


def pitch_levels(mono):
    """Loudness of the pitches 36 to 83, early, late and overall, as low and high pitch classes: [songs, 6, 12]."""
    window = 16384
    found = magnitudes(mono, window, window // 4)
    hertz = 440 * 2 ** ((torch.arange(36, 84) - 69) / 12)
    bins = torch.arange(found.shape[1]) * synth.RATE / window
    near = torch.exp(-0.5 * ((12 * torch.log2(bins.clamp_min(1)[None] / hertz[:, None])) / 0.35).square())
    # At the low end a semitone is narrower than a bin: what it hears is made alike.
    near = near / near.sum(1, keepdim=True).clamp_min(1e-3)
    loud = torch.sqrt(near.to(mono.device) @ found)
    count = loud.shape[-1]
    parts = [loud[..., : count // 4], loud[..., 3 * count // 4 :], loud]
    classes = [part.mean(-1).unflatten(1, (4, 12)) for part in parts]
    stacked = torch.cat([torch.stack([c[:, :2].sum(1), c[:, 2:].sum(1)], 1) for c in classes], 1)
    return stacked / stacked.mean(-1, keepdim=True).clamp_min(1e-6) - 1


def heard(sound):
    """What the detectors read of sound [songs, 2, samples]."""
    mono = sound.float().mean(1)
    mono = mono / mono.square().mean(-1, keepdim=True).sqrt().clamp_min(1e-4) * 0.1
    levels = band_levels(mono)
    return {"levels": levels, "lags": onset_lags(levels), "pitches": pitch_levels(mono)}


# ---- detectors


class Instruments(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv1d(BANDS, 128, 5, stride=2), nn.GELU(), nn.Conv1d(128, 128, 5, stride=2), nn.GELU(),
            nn.Conv1d(128, 128, 5, stride=2), nn.GELU())  # fmt: skip
        self.read = nn.Sequential(nn.Linear(256, 128), nn.GELU(), nn.Linear(128, len(INSTRUMENTS)))

    def forward(self, levels):
        found = self.convolutions(levels)
        return self.read(torch.cat([found.mean(-1), found.amax(-1)], 1))


class Key(nn.Module):
    """The same question for each tonic: is it major or minor by what is heard above it?"""

    def __init__(self):
        super().__init__()
        self.read = nn.Sequential(nn.Linear(72, 64), nn.GELU(), nn.Linear(64, 2))

    def forward(self, pitches):
        turned = torch.stack([pitches.roll(-tonic, -1).flatten(1) for tonic in range(12)], 1)
        return self.read(turned).flatten(1)  # 2 · tonic + minor


class Detectors(nn.Module):
    def __init__(self):
        super().__init__()
        self.tempo = nn.Sequential(nn.Flatten(), nn.Linear(GROUPS * LAGS, 256), nn.GELU(), nn.Dropout(0.2), nn.Linear(256, TEMPO_BINS))
        self.key, self.instruments = Key(), Instruments()

    def forward(self, features):
        return self.tempo(features["lags"]), self.key(features["pitches"]), self.instruments(features["levels"])


def tempo_bin(bpm):
    ratio = torch.log(bpm / score.SLOWEST) / torch.log(torch.tensor(score.FASTEST / score.SLOWEST))
    return (ratio * TEMPO_BINS).long().clamp(0, TEMPO_BINS - 1)


def bin_tempo(index):
    return score.SLOWEST * (score.FASTEST / score.SLOWEST) ** ((index + 0.5) / TEMPO_BINS)


def truth(scores):
    """Beats a minute as asked for and as played, key number, and which instruments are there."""
    names = [{name.split()[-1] for name in s.instruments} for s in scores]
    there = torch.tensor([[float(name in song) for name in INSTRUMENTS] for song in names])
    bpm = torch.tensor([float(s.bpm) for s in scores])
    tempo = torch.tensor([s.tempo for s in scores])
    return {"bpm": bpm.to(DEVICE), "tempo": tempo.to(DEVICE), "key": torch.tensor([2 * s.tonic + s.minor for s in scores], device=DEVICE), "there": there.to(DEVICE)}


def train_detectors(features, answers, steps):
    songs = len(answers["key"])
    detectors = Detectors().to(DEVICE).train()
    optimizer = adam(list(detectors.parameters()), decay=0.05)
    for step in range(steps):
        set_rate(optimizer, 1e-3 * (1 - step / steps))
        some = torch.randint(songs, (64,), device=DEVICE)
        tempo, key, there = detectors({k: v[some] for k, v in features.items()})
        loss = (F.cross_entropy(tempo, tempo_bin(answers["tempo"][some]), label_smoothing=0.1)
                + F.cross_entropy(key, answers["key"][some]) + F.binary_cross_entropy_with_logits(there, answers["there"][some]))  # fmt: skip
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return detectors.eval()


def plain_tempo(lags):
    """The strongest lag from 60 to 180 beats a minute of all bands together."""
    total = lags.sum(1)
    slowest = round(6000 / score.SLOWEST)
    fastest = round(6000 / score.FASTEST)
    return 6000 / (total[:, fastest : slowest + 1].argmax(-1) + fastest).float()


def plain_key(pitches):
    chroma = pitches[:, 4] + pitches[:, 5]
    chroma = chroma - chroma.mean(-1, keepdim=True)
    profiles = torch.tensor(KRUMHANSL, device=pitches.device)
    profiles = profiles - profiles.mean(-1, keepdim=True)
    profiles = profiles / profiles.norm(dim=-1, keepdim=True)
    turned = torch.stack([chroma.roll(-tonic, -1) for tonic in range(12)], 1)
    return (turned @ profiles.T).flatten(1).argmax(-1)


def share(values):
    return round(float(values.float().mean()), 3) if len(values) else None


@torch.no_grad()
def judge(detectors, features, answers):
    """Shares of songs whose sound has what was asked."""
    tempo, key, there = detectors(features)
    bpm, wanted = bin_tempo(tempo.argmax(-1)), answers["bpm"]
    plain = plain_tempo(features["lags"])

    def within(found, ratio=1.0):
        return (found / wanted / ratio - 1).abs() <= 0.05

    any_octave = torch.stack([within(plain, r) for r in (1, 2, 0.5, 3, 1 / 3, 1.5, 2 / 3)]).any(0)
    present, asked = there > 0, answers["there"] > 0
    by_name = {name: {"present_when_asked": share(present[:, i][asked[:, i]]), "absent_when_not": share(~present[:, i][~asked[:, i]])}
               for i, name in enumerate(INSTRUMENTS)}  # fmt: skip
    return {"songs": len(wanted), "tempo_within_5_percent": share(within(bpm)),
            "tempo_by_strongest_lag": share(within(plain)), "tempo_by_strongest_lag_any_ratio": share(any_octave),
            "key_right": share(key.argmax(-1) == answers["key"]), "tonic_right": share(key.argmax(-1) // 2 == answers["key"] // 2),
            "minor_or_major_right": share(key.argmax(-1) % 2 == answers["key"] % 2),
            "key_by_krumhansl": share(plain_key(features["pitches"]) == answers["key"]),
            "instrument_present_when_asked": share(present[asked]), "instrument_absent_when_not": share(~present[~asked]),
            "all_instruments_right": share((present == asked).all(1)), "by_instrument": by_name}  # fmt: skip


@torch.no_grad()
def seams(vae, latents, windows=5, reach=12):
    """Largest difference, by the peak, between a decode in windows and one of everything; and the largest step between two
    samples at a seam, by the largest anywhere."""
    torch.backends.cudnn.allow_tf32 = False  # its rounding depends on the shape
    whole = vae.decode(latents.transpose(1, 2).float())
    parts, window = [], latents.shape[1] // windows
    for begin in range(0, latents.shape[1], window):
        first, end = max(0, begin - reach), min(latents.shape[1], begin + window)
        last = min(latents.shape[1], end + reach)
        sound = vae.decode(latents[:, first:last].transpose(1, 2).float())
        parts.append(sound[..., (begin - first) * 1920 : (end - first) * 1920])
    torch.backends.cudnn.allow_tf32 = True
    joined = torch.cat(parts, -1)
    steps = (joined[..., 1:] - joined[..., :-1]).abs()
    at_seams = steps[..., window * 1920 - 1 :: window * 1920]
    return {"difference_by_peak": float((joined - whole).abs().max() / whole.abs().max()),
            "largest_step_by_largest": round(float(at_seams.max() / steps.max()), 3)}  # fmt: skip


# ---- songs


class Jury:
    """Detectors, and the songs that they are asked about. `seconds` is the songs' length. The detectors learn from true sound,
    half of which went through the autoencoder: they are to hear what a model plays, not how well an autoencoder follows."""

    def __init__(self, tokenizer, seed, vae, songs=4096, steps=3000, seconds=SECONDS):
        self.tokenizer, self.first, self.seconds = tokenizer, seed * 10_000_000, seconds
        halves = [self.true_songs(self.scores(8_000_000 + i * songs, songs // 2, "train"), through) for i, through in enumerate((None, vae))]
        features, answers = (joined(parts) for parts in zip(*halves))
        self.detectors = train_detectors(features, answers, steps)

    def scores(self, offset, count, split):
        return [score.make(self.first + offset + i, split, self.seconds) for i in range(count)]

    def true_songs(self, scores, vae=None, at_once=8):
        """Features of synthetic songs, and the truth."""
        features = []
        for i in range(0, len(scores), at_once):
            sound = synth.render(scores[i : i + at_once], self.seconds, DEVICE)
            if vae is not None:
                sound = compose_vae.decode(vae, compose_vae.encode(vae, sound))
            features.append(heard(sound))
        return joined(features), truth(scores)

    def asked(self, made):
        """A test song's caption and key in words."""
        chance = random.Random(f"prompt {made.seed}")
        return captions.caption(chance, made, "test", complete=True), captions.key_of(chance, made)

    def prompts(self, scores, metas, task="text"):
        """Ids of test prompts, padded with -1. Every caption names every instrument. `metas`: tempo, measure and key are given
        as fields; without, the caption says tempo and key."""
        text = []
        for made in scores:
            words, key = self.asked(made)
            if not metas:
                words = f"{words}, {key}, {made.bpm} bpm"
            fields = (made.bpm, made.beats, key) if metas else (None, None, None)
            text.append(self.tokenizer.encode(captions.prompt(words, *fields, self.seconds, task)))
        lyric = self.tokenizer.encode(captions.lyric("en", ""))
        longest = max(map(len, text))
        ids = [t + [-1] * (longest - len(t)) for t in text]
        return torch.tensor(ids, device=DEVICE), torch.tensor([lyric] * len(text), device=DEVICE)

    @torch.no_grad()
    def latents(self, model, scores, metas=True, at_once=32, task="text", hints=None, **how):
        """Of songs made as the product makes them, or otherwise by `how`; with a planner's `hints` by the task "cover"."""
        text, lyric = self.prompts(scores, metas, task)
        composer = compose_dit.Composer(model)
        for i in range(0, len(scores), at_once):
            part = slice(i, i + at_once)
            given = None if hints is None else hints[part]
            yield compose_dit.generate(composer, text[part], lyric[part], 25 * self.seconds, seed=i, hints=given, **how)

    def judged(self, model, scores, metas=True, **how):
        return self.heard_of(model, self.latents(model, scores, metas, **how), scores)

    def heard_of(self, model, latents, scores):
        features = [heard(compose_vae.decode(model.vae, part)) for part in latents]
        return judge(self.detectors, joined(features), truth(scores))

    def quick(self, model, count, **how):
        """Four figures on songs that only decide between ways to make songs."""
        found = self.judged(model, self.scores(7_000_000, count, "train"), **how)
        names = ("tempo_within_5_percent", "key_right", "instrument_present_when_asked", "instrument_absent_when_not")
        return {name: found[name] for name in names}

    def evaluate(self, model, count):
        scores = self.scores(9_000_000, count, "test")
        found = {"true sound": judge(self.detectors, *self.true_songs(scores)),
                 "true sound through the autoencoder": judge(self.detectors, *self.true_songs(scores, model.vae)),
                 "generated, metas given": self.judged(model, scores),
                 "generated, tempo and key in the caption only": self.judged(model, scores, metas=False)}  # fmt: skip
        for name, figures in found.items():
            say(f"{name}: " + ", ".join(f"{k} {v}" for k, v in figures.items() if not isinstance(v, dict)))
        found["seams"] = seams(model.vae, next(self.latents(model, scores[:1])))
        say("seams:", found["seams"])
        return found


def joined(parts):
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="a checkpoint in the diffusers layout")
    parser.add_argument("--songs", type=int, default=512)
    parser.add_argument("--seed", type=int, default=5)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    model = files.load(arguments.model).to(DEVICE)
    tokenizer = bpe.Tokenizer.read((arguments.model / "tokenizer/tokenizer.json").read_text())
    print(json.dumps(Jury(tokenizer, arguments.seed, model.vae).evaluate(model, arguments.songs), indent=1))


if __name__ == "__main__":
    main()
