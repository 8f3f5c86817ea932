"""Recordings in one tensor: rows are in the corpus's order, scores are those of each utterance alone."""

import pytest
import torch

from ppspeech.audio import MfccConfig
from ppspeech.data import load_corpus
from ppspeech.evidence.spoken import Spoken, hmmlearn_like
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, baum_welch, flat_start_, left_right

WORDS = ("no", "yes")


@pytest.fixture(scope="module")
def spoken() -> Spoken:
    corpus = load_corpus("synthetic", speakers=3, takes=2, words=WORDS)
    return Spoken.of(corpus, MfccConfig.at_rate(corpus.sample_rate), WORDS)


@pytest.fixture(scope="module")
def bank(spoken: Spoken) -> HiddenMarkovModel:
    bank = HiddenMarkovModel(
        left_right(3), GaussianEmission(2, 3, spoken.features.shape[-1], floor=1e-1, dtype=torch.float64)
    )
    flat_start_(bank, spoken.features.double(), spoken.lengths, spoken.words)
    return bank


def test_rows_are_utterances(spoken: Spoken) -> None:
    assert len(spoken.features) == len(spoken.words) == 12
    assert spoken.words.bincount().tolist() == [6, 6]
    assert spoken.speakers.bincount().tolist() == [4, 4, 4]
    some = spoken.where(spoken.speakers == 1)
    assert (len(some.words), set(some.speakers.tolist())) == (4, {1})
    assert [len(clip) for clip in spoken.clips()] == spoken.lengths.tolist()
    assert len(spoken.clips(1)) == 6


def test_scores_are_those_of_each_utterance_alone(spoken: Spoken, bank: HiddenMarkovModel) -> None:
    scores = spoken.scores(bank)
    for row, clip in enumerate(spoken.clips()):
        alone = bank(torch.from_numpy(clip)[None], torch.tensor([len(clip)]))
        assert torch.allclose(scores[row], alone[0])
    assert spoken.accuracy(torch.nn.functional.one_hot(spoken.words)) == 1
    assert spoken.accuracy(torch.nn.functional.one_hot(1 - spoken.words)) == 0


def test_hmmlearn_starts_where_we_start(spoken: Spoken, bank: HiddenMarkovModel) -> None:
    pytest.importorskip("hmmlearn")
    peers = hmmlearn_like(bank, 1)
    scores = torch.tensor([[peer.score(clip) for peer in peers] for clip in spoken.clips()])
    assert torch.allclose(scores.double(), spoken.scores(bank), rtol=1e-6)
    baum_welch(bank, spoken.features.double(), spoken.lengths, spoken.words, 1)
    assert not torch.allclose(scores.double(), spoken.scores(bank), rtol=1e-6)
