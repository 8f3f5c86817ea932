"""Small games that the tests of this room play."""

import torch
from torch import Tensor

from ppspeech.filters import ClassTask, MinimaxProblem


def people(samples: int = 240, inputs: int = 6, subjects: int = 3, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs `(n, D)` in which a subject and a two-class task shift the mean along directions of their own."""
    generator = torch.Generator().manual_seed(seed)
    subject = torch.arange(samples) % subjects
    task = (torch.arange(samples) // subjects) % 2
    directions = torch.randn(subjects + 2, inputs, generator=generator, dtype=torch.float64)
    noise = torch.randn(samples, inputs, generator=generator, dtype=torch.float64)
    return noise + directions[subject] + directions[subjects + task], subject, task


def game(rho: float = 10.0, ridge: float = 1e-2, **sizes: int) -> MinimaxProblem:
    x, subject, task = people(**sizes)
    x = (x - x.mean(0)) / x.std(0)
    return MinimaxProblem(
        x, [ClassTask(subject, int(subject.max()) + 1, ridge)], [ClassTask(task, 2, ridge)], rho, ridge
    )
