"""A model's first idea of words: vectors of how they are used (decide_data/vectors.py), told to tokens.

Most words of a small vocabulary are several tokens. Every token gets a vector such that the tokens of a word add up to the
word's own, as near as least squares bring it, usual words first: the idea of fastText (arXiv 1607.04606) with a
tokenizer's pieces for n-grams. A token that is a word by itself has nearly its vector."""

import torch
import torch.nn.functional as F
from torch import nn

from captured_steps import DEVICE, say
from decide_data.vectors import vectors

KNOWN = 0.3  # length of a vector from which on a token counts as known


def spellings(words):
    for form in (str, str.capitalize):
        for before in (" ", ""):
            yield [before + form(word) for word in words]


def token_vectors(tokenizer, steps=300, ridge=0.02):
    """[vocabulary, 100] for a fast tokenizer of transformers."""
    table = vectors()
    wanted = torch.from_numpy(table.vectors).to(DEVICE).float()
    wanted = F.normalize(wanted, dim=1)
    usual = (1 / (torch.arange(len(wanted), device=DEVICE) + 300.0)).repeat(4)
    ids, rows = [], []
    for texts in spellings(table.words):
        for encoded in tokenizer.backend_tokenizer.encode_batch(texts, add_special_tokens=False):
            rows += [len(ids)] * len(encoded.ids)
            ids.append(encoded.ids)
    tokens = torch.tensor([token for word in ids for token in word], device=DEVICE)
    rows, wanted = torch.tensor(rows, device=DEVICE), wanted.repeat(4, 1)
    found = torch.zeros(len(tokenizer), wanted.shape[1], device=DEVICE, requires_grad=True)
    optimizer = torch.optim.Adam([found], lr=0.05)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.05 * (1 - step / steps)
        made = torch.zeros_like(wanted).index_add_(0, rows, found[tokens])
        error = (usual * (made - wanted).square().sum(1)).sum() / usual.sum()
        optimizer.zero_grad()
        (error + ridge * found.square().sum() / len(found)).backward()
        optimizer.step()
    say(f"vectors of tokens: {error.item():.3f} of the words' is left, {int((found.norm(dim=1) > KNOWN).sum())} of {len(found)} tokens are known")
    return found.detach()


class KnownEmbedding(nn.Module):
    """Rows that are a map of the tokens' vectors, one map for all, and what each token adds: words that no question asks about
    move along with those that are asked about. What a known token adds is learned slowly."""

    def __init__(self, known, hidden, std=0.02):
        super().__init__()
        self.register_buffer("known", known)
        self.register_buffer("pace", torch.where(known.norm(dim=1, keepdim=True) > KNOWN, 0.3, 1.0))
        self.map, self.own = nn.Parameter(torch.empty(known.shape[1], hidden)), nn.Parameter(torch.randn(len(known), hidden) * std)
        nn.init.orthogonal_(self.map, std * hidden**0.5)

    @property
    def weight(self):
        with torch.autocast(self.own.device.type, enabled=False):
            return self.known @ self.map + self.pace * self.own

    def plain(self):
        """The same as an embedding's single table."""
        return nn.Embedding.from_pretrained(self.weight.detach().clone(), freeze=False)
