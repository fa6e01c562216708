"""Writes a Kev run as GGUF, laid out as llama.cpp's converter does it.

usage: python3 make_gguf.py RUN OUT.gguf [--type f32|f16|bf16|q8_0]

RUN is a run directory (adapter_config.json, adapter_model.safetensors, head.pt, tokenizer.json) whose base lies
where head.pt says, relative to it. The adapter is merged in fp32, then each tensor is stored in the type. Needs
Python 3.9 and nothing else; takes some seconds for the fixtures and is meant for them, not for real models.

The layout is that of ggml-org/llama.cpp: conversion/base.py (which tensors stay F32, the vocabulary),
conversion/qwen.py (Qwen3NextModel, _LinearAttentionVReorderBase, Qwen3_5TextModel, Qwen3Model), conversion/lev.py
(KevModel: the head and its metadata) and gguf-py/gguf (names, container). formats/gguf_model.cpp undoes each step.
The chat template that llama.cpp renders prompts with is left out: Assay lays its rows out itself.
"""

import argparse
import array
import json
import math
import struct
from pathlib import Path

import kev_files

ALIGNMENT = 32
VALUE_TYPES = {"u32": (4, "<I"), "f32": (6, "<f"), "i32": (5, "<i"), "string": (8, None)}
GGML_TYPES = {"f32": 0, "f16": 1, "q8_0": 8, "bf16": 30}
FILE_TYPES = {"f32": 0, "f16": 1, "q8_0": 7, "bf16": 32}  # include/llama.h, llama_ftype
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5  # include/llama.h, llama_token_type

LAYER_NAMES = {
    "input_layernorm.weight": "attn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "linear_attn.in_proj_qkv.weight": "attn_qkv.weight",
    "linear_attn.in_proj_z.weight": "attn_gate.weight",
    "linear_attn.in_proj_b.weight": "ssm_beta.weight",
    "linear_attn.in_proj_a.weight": "ssm_alpha.weight",
    "linear_attn.conv1d.weight": "ssm_conv1d.weight",
    "linear_attn.dt_bias": "ssm_dt.bias",
    "linear_attn.A_log": "ssm_a",
    "linear_attn.norm.weight": "ssm_norm.weight",
    "linear_attn.out_proj.weight": "ssm_out.weight",
}
POST_ATTENTION_NORM = {"qwen3": "ffn_norm.weight", "qwen35": "post_attention_norm.weight"}


def gguf_name(name, arch):
    if name == "embed_tokens.weight":
        return "token_embd.weight"
    if name == "norm.weight":
        return "output_norm.weight"
    _, layer, rest = name.split(".", 2)
    if rest == "post_attention_layernorm.weight":
        return f"blk.{layer}.{POST_ATTENTION_NORM[arch]}"
    return f"blk.{layer}.{LAYER_NAMES[rest]}"


def tiled(values, first, key_heads, per_key_head, size):
    """Value heads from grouped by key head to the first of every key head, the second of every one, ...; `size`
    elements a head, beginning at `first`."""
    out = values[:first]
    for j in range(per_key_head):
        for group in range(key_heads):
            begin = first + (group * per_key_head + j) * size
            out.extend(values[begin : begin + size])
    return out


def converted_qwen35(name, shape, values, config):
    """What the converter makes of one tensor: (shape, values)."""
    key_heads, value_heads = config["linear_num_key_heads"], config["linear_num_value_heads"]
    value_dim = config["linear_value_head_dim"]
    heads = (key_heads, value_heads // key_heads)
    before_values = 2 * key_heads * config["linear_key_head_dim"]
    part = name.rpartition("linear_attn.")[2] if "linear_attn." in name else ""
    if part in ("in_proj_qkv.weight", "conv1d.weight"):
        width = len(values) // shape[0]
        values = tiled(values, before_values * width, *heads, value_dim * width)
    elif part in ("in_proj_z.weight", "in_proj_a.weight", "in_proj_b.weight", "A_log", "dt_bias"):
        values = tiled(values, 0, *heads, len(values) // value_heads)
    elif part == "out_proj.weight":
        width = shape[1]
        rows = (values[i : i + width] for i in range(0, len(values), width))
        values = array.array("f", b"".join(tiled(row, 0, *heads, value_dim).tobytes() for row in rows))
    if part == "A_log":
        values = array.array("f", [-math.exp(x) for x in values])
    elif part == "conv1d.weight":
        shape = [shape[0], shape[2]]
    elif name.endswith("norm.weight") and not part:
        values = array.array("f", [x + 1 for x in values])
    return shape, values


def stored_type(name, shape, wanted):
    if len(shape) <= 1 or name.endswith("_norm.weight") or "ssm_conv1d" in name:
        return "f32"
    return "f16" if wanted == "q8_0" and shape[-1] % 32 else wanted


def tensors(run, base, config, head, arch, wanted):
    """(name, shape, type, bytes) of every tensor of the file."""
    encode = {"f32": lambda v: v.tobytes(), "f16": kev_files.as_f16, "bf16": kev_files.as_bf16,
              "q8_0": kev_files.as_q8_0}
    for name, shape, values in kev_files.merged_weights(run, base):
        if arch == "qwen35":
            shape, values = converted_qwen35(name, shape, values, config)
        name = gguf_name(name, arch)
        kind = stored_type(name, shape, wanted)
        yield name, shape, kind, encode[kind](values)
    # The pointer head's projections, one over the other: a token's output is [query | key].
    parts = head["head"]
    for suffix in ("weight", "bias"):
        q, k = parts[f"q.{suffix}"], parts[f"k.{suffix}"]
        shape = [q.shape[0] + k.shape[0], *q.shape[1:]]
        kind = stored_type(f"cls.output.{suffix}", shape, wanted)
        yield f"cls.output.{suffix}", shape, kind, encode[kind](array.array("f", q.data + k.data))


def model_metadata(config, arch, wanted, head):
    rope = config["rope_parameters"]
    head_dim = config["head_dim"]
    yield "general.architecture", "string", arch
    yield "general.type", "string", "model"
    yield "general.file_type", "u32", FILE_TYPES[wanted]
    yield "general.quantization_version", "u32", 2
    for key, value in {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
    }.items():
        yield f"{arch}.{key}", "u32", value
    yield f"{arch}.rope.freq_base", "f32", rope["rope_theta"]
    yield f"{arch}.attention.layer_norm_rms_epsilon", "f32", config["rms_norm_eps"]
    if arch == "qwen35":
        yield f"{arch}.rope.dimension_sections", ["i32"], [*rope["mrope_section"], 0]
        yield f"{arch}.rope.dimension_count", "u32", int(head_dim * rope["partial_rotary_factor"])
        yield f"{arch}.ssm.conv_kernel", "u32", config["linear_conv_kernel_dim"]
        yield f"{arch}.ssm.state_size", "u32", config["linear_key_head_dim"]
        yield f"{arch}.ssm.group_count", "u32", config["linear_num_key_heads"]
        yield f"{arch}.ssm.time_step_rank", "u32", config["linear_num_value_heads"]
        inner_size = config["linear_value_head_dim"] * config["linear_num_value_heads"]
        yield f"{arch}.ssm.inner_size", "u32", inner_size
        yield f"{arch}.full_attention_interval", "u32", config["layer_types"].index("full_attention") + 1
    yield f"{arch}.embedding_length_out", "u32", 2 * head["head_dim"]
    yield f"{arch}.decision.type", "string", "kev"
    for question in ("choice", "score", "noul"):
        yield f"{arch}.decision.temperature.{question}", "f32", head["temperature"]


def tokenizer_metadata(tokenizer, vocabulary_size):
    model, added = tokenizer["model"], {token["id"]: token for token in tokenizer["added_tokens"]}
    by_id = {token_id: text for text, token_id in model["vocab"].items()}
    texts, types = [], []
    for token_id in range(vocabulary_size):
        if token_id in added:
            texts.append(added[token_id]["content"])
            types.append(CONTROL if added[token_id]["special"] else USER_DEFINED)
        else:
            texts.append(by_id.get(token_id, f"[PAD{token_id}]"))
            types.append(NORMAL if token_id in by_id else UNUSED)
    pattern = next(step["pattern"]["Regex"] for step in tokenizer["pre_tokenizer"]["pretokenizers"] if "pattern" in step)
    yield "tokenizer.ggml.model", "string", "gpt2"
    yield "tokenizer.ggml.pre", "string", "qwen35" if r"\p{M}" in pattern else "qwen2"
    yield "tokenizer.ggml.tokens", ["string"], texts
    yield "tokenizer.ggml.token_type", ["i32"], types
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    yield "tokenizer.ggml.merges", ["string"], merges


def packed_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def packed_value(kind, value):
    if isinstance(kind, list):
        element, layout = VALUE_TYPES[kind[0]]
        items = map(packed_string, value) if layout is None else (struct.pack(layout, item) for item in value)
        return struct.pack("<IIQ", 9, element, len(value)) + b"".join(items)
    number, layout = VALUE_TYPES[kind]
    return struct.pack("<I", number) + (packed_string(value) if layout is None else struct.pack(layout, value))


def padding(size):
    return b"\0" * (-size % ALIGNMENT)


def write_gguf(path, metadata, entries):
    """Container, version 3: ggml-org/ggml, docs/gguf.md."""
    header = [b"GGUF", struct.pack("<IQQ", 3, len(entries), len(metadata))]
    header += [packed_string(key) + packed_value(kind, value) for key, kind, value in metadata]
    offset = 0
    for name, shape, kind, data in entries:
        dimensions = struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        header.append(packed_string(name) + dimensions + struct.pack("<IQ", GGML_TYPES[kind], offset))
        offset += len(data) + len(padding(len(data)))
    head = b"".join(header)
    partial = path.with_name(path.name + ".partial")
    with open(partial, "wb") as file:
        file.write(head + padding(len(head)))
        for _, _, _, data in entries:
            file.write(data + padding(len(data)))
    partial.replace(path)


def main():
    parser = argparse.ArgumentParser(description="Writes a Kev run as GGUF, laid out as llama.cpp's converter does.")
    parser.add_argument("run", type=Path, help="the run directory")
    parser.add_argument("out", type=Path, help="the file to write")
    parser.add_argument("--type", choices=sorted(GGML_TYPES), default="f32", help="of the matrices (default: f32)")
    arguments = parser.parse_args()
    head = kev_files.read_head(arguments.run / "head.pt")
    base = kev_files.base_directory(arguments.run, head)
    config = json.loads((base / "config.json").read_text())
    arch = {"qwen3": "qwen3", "qwen3_5_text": "qwen35"}[config["model_type"]]
    tokenizer = json.loads((arguments.run / "tokenizer.json").read_text(encoding="utf-8"))
    metadata = [*model_metadata(config, arch, arguments.type, head),
                *tokenizer_metadata(tokenizer, config["vocab_size"])]
    write_gguf(arguments.out, metadata, list(tensors(arguments.run, base, config, head, arch, arguments.type)))


if __name__ == "__main__":
    main()
