"""Writes a diffusers ACE-Step checkpoint in other dresses; each makes the same songs bit for bit.

usage: python3 make_ace_variants.py DIFFUSERS_DIR OUT_DIR

  original  as the authors publish it: acestep-v15-turbo/ (all parts in model.safetensors, silence_latent.pt),
            Qwen3-Embedding-0.6B/ and vae/. The inverse of huggingface/diffusers,
            scripts/convert_ace_step_to_diffusers.py.
  sharded   the diffusers layout with the transformer in two files and an index

Needs Python 3.9 and nothing else. A variant that is there already is replaced.
"""

import argparse
import json
import shutil
import struct
import zipfile
from pathlib import Path

import kev_files

PREFIXES = {"transformer": "decoder.", "condition_encoder": "encoder.", "audio_tokenizer": "tokenizer.",
            "audio_token_detokenizer": "detokenizer."}
RENAMED = [(".to_q.", ".q_proj."), (".to_k.", ".k_proj."), (".to_v.", ".v_proj."), (".to_out.0.", ".o_proj."),
           (".norm_q.", ".q_norm."), (".norm_k.", ".k_norm."), ("proj_in_conv.", "proj_in.1."),
           ("proj_out_conv.", "proj_out.1.")]
WEIGHTS = "diffusion_pytorch_model.safetensors"


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def original_name(part, name):
    if name == "null_condition_emb":
        return name
    for new, old in RENAMED:
        name = name.replace(new, old)
    return PREFIXES[part] + name


def original_config(source):
    config = {key: value for key, value in read_json(source / "transformer/config.json").items()
              if not key.startswith("_") and value is not None}
    condition = read_json(source / "condition_encoder/config.json")
    tokenizer = read_json(source / "audio_tokenizer/config.json")
    for key in ("text_hidden_dim", "timbre_hidden_dim", "num_lyric_encoder_hidden_layers",
                "num_timbre_encoder_hidden_layers"):
        config[key] = condition[key]
    for key in ("fsq_dim", "fsq_input_levels", "fsq_input_num_quantizers", "num_attention_pooler_hidden_layers",
                "pool_window_size"):
        config[key] = tokenizer[key]
    layers = config["num_hidden_layers"]
    config["layer_types"] = ["full_attention" if i % 2 else "sliding_attention" for i in range(layers)]
    return config


def transposed(tensor):
    """[1, frames, width] to [1, width, frames]; elements of two bytes."""
    _, frames, width = tensor.shape
    rows = [tensor.data[2 * width * i : 2 * width * (i + 1)] for i in range(frames)]
    data = b"".join(row[2 * c : 2 * c + 2] for c in range(width) for row in rows)
    return kev_files.Tensor(tensor.dtype, [1, width, frames], data)


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(value):
    return b"J" + struct.pack("<i", value)


def write_torch_tensor(path, tensor):
    """What torch.save writes for one bf16 tensor: opcodes of pickle protocol 2 that call _rebuild_tensor_v2."""
    _, width, frames = tensor.shape
    storage = (b"(" + text("storage") + b"ctorch\nBFloat16Storage\n" + text("0") + text("cpu") + number(width * frames)
               + b"tQ")
    shape = b"(" + number(1) + number(width) + number(frames) + b"t"
    strides = b"(" + number(width * frames) + number(frames) + number(1) + b"t"
    pickled = (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(0) + shape + strides
               + b"\x89ccollections\nOrderedDict\n)RtR.")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("silence_latent/data.pkl", pickled)
        archive.writestr("silence_latent/byteorder", "little")
        archive.writestr("silence_latent/data/0", tensor.data)
        archive.writestr("silence_latent/version", "3\n")


def original(source, out):
    dit = out / "acestep-v15-turbo"
    dit.mkdir(parents=True)
    tensors = {}
    for part in PREFIXES:
        for name, tensor in kev_files.read_safetensors(source / part / WEIGHTS).items():
            if name == "silence_latent":
                write_torch_tensor(dit / "silence_latent.pt", transposed(tensor))
            else:
                tensors[original_name(part, name)] = tensor
    kev_files.write_safetensors(dit / "model.safetensors", tensors)
    (dit / "config.json").write_text(json.dumps(original_config(source), indent=2), encoding="utf-8")
    shutil.copytree(source / "text_encoder", out / "Qwen3-Embedding-0.6B")
    shutil.copyfile(source / "tokenizer/tokenizer.json", out / "Qwen3-Embedding-0.6B/tokenizer.json")
    shutil.copytree(source / "vae", out / "vae")


def sharded(source, out):
    shutil.copytree(source, out)
    folder = out / "transformer"
    tensors = kev_files.read_safetensors(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    names, places = sorted(tensors), {}
    for i in range(2):
        file = f"diffusion_pytorch_model-{i + 1:05d}-of-00002.safetensors"
        part = names[i * len(names) // 2 : (i + 1) * len(names) // 2]
        kev_files.write_safetensors(folder / file, {name: tensors[name] for name in part})
        places.update(dict.fromkeys(part, file))
    (folder / (WEIGHTS + ".index.json")).write_text(json.dumps({"weight_map": places}))


VARIANTS = {"original": original, "sharded": sharded}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, metavar="DIFFUSERS_DIR")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    arguments = parser.parse_args()
    for name, write in VARIANTS.items():
        target = arguments.out / name
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        write(arguments.source, target)


if __name__ == "__main__":
    main()
