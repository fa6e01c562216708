"""Files of a Kev checkpoint, read and written with Python's standard library alone.

Shared by kev_oracle.py, and by make_gguf.py and make_variants.py, which have to run wherever the tests do. Tensors stay raw bytes
with a type and a shape until someone asks for numbers; numbers are array('f'), so that every store rounds to
fp32 as the C++ program does.
"""

import array
import collections
import hashlib
import json
import math
import pickle
import struct
import zipfile
from pathlib import Path

Tensor = collections.namedtuple("Tensor", "dtype shape data")  # dtype as safetensors names it; data: bytes


def read_safetensors(path):
    """name -> Tensor. Layout: huggingface/safetensors, README.md, "Format"."""
    content = Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    data = memoryview(content)[8 + length :]
    return {
        name: Tensor(entry["dtype"], entry["shape"], bytes(data[slice(*entry["data_offsets"])]))
        for name, entry in header.items()
    }


def write_safetensors(path, tensors):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        end = offset + len(tensor.data)
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(tensor.data for tensor in tensors.values())


def numbers(tensor):
    """A tensor's elements as array('f')."""
    if tensor.dtype == "F32":
        return array.array("f", tensor.data)
    if tensor.dtype == "F16":
        return array.array("f", struct.unpack(f"<{len(tensor.data) // 2}e", tensor.data))
    if tensor.dtype == "BF16":
        wide = bytearray(2 * len(tensor.data))
        wide[2::4], wide[3::4] = tensor.data[0::2], tensor.data[1::2]
        return array.array("f", bytes(wide))
    raise ValueError(f"elements of type {tensor.dtype} are not weights")


def as_f16(values):
    """IEEE half, ties to even. Raises OverflowError past its range."""
    return struct.pack(f"<{len(values)}e", *values)


def as_bf16(values):
    """The upper half of fp32, ties to even; values must be finite."""
    bits = array.array("I", values.tobytes())
    return array.array("H", [(x + 0x7FFF + (x >> 16 & 1)) >> 16 for x in bits]).tobytes()


def as_q8_0(values):
    """Blocks of 32: an fp16 scale and 32 signed bytes, halves rounded away from zero
    (ggml-org/llama.cpp, ggml/src/ggml-quants.c, quantize_row_q8_0_ref)."""
    out = []
    for begin in range(0, len(values), 32):
        block = values[begin : begin + 32]
        scale = _fp32(max(map(abs, block)) / 127)
        inverse = _fp32(1 / scale) if scale else 0.0
        quants = [math.floor(abs(x) * inverse + 0.5) for x in block]
        out.append(struct.pack("<e32b", scale, *(-q if x < 0 else q for q, x in zip(quants, block))))
    return b"".join(out)


def _fp32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def add_low_rank(weight, a, b, rank, scale):
    """weight + scale * b @ a, element by element as formats/lora_kernel.cpp does it: a fused multiply-add per
    rank, then one product and one sum, each rounded to fp32. A product of two fp32 numbers is exact in Python's
    double, so storing `sum + b * a` to array('f') is the fused operation but for a double rounding, which needs
    29 bits of the exact sum to be just so."""
    columns = len(a) // rank
    directions = [a[r * columns : (r + 1) * columns] for r in range(rank)]
    merged = array.array("f")
    for row in range(len(b) // rank):
        sums = array.array("f", bytes(4 * columns))
        for factor, direction in zip(b[row * rank : (row + 1) * rank], directions):
            sums = array.array("f", [s + factor * x for s, x in zip(sums, direction)])
        scaled = array.array("f", [scale * s for s in sums])
        merged.extend([w + s for w, s in zip(weight[row * columns : (row + 1) * columns], scaled)])
    return merged


def merged_weights(run, base):
    """(name without "model.", shape, array('f')) of every weight of `base` with the adapter of `run` merged in."""
    weights = read_safetensors(base / "model.safetensors")
    adapter = read_safetensors(run / "adapter_model.safetensors")
    config = json.loads((run / "adapter_config.json").read_text())
    rank = config["r"]
    scale = config["lora_alpha"] / (math.sqrt(rank) if config["use_rslora"] else rank)
    prefix, left = "base_model.model.", set(adapter)
    for full_name, tensor in weights.items():
        name = full_name.removeprefix("model.")
        values = numbers(tensor)
        parts = [prefix + name.removesuffix(".weight") + part for part in (".lora_A.weight", ".lora_B.weight")]
        if parts[0] in adapter:
            values = add_low_rank(values, *(numbers(adapter[part]) for part in parts), rank, scale)
            left -= set(parts)
        yield name, tensor.shape, values
    if left:
        raise ValueError(f"the base has no weight for {sorted(left)}")


class _HeadUnpickler(pickle.Unpickler):
    """Builds what a Kev head.pt holds and nothing else."""

    def __init__(self, file, archive, folder):
        super().__init__(file)
        self._archive, self._folder = archive, folder

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return self._tensor
        if (module, name) == ("torch", "FloatStorage"):
            return "F32"
        raise pickle.UnpicklingError(f"{module}.{name} does not belong in a head.pt")

    def persistent_load(self, pid):
        _, dtype, key, *_ = pid
        return Tensor(dtype, None, self._archive.read(f"{self._folder}/data/{key}"))

    @staticmethod
    def _tensor(storage, offset, shape, stride, *_):
        count = math.prod(shape)
        return Tensor(storage.dtype, list(shape), storage.data[4 * offset : 4 * (offset + count)])


def read_head(path):
    """The dict in head.pt: torch's zip of a pickle and one file per storage."""
    with zipfile.ZipFile(path) as archive:
        pickled = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        with archive.open(pickled) as file:
            return _HeadUnpickler(file, archive, pickled.split("/")[0]).load()


def base_directory(run, head):
    """The base's directory as the head names it: relative to the run."""
    base = (Path(run) / head["base"]).resolve()
    if not (base / "config.json").is_file():
        raise SystemExit(f"{run}: no base checkpoint at {base}")
    return base


def identity(run):
    """What tells a run from others in every layout of its files: a fixture's "checkpoint", which a gate compares
    with the model that it runs (lab/decision_fixture.hpp, CheckpointFacts). The pointer head's biases are the
    one trained part that every layout keeps in fp32."""
    head = read_head(Path(run) / "head.pt")
    config = json.loads((base_directory(run, head) / "config.json").read_text())
    config = config.get("text_config", config)
    biases = b"".join(numbers(head["head"][part + ".bias"]).tobytes() for part in ("q", "k"))
    return {
        "family": config["model_type"].removesuffix("_text"), "layers": config["num_hidden_layers"],
        "hidden_size": config["hidden_size"], "vocabulary": config["vocab_size"],
        "head_sha256": hashlib.sha256(biases).hexdigest(),
    }  # fmt: skip
