"""Writes variants of a Kev checkpoint, each the same model in another dress.

usage: python3 make_variants.py RUN_DIR OUT_DIR

For every variant OUT_DIR/<variant>/run is a run directory to give as `--model`. Unless said, the weights are bit
for bit the original's, so the answers have to be too:

  language-model-prefix  base tensors named model.language_model.X, beside a vision and a prediction tensor that
                         are to be ignored
  sharded                the base in three files with model.safetensors.index.json
  rslora                 the adapter declared rank-stabilised, its alpha such that alpha/sqrt(r) is the old alpha/r
  fp16                   base weights as fp16; prints how many could not be represented and the largest change
  nested-config          config.json of a multimodal model: the text model's fields under text_config
  hf-cache               head.pt names the base by a Hub id; set HF_HOME=OUT_DIR/hf-cache to find it in hub/

Needs Python 3.9 and nothing else. OUT_DIR is made; a variant that is there already is replaced.
"""

import argparse
import hashlib
import json
import math
import os
import shutil
import struct
import zipfile
from pathlib import Path

import kev_files

HUB_ID = "assay-fixtures/kev-tiny-base"
# As the Hub's commits look; the cache's layout is huggingface/huggingface_hub's, docs/source/en/guides/manage-cache.md.
COMMIT = "0123456789abcdef0123456789abcdef01234567"
MULTIMODAL = {"qwen3": ("qwen3_vl", "Qwen3VLForConditionalGeneration"),
              "qwen3_5_text": ("qwen3_5", "Qwen3_5ForConditionalGeneration")}


def copied(source, target):
    """The directory's files, writable, at a fresh `target`."""
    target.mkdir(parents=True)
    for file in sorted(source.iterdir()):
        shutil.copyfile(file, target / file.name)
    return target


def copied_checkpoint(run, base, out):
    """OUT/run and, where head.pt looks for it, the base. Returns both."""
    head = kev_files.read_head(run / "head.pt")
    new_run = copied(run, out / "run")
    return new_run, copied(base, (new_run / head["base"]).resolve())


def base_tensors(base):
    return kev_files.read_safetensors(base / "model.safetensors")


def edit_json(path, change):
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(change(content) or content, indent=2, ensure_ascii=False), encoding="utf-8")


def with_other_parts(tensors):
    """Text tensors under the multimodal model's prefix, and one tensor each of the parts that are not text."""
    renamed = {name.replace("model.", "model.language_model.", 1): tensor for name, tensor in tensors.items()}
    nothing = kev_files.Tensor("BF16", [2, 2], bytes(8))
    return {**renamed, "model.visual.patch_embed.proj.weight": nothing, "mtp.fc.weight": nothing}


def language_model_prefix(run, base, out):
    _, base = copied_checkpoint(run, base, out)
    kev_files.write_safetensors(base / "model.safetensors", with_other_parts(base_tensors(base)))


def sharded(run, base, out, shards=3):
    _, base = copied_checkpoint(run, base, out)
    tensors = base_tensors(base)
    (base / "model.safetensors").unlink()
    places, names = {}, list(tensors)
    for i in range(shards):
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        part = names[i * len(names) // shards : (i + 1) * len(names) // shards]
        kev_files.write_safetensors(base / file, {name: tensors[name] for name in part})
        places.update(dict.fromkeys(part, file))
    size = sum(len(tensor.data) for tensor in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": places}
    (base / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))


def rslora(run, base, out):
    run, _ = copied_checkpoint(run, base, out)

    def declare(config):
        # alpha' = sqrt(r) * alpha / r: for the fixtures' alpha/r = 2 the product and the quotient are exact.
        config["lora_alpha"] = config["lora_alpha"] / config["r"] * math.sqrt(config["r"])
        config["use_rslora"] = True

    edit_json(run / "adapter_config.json", declare)


def fp16(run, base, out):
    _, base = copied_checkpoint(run, base, out)
    stored, changed, largest = {}, 0, 0.0
    for name, tensor in base_tensors(base).items():
        values = kev_files.numbers(tensor)
        stored[name] = kev_files.Tensor("F16", tensor.shape, kev_files.as_f16(values))
        differences = [abs(a - b) for a, b in zip(values, kev_files.numbers(stored[name])) if a != b]
        changed += len(differences)
        largest = max([largest, *differences])
    kev_files.write_safetensors(base / "model.safetensors", stored)
    edit_json(base / "config.json", lambda config: config.update(dtype="float16"))
    print(f"fp16: {changed} values below fp16's smallest exact ones changed, by at most {largest:.2g}")


def nested_config(run, base, out):
    _, base = copied_checkpoint(run, base, out)

    def nest(text):
        model_type, architecture = MULTIMODAL[text["model_type"]]
        return {"architectures": [architecture], "model_type": model_type, "text_config": text,
                "vision_config": {"model_type": model_type, "depth": 1, "hidden_size": 2},
                "tie_word_embeddings": text["tie_word_embeddings"]}

    edit_json(base / "config.json", nest)
    kev_files.write_safetensors(base / "model.safetensors", with_other_parts(base_tensors(base)))


def pickled_text(text):
    """Protocol 2's opcode for a text: BINUNICODE."""
    return b"X" + struct.pack("<I", len(text.encode())) + text.encode()


def name_base_by_hub_id(head_file, old):
    """Rewrites head.pt with another `base`; the pickle's only text that equals the old one."""
    with zipfile.ZipFile(head_file) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(head_file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members:
            if name.endswith("/data.pkl"):
                if data.count(pickled_text(old)) != 1:
                    raise SystemExit(f"{head_file}: the base is not named once")
                data = data.replace(pickled_text(old), pickled_text(HUB_ID))
            archive.writestr(name, data)


def hf_cache(run, base, out):
    old = kev_files.read_head(run / "head.pt")["base"]
    run = copied(run, out / "run")
    name_base_by_hub_id(run / "head.pt", old)
    edit_json(run / "adapter_config.json", lambda config: config.update(base_model_name_or_path=HUB_ID))
    model = out / "hub" / ("models--" + HUB_ID.replace("/", "--"))
    snapshot = model / "snapshots" / COMMIT
    for folder in (snapshot, model / "blobs", model / "refs"):
        folder.mkdir(parents=True)
    (model / "refs" / "main").write_text(COMMIT)
    for file in sorted(base.iterdir()):
        blob = model / "blobs" / hashlib.sha256(file.read_bytes()).hexdigest()
        shutil.copyfile(file, blob)
        (snapshot / file.name).symlink_to(os.path.relpath(blob, snapshot))


VARIANTS = {"language-model-prefix": language_model_prefix, "sharded": sharded, "rslora": rslora, "fp16": fp16,
            "nested-config": nested_config, "hf-cache": hf_cache}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN_DIR", help="a run directory whose base lies where it says")
    parser.add_argument("out", type=Path, metavar="OUT_DIR", help="where the variants go")
    arguments = parser.parse_args()
    base = kev_files.base_directory(arguments.run, kev_files.read_head(arguments.run / "head.pt"))
    for name, write in VARIANTS.items():
        target = arguments.out.resolve() / name
        shutil.rmtree(target, ignore_errors=True)
        write(arguments.run, base, target)


if __name__ == "__main__":
    main()
