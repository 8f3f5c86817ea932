r"""Word models that learn from people, not from utterances: how far each person's speech lies from a public start.

A person's shift of one state is the mean of the whitened frames there, sum g (x - mu) / s over sum g. Weighed by the
root of the share p of public frames in that state, its length is what it gains in likelihood (the metric of the
occupancies), and noise of one size blurs all states alike. What is told of it are coordinates in which people's shifts
are large and few:

    common   shifts that are the same linear function of mu for all states and words, A mu + b (as CMLLR has them),
             along the principal directions of the means;
    of a word  the first cosines over the states of each word.

A person counts once, however much was said. Vectors are clipped at the median length of the public speakers'; their
mean is released (`privacy.mechanisms.ShiftRelease`), and every estimate is shrunk by how much of it is noise, apart for
each band of coordinates: common and of words, static features and their deltas. Variances and transitions stay public.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ppspeech.data import Batch
from ppspeech.errors import PrivacyError
from ppspeech.models.hmm import HiddenMarkovModel, by_length
from ppspeech.privacy import Relation
from ppspeech.privacy.mechanisms import ShiftRelease
from ppspeech.training.module import SpeechModule
from ppspeech.training.private.statistics import StatisticsPrivacy, diagonal, hmm_moments, kept_share
from ppspeech.training.words import WordModels, public_utterances

DIRECTIONS = 13  # of the means, that common shifts are functions of
COSINES = 3  # of the states of a word
SEEN = 1.0  # frames that a person's mean is drawn towards the start by


@dataclass(frozen=True, eq=False)
class ShiftSpace:
    """The coordinates, from public speech alone.

    Attributes:
        occupancy: p, `(models, cells)`.
        basis: orthonormal columns over all states, `(models * cells, coordinates)`.
        bands: which estimates are shrunk together, `(coordinates, d)`.
        clip: the median length of public speakers' vectors.
    """

    occupancy: Tensor
    basis: Tensor
    bands: Tensor
    clip: float

    @property
    def dimension(self) -> int:
        """Numbers of a person's vector."""
        return self.bands.numel()

    @classmethod
    @torch.no_grad()
    def around(cls, bank: HiddenMarkovModel, people: "PersonSums", kinds: int = 1) -> "ShiftSpace":
        """Around a public bank, from what public people say about it; `kinds` of features: cepstra, deltas, ..."""
        gaussians = diagonal(bank)
        models, cells, features = gaussians.mean.shape
        seen = people.count.sum(0) + SEEN
        occupancy = seen / seen.sum()
        weight = occupancy.sqrt().view(-1, 1).double()
        means = gaussians.mean.detach().reshape(-1, features).double()
        directions = torch.linalg.svd(weight * means, full_matrices=False).U[:, : min(DIRECTIONS, features)]
        common = torch.cat([weight, directions], dim=1)
        place = torch.arange(cells, dtype=torch.float64) + 0.5
        waves = torch.stack([torch.cos(math.pi * i * place / cells) for i in range(min(COSINES, cells))], dim=1)
        by_word = torch.block_diag(*[waves] * models) * weight  # type: ignore[no-untyped-call]
        basis, of_word = _orthonormal(common, by_word)
        kind = torch.arange(features) * kinds // features
        bands = of_word.unsqueeze(1) * kinds + kind
        found = cls(occupancy, basis.to(gaussians.mean), bands, 1.0)
        lengths = found.vectors(people).norm(dim=1)
        return cls(occupancy, found.basis, bands, float(lengths.median()))

    @torch.no_grad()
    def vectors(self, people: "PersonSums") -> Tensor:
        """What each person says, `(people, dimension)`, unclipped."""
        shift = people.first / (people.count + SEEN).unsqueeze(-1)
        weighed = (self.occupancy.sqrt().unsqueeze(-1) * shift).flatten(1, 2)
        return torch.einsum("nsd,sk->nkd", weighed, self.basis).flatten(1)

    @torch.no_grad()
    def move_(self, bank: HiddenMarkovModel, mean: Tensor, variance: float) -> None:
        """Move the bank's means by a released mean `(dimension,)` with this variance of noise: post-processing."""
        told = mean.view(self.bands.shape)
        kept = torch.zeros_like(told)
        for band in sorted(set(self.bands.flatten().tolist())):
            own = self.bands == band
            kept[own] = kept_share(told[own], variance) * told[own]
        gaussians = diagonal(bank)
        shift = (self.basis.double() @ kept.double()).view(gaussians.mean.shape)
        shift = shift / self.occupancy.sqrt().unsqueeze(-1)
        deviations = gaussians.variances().sqrt()
        gaussians.set_moments_(gaussians.mean + shift.to(deviations) * deviations, gaussians.variances())


class PersonSums:
    """Occupancies `(people, models, cells)` and whitened first moments `(people, models, cells, d)`, by person."""

    def __init__(self, bank: HiddenMarkovModel, people: int) -> None:
        mean = diagonal(bank).mean
        self.count, self.first = mean.new_zeros(people, *mean.shape[:2]), mean.new_zeros(people, *mean.shape)

    @torch.no_grad()
    def add(self, bank: HiddenMarkovModel, features: Tensor, lengths: Tensor, words: Tensor, people: Tensor) -> None:
        """Utterances `(n, frames, d)` of words by people 0, 1, ..."""
        found = hmm_moments(bank, features, lengths, words)
        self.count.index_add_(0, people, found.count)
        self.first.index_add_(0, people, found.first)

    @classmethod
    def of(
        cls, bank: HiddenMarkovModel, features: Tensor, lengths: Tensor, words: Tensor, people: Tensor
    ) -> "PersonSums":
        """Of many utterances, in batches."""
        sums = cls(bank, int(people.max()) + 1)
        for batch in by_length(features, lengths, words, people):
            sums.add(bank, *batch)
        return sums


def _orthonormal(*blocks: Tensor) -> tuple[Tensor, Tensor]:
    """An orthonormal basis of all columns, each block's in the complement of those before, and whose each is."""
    basis, owners = blocks[0].new_zeros(len(blocks[0]), 0), list[int]()
    for owner, block in enumerate(blocks):
        left, size, _ = torch.linalg.svd(block - basis @ (basis.mT @ block), full_matrices=False)
        new = left[:, size > 1e-6 * size.max()]
        basis = torch.cat([basis, new], dim=1)
        owners += [owner] * new.shape[1]
    return basis, torch.tensor(owners)


class ShiftPrivacy(StatisticsPrivacy):
    """Private word models for whole speakers: an epoch is a release of people's shifts, and then the means move.

    Formal guarantee: that of `StatisticsPrivacy`, to the released bits. Coordinates and clip follow from the model
    released so far and from the public speech that the module starts from. A run cannot be resumed.
    """

    release: ShiftRelease  # type: ignore[assignment]

    def __init__(self, epsilon: float, delta: float, iterations: int, relation: Relation) -> None:
        self._spent = 0
        self._space: ShiftSpace | None = None
        self._people: PersonSums | None = None
        # How many numbers there are, and how long public speakers' vectors, is known when the start is.
        super().__init__(ShiftRelease(epsilon, delta, 1, 1.0, iterations, relation))  # type: ignore[arg-type]

    @property
    def spent(self) -> int:
        """Releases made so far."""
        return self._spent

    @spent.setter
    def spent(self, releases: int) -> None:
        if releases and self._space is None:
            raise PrivacyError("a run that releases people's shifts cannot be resumed: begin again, with a new budget")
        self._spent = releases

    @property
    def terms(self) -> dict[str, Any]:
        """What a resumed run must agree on."""
        known = asdict(self.release)
        return {name: known[name] for name in ("epsilon", "delta", "iterations", "relation", "counted")}

    def add(self, module: SpeechModule, batch: Batch) -> None:
        """The E-step of a batch, kept apart by person."""
        bank = _bank(module)
        if self._people is None:
            self._space = module.ranks.once(lambda: self._public_space(module, bank))  # one clip and one basis for all
            self.release = replace(self.release, dimension=self._space.dimension, clip=self._space.clip)
            speakers = len(module.trainer.datamodule.vocabulary["speaker"])  # type: ignore[attr-defined]
            self._people = PersonSums(bank, speakers)
        word = batch[str(module.label)]
        self._people.add(bank, batch["features"], batch["lengths"], word, batch["speaker"])

    def said(self, module: SpeechModule, batch: Batch, units: Tensor) -> Tensor:
        """What each of the `units` 0, 1, ..., one an utterance, adds to a release, `(units, numbers)`: for audits."""
        assert self._space is not None
        word = batch[str(module.label)]
        people = PersonSums.of(_bank(module), batch["features"], batch["lengths"], word, units)
        return self.release.bounded(self._space.vectors(people))

    def maximize_(self, module: SpeechModule) -> None:
        """A release, then the means move; PrivacyError if all releases that the budget was split for are made."""
        if self.spent >= self.release.iterations:
            raise PrivacyError(f"the budget was split over {self.release.iterations} releases, and all are made")
        assert self._space is not None
        assert self._people is not None
        heard = self._people.count.sum((1, 2)) > 0  # of whom the corpus knows, those who speak in this part
        if bool((module.ranks.added(heard.to(torch.int64)) > 1).any()):
            raise PrivacyError("what one speaker says is on several processes: leave batches to SpeechDataModule")
        noisy = self.release.release(self._space.vectors(self._people)[heard], module.ranks).value
        self._people = None
        self.spent += 1
        if self.watch is not None:
            self.watch(module, noisy)
        self._space.move_(_bank(module), *self.release.means(noisy))

    def _public_space(self, module: SpeechModule, bank: HiddenMarkovModel) -> ShiftSpace:
        assert isinstance(module, WordModels)
        public = public_utterances(module.labels, module.mfcc, module.public)
        return ShiftSpace.around(bank, PersonSums.of(bank, *public), module.mfcc.deltas + 1)


def _bank(module: SpeechModule) -> HiddenMarkovModel:
    assert isinstance(module.model, HiddenMarkovModel)
    return module.model
