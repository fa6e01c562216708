"""Latents of many songs with their prompts, and the audio codes' tokenizer and detokenizer, which are trained on them."""

import math
import random

import torch
import torch.nn.functional as F

import compose_vae
from ace.audio_tokens import POOL
from ace.files import TIMBRE
from captured_steps import DEVICE, say
from compose_data import captions, score, synth
from compose_tools import adam, clip, set_rate

TEXT, LYRIC = 96, 31  # tokens; with the timbre's row a condition has 128
SECONDS = (4, 5, 6, 8, 10, 12, 16)  # lengths of training songs, which begin where a song begins
# Of every song and length: what is asked in each wording of its prompt, and how often a batch has it.
WORDINGS = ("text", "text", "text", "text", "cover", "repaint")
WEIGHTS = (0.2, 0.2, 0.2, 0.2, 0.1, 0.1)


def padded(ids, size):
    return ids + [-1] * (size - len(ids))


class Bank:
    """Latents [songs, frames, 64]; token ids [songs, lengths, wordings, TEXT] and lyrics alike, -1 where there is none.
    `hints` are the latents as the audio codes tell them, for covers."""

    def __init__(self, latents, text, lyric, seconds):
        self.latents, self.text, self.lyric, self.seconds = latents, text, lyric, seconds
        self.hints, self.silence = latents, torch.zeros(1, 1, 64, device=DEVICE)
        self.weights = torch.tensor(WEIGHTS, device=DEVICE)
        self.task = {task: torch.tensor([t == task for t in WORDINGS], device=DEVICE) for task in ("cover", "repaint")}

    def state(self):
        return {"latents": self.latents.half().cpu(), "text": self.text.cpu(), "lyric": self.lyric.cpu(), "seconds": self.seconds}

    @classmethod
    def of(cls, state):
        return cls(state["latents"].to(DEVICE, torch.float32), state["text"].to(DEVICE), state["lyric"].to(DEVICE), state["seconds"])

    def context(self, wording, latents, hints):
        """Source and mask side by side: silence to be filled, or a cover's hints, or a song with a part to be painted anew."""
        frames = latents.shape[1]
        place = torch.arange(frames, device=DEVICE)
        first = torch.rand(len(latents), 1, device=DEVICE) * 0.7 * frames
        inside = (place >= first) & (place < first + (0.2 + 0.5 * torch.rand_like(first)) * frames)
        kept = (self.task["repaint"][wording].unsqueeze(1) & ~inside).unsqueeze(2)
        source = torch.where(kept, latents, self.silence.repeat(1, -(-frames // self.silence.shape[1]), 1)[:, :frames])
        source = torch.where(self.task["cover"][wording].view(-1, 1, 1), hints, source)
        return torch.cat([source, (~kept).float().expand_as(source)], -1)

    def batch(self, count):
        """Latents of one length, their context, token ids, lyrics' ids."""
        which = int(torch.randint(len(self.seconds), (1,)))
        frames = 25 * self.seconds[which]
        songs = torch.randint(len(self.latents), (count,), device=DEVICE)
        wording = torch.multinomial(self.weights, count, replacement=True)
        latents, hints = self.latents[songs, :frames], self.hints[songs, :frames]
        text, lyric = self.text[songs, which, wording].long(), self.lyric[songs, which, wording].long()
        return latents, self.context(wording, latents, hints), text, lyric


def wordings(tokenizer, made, seconds):
    """Token ids of a song's prompts and lyrics, for every length."""
    text, lyric = [], []
    for length in seconds:
        for i, task in enumerate(WORDINGS):
            chance = random.Random(f"words {made.seed} {length} {i}")
            ids = None
            while ids is None or len(ids[0]) > TEXT or len(ids[1]) > LYRIC:
                # Now and then another duration than the song has: none is out of bounds then.
                said = length if chance.random() < 0.85 else chance.randint(1, 180)
                ids = [tokenizer.encode(t) for t in captions.texts(chance, made, "train", said, task)]
            text.append(padded(ids[0], TEXT))
            lyric.append(padded(ids[1], LYRIC))
    return text, lyric


def first_seed(run):
    """Of a bank's songs, which have the seeds from there on."""
    return run.seed * 10_000_000 + 5_000_000


def build(vae, tokenizer, run):
    lengths = (1,) if run.smoke else SECONDS
    longest, at_once, course = lengths[-1], 1 if run.smoke else 8, run.course("latents", 2)
    latents, text, lyric, first = [], [], [], first_seed(run)
    for step in course:
        scores = [score.make(first + step * at_once + i, "train", longest) for i in range(at_once)]
        latents.append(compose_vae.encode(vae, synth.render(scores, longest, DEVICE)))
        for made in scores:
            ids = [torch.tensor(x, dtype=torch.int16) for x in wordings(tokenizer, made, lengths)]
            text.append(ids[0])
            lyric.append(ids[1])
        if course.due():
            say(f"latents {course.done:.2f}: {len(text)} songs, {course.pace(at_once * longest):.0f} s of sound a second")
    shape = (len(text), len(lengths), len(WORDINGS), -1)
    ids = [torch.stack(x).reshape(shape).to(DEVICE) for x in (text, lyric)]
    return Bank(torch.cat(latents).float(), *ids, lengths)


PULSE = 4.0  # as loud as noise is in all channels together, near enough


def clock(frames=2 * TIMBRE):
    """What a checkpoint calls silence, [1, frames, 64]: the source of what is to be made from nothing. The authors' is the
    autoencoder's latents of no sound. Four layers that see positions only by their differences learn no tempo from that;
    here it is a clock: pulses of every tempo of the scores, so that what a caption asks for has only to be chosen. Each has
    three channels: its beats, with what lies midway between two of them below zero; the bars of four beats and, fainter, their
    middles; the bars of three. A pulse midway between two frames is in the first of them and half as strong. The last channel tells
    where in its first half minute the song is. The product repeats the whole where a song is longer, and there a beat may come too
    early."""
    found = torch.zeros(frames, 64)
    for i, beat in enumerate(score.BEATS):
        for half in range(math.ceil(2 * frames / beat)):
            place = score.onset(half / 2, beat)
            if place >= 2 * frames:
                break
            strength, k = PULSE * (0.5 if place % 2 else 1.0), half // 2
            pulses = (-1.0, 0, 0) if half % 2 else (1.0, (1.0, 0, 0.5, 0)[k % 4], (1.0, 0, 0)[k % 3])
            found[place // 2, 3 * i : 3 * i + 3] += strength * torch.tensor(pulses)
    found[:, 63] = torch.cos(torch.pi * torch.arange(frames).clamp_max(TIMBRE) / TIMBRE)
    return found.unsqueeze(0)


def reconstructed(model, windows):
    tokenizer = model.audio_tokenizer
    return model.audio_token_detokenizer(tokenizer.quantizer(tokenizer.pooled(windows)))


def train_tokens(model, bank, run):
    """Five frames to a code and back: the gist of a song, not its sound."""
    parts = [model.audio_tokenizer, model.audio_token_detokenizer]
    parameters = [p for part in parts for p in part.parameters()]
    optimizer, course = adam(parameters), run.course("codes")
    windows = bank.latents.reshape(-1, POOL, 64)
    for step in course:
        set_rate(optimizer, course.rate(1e-3))
        some = windows[torch.randint(len(windows), (64 if run.smoke else 4096,), device=DEVICE)]
        loss = F.mse_loss(reconstructed(model, some), some)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        clip(parameters, 1.0)
        optimizer.step()
        if course.due():
            say(f"codes {step} {course.done:.2f}: {float(loss.detach()):.3f} of the latents' variance is lost")
    with torch.no_grad():
        codes = model.audio_tokenizer.quantizer.codes(model.audio_tokenizer.pooled(windows[:20000]))
    found = {"steps": course.step, "variance_lost": round(float(loss.detach()), 3), "codes_used_of_20000": len(codes.unique())}
    say("codes:", found)
    return found


@torch.no_grad()
def hints_of(model, bank):
    """The bank's latents by way of their codes."""
    songs, frames, _ = bank.latents.shape
    windows = bank.latents.reshape(-1, POOL, 64).split(16384)
    return torch.cat([reconstructed(model, part) for part in windows]).reshape(songs, frames, 64)
