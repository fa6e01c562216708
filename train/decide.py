"""Trains assay-mini-decide from scratch on one GPU and writes it in the Kev layout.

usage: python3 train/decide.py OUT [--minutes M] [--seed S] [--smoke]

OUT/base, OUT/run      the checkpoint: Hugging Face base in bf16, PEFT adapter, head.pt, tokenizer
OUT/metrics.json       figures by type and family on development and test questions, with the fitted temperature
OUT/fixture.json       requests with token ids, logits and probabilities by transformers' and peft's own fp32 code
OUT/train.log          what was printed

train/make_dictionary.py must have written decide_data/dictionary.txt.gz, and train/make_vectors.py decide_data/vectors.npz. M
minutes are for everything.

Three stages: all weights on generated data (decide_data), with the next token of the texts as a second task and the names of
options as a third, the embedding from what word_vectors.py knows; an adapter and the head on the base as bf16 rounded it; the temperature on development's
questions, whose phrases, names and things training never saw, and on calibration.jsonl, hand-written ones. Needs torch,
transformers >= 5.17, peft, tokenizers.
"""

import argparse
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent))

import decide_rows as data  # noqa: E402
import hybrid  # noqa: E402
import kev_files  # noqa: E402
from captured_steps import DEVICE, LOG, Stepper, say  # noqa: E402
from decide_data.dictionary import dictionary  # noqa: E402
from decide_data.samples import OPEN, sample  # noqa: E402
from decide_data.vectors import vectors  # noqa: E402
from hybrid import Hybrid  # noqa: E402
from optimizers import Muon  # noqa: E402
from word_vectors import KnownEmbedding, token_vectors  # noqa: E402

kev = data.kev
HIDDEN, HEAD_DIM, RANK, VOCABULARY = 256, 64, 4, 10240


# ---- tokenizer


def corpus(count, seed):
    """Texts of the dictionary and of training samples, and usual words, so that many are tokens of their own."""
    table = vectors()
    for rank, place in enumerate(table.listed[:14000]):
        yield from itertools.repeat(" " + table.words[place], 60000 // (rank + 300))
        yield from itertools.repeat(table.words[place], 40000 // (rank + 300))
    for sense in dictionary().senses:
        yield sense.definition
        yield from sense.examples
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
    save_tokenizer(fast, directory)
    return fast


def save_tokenizer(tokenizer, directory):
    """Without the blanks, which are more than half of it."""
    tokenizer.save_pretrained(directory)
    file = Path(directory) / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")), ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


# ---- model


def configuration():
    import transformers

    rope = {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [3, 3, 2],
            "mrope_interleaved": True}  # fmt: skip
    return transformers.Qwen3_5TextConfig(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, intermediate_size=512, num_hidden_layers=8, num_attention_heads=4,
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


PLACES = 48  # of a row whose next token is predicted, with repeats
ANSWERS = 8.0  # how much likelier a place in an answer is than another


def language_loss(model, hidden, ids, last, marks):
    """The next token as a second task, on a sample of places: it tells words apart that no question asks about, and answers that
    come before a row's own question have to be found as its own is. `marks`: the ids that begin a question and an answer."""
    question, decision = marks
    asked, decided = ((ids == mark).cumsum(1) for mark in (question, decision))
    answering = (asked == decided) & (asked > 0)
    inside = torch.arange(ids.shape[1], device=ids.device) < last.unsqueeze(1)
    weights = inside * torch.where(answering, ANSWERS, 1.0)
    places = torch.multinomial(weights, PLACES, replacement=True)
    read = hidden.gather(1, places.unsqueeze(-1).expand(-1, -1, hidden.shape[-1])).flatten(0, 1)
    with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
        predicted = F.linear(read, model.embed_tokens.weight)
    return F.cross_entropy(predicted.float(), ids.gather(1, places + 1).flatten())


NAMED = 2  # options of a row that are to name themselves


def naming_loss(model, hidden, batch, option):
    """A third task, of rows that are read word by word: an option's end is to name its option, and the decision the right one, by
    its first token and its last. Both then speak of names in the embedding's own terms, and to find a name again is all that is
    left to learn; from answers alone that begins late or never. `option`: the id that begins one."""
    ids, ends, target, last, exact = batch
    first = (ids == option).int().argmax(1, keepdim=True) + 1
    begins, there = torch.cat([first, ends[:, :-1] + 2], 1), target >= 0
    some = torch.multinomial(there.float(), NAMED, replacement=True)
    right = target.argmax(1, keepdim=True)
    chosen = torch.cat([some, right], 1)
    places = torch.cat([ends.gather(1, some), last.unsqueeze(1)], 1)
    read = hidden.gather(1, places.unsqueeze(-1).expand(-1, -1, hidden.shape[-1])).flatten(0, 1)
    with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
        predicted = F.linear(read, model.embed_tokens.weight)
    guessed = F.log_softmax(predicted.float(), -1)
    total = 0
    for names in (begins.gather(1, chosen), ends.gather(1, chosen) - 1):
        wanted = ids.gather(1, names).flatten().unsqueeze(1)
        total = total - guessed.gather(1, wanted).view(len(ids), -1)
    return (total.mean(1) * exact).sum() / exact.sum().clamp_min(1)


def losses(model, head, batch, blank, dropout, language_weight, rate, marks=None):
    """The loss to minimize; of its parts the decisions' alone, the share of right answers, and that of the rows that are read word
    by word. `language_weight`: a tensor of one number, or None; `marks`: the ids that begin an option, a question and an answer,
    for the other tasks."""
    ids, ends, target, last, exact = batch
    seen = blotted(ids, exact, blank, rate)
    with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
        hidden = model(seen, dropout)
    logits = logits_of(hidden, head, ends, last).masked_fill(target < 0, -1e4)
    loss = -(target.clamp_min(0) * F.log_softmax(logits, -1)).sum(-1).mean()
    hit = (logits.argmax(-1) == target.argmax(-1)).float()
    right = torch.stack([loss.detach(), hit.mean(), (hit * exact).sum() / exact.sum().clamp_min(1)])
    if language_weight is None:
        return loss, right
    others = language_loss(model, hidden, ids, last, marks[1:]) + naming_loss(model, hidden, batch, marks[0])
    return loss + language_weight * others, right


def stepper_of(parameters, compute, graphs):
    """Its figures are those of `losses`. A graph a length is made of usual lengths."""
    return Stepper(parameters, compute, graphs, longest=288, warm_ups=2)


# ---- how to compute: plainly, by graphs, by fused kernels, by both

MODES = {"plain": (False, False), "graphs": (True, False), "fused graphs": (True, True), "fused": (False, True)}  # graphs, fused
PROBED = list(MODES)[:3]


def probe_batch(rows, length):
    ids = torch.randint(300, 6000, (rows, length), device=DEVICE)
    ends = torch.arange(length - 50, length - 38, device=DEVICE).expand(rows, 12).contiguous()
    target = torch.zeros(rows, 12, device=DEVICE)
    target[:, 3] = 1
    return ids, ends, target, torch.full((rows,), length - 6, device=DEVICE), torch.ones(rows, dtype=torch.bool, device=DEVICE)


def probe(mode, tokens):
    """Prints loss, gradient norm and speed of a mode as JSON. In a process of its own: what fails can leave CUDA unusable."""
    graphs, fused = MODES[mode]
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    if fused:
        hybrid.fuse()
    model, head = Hybrid(configuration()).to(DEVICE), Head().to(DEVICE)
    model.train()
    parameters = [*model.parameters(), *head.parameters()]
    batches = [probe_batch(tokens // length, length) for length in (96, 128)]
    exact = stepper_of(parameters, lambda b: losses(model, head, b, 0, 0.0, None, 0.0), graphs)
    loss = exact(batches[0])[0].item()
    norm = torch.stack([p.grad.norm() for p in parameters]).norm().item()
    weight = torch.tensor(0.1, device=DEVICE)
    whole = stepper_of(parameters, lambda b: losses(model, head, b, 0, 0.1, weight, 0.2, (1, 2, 3)), graphs)
    for batch in batches * 2:
        whole(batch)
    torch.cuda.synchronize()
    begin, rounds = time.time(), 10
    for _ in range(rounds):
        for batch in batches:
            whole(batch)
    torch.cuda.synchronize()
    speed = rounds * sum(batch[0].numel() for batch in batches) / (time.time() - begin)
    finite = all(torch.isfinite(p.grad).all().item() for p in parameters)
    print(json.dumps({"loss": loss, "norm": norm, "finite": finite, "speed": speed}), flush=True)


def fastest_mode(tokens, limit=75):
    """The fastest mode whose loss and gradient are those of plain code; whatever fails is named and not used."""
    found = {}
    for mode in PROBED if DEVICE == "cuda" else ():
        command = [sys.executable, __file__, "probe", "--probe", mode, "--tokens", str(tokens)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
            found[mode] = json.loads(done.stdout.strip().splitlines()[-1])
            say(f"{mode}: {found[mode]['speed'] / 1e3:.0f}k tokens/s, loss {found[mode]['loss']:.5f}, gradient {found[mode]['norm']:.4f}")
        except subprocess.TimeoutExpired:
            say(f"{mode}: not ready after {limit} s, not used")
        except (IndexError, ValueError):
            say(f"{mode}: fails, not used: {done.stderr.strip()[-400:]}")
    plain = found.get("plain")
    if not plain:
        return "plain"
    same = [m for m, f in found.items() if f["finite"] and abs(f["loss"] - plain["loss"]) < 5e-3 and abs(f["norm"] / plain["norm"] - 1) < 2e-2]
    best = max(same, key=lambda mode: found[mode]["speed"], default="plain")
    say(f"computes in mode: {best}")
    return best


# ---- training


def optimizers_for(model, head, parameters, rate, decay, muon):
    """AdamW for all that is trained, or Muon for the model's inner matrices and AdamW for the rest."""
    inner = {id(p) for name, p in model.named_parameters() if muon and p.ndim == 2 and "embed" not in name}
    matrices = [p for p in parameters if p.ndim >= 2 and id(p) not in inner]
    others = [p for p in parameters if p.ndim < 2]
    adam = torch.optim.AdamW([{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}],
                             lr=rate, betas=(0.9, 0.98), fused=DEVICE == "cuda")  # fmt: skip
    return [adam] + ([Muon([p for p in parameters if id(p) in inner], lr=rate, weight_decay=decay)] if inner else [])


class Plan:
    """How a stage is trained."""

    def __init__(self, seconds, rate, warmup, dropout, language, blots, decay=0.1, muon=True, graphs=False, marks=None):
        self.seconds, self.rate, self.warmup, self.dropout, self.blots = seconds, rate, warmup, dropout, blots
        self.language = language  # weight of the next token at the beginning and at the end, or None
        self.decay, self.muon, self.graphs, self.marks = decay, muon, graphs, marks


def train(model, head, producer, blank, parameters, plan):
    """On a cosine over the time that there is."""
    optimizers = optimizers_for(model, head, parameters, plan.rate, plan.decay, plan.muon)
    language = None if plan.language is None else torch.tensor(plan.language[0], device=DEVICE)
    stepper = stepper_of(parameters, lambda b: losses(model, head, b, blank, plan.dropout, language, plan.blots, plan.marks), plan.graphs)
    start, step, tokens, shown, wait, means = time.time(), 0, 0, 0.0, 0.0, []
    model.train()
    while True:
        asked = time.time()
        batch = producer.get()
        wait += time.time() - asked
        part = (time.time() - start) / plan.seconds
        if part >= 1:
            break
        factor = min(1, (step + 1) / plan.warmup) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * part)))
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            group["lr"] = plan.rate * factor
        if language is not None:
            language.fill_(plan.language[0] + part * (plan.language[1] - plan.language[0]))
        batch = to_device(batch)
        means.append(stepper(batch))
        nn.utils.clip_grad_norm_(parameters, 1.0)
        for optimizer in optimizers:
            optimizer.step()
        tokens += batch[0].numel()
        step += 1
        if time.time() - start > shown:
            loss, right, exact = torch.stack(means[-50:]).mean(0).tolist()
            del means[:-50]
            elapsed = time.time() - start
            say(f"{elapsed:6.1f} s  step {step:5d}  loss {loss:.4f}  right {right:.4f}, word by word {exact:.4f}  {tokens / elapsed / 1e3:.0f}k tokens/s  "
                f"waited {wait:.1f} s")  # fmt: skip
            if not math.isfinite(loss):
                raise SystemExit("the loss is not finite")
            shown += max(4.0, plan.seconds / 40)
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
    """The temperature under which the rows' targets are the likeliest."""
    most = max(len(x) for x in logits)
    values = torch.stack([F.pad(x, (0, most - len(x)), value=-1e9) for x in logits])
    targets = torch.stack([F.pad(torch.tensor(row[2], dtype=torch.float64), (0, most - len(row[2]))) for row in rows])

    def cost(temperature):
        return -(targets * F.log_softmax(values / temperature, -1)).sum().item()

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
    parser.add_argument("--minutes", type=float, default=12.0, help="for everything")
    parser.add_argument("--adapter-seconds", type=float, default=25.0)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=32768, help="a batch")
    parser.add_argument("--rate", type=float, default=2e-3, help="peak learning rate")
    parser.add_argument("--optimizer", choices=["muon", "adamw"], default="muon")
    parser.add_argument("--mode", choices=list(MODES), help="how to compute; the fastest that works if not given")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--suite", type=Path, default=data.ROOT / "tests/data/decide/test.jsonl")
    parser.add_argument("--everyday", type=Path, default=data.ROOT / "tests/data/decide/everyday.jsonl")
    parser.add_argument("--resume", type=Path, help="a checkpoint that this wrote: go on from its base, head and tokenizer")
    parser.add_argument("--commit", default="", help="the generator's commit, for the record")
    parser.add_argument("--probe", choices=list(MODES), help=argparse.SUPPRESS)
    parser.add_argument("--smoke", action="store_true", help="a smaller tokenizer corpus and fixture; with --minutes 3 it does everything once")
    return parser.parse_args()


def evaluate(name, model, head, encoder, rows, temperature, found):
    found[name] = figures(answers(model, head, rows), rows, temperature)
    by = found[name]["by"]
    say(f"{name}: " + ", ".join(f"{k} {by[k]['mean']} of {by[k]['n']}" for k in ("choice", "noul", "score") if k in by)
        + f", ECE {found[name]['ece']}")  # fmt: skip
    say("   " + "  ".join(f"{k} {v['mean']} ({v['n']})" for k, v in by.items() if "." in k))


def given_tokenizer(arguments, base):
    if not arguments.resume:
        return train_tokenizer(base, corpus(12000 if not arguments.smoke else 3000, arguments.seed))
    from transformers import PreTrainedTokenizerFast

    for file in (arguments.resume / "base").glob("tokenizer*"):
        shutil.copy(file, base)
    return PreTrainedTokenizerFast.from_pretrained(base)


def prepared(arguments, base, run):
    """Tokenizer, producer of batches and mode: the GPU is probed while the first are made."""
    with ThreadPoolExecutor(1) as beside:
        probed = beside.submit(lambda: arguments.mode or fastest_mode(arguments.tokens))
        tokenizer = given_tokenizer(arguments, base)
        save_tokenizer(tokenizer, run)
        say(f"tokenizer of {len(tokenizer)} tokens")
        producer = data.Producer(arguments.seed, base / "tokenizer.json", arguments.tokens, arguments.workers)
        return tokenizer, producer, probed.result()


RESERVE = 45  # seconds for what follows the adapter: evaluation, files, fixture


def main():
    arguments = parse()
    if arguments.probe:
        probe(arguments.probe, arguments.tokens)
        return
    begin = time.time()
    torch.manual_seed(arguments.seed)
    torch.set_float32_matmul_precision("high")
    out, base, run = arguments.out, arguments.out / "base", arguments.out / "run"
    shutil.rmtree(out, ignore_errors=True)
    base.mkdir(parents=True)
    run.mkdir()
    tokenizer, producer, mode = prepared(arguments, base, run)
    graphs, fused = MODES[mode]
    config, encoder = configuration(), data.Encoder(base / "tokenizer.json")
    model, head = Hybrid(config).to(DEVICE), Head().to(DEVICE)
    say(f"{sum(p.numel() for p in model.parameters())} weights, {time.time() - begin:.0f} s")
    if arguments.resume:
        model.load_state_dict(load_base(arguments.resume / "base").state_dict())
        head.load_state_dict(torch.load(arguments.resume / "run/head.pt", weights_only=True)["head"])
    check_against_transformers(model, config, encoder)
    if not arguments.resume:
        model.embed_tokens = KnownEmbedding(token_vectors(tokenizer), HIDDEN).to(DEVICE)
    if fused:
        hybrid.fuse()
    blank = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    parameters = [*model.parameters(), *head.parameters()]
    seconds = max(5.0 if arguments.smoke else 30.0, arguments.minutes * 60 - (time.time() - begin) - arguments.adapter_seconds - RESERVE)
    muon = arguments.optimizer == "muon"
    plan = Plan(seconds, arguments.rate, 300, 0.1, (0.6, 0.05), 0.2, muon=muon, graphs=graphs, marks=(encoder.open, encoder.question, encoder.decide))
    steps = train(model, head, producer, blank, parameters, plan)
    hybrid.fuse(False)
    if not arguments.resume:
        model.embed_tokens = model.embed_tokens.plain()
    save_base(model, config, base)
    fresh = Hybrid(config)
    fresh.load_state_dict(load_base(base).state_dict())
    adapted = with_adapter(fresh.to(DEVICE))
    trained = [p for p in [*adapted.parameters(), *head.parameters()] if p.requires_grad]
    inner = adapted.base_model.model
    adapter_plan = Plan(arguments.adapter_seconds, 5e-4, 20, 0.05, None, 0.1, decay=0.0, muon=False)
    steps_adapter = train(inner, head, producer, blank, trained, adapter_plan)
    producer.stop()
    facts = {"seed": arguments.seed, "commit": arguments.commit, "steps": steps, "adapter_steps": steps_adapter, "mode": mode,
             "batch_tokens": arguments.tokens, "rate": arguments.rate, "optimizer": arguments.optimizer, "seconds": round(seconds)}  # fmt: skip
    save_adapter(adapted, run)
    release(out, inner, head, encoder, tokenizer, facts, arguments)
    say(f"done, {time.time() - begin:.0f} s")
    (out / "train.log").write_text("\n".join(LOG) + "\n")


def release(out, model, head, encoder, tokenizer, facts, arguments):
    """Temperature, head, figures and fixture."""
    dev = list(data.evaluation_rows(encoder, [sample(i, "dev") for i in range(1500)]))
    dev = [row for row in dev if len(row[0]) <= 1024]
    calibration = suite_rows(encoder, Path(__file__).parent / "calibration.jsonl")
    fitting = dev + calibration
    temperature = round(fitted_temperature(answers(model, head, fitting), fitting), 3)
    found = {"temperature": temperature, **facts}
    say(f"temperature {temperature}")
    weights = save_head(head, out / "run", temperature, facts)
    open_kinds = list(data.evaluation_rows(encoder, [sample(i, "dev", OPEN) for i in range(400)]))
    for name, rows in (("calibration", calibration), ("dev", dev), ("dev of what the test has none of", open_kinds), ("test", suite_rows(encoder, arguments.suite)),
                       ("everyday", suite_rows(encoder, arguments.everyday))):  # fmt: skip
        evaluate(name, model, head, encoder, rows, temperature, found)
    records, _ = fixture(out, tokenizer, weights, temperature, 6 if arguments.smoke else 48, arguments.everyday)
    compare(records, model, head, encoder, temperature)
    (out / "metrics.json").write_text(json.dumps(found, indent=1))


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
