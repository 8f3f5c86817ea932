"""Recordings of a corpus in one tensor, and hmmlearn started where our word models start."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import MfccConfig
from ppspeech.data import Corpus, FeatureStore
from ppspeech.models.hmm import (
    GaussianEmission,
    HiddenMarkovModel,
    Prior,
    baum_welch,
    by_length,
    flat_start_,
    left_right,
)


@dataclass(frozen=True)
class Spoken:
    """Utterances, one a row.

    Attributes:
        features: `(utterances, frames, features)`, padded.
        lengths: frames of each.
        words: which word each is; zeros where the corpus has sentences.
        speakers: who said each, by the order of the corpus.
    """

    features: Tensor
    lengths: Tensor
    words: Tensor
    speakers: Tensor

    @classmethod
    def of(cls, corpus: Corpus, config: MfccConfig, words: tuple[str, ...] = ()) -> "Spoken":
        """The features of a corpus; words are numbered as `words` are, which also those of a part must be."""
        frames = FeatureStore(config).load(corpus.utterances)
        names = words or corpus.words
        speakers = {name: place for place, name in enumerate(corpus.speakers)}
        return cls(
            pad_sequence(frames, batch_first=True),
            torch.tensor([len(each) for each in frames]),
            torch.tensor([names.index(str(u.word)) if u.word is not None else 0 for u in corpus]),
            torch.tensor([speakers[u.speaker] for u in corpus]),
        )

    @property
    def labeled(self) -> tuple[Tensor, Tensor, Tensor]:
        """Features, lengths and words, as training takes them."""
        return self.features, self.lengths, self.words

    def where(self, chosen: Tensor) -> "Spoken":
        """Some of them: a mask, indices or a slice."""
        return Spoken(self.features[chosen], self.lengths[chosen], self.words[chosen], self.speakers[chosen])

    def clips(self, word: int | None = None) -> list[NDArray[np.float64]]:
        """The utterances one by one, as hmmlearn takes them; of one word, or all."""
        rows = zip(self.features.double().numpy(), self.lengths.tolist(), self.words.tolist(), strict=True)
        return [x[:length] for x, length, label in rows if word is None or label == word]

    @torch.no_grad()
    def scores(self, model: torch.nn.Module) -> Tensor:
        """Of every word for every utterance, `(utterances, words)`, in the model's own precision."""
        dtype = next(model.parameters()).dtype
        rows = torch.arange(len(self.words))
        parts = [
            (rows_of, model(features, lengths))
            for features, lengths, rows_of in by_length(self.features.to(dtype), self.lengths, rows)
        ]
        scores = torch.cat([scored for _, scored in parts])
        return scores[torch.cat([rows_of for rows_of, _ in parts]).argsort()]

    def right(self, scores: Tensor) -> int:
        """How many utterances' best word is theirs."""
        return int((scores.argmax(-1) == self.words).sum())

    def accuracy(self, scores: Tensor) -> float:
        """The share of utterances whose best word is theirs."""
        return self.right(scores) / len(self.words)

    def by_person(self, scores: Tensor) -> list[float]:
        """The same of every speaker."""
        right = (scores.argmax(-1) == self.words).double()
        return [float(right[self.speakers == who].mean()) for who in sorted(set(self.speakers.tolist()))]


def shrunk_bank(data: Spoken, states: int = 5, iterations: int = 4) -> HiddenMarkovModel:
    """Left-right models of the words, for people never heard: covariances are pulled towards the common one, with the
    weight of 1,000 frames, as those of `reproduce fsdd` are.
    """
    prior = Prior(covariance=1_000.0)
    emission = GaussianEmission(int(data.words.max()) + 1, states, data.features.shape[-1], floor=1e-2)
    bank = HiddenMarkovModel(left_right(states), emission)
    flat_start_(bank, *data.labeled, prior)
    baum_welch(bank, *data.labeled, iterations, prior)
    return bank


def hmmlearn_like(bank: HiddenMarkovModel, iterations: int, **options: Any) -> list[Any]:
    """hmmlearn's models with the parameters of ours, one a word, for `fit` to start from."""
    from hmmlearn.hmm import GaussianHMM

    initial, transitions = bank.log_initial().exp().detach(), bank.log_transitions().exp().detach()
    gaussians = cast("GaussianEmission", bank.emission).gaussians
    means, covariances = gaussians.mean.detach(), gaussians.covariances().detach()
    peers = []
    for word in range(bank.models):
        peer = GaussianHMM(means.shape[1], "full", n_iter=iterations, tol=-np.inf, init_params="", **options)
        peer.startprob_, peer.transmat_ = initial[word].numpy(), transitions[word].numpy()
        peer.means_, peer.covars_ = means[word].numpy(), covariances[word].numpy()
        peers.append(peer)
    return peers
