"""Trains assay-mini-decide from scratch on one GPU and writes it in the Kev layout.

usage: python3 train/decide.py OUT [--minutes M] [--seed S] [--smoke]

OUT/base, OUT/run      the checkpoint: Hugging Face base in bf16, PEFT adapter, head.pt, tokenizer
OUT/metrics.json       figures by type and family on held-out and on test questions, with the fitted temperature
OUT/fixture.json       requests with token ids, logits and probabilities by transformers' and peft's own fp32 code
OUT/train.log          what was printed

Three stages: all weights on generated data (decide_data); an adapter and the head on the base as bf16 rounded it; the
temperature on calibration.jsonl, hand-written questions that nothing else sees. Needs torch, transformers >= 5.17, peft, tokenizers.
"""

import argparse
import json
import math
import os
import shutil
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent))

import decide_rows as data  # noqa: E402
import kev_files  # noqa: E402
from decide_data.samples import sample  # noqa: E402
from hybrid import Hybrid  # noqa: E402

kev = data.kev
HIDDEN, HEAD_DIM, RANK, VOCABULARY = 256, 64, 4, 6144
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LOG = []


def say(*parts):
    line = " ".join(str(p) for p in parts)
    LOG.append(line)
    print(line, flush=True)


# ---- tokenizer


def corpus(count, seed):
    """Texts of training samples."""
    for i in range(count):
        made = sample(seed * 1_000_000_000 + 500_000_000 + i, "train")
        yield kev.flat(made["state"])
        for question, _ in made["questions"]:
            yield kev.flat(question["instructions"])
            yield from kev.option_texts(question)


def train_tokenizer(directory, texts):
    """Byte-level BPE as Qwen3.5 has it: NFC, its split pattern, the five delimiters last."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(kev.SPLIT["hybrid"]), "isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY - len(kev.SPECIAL), show_progress=False, min_frequency=3,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in kev.SPECIAL])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>", pad_token="<|endoftext|>")
    fast.save_pretrained(directory)
    return fast


# ---- model


def configuration():
    import transformers

    rope = {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [3, 3, 2],
            "mrope_interleaved": True}  # fmt: skip
    return transformers.Qwen3_5TextConfig(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, intermediate_size=640, num_hidden_layers=8, num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, linear_num_key_heads=4, linear_num_value_heads=4, linear_key_head_dim=64,
        linear_value_head_dim=64, linear_conv_kernel_dim=4, layer_types=["linear_attention", "full_attention"] * 4,
        rope_parameters=rope, rms_norm_eps=1e-6, tie_word_embeddings=True, max_position_embeddings=16384)  # fmt: skip


class Head(nn.Module):
    """The pointer head: how well each option answers to the decision's state."""

    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(HIDDEN, HEAD_DIM), nn.Linear(HIDDEN, HEAD_DIM)

    def forward(self, decide, options):
        """decide [rows, hidden], options [rows, count, hidden] -> logits [rows, count]."""
        return (self.k(options) @ self.q(decide).unsqueeze(-1)).squeeze(-1) / math.sqrt(HEAD_DIM)


def logits_of(hidden, head, ends, last):
    places = torch.cat([last.unsqueeze(1), ends], 1)
    read = hidden.gather(1, places.unsqueeze(-1).expand(-1, -1, hidden.shape[-1]))
    with torch.autocast(hidden.device.type, enabled=False):
        return head(read[:, 0], read[:, 1:])


def to_device(batch):
    ids, ends, target, last, exact = (torch.from_numpy(x).to(DEVICE, non_blocking=True) for x in batch)
    return ids.long(), ends.long(), target, last.long(), exact


def blotted(ids, exact, blank, rate):
    """Some tokens of the rows that need not be read word by word become blanks; delimiters and digits stay."""
    share = torch.rand(len(ids), 1, device=ids.device) * rate * (~exact).unsqueeze(1)
    hit = (torch.rand(ids.shape, device=ids.device) < share) & (ids < VOCABULARY - len(kev.SPECIAL)) & (ids > 260)
    return torch.where(hit, blank, ids)


def losses(model, head, batch, blank, dropout, language_weight, rate):
    ids, ends, target, last, exact = batch
    seen = blotted(ids, exact, blank, rate)
    with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
        hidden = model(seen, dropout)
    logits = logits_of(hidden, head, ends, last).masked_fill(target < 0, -1e4)
    loss = -(target.clamp_min(0) * F.log_softmax(logits, -1)).sum(-1).mean()
    right = (logits.argmax(-1) == target.argmax(-1)).float().mean()
    if not language_weight:
        return loss, loss.detach(), right
    # The next token as a second task, on a sample of places: it tells words apart that no question asks about.
    places = (torch.rand(len(ids), 16, device=ids.device) * (last - 1).unsqueeze(1)).long()
    read = hidden.gather(1, places.unsqueeze(-1).expand(-1, -1, hidden.shape[-1])).flatten(0, 1)
    with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
        predicted = F.linear(read, model.embed_tokens.weight)
    following = F.cross_entropy(predicted.float(), ids.gather(1, places + 1).flatten())
    return loss + language_weight * following, loss.detach(), right


class Captured:
    """Forward and backward of one shape of batch as a CUDA graph: most of a step's time was launches. Gradients
    are added into the parameters' own, so that a step of the optimizer follows as after any backward."""

    pool = None

    def __init__(self, step, batch):
        self.inputs = [x.clone() for x in batch]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                step(self.inputs)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, pool=Captured.pool):
            self.outputs = step(self.inputs)
        Captured.pool = Captured.pool or self.graph.pool()

    def __call__(self, batch):
        for mine, given in zip(self.inputs, batch):
            mine.copy_(given)
        self.graph.replay()
        return self.outputs


class Stepper:
    """Gradients and figures of a batch; by graphs where `graphs` and the length is usual."""

    def __init__(self, parameters, compute, graphs):
        self.parameters, self.compute, self.graphs, self.captured = parameters, compute, graphs, {}
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)

    def run(self, batch):
        torch._foreach_zero_([p.grad for p in self.parameters])
        total, loss, right = self.compute(batch)
        total.backward()
        return torch.stack([loss, right])

    def __call__(self, batch):
        shape = batch[0].shape
        if not self.graphs or shape[1] > 288:
            return self.run(batch)
        if shape not in self.captured:
            self.captured[shape] = Captured(self.run, batch)
        return self.captured[shape](batch).clone()


def probe_graphs():
    """In a process of its own, since a capture that fails can leave CUDA unusable: does a graph do what plain calls do?"""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model, head = Hybrid(configuration()).to(DEVICE), Head().to(DEVICE)
    parameters = [*model.parameters(), *head.parameters()]
    ids = torch.randint(300, 6000, (64, 96), device=DEVICE)
    ends = torch.arange(40, 52, device=DEVICE).expand(64, 12).contiguous()
    target = torch.zeros(64, 12, device=DEVICE)
    target[:, 3] = 1
    batch = (ids, ends, target, torch.full((64,), 90, device=DEVICE), torch.ones(64, dtype=torch.bool, device=DEVICE))
    model.train()
    kept = []  # a graph that is freed takes the shared pool with it
    for language_weight, tolerance in ((0.0, 1e-3), (0.1, 1.0)):
        steps = [Stepper(parameters, lambda b: losses(model, head, b, 0, 0.0, language_weight, 0.0), g) for g in (False, True)]
        kept.append(steps)
        figures, norms = [], []
        for step in steps:
            figures.append(step(batch)[0].item())
            norms.append(torch.stack([p.grad.norm() for p in parameters]).norm().item())
            for p in parameters:
                p.grad = None if step is steps[0] else p.grad
            if step is steps[0]:
                for p in parameters:
                    p.grad = torch.zeros_like(p)
        print("graph", figures, norms, flush=True)
        if abs(figures[0] - figures[1]) > 1e-3 or abs(norms[0] - norms[1]) > tolerance * max(norms):
            sys.exit(1)


def graphs_work():
    import subprocess

    if DEVICE != "cuda":
        return False
    done = subprocess.run([sys.executable, __file__, "probe", "--probe-graphs"], capture_output=True, text=True)
    say(f"CUDA graphs: {'yes' if done.returncode == 0 else 'no'} {done.stdout.strip()} {done.stderr.strip()[-600:] if done.returncode else ''}")
    return done.returncode == 0


def train(model, head, producer, blank, seconds, peak, warmup, dropout, language_weight, rate, parameters, decay=0.1,
          graphs=False):
    """AdamW on a cosine over the time that there is."""
    matrices = [p for p in parameters if p.ndim >= 2]
    others = [p for p in parameters if p.ndim < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}],
                                  lr=peak, betas=(0.9, 0.98), fused=DEVICE == "cuda")  # fmt: skip
    start, step, tokens, shown, wait = time.time(), 0, 0, 0.0, 0.0
    stepper = Stepper(parameters, lambda b: losses(model, head, b, blank, dropout, language_weight, rate), graphs)
    model.train()
    means = []
    while True:
        asked = time.time()
        batch = producer.get()
        wait += time.time() - asked
        part = (time.time() - start) / seconds
        if part >= 1:
            break
        factor = min(1, (step + 1) / warmup) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * part)))
        for group in optimizer.param_groups:
            group["lr"] = peak * factor
        batch = to_device(batch)
        means.append(stepper(batch))
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        tokens += batch[0].numel()
        step += 1
        if time.time() - start > shown:
            loss, right = torch.stack(means[-50:]).mean(0).tolist()
            elapsed = time.time() - start
            say(f"{elapsed:6.1f} s  step {step:5d}  loss {loss:.4f}  right {right:.4f}  {tokens / elapsed / 1e3:.0f}k tokens/s  "
                f"waited {wait:.1f} s")  # fmt: skip
            if not math.isfinite(loss):
                raise SystemExit("the loss is not finite")
            shown += max(4.0, seconds / 40)
    return step


# ---- evaluation


@torch.no_grad()
def answers(model, head, rows):
    """Logits of every row (ids, ends, ...), without temperature, fp32, batched by length."""
    model.eval()
    order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]))
    out = [None] * len(rows)
    torch.backends.cuda.matmul.allow_tf32 = False
    for begin in range(0, len(order), 256):
        chosen = order[begin : begin + 256]
        length = data.padded(max(len(rows[i][0]) for i in chosen))
        batch = data.packed([(rows[i][0], rows[i][1], [0.0] * len(rows[i][1]), True) for i in chosen], length)
        ids, ends, target, last, _ = to_device(batch)
        logits = logits_of(model(ids), head, ends, last).double().cpu()
        for i, values in zip(chosen, logits):
            out[i] = values[: len(rows[i][1])]
    torch.backends.cuda.matmul.allow_tf32 = True
    return out


def fitted_temperature(logits, rows):
    """The temperature under which the held-out targets are the likeliest."""
    targets = [torch.tensor(row[2], dtype=torch.float64) for row in rows]

    def cost(temperature):
        return sum(-(t * F.log_softmax(x / temperature, -1)).sum().item() for t, x in zip(targets, logits)) / len(rows)

    return min((0.5 + 0.02 * i for i in range(176)), key=cost)


def calibration_error(pairs, bins=15):
    """pairs: (confidence, right). The mean gap of confidence and share right, over equal bins of confidence."""
    total = 0.0
    for k in range(bins):
        inside = [(c, r) for c, r in pairs if k / bins < c <= (k + 1) / bins]
        if inside:
            total += abs(sum(c for c, _ in inside) - sum(r for _, r in inside))
    return total / max(1, len(pairs))


def figures(logits, rows, temperature):
    """Accuracy of choice and noul, mean score error as a share of the range, calibration; by type and by family."""
    table, pairs = {}, []
    for x, (_, _, target, family, kind) in zip(logits, rows):
        p = torch.softmax(x / temperature, -1)
        wanted = torch.tensor(target, dtype=torch.float64)
        if kind == "score":
            levels = torch.arange(len(p), dtype=torch.float64)
            value = abs(((p - wanted) * levels).sum().item()) / (len(p) - 1)
        else:
            if wanted.max() < 0.62:
                continue
            value = float(p.argmax() == wanted.argmax())
            pairs.append((p.max().item(), value))
        for name in (kind, f"{family}.{kind}"):
            table.setdefault(name, []).append(value)
    means = {name: {"mean": round(sum(v) / len(v), 4), "n": len(v)} for name, v in sorted(table.items())}
    return {"by": means, "ece": round(calibration_error(pairs), 4)}


def suite_rows(encoder, file):
    """Rows of a suite in decide_data/suite.py's format, with one-sided targets; nulls as even ones."""
    samples = []
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        questions = []
        for name, question in record["request"]["questions"].items():
            expected = record["expected"][name]
            if question["type"] == "noul":
                target = [0.5, 0.5] if expected is None else [float(not expected), float(expected)]
            elif question["type"] == "choice":
                names = list(question["criteria"])
                target = [1 / len(names) if expected is None else float(n == expected) for n in names]
            else:
                count, below = len(question["criteria"]), min(int(expected), len(question["criteria"]) - 2)
                target = [0.0] * count
                target[below], target[below + 1] = 1 - (expected - below), expected - below
            questions.append((question, target))
        samples.append({"state": record["request"]["state"], "questions": questions, "family": record.get("family", "suite")})
    return list(data.evaluation_rows(encoder, samples))


# ---- the release


def save_base(model, config, directory):
    import transformers

    whole = transformers.Qwen3_5ForCausalLM(config)
    state = {"model." + name: value.detach().cpu().float() for name, value in model.state_dict().items()}
    missing, unexpected = whole.load_state_dict(state, strict=False)
    if unexpected or any(name != "lm_head.weight" for name in missing):
        raise SystemExit(f"transformers' model differs: missing {missing}, unexpected {unexpected}")
    whole.tie_weights()
    whole.to(torch.bfloat16).save_pretrained(directory, max_shard_size="9MB")


def load_base(directory):
    import transformers

    return transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager").model


def with_adapter(model):
    from peft import LoraConfig, get_peft_model

    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "in_proj_qkv", "in_proj_z",
               "in_proj_a", "in_proj_b", "out_proj"]  # fmt: skip
    return get_peft_model(model, LoraConfig(r=RANK, lora_alpha=2 * RANK, lora_dropout=0.0, target_modules=targets))


def save_adapter(adapted, run):
    adapted.save_pretrained(run)
    (run / "README.md").unlink(missing_ok=True)
    file = run / "adapter_config.json"
    config = json.loads(file.read_text())
    config.update(base_model_name_or_path="../base", task_type="FEATURE_EXTRACTION", auto_mapping=None)
    file.write_text(json.dumps(config, indent=1, sort_keys=True))


def save_head(head, run, temperature, facts):
    weights = {name: value.detach().cpu().float().contiguous() for name, value in head.state_dict().items()}
    torch.save({"base": "../base", "base_revision": None, "head": weights, "lora": RANK, "head_dim": HEAD_DIM,
                "option_isolation": False, "special_embeddings": False, "weights_dtype": "bf16", "temperature": temperature,
                "holdout": ["phrases"], "args": facts}, run / "head.pt")  # fmt: skip
    return weights


def released(out):
    """The checkpoint as its files hold it: transformers' base with peft's adapter merged, fp32, on the CPU."""
    from peft import PeftModel

    return PeftModel.from_pretrained(load_base(out / "base"), out / "run").merge_and_unload().eval()


def fixture(out, tokenizer, weights, temperature, count, everyday):
    """Requests and what the authors' code answers to them: the oracle's own rows and readout."""
    kev.TEMPERATURE = temperature
    model, records, worst = released(out), [], 0.0
    requests = [json.loads(line)["request"] for line in Path(everyday).read_text(encoding="utf-8").splitlines()][::4]
    for i in range(count - min(count, len(requests))):
        made = sample(77_000_000 + i, "test")
        requests.append({"state": made["state"], "questions": {f"q{k}": q for k, (q, _) in enumerate(made["questions"])}})
    for i, request in enumerate(requests[:count]):
        record = {"id": f"r{i:03d}", "request": {"state": request["state"], "model": "assay-mini-decide", "questions": request["questions"]}}
        kev.answer_record(record, tokenizer, model, weights, {})
        records.append(record)
    kev.write_json(out / "fixture.json", {"model": "assay-mini-decide", "temperature": temperature,
                                          "checkpoint": kev_files.identity(out / "run"), "records": records})  # fmt: skip
    return records, worst


def check_against_transformers(model, config, encoder):
    """The training model's hidden states are transformers' on a few rows."""
    import transformers

    whole = transformers.Qwen3_5ForCausalLM(config)
    whole.load_state_dict({"model." + n: v.detach().cpu().float() for n, v in model.state_dict().items()}, strict=False)
    whole.eval()
    rows = list(data.evaluation_rows(encoder, [sample(i, "dev") for i in range(3)]))[:4]
    worst = 0.0
    model.eval()
    torch.backends.cuda.matmul.allow_tf32 = False
    for row in rows:
        ids = torch.tensor([row[0]])
        with torch.no_grad():
            wanted = whole.model(input_ids=ids, use_cache=False).last_hidden_state
            long = F.pad(ids, (0, data.padded(ids.shape[1]) - ids.shape[1])).to(DEVICE)
            got = model(long)[:, : ids.shape[1]].cpu()
        worst = max(worst, (got - wanted).abs().max().item() / wanted.abs().max().item())
    torch.backends.cuda.matmul.allow_tf32 = True
    say(f"largest difference from transformers, of the largest value: {worst:.2e}")
    if not worst < 2e-3:
        raise SystemExit("the training model is not transformers'")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=7.0, help="of the first stage")
    parser.add_argument("--adapter-seconds", type=float, default=25.0)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=32768, help="a batch")
    parser.add_argument("--rate", type=float, default=2e-3, help="peak learning rate")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--suite", type=Path, default=data.ROOT / "tests/data/decide/test.jsonl")
    parser.add_argument("--everyday", type=Path, default=data.ROOT / "tests/data/decide/everyday.jsonl")
    parser.add_argument("--resume", type=Path, help="a checkpoint that this wrote: go on from its base, head and tokenizer")
    parser.add_argument("--commit", default="", help="the generator's commit, for the record")
    parser.add_argument("--probe-graphs", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--smoke", action="store_true", help="a minute instead of all: does everything once")
    return parser.parse_args()


def evaluate(name, model, head, encoder, rows, temperature, found):
    found[name] = figures(answers(model, head, rows), rows, temperature)
    by = found[name]["by"]
    say(f"{name}: " + ", ".join(f"{k} {by[k]['mean']} of {by[k]['n']}" for k in ("choice", "noul", "score") if k in by)
        + f", ECE {found[name]['ece']}")  # fmt: skip
    say("   " + "  ".join(f"{k} {v['mean']} ({v['n']})" for k, v in by.items() if "." in k))


def given_tokenizer(arguments, base):
    if not arguments.resume:
        return train_tokenizer(base, corpus(15000 if not arguments.smoke else 6000, arguments.seed))
    from transformers import PreTrainedTokenizerFast

    for file in (arguments.resume / "base").glob("tokenizer*"):
        shutil.copy(file, base)
    return PreTrainedTokenizerFast.from_pretrained(base)


def main():
    arguments = parse()
    if arguments.probe_graphs:
        probe_graphs()
        return
    begin = time.time()
    torch.manual_seed(arguments.seed)
    torch.set_float32_matmul_precision("high")
    out, base, run = arguments.out, arguments.out / "base", arguments.out / "run"
    shutil.rmtree(out, ignore_errors=True)
    base.mkdir(parents=True)
    run.mkdir()
    tokenizer = given_tokenizer(arguments, base)
    tokenizer.save_pretrained(run)
    say(f"tokenizer of {len(tokenizer)} tokens, {time.time() - begin:.0f} s")
    producer = data.Producer(arguments.seed, base / "tokenizer.json", arguments.tokens, arguments.workers)
    config, encoder = configuration(), data.Encoder(base / "tokenizer.json")
    config.vocab_size = VOCABULARY
    model, head = Hybrid(config).to(DEVICE), Head().to(DEVICE)
    say(f"{sum(p.numel() for p in model.parameters())} weights, {time.time() - begin:.0f} s")
    if arguments.resume:
        model.load_state_dict(load_base(arguments.resume / "base").state_dict())
        head.load_state_dict(torch.load(arguments.resume / "run/head.pt", weights_only=True)["head"])
    check_against_transformers(model, config, encoder)
    blank = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    parameters = [*model.parameters(), *head.parameters()]
    steps = train(model, head, producer, blank, arguments.minutes * 60, arguments.rate, 300, 0.1, 0.1, 0.2, parameters,
                  graphs=graphs_work())  # fmt: skip
    save_base(model, config, base)
    fresh = Hybrid(config)
    fresh.load_state_dict(load_base(base).state_dict())
    adapted = with_adapter(fresh.to(DEVICE))
    trained = [p for p in [*adapted.parameters(), *head.parameters()] if p.requires_grad]
    inner = adapted.base_model.model
    steps_adapter = train(inner, head, producer, blank, arguments.adapter_seconds, 5e-4, 20, 0.05, 0.0, 0.1, trained, 0.0)
    producer.stop()
    held_out = list(data.evaluation_rows(encoder, [sample(9_000_000 + i, "dev") for i in range(1500)]))
    held_out = [row for row in held_out if len(row[0]) <= 1024]
    calibration = suite_rows(encoder, Path(__file__).parent / "calibration.jsonl")
    temperature = round(fitted_temperature(answers(inner, head, calibration), calibration), 3)
    facts = {"seed": arguments.seed, "commit": arguments.commit, "steps": steps, "adapter_steps": steps_adapter,
             "batch_tokens": arguments.tokens, "rate": arguments.rate, "minutes": arguments.minutes}  # fmt: skip
    found = {"temperature": temperature, **facts}
    say(f"temperature {temperature}, {time.time() - begin:.0f} s")
    evaluate("calibration", inner, head, encoder, calibration, temperature, found)
    evaluate("held out", inner, head, encoder, held_out, temperature, found)
    save_adapter(adapted, run)
    weights = save_head(head, run, temperature, facts)
    evaluate("test", inner, head, encoder, suite_rows(encoder, arguments.suite), temperature, found)
    evaluate("everyday", inner, head, encoder, suite_rows(encoder, arguments.everyday), temperature, found)
    records, _ = fixture(out, tokenizer, weights, temperature, 6 if arguments.smoke else 48, arguments.everyday)
    compare(records, inner, head, encoder, temperature)
    (out / "metrics.json").write_text(json.dumps(found, indent=1))
    say(f"done, {time.time() - begin:.0f} s")
    (out / "train.log").write_text("\n".join(LOG) + "\n")


def compare(records, model, head, encoder, temperature):
    """The batched model's probabilities beside those of transformers' and peft's code from the files."""
    rows, wanted = [], []
    for record in records:
        questions = list(record["request"]["questions"].values())
        rows += [(ids, ends) for ids, ends in encoder.rows(record["request"]["state"], questions)]
        wanted += [row["probabilities"] for row in record["rows"]]
    got = [torch.softmax(x / temperature, -1).tolist() for x in answers(model, head, rows)]
    worst = max(abs(a - b) for x, y in zip(got, wanted) for a, b in zip(x, y))
    say(f"largest difference of a probability between this model and the released files: {worst:.2e}")


if __name__ == "__main__":
    main()
