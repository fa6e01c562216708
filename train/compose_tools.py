"""What the stages of compose.py share: the clock, the learning rate, what a run is made of."""

import time

import torch

from captured_steps import DEVICE


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


class Run:
    """What a run is made of. A stage has its share of the time that is left, so that what takes longer than thought (a
    compiler, a first call) takes from all that follows; a smoke run counts steps instead."""

    def __init__(self, out, seed, minutes, smoke, shares):
        self.out, self.seed, self.smoke, self.shares = out, seed, smoke, shares
        self.end = time.time() + 60 * minutes

    def course(self, stage, smoke_steps=3):
        names = list(self.shares)
        coming = sum(self.shares[name] for name in names[names.index(stage) :])
        seconds = (self.end - time.time()) * self.shares[stage] / coming
        return Course(max(seconds, 1), smoke_steps if self.smoke else None)


class Course:
    """Steps until the time is up; `done` is the share of it that is gone. Looks at the clock after the device has caught
    up, every so many steps: launches run ahead of it."""

    def __init__(self, seconds, steps):
        self.seconds, self.steps, self.step, self.done = seconds, steps, 0, 0.0
        self.begin = self.shown = time.time()

    def __iter__(self):
        while self.done < 1:
            yield self.step
            self.step += 1
            if self.steps:
                self.done = self.step / self.steps
            elif self.step % 16 == 0:
                synchronize()
                self.done = (time.time() - self.begin) / self.seconds

    def rate(self, peak, warm=100, end=0.02):
        """Of learning: a ramp, then half a cosine down to `end` of the peak."""
        falling = end + (1 - end) * 0.5 * (1 + float(torch.cos(torch.tensor(min(self.done, 1.0) * torch.pi))))
        return peak * min(1.0, (self.step + 1) / warm) * falling

    def due(self, seconds=20):
        """Whether something is to be said: from time to time, and at the end."""
        if time.time() - self.shown < seconds and not self.steps:
            return False
        self.shown = time.time()
        return True

    def pace(self, unit_per_step):
        return (self.step + 1) * unit_per_step / max(time.time() - self.begin, 1e-9)


def set_rate(optimizer, rate):
    for group in optimizer.param_groups:
        group["lr"] = rate


def adam(parameters, betas=(0.9, 0.99), decay=0.01):
    return torch.optim.AdamW(parameters, lr=1e-4, betas=betas, weight_decay=decay, **({"fused": True} if DEVICE == "cuda" else {}))


def clip(parameters, limit):
    """Gradients' norm brought to at most `limit`, without waiting for the device."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norms = torch._foreach_norm(gradients)
    norm = torch.stack(norms).norm()
    torch._foreach_mul_(gradients, (limit / (norm + 1e-6)).clamp(max=1.0))
    return norm


def rounded(part):
    """As a checkpoint holds it."""
    with torch.no_grad():
        for parameter in part.parameters():
            parameter.copy_(parameter.to(torch.bfloat16).float())
