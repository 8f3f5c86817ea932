import itertools

import pytest
import torch
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.models.decoding.builder import units_of_bank
from ppspeech.models.decoding.decoder import decode
from ppspeech.models.decoding.embedded import embedded_statistics, embedded_training, even_start_
from ppspeech.models.decoding.grammar import OneOf, Repeated
from ppspeech.models.decoding.graph import DecodingGraph
from ppspeech.models.decoding.tasks import grammar_graph, transcript_graph
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.baum_welch import hmm_statistics
from ppspeech.models.hmm.emissions import GaussianEmission
from ppspeech.models.hmm.topology import left_right

NAMES = {"up": "up", "down": "down", "pause": None}


def sentences() -> tuple[Tensor, Tensor, list[list[str]]]:
    """Words that rise or fall between two levels, with pauses of noise around zero."""
    make = torch.Generator().manual_seed(0)
    rows, texts = [], []
    for words in itertools.product(("up", "down"), repeat=3):
        frames = []
        for word in words:
            frames += [torch.zeros(2).expand(int(torch.randint(2, 5, (1,), generator=make)), 2)]
            low, high = torch.tensor([4.0, 2.0]), torch.tensor([4.0, -2.0])
            first, second = (low, high) if word == "up" else (high, low)
            frames += [first.expand(4, 2), second.expand(4, 2)]
        rows.append(torch.cat([*frames, torch.zeros(2, 2)]))
        texts.append(list(words))
    features = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).double()
    noise = 0.5 * torch.randn(features.shape, generator=make, dtype=torch.float64)
    return features + noise, torch.tensor([len(row) for row in rows]), texts


def bank_and_graphs(texts: list[list[str]]) -> tuple[HiddenMarkovModel, object]:
    emission = GaussianEmission(3, 2, 2, covariance="diagonal", floor=0.05, dtype=torch.float64)

    def draw(bank: HiddenMarkovModel) -> list[DecodingGraph]:
        units = units_of_bank(bank, NAMES)
        return [transcript_graph(text, units, "pause") for text in texts]

    return HiddenMarkovModel(left_right(2), emission), draw


def test_words_are_learned_from_transcripts_alone() -> None:
    features, lengths, texts = sentences()
    bank, draw = bank_and_graphs(texts)
    indices = [[list(NAMES).index(word) for word in text] for text in texts]
    even_start_(bank, features, lengths, indices, quiet=features[..., 0] < 2, silence=2)
    history = embedded_training(bank, features, lengths, draw, iterations=6)
    for before, after in itertools.pairwise(history):
        assert after >= before - 1e-6 * abs(before)
    graph = grammar_graph(Repeated(OneOf(("up", "down"))), units_of_bank(bank, NAMES), "pause")
    for x, length, text in zip(features, lengths.tolist(), texts, strict=True):
        emissions = bank.emission.log_likelihood(x[None, :length])[0].flatten(1)
        assert [w.word for w in decode(graph, emissions).words] == text


def test_a_transcript_of_one_word_is_ordinary_baum_welch() -> None:
    features, lengths, _ = sentences()
    bank, _ = bank_and_graphs([])
    labels = torch.arange(len(features)) % 3
    torch.nn.init.normal_(bank.emission.gaussians.mean)
    units = units_of_bank(bank, tuple(NAMES))
    names = list(NAMES)
    graphs = [transcript_graph([names[m]], units) for m in labels.tolist()]
    found = embedded_statistics(bank, features, lengths, graphs)
    # A graph leaves a word after its last state; a bank's model that must end there does the same.
    finishing = HiddenMarkovModel(left_right(2, must_finish=True), bank.emission)
    ordinary = hmm_statistics(finishing, features, lengths, labels)
    torch.testing.assert_close(found.utterances, ordinary.utterances)
    # The last state's staying costs 0.8 a frame in the graph and nothing in the bank: the same paths, reweighed.
    assert found.transitions.sum().item() == pytest.approx(ordinary.transitions.sum().item(), rel=1e-9)
    assert found.initial[:, 0].tolist() == pytest.approx(ordinary.initial[:, 0].tolist())
    assert found.emissions[..., -1].sum().item() == pytest.approx(float(lengths.sum()), rel=1e-9)


def test_doors() -> None:
    features, lengths, texts = sentences()
    bank, _ = bank_and_graphs(texts)
    with pytest.raises(ModelError, match="as many graphs"):
        embedded_statistics(bank, features, lengths, [])
    with pytest.raises(ModelError, match="at least one model"):
        even_start_(bank, features, lengths, [[]] * 8)
    with pytest.raises(ModelError, match="given together"):
        even_start_(bank, features, lengths, [[0]] * 8, silence=2)
