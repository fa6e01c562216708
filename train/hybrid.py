"""Qwen3.5's hybrid text model for training: the parameters have transformers' names, the arithmetic is batched.

transformers' own fallback for Gated DeltaNet is not made for training, so this model exists; `train/decide.py` checks it
against transformers' Qwen3_5ForCausalLM (huggingface/transformers, src/transformers/models/qwen3_5) before it trains.
Rows begin at position 0 and may have padding on the right, which a causal model never sees.
"""

import torch
import torch.nn.functional as F
from torch import nn

CHUNK = 32  # tokens a step of the recurrence; lengths are multiples of it


def offset_norm(x, weight, eps):
    return F.rms_norm(x.float(), x.shape[-1:], 1 + weight.float(), eps)


def gated_norm(x, gate, weight, eps):
    return F.rms_norm(x.float(), x.shape[-1:], weight.float(), eps) * F.silu(gate.float())


def gated(x, gate):
    """SwiGLU's product."""
    return F.silu(gate) * x


def short_convolution(mixed, weight, length):
    """silu of a causal convolution over each channel; mixed: [batch, width - 1 + length, channels]."""
    weight = weight.to(mixed.dtype)
    return F.silu(sum(mixed[:, i : i + length] * weight[:, i] for i in range(weight.shape[1])))


class OffsetNorm(nn.Module):
    """RMSNorm with weight 1 + w."""

    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(size)), eps

    def forward(self, x):
        return offset_norm(x, self.weight, self.eps)


class GatedNorm(nn.Module):
    """RMSNorm with a direct weight, times silu of a gate."""

    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x, gate):
        return gated_norm(x, gate, self.weight, self.eps)


def rotated(x, cos, sin):
    """The first values of every head turned by their position; x: [batch, heads, length, head_dim]."""
    size = cos.shape[-1]
    turned, rest = x[..., :size], x[..., size:]
    half = size // 2
    other = torch.cat([-turned[..., half:], turned[..., :half]], -1)
    return torch.cat([turned * cos + other * sin, rest], -1)


class FullAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads, self.size = c.num_attention_heads, c.num_key_value_heads, c.head_dim
        self.q_proj = nn.Linear(c.hidden_size, self.heads * self.size * 2, bias=False)
        self.k_proj = nn.Linear(c.hidden_size, self.kv_heads * self.size, bias=False)
        self.v_proj = nn.Linear(c.hidden_size, self.kv_heads * self.size, bias=False)
        self.o_proj = nn.Linear(self.heads * self.size, c.hidden_size, bias=False)
        self.q_norm, self.k_norm = OffsetNorm(self.size, c.rms_norm_eps), OffsetNorm(self.size, c.rms_norm_eps)

    def look_for_likes(self):
        query = self.q_proj.weight.view(self.heads, 2 * self.size, -1)
        key = self.k_proj.weight.view(self.kv_heads, self.size, -1)
        query[:, : self.size] = key.repeat_interleave(self.heads // self.kv_heads, 0)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        query, gate = self.q_proj(x).view(batch, length, self.heads, 2 * self.size).chunk(2, -1)
        key = self.k_proj(x).view(batch, length, self.kv_heads, self.size)
        value = self.v_proj(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        query = rotated(self.q_norm(query).transpose(1, 2), cos, sin).to(value.dtype)
        key = rotated(self.k_norm(key).transpose(1, 2), cos, sin).to(value.dtype)
        out = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        out = out.transpose(1, 2).reshape(batch, length, -1) * torch.sigmoid(gate.reshape(batch, length, -1))
        return self.o_proj(out)


def unit_lower_inverse(system, blocks):
    """Inverse of unit lower triangular matrices, blocks of it doubled in size until there is one."""
    inverse = torch.eye(system.shape[-1], device=system.device).expand_as(system)
    for corner in blocks:
        inverse = inverse - inverse @ (system * corner) @ inverse
    return inverse


def corners(size, device):
    """For blocks of 1, 2, 4, …: which elements lie below the diagonal in the lower left of each pair of blocks."""
    place = torch.arange(size, device=device)
    found, block = [], 1
    while block < size:
        same_pair = (place.unsqueeze(1) // (2 * block)) == (place // (2 * block))
        lower = (place.unsqueeze(1) // block % 2 == 1) & (place // block % 2 == 0)
        found.append((same_pair & lower).float())
        block *= 2
    return found


def chunk_terms(query, key, value, decay, beta):
    """What the recurrence needs of each chunk: the new values, how they read the state, what stays inside the chunk, how the
    state is read and written, and how much of it is kept. Inside a chunk the updates form a unit lower triangular system
    (arXiv 2412.06464, section 3.3)."""
    batch, heads, length, size = query.shape
    parts = (batch, heads, length // CHUNK, CHUNK)
    query, key, value = (x.float().reshape(*parts, -1) for x in (query, key, value))
    query = query * torch.rsqrt(query.square().sum(-1, keepdim=True) + 1e-6) * size**-0.5
    key = key * torch.rsqrt(key.square().sum(-1, keepdim=True) + 1e-6)
    beta, total = beta.float().reshape(*parts, 1), decay.float().reshape(parts).cumsum(-1)
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=query.device).tril()
    between = (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(~lower, float("-inf")).exp()
    grown = total.exp().unsqueeze(-1)
    system = (key * beta) @ key.transpose(-1, -2) * between
    right = torch.cat([value * beta, key * beta * grown], -1)
    solved = unit_lower_inverse(system, corners(CHUNK, query.device)) @ right
    new, reading = solved.split([value.shape[-1], size], -1)
    inside = query @ key.transpose(-1, -2) * between
    query, writing = query * grown, key * (total[..., -1:] - total).exp().unsqueeze(-1)
    return new, reading, inside, query, writing, total[..., -1].exp()[..., None, None]


def delta_rule(query, key, value, decay, beta):
    """Gated delta rule from a state of zeros, CHUNK tokens at a time, in fp32.

    query, key, value: [batch, heads, length, size]; decay (log) and beta: [batch, heads, length]."""
    batch, heads, length, _ = query.shape
    new, reading, inside, query, writing, kept = chunk_terms(query, key, value, decay, beta)
    state, out = None, []
    for i in range(length // CHUNK):
        update = new[:, :, i] if state is None else new[:, :, i] - reading[:, :, i] @ state
        read = inside[:, :, i] @ update
        out.append(read if state is None else read + query[:, :, i] @ state)
        added = writing[:, :, i].transpose(-1, -2) @ update
        state = added if state is None else state * kept[:, :, i] + added
    return torch.stack(out, 2).reshape(batch, heads, length, -1)


PLAIN = {f.__name__: f for f in (offset_norm, gated_norm, gated, short_convolution, chunk_terms, rotated)}


def fuse(on=True):
    """Each of these as one kernel, or few: most of a step's time is the reading and writing between them."""
    if on:
        from torch import _dynamo

        _dynamo.config.recompile_limit = 32  # with gradients and without, of three and four axes
    for name, plain in PLAIN.items():
        globals()[name] = torch.compile(plain, dynamic=True) if on else plain


class LinearAttention(nn.Module):
    """Gated DeltaNet."""

    def __init__(self, c):
        super().__init__()
        self.key_heads, self.value_heads = c.linear_num_key_heads, c.linear_num_value_heads
        self.key_size, self.value_size = c.linear_key_head_dim, c.linear_value_head_dim
        keys, values = self.key_heads * self.key_size, self.value_heads * self.value_size
        self.sizes = [keys, keys, values]
        channels, self.width = 2 * keys + values, c.linear_conv_kernel_dim
        self.in_proj_qkv = nn.Linear(c.hidden_size, channels, bias=False)
        self.in_proj_z = nn.Linear(c.hidden_size, values, bias=False)
        self.in_proj_b = nn.Linear(c.hidden_size, self.value_heads, bias=False)
        self.in_proj_a = nn.Linear(c.hidden_size, self.value_heads, bias=False)
        self.conv1d = nn.Conv1d(channels, channels, self.width, groups=channels, bias=False)
        self.dt_bias = nn.Parameter(torch.ones(self.value_heads))
        self.A_log = nn.Parameter(torch.log(torch.empty(self.value_heads).uniform_(0.5, 8)))
        self.norm = GatedNorm(self.value_size, c.rms_norm_eps)
        self.out_proj = nn.Linear(values, c.hidden_size, bias=False)

    def look_for_likes(self):
        keys = self.sizes[0]
        self.in_proj_qkv.weight[:keys] = self.in_proj_qkv.weight[keys : 2 * keys]
        taps = self.conv1d.weight[:, 0]
        taps *= 0.2
        taps[:, -1] += 1
        taps[keys : 2 * keys, -2:] += torch.tensor([1.0, -1.0])

    def forward(self, x):
        batch, length, _ = x.shape
        mixed = F.pad(self.in_proj_qkv(x), (0, 0, self.width - 1, 0))
        mixed = short_convolution(mixed, self.conv1d.weight[:, 0], length)
        query, key, value = mixed.split(self.sizes, -1)

        def heads(t, count):
            return t.reshape(batch, length, count, -1).transpose(1, 2)

        repeats = self.value_heads // self.key_heads
        query, key = (heads(t, self.key_heads).repeat_interleave(repeats, 1) for t in (query, key))
        beta = torch.sigmoid(self.in_proj_b(x).float()).transpose(1, 2)
        decay = (-self.A_log.float().exp() * F.softplus(self.in_proj_a(x).float() + self.dt_bias)).transpose(1, 2)
        with torch.autocast(x.device.type, enabled=False):
            out = delta_rule(query, key, heads(value, self.value_heads), decay, beta)
        out = self.norm(out.transpose(1, 2), self.in_proj_z(x).view(batch, length, self.value_heads, -1))
        return self.out_proj(out.reshape(batch, length, -1).to(mixed.dtype))


class SwiGlu(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)
        self.up_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)
        self.down_proj = nn.Linear(c.intermediate_size, c.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(gated(self.up_proj(x), self.gate_proj(x)))


class Layer(nn.Module):
    def __init__(self, c, kind):
        super().__init__()
        if kind == "full_attention":
            self.self_attn = FullAttention(c)
        else:
            self.linear_attn = LinearAttention(c)
        self.full, self.mlp = kind == "full_attention", SwiGlu(c)
        self.input_layernorm = OffsetNorm(c.hidden_size, c.rms_norm_eps)
        self.post_attention_layernorm = OffsetNorm(c.hidden_size, c.rms_norm_eps)

    def forward(self, x, cos, sin):
        normed = self.input_layernorm(x)
        x = x + (self.self_attn(normed, cos, sin) if self.full else self.linear_attn(normed))
        return x + self.mlp(self.post_attention_layernorm(x))


class Rows(torch.autograd.Function):
    """Rows of a table; the gradient is added up without the sorting that a captured graph could not do."""

    @staticmethod
    def forward(context, ids, table):
        context.save_for_backward(ids)
        context.rows = len(table)
        return table[ids]

    @staticmethod
    def backward(context, gradient):
        (ids,) = context.saved_tensors
        table = gradient.new_zeros(context.rows, gradient.shape[-1])
        return None, table.index_add_(0, ids.flatten(), gradient.reshape(-1, gradient.shape[-1]))


class Hybrid(nn.Module):
    """Token ids [batch, length] to hidden states [batch, length, hidden], fp32. `config`: Qwen3_5TextConfig."""

    def __init__(self, config):
        super().__init__()
        self.sizes = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config, kind) for kind in config.layer_types)
        self.norm = OffsetNorm(config.hidden_size, config.rms_norm_eps)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                deep = name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=0.02 / (2 * len(self.layers)) ** 0.5 if deep else 0.02)
        self.recalling()

    @torch.no_grad()
    def recalling(self):
        """Queries begin equal to keys, so that a token looks for its own kind, and in linear attention a key is that of the token
        before: what is asked for again brings back what followed it. From random weights that is found late or never (arXiv
        2305.09828; of recurrent layers, arXiv 2410.11135)."""
        for layer in self.layers:
            if layer.full:
                layer.self_attn.look_for_likes()
            else:
                layer.linear_attn.look_for_likes()

    def angles(self, length, device):
        rope = self.sizes.rope_parameters
        size = int(self.sizes.head_dim * rope["partial_rotary_factor"])
        powers = torch.arange(0, size, 2, device=device, dtype=torch.float32) / size
        angles = torch.outer(torch.arange(length, device=device, dtype=torch.float32), rope["rope_theta"] ** -powers)
        angles = torch.cat([angles, angles], -1)
        return angles.cos(), angles.sin()

    def forward(self, ids, dropout=0.0):
        x = F.dropout(Rows.apply(ids, self.embed_tokens.weight).float(), dropout, self.training)
        cos, sin = self.angles(ids.shape[1], ids.device)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)
