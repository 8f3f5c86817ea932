"""Words of discrete models: the same as by the obvious recursion, at the cost that was recorded."""

from typing import Any

import numpy as np
import pytest

from ppspeech.channel import Channel
from ppspeech.crypto import Kind
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import Party
from ppspeech.protocols.words.discrete_keyword import SymbolModels, client, discrete_cost, server
from tests.protocols.word_reference import made_models, plain_models

MEETING = {Kind.BASE_POINT, Kind.BASE_REPLY, Kind.BASE_COLUMNS, Kind.RESUME}


def asking(channel: Channel) -> Party:
    return Party("client", {"server": channel})


def answering(channel: Channel) -> Party:
    return Party("server", {"client": channel})


def made_tables(symbols: int, seed: int, **sizes: Any) -> SymbolModels:
    words = made_models(seed, **sizes)
    make = np.random.default_rng(seed)
    tables = np.log(make.dirichlet(np.ones(symbols) / 3, size=(words.shape.words, words.shape.states)))
    return SymbolModels(words, tables)


def plain_word(models: SymbolModels, symbols: np.ndarray) -> tuple[str, float]:
    """The best word by a loop over frames and states, and by how much it is best."""
    words, tables = models.words, np.maximum(models.tables, -100)
    shape, scores = words.shape, []
    combine = np.logaddexp if shape.operation == "forward" else np.maximum
    for word in range(shape.words):
        gamma = np.full(shape.states, -np.inf)
        gamma[0] = words.initial[word, 0] + tables[word, 0, symbols[0]]
        for symbol in symbols[1:]:
            arriving = gamma + words.transitions[word, :, 0]
            arriving[1:] = combine(arriving[1:], gamma[:-1] + words.transitions[word, :-1, 1])
            gamma = arriving + tables[word, :, symbol]
        scores.append(gamma[-1])
    first, second = np.argsort(scores)[::-1][:2]
    return words.labels[first], scores[first] - scores[second]


def plain_tables(models: SymbolModels) -> dict[str, Any]:
    """As JSON can hold them: without weights, which tables replace."""
    plain = plain_models(models.words) | {"tables": models.tables.tolist()}
    return {name: plain[name] for name in plain if name != "weights"}


def sure_symbols(models: SymbolModels, symbols: int, frames: int) -> tuple[np.ndarray, str]:
    """The first symbols, by seed, whose word wins by enough for an encrypted answer to be right; and that word."""
    for seed in range(50):
        utterance = np.random.default_rng(seed).integers(symbols, size=frames)
        word, margin = plain_word(models, utterance)
        if margin > 0.3:
            return utterance, word
    raise AssertionError("none of 50 utterances has a sure word")


@pytest.mark.parametrize("operation", ["forward", "viterbi"])
@pytest.mark.parametrize("symbols", [2, 5, 130])
def test_words_are_those_in_the_clear(operation: str, symbols: int) -> None:
    models = made_tables(symbols, seed=symbols, operation=operation, words=4)
    params = models.words.shape.to_params()
    for frames in (3, 12):
        utterance, expected = sure_symbols(models, symbols, frames)
        here, there = memory_pair()
        record = Transcript(here)
        word, _ = run_together(
            lambda c, u=utterance, r=record: client(asking(r), u.tolist(), shape=params, symbols=symbols),
            lambda c: server(answering(c), plain_tables(models), shape=params, symbols=symbols),
            (here, there),
        )
        assert word == expected
        total = sum(size for _, kind, size in record.shape() if kind not in MEETING)
        assert total == discrete_cost(models.words.shape, symbols).total_bytes


@pytest.mark.parametrize("bad", [[0, 1], [0, 1, 5], [0, -1, 2], [0.5, 1, 2], [[0, 1, 2]], list(range(5)) * 3], ids=str)
def test_symbols_must_be_symbols(bad: Any) -> None:
    models = made_tables(5, seed=0)
    with pytest.raises(RangeError):
        client(asking(memory_pair()[0]), np.array(bad), shape=models.words.shape.to_params(), symbols=5)


def test_tables_must_fit_what_was_agreed_on() -> None:
    models = made_tables(5, seed=0)
    with pytest.raises(PpspeechError, match="5 symbols, agreed on are 6"):
        server(answering(memory_pair()[0]), plain_tables(models), shape=models.words.shape.to_params(), symbols=6)


def test_tables_must_fit() -> None:
    words = made_models()
    with pytest.raises(PpspeechError, match="tables"):
        SymbolModels(words, np.zeros((2, 3, 5)))
    with pytest.raises(RangeError, match="alphabet"):
        SymbolModels(words, np.zeros((3, 3, 257)))
    with pytest.raises(PpspeechError, match="garbage"):
        SymbolModels(made_models(reject=True), np.zeros((3, 3, 5)))
