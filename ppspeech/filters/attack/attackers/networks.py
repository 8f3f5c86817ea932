"""Networks: several at once, that know the word, and say what they agree on."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from ppspeech.filters.attack.attackers.attacker import CLIP_ATTACKERS, Clips, Scorer
from ppspeech.filters.attack.attackers.gaussians import Scale, posteriors

Draw = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Rows of an epoch to inputs and labels."""

MEMBERS, HIDDEN, EPOCHS, BATCH, RATE, DECAY, DROPOUT = 4, 160, 60, 128, 5e-3, 1e-2, 0.2


class Ensemble(nn.Module):
    """Networks of one hidden layer side by side; each starts and drops units on its own. Shape: `(n, inputs)` to
    `(members, n, classes)`.
    """

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(MEMBERS, inputs, HIDDEN) * (2 / inputs) ** 0.5)
        self.offset = nn.Parameter(torch.zeros(MEMBERS, 1, HIDDEN))
        self.last = nn.Parameter(torch.randn(MEMBERS, HIDDEN, classes) * (1 / HIDDEN) ** 0.5)
        self.bias = nn.Parameter(torch.zeros(MEMBERS, 1, classes))

    def forward(self, x: Tensor) -> Tensor:
        """Scores by every member."""
        hidden = functional.relu(torch.matmul(x, self.first) + self.offset)
        return functional.dropout(hidden, DROPOUT, self.training) @ self.last + self.bias


def knowing_words(features: Tensor, words: Tensor, number: int) -> Tensor:
    """Features `(..., d)` with which word it is beside them, `(..., d + number)`."""
    return torch.cat([features, functional.one_hot(words.clamp_max(number - 1), number).to(features)], dim=-1)


@CLIP_ATTACKERS.register("networks")
def networks(clips: Clips, labels: Tensor, classes: int, seed: int) -> Scorer[Clips]:
    """Four networks of one hidden layer, with weight decay and dropout; their posteriors are averaged."""
    scale, number = Scale(clips.features), int(clips.words.max()) + 1

    def inputs(some: Clips) -> Tensor:
        return knowing_words(scale(some.features).float(), some.words, number)

    x = inputs(clips)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        ensemble = Ensemble(x.shape[1], classes).to(x.device)
        fit_(ensemble, lambda rows: (x[rows], labels[rows]), len(labels), EPOCHS)
    met = torch.bincount(labels, minlength=classes) > 0

    @torch.no_grad()
    def scores(asked: Clips) -> Tensor:
        return posteriors(ensemble(inputs(asked)).double().log_softmax(-1).logsumexp(0), met)

    return scores


def fit_(network: nn.Module, shown: Draw, count: int, epochs: int) -> None:
    """Train a network to name people, by AdamW with a rate that falls to 0; `shown` gives inputs and labels of rows.
    What comes out may have further axes in front, of members that are trained at once.
    """
    optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
    batches = -(-count // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=epochs * batches, pct_start=0.1)
    network.train()
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(count), BATCH):
            x, labels = shown(rows)
            said = network(x)
            loss = functional.cross_entropy(
                said.flatten(0, -2), labels.expand(said.shape[:-1]).flatten(), label_smoothing=0.05
            )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    network.eval()
