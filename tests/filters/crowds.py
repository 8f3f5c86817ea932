"""Made-up people who say words: what attackers should find is known."""

import torch
from torch import Tensor


def crowd(
    *, person: float = 0.0, manner: float = 0.0, people: int = 10, words: int = 3, takes: int = 10, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Clips `(n, 6)`, whose, and which word: x = word + person + (a manner of each to say each word) + noise.

    The manners of one person add up to 0 over the words: nothing of them is in the mean of all clips. Words, people
    and manners are the same for every seed, the clips are not.
    """
    generator = torch.Generator().manual_seed(7)
    centers = 4 * torch.randn(words, 1, 6, generator=generator) + person * torch.randn(people, 6, generator=generator)
    manners = torch.randn(words, people, 6, generator=generator)
    centers = centers + manner * (manners - manners.mean(0))
    number = torch.arange(takes * words * people)
    whose, said = number % people, number // people % words
    noise = torch.randn(len(number), 6, generator=torch.Generator().manual_seed(100 + seed))
    return centers[said, whose] + noise, whose, said
