"""Private Baum-Welch and private EM: what each utterance says about a model, and M-steps from released sums.

The bounds, the noise and the guarantee are `ppspeech.privacy.mechanisms.StatisticsRelease`; all that is done here with
what it releases is post-processing.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytorch_lightning as lightning
import torch
from torch import Tensor

from ppspeech.audio import length_mask
from ppspeech.bundle import DataTouch
from ppspeech.data import Batch, SpeechDataModule
from ppspeech.errors import ModelError, PrivacyError
from ppspeech.models.gaussian import GaussianMixture, Gaussians, mixture_statistics
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, Topology, set_logits_, utterance_hmm_statistics
from ppspeech.privacy import Guarantee
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.mechanisms import ALONE, Moments, StatisticsRelease, UnitSums
from ppspeech.training.module import SpeechModule
from ppspeech.training.private.record import counts_touch

Watch = Callable[[SpeechModule, Tensor], None]
"""Who is shown the module before a step, and the numbers that the step released."""

LEAST, MOST = 0.2, 5.0
"""How much one iteration may change a variance, and the smallest share of an even count: limits of post-processing."""


class StatisticsPrivacy:
    """Private EM for a module that asks its `statistics_hook`: an epoch is an iteration, and one release.

    Formal guarantee: what the module holds after all epochs is (epsilon, delta)-DP under the release's relation, if its
    start is public, and the number of epochs and the bounds were chosen without looking at private speech. The
    vocabulary and metrics of private validation data are not covered.
    """

    def __init__(self, release: StatisticsRelease) -> None:
        self.release, self.spent = release, 0
        self._start = "public"
        self._sums: UnitSums | None = None
        self.watch: Watch | None = None

    @property
    def planned(self) -> int:
        """Releases that the budget was split for."""
        return self.release.iterations

    @property
    def touches(self) -> tuple[DataTouch, ...]:
        """How many there are, and how long they spoke, enters noisy sums alone."""
        return (counts_touch(self.release.relation),)

    @property
    def terms(self) -> dict[str, Any]:
        """What a resumed run must agree on."""
        return {**asdict(self.release), "weights": list(self.release.weights)}

    def attach(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        """Give the module's E-step to the release; of several ranks each has whole speakers where these are protected.

        Raises PrivacyError if the data cannot be shared so.
        """
        assert isinstance(module, SpeechModule)
        if trainer.world_size > 1 and self.release.relation.unit == "speaker":
            data = trainer.datamodule  # type: ignore[attr-defined]
            if not isinstance(data, SpeechDataModule):
                raise PrivacyError("several processes share speakers by a SpeechDataModule: give one, or one device")
            data.by_speaker = True
        self._start = ", ".join(getattr(module, "public", ())) or "public"
        module.statistics_hook = self

    def add(self, module: SpeechModule, batch: Batch) -> None:
        """The E-step of a batch, kept apart by unit."""
        if self._sums is None:
            speakers = len(module.trainer.datamodule.vocabulary["speaker"])  # type: ignore[attr-defined]
            self._sums = UnitSums(self.release, speakers)
        self._sums.add(_moments(module, batch), batch["lengths"], batch["speaker"])

    def said(self, module: SpeechModule, batch: Batch, units: Tensor) -> Tensor:
        """What each of the `units` 0, 1, ..., one an utterance, adds to a release, `(units, numbers)`: for audits."""
        moments, found = _moments(module, batch), []
        for unit in range(int(units.max()) + 1):
            own, sums = units == unit, UnitSums(self.release, 1)
            sums.add(Moments(*(part[own] for part in moments.parts)), batch["lengths"][own], 0 * units[own])
            found.append(sums.total())
        return torch.stack(found)

    def maximize_(self, module: SpeechModule) -> None:
        """A release, then the M-step. Raises PrivacyError if all releases that the budget was split for are made."""
        if self.spent >= self.release.iterations:
            raise PrivacyError(f"the budget was split over {self.release.iterations} releases, and all are made")
        assert self._sums is not None
        noisy, self._sums = self._sums.released(module.ranks), None
        self.spent += 1
        if self.watch is not None:
            scaled = [part * scale for part, scale in zip(noisy.parts, self.release.scales, strict=True)]
            self.watch(module, torch.cat([part.flatten() for part in scaled]))
        if isinstance(module.model, HiddenMarkovModel):
            maximize_hmm_(module.model, noisy, self.release)
        else:
            assert isinstance(module.model, GaussianMixture)
            maximize_mixture_(module.model, noisy, self.release)

    def after_backward(self) -> None:
        """Nothing: there are no gradients."""

    def finish(self, module: lightning.LightningModule) -> None:
        """Nothing: the module stays one whose training was private."""

    def account(self) -> Accountant:
        """The releases so far, as events."""
        account = Accountant(self.release.relation)
        if self.spent:
            account.compose(self.release.event, self.spent)
        return account

    def guarantee(self) -> Guarantee:
        """What the releases so far promise together."""
        chosen = "bounds and number of iterations were chosen without the private recordings"
        alone = ALONE.format(unit=self.release.relation.unit)
        assumptions = (f"the start is public: {self._start}", chosen, alone)
        return self.account().guarantee(self.release.delta, assumptions=assumptions)


def _moments(module: SpeechModule, batch: Batch) -> Moments:
    """What each utterance of a batch says about the module's model."""
    x, lengths = batch["features"], batch["lengths"]
    if isinstance(module.model, HiddenMarkovModel):
        return hmm_moments(module.model, x, lengths, batch[str(module.label)])
    if isinstance(module.model, GaussianMixture):
        return mixture_moments(module.model, x, lengths)
    raise PrivacyError(f"no private statistics are known for a {type(module.model).__name__}")


@torch.no_grad()
def hmm_moments(bank: HiddenMarkovModel, features: Tensor, lengths: Tensor, labels: Tensor) -> Moments:
    """What each utterance of features `(batch, frames, d)` says about word models of one diagonal Gaussian a state."""
    found = utterance_hmm_statistics(bank, features, lengths, labels)
    count, first, second = about(diagonal(bank), found.emissions, labels)
    own = (labels.unsqueeze(-1) == torch.arange(bank.models, device=labels.device)).to(count)
    moves = found.transitions[:, free_transitions(bank.topology, count)]
    return Moments(
        own[:, :, None] * count[:, None],
        own[:, :, None, None] * first[:, None],
        second,
        count.sum(-1, keepdim=True),
        own[:, :, None] * moves[:, None],
    )


@torch.no_grad()
def maximize_hmm_(bank: HiddenMarkovModel, noisy: Moments, release: StatisticsRelease) -> None:
    """The M-step from released sums: post-processing.

    Transitions get a Dirichlet prior around the released ones, as heavy as the noise: max(1, sd) a free entry.
    """
    reestimate_(diagonal(bank), noisy, release)
    if release.transition_share == 0:
        return
    allowed, _, _ = bank.topology.masks(bank.transition_logits)
    free = free_transitions(bank.topology, bank.transition_logits)
    counts = bank.log_transitions().exp()
    prior = max(1.0, release.mechanism.sigma / release.scales[4]) * free.sum(-1, keepdim=True).clamp_min(1)
    counts = counts * prior
    counts[:, free] += noisy.transitions[0].clamp_min(0.0)
    set_logits_(bank.transition_logits, counts, allowed)


def free_transitions(topology: Topology, like: Tensor) -> Tensor:
    """The transitions that the topology allows and does not force, `(states, states)`."""
    allowed, _, _ = topology.masks(like)
    return allowed & (allowed.sum(-1, keepdim=True) > 1)


@torch.no_grad()
def mixture_moments(model: GaussianMixture, features: Tensor, lengths: Tensor) -> Moments:
    """What each utterance says about a diagonal background model: a bank of one, its cells the components."""
    gaussians = _one_diagonal(model)
    inside = length_mask(lengths, features.shape[1]).to(features.dtype)
    found = mixture_statistics(model, features, inside)
    sums = torch.cat([found.second, found.first, found.count.unsqueeze(-1)], dim=-1).to(features.dtype)
    count, first, second = about(gaussians, sums, torch.zeros_like(lengths))
    mass = count.sum(-1, keepdim=True)
    return Moments(count.unsqueeze(1), first.unsqueeze(1), second, mass, count.new_zeros(len(count), 1, 0))


@torch.no_grad()
def maximize_mixture_(model: GaussianMixture, noisy: Moments, release: StatisticsRelease) -> None:
    """The M-step of a background model from released sums: post-processing."""
    gaussians = _one_diagonal(model)
    count = reestimate_(gaussians, noisy, release)[0]
    model.gaussians.set_moments_(gaussians.mean[0], gaussians.variances()[0])
    model.logits.copy_((count / count.sum()).log())


def diagonal(bank: HiddenMarkovModel) -> Gaussians:
    """The Gaussians of a bank of one diagonal Gaussian a state; ModelError for any other."""
    emission = bank.emission
    if not isinstance(emission, GaussianEmission) or emission.components > 1 or emission.gaussians.kind != "diagonal":
        raise ModelError("private Baum-Welch needs one Gaussian of diagonal covariance a state")
    return emission.gaussians


def _one_diagonal(model: GaussianMixture) -> Gaussians:
    """The mixture's Gaussians as a bank of one model, `(1, components)`."""
    bank = model.gaussians
    if bank.kind != "diagonal" or model.batch:
        raise ModelError(f"private EM needs one mixture of diagonal covariances, got {bank.kind!r} {model.batch}")
    one = Gaussians((1, model.components), bank.features, "diagonal", bank.floor, bank.mean.dtype).to(bank.mean.device)
    one.set_moments_(bank.mean.detach().unsqueeze(0), bank.variances().detach().unsqueeze(0))
    return one


@torch.no_grad()
def about(gaussians: Gaussians, sums: Tensor, models: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Counts `(n, cells)`, whitened first `(n, cells, d)` and pooled second moments `(n, d)` about the bank.

    `gaussians`: diagonal, of shape `(models, cells)`; `sums`: of [x^2, x, 1] by cell, `(n, cells, 2 d + 1)`; `models`:
    which model each record belongs to, `(n,)`.
    """
    d = gaussians.features
    square, first, count = sums[..., :d], sums[..., d:-1], sums[..., -1]
    mean, std = gaussians.mean[models], gaussians.variances().sqrt()[models]
    owned = count.unsqueeze(-1)
    second = (square - 2 * mean * first + owned * mean.square()) / std.square() - owned
    return count, (first - owned * mean) / std, second.sum(-2)


def kept_share(estimate: Tensor, variance: Tensor | float, most: Tensor | float = 1.0) -> Tensor:
    """Which share of each value an empirical Bayes estimate keeps, in [0, 1): prior / (prior + noise).

    The prior variance is what all the values' squares have beyond noise, the less noisy ones weighing more. `estimate`:
    values with independent Gaussian noise; `variance`: of the noise, > 0, broadcast against the values; `most`: the
    largest prior variance believed: pure noise must not look like a large change.

    >>> kept_share(torch.tensor([1.0, -1.0, 1.0]), 0.25, most=2.0).tolist()
    [0.75, 0.75, 0.75]
    """
    noise = torch.as_tensor(variance, dtype=estimate.dtype, device=estimate.device).expand_as(estimate)
    trust = noise.square().reciprocal()
    prior = (trust * (estimate.square() - noise)).sum() / trust.sum()
    prior = prior.clamp_min(0.0).minimum(torch.as_tensor(most).to(prior))
    return prior / (prior + noise)


@torch.no_grad()
def reestimate_(gaussians: Gaussians, noisy: Moments, release: StatisticsRelease) -> Tensor:
    """Set a diagonal bank from released sums (post-processing); returns the counts believed `(models, cells)`, > 0."""
    count_sd, first_sd, second_sd = (release.mechanism.sigma / scale for scale in release.scales[:3])
    total = noisy.mass[0].sum().clamp_min(1.0)
    even = total / noisy.count[0].numel()
    uneven = noisy.count[0] - even
    count = (even + kept_share(uneven, count_sd**2, most=even.square()) * uneven).clamp_min(LEAST * even)
    shift, noise = noisy.first[0] / count.unsqueeze(-1), (first_sd / count.unsqueeze(-1)).square()
    kept = kept_share(shift, noise)
    # Moving a mean by k y, with y the true shift and noise, takes 2 k y (y - noise) - (k y)^2 off the second moment.
    explained = kept * (2 * (shift.square() - noise) - kept * shift.square())
    change = noisy.second[0] / total
    change = kept_share(change, (second_sd / total).square()) * change
    ratio = 1 + change - (count.unsqueeze(-1) * explained).sum((0, 1)) / total
    variances = gaussians.variances()
    gaussians.set_moments_(gaussians.mean + kept * shift * variances.sqrt(), variances * ratio.clamp(LEAST, MOST))
    return count
