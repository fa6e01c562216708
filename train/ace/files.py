"""A checkpoint in the diffusers layout: configurations, tensors in bf16, and reading both back."""

import json
import struct
from pathlib import Path

import torch

from ace.audio_tokens import POOL, AudioDetokenizer, AudioTokenizer
from ace.blocks import Sizes
from ace.conditions import CausalLm, ConditionEncoder, TextEncoder
from ace.dit import Dit
from ace.vae import Vae

TYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16, "I32": torch.int32, "I64": torch.int64}
TIMBRE = 750  # frames of silence that stand in for a reference: half a minute, as in the authors' pipeline
DIFFUSERS = "diffusion_pytorch_model.safetensors"
VERSION = {"_diffusers_version": "0.40.0.dev0"}
# transformers' names of what diffusers calls otherwise.
QWEN = [(".self_attn.to_q.", ".self_attn.q_proj."), (".self_attn.to_k.", ".self_attn.k_proj."),
        (".self_attn.to_v.", ".self_attn.v_proj."), (".self_attn.to_out.0.", ".self_attn.o_proj."),
        (".self_attn.norm_q.", ".self_attn.q_norm."), (".self_attn.norm_k.", ".self_attn.k_norm.")]  # fmt: skip


def read_tensors(file):
    """{name: tensor} of a safetensors file, as stored."""
    raw = bytearray(Path(file).read_bytes())
    (size,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + at for at in entry["data_offsets"])
        kind = TYPES[entry["dtype"]]
        flat = torch.frombuffer(raw, dtype=torch.uint8, offset=begin, count=end - begin) if end > begin else torch.empty(0)
        tensors[name] = flat.clone().view(kind).reshape(entry["shape"])
    return tensors


def write_tensors(file, tensors):
    """In bf16; names in order."""
    write_exactly(file, {name: tensors[name].detach().to("cpu", torch.bfloat16) for name in sorted(tensors)})


def write_exactly(file, tensors, **metadata):
    """As they are, in the order given."""
    names = {kind: name for name, kind in TYPES.items()}
    header, parts, at = {"__metadata__": {"format": "pt", **metadata}}, [], 0
    for name, tensor in tensors.items():
        # numpy has no bf16: the same bits as bytes.
        data = tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    Path(file).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def renamed(tensors, pairs):
    def name_of(name):
        for old, new in pairs:
            name = name.replace(old, new)
        return name

    return {name_of(name): tensor for name, tensor in tensors.items()}


class Ace(torch.nn.Module):
    """All parts of a model. `silence` is [1, frames, 64]."""

    def __init__(self, text, condition, dit, tokenizer, detokenizer, vae, silence):
        super().__init__()
        self.text_encoder, self.condition_encoder, self.transformer = text, condition, dit
        self.audio_tokenizer, self.audio_token_detokenizer, self.vae = tokenizer, detokenizer, vae
        self.register_buffer("silence", silence)

    def condition(self, text_ids, lyric_ids, text_present=None, lyric_present=None):
        text = self.text_encoder(text_ids)
        lyrics = self.text_encoder.rows(lyric_ids)
        return self.condition_encoder(text, lyrics, self.silence[:, :TIMBRE], text_present, lyric_present)

    def hints(self, codes):
        """Latents [songs, frames, 64] that audio codes [songs, codes] tell."""
        embedded = self.audio_tokenizer.quantizer.embed(codes)
        return self.audio_token_detokenizer(embedded.flatten(0, 1)).reshape(len(codes), -1, 64)

    def silence_of(self, frames):
        """Repeated where a song is longer."""
        repeats = -(-frames // self.silence.shape[1])
        return self.silence.repeat(1, repeats, 1)[:, :frames]


def load(directory):
    directory = Path(directory)

    def config(part):
        return json.loads((directory / part / "config.json").read_text())

    text, condition, dit = config("text_encoder"), config("condition_encoder"), config("transformer")
    tokens, back, vae = config("audio_tokenizer"), config("audio_token_detokenizer"), config("vae")
    model = Ace(
        TextEncoder(Sizes.read(text), text["num_hidden_layers"], text["vocab_size"]),
        ConditionEncoder(Sizes.read(condition), condition["num_lyric_encoder_hidden_layers"],
                         condition["num_timbre_encoder_hidden_layers"], condition["text_hidden_dim"]),
        Dit(Sizes.read(dit), dit["num_hidden_layers"], condition["hidden_size"], dit["patch_size"]),
        AudioTokenizer(Sizes.read(tokens), tokens["num_attention_pooler_hidden_layers"], tokens["fsq_input_levels"]),
        AudioDetokenizer(Sizes.read(back), back["num_attention_pooler_hidden_layers"]),
        Vae(vae["channel_multiples"], vae["decoder_channels"]),
        torch.zeros(1, 1, 64),
    )  # fmt: skip
    for part in ("condition_encoder", "transformer", "audio_tokenizer", "audio_token_detokenizer", "vae"):
        tensors = read_tensors(directory / part / DIFFUSERS)
        if part == "condition_encoder":
            model.silence = tensors.pop("silence_latent").float()
        getattr(model, part).load_state_dict({k: v.float() for k, v in tensors.items()})
    tensors = renamed(read_tensors(directory / "text_encoder/model.safetensors"), [(b, a) for a, b in QWEN])
    model.text_encoder.load_state_dict({k: v.float() for k, v in tensors.items()})
    return model.eval()


def load_planner(directory):
    directory = Path(directory)
    config = json.loads((directory / "config.json").read_text())
    model = CausalLm(Sizes.read(config), config["num_hidden_layers"], config["vocab_size"])
    tensors = renamed(read_tensors(directory / "model.safetensors"), [("model.", ""), *((b, a) for a, b in QWEN)])
    model.load_state_dict({k: v.float() for k, v in tensors.items()})
    return model.eval()


def qwen_configuration(model, architecture):
    """config.json of a text encoder or a language model."""
    fields = model.sizes.fields()
    rope = {"rope_theta": fields.pop("rope_theta"), "rope_type": "default"}
    return {**fields, "architectures": [architecture], "model_type": "qwen3", "hidden_act": "silu", "dtype": "bfloat16",
            "num_hidden_layers": len(model.layers), "rope_parameters": rope,
            "vocab_size": model.embed_tokens.num_embeddings, "tie_word_embeddings": True,
            "layer_types": ["full_attention"] * len(model.layers), "max_position_embeddings": 32768,
            "max_window_layers": 28, "use_sliding_window": False, "sliding_window": None, "use_cache": True,
            "initializer_range": 0.02, "transformers_version": "5.17.0"}  # fmt: skip


def configurations(model):
    """{part: config.json}."""
    text, condition, dit = model.text_encoder, model.condition_encoder, model.transformer
    pool = {"audio_acoustic_hidden_dim": 64, "pool_window_size": POOL, "layer_types": None}
    tokens, back = model.audio_tokenizer.attention_pooler, model.audio_token_detokenizer
    return {
        "text_encoder": qwen_configuration(text, "Qwen3Model"),
        "condition_encoder": {**condition.lyric_encoder.sizes.fields(), "_class_name": "AceStepConditionEncoder",
                              "num_lyric_encoder_hidden_layers": len(condition.lyric_encoder.layers),
                              "num_timbre_encoder_hidden_layers": len(condition.timbre_encoder.layers),
                              "text_hidden_dim": text.sizes.hidden, "timbre_hidden_dim": 64, "layer_types": None},
        "transformer": {**dit.sizes.fields(), "_class_name": "AceStepTransformer1DModel", "is_turbo": True,
                        "audio_acoustic_hidden_dim": 64, "in_channels": 192, "patch_size": dit.patch,
                        "encoder_hidden_size": condition.lyric_encoder.sizes.hidden, "layer_types": None,
                        "model_version": "turbo", "num_hidden_layers": len(dit.layers)},
        "audio_tokenizer": {**tokens.sizes.fields(), **pool, "_class_name": "AceStepAudioTokenizer",
                            "fsq_dim": tokens.sizes.hidden, "fsq_input_levels": list(model.audio_tokenizer.quantizer.levels),
                            "fsq_input_num_quantizers": 1, "num_attention_pooler_hidden_layers": len(tokens.layers)},
        "audio_token_detokenizer": {**back.sizes.fields(), **pool, "_class_name": "AceStepAudioTokenDetokenizer",
                                    "num_attention_pooler_hidden_layers": len(back.layers)},
        "vae": model.vae.fields(),
    }  # fmt: skip


def write_json(file, value):
    file.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def save_planner(model, directory, tokenizer_json):
    """A causal language model in transformers' layout, as acestep-5Hz-lm has it."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    write_json(directory / "config.json", qwen_configuration(model, "Qwen3ForCausalLM"))
    write_json(directory / "generation_config.json",
               {"_from_model_config": True, "transformers_version": "5.17.0", "use_cache": True})  # fmt: skip
    write_json(directory / "tokenizer_config.json",
               {"backend": "tokenizers", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>",
                "model_max_length": 32768, "tokenizer_class": "TokenizersBackend"})  # fmt: skip
    (directory / "tokenizer.json").write_text(tokenizer_json)
    tensors = renamed(model.state_dict(), QWEN)
    write_tensors(directory / "model.safetensors", {f"model.{name}": tensor for name, tensor in tensors.items()})


def save(model, directory, tokenizer_json):
    """`tokenizer_json` is the text of tokenizer.json."""
    directory = Path(directory)
    index = {"_class_name": "AceStepPipeline", **VERSION, "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
             "text_encoder": ["transformers", "Qwen3Model"], "tokenizer": ["transformers", "TokenizersBackend"],
             "transformer": ["diffusers", "AceStepTransformer1DModel"], "vae": ["diffusers", "AutoencoderOobleck"],
             "condition_encoder": ["ace_step", "AceStepConditionEncoder"],
             "audio_tokenizer": ["ace_step", "AceStepAudioTokenizer"],
             "audio_token_detokenizer": ["ace_step", "AceStepAudioTokenDetokenizer"]}  # fmt: skip
    for part in ("scheduler", "tokenizer"):
        (directory / part).mkdir(parents=True, exist_ok=True)
    write_json(directory / "model_index.json", index)
    write_json(directory / "scheduler/scheduler_config.json",
               {"_class_name": "FlowMatchEulerDiscreteScheduler", **VERSION, "num_train_timesteps": 1, "shift": 1.0})  # fmt: skip
    (directory / "tokenizer/tokenizer.json").write_text(tokenizer_json)
    write_json(directory / "tokenizer/tokenizer_config.json",
               {"backend": "tokenizers", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>",
                "model_max_length": 32768, "tokenizer_class": "TokenizersBackend"})  # fmt: skip
    for part, config in configurations(model).items():
        folder = directory / part
        folder.mkdir(exist_ok=True)
        write_json(folder / "config.json", {**config, **(VERSION if "_class_name" in config else {})})
        tensors = dict(getattr(model, part).state_dict())
        if part == "text_encoder":
            write_tensors(folder / "model.safetensors", renamed(tensors, QWEN))
            continue
        if part == "condition_encoder":
            tensors["silence_latent"] = model.silence
        write_tensors(folder / DIFFUSERS, tensors)
