"""Online principal components with differential privacy: regret of following a perturbed leader (Dwork et al. 2014).

Utterances of AudioMNIST come one by one, in an order drawn once: 52 numbers each, scaled by the public built-in voices
and clipped to norm 1. Before each a space of four directions is named; the loss is the square of what lies outside it.
The leader is the best space for all so far. With privacy the sums so far are told with noise, each utterance in at most
L = 13 of them, so that everything that is named in all 4,800 rounds together is (epsilon, 1e-6)-DP for one utterance.
Regret is the loss beyond that of the best space in hindsight, which nobody knows in advance.

Needs the corpus audiomnist; --quick takes about 30 s.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.jl import spoken_rows
from ppspeech.figures import Figure
from ppspeech.intervals import Mean
from ppspeech.pictures import blank, save
from ppspeech.privacy import Relation
from ppspeech.privacy.gradients import clip_norm
from ppspeech.privacy.mechanisms import RunningMoments, principal_directions

DELTA = 1e-6
EPSILONS = (1.0, 4.0, 16.0)
SPACE = 4  # directions
RECORD = Relation("record", "add_remove")
SHOWN = 100  # points of a curve


@EXPERIMENTS.register("online-pca")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Save `online_pca.png`; `quick`: 1,000 rounds, epsilon 4 and 16, 2 draws instead of 3."""
    x = spoken_rows()[0]
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    x = clip_norm(x[order][: 1_000 if quick else None], 1.0)
    draws, epsilons = (2, EPSILONS[1:]) if quick else (3, EPSILONS)
    best = best_losses(x)
    curves = {"without privacy": [regret(x, plain_leaders(x), best)]}
    for epsilon in epsilons:
        terms: dict[str, Any] = {"delta": DELTA, "radius": 1.0, "features": x.shape[1], "relation": RECORD}
        private = RunningMoments.calibrated(epsilon=epsilon, rounds=len(x), **terms)
        curves[f"epsilon {epsilon:g}"] = [regret(x, private.release(x).value, best) for _ in range(draws)]
    curves["a space drawn once"] = [regret(x, _random(x), best)]
    picture = folder / "online_pca.png"
    _plot({name: torch.stack(found).mean(0) for name, found in curves.items()}, picture)
    about = f"{len(x):,} rounds, {SPACE} of {x.shape[1]} directions; best in hindsight {float(best):.4f}; {picture}"
    figures = []
    for name, found in curves.items():
        ends = [float(each[-1]) / len(x) for each in found]
        metric = f"online_pca.{name.replace('epsilon ', 'eps').replace(' ', '_')}.regret"
        if len(ends) > 1:
            note = f"a round; {about}; interval over {len(ends)} draws"
            figures.append(Figure.mean(metric, Mean.of(ends), note=note))
        else:
            figures.append(Figure(metric, ends[0], note=f"a round; {about}"))
    return figures


def plain_leaders(x: Tensor) -> Tensor:
    """The sums of second moments after every round, without noise, `(n, d, d)`."""
    return (x.unsqueeze(2) * x.unsqueeze(1)).cumsum(0)


def best_losses(x: Tensor) -> Tensor:
    """The mean loss of the best space for all rounds."""
    return _outside(x, principal_directions(x.mT @ x, SPACE)).mean()


def regret(x: Tensor, moments: Tensor, best: Tensor) -> Tensor:
    """The loss of each round's leader, from the sums before it, beyond the best's, added up, `(n,)`."""
    spaces = torch.linalg.eigh(moments[:-1]).eigenvectors[:, :, -SPACE:].mT
    first = torch.eye(SPACE, x.shape[1], dtype=x.dtype)
    lost = [_outside(x[:1], first), x[1:].square().sum(1) - (spaces @ x[1:].unsqueeze(2)).square().sum((1, 2))]
    return (torch.cat(lost) - best).cumsum(0)


def _outside(x: Tensor, space: Tensor) -> Tensor:
    return x.square().sum(1) - (x @ space.mT).square().sum(1)


def _random(x: Tensor) -> Tensor:
    drawn = torch.randn(x.shape[1], x.shape[1], generator=torch.Generator().manual_seed(0), dtype=x.dtype)
    return (drawn @ drawn.mT).expand(len(x), -1, -1)


def _plot(curves: dict[str, Tensor], path: Path) -> None:
    picture = blank(7, 5)
    axes = picture.subplots()
    for name, curve in curves.items():
        at = torch.linspace(1, len(curve), SHOWN).long()
        axes.plot(at, curve[at - 1], label=name, linestyle="-" if name.startswith("eps") else "--")
    axes.set(xlabel="rounds", ylabel="regret", title="Online PCA of utterances")
    axes.legend()
    save(picture, path)
