"""The tempo of a song as it is heard, from its sound alone, and songs of a known tempo to try that on."""

import array
import math
import random
import wave

HOP = 0.01  # seconds
EDGES = (150, 400, 1000, 3000)  # Hz, of the bands that onsets are looked for in
SLOWEST, FASTEST = 60, 180  # beats a minute
USUAL, OCTAVES = 0.5, 0.9  # seconds of the beat that listeners prefer, and how wide that preference is
FLOOR = 0.05  # of the mean power of a band: what is quieter begins nothing


def read_wave(path):
    """Left and right as integers of 16 bits, and the rate."""
    with wave.open(str(path), "rb") as file:
        samples = array.array("h", file.readframes(file.getnframes()))
        return samples[0::2], samples[1::2], file.getframerate()


def mono_of(path):
    left, right, rate = read_wave(path)
    return [(a + b) / 65536 for a, b in zip(left, right)], rate


def band_powers(samples, rate):
    """Mean square of every HOP in each band: what one low pass of first order lets through and the one below it not."""
    size = round(rate * HOP)
    shares = [1 - math.exp(-2 * math.pi * edge / rate) for edge in EDGES]
    lows, powers = [0.0] * len(EDGES), [[] for _ in range(len(EDGES) + 1)]
    for begin in range(0, len(samples) - size + 1, size):
        sums = [0.0] * len(powers)
        for sample in samples[begin : begin + size]:
            below = 0.0
            for i, share in enumerate(shares):
                lows[i] += share * (sample - lows[i])
                sums[i] += (lows[i] - below) ** 2
                below = lows[i]
            sums[-1] += (sample - below) ** 2
        for power, total in zip(powers, sums):
            power.append(total / size)
    return powers


def onset_strength(power):
    """How much the loudness rises from hop to hop, by its logarithm, about its mean."""
    floor = FLOOR * sum(power) / len(power) + 1e-12
    level = [math.log(p + floor) for p in power]
    rises = [max(0.0, after - before) for before, after in zip(level, level[1:])]
    # What begins a hop sooner or later still repeats.
    blurred = [a + 2 * b + 3 * c + 2 * d + e for a, b, c, d, e in zip(rises, rises[1:], rises[2:], rises[3:], rises[4:])]
    mean = sum(blurred) / len(blurred)
    return [value - mean for value in blurred]


def autocorrelation(values, lag):
    return sum(a * b for a, b in zip(values, values[lag:]))


def tempo(samples, rate):
    """Beats a minute: the lag at which onsets of all bands together repeat most, by how likely listeners tap at it. What repeats
    after a beat also does after two, and the ear settles near 120 (Ellis, Beat tracking by dynamic programming, 2007, section
    3.2: a bell curve over the octaves)."""
    bands = [onset_strength(power) for power in band_powers(samples, rate)]
    powers = [max(autocorrelation(band, 0), 1e-12) for band in bands]

    def strength(lag):
        repeats = sum(autocorrelation(band, lag) / power for band, power in zip(bands, powers))
        return repeats * math.exp(-0.5 * (math.log2(lag * HOP / USUAL) / OCTAVES) ** 2)

    return 60 / HOP / max(range(round(60 / FASTEST / HOP), round(60 / SLOWEST / HOP) + 1), key=strength)


def is_near(found, wanted):
    return abs(found / wanted - 1) <= 0.05


def stroke(rate, hertz, seconds, noise, chance):
    """A tone and noise that die away."""
    tone = (math.sin(2 * math.pi * hertz * i / rate) * (1 - noise) for i in range(int(seconds * rate)))
    return [(t + noise * chance.uniform(-1, 1)) * math.exp(-5 * i / rate / seconds) for i, t in enumerate(tone)]


def made_song(bpm, seconds=8, rate=16000, seed=0):
    """A drum on every beat, a quieter one between some, and a melody that plays on some of both."""
    chance = random.Random(f"song {seed}")
    samples = [0.0] * int(seconds * rate)
    kick, hat = stroke(rate, 60, 0.2, 0.1, chance), stroke(rate, 5000, 0.05, 0.9, chance)
    for half in range(int(2 * seconds * bpm / 60)):
        played = [(0.8, kick)] if half % 2 == 0 else [(0.15, hat)] if chance.random() < 0.6 else []
        if chance.random() < (0.9 if half % 2 == 0 else 0.4):
            played.append((0.3, stroke(rate, 220 * 2 ** (chance.randrange(24) / 12), 0.3, 0, chance)))
        for loudness, sound in played:
            begin = int(half * 30 / bpm * rate)
            for i, sample in enumerate(sound[: len(samples) - begin]):
                samples[begin + i] += loudness * sample
    return samples, rate
