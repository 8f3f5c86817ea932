"""What an attacker makes of a filter that it knows: layers undone, and samples guessed by a network.

A published filter is known. A sigmoid, a standardization and a linear layer of full column rank lose nothing: whoever
has what comes out has what went in. What remains beyond the last layer that loses something can be guessed from
public speech of other people that is sent through the same filter. Proposition 4.8 in docs/theory/filters.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional

from ppspeech.audio import Frames, MfccConfig, length_mask
from ppspeech.errors import ModelError
from ppspeech.filters.attack.attackers.attacker import frames_inside
from ppspeech.filters.modules import LinearFilter, Mlp, SigmoidNetwork, Standardized
from ppspeech.filters.noisy import NoisyFilter

Inverse = Callable[[Tensor], Tensor]
Undo = Callable[[Tensor, float], Tensor]
"""As an Inverse; told from how near to its limits on a function is flat."""

SATURATED = 8.0  # a sigmoid nearer to 0 or 1 than so many rounding errors is undone as if it were so far
WORST_CONDITION = 1e6  # of a linear layer that is undone
HIDDEN, EPOCHS, BATCH, RATE = 256, 60, 128, 2e-3


@runtime_checkable
class Layered(Protocol):
    """A filter that says what it is made of: modules that are applied one after another."""

    def steps(self) -> Sequence[nn.Module]:
        """The modules, first to last."""
        ...


@dataclass(frozen=True, eq=False)
class KnownFilter:
    """A filter that the attacker knows and, where there are some, unfiltered samples of other people."""

    module: nn.Module
    public: Tensor | None = None  # `(samples, D)`, or for filters on frames `(frames, D)`; nobody's who is attacked
    mfcc: MfccConfig | None = None  # of the frames that went in: where they come back, a voice embedding hears them

    def views(self, filtered: Tensor | Frames, seed: int) -> dict[str, Inverse]:
        """What the attacker makes of filtered samples, by name: `inverted` where a layer that bends can be undone,
        `reconstructed` where there is public speech. Raises ModelError if the filter does not give such samples.
        """
        made: dict[str, Inverse] = {}
        undo = inverse(self.module)
        if undo is not None:
            made["inverted"] = undo
        if self.public is not None:
            made["reconstructed"] = reconstructor(self.module, self.public, seed)
        features = filtered.features if isinstance(filtered, Frames) else filtered
        for name, view in made.items():
            try:
                view(features[:1])
            except RuntimeError as error:
                raise ModelError(f"these samples do not come from that filter ({name}): {error!s:.200}") from None
        return made


def seen_as(view: Inverse, samples: Tensor | Frames) -> Tensor | Frames:
    """Samples as the attacker sees them, padding at 0."""
    if not isinstance(samples, Frames):
        return view(samples)
    inside = length_mask(samples.lengths, samples.features.shape[1]).unsqueeze(-1)
    return Frames(view(samples.features).masked_fill(~inside, 0.0), samples.lengths)


def ranked(train: Tensor | Frames) -> Inverse:
    """Every feature replaced by the normal score of its rank among the training samples: what a function that only
    rises, such as one that saturates, does to a feature is undone without knowing it.
    """
    pool = frames_inside(train) if isinstance(train, Frames) else train
    ordered = pool.detach().double().sort(0).values.mT.contiguous()

    def scores(y: Tensor) -> Tensor:
        flat = y.detach().double().flatten(0, -2).mT.contiguous()
        below, upto = (torch.searchsorted(ordered, flat, right=right) for right in (False, True))
        share = (below + upto + 1) / (2 * ordered.shape[1] + 2)
        normal: Tensor = torch.special.ndtri(share.double())
        return normal.mT.reshape(y.shape)

    return scores


def inverse(module: nn.Module) -> Inverse | None:
    """What undoes a filter from its end, as far as nothing was lost; None if that is affine, or nothing: attackers
    are as good on affine maps of what they see.
    """
    undone: list[Undo] = []
    bent = 0  # how many of them up to the last one that is not affine
    for step in reversed(_steps(module)):
        undo = _undo(step)
        if undo is None:
            break
        undone.append(undo)
        if not isinstance(step, nn.Linear | LinearFilter | nn.Identity):
            bent = len(undone)
    if not bent:
        return None

    @torch.no_grad()
    def undo_all(y: Tensor) -> Tensor:
        edge = SATURATED * torch.finfo(y.dtype).eps
        y = y.detach().double()
        for undo in undone:
            y = undo(y, edge)
        return y

    return undo_all


def reconstructor(module: nn.Module, public: Tensor, seed: int) -> Inverse:
    """A network that guesses samples from what the filter makes of them, trained on public ones `(samples, D)`.

    It guesses them in standardized form and is given the filtered sample twice: as it is, and undone where that can be.
    """
    if public.ndim != 2 or len(public) < 2:
        raise ModelError(f"public samples are (samples >= 2, D), got {tuple(public.shape)}")
    undo = inverse(module)
    with torch.no_grad():
        filtered = module(public.to(next(module.parameters(), public)))

    def shown(y: Tensor) -> Tensor:
        plain = y.detach().double()
        return plain if undo is None else torch.cat([plain, undo(y)], dim=-1)

    given, target = shown(filtered), public.detach().double()
    mean, scale = given.mean(0), given.std(0).clamp_min(1e-9)
    wanted = ((target - target.mean(0)) / target.std(0).clamp_min(1e-9)).float()
    x = ((given - mean) / scale).float()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = nn.Sequential(
            nn.Linear(x.shape[1], HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
            nn.Linear(HIDDEN, wanted.shape[1]),
        ).to(x.device)  # fmt: skip
        optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=1e-2)
        for _ in range(EPOCHS):
            for rows in torch.split(torch.randperm(len(x)), BATCH):
                loss = functional.mse_loss(network(x[rows]), wanted[rows])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
        network.eval()

    @torch.no_grad()
    def guess(y: Tensor) -> Tensor:
        return cast(Tensor, network(((shown(y) - mean) / scale).float())).double()

    return guess


class _Standardize(nn.Module):
    """The first step of a Standardized filter."""

    def __init__(self, outer: Standardized) -> None:
        super().__init__()
        self.mean, self.scale = outer.mean, outer.scale


def _steps(module: nn.Module) -> list[nn.Module]:
    """What a filter is made of, first to last; a module that is not known is one step."""
    match module:
        case Layered():
            return [each for step in module.steps() for each in _steps(step)]
        case NoisyFilter():
            return _steps(module.filter)
        case Standardized():
            return [_Standardize(module), *_steps(module.filter)]
        case SigmoidNetwork():
            return [module.first, nn.Sigmoid(), module.second, nn.Sigmoid()]
        case Mlp():
            return _steps(module.layers)
        case nn.Sequential():
            return [each for step in module for each in _steps(step)]
    return [module]


def _undo(step: nn.Module) -> Undo | None:
    """The inverse of one step, or None if it loses something."""
    match step:
        case nn.Identity():
            return lambda y, _: y
        case nn.Sigmoid():
            return lambda y, edge: torch.logit(y.clamp(edge, 1 - edge))
        case nn.Tanh():
            return lambda y, edge: torch.atanh(y.clamp(-1 + edge, 1 - edge))
        case nn.LeakyReLU():
            slope = step.negative_slope
            return (lambda y, _: torch.where(y < 0, y / slope, y)) if slope > 0 else None
        case nn.Softplus():
            # y = log(1 + exp(b x)) / b
            sharp = step.beta
            return lambda y, edge: torch.log(torch.expm1((sharp * y).clamp_min(edge))) / sharp
        case _Standardize():
            mean, scale = step.mean.detach().double(), step.scale.detach().double()
            return lambda y, _: y * scale + mean
        case nn.Linear() | LinearFilter():
            return _undo_linear(step.weight.detach().double(), step.bias)
    return None


def _undo_linear(weight: Tensor, bias: Tensor | None) -> Undo | None:
    """x from y = W x + b by the pseudo-inverse, where W `(d, D)` has full column rank."""
    values = torch.linalg.svdvals(weight)
    if weight.shape[0] < weight.shape[1] or not float(values[-1]) * WORST_CONDITION > float(values[0]):
        return None
    back = torch.linalg.pinv(weight)
    shift = torch.zeros(len(weight)).to(weight) if bias is None else bias.detach().double()
    return lambda y, _: (y - shift) @ back.mT
