"""The diffusion transformer's training, its encoders with it: flow matching on latents, then a student of its own guided
steps.

What is trained first predicts the velocity noise - latents at a time that is shifted as the product's schedule is; one song
in ten has the empty condition. The student starts as a copy and learns, at the schedule's eight times only, the mean velocity
of several guided steps of its teacher to the next of them: guidance and small steps are in its weights then, since the product
gives a turbo checkpoint neither."""

import copy

import torch
import torch.nn.functional as F

from ace import sampler
from ace.dit import context_of
from ace.files import TIMBRE
from captured_steps import DEVICE, Stepper, say
from compose_tools import adam, clip, set_rate

SUBSTEPS = 3
AVERAGE = 0.999


class Composer(torch.nn.Module):
    """The parts of a model that are trained here."""

    def __init__(self, model):
        super().__init__()
        self.text_encoder, self.condition_encoder = model.text_encoder, model.condition_encoder
        self.transformer = model.transformer
        self.register_buffer("silence", model.silence)

    def condition(self, text, lyric):
        """Rows, and which are there; ids are -1 where there is none."""
        words = self.text_encoder(text.clamp_min(0))
        voice = self.text_encoder.rows(lyric.clamp_min(0))
        return self.condition_encoder(words, voice, self.silence[:, :TIMBRE], text >= 0, lyric >= 0)

    def silence_context(self, frames, count):
        """Of text to music."""
        silence = self.silence.repeat(1, -(-frames // self.silence.shape[1]), 1)
        return context_of(silence[:, :frames]).expand(count, -1, -1)

    def emptied(self, rows, dropped):
        """The empty condition where `dropped` [batch] is 1: all rows alike are as good as one."""
        return torch.where(dropped.view(-1, 1, 1) > 0, self.condition_encoder.null_condition_emb, rows)

    def forward(self, x, t, context, text, lyric, dropped):
        rows, present = self.condition(text, lyric)
        return self.transformer(context, x, t, self.emptied(rows, dropped), present)


def flow_loss(composer, latents, noise, t, context, text, lyric, dropped):
    at = t.view(-1, 1, 1)
    return F.mse_loss(composer(at * noise + (1 - at) * latents, t, context, text, lyric, dropped), noise - latents)


def flow_inputs(bank, count):
    latents, *rest = bank.batch(count)
    # One time in each of `count` equal parts, so that a batch's loss depends less on chance.
    even = (torch.arange(count, device=DEVICE) + torch.rand(count, device=DEVICE)) / count
    dropped = (torch.rand(count, device=DEVICE) < 0.1).float()
    return [latents, torch.randn_like(latents), sampler.shifted(even), *rest, dropped]


def stepper_of(parameters, loss_of, graphs):
    def compute(batch):
        loss = loss_of(*batch)
        return loss, loss.detach()

    return Stepper(parameters, compute, graphs)


def same_by_graphs(composer, bank):
    """Whether a captured step gives the plain one's gradients, by a bank of one length; for a process of its own, since a
    capture that fails can leave CUDA unusable."""
    parameters = [p for p in composer.parameters() if p.requires_grad]
    batches = [flow_inputs(bank, 8) for _ in range(2)]
    found = []
    for graphs in (False, True):
        stepper = stepper_of(parameters, lambda *batch: flow_loss(composer, *batch), graphs)
        for batch in batches:
            stepper(batch)
        found.append(torch.cat([p.grad.flatten() for p in parameters]).clone())
    torch.cuda.synchronize()
    return float((found[1] - found[0]).norm() / found[0].norm()) < 1e-2


class Average:
    """Of a model's parameters over the last steps."""

    def __init__(self, model):
        self.model = copy.deepcopy(model).requires_grad_(False).eval()
        self.pairs = list(self.model.parameters()), list(model.parameters())
        self.steps = 0

    def update(self):
        self.steps += 1
        weight = 1 - min(AVERAGE, self.steps / (self.steps + 9))
        with torch.no_grad():
            torch._foreach_mul_(self.pairs[0], 1 - weight)
            torch._foreach_add_(self.pairs[0], self.pairs[1], alpha=weight)


def optimize(composer, course, inputs, compute, rate, graphs, name, count, hear=None):
    """Steps while the course lasts; the averaged model. `hear` is told the average so far, four times on the way."""
    parameters = [p for p in composer.parameters() if p.requires_grad]
    optimizer, average = adam(parameters), Average(composer)
    stepper, losses, heard = stepper_of(parameters, compute, graphs), [], 0.2
    for step in course:
        set_rate(optimizer, course.rate(rate, 300))
        losses.append(stepper(inputs()))
        clip(parameters, 1.0)
        optimizer.step()
        average.update()
        if course.due():
            mean = float(torch.stack(losses[-200:]).mean())
            losses = losses[-200:]
            say(f"{name} {step} {course.done:.2f}: loss {mean:.4f}, {course.pace(count):.0f} songs a second")
        if hear and course.done > heard:
            hear(average.model)
            heard += 0.2
    return average.model, float(torch.stack(losses[-200:]).mean())


def unused(composer):
    """Parameters that a checkpoint has and no song uses get no gradient."""
    composer.condition_encoder.timbre_encoder.special_token.requires_grad_(False)


def train(composer, bank, run, graphs, hear):
    count, course = 4 if run.smoke else 96, run.course("dit", 4)
    unused(composer)
    average, loss = optimize(composer, course, lambda: flow_inputs(bank, count), lambda *b: flow_loss(composer, *b), 1e-3,
                             graphs, "dit", count, hear)  # fmt: skip
    return average, {"steps": course.step, "loss": round(loss, 4)}


class Guided:
    """A velocity between, or past, those under the empty and under the song's condition; both in one pass."""

    def __init__(self, composer, context, text, lyric, guidance):
        rows, present = composer.condition(text, lyric)
        self.composer, self.context, self.guidance = composer, context, guidance
        self.rows, self.present = rows, present
        if guidance != 1:
            empty = composer.emptied(rows, torch.ones(len(rows), device=rows.device))
            self.rows, self.present = torch.cat([rows, empty]), torch.cat([present, present])
            self.context = torch.cat([context, context])

    def __call__(self, x, t):
        times = t if torch.is_tensor(t) else torch.full((len(x),), t, device=x.device)
        if self.guidance == 1:
            return self.composer.transformer(self.context, x, times, self.rows, self.present)
        x, times = torch.cat([x, x]), torch.cat([times, times])
        song, none = self.composer.transformer(self.context, x, times, self.rows, self.present).chunk(2)
        return none + self.guidance * (song - none)


@torch.no_grad()
def lesson(teacher, bank, count, guidance):
    """Noisy latents at one of the schedule's times, and the mean velocity of the teacher's way to the next."""
    latents, context, text, lyric = bank.batch(count)
    times = torch.tensor([*sampler.schedule(), 0.0], device=DEVICE)
    step = torch.randint(sampler.STEPS, (count,), device=DEVICE)
    t, end = times[step], times[step + 1]
    at = t.view(-1, 1, 1)
    start = x = at * torch.randn_like(latents) + (1 - at) * latents
    velocity, width = Guided(teacher, context, text, lyric, guidance), (t - end) / SUBSTEPS
    for i in range(SUBSTEPS):
        x = x - width.view(-1, 1, 1) * velocity(x, t - i * width)
    return [start, (start - x) / (t - end).view(-1, 1, 1), t, context, text, lyric]


def distil(teacher, bank, run, graphs, guidance):
    student = copy.deepcopy(teacher).requires_grad_(True).train()
    unused(student)
    count, course = 4 if run.smoke else 64, run.course("student", 3)

    def compute(x, wanted, t, context, text, lyric):
        return F.mse_loss(student(x, t, context, text, lyric, torch.zeros_like(t)), wanted)

    average, loss = optimize(student, course, lambda: lesson(teacher, bank, count, guidance), compute, 3e-4, graphs, "distil", count)
    return average, {"steps": course.step, "loss": round(loss, 4), "guidance": guidance}


@torch.no_grad()
def generate(composer, text, lyric, frames, seed=0, guidance=1.0, steps=sampler.STEPS, dcw=sampler.DCW, hints=None):
    """Latents of songs from token ids, as the product makes them if guidance is 1; after `hints` where there are some."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(len(text), frames, 64, generator=generator).to(text.device)
    context = composer.silence_context(frames, len(text)) if hints is None else context_of(hints)
    velocity = Guided(composer, context, text, lyric, guidance)
    return sampler.sample(velocity, noise, sampler.schedule(steps), dcw)
