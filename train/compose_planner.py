"""Trains the planner of assay-mini-compose, a small Qwen3 that writes a song's metadata and audio codes, and writes it in
transformers' layout.

usage: python3 train/compose_planner.py OUT [--minutes M] [--seed S] [--graphs] [--smoke]

OUT/state/planner_codes.pt   read: audio codes of many songs and their seeds, which compose.py leaves
OUT/model/tokenizer          read: the merges are the composer's
OUT/model/planner            the planner
OUT/state/planner.json       what it reached

compose.py runs this as a process of its own, so that nothing that fails here is the end of that run; it can be run again
without a GPU, on what it reads alone. Training captions are made by chance (compose_data/plans.py); losses are of songs that
are withheld, plans are judged (compose_plans.py) by captions of the test split. Needs torch alone.

0.8 million weights, 64 rows of 256 tokens a step: 0.08 TFLOP."""

import argparse
import copy
import json
import multiprocessing
import os
import subprocess
import sys
import time
from array import array
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent))

import compose_plans  # noqa: E402
from ace import bpe, files  # noqa: E402
from ace.audio_tokens import POOL  # noqa: E402
from ace.blocks import Sizes, initialize  # noqa: E402
from ace.conditions import CausalLm  # noqa: E402
from captured_steps import DEVICE, Stepper, say  # noqa: E402
from compose_data import plans  # noqa: E402
from compose_dit import Average  # noqa: E402
from compose_tools import Course, adam, clip, rounded, set_rate  # noqa: E402

SIZES = Sizes(hidden=128, inner=320, heads=4, kv_heads=2, head_dim=32)
LAYERS = 3
# What a nat of the metadata's mean loss counts beside one of the codes': a wrong tempo is heard all through a song, and a song's codes
# are known only roughly anyway.
METADATA = 20.0
CODES_FILE, FOUND_FILE = "state/planner_codes.pt", "state/planner.json"


# ---- within compose.py


@torch.no_grad()
def save_codes(model, bank, first_seed, out):
    """Audio codes [songs, codes] of a bank, and the songs' seeds; a few MB, where the bank has hundreds."""
    if (out / CODES_FILE).exists():
        return
    tokenizer, songs = model.audio_tokenizer, len(bank.latents)
    windows = bank.latents.reshape(-1, POOL, bank.latents.shape[-1]).split(16384)
    codes = torch.cat([tokenizer.quantizer.codes(tokenizer.pooled(part)) for part in windows]).reshape(songs, -1)
    seeds = torch.arange(first_seed, first_seed + songs)
    count = int(torch.tensor(tokenizer.quantizer.levels).prod())
    torch.save({"codes": codes.to("cpu", torch.int16), "seeds": seeds, "count": count}, out / CODES_FILE)


def train_apart(run, graphs):
    """By a process of its own; once more without graphs where it fails early. Raises where it fails."""
    seconds, begin = run.course("planner").seconds, time.time()
    command = [sys.executable, __file__, str(run.out), "--minutes", str(seconds / 60), "--seed", str(run.seed)]
    command += ["--smoke"] * run.smoke
    if DEVICE == "cuda":
        torch.cuda.empty_cache()
    for more in (["--graphs"], []) if graphs else ([],):
        done = subprocess.run(command + more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=2 * seconds + 120)  # fmt: skip
        say(done.stdout.rstrip())
        if done.returncode == 0 or time.time() - begin > seconds / 2:
            break
    done.check_returncode()
    return json.loads((run.out / FOUND_FILE).read_text())


# ---- rows


PROCESS = {}  # what a process that makes rows keeps


def begin_process(tokenizer):
    PROCESS["tokenizer"] = tokenizer


def packed_rows(work):
    """A song's rows as one buffer of token ids, each of TOKENS, and their bounds."""
    rows = plans.rows(PROCESS["tokenizer"], *work)
    ids = array("h", [token for given, _, _ in rows for token in given + [0] * (plans.TOKENS - len(given))])
    return ids.tobytes(), [(begin, codes_begin, len(given)) for given, begin, codes_begin in rows]


class Rows:
    """Of songs, one a kind: token ids [songs, kinds, TOKENS], and where each answer begins, its codes begin and it ends."""

    def __init__(self, tokenizer, codes, seeds):
        needed = plans.CODES * plans.LONGEST
        # A smoke run's songs are shorter.
        songs = [(song * -(-needed // len(song)))[:needed] for song in codes]
        processes = max(1, len(os.sched_getaffinity(0)) - 1)
        with multiprocessing.get_context("fork").Pool(processes, begin_process, (tokenizer,)) as pool:
            ids, bounds = zip(*pool.imap(packed_rows, zip(seeds, songs), 16))
        shape = (len(seeds), len(plans.KINDS), -1)
        self.ids = torch.frombuffer(bytearray(b"".join(ids)), dtype=torch.int16).reshape(shape).to(DEVICE)
        self.bounds = torch.tensor(bounds, device=DEVICE)

    def at(self, songs, kinds):
        ids, bounds = self.ids[songs, kinds].long(), self.bounds[songs, kinds]
        # One shape is one graph; without one, padding is work.
        return [ids if DEVICE == "cuda" else ids[:, : bounds[:, 2].max()], bounds]

    def some(self, first, end, count):
        """Of the songs from `first` to before `end`."""
        songs = torch.randint(first, end, (count,), device=DEVICE)
        return self.at(songs, torch.randint(len(plans.KINDS), (count,), device=DEVICE))


# ---- training


def new_planner(vocabulary):
    planner = CausalLm(SIZES, LAYERS, vocabulary)
    initialize(planner, LAYERS)
    return planner.to(DEVICE)


def cost(losses):
    """Of metadata and of codes together."""
    return (METADATA * losses[0] + losses[1]) / (METADATA + 1)


def loss_of(planner, ids, bounds):
    """What is minimized; of it the mean over the answers' metadata and over their codes."""
    logits = planner.logits(planner.hidden(ids))[:, :-1]
    each = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none").view(len(ids), -1)
    place = torch.arange(1, ids.shape[1], device=ids.device)
    begin, codes, end = (bounds[:, i : i + 1] for i in range(3))
    parts = [(place >= first) & (place < last) for first, last in ((begin, codes), (codes, end))]
    metadata, codes = ((each * part).sum() / part.sum().clamp_min(1) for part in parts)
    return cost([metadata, codes]), torch.stack([metadata, codes]).detach()


@torch.no_grad()
def withheld_losses(planner, rows, first, at_once=64):
    """Of metadata and codes, in rows with everything, of the songs from `first` on."""
    songs = torch.arange(first, len(rows.ids), device=DEVICE).split(at_once)
    found = [loss_of(planner, *rows.at(part, torch.zeros_like(part)))[1] * len(part) for part in songs]
    return torch.stack(found).sum(0) / (len(rows.ids) - first)


def train(planner, rows, first_withheld, course, graphs, at_once):
    """The averaged weights, as they were when withheld songs' loss was least: few songs are seen often."""
    parameters = list(planner.parameters())
    optimizer, average = adam(parameters, decay=0.1), Average(planner)
    stepper = Stepper(parameters, lambda batch: loss_of(planner, *batch), graphs)
    least, best, check, losses = float("inf"), None, 0.1, []
    for step in course:
        set_rate(optimizer, course.rate(2e-3))
        losses.append(stepper(rows.some(0, first_withheld, at_once)))
        clip(parameters, 1.0)
        optimizer.step()
        average.update()
        if course.done >= check:
            check += 0.1
            training, withheld = torch.stack(losses[-200:]).mean(0), withheld_losses(average.model, rows, first_withheld)
            losses = losses[-200:]
            say(f"planner {step} {course.done:.2f}: metadata {training[0]:.3f}, codes {training[1]:.3f}; "
                f"withheld {withheld[0]:.3f}, {withheld[1]:.3f}; {course.pace(at_once):.0f} rows a second")  # fmt: skip
            if float(cost(withheld)) < least:
                least, best = float(cost(withheld)), copy.deepcopy(average.model.state_dict())
    if float(cost(withheld_losses(average.model, rows, first_withheld))) > least:
        average.model.load_state_dict(best)
    return average.model


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=2, help="of training and of what comes before it")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--graphs", action="store_true", help="steps as CUDA graphs")
    parser.add_argument("--smoke", action="store_true", help="a few steps, on any machine")
    return parser.parse_args()


def main():
    begin, arguments = time.time(), parse()
    torch.manual_seed(arguments.seed)
    torch.set_float32_matmul_precision("high")  # TF32
    songs = torch.load(arguments.out / CODES_FILE)
    merges = bpe.Tokenizer.read((arguments.out / "model/tokenizer/tokenizer.json").read_text())
    tokenizer = merges.with_added(plans.added_tokens(songs["count"]))
    rows = Rows(tokenizer, songs["codes"].tolist(), songs["seeds"].tolist())
    planner, count = new_planner(len(tokenizer)), len(rows.ids)
    first_withheld = count - max(1, min(256, count // 8))
    weights = sum(p.numel() for p in planner.parameters())
    say(f"planner: {weights} weights, {len(tokenizer)} tokens, {count} songs, {time.time() - begin:.0f} s")
    course = Course(max(begin + 60 * arguments.minutes - time.time(), 1), 3 if arguments.smoke else None)
    at_once = 2 if arguments.smoke else 64 if DEVICE == "cuda" else 16
    planner = train(planner, rows, first_withheld, course, arguments.graphs, at_once)
    rounded(planner)
    files.save_planner(planner, arguments.out / "model/planner", tokenizer.json())
    metadata, codes = withheld_losses(planner, rows, first_withheld).tolist()
    found = {"weights": weights, "songs": count, "steps": course.step, "loss_of_withheld_metadata": round(metadata, 4),
             "loss_of_withheld_codes": round(codes, 4)}  # fmt: skip
    plans_judged = 1 if arguments.smoke else 128 if DEVICE == "cuda" else 32
    found.update(compose_plans.judge(planner, tokenizer, arguments.seed, plans_judged))
    (arguments.out / FOUND_FILE).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
