"""Audio codes, five a second: tokenizer and detokenizer around a finite scalar quantizer (huggingface/diffusers,
src/diffusers/pipelines/ace_step/modeling_ace_step.py)."""

import torch
from torch import nn

from ace.blocks import EncoderStack

POOL = 5
LEVELS = (8, 8, 8, 5, 5, 5)  # the authors': 64,000 codes


class Quantizer(nn.Module):
    """arXiv 2309.15505: every dimension squashed and rounded to one of its levels in [-1, 1]."""

    def __init__(self, width, levels):
        super().__init__()
        self.levels = levels
        self.project_in, self.project_out = nn.Linear(width, len(levels)), nn.Linear(len(levels), width)

    def scaled(self, x):
        """[..., levels]: where between the levels, from 0 to the steps that there are; and these."""
        steps = torch.tensor(self.levels, device=x.device, dtype=torch.float32) - 1
        bound = 1 + 1 / steps
        squashed = (torch.tanh(self.project_in(x) / bound) * bound).clamp(-1, 1)
        return steps * (squashed + 1) / 2, steps

    def digits(self, x):
        """[..., levels]: which level, by rounding that passes gradients on as if it did not round."""
        scaled, steps = self.scaled(x)
        return scaled + (torch.floor(scaled + 0.5) - scaled).detach(), steps

    def forward(self, x):
        digits, steps = self.digits(x)
        return self.project_out(digits * 2 / steps - 1)

    def codes(self, x):
        digits, basis, code = self.digits(x)[0].round().long(), 1, 0
        for i, level in enumerate(self.levels):
            code, basis = code + digits[..., i] * basis, basis * level
        return code

    def embed(self, codes):
        places = []
        for level in self.levels:
            places.append((codes % level).float() * (2 / (level - 1)) - 1)
            codes = torch.div(codes, level, rounding_mode="floor")
        return self.project_out(torch.stack(places, -1))


class Pooler(EncoderStack):
    def __init__(self, sizes, layers):
        super().__init__(sizes, layers)
        self.embed_tokens = nn.Linear(sizes.hidden, sizes.hidden)
        self.special_token = nn.Parameter(torch.randn(1, 1, sizes.hidden) * 0.02)

    def forward(self, x):
        """[windows, POOL, hidden] -> [windows, hidden]: what stands at the special token."""
        x = torch.cat([self.special_token.expand(len(x), -1, -1), self.embed_tokens(x)], 1)
        return self.run(x)[:, 0]


class AudioTokenizer(nn.Module):
    def __init__(self, sizes, layers, levels=LEVELS, latent_width=64):
        super().__init__()
        self.audio_acoustic_proj = nn.Linear(latent_width, sizes.hidden)
        self.attention_pooler = Pooler(sizes, layers)
        self.quantizer = Quantizer(sizes.hidden, levels)

    def pooled(self, latents):
        """[windows, POOL, 64] -> [windows, hidden], before it is quantized."""
        return self.attention_pooler(self.audio_acoustic_proj(latents))


class AudioDetokenizer(EncoderStack):
    def __init__(self, sizes, layers, latent_width=64):
        super().__init__(sizes, layers)
        self.embed_tokens = nn.Linear(sizes.hidden, sizes.hidden)
        self.special_tokens = nn.Parameter(torch.randn(1, POOL, sizes.hidden) * 0.02)
        self.proj_out = nn.Linear(sizes.hidden, latent_width)

    def forward(self, codes):
        """[windows, hidden] -> [windows, POOL, 64]."""
        return self.proj_out(self.run(self.embed_tokens(codes).unsqueeze(1) + self.special_tokens))
