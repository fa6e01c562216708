"""Latents of many songs with their prompts, and the audio codes' tokenizer and detokenizer, which are trained on them."""

import random

import torch
import torch.nn.functional as F

import compose_vae
from ace.audio_tokens import POOL
from ace.vae import SAMPLES
from compose_data import captions, score, synth
from compose_tools import DEVICE, adam, clip, say, set_rate

TEXT, LYRIC = 96, 31  # tokens; with the timbre's row a condition has 128
SECONDS = (4, 5, 6, 8, 10, 12, 16)  # lengths of training songs, which begin where a song begins
WORDINGS = 4  # of every song and length


def padded(ids, size):
    return ids + [-1] * (size - len(ids))


class Bank:
    """Latents [songs, frames, 64]; token ids [songs, lengths, wordings, TEXT] and lyrics alike, -1 where there is none."""

    def __init__(self, latents, text, lyric, seconds):
        self.latents, self.text, self.lyric, self.seconds = latents, text, lyric, seconds

    def state(self):
        return {"latents": self.latents.half().cpu(), "text": self.text.cpu(), "lyric": self.lyric.cpu(), "seconds": self.seconds}

    @classmethod
    def of(cls, state):
        return cls(state["latents"].to(DEVICE, torch.float32), state["text"].to(DEVICE), state["lyric"].to(DEVICE), state["seconds"])

    def batch(self, count):
        """Latents of one length, token ids, lyrics' ids."""
        which = int(torch.randint(len(self.seconds), (1,)))
        songs = torch.randint(len(self.latents), (count,), device=DEVICE)
        wording = torch.randint(self.text.shape[2], (count,), device=DEVICE)
        frames = 25 * self.seconds[which]
        return self.latents[songs, :frames], self.text[songs, which, wording].long(), self.lyric[songs, which, wording].long()


def wordings(tokenizer, made, seconds):
    """Token ids of a song's prompts and lyrics, for every length."""
    text, lyric = [], []
    for length in seconds:
        for i in range(WORDINGS):
            chance = random.Random(f"words {made.seed} {length} {i}")
            # Now and then another duration than the song has: none is out of bounds then.
            said = length if chance.random() < 0.85 else chance.randint(1, 180)
            ids = [tokenizer.encode(t) for t in captions.texts(chance, made, "train", said)]
            while len(ids[0]) > TEXT or len(ids[1]) > LYRIC:
                ids = [tokenizer.encode(t) for t in captions.texts(chance, made, "train", said)]
            text.append(padded(ids[0], TEXT))
            lyric.append(padded(ids[1], LYRIC))
    return text, lyric


def build(vae, tokenizer, run, share):
    lengths = (1,) if run.smoke else SECONDS
    longest, at_once, course = lengths[-1], 1 if run.smoke else 8, run.course(share, 2)
    latents, text, lyric, first = [], [], [], run.seed * 10_000_000 + 5_000_000
    for step in course:
        scores = [score.make(first + step * at_once + i, "train", longest) for i in range(at_once)]
        latents.append(compose_vae.encode(vae, synth.render(scores, longest, DEVICE)))
        for made in scores:
            ids = wordings(tokenizer, made, lengths)
            text.append(ids[0])
            lyric.append(ids[1])
        if course.due():
            say(f"latents {course.done:.2f}: {len(text)} songs, {course.pace(at_once * longest):.0f} s of sound a second")
    shape = (len(text), len(lengths), WORDINGS, -1)
    ids = [torch.tensor(x, dtype=torch.int16, device=DEVICE).reshape(shape) for x in (text, lyric)]
    return Bank(torch.cat(latents).float(), *ids, lengths)


@torch.no_grad()
def silence(vae, run, frames=750):
    """What the autoencoder makes of no sound."""
    made = 15 if run.smoke else frames
    return compose_vae.encode(vae, torch.zeros(1, 2, made * SAMPLES, device=DEVICE)).repeat(1, frames // made, 1)


def reconstructed(model, windows):
    tokenizer = model.audio_tokenizer
    return model.audio_token_detokenizer(tokenizer.quantizer(tokenizer.pooled(windows)))


def train_tokens(model, bank, run, share):
    """Five frames to one of 64,000 codes and back: the gist of a song, not its sound."""
    parts = [model.audio_tokenizer, model.audio_token_detokenizer]
    parameters = [p for part in parts for p in part.parameters()]
    optimizer, course = adam(parameters), run.course(share)
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
            say(f"codes {step} {course.done:.2f}: {float(loss):.3f} of the latents' variance is lost")
    with torch.no_grad():
        codes = model.audio_tokenizer.quantizer.codes(model.audio_tokenizer.pooled(windows[:20000]))
    found = {"steps": course.step, "variance_lost": round(float(loss.detach()), 3), "codes_used_of_20000": len(codes.unique())}
    say("codes:", found)
    return found
