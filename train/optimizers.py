"""Muon: momentum whose matrices are made nearly orthogonal (Jordan et al. 2024), with the scale of arXiv 2502.16982.

That scale gives an update the size that AdamW's has, so that both take the same learning rate and decay.
"""

import torch

# The polynomial that drives the singular values of a matrix towards one.
COEFFICIENTS, STEPS = (3.4445, -4.7750, 2.0315), 5


def orthogonal(matrices):
    """Matrices [count, rows, columns] with their singular values near one."""
    a, b, c = COEFFICIENTS
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    x = x.transpose(-1, -2) if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(STEPS):
        gram = x @ x.transpose(-1, -2)
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.transpose(-1, -2) if tall else x).to(matrices.dtype)


class Muon(torch.optim.Optimizer):
    """For the inner matrices of a model; those of one shape are worked on together."""

    def __init__(self, parameters, lr=2e-3, momentum=0.95, weight_decay=0.1):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            by_shape = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape.setdefault(parameter.shape, []).append(parameter)
            for shape, parameters in by_shape.items():
                self.step_together(shape, parameters, group)

    def step_together(self, shape, parameters, group):
        gradients = [p.grad for p in parameters]
        kept = [self.state[p].setdefault("momentum", torch.zeros_like(p)) for p in parameters]
        torch._foreach_mul_(kept, group["momentum"])
        torch._foreach_add_(kept, gradients, alpha=1 - group["momentum"])
        ahead = torch.stack([torch.lerp(g, m, group["momentum"]) for g, m in zip(gradients, kept)])
        updates = list(orthogonal(ahead).unbind())
        torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_add_(parameters, updates, alpha=-group["lr"] * 0.2 * max(shape) ** 0.5)
