"""Mixtures and hidden Markov models from many users' speech that nobody sees: sums of EM statistics, round by round.

The model of every round is public. Each user computes locally what its own speech says about it, the statistics are
added up so that only their sum is seen, and everyone takes the same M-step. With a budget the statistics of one unit
are clipped and the users add noise that nobody knows (`private_statistics` has the bounds and the M-step); without, the
sums are exact to the grid, and what the sequence of models gives away, it gives away. Who takes part is seen by all:
what is protected is what a unit contributes. Proof: Theorem 3.8 in docs/theory/together.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import MfccConfig, length_mask
from ppspeech.bundle import BundleConfig, DataTouch, KeywordHmmSettings, SpeakerUbmSettings
from ppspeech.data import FeatureStore, check_disjoint, load_corpus
from ppspeech.errors import ModelError, RangeError
from ppspeech.models.gaussian import GaussianMixture, MixtureStatistics, mixture_statistics, update_mixture_
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel
from ppspeech.privacy import Guarantee, Relation, Unit, check_count
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.mechanisms import Moments, StatisticsRelease, UnitSums, shares_for
from ppspeech.protocols.sums import JointSum, PlainSum, Shares, WholeSum
from ppspeech.training.private.statistics import (
    free_transitions,
    hmm_moments,
    maximize_hmm_,
    maximize_mixture_,
    mixture_moments,
)
from ppspeech.training.together.terms import JointFit
from ppspeech.training.words import public_bank, public_corpus


@dataclass(frozen=True, kw_only=True)
class SpeechTerms:
    """What all terms about users' speech have in common; chosen without looking at it.

    The budget is for all `rounds` together, whose number is fixed in advance. `unit`: `speaker` where every user is
    one, or `utterance`. `colluders`: how many users may share what they know. `floor`: smallest variance.
    """

    epsilon: float
    delta: float = 1e-5
    rounds: int = 3
    sample_rate: int = 16_000
    unit: Unit = "speaker"
    colluders: int = 1
    floor: float = 1e-2

    @property
    def mfcc(self) -> MfccConfig:
        """The front end."""
        return MfccConfig.at_rate(self.sample_rate)

    def release(self, transition_share: float) -> StatisticsRelease:
        """The bounds and the budget of every round."""
        relation = Relation(self.unit, "add_remove")
        return StatisticsRelease(self.epsilon, self.delta, self.rounds, relation, transition_share)

    def sum(self, add_up: WholeSum, release: StatisticsRelease, parties: int, dimension: int) -> JointSum:
        """What every round asks of the others."""
        return JointSum(add_up, statistics_shares(release, parties, dimension, self.colluders))

    def check(self, parties: int) -> None:
        """Any number of users may train."""

    def examine(self, place: int, *inputs: Any) -> None:  # noqa: ARG002
        """Refuse recordings that do not fit."""
        self.read(*inputs)

    def read(self, given: Any) -> tuple[Tensor, Tensor, list[str]]:
        """Features `(n, frames, d)`, lengths `(n,)` and what is said in each, if it is known.

        `given`: a folder of recordings, as `load_corpus` opens it; or utterances, each `(frames, d)`; or a mapping with
        `utterances` and `words`. Raises `RangeError` for utterances without frames, or of another number of features.
        """
        words: list[str] = []
        if isinstance(given, str):
            corpus = list(load_corpus(given))
            utterances: Sequence[Any] = FeatureStore(self.mfcc).load(corpus)
            words = [str(utterance.word) for utterance in corpus]
        elif isinstance(given, Mapping):
            utterances, words = given["utterances"], list(given["words"])
        else:
            utterances = given
        features = [torch.as_tensor(each, dtype=torch.float32) for each in utterances]
        wanted = self.mfcc.features
        if not features or any(each.ndim != 2 or not len(each) or each.shape[1] != wanted for each in features):
            raise RangeError(
                f"utterances are (frames, {wanted}) each, with at least one frame, and at least one of them"
            )
        return pad_sequence(features, batch_first=True), torch.tensor([len(each) for each in features]), words

    def released(self, module: nn.Module) -> nn.Module:
        """The model as it is."""
        return module


@dataclass(frozen=True, kw_only=True)
class MixtureTraining(SpeechTerms):
    """The public terms of a background model from users' speech, beside those of `SpeechTerms`.

    Without `epsilon` the sums are exact, and guarantee nothing. `components`: of diagonal covariance. `relevance`: of
    the enrollment. `seed`: of the public start, drawn around zero: features are normalized by utterance.
    """

    epsilon: float | None = None  # type: ignore[assignment]  # exact sums are for mixtures alone
    components: int
    relevance: float = 16.0
    seed: int = 0

    begun: ClassVar[DataTouch] = DataTouch("initialization", "untouched", "drawn around zero, by a seed in the terms")

    @property
    def dimension(self) -> int:
        """How many numbers a round adds up."""
        if self.epsilon is None:
            return self.components * (1 + 2 * self.mfcc.features)
        return mixture_dimension(self.start())

    def start(self) -> GaussianMixture:
        """The public start."""
        model = GaussianMixture(self.components, self.mfcc.features, "diagonal", self.floor)
        mean = torch.randn(model.gaussians.mean.shape, generator=torch.Generator().manual_seed(self.seed))
        model.gaussians.set_moments_(mean / 2, torch.ones_like(mean))
        return model

    def fit(self, add_up: WholeSum, parties: int, place: int, *inputs: Any) -> JointFit:  # noqa: ARG002
        """From recordings."""
        features, lengths, _ = self.read(*inputs)
        model = self.start()
        if self.epsilon is None:
            fit_mixture_jointly_(model, PlainSum(add_up), features, lengths, self.rounds)
            relation = Relation(self.unit, "add_remove")
            nothing = Guarantee(kind="none", relation=relation, caveat="the sums of every round are exact")
            return JointFit(model, nothing, Accountant(relation))
        release = self.release(0.0)
        total = self.sum(add_up, release, parties, self.dimension)
        fit_mixture_privately_(model, total, features, lengths, release)
        return JointFit(model, total.guarantee(self.delta), total.account())

    def config(self) -> BundleConfig:
        """The public choices of the released model."""
        sizes: dict[str, Any] = {"components": self.components, "covariance": "diagonal", "floor": self.floor}
        settings = SpeakerUbmSettings(**sizes, relevance=self.relevance)
        return BundleConfig(settings, (), self.mfcc)


@dataclass(frozen=True, kw_only=True)
class WordTraining(SpeechTerms):
    """The public terms of word models from users' speech, beside those of `SpeechTerms`.

    They start from the built-in voices, which every user hears for itself (`public_bank`).

    `words`: the vocabulary, two words or more; `transition_share`: of the budget of every round.
    """

    words: tuple[str, ...]
    states: int = 5
    transition_share: float = 0.1

    begun: ClassVar[DataTouch] = DataTouch(
        "initialization", "untouched", "all begin with models of the built-in voices"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        if len(self.words) < 2 or len(set(self.words)) < len(self.words):
            raise ModelError(f"word models need two words or more, all different, got {list(self.words)}")

    @property
    def dimension(self) -> int:
        """How many numbers a round adds up."""
        bank = self.config().build()
        assert isinstance(bank, HiddenMarkovModel)
        return hmm_dimension(bank)

    def examine(self, place: int, *inputs: Any) -> None:
        """As of all speech; also raises `CorpusError` for a folder with recordings that the start is trained on."""
        super().examine(place, *inputs)
        if isinstance(inputs[0], str):
            check_disjoint(load_corpus(inputs[0]), [public_corpus("synthetic", self.words)])

    def read(self, given: Any) -> tuple[Tensor, Tensor, list[str]]:
        """As of all speech; also raises `RangeError` for words that are not in the vocabulary."""
        features, lengths, said = super().read(given)
        unknown = set(said) - set(self.words)
        if len(said) != len(lengths) or unknown:
            raise RangeError(
                f"every utterance is one of {', '.join(self.words)}, got {', '.join(sorted(unknown)) or said}"
            )
        return features, lengths, said

    def start(self) -> HiddenMarkovModel:
        """Where all begin: models of the built-in voices."""
        return public_bank(self.words, self.mfcc, self.states, floor=self.floor)

    def fit(self, add_up: WholeSum, parties: int, place: int, *inputs: Any) -> JointFit:  # noqa: ARG002
        """From recordings of words."""
        features, lengths, said = self.read(*inputs)
        labels = torch.tensor([self.words.index(word) for word in said])
        bank = self.start()
        release = self.release(self.transition_share)
        total = self.sum(add_up, release, parties, self.dimension)
        fit_hmm_privately_(bank, total, features, lengths, labels, release)
        return JointFit(bank, total.guarantee(self.delta), total.account())

    def config(self) -> BundleConfig:
        """The public choices of the released model."""
        settings = KeywordHmmSettings(
            states=self.states, components=1, covariance="diagonal", floor=self.floor, skips=0, must_finish=False
        )
        return BundleConfig(settings, self.words, self.mfcc)


def statistics_shares(release: StatisticsRelease, parties: int, dimension: int, colluders: int = 1) -> Shares:
    """One user's part of the noise of every round: all rounds together meet the budget, against so many colluders."""
    return shares_for(
        "skellam",
        epsilon=release.epsilon,
        delta=release.delta,
        parties=parties,
        sensitivity=release.mechanism.sensitivity,
        dimension=dimension,
        relation=release.relation,
        colluders=colluders,
        releases=release.iterations,
    )


def mixture_dimension(model: GaussianMixture) -> int:
    """How many numbers a private round adds up: counts, first moments, pooled second moments, mass."""
    features = model.gaussians.features
    return model.components * (1 + features) + features + 1


def hmm_dimension(bank: HiddenMarkovModel) -> int:
    """How many numbers a private round adds up, transitions too; for one Gaussian a state, else `ModelError`."""
    if not isinstance(bank.emission, GaussianEmission) or bank.emission.components > 1:
        raise ModelError("private Baum-Welch needs one Gaussian of diagonal covariance a state")
    models, cells, features = bank.emission.gaussians.mean.shape
    free = int(free_transitions(bank.topology, bank.transition_logits).sum())
    return models * cells * (1 + features) + features + 1 + models * free


@torch.no_grad()
def fit_mixture_jointly_(
    model: GaussianMixture, total: PlainSum, features: Tensor, lengths: Tensor, rounds: int
) -> None:
    """Be one user of EM without noise, for any covariance, on utterances `(n, frames, d)`; all users end with the same
    model, which begins as the public start. Raises `RoundEndedError` if a user is missing.
    """
    check_count("rounds", rounds)
    inside = length_mask(lengths, features.shape[1]).flatten()
    for _ in range(rounds):
        found = mixture_statistics(model, features.flatten(0, 1), inside.to(features.dtype))
        # The likelihood is left out: the M-step does not need it.
        parts = (found.count, found.first, found.second)
        flat = total(torch.cat([part.flatten() for part in parts]))
        count, first, second = _split(flat, [part.shape for part in parts])
        update_mixture_(model, MixtureStatistics(count, first, second, found.log_likelihood, found.frames))


@torch.no_grad()
def fit_mixture_privately_(
    model: GaussianMixture, total: JointSum | PlainSum, features: Tensor, lengths: Tensor, release: StatisticsRelease
) -> None:
    """Be one user of private EM for one diagonal mixture (a background model); all users end with the same.

    `model` is the public start. `features`: our utterances, `(n, frames, d)`, of one speaker where that is the unit;
    `lengths`: `(n,)`. The release's iterations are the rounds. Raises `RoundEndedError` if a user is missing.
    """
    for _ in range(release.iterations):
        noisy = _released(total, mixture_moments(model, features, lengths), lengths, release)
        maximize_mixture_(model, noisy, release)


@torch.no_grad()
def fit_hmm_privately_(
    bank: HiddenMarkovModel,
    total: JointSum | PlainSum,
    features: Tensor,
    lengths: Tensor,
    labels: Tensor,
    release: StatisticsRelease,
) -> None:
    """Be one user of private Baum-Welch for a bank of word models; all users end with the same.

    `bank` is the public start, one diagonal Gaussian a state. `features`: our utterances, `(n, frames, d)`; `labels`:
    the word of each, `(n,)`. The release's iterations are the rounds.
    """
    for _ in range(release.iterations):
        noisy = _released(total, hmm_moments(bank, features, lengths, labels), lengths, release)
        maximize_hmm_(bank, noisy, release)


def _released(
    total: Callable[[Tensor], Tensor], moments: Moments, lengths: Tensor, release: StatisticsRelease
) -> Moments:
    """The noisy sums of all users as moments of one row."""
    sums = UnitSums(release, speakers=1)
    sums.add(moments, lengths, torch.zeros_like(lengths))
    return release.as_moments(total(sums.total()), moments)


def _split(vector: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
    pieces = torch.split(vector, [shape.numel() for shape in shapes])
    return [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]
