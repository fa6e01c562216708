"""What the trainers compute a step with: the log, the device, and a step's gradients, plainly or as CUDA graphs."""

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LOG = []


def say(*parts):
    line = " ".join(str(p) for p in parts)
    LOG.append(line)
    print(line, flush=True)


class Captured:
    """Forward and backward of one shape of batch as a CUDA graph: most of a small model's step is launches. Gradients land
    in the parameters' own tensors, so that a step of the optimizer follows as after any backward."""

    def __init__(self, step, batch, warm_ups, pool=None):
        self.inputs = [x.clone() for x in batch]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(warm_ups):
                step(self.inputs)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, pool=pool):
            self.figures = step(self.inputs)

    def __call__(self, batch):
        for mine, given in zip(self.inputs, batch):
            mine.copy_(given)
        self.graph.replay()
        return self.figures.clone()


class Stepper:
    """Gradients of a batch; by graphs where `graphs`, of batches of at most `longest` tokens if that is given. `compute`
    takes the batch and gives what is minimised and the figures to return, a tensor without gradients."""

    def __init__(self, parameters, compute, graphs, longest=None, warm_ups=3):
        self.parameters, self.compute, self.graphs, self.captured = parameters, compute, graphs, {}
        self.longest, self.warm_ups = longest, warm_ups
        # Its graphs share one memory pool, which goes with the last of them: no other stepper may name it then.
        self.pool = None
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)

    def run(self, batch):
        torch._foreach_zero_([p.grad for p in self.parameters])
        total, figures = self.compute(batch)
        total.backward()
        return figures

    def __call__(self, batch):
        shape = batch[0].shape
        if not self.graphs or (self.longest is not None and shape[1] > self.longest):
            return self.run(batch)
        if shape not in self.captured:
            self.captured[shape] = Captured(self.run, batch, self.warm_ups, self.pool)
            self.pool = self.captured[shape].graph.pool()
        return self.captured[shape](batch)
