"""The diffusion transformer (huggingface/diffusers, src/diffusers/models/transformers/ace_step_transformer.py)."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from ace.blocks import Attention, Norm, SwiGlu, allowed, rotary, sliding

FREQUENCIES = 128
LATENT = 64


class TimeEmbedding(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.linear_1 = nn.Linear(2 * FREQUENCIES, hidden)
        self.linear_2 = nn.Linear(hidden, hidden)
        self.time_proj = nn.Linear(hidden, 6 * hidden)

    def forward(self, t):
        """t [batch] -> embedding [batch, hidden] and what it adds to every layer's table [batch, 6, hidden]."""
        exponent = -math.log(10000.0) * torch.arange(FREQUENCIES, device=t.device, dtype=torch.float32) / FREQUENCIES
        angle = (t.float() * 1000.0).unsqueeze(1) * exponent.exp()
        embedding = self.linear_2(F.silu(self.linear_1(torch.cat([angle.cos(), angle.sin()], 1))))
        return embedding, self.time_proj(F.silu(embedding)).unflatten(1, (6, -1))


class DitLayer(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.self_attn_norm, self.self_attn = Norm(sizes.hidden, sizes.eps), Attention(sizes)
        self.cross_attn_norm, self.cross_attn = Norm(sizes.hidden, sizes.eps), Attention(sizes)
        self.mlp_norm, self.mlp = Norm(sizes.hidden, sizes.eps), SwiGlu(sizes)
        self.scale_shift_table = nn.Parameter(torch.randn(1, 6, sizes.hidden) / math.sqrt(sizes.hidden))

    def forward(self, x, time, mask, turn, condition, condition_mask):
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = (self.scale_shift_table + time).chunk(6, 1)
        normed = self.self_attn_norm(x) * (1 + scale) + shift
        x = x + self.self_attn(normed, mask, turn) * gate
        x = x + self.cross_attn(self.cross_attn_norm(x), condition_mask, other=condition)
        normed = self.mlp_norm(x) * (1 + scale_mlp) + shift_mlp
        return x + self.mlp(normed) * gate_mlp


class Dit(nn.Module):
    def __init__(self, sizes, layers, condition_size, patch=2):
        super().__init__()
        self.sizes, self.patch = sizes, patch
        self.proj_in_conv = nn.Conv1d(3 * LATENT, sizes.hidden, patch, stride=patch)
        self.time_embed, self.time_embed_r = TimeEmbedding(sizes.hidden), TimeEmbedding(sizes.hidden)
        self.condition_embedder = nn.Linear(condition_size, sizes.hidden)
        self.layers = nn.ModuleList(DitLayer(sizes) for _ in range(layers))
        self.norm_out = Norm(sizes.hidden, sizes.eps)
        self.scale_shift_table = nn.Parameter(torch.randn(1, 2, sizes.hidden) / math.sqrt(sizes.hidden))
        self.proj_out_conv = nn.ConvTranspose1d(sizes.hidden, LATENT, patch, stride=patch)

    def patch_in(self, frames):
        """A convolution whose kernel is its stride, as a product."""
        batch, count, channels = frames.shape
        frames = F.pad(frames, (0, 0, 0, -count % self.patch))
        weight = self.proj_in_conv.weight.transpose(1, 2).flatten(1)
        return F.linear(frames.reshape(batch, -1, self.patch * channels), weight, self.proj_in_conv.bias)

    def patch_out(self, x, count):
        weight = self.proj_out_conv.weight.permute(2, 1, 0).flatten(0, 1)
        frames = F.linear(x, weight, self.proj_out_conv.bias.repeat(self.patch))
        return frames.reshape(len(x), -1, LATENT)[:, :count]

    def forward(self, context, noisy, t, condition, present=None):
        """The velocity [batch, frames, 64] of `noisy` at times t [batch]. `present` tells rows of the condition from
        padding."""
        time = self.time_embed(t), self.time_embed_r(torch.zeros_like(t))
        embedding, rows = (a + b for a, b in zip(*time))
        x = self.patch_in(torch.cat([context, noisy], -1))
        condition = self.condition_embedder(condition)
        condition_mask = None if present is None else allowed(present)[:, None, None]
        turn = rotary(x.shape[1], self.sizes, x.device)
        window = sliding(x.shape[1], self.sizes.window, x.device)
        for i, layer in enumerate(self.layers):
            x = layer(x, rows, window if i % 2 == 0 else None, turn, condition, condition_mask)
        shift, scale = (self.scale_shift_table + embedding.unsqueeze(1)).chunk(2, 1)
        return self.patch_out(self.norm_out(x) * (1 + scale) + shift, noisy.shape[1])


def context_of(source):
    """What text-to-music hands in beside the noise: latents of silence and a mask of ones."""
    return torch.cat([source, torch.ones_like(source)], -1)
