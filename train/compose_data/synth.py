"""Sound from scores, many at once, on whatever device torch has.

A tone is a series of harmonics from a phase of zero, summed by the recurrence of Chebyshev's polynomials: two transcendental
functions a sample instead of one a harmonic. Drums are recordings of synthetic strokes, the same in every song, with a pitch
even where a real drum has noise. Nothing is detuned, and all timbres fall off steeply: most of the energy is below 750 Hz,
where the few latents a second that a small autoencoder has can follow the wave itself."""

import functools
import math
from dataclasses import dataclass

import numpy as np
import torch

RATE = 48000
LEVEL = 0.1  # root mean square of a song


@dataclass(frozen=True)
class Timbre:
    harmonics: tuple  # amplitudes
    attack: float  # seconds
    decay: float  # seconds to 1/e of the way to `sustain`
    sustain: float
    release: float  # seconds after the note's end
    damping: float  # how much faster a second each harmonic dies than the one below
    gain: float = 1.0
    pan: float = 0.0  # -1 left, 1 right
    partials: tuple = (1.0,)  # frequencies of the series above the note's


TIMBRES = {
    "piano": Timbre((1, 0.45, 0.25, 0.15, 0.1, 0.06, 0.04, 0.03), 0.004, 0.7, 0.0, 0.12, 1.2, 1.2, -0.1),
    "organ": Timbre((1, 0.7, 0.1, 0.5, 0, 0.12, 0, 0.25), 0.02, 1.0, 1.0, 0.06, 0.0, 0.6, 0.1),
    "strings": Timbre((1, 0.5, 0.4, 0.28, 0.22, 0.18, 0.14, 0.12), 0.12, 1.0, 1.0, 0.18, 0.0, 0.6, -0.1),
    "guitar": Timbre((1, 0.8, 0.55, 0.2, 0.25, 0.12, 0.1, 0.05), 0.002, 0.25, 0.0, 0.05, 6.0, 1.3, 0.15),
    "flute": Timbre((1, 0.12, 0.04), 0.07, 1.0, 1.0, 0.08, 0.0, 0.9, 0.05),
    "bell": Timbre((1,), 0.002, 0.5, 0.0, 0.3, 0.0, 0.8, 0.15, (1.0, 2.76, 5.4)),
    "synth": Timbre((1, 0, 0.33, 0, 0.2, 0, 0.14, 0, 0.11), 0.01, 1.0, 0.9, 0.04, 0.0, 0.7, -0.05),
    "acoustic bass": Timbre((1, 0.5, 0.2, 0.1, 0.05), 0.006, 0.5, 0.1, 0.06, 3.0, 1.1, 0.0),
    "synth bass": Timbre((1, 0.55, 0.4, 0.3, 0.24, 0.2, 0.17, 0.14), 0.004, 0.4, 0.7, 0.03, 0.0, 0.7, 0.0),
}
BRIGHTNESS = (0.5, 0.7, 0.9)  # a harmonic's amplitude by the one below it, beside the timbre's own
STROKE = 0.25  # seconds of a drum's recording


def stroke(seconds, frequency, fall, body, noise, snap, low_pass, seed):
    """A drum: a tone that falls, and filtered noise; both die away."""
    chance = np.random.default_rng(seed)
    t = np.arange(int(STROKE * RATE)) / RATE
    phase = 2 * np.pi * (frequency * t + fall * (1 - np.exp(-t / 0.02)) * 0.02)
    hiss = np.convolve(chance.standard_normal(len(t)), np.hanning(low_pass) / np.hanning(low_pass).sum(), "same")
    hiss /= np.abs(hiss).std()
    sound = body * np.sin(phase) * np.exp(-t / seconds) + noise * hiss * np.exp(-t / snap)
    return sound * np.clip((STROKE - t) / 0.03, 0, 1)


@functools.cache
def strokes():
    """[kits, drums, samples]."""
    acoustic = [stroke(0.08, 55, 90, 1.0, 0.0, 0.01, 5, 1), stroke(0.07, 190, 60, 0.6, 0.05, 0.03, 25, 2),
                stroke(0.018, 560, 0, 0.14, 0.02, 0.015, 15, 3)]  # fmt: skip
    electronic = [stroke(0.14, 45, 160, 1.0, 0.0, 0.01, 5, 4), stroke(0.03, 260, 120, 0.5, 0.06, 0.04, 25, 5),
                  stroke(0.012, 640, 0, 0.14, 0.02, 0.01, 15, 6)]  # fmt: skip
    return np.array([acoustic, electronic], np.float32)


def gathered(scores):
    """Notes of all scores by instrument: arrays [notes, 6] of song, start, length, pitch, loudness, brightness."""
    found = {}
    for song, score in enumerate(scores):
        for note in score.notes:
            row = (song, note.start, note.length, note.pitch, note.loudness, score.brightness)
            found.setdefault(note.instrument, []).append(row)
    return {name: np.array(rows, np.float64) for name, rows in found.items()}


class Samples:
    """Every sample of every note in one row: which note it is of, and where in the sum it goes."""

    def __init__(self, song, start, length, total, device):
        length = torch.minimum(length, total - start)
        self.note = torch.repeat_interleave(torch.arange(len(length), device=device), length)
        first = torch.cumsum(length, 0) - length
        self.place = torch.arange(len(self.note), device=device) - first[self.note]
        self.target = (song * total + start)[self.note] + self.place
        self.seconds = self.place.float() / RATE


def series(harmonics, angle, ratio):
    """Sum of the harmonics of an angle, each ratio times as loud as the one below beside its own amplitude:
    sin(kθ)q^(k-1) = 2q cos θ · sin((k-1)θ)q^(k-2) - q² · sin((k-2)θ)q^(k-3)."""
    current, before = torch.sin(angle), torch.zeros_like(angle)
    double, square = 2 * ratio * torch.cos(angle), ratio.square()
    total = torch.zeros_like(angle)
    for amplitude in harmonics:
        if amplitude:
            total = total + amplitude * current
        current, before = double * current - square * before, current
    return total


def envelope(timbre, t, length):
    rise = (t / timbre.attack).clamp_max(1)
    body = timbre.sustain + (1 - timbre.sustain) * torch.exp(-t / timbre.decay)
    return rise * body * ((length + timbre.release - t) / timbre.release).clamp(0, 1)


def tones(name, rows, total, device, out):
    """Adds an instrument's notes to `out` [songs · samples]."""
    timbre = TIMBRES[name]
    song, start, length, pitch, loudness, bright = rows
    count = ((length + timbre.release) * RATE).ceil().long()
    samples = Samples(song.long(), (start * RATE).round().long(), count, total, device)
    note, t = samples.note, samples.seconds
    hertz = 440 * torch.pow(2.0, (pitch - 69) / 12)
    shade = torch.tensor(BRIGHTNESS, device=device)[bright.long()][note]
    ratio, sound = shade * torch.exp(-t * timbre.damping), torch.zeros_like(t)
    for i, partial in enumerate(timbre.partials):
        # Turns, not radians: their whole part goes before precision does.
        turns = (hertz * partial).float()[note] * t
        part = series(timbre.harmonics, 2 * math.pi * (turns - turns.floor()), ratio)
        sound = sound + part * (0.35 * shade * torch.exp(-4 * t)) ** i
    sound = sound * envelope(timbre, t, length.float()[note]) * (loudness.float() * timbre.gain)[note]
    out.index_add_(0, samples.target, sound)


def drums(kit, rows, total, device, out):
    song, start, _, drum, loudness, _ = rows
    recorded = torch.from_numpy(strokes()[kit]).to(device)
    count = torch.full_like(song.long(), recorded.shape[1])
    samples = Samples(song.long(), (start * RATE).round().long(), count, total, device)
    sound = recorded[drum.long()[samples.note], samples.place] * loudness.float()[samples.note]
    out.index_add_(0, samples.target, sound)


def render(scores, seconds, device="cpu"):
    """Scores as sound [songs, 2, samples], all of one loudness."""
    total = round(seconds * RATE)
    sound = torch.zeros(len(scores), 2, total, device=device)
    for name, notes in gathered(scores).items():
        rows = torch.from_numpy(notes[notes[:, 1] < seconds - 0.02].T.copy()).to(device)
        if not rows.shape[1]:
            continue
        mono = torch.zeros(len(scores) * total, device=device)
        if name in TIMBRES:
            tones(name, rows, total, device, mono)
            pan = TIMBRES[name].pan
        else:
            drums(["acoustic drums", "electronic drums"].index(name), rows, total, device, mono)
            pan = 0.0
        angle = (1 + pan) * math.pi / 4
        gains = torch.tensor([math.cos(angle), math.sin(angle)], device=device) * math.sqrt(2)
        sound += gains.view(1, 2, 1) * mono.view(len(scores), 1, total)
    return sound * (LEVEL / sound.square().mean((1, 2), keepdim=True).sqrt().clamp_min(1e-4))
