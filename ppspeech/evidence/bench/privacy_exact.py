"""Exact noise: what sums of whole numbers and discrete noise cost in time, beside float sums and float noise.

Both sides do the same work in turn: an iteration of private Baum-Welch (E-step, release, M-step), and a step of DP-SGD
(per-sample gradients, clipping, noise, the optimizer) of a network with 5,000 weights. The float side is what was
common before: clipped float32 vectors added up, and N(0, sigma^2) in float32, whose last bits can tell.

Needs nothing.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from ppspeech.data import SpeechDataModule
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import run_seconds, threads
from ppspeech.figures import Figure
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, left_right
from ppspeech.privacy import Relation
from ppspeech.privacy.gradients import GradientPlan
from ppspeech.privacy.mechanisms import StatisticsRelease, UnitSums, normalized
from ppspeech.privacy.samplers import sample_discrete_gaussian, standard_normal
from ppspeech.training.private import hmm_moments, maximize_hmm_, per_sample_gradients

WEIGHTS, UNITS = 5_000, 64


@BENCHES.register("privacy-exact")
def run(quick: bool) -> list[Figure]:
    """Measure both, on one thread; `quick` repeats less."""
    rounds = 5 if quick else 25
    with threads(1):
        statistics, sgd = _statistics(rounds), _gradients(rounds)
        noise = min(run_seconds(lambda: sample_discrete_gaussian(PLAN.scale, WEIGHTS)) for _ in range(4 * rounds))
    note = "exact over float, worst of the two below; at most 1.05 and 1.3 are wanted"
    return [
        Figure("privacy.exact.overhead", max(statistics.value, sgd.value), "x", note=note),
        statistics,
        sgd,
        Figure("privacy.exact.noise_s", noise, "s", note=f"{WEIGHTS:,} discrete Gaussian numbers"),
    ]


def _compared(name: str, exact: Callable[[], object], floats: Callable[[], object], rounds: int, note: str) -> Figure:
    """The fastest of both, run in turn: whatever disturbs one disturbs the other."""
    exact(), floats()
    ours, theirs = zip(*((run_seconds(exact), run_seconds(floats)) for _ in range(rounds)), strict=True)
    mine, peer = min(ours), min(theirs)
    note = f"{1000 * mine:.2f} ms against {1000 * peer:.2f} ms, {note}"
    return Figure(f"privacy.exact.{name}.overhead", mine / peer, "x", note=note)


def _statistics(rounds: int) -> Figure:
    data = SpeechDataModule("synthetic", {"speakers": 8, "takes": 2}, test=0.25)
    data.setup()
    batches = list(data.train_dataloader())
    words, features = len(data.vocabulary["word"]), batches[0]["features"].shape[-1]
    bank = HiddenMarkovModel(left_right(8), GaussianEmission(words, 8, features, covariance="diagonal"))
    nn.init.normal_(bank.emission.gaussians.mean)  # type: ignore[arg-type]
    release = StatisticsRelease(1.0)

    def exact() -> None:
        sums = UnitSums(release, 1)
        for batch in batches:
            moments = hmm_moments(bank, batch["features"], batch["lengths"], batch["word"])
            sums.add(moments, batch["lengths"], batch["speaker"])
        maximize_hmm_(bank, sums.released(), release)

    def floats() -> None:
        total: Tensor | float = 0.0
        for batch in batches:
            moments = hmm_moments(bank, batch["features"], batch["lengths"], batch["word"])
            total = total + normalized(moments, batch["lengths"], release).sum(0)
        assert isinstance(total, Tensor)
        noisy = total + release.mechanism.sigma * standard_normal(total.shape, like=total)
        maximize_hmm_(bank, release.as_moments(noisy, moments), release)

    count = sum(len(batch["lengths"]) for batch in batches)
    return _compared("statistics", exact, floats, rounds, f"an iteration over {count} utterances")


PLAN = GradientPlan(relation=Relation("record", "add_remove"), noise_multiplier=1.0, sampling=0.1, clip=1.0)


class _Network(nn.Module):
    """Of 5,000 weights."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(39, 99), nn.Tanh(), nn.Linear(99, 10, bias=False), nn.Flatten())
        self.scale = nn.Parameter(torch.ones(50))

    def losses(self, batch: Sequence[Tensor]) -> Tensor:
        """The loss of every row."""
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y, reduction="none") + self.scale.square().mean()


def _gradients(rounds: int) -> Figure:
    generator = torch.Generator().manual_seed(0)
    batch = [torch.randn(UNITS, 39, generator=generator), torch.randint(0, 10, (UNITS,), generator=generator)]
    network = _Network()
    names = [name for name, _ in network.named_parameters()]
    weights = sum(p.numel() for p in network.parameters())
    assert weights == WEIGHTS
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)

    def step(release: Callable[[Sequence[Tensor]], Sequence[Tensor]]) -> None:
        gradients, _ = per_sample_gradients(network, batch, names)
        for parameter, noisy in zip(network.parameters(), release(gradients), strict=True):
            parameter.grad = noisy / UNITS
        optimizer.step()

    def floats(gradients: Sequence[Tensor]) -> list[Tensor]:
        norms = torch.stack([g.reshape(len(g), -1).norm(2, dim=-1) for g in gradients], dim=1).norm(2, dim=1)
        shares = (PLAN.clip / (norms + 1e-6)).clamp(max=1.0)
        sums = [torch.einsum("i,i...", shares, g) for g in gradients]
        return [total + PLAN.noise_multiplier * standard_normal(total.shape, like=total) for total in sums]

    return _compared(
        "sgd",
        lambda: step(lambda gradients: PLAN.release(gradients).value),
        lambda: step(floats),
        4 * rounds,
        f"a step of {weights:,} weights and {UNITS} records",
    )
