"""The autoencoder's first weights: a lapped transform of the lowest 750 Hz of left + right, as convolutions.

From random weights an autoencoder of waves spends most of a short training on finding out that a wave can be followed at all.
This one begins with most of what linear coding can do, 15 dB of signal to noise, and learns the rest: two strides decimate to 6 kHz, one only
rearranges samples, one is an MDCT with 24 bands, of which the lowest 6 are kept, and ten of its frames make a frame of latents,
as their DCT, so that a latent stands for a band of 12.5 Hz. The decoder is the same backwards. What else there is, channels
and residual units, begins at random and small."""

import math

import torch

BANDS, PHASES, HOPS = 6, 4, 10  # MDCT bands kept, samples of 6 kHz side by side, MDCT frames a frame of latents
SMALL = 0.005


def mdct():
    """[BANDS, PHASES, 12]: 48 samples of 6 kHz with a sine window, 24 new ones each time."""
    size = 24
    n, band = torch.arange(2 * size), torch.arange(BANDS)[:, None]
    window = torch.sin(math.pi * (n + 0.5) / (2 * size))
    rows = window * torch.cos(math.pi / size * (n + 0.5 + size / 2) * (band + 0.5)) * math.sqrt(2 / size)
    return rows.reshape(BANDS, 12, PHASES).transpose(1, 2)


def dct(size):
    """Orthonormal, [size, size]."""
    n, k = torch.arange(size), torch.arange(size)[:, None]
    rows = torch.cos(math.pi / size * (n + 0.5) * k) * math.sqrt(2 / size)
    rows[0] /= math.sqrt(2)
    return rows


def hann(size):
    """Overlapping by half it adds up to 1."""
    return torch.sin(math.pi * (torch.arange(size) + 0.5) / size).square()


def spread():
    """[HOPS · BANDS latents, HOPS · BANDS channels]: the DCT along the hops of every band; both are ordered hop by hop."""
    return torch.kron(dct(HOPS), torch.eye(BANDS))


def put(layer, kernels, transposed=False):
    """The first channels of a convolution: `kernels` [outputs, inputs, taps], and little else that reaches them."""
    outputs, inputs, _ = kernels.shape
    with torch.no_grad():
        weight = layer.weight()
        by_output = weight.transpose(0, 1) if transposed else weight
        by_output[:outputs] *= SMALL
        by_output[:outputs, :inputs] += kernels.to(weight.device)
        layer.weight_v.copy_(weight)
        layer.weight_g.copy_(weight.flatten(1).norm(dim=1).view(-1, 1, 1))


def at_tap(outputs, inputs, size, places):
    """Kernels that are 1 at (output, input, tap) of `places`."""
    kernels = torch.zeros(outputs, inputs, size)
    for place in places:
        kernels[place] = 1
    return kernels


def calm(part):
    """Snakes nearly straight, residual units nearly nothing."""
    with torch.no_grad():
        for name, parameter in part.named_parameters():
            if name.endswith("alpha"):
                parameter.fill_(-2.0)
            if ".res_unit" in name and name.endswith("conv2.weight_g"):
                parameter.mul_(0.02)


def start_encoder(encoder):
    calm(encoder)
    put(encoder.conv1, at_tap(1, 2, 7, [(0, 0, 3), (0, 1, 3)]) / math.sqrt(2))
    put(encoder.block[0].conv1, hann(4).view(1, 1, 4) / 2)
    put(encoder.block[1].conv1, hann(8).view(1, 1, 8) / 4)
    put(encoder.block[2].conv1, at_tap(PHASES, 1, 8, [(p, 0, 2 + p) for p in range(PHASES)]))
    put(encoder.block[3].conv1, mdct())
    hops = [(BANDS * hop + band, band, 5 + hop) for hop in range(HOPS) for band in range(BANDS)]
    put(encoder.block[4].conv1, at_tap(HOPS * BANDS, BANDS, 20, hops))
    kernels = torch.zeros(HOPS * BANDS, HOPS * BANDS, 3)
    kernels[:, :, 1] = spread()
    put(encoder.conv2, kernels)


def start_decoder(decoder, mean, deviation):
    """`mean` and `deviation` [64] are the encoder's, whose latents come without."""
    calm(decoder)
    count = HOPS * BANDS
    kernels = torch.zeros(count, count, 7)
    kernels[:, :, 3] = spread().T * deviation[:count]
    put(decoder.conv1, kernels)
    with torch.no_grad():
        decoder.conv1.bias[:count] += (spread().T @ mean[:count]).to(decoder.conv1.bias.device)
    hops = [(band, BANDS * hop + band, 5 + hop) for hop in range(HOPS) for band in range(BANDS)]
    put(decoder.block[0].conv_t1, at_tap(BANDS, count, 20, hops), transposed=True)
    put(decoder.block[1].conv_t1, mdct().transpose(0, 1), transposed=True)
    put(decoder.block[2].conv_t1, at_tap(1, PHASES, 8, [(0, p, 2 + p) for p in range(PHASES)]), transposed=True)
    put(decoder.block[3].conv_t1, hann(8).view(1, 1, 8), transposed=True)
    put(decoder.block[4].conv_t1, hann(4).view(1, 1, 4), transposed=True)
    put(decoder.conv2, at_tap(2, 1, 7, [(0, 0, 3), (1, 0, 3)]) / math.sqrt(2))


def start(vae, sound):
    """`sound` [clips, 2, samples] tells how large the latents are."""
    start_encoder(vae.encoder)
    with torch.no_grad():
        latents = vae.moments(sound)[0].transpose(1, 2).flatten(0, 1)
    start_decoder(vae.decoder, latents.mean(0).cpu(), latents.std(0).cpu())
