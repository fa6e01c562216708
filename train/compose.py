"""Trains assay-mini-compose, a small ACE-Step 1.5, from scratch on one GPU and writes it in the diffusers layout.

usage: python3 train/compose.py OUT [--minutes M] [--until STAGE] [--vae MODEL_DIR] [--seed S] [--smoke]

OUT/model          the checkpoint: text encoder, condition encoder, transformer, audio tokenizer and detokenizer, VAE
OUT/model/planner  the language model that writes metadata and audio codes
OUT/metrics.json   what every stage reached, and how well songs follow captions that training never saw
OUT/train.log      what was printed
OUT/state          what every finished stage left; a run that finds them goes on after the last one

M minutes (23.5) are this run's, up to and with the stage it is to end with. Stages, with their share: vae 0.33, the
autoencoder; latents 0.09, of many songs; codes 0.02, audio codes for them; dit 0.36, the diffusion transformer with its text
and condition encoders, before which come the detectors; student 0.10, of its guided steps; planner 0.04
(compose_planner.py); evaluation 0.06. With --vae the autoencoder is that of a model that is there, and its time goes to the others.
In three runs: --minutes 9 --until vae; --minutes 9.3 --until dit; --minutes 6. Needs torch alone.

The budget, for one H200 (990 TFLOP/s dense in bf16; convolutions of 128 channels and small products reach a tenth to a fifth
of it; memory 4.8 TB/s):
  vae       forward 0.10 TFLOP for a second of sound, with backward 0.31; about 7 GB of activations written and read. At 100
            TFLOP/s and 3 TB/s 5 ms a second of sound: 38 s of sound a step, 0.2 s a step, 2,400 steps in 8 minutes.
  latents   0.075 TFLOP a second of sound: 1,000 s of sound a second, 2.2 minutes for 8,000 songs of 16 s.
  dit       2.3 million weights, 6 FLOP for each and token: 96 songs of 9 s on average are 21,000 tokens, and 12,000 of the
            encoders, 0.4 TFLOP a step, which is 4 ms at a tenth of the peak. Measured, as a CUDA graph: 20 ms a step, for the
            work between the products is not fused; 13,000 steps in 4.4 minutes reach the goals.
  student   three guided steps of the teacher without gradients for each of its own. Measured: 43 ms a step of 64 songs.
torch.compile (Snake only) and CUDA graphs are tried first and left alone where they fail or are slower."""

import argparse
import copy
import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

import compose_dit  # noqa: E402
import compose_eval  # noqa: E402
import compose_latents  # noqa: E402
import compose_planner  # noqa: E402
import compose_plans  # noqa: E402
import compose_vae  # noqa: E402
from ace import bpe, files  # noqa: E402
from ace.audio_tokens import AudioDetokenizer, AudioTokenizer  # noqa: E402
from ace.blocks import Sizes, initialize  # noqa: E402
from ace.conditions import ConditionEncoder, TextEncoder  # noqa: E402
from ace.dit import Dit  # noqa: E402
from ace.vae import Vae  # noqa: E402
from captured_steps import DEVICE, LOG, say  # noqa: E402
from compose_data import captions, score  # noqa: E402
from compose_tools import Run, rounded  # noqa: E402

SHARES = {"vae": 0.33, "latents": 0.09, "codes": 0.02, "dit": 0.36, "student": 0.10, "planner": 0.04, "evaluation": 0.06}
VOCABULARY = 1024
LEVELS = (8, 5, 5, 5)  # 1,000 audio codes, few enough that a planner sees each of them often


def new_model():
    """6.9 million weights, 14 MB in bf16. The autoencoder's encoder takes 2.9 of them and can't be smaller: its width is
    twice the latents' at every rate."""
    text = Sizes(hidden=96, inner=128, heads=3, kv_heads=1, head_dim=32)
    condition = Sizes(hidden=96, inner=32, heads=3, kv_heads=1, head_dim=32)
    dit = Sizes(hidden=192, inner=368, heads=6, kv_heads=2, head_dim=32, window=64)
    codes = Sizes(hidden=96, inner=128, heads=3, kv_heads=1, head_dim=32)
    model = files.Ace(TextEncoder(text, 2, VOCABULARY), ConditionEncoder(condition, 1, 1, text.hidden),
                      Dit(dit, 4, condition.hidden, patch=1), AudioTokenizer(codes, 1, LEVELS), AudioDetokenizer(codes, 1),
                      Vae((1, 1, 1, 1, 1), 80), compose_latents.clock())  # fmt: skip
    for part, layers in ((model.text_encoder, 2), (model.condition_encoder, 1), (model.transformer, 4),
                         (model.audio_tokenizer, 1), (model.audio_token_detokenizer, 1)):  # fmt: skip
        initialize(part, layers)
    with torch.no_grad():
        model.text_encoder.embed_tokens.weight.mul_(1 / model.text_encoder.embed_tokens.weight.std())
        model.transformer.scale_shift_table.mul_(0.1)
        model.transformer.proj_out_conv.weight.mul_(0.1)
        for time_embedding in (model.transformer.time_embed, model.transformer.time_embed_r):
            time_embedding.time_proj.weight.mul_(0.1)
        for layer in model.transformer.layers:
            layer.scale_shift_table.mul_(0.1)[:, [2, 5]] += 1  # gates are open
    return model


def graphs_work():
    """By a process of its own: a capture that fails can leave CUDA unusable."""
    if DEVICE != "cuda":
        return False
    probe = subprocess.run([sys.executable, __file__, "-", "--probe-graphs"], capture_output=True, text=True)
    if probe.returncode:
        say("no CUDA graphs:", probe.stderr.strip().splitlines()[-1:] or probe.stdout[-200:])
    return probe.returncode == 0


def probe_graphs():
    torch.manual_seed(0)
    model = new_model().to(DEVICE)
    shape = (16, 1, len(compose_latents.WORDINGS))
    text = torch.randint(0, VOCABULARY, (*shape, compose_latents.TEXT), device=DEVICE)
    lyric = torch.randint(0, VOCABULARY, (*shape, compose_latents.LYRIC), device=DEVICE)
    bank = compose_latents.Bank(torch.randn(16, 100, 64, device=DEVICE), text, lyric, (4,))
    composer = compose_dit.Composer(model)
    compose_dit.unused(composer)
    sys.exit(not compose_dit.same_by_graphs(composer, bank))


class EndOfRun(Exception):
    """The stages that were asked for are done."""


class Stages:
    """Runs a stage, or takes up what it left in an earlier run."""

    def __init__(self, run):
        self.run, self.found = run, {}
        (run.out / "state").mkdir(parents=True, exist_ok=True)

    def expect(self, name):
        if name not in self.run.shares:
            raise EndOfRun

    def __call__(self, name, model, work):
        """`work()` returns figures and whatever else is to be kept."""
        self.expect(name)
        file = self.run.out / "state" / f"{name}.pt"
        if file.exists():
            kept = torch.load(file, map_location=DEVICE)
            model.load_state_dict(kept["model"])
            self.found[name] = kept["found"]
            say(f"{name}: from {file.name}")
            return kept["extra"]
        begin = time.time()
        found, extra = work()
        self.found[name] = {**found, "seconds": round(time.time() - begin)}
        torch.save({"model": model.state_dict(), "found": self.found[name], "extra": extra}, file.with_suffix(".part"))
        file.with_suffix(".part").replace(file)
        say(f"{name}: {time.time() - begin:.0f} s")
        return extra


def train_tokenizer(run):
    count = 300 if run.smoke else 4000
    scores = [score.make(run.seed * 10_000_000 + i, "train", 4) for i in range(count)]
    return bpe.train(captions.corpus(scores, run.seed), VOCABULARY)


def adopt(model, composer):
    """A trained composer's parameters into the model."""
    for part in ("text_encoder", "condition_encoder", "transformer"):
        getattr(model, part).load_state_dict(getattr(composer, part).state_dict())


GOALS = {"tempo_within_5_percent": 0.8, "key_right": 0.6, "instrument_present_when_asked": 0.8}


def measured(model, jury, ways, run):
    """{name: (composer, how)} -> figures of the songs that each makes, and the name of those whose weakest figure is best, by what
    it is to be."""
    found = {}
    for name, (composer, how) in ways.items():
        adopt(model, composer)
        found[name] = jury.quick(model, 1 if run.smoke else 96, **how)
        say(f"{name}: {found[name]}")
    return found, max(found, key=lambda name: min(found[name][figure] - goal for figure, goal in GOALS.items()))


def train_student(model, jury, bank, run, graphs):
    """Guidance is what the teacher's songs are best with; the model keeps the teacher's or the student's weights, whichever
    make the better songs in the product's eight steps."""
    teacher = copy.deepcopy(compose_dit.Composer(model))
    ways = {f"guidance {g}": (teacher, {"guidance": g, "steps": 24, "dcw": None}) for g in (1.0, 1.5, 2.5, 4.0)}
    by_guidance, best = measured(model, jury, ways, run)
    student, found = compose_dit.distil(teacher, bank, run, graphs, float(best.split()[1]))
    by_steps, kept = measured(model, jury, {"teacher": (teacher, {}), "student": (student, {})}, run)
    adopt(model, teacher if kept == "teacher" else student)
    say("kept:", kept)
    return {**found, "by_guidance": by_guidance, "in_eight_steps": by_steps, "kept": kept}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=23.5, help="of this run")
    parser.add_argument("--until", choices=SHARES, default="evaluation", help="the stage to end with")
    parser.add_argument("--vae", type=Path, help="a model whose autoencoder is taken as it is")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--commit", default="", help="the tree's commit, for the record")
    parser.add_argument("--probe-graphs", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--smoke", action="store_true", help="a few steps of everything, on any machine")
    return parser.parse_args()


def main():
    arguments = parse()
    torch.set_float32_matmul_precision("high")  # TF32
    if arguments.probe_graphs:
        probe_graphs()
    begin = time.time()
    names = list(SHARES)
    shares = {name: SHARES[name] for name in names[: names.index(arguments.until) + 1]}
    run = Run(arguments.out, arguments.seed, arguments.minutes, arguments.smoke, shares)
    torch.manual_seed(arguments.seed)
    stages, model = Stages(run), new_model().to(DEVICE)
    weights = {name: sum(p.numel() for p in part.parameters()) for name, part in model.named_children()}
    say(f"{sum(weights.values())} weights: {weights}; {DEVICE}, torch {torch.__version__}")
    tokenizer = train_tokenizer(run)
    say(f"tokenizer of {len(tokenizer)} tokens, {time.time() - begin:.0f} s")
    try:
        compose(model, tokenizer, stages, run, arguments.vae)
    except EndOfRun:
        pass
    figures = {"seed": run.seed, "commit": arguments.commit, "weights": weights, "stages": stages.found}
    (run.out / "metrics.json").write_text(json.dumps(figures, indent=1) + "\n")
    say(f"done, {time.time() - begin:.0f} s")
    with open(run.out / "train.log", "a") as file:
        file.write("\n".join(LOG) + "\n")


def plan(model, stages, run, graphs):
    """A planner beside the model. The model is made and waits to be measured: what fails here is said, and that is all."""

    stages.expect("planner")
    try:
        stages("planner", model, lambda: (compose_planner.train_apart(run, graphs), None))
    except Exception as error:
        say("no planner:", str(error))
        stages.found["planner"] = {"failed": type(error).__name__}


def taken(directory, model, run):
    """The autoencoder of a model that is there, and what it is worth for the songs of today."""
    model.vae.load_state_dict(files.load(directory).vae.state_dict())
    found = compose_vae.judge(model.vae, run)
    return {"sha256": hashlib.sha256((directory / "vae" / files.DIFFUSERS).read_bytes()).hexdigest(), **found}


def compose(model, tokenizer, stages, run, given=None):
    """All stages; the model is written before the student's too, so that there is one early. `given`: whose autoencoder is
    taken."""

    def vae():
        found = compose_vae.train(model.vae, run) if given is None else taken(given, model, run)
        rounded(model.vae)
        return found, None

    def latents():
        bank = compose_latents.build(model.vae, tokenizer, run)
        return {"songs": len(bank.latents)}, bank.state()

    def hear(composer):
        listened_to = copy.deepcopy(model)
        adopt(listened_to, composer)
        say(f"as it is now: {jury.quick(listened_to, 1 if run.smoke else 96)}")

    def dit():
        composer, found = compose_dit.train(compose_dit.Composer(model), bank, run, graphs, hear)
        adopt(model, composer)
        return found, None

    stages("vae", model, vae)
    bank = compose_latents.Bank.of(stages("latents", model, latents))
    stages("codes", model, lambda: (compose_latents.train_tokens(model, bank, run), None))
    compose_planner.save_codes(model, bank, compose_latents.first_seed(run), run.out)
    bank.hints, bank.silence = compose_latents.hints_of(model, bank), model.silence
    stages.expect("dit")
    graphs = graphs_work()
    say("CUDA graphs:", graphs)
    jury = compose_eval.Jury(tokenizer, run.seed, model.vae, **({"songs": 2, "steps": 2, "seconds": 1} if run.smoke else {}))
    stages("dit", model, dit)
    files.save(model, run.out / "model", tokenizer.json())
    stages.expect("student")
    stages("student", model, lambda: (train_student(model, jury, bank, run, graphs), None))
    files.save(model, run.out / "model", tokenizer.json())
    plan(model, stages, run, graphs)
    stages.expect("evaluation")
    shipped = files.load(run.out / "model").to(DEVICE)
    stages("evaluation", model, lambda: (evaluate(shipped, jury, run), None))


def evaluate(model, jury, run):
    """Of the files; songs by way of the planner's codes too, where there is a planner."""
    found, folder = jury.evaluate(model, 1 if run.smoke else 512), run.out / "model/planner"
    if (folder / "config.json").exists():
        found["by way of planned codes"] = compose_plans.songs(model, folder, jury, 1 if run.smoke else 96)
        say("by way of planned codes:", found["by way of planned codes"])
    return found


if __name__ == "__main__":
    main()
