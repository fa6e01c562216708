"""The sampler of the product (music/sampler.cpp): Euler steps on a shifted schedule, with DCW after all but the last."""

import torch

STEPS, SHIFT, DCW = 8, 3.0, (0.05, 0.02)


def shifted(t, shift=SHIFT):
    return shift * t / (1 + (shift - 1) * t)


def schedule(steps=STEPS, shift=SHIFT):
    """Times from 1 down to the last before 0."""
    return [shifted(1 - i / steps, shift) for i in range(steps)]


def corrected(x, velocity, t, t_next, dcw):
    """An Euler step with DCW: the Haar bands of x along time are moved away from what x denoises to."""
    low, high = t * dcw[0], (1 - t) * dcw[1]
    frames, odd = x.shape[1], x.shape[1] % 2

    def pairs(values):
        if odd:
            values = torch.cat([values, torch.zeros_like(values[:, :1])], 1)
        return values.unflatten(1, (-1, 2)).unbind(2)

    (a, b), (d_a, d_b) = pairs(x + (t_next - t) * velocity), pairs(x - t * velocity)
    root = 0.5**0.5
    band_low, band_high = (a + b) * root, (a - b) * root
    band_low = band_low + low * (band_low - (d_a + d_b) * root)
    band_high = band_high + high * (band_high - (d_a - d_b) * root)
    joined = torch.stack([band_low + band_high, band_low - band_high], 2) * root
    return joined.flatten(1, 2)[:, :frames]


def sample(velocity_of, noise, times=None, dcw=DCW):
    """`velocity_of(x, t)` with t a number; noise [batch, frames, 64]."""
    times = times or schedule()
    x = noise
    for t, t_next in zip(times, [*times[1:], 0.0]):
        velocity = velocity_of(x, t)
        plain = dcw is None or t_next == 0.0
        x = x + (t_next - t) * velocity if plain else corrected(x, velocity, t, t_next, dcw)
    return x
