"""People who contribute to personal filters in the tests, and the filter they start from."""

import torch
from torch import Tensor

from ppspeech.filters.modules import LinearFilter
from tests.filters.games import people


def crowd(subjects: int = 4, samples: int = 240, seed: int = 0) -> list[tuple[Tensor, Tensor]]:
    """Each subject's inputs and task labels."""
    x, subject, task = people(samples, 6, subjects, seed)
    return [(x[subject == s], task[subject == s]) for s in range(subjects)]


def common_filter(seed: int = 1) -> LinearFilter:
    generator = torch.Generator().manual_seed(seed)
    return LinearFilter.of(torch.linalg.qr(torch.randn(6, 3, generator=generator, dtype=torch.float64)).Q.mT)
