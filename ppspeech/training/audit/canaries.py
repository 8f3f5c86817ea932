"""Canaries: utterances, or whole speakers, made to be noticed, and a corpus of those that take part.

A canary says the most that a bound lets anyone say, and says it in a direction of its own: its frames lie one
deviation away from the public start in every coordinate, with signs drawn for it alone. First moments are then as
long as can be, second ones vanish, and no two canaries look alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from ppspeech.audio import MfccConfig
from ppspeech.data import (
    Batch,
    Corpus,
    LengthBuckets,
    SpeechDataModule,
    Utterance,
    UtteranceDataset,
    Vocabulary,
    collate,
)
from ppspeech.errors import ModelError
from ppspeech.models import EmbeddingHead
from ppspeech.models.gaussian import GaussianMixture
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel

FRAMES = 2  # in every state or component that a canary visits
VISITED = 6  # components of a mixture
SAID = 3  # utterances of a canary that is a speaker
LOUDNESS = 5.0  # of a canary for a model of whole utterances, in deviations


@dataclass(frozen=True)
class Canaries:
    """Utterances `features`, each `(frames, d)`, of `labels`; `owners` say which canary each is of."""

    features: tuple[Tensor, ...]
    labels: tuple[int, ...]
    owners: Tensor
    names: tuple[str, ...]

    def __len__(self) -> int:
        return int(self.owners.max()) + 1

    @classmethod
    def around(cls, model: nn.Module, names: Sequence[str], count: int, said: int, seed: int = 0) -> "Canaries":
        """So many canaries, each with `said` utterances, for a model at its public start; `names` are its labels."""
        generator = torch.Generator().manual_seed(seed)
        owners = torch.arange(count * said) // said
        labels = [int(i + i // max(len(names), 1)) % max(len(names), 1) for i in range(count * said)]
        features = tuple(_utterance(model, label, generator) for label in labels)
        return cls(features, tuple(labels), owners, tuple(names))

    def batch(self, label: str | None) -> Batch:
        """All of them, as a model hears them."""
        lengths = torch.tensor([len(each) for each in self.features])
        found = {"features": pad_sequence(list(self.features), batch_first=True), "lengths": lengths}
        said = torch.tensor(self.labels)
        return found | {"speaker": self.owners, "index": torch.arange(len(said))} | ({label: said} if label else {})


@torch.no_grad()
def _utterance(model: nn.Module, label: int, generator: torch.Generator) -> Tensor:
    """One utterance `(frames, d)` of this label."""
    if isinstance(model, HiddenMarkovModel) and isinstance(model.emission, GaussianEmission):
        gaussians = model.emission.gaussians
        mean, deviation = gaussians.mean[label], gaussians.variances()[label].sqrt()
        mean, deviation = (part.reshape(model.emission.states, -1, part.shape[-1])[:, 0] for part in (mean, deviation))
    elif isinstance(model, GaussianMixture):
        visited = torch.randperm(model.components, generator=generator)[:VISITED]
        mean, deviation = model.gaussians.mean[visited], model.gaussians.variances()[visited].sqrt()
    elif isinstance(model, EmbeddingHead):  # of one vector an utterance
        signs = 2.0 * torch.randint(0, 2, model.mean.shape, generator=generator) - 1
        return (model.mean + LOUDNESS * model.std * signs).unsqueeze(0)
    elif hasattr(model, "mean") and hasattr(model, "std"):  # of statistics of whole utterances
        assert isinstance(model.mean, Tensor)
        width = len(model.mean) // 4
        mean, deviation = torch.zeros(1, width), torch.full((1, width), LOUDNESS)
    else:
        known = "word models of Gaussians, a background model, a classifier of utterances, or a head"
        raise ModelError(f"no canaries are known for a {type(model).__name__}: there are for {known}")
    signs = 2.0 * torch.randint(0, 2, mean.shape, generator=generator) - 1
    return (mean + deviation * signs).repeat_interleave(FRAMES, 0).float()


class CanaryData(SpeechDataModule):
    """The canaries that take part and nobody else, as a corpus that any recipe trains on."""

    invented = True

    def __init__(
        self,
        canaries: Canaries,
        included: NDArray[np.bool_],
        label: str | None,
        mfcc: MfccConfig,
        batch_size: int = 256,
    ) -> None:
        super().__init__("canaries", batch_size=batch_size)
        self._front, self._label = mfcc, label
        self.vocabulary = Vocabulary(self._corpus(canaries, range(len(canaries.labels))))
        here = [i for i, owner in enumerate(canaries.owners.tolist()) if included[owner]]
        self.corpus = self._corpus(canaries, here)
        features = [canaries.features[i] for i in here]
        self.parts = {"train": UtteranceDataset(self.corpus, features, self.vocabulary)}

    def _corpus(self, canaries: Canaries, places: Sequence[int]) -> Corpus:
        said: list[dict[str, Any]] = [
            {} if self._label in (None, "speaker") else {str(self._label): canaries.names[canaries.labels[i]]}
            for i in places
        ]
        speakers = [f"{int(canaries.owners[i]):06d}" for i in places]
        found = [
            Utterance(Path(f"canary/{i}"), speaker=speaker, **label)
            for i, speaker, label in zip(places, speakers, said, strict=True)
        ]
        return Corpus("canaries", self._front.sample_rate, tuple(found))

    def prepare_data(self) -> None:
        """They are there."""

    def setup(self, stage: str | None = None) -> None:
        """They are there."""

    def config(self, corpus: Corpus) -> MfccConfig:  # noqa: ARG002
        """The front end of the recipe."""
        return self._front

    def train_dataloader(self) -> DataLoader[Batch]:
        """In batches."""
        dataset = self.parts["train"]
        buckets = LengthBuckets(dataset.sizes, self.batch_size, shuffle=False)
        return DataLoader(dataset, batch_sampler=buckets, collate_fn=collate)
