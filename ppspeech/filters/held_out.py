"""Recordings to judge a filter by: some of every person's, so that attackers know everyone they are asked about."""

import torch
from torch import Tensor

from ppspeech.errors import ModelError


def hold_out(people: Tensor, recordings: Tensor, share: float, seed: int) -> Tensor:
    """Draw recordings of every person to test on, bool `(samples,)`; no recording is divided.

    Args:
        people: whose, `(samples,)`.
        recordings: which, `(samples,)`; each by one person.
        share: of each person's recordings, rounded; at least one, and never all.
        seed: of the draw.

    Raises:
        ModelError: for a person with a single recording, which cannot be in both parts.

    >>> hold_out(torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([0, 0, 1, 2, 3, 3]), 0.5, seed=0).sum() >= 2
    tensor(True)
    """
    if not 0 < share < 1:
        raise ModelError(f"the share to test on must be more than 0 and less than 1, got {share}")
    generator = torch.Generator().manual_seed(seed)
    chosen = []
    for person in sorted(set(people.tolist())):
        own = torch.tensor(sorted(set(recordings[people == person].tolist())))
        if len(own) < 2:
            raise ModelError(f"person {person} has {len(own)} recording: leave those out who have fewer than two")
        count = min(len(own) - 1, max(1, round(share * len(own))))
        chosen.append(own[torch.randperm(len(own), generator=generator)[:count]])
    return torch.isin(recordings, torch.cat(chosen))
