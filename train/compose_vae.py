"""The autoencoder's training.

The encoder's means are brought to mean 0 and variance 1, channel by channel, by batch statistics that are folded into its
last convolution at the end: the latents that a checkpoint holds need no scaling. The posterior's deviation is not learned but
given: noise up to twice POSTERIOR is added in training, so that a decoder hears past small errors of a diffusion model, and
the scale half of the encoder's output says POSTERIOR. The first weights are compose_start.py's. The loss of a clip is the logarithm of its error by its energy, which
is its signal-to-noise ratio, and a little of the difference of magnitudes on five short-time spectra."""

import math

import torch
from torch import nn

import compose_start
from ace.vae import SAMPLES, SnakeFunction, snake_gradients, snake_value
from captured_steps import DEVICE, say
from compose_data import score, synth
from compose_tools import adam, clip, set_rate, synchronize

POSTERIOR = 0.1
SECONDS = 8  # of a song in the pool
WINDOWS = (256, 512, 1024, 2048, 4096)
TYPE = torch.bfloat16 if DEVICE == "cuda" else torch.float32


class SoundPool:
    """Songs on the device, some of which are replaced as training goes on."""

    def __init__(self, songs, seconds, seed, split="train", at_once=16):
        self.seconds, self.next, self.split, self.at_once = seconds, seed * 10_000_000, split, min(at_once, songs)
        self.sound = torch.zeros(songs, 2, round(seconds * synth.RATE), device=DEVICE, dtype=torch.float16)
        self.at = 0
        for _ in range(-(-songs // self.at_once)):
            self.refresh()

    def refresh(self):
        scores = [score.make(self.next + i, self.split, self.seconds) for i in range(self.at_once)]
        self.next += self.at_once
        places = (torch.arange(self.at_once, device=DEVICE) + self.at) % len(self.sound)
        self.sound[places] = synth.render(scores, self.seconds, DEVICE).half()
        self.at = (self.at + self.at_once) % len(self.sound)

    def clips(self, count, frames):
        size = frames * SAMPLES
        songs = torch.randint(len(self.sound), (count,))
        # One in eight begins with its song, as what is decoded later does.
        starts = torch.randint(self.sound.shape[-1] - size + 1, (count,)) * (torch.rand(count) > 0.125)
        return torch.stack([self.sound[s, :, a : a + size] for s, a in zip(songs.tolist(), starts.tolist())]).float()


class LatentNorm(nn.BatchNorm1d):
    """Means of variance 1."""

    def __init__(self):
        super().__init__(64, affine=False, momentum=0.02)


def spectra(sound):
    """Magnitudes of left + right and left - right."""
    flat = torch.stack([sound[:, 0] + sound[:, 1], sound[:, 0] - sound[:, 1]], 1).flatten(0, 1)
    for window in WINDOWS:
        shape = torch.hann_window(window, device=sound.device)
        found = torch.stft(flat, window, window // 4, window=shape, return_complex=True)
        yield torch.view_as_real(found).square().sum(-1).add(1e-9).sqrt() / math.sqrt(window)


def spectral_loss(found, wanted):
    total = 0
    for a, b in zip(spectra(found), spectra(wanted)):
        floor = 2e-3
        total = total + (torch.log(a + floor) - torch.log(b + floor)).abs().mean()
    return total / len(WINDOWS)


def noise_ratio(found, wanted):
    """Energy of the error by that of the clip; a silent clip counts as a quiet one."""
    energy = wanted.square().mean((1, 2)).clamp_min(1e-4)
    return (found - wanted).square().mean((1, 2)) / energy


def losses(vae, norm, sound):
    mean, _ = vae.moments(sound.to(TYPE))
    latents = norm(mean)
    noise = torch.rand(len(sound), 1, 1, device=sound.device) * 2 * POSTERIOR
    found = vae.decode((latents + noise * torch.randn_like(latents)).to(TYPE))
    ratio = noise_ratio(found, sound)
    return torch.log(ratio + 3e-3).mean() + 0.3 * spectral_loss(found, sound), ratio.detach()


def timed(step, repeats=5):
    import time

    step()
    synchronize()
    begin = time.time()
    for _ in range(repeats):
        step()
    synchronize()
    return (time.time() - begin) / repeats


def try_compiled_snake(vae, clips):
    """Whether torch.compile makes a step faster and the same; eager code otherwise."""
    if DEVICE != "cuda" or not hasattr(torch, "compile"):
        return

    def step():
        vae.zero_grad()
        mean, _ = vae.moments(clips.to(TYPE))
        vae.decode(mean.to(TYPE)).square().mean().backward()
        return torch.cat([p.grad.flatten() for p in vae.parameters()])

    plain, wanted = timed(step), step()
    try:
        SnakeFunction.value = staticmethod(torch.compile(snake_value, dynamic=True))
        SnakeFunction.gradients = staticmethod(torch.compile(snake_gradients, dynamic=True))
        compiled, found = timed(step), step()
        close = float((found - wanted).norm() / wanted.norm()) < 0.1
    except Exception as error:  # whatever a compiler may throw: the eager code is there
        say("torch.compile:", repr(error)[:200])
        compiled, close = math.inf, False
    say(f"autoencoder step {plain * 1e3:.0f} ms, with Snake compiled {compiled * 1e3:.0f} ms{'' if close else ', not used'}")
    if not close or compiled > plain:
        SnakeFunction.value, SnakeFunction.gradients = staticmethod(snake_value), staticmethod(snake_gradients)
    vae.zero_grad()


def fold(vae, norm):
    """The norm into the encoder's last convolution; its scale half becomes the constant that gives POSTERIOR."""
    last, half = vae.encoder.conv2, norm.num_features
    deviation = (norm.running_var + norm.eps).sqrt()
    with torch.no_grad():
        last.weight_g[:half] /= deviation.view(-1, 1, 1)
        last.bias[:half] = (last.bias[:half] - norm.running_mean) / deviation
        last.weight_g[half:] = 0
        last.bias[half:] = math.log(math.expm1(POSTERIOR - 1e-4))  # diffusers adds 1e-4 to softplus


@torch.no_grad()
def encode(vae, sound):
    """Sound [songs, 2, samples] -> latents [songs, frames, 64], fp32."""
    return vae.moments(sound.to(TYPE))[0].transpose(1, 2)


@torch.no_grad()
def decode(vae, latents, at_once=8):
    parts = [vae.decode(part.transpose(1, 2).to(TYPE)) for part in latents.split(at_once)]
    return torch.cat(parts)


@torch.no_grad()
def recalibrate(vae, norm, pool):
    """The statistics of whole songs by the final weights."""
    found = torch.cat([encode(vae, pool.sound[i : i + 8].float()).flatten(0, 1) for i in range(0, len(pool.sound), 8)])
    norm.running_mean.copy_(found.mean(0))
    norm.running_var.copy_(found.var(0))


def decibels(found, wanted):
    """Signal-to-noise ratio of every song."""
    return -10 * torch.log10(noise_ratio(found, wanted).clamp_min(1e-9))


@torch.no_grad()
def decibels_by(vae, norm, clips):
    """Of clips by an autoencoder whose norm is not folded in yet."""
    return decibels(vae.decode(norm(vae.moments(clips)[0])), clips)


@torch.no_grad()
def evaluate(vae, pool):
    """Held-out songs, encoded and decoded whole."""
    ratios = torch.cat([decibels(decode(vae, encode(vae, part.float())), part.float()) for part in pool.sound.split(8)])
    latents = encode(vae, pool.sound[:8].float())
    return {"songs": len(ratios), "snr_mean_db": round(float(ratios.mean()), 2),
            "snr_median_db": round(float(ratios.median()), 2), "snr_lowest_db": round(float(ratios.min()), 2),
            "songs_above_15_db": round(float((ratios > 15).float().mean()), 3),
            "latents_deviation": round(float(latents.std()), 3)}  # fmt: skip


def train(vae, run):
    """Trains, folds the norm in, and reports on held-out songs."""
    count, frames, songs, seconds = (1, 4, 1, 1) if run.smoke else (24, 40, 512, SECONDS)
    norm, pool = LatentNorm().to(DEVICE), SoundPool(songs, seconds, run.seed)
    compose_start.start(vae.to(DEVICE), pool.clips(count, frames))
    say(f"vae: begins with {float(decibels_by(vae, norm, pool.clips(count, frames)).mean()):.2f} dB")
    torch.backends.cudnn.benchmark = True  # one shape from here on, and many before and after
    try_compiled_snake(vae, pool.clips(count, frames))
    parameters = list(vae.parameters())
    optimizer, course = adam(parameters, (0.8, 0.99), 0.0), run.course("vae")
    for step in course:
        set_rate(optimizer, course.rate(8e-4, 300))
        loss, ratio = losses(vae, norm, pool.clips(count, frames))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        clip(parameters, 1.0)
        optimizer.step()
        if step % 2 and not run.smoke:
            pool.refresh()
        if course.due():
            say(f"vae {step} {course.done:.2f}: loss {loss:.3f}, {-10 * torch.log10(ratio.mean()):.2f} dB with noise, "
                f"{course.pace(count * frames / 25):.0f} s of sound a second")  # fmt: skip
    torch.backends.cudnn.benchmark = False
    vae.eval()
    recalibrate(vae, norm, pool)
    fold(vae, norm)
    return {"steps": course.step, **judge(vae, run)}


def judge(vae, run):
    """By songs of the test split."""
    seconds = 1 if run.smoke else SECONDS
    found = evaluate(vae.eval(), SoundPool(1 if run.smoke else 128, seconds, run.seed, "test"))
    say("vae:", found)
    return found
