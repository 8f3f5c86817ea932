"""Keyword recognition with symbols instead of features (Pathak 2010, sections 4.2.2 and 4.2.3): emissions by transfer.

The client's frames are symbols of a public alphabet, found with a public code book; the server's states have tables of
ln b_j(symbol). For every frame the client looks its symbol up in all tables at once: a transfer of one of M, whose
result both hold as shares. No homomorphic encryption is needed; from there on it is `keyword`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.shares import Cost, ShareEngine, look_up, look_up_cost
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.party import register_protocol
from ppspeech.protocols.scores.states import RAREST, WordModels, WordShape
from ppspeech.protocols.words.choice import choose_residues
from ppspeech.protocols.words.keyword import KeywordJob, share_scores

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
    """The server's: word models whose states are tables.

    Attributes:
        words: structure, transitions and labels; their monomials are not used (`dimensions` and `terms` are free).
        tables: ln b, `(words, states, symbols)`; what is rarer than `RAREST` counts as that rare.
    """

    words: WordModels
    tables: Reals

    def __post_init__(self) -> None:
        shape = self.words.shape
        if self.tables.ndim != 3 or self.tables.shape[:2] != (shape.words, shape.states):
            raise PpspeechError(f"tables must be ({shape.words}, {shape.states}, symbols), got {self.tables.shape}")
        _index_bits(self.tables.shape[2])
        if shape.components != 1 or shape.reject:
            raise PpspeechError("states that are tables have one component and no garbage model")


def discrete_cost(shape: WordShape, symbols: int) -> Cost:
    """All that happens on shares."""
    looked_up = shape.frames * shape.words * shape.states
    return look_up_cost(_index_bits(symbols), shape.scale.ring, looked_up) + KeywordJob(shape).shares_cost


@discrete_keyword.party("client")
def client(channel: Channel, utterance: Symbols, *, shape: WordShape, symbols: int) -> str | None:
    """The client's program: its symbols `(frames,)`, padded with the last one."""
    given = np.asarray(utterance)
    if given.ndim != 1 or given.dtype.kind not in "iu" or not shape.shortest <= len(given) <= shape.frames:
        raise RangeError(f"an utterance is {shape.shortest} to {shape.frames} whole numbers, got shape {given.shape}")
    if not 0 <= given.min() <= given.max() < symbols:
        raise RangeError(f"symbols lie in 0..{symbols - 1}, got {given.min()} to {given.max()}")
    padded = np.concatenate((given, np.repeat(given[-1:], shape.frames - len(given)))).astype(np.uint64)
    last = np.array([len(given) - shape.shortest])
    answer = _recognize(channel, Side.SECOND, shape, symbols, None, padded, last)
    assert answer is not None
    return answer[0]


@discrete_keyword.party("server")
def server(channel: Channel, models: SymbolModels, *, shape: WordShape, symbols: int) -> None:
    """The server's program."""
    if models.words.shape != shape or models.tables.shape[2] != symbols:
        raise PpspeechError("the models are of another shape than agreed on")
    _recognize(channel, Side.FIRST, shape, symbols, models, np.zeros(shape.frames, np.uint64), None)


def _recognize(
    channel: Channel,
    party: Side,
    shape: WordShape,
    symbols: int,
    models: SymbolModels | None,
    own: Residues,
    last: NDArray[np.int64] | None,
) -> list[str | None] | None:
    job, bits = KeywordJob(shape), _index_bits(symbols)
    setup = PairSetup.agree(channel, party)
    with setup.session(channel):
        engine = ShareEngine(channel, setup, discrete_cost(shape, symbols))
        states = shape.words * shape.states
        tables = np.zeros((states, 1 << bits), np.uint64)
        if models is not None:
            logs = np.maximum(models.tables, RAREST) + models.words.stays[..., None]
            encoded = shape.scale.ring.from_signed(shape.scale.encode(logs))
            tables[:, :symbols] = encoded.reshape(states, symbols)
        rows = np.tile(tables, (shape.frames, 1))
        scores = look_up(engine, np.repeat(own, states), rows, shape.scale.ring)
        scores = scores.reshape(1, shape.frames, states)
        with engine.in_flights():
            words = None if models is None else models.words
            return choose_residues(engine, shape, words, share_scores(engine, job, words, scores, last))


def _index_bits(symbols: int) -> int:
    if not 2 <= symbols <= MOST_SYMBOLS:
        raise RangeError(f"an alphabet has 2 to {MOST_SYMBOLS} symbols, got {symbols}")
    return (symbols - 1).bit_length()
