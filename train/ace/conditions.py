"""Text and condition encoders (huggingface/diffusers, src/diffusers/pipelines/ace_step/modeling_ace_step.py;
huggingface/transformers, src/transformers/models/qwen3)."""

import torch
from torch import nn

from ace.blocks import EncoderStack
from hybrid import Rows


class TextEncoder(EncoderStack):
    """Qwen3 without its head. The rotary frequencies are bf16's, as in what is released (music/checkpoint.cpp)."""

    def __init__(self, sizes, layers, vocabulary):
        super().__init__(sizes, layers, causal=True, bf16_frequencies=True)
        self.embed_tokens = nn.Embedding(vocabulary, sizes.hidden)

    def rows(self, ids):
        """Of the embedding table."""
        return Rows.apply(ids, self.embed_tokens.weight)

    def forward(self, ids):
        """Padding on the right is never seen."""
        return self.run(self.rows(ids))


class CausalLm(EncoderStack):
    """Qwen3 with the head that its embedding is; rotary frequencies as they are computed."""

    def __init__(self, sizes, layers, vocabulary):
        super().__init__(sizes, layers, causal=True)
        self.embed_tokens = nn.Embedding(vocabulary, sizes.hidden)

    def hidden(self, ids):
        return self.run(Rows.apply(ids, self.embed_tokens.weight))

    def logits(self, hidden):
        return hidden @ self.embed_tokens.weight.T


class ConditionStack(EncoderStack):
    """The lyric encoder or the timbre encoder."""

    def __init__(self, sizes, layers, width, special):
        super().__init__(sizes, layers)
        self.embed_tokens = nn.Linear(width, sizes.hidden)
        if special:  # in every checkpoint, read by nobody
            self.special_token = nn.Parameter(torch.zeros(1, 1, sizes.hidden))

    def forward(self, x, present=None):
        return self.run(self.embed_tokens(x), present)


class ConditionEncoder(nn.Module):
    def __init__(self, sizes, lyric_layers, timbre_layers, text_width, latent_width=64):
        super().__init__()
        self.text_projector = nn.Linear(text_width, sizes.hidden, bias=False)
        self.lyric_encoder = ConditionStack(sizes, lyric_layers, text_width, special=False)
        self.timbre_encoder = ConditionStack(sizes, timbre_layers, latent_width, special=True)
        self.null_condition_emb = nn.Parameter(torch.zeros(1, 1, sizes.hidden))

    def forward(self, text, lyrics, timbre, text_present=None, lyrics_present=None):
        """Rows of the condition, lyrics | timbre | text, and which of them are there (None: all).

        text [batch, tokens, width], lyrics alike, timbre [1 or batch, frames, latent width]."""
        batch = len(text)
        voice = self.lyric_encoder(lyrics, lyrics_present)
        colour = self.timbre_encoder(timbre)[:, :1].expand(batch, -1, -1)
        rows = torch.cat([voice, colour, self.text_projector(text)], 1)
        if text_present is None and lyrics_present is None:
            return rows, None
        one = torch.ones(batch, 1, dtype=torch.bool, device=rows.device)
        present = [lyrics_present, one, text_present]
        sizes = [voice.shape[1], 1, text.shape[1]]
        present = [one.expand(-1, n) if p is None else p for p, n in zip(present, sizes)]
        return rows, torch.cat(present, 1)
