"""Parties of a joint training, in memory: their sizes, examples, and a curator between them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ppspeech.network import run_in_threads
from ppspeech.protocols.sums.aggregation import CuratorSession, PartySession

SIZES = (20, 60, 45)
TERMS: dict[str, Any] = {"model": "logistic", "features": 3, "classes": 2, "radius": 1.0, "epsilon": 1.0}
PUBLIC: dict[str, Any] = TERMS | {"penalty": 0.05, "sizes": SIZES}
PRIVATE: dict[str, Any] = TERMS | {"regularization": 4.0, "parties": 3}


def together(
    parties: Sequence[Callable[[Callable[[np.ndarray], np.ndarray]], Any]], counts: Sequence[int]
) -> list[Any]:
    """Run parties who each get a way to add up, and a curator, in memory."""

    def hub(channels: Any) -> None:
        session = CuratorSession({str(place): channel for place, channel in channels.items()})
        for count in counts:
            session.sum(count)

    programs: list[Callable[[Any], Any]] = [
        lambda channels, work=work: work(PartySession(channels[0], len(parties)).sum) for work in parties
    ]
    return run_in_threads([hub, *programs])[1:]


def examples(n: int, features: int = 3, classes: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, features, generator=generator, dtype=torch.double)
    return x / x.norm(dim=1, keepdim=True), torch.arange(n) % classes
