"""Scores by chance: who plays, in which key and tempo, and every note.

Everything is a function of a seed. A test score has a combination of key, melody and chords that no training score has."""

import math
import random
from dataclasses import dataclass, field
from typing import Optional

LEADS = ("piano", "flute", "bell", "synth", "guitar")
CHORDS = ("piano", "organ", "strings", "guitar")
BASSES = ("acoustic bass", "synth bass")
KITS = ("acoustic drums", "electronic drums")
SLOWEST, FASTEST = 60, 180
FRAME = 0.04  # seconds of a frame of latents
# A beat in frames. Beats so fall on frames, or on frames and midway between in turn; no tempo is missed by more than 4.5 %, and
# 60, 100, 120 and 150 beats a minute are there themselves.
BEATS = (8.5, 9, 9.5, 10, 10.5, 11, 12, 12.5, *range(13, 26))

MAJOR, MINOR = (0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10)
# Degrees of the scale, a chord a bar. Every one begins at home and leads back to it, so that the key can be heard.
PROGRESSIONS = {
    False: ((0, 4, 5, 3), (0, 3, 4, 0), (0, 5, 3, 4), (0, 3, 0, 4), (0, 1, 4, 0), (0, 2, 3, 4)),
    True: ((0, 5, 2, 6), (0, 3, 4, 0), (0, 5, 3, 4), (0, 6, 5, 4), (0, 3, 0, 4), (0, 3, 6, 0)),
}


@dataclass(frozen=True)
class Note:
    start: float  # seconds
    length: float
    pitch: int  # MIDI; for drums which one: 0 kick, 1 snare, 2 hat
    loudness: float
    instrument: str


@dataclass
class Score:
    seed: int
    seconds: float
    bpm: int  # as asked for; what is played is `tempo`
    beats: int  # a bar: 3 or 4
    tonic: int  # 0 is C
    minor: bool
    lead: Optional[str]
    chords: Optional[str]
    bass: Optional[str]
    drums: Optional[str]
    density: int  # 0 sparse, 1, 2 dense
    register: int  # of the melody: 0 low, 1, 2 high
    brightness: int  # 0 mellow, 1, 2 bright
    notes: list = field(default_factory=list)

    @property
    def beat_frames(self):
        """A beat in frames of latents: the nearest that there is to what is asked for."""
        return min(BEATS, key=lambda beat: abs(math.log(beat * self.bpm * FRAME / 60)))

    @property
    def tempo(self):
        return 60 / (self.beat_frames * FRAME)

    @property
    def instruments(self):
        return [name for name in (self.lead, self.chords, self.bass, self.drums) if name]


def reserved(score):
    """Whether a combination is the test's: an eighth of all."""
    lead = LEADS.index(score.lead) + 1 if score.lead else 0
    chords = CHORDS.index(score.chords) + 1 if score.chords else 0
    return (score.tonic * 7 + score.minor * 5 + lead * 3 + chords * 11) % 8 == 0


def cast(chance, seed, seconds):
    """Everything but the notes."""

    def maybe(names, share):
        return chance.choice(names) if chance.random() < share else None

    lead, chords = maybe(LEADS, 0.85), maybe(CHORDS, 0.8)
    if not lead and not chords:
        chords = chance.choice(CHORDS)
    bass, drums = maybe(BASSES, 0.75), maybe(KITS, 0.65)
    if not (lead and chords) and not bass and not drums:
        bass = chance.choice(BASSES)
    return Score(seed, seconds, chance.randint(SLOWEST, FASTEST), 3 if chance.random() < 0.2 else 4, chance.randrange(12),
                 chance.random() < 0.5, lead, chords, bass, drums, chance.randrange(3), chance.randrange(3),
                 chance.randrange(3))  # fmt: skip


def onset(beats, beat):
    """When a note begins, in halves of a frame: so many beats of `beat` frames after the beginning, or up to a quarter of a
    frame from there. An attack has one of two places in a frame, which a transformer can tell apart."""
    return math.floor(2 * beats * beat + 0.5 + 1e-6)


class Writer:
    """Fills a score with notes."""

    def __init__(self, chance, score):
        self.chance, self.score = chance, score
        self.beat = 60 / score.tempo
        self.scale = MINOR if score.minor else MAJOR
        self.progression = chance.choice(PROGRESSIONS[score.minor])
        self.bars = int(score.seconds / (self.beat * score.beats)) + 1

    def add(self, beat, length, pitch, loudness, instrument):
        """Beats from the beginning."""
        start = onset(beat, self.score.beat_frames) * FRAME / 2
        if start < self.score.seconds - 0.05:
            self.score.notes.append(Note(start, length * self.beat, pitch, loudness, instrument))

    def tone(self, degree):
        """Semitones above the tonic of a step of the scale, which goes on above and below."""
        return 12 * (degree // 7) + self.scale[degree % 7]

    def chord(self, bar):
        degree = self.progression[bar % len(self.progression)]
        tones = [self.tone(degree + step) for step in (0, 2, 4)]
        # A minor key's fifth chord is major: its third leads to the tonic.
        if self.score.minor and degree == 4:
            tones[1] += 1
        return tones

    def near(self, tone, centre):
        """The pitch of that name nearest to a pitch."""
        pitch = self.score.tonic + tone
        return pitch + 12 * round((centre - pitch) / 12)

    def pulse(self):
        """The part that plays every beat, so that any song's tempo can be heard."""
        s = self.score
        return "drums" if s.drums else "bass" if s.bass else "chords" if s.chords else "lead"

    def write(self):
        score = self.score
        if score.chords:
            self.write_chords()
        if score.bass:
            self.write_bass()
        if score.drums:
            self.write_drums()
        if score.lead:
            self.write_lead()
        return score

    def write_chords(self):
        s, sustained = self.score, self.score.chords in ("organ", "strings")
        arpeggio = not sustained and s.density == 2
        for bar in range(self.bars):
            first = bar * s.beats
            pitches = sorted(self.near(tone, 55) for tone in self.chord(bar))
            if arpeggio:
                order = [0, 1, 2, 1]
                for i in range(2 * s.beats):
                    self.add(first + i / 2, 0.9, pitches[order[i % 4]], 0.27, s.chords)
                continue
            every = 1 if self.pulse() == "chords" else s.beats if sustained or s.density == 0 else s.beats / 2
            if every == 1.5:
                every = 1
            count = int(s.beats / every)
            for i in range(count):
                for pitch in pitches:
                    self.add(first + i * every, every * (1.0 if sustained else 0.95), pitch, 0.2, s.chords)

    def write_bass(self):
        s = self.score
        every = {0: s.beats, 1: s.beats / 2 if s.beats == 4 else 1, 2: 0.5}[s.density]
        if self.pulse() == "bass":
            every = min(every, 1)
        for bar in range(self.bars):
            root, _, fifth = self.chord(bar)
            low = self.near(root, 38)
            for i in range(int(s.beats / every)):
                at_fifth = every >= 1 and i % 2 == 1
                pitch = self.near(fifth, low + 4) if at_fifth else low
                loudness = 0.5 if i == 0 else 0.42
                self.add(bar * s.beats + i * every, every * 0.9, pitch, loudness, s.bass)

    def write_drums(self):
        s = self.score
        hats = {0: 1, 1: 0.5, 2: 0.5 if s.bpm > 110 else 0.25}[s.density]
        for bar in range(self.bars):
            first = bar * s.beats
            for beat in range(s.beats):
                kick = beat == 0 if s.beats == 3 else beat % 2 == 0
                self.add(first + beat, 0.5, 0 if kick else 1, 0.8 if kick else 0.45, s.drums)
            if s.density == 2 and s.beats == 4:
                self.add(first + 2.5, 0.5, 0, 0.6, s.drums)
            for i in range(int(s.beats / hats)):
                self.add(first + i * hats, 0.25, 2, 0.5 if i * hats % 1 == 0 else 0.35, s.drums)

    def rhythm(self):
        """Lengths of a bar's melody notes."""
        s, lengths, left = self.score, [], self.score.beats
        usual = {0: (2, 1, 1), 1: (1, 1, 0.5, 0.5), 2: (0.5, 0.5, 0.5, 1)}[s.density]
        while left > 0:
            length = min(self.chance.choice(usual), left)
            if self.pulse() == "lead":
                length = min(length, 1)
            # Halves come in pairs, so that the beat stays where it is.
            pair = length == 0.5 and left >= 1
            lengths += [0.5, 0.5] if pair else [length]
            left -= 1 if pair else length
        return lengths

    def phrase(self):
        """Two bars of melody as (length, steps to move)."""
        moves = (-2, -1, -1, 1, 1, 2)
        return [[(length, self.chance.choice(moves)) for length in self.rhythm()] for _ in range(2)]

    def write_lead(self):
        s = self.score
        centre = (53, 60, 67)[s.register]
        phrases = [self.phrase(), self.phrase()]
        order = (0, 0, 1, 0)
        steps = [d for d in range(-14, 28) if abs(s.tonic + 36 + self.tone(d) - centre) <= 10]
        place = min(steps, key=lambda d: abs(s.tonic + 36 + self.tone(d) - centre))
        for bar in range(self.bars):
            beat = bar * s.beats
            degree = self.progression[bar % len(self.progression)]
            for i, (length, move) in enumerate(phrases[order[bar // 2 % 4]][bar % 2]):
                place = max(steps[0], min(steps[-1], place + move))
                if i == 0 or beat % 2 == 0:  # a tone of the chord
                    place = min(steps, key=lambda d: (abs(d - place) + 9 * ((d - degree) % 7 not in (0, 2, 4)), d))
                pitch = s.tonic + 36 + self.tone(place)
                raised = s.minor and degree == 4 and (place - 6) % 7 == 0
                self.add(beat, length * 0.95, pitch + raised, 0.42 if i == 0 else 0.36, s.lead)
                beat += length


def make(seed, split, seconds):
    """A score of `split`, "train" or "test"."""
    chance = random.Random(f"{split} {seed}")
    while True:
        score = cast(chance, seed, seconds)
        if reserved(score) == (split == "test"):
            return Writer(chance, score).write()
