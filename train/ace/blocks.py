"""What the transformers of ACE-Step 1.5 are made of (huggingface/diffusers,
src/diffusers/models/transformers/ace_step_transformer.py: AceStepAttention, AceStepMLP)."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Sizes:
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    head_dim: int
    window: int = 128
    theta: float = 1e6
    eps: float = 1e-6

    def fields(self):
        """As a config.json says them."""
        return {"hidden_size": self.hidden, "intermediate_size": self.inner, "num_attention_heads": self.heads,
                "num_key_value_heads": self.kv_heads, "head_dim": self.head_dim, "rope_theta": self.theta,
                "rms_norm_eps": self.eps, "sliding_window": self.window, "attention_bias": False,
                "attention_dropout": 0.0}  # fmt: skip

    @classmethod
    def read(cls, config):
        rope = config.get("rope_parameters", config)
        return cls(config["hidden_size"], config["intermediate_size"], config["num_attention_heads"],
                   config["num_key_value_heads"], config["head_dim"], config.get("sliding_window") or 128,
                   rope["rope_theta"], config["rms_norm_eps"])  # fmt: skip


class Norm(nn.Module):
    """RMSNorm with a direct weight."""

    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        if hasattr(F, "rms_norm"):
            return F.rms_norm(x, x.shape[-1:], self.weight, self.eps)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def rotary(length, sizes, device, bf16_frequencies=False):
    """Cosines and sines [length, head_dim] of the positions."""
    powers = torch.arange(0, sizes.head_dim, 2, device=device, dtype=torch.float32) / sizes.head_dim
    frequencies = 1.0 / sizes.theta**powers
    if bf16_frequencies:
        frequencies = frequencies.to(torch.bfloat16).float()
    angles = torch.outer(torch.arange(length, device=device, dtype=torch.float32), frequencies)
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()


def rotated(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def attend(query, key, value, mask):
    """[batch, heads, length, head_dim]; fewer heads of keys and values are shared in groups. `mask` is added to the
    scores, or None."""
    if key.shape[1] != query.shape[1]:
        repeats = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores + mask
    return torch.softmax(scores, -1) @ value


def allowed(seen):
    """Booleans as what is added to scores. Not minus infinity: a row that sees nothing stays finite."""
    return torch.where(seen, 0.0, -1e9)


def sliding(length, window, device):
    place = torch.arange(length, device=device)
    return allowed((place.unsqueeze(1) - place).abs() <= window)


class Attention(nn.Module):
    """With normed queries and keys: over the sequence itself, with rotary positions, or over another one."""

    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes
        queries, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
        self.to_q = nn.Linear(sizes.hidden, queries, bias=False)
        self.to_k = nn.Linear(sizes.hidden, keys, bias=False)
        self.to_v = nn.Linear(sizes.hidden, keys, bias=False)
        self.to_out = nn.ModuleList([nn.Linear(queries, sizes.hidden, bias=False)])
        self.norm_q, self.norm_k = Norm(sizes.head_dim, sizes.eps), Norm(sizes.head_dim, sizes.eps)

    def heads(self, x):
        return x.view(*x.shape[:2], -1, self.sizes.head_dim)

    def forward(self, x, mask, turn=None, other=None):
        source = x if other is None else other
        query = self.norm_q(self.heads(self.to_q(x))).transpose(1, 2)
        key = self.norm_k(self.heads(self.to_k(source))).transpose(1, 2)
        value = self.heads(self.to_v(source)).transpose(1, 2)
        if turn is not None:
            query, key = rotated(query, *turn), rotated(key, *turn)
        out = attend(query, key, value, mask)
        return self.to_out[0](out.transpose(1, 2).flatten(2))


class SwiGlu(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.gate_proj = nn.Linear(sizes.hidden, sizes.inner, bias=False)
        self.up_proj = nn.Linear(sizes.hidden, sizes.inner, bias=False)
        self.down_proj = nn.Linear(sizes.inner, sizes.hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class EncoderLayer(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.input_layernorm = Norm(sizes.hidden, sizes.eps)
        self.self_attn = Attention(sizes)
        self.post_attention_layernorm = Norm(sizes.hidden, sizes.eps)
        self.mlp = SwiGlu(sizes)

    def forward(self, x, mask, turn):
        x = x + self.self_attn(self.input_layernorm(x), mask, turn)
        return x + self.mlp(self.post_attention_layernorm(x))


class EncoderStack(nn.Module):
    """Qwen3's layers, seeing a window and everything in turn; `causal` ones see what is before them."""

    def __init__(self, sizes, layers, causal=False, bf16_frequencies=False):
        super().__init__()
        self.sizes, self.causal, self.bf16_frequencies = sizes, causal, bf16_frequencies
        self.layers = nn.ModuleList(EncoderLayer(sizes) for _ in range(layers))
        self.norm = Norm(sizes.hidden, sizes.eps)

    def masks(self, length, present, device):
        """For sliding and for full layers. `present` [batch, length] tells tokens from padding, or is None."""
        if self.causal:
            place = torch.arange(length, device=device)
            mask = allowed(place.unsqueeze(1) >= place)
            return mask, mask
        full = None if present is None else allowed(present)[:, None, None]
        window = sliding(length, self.sizes.window, device)
        return (window if full is None else window + full), full

    def run(self, x, present=None):
        masks = self.masks(x.shape[1], present, x.device)
        turn = rotary(x.shape[1], self.sizes, x.device, self.bf16_frequencies)
        for i, layer in enumerate(self.layers):
            x = layer(x, masks[i % 2], turn)
        return self.norm(x)


def initialize(module, layers):
    """Normal weights, those that write to the residual stream smaller with depth."""
    for name, parameter in module.named_parameters():
        if parameter.ndim < 2:
            continue
        deep = name.endswith(("to_out.0.weight", "down_proj.weight"))
        std = 1 / math.sqrt(parameter[0].numel())
        nn.init.normal_(parameter, std=std / math.sqrt(2 * layers) if deep else std)
