"""Keyword recognition with symbols instead of features (Pathak 2010, sections 4.2.2 and 4.2.3): emissions by transfer.

The client's frames are symbols of a public alphabet, found with a public code book; the server's states have tables of
ln b_j(symbol). For every frame the client looks its symbol up in all tables at once: a transfer of one of M, whose
result both hold as shares. No homomorphic encryption is needed; from there on it is `keyword`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.shares import Cost, ShareEngine, blank, look_up, record
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.scores.range import RAREST
from ppspeech.protocols.scores.states import WordArrays, WordShape
from ppspeech.protocols.words.keyword import KeywordJob, check_told, name_words, read_models

Symbols = NDArray[np.integer]

discrete_keyword = register_protocol(
    "discrete_keyword",
    functionality="the word whose discrete hidden Markov model scores the client's symbols best, to the client",
    leakage="sizes alone: the padded length, alphabet, words, states, structure of the models",
    assumptions="both follow the protocol; Diffie-Hellman on ed25519, AES a random permutation, SHA-256 an oracle",
)

MOST_SYMBOLS = 256


@dataclass(frozen=True, eq=False)
class SymbolModels:
    """The server's: word models whose states are tables. `words`: structure, transitions and labels; their monomials
    are not used (`dimensions` and `terms` are free). `tables`: ln b, `(words, states, symbols)`; what is rarer than
    `RAREST` counts as that rare.
    """

    words: WordArrays
    tables: Reals

    def __post_init__(self) -> None:
        shape = self.words.shape
        if self.tables.ndim != 3 or self.tables.shape[:2] != (shape.words, shape.states):
            raise PpspeechError(f"tables must be ({shape.words}, {shape.states}, symbols), got {self.tables.shape}")
        _index_bits(self.tables.shape[2])
        if shape.components != 1 or shape.reject:
            raise PpspeechError("states that are tables have one component and no garbage model")
        check_room(shape, self.words.highest)


def check_room(shape: WordShape, top: float = 0.0) -> None:
    """Refuse shapes whose shares do not hold what tables say, less `top`, in either party. Raises RangeError."""
    lowest = top - 2 * RAREST
    if shape.reach is not None or shape.depth < lowest:
        raise RangeError(
            f"tables go {lowest:g} nats down, staying included, and need no floor on shares: there is room for "
            f"{shape.depth}, raise bits"
        )


@lru_cache(maxsize=64)
def discrete_cost(shape: WordShape, symbols: int) -> Cost:
    """All that happens on shares."""
    own, last = blank(shape.frames), np.zeros(1, np.int64)
    return record(lambda engine: _recognize(engine, shape, symbols, None, own, last))


@discrete_keyword.party("client")
def client(party: Party, utterance: Symbols, *, shape: Mapping[str, Any], symbols: int) -> str | None:
    """The client's program: its symbols `(frames,)`, padded with the last one; `shape` as that of `keyword`."""
    given, agreed = np.asarray(utterance), WordShape.from_params(shape)
    if given.ndim != 1 or given.dtype.kind not in "iu" or not agreed.shortest <= len(given) <= agreed.frames:
        raise RangeError(f"an utterance is {agreed.shortest} to {agreed.frames} whole numbers, got shape {given.shape}")
    check_room(agreed)
    if not 0 <= given.min() <= given.max() < symbols:
        raise RangeError(f"symbols lie in 0..{symbols - 1}, got {given.min()} to {given.max()}")
    padded = np.concatenate((given, np.repeat(given[-1:], agreed.frames - len(given)))).astype(np.uint64)
    last = np.array([len(given) - agreed.shortest])
    with _engine(party, Side.SECOND, agreed, symbols) as engine:
        words = _recognize(engine, agreed, symbols, None, padded, last)
    assert words is not None
    check_told(agreed, words)
    return words[0]


@discrete_keyword.party("server")
def server(party: Party, models: Mapping[str, Any], *, shape: Mapping[str, Any], symbols: int) -> None:
    """The server's program; `models` has `transitions`, `initial` and `labels` as that of `keyword`, and `tables`."""
    own = _read_tables(WordShape.from_params(shape), models)
    if own.tables.shape[2] != symbols:
        raise PpspeechError(f"the models have {own.tables.shape[2]} symbols, agreed on are {symbols}")
    with _engine(party, Side.FIRST, own.words.shape, symbols) as engine:
        _recognize(engine, own.words.shape, symbols, own, blank(own.words.shape.frames), None)


@contextmanager
def _engine(party: Party, side: Side, shape: WordShape, symbols: int) -> Iterator[ShareEngine]:
    setup = PairSetup.agree(party.channel, side)
    with setup.session(party.channel):
        yield ShareEngine(party.channel, setup, discrete_cost(shape, symbols))


def _recognize(
    engine: ShareEngine,
    shape: WordShape,
    symbols: int,
    models: SymbolModels | None,
    own: Residues,
    last: NDArray[np.int64] | None,
) -> list[str | None] | None:
    """What both do: look every frame's symbol up in all states' tables, then as `keyword`."""
    states = shape.words * shape.states
    tables = blank(states, 1 << _index_bits(symbols))
    if models is not None:
        logs = np.maximum(models.tables, RAREST) + models.words.stays[..., None]
        encoded = shape.scale.ring.from_signed(shape.scale.encode(logs))
        tables[:, :symbols] = encoded.reshape(states, symbols)
    rows = np.tile(tables, (shape.frames, 1))
    scores = look_up(engine, np.repeat(own, states), rows, shape.scale.ring).reshape(1, shape.frames, states)
    return name_words(engine, KeywordJob(shape), None if models is None else models.words, scores, last)


def _read_tables(shape: WordShape, plain: Mapping[str, Any]) -> SymbolModels:
    unused = {"weights": np.zeros((shape.monomials, shape.columns))}
    words = read_models(shape, unused | {name: plain[name] for name in plain if name != "tables"})
    return SymbolModels(words, np.array(plain.get("tables", ()), np.float64))


def _index_bits(symbols: int) -> int:
    if not 2 <= symbols <= MOST_SYMBOLS:
        raise RangeError(f"an alphabet has 2 to {MOST_SYMBOLS} symbols, got {symbols}")
    return (symbols - 1).bit_length()
