"""Keyword recognition: the client has a voice, the server word models; the client learns the word, and that is all.

    1. client → server   monomials of the padded frames, encrypted under the client's key
    2. server → client   all state scores, masked: each party now has a share of every ln b_j(x_t)
    3. both              scores below the floor raised to it, mixtures, then the recursion over frames, on shares:
                         log-add (forward) or max (Viterbi)
    4. both              the row of the true last frame, by an index only the client knows; the ends of the words
    5. both              the best word's label, to the client: one of the server's, by transfer

Any number of utterances run in lock step: they share round trips and fill ciphertexts better. What depends on sizes
alone (transfers, encryptions of zero) is done by `prepare`, while the client still listens to its user.

No score leaves the range of its shares, whatever was said: the proof is in `scores.range`. For links where a round trip
is dear there is `words.garbled`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.lattice import EncodedWeights, MatrixPlan, encode_weights, plan_product
from ppspeech.crypto.shares import (
    TEXT_RING,
    Cost,
    Shared,
    ShareEngine,
    blank,
    choose,
    read_text,
    record,
    tell_best,
)
from ppspeech.crypto.transfer import Side
from ppspeech.errors import PpspeechError, ProtocolError, RangeError
from ppspeech.protocols.meeting import WORKERS, Meeting, meet
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.scores.states import WordArrays, WordShape
from ppspeech.protocols.trellis.combine import Combine
from ppspeech.protocols.words.recursion import WordRun

keyword = register_protocol(
    "keyword",
    functionality="the word whose hidden Markov model scores the client's utterance best, to the client",
    leakage="sizes alone: the padded length, dimensions, words, states, components, structure of the models",
    assumptions=(
        "a client may do anything, and learns as many bits of the models as name a word, but of its choice; a server "
        "that cheats learns nothing, and makes the word wrong; checked transfers, ring-LWE at 128 bits, Diffie-Hellman "
        "on ed25519, AES a random permutation, SHA-256 and Blake2xb oracles"
    ),
)


@dataclass(frozen=True)
class KeywordJob:
    """One recognition of some utterances: its plan and what it costs, from public sizes alone. `utterances`: in lock
    step. `ahead`: frames a step, a power of two: fewer round trips, for more of everything else.
    """

    shape: WordShape
    utterances: int = 1
    ahead: int = 1

    @cached_property
    def plan(self) -> MatrixPlan:
        """The encrypted product of all utterances: the more there are, the fuller the replies' polynomials."""
        rows = self.utterances * self.shape.frames
        return plan_product(rows, self.shape.monomials, self.shape.columns, self.shape.precision)

    @property
    def shares_cost(self) -> Cost:
        """All that happens on shares."""
        return _shares_cost(self)

    @property
    def total_bytes(self) -> int:
        """Payload of everything, offline and online, both ways."""
        return self.plan.total_bytes + self.shares_cost.total_bytes

    def monomials(self, utterances: Sequence[Reals]) -> Reals:
        """All frames of the utterances, padded, as the product takes them. Raises RangeError for too many or too few
        utterances, or one that cannot be scored.
        """
        if len(utterances) != self.utterances:
            raise RangeError(f"this job is for {self.utterances} utterances, got {len(utterances)}")
        return np.concatenate([self.shape.padded_monomials(each) for each in utterances])

    def by_utterance(self, scores: Residues) -> Residues:
        """Shares of all scores, `(utterances, frames, columns)`, from those of the product."""
        return scores.reshape(self.utterances, self.shape.frames, self.shape.columns)

    @property
    def rounds(self) -> int:
        """Round trips online."""
        return 1 + self.shares_cost.rounds

    def prepare(self, met: Meeting) -> ShareEngine:
        """Offline, both parties at the same time: transfers, and encryptions of zero, for one recognition."""
        return met.prepare(self.plan, self.shares_cost)


@lru_cache(maxsize=256)
def _shares_cost(job: KeywordJob) -> Cost:
    scores = blank(job.utterances, job.shape.frames, job.shape.columns)
    return record(lambda engine: name_words(engine, job, None, scores, np.zeros(job.utterances, np.int64)))


def recognize(
    met: Meeting, job: KeywordJob, utterances: Sequence[Reals], engine: ShareEngine | None = None
) -> list[str | None]:
    """The client's side, in a session of the meeting: the word of each utterance; None where the garbage model won.
    `utterances`: `(frames, dimensions)` each. `engine`: from `job.prepare`; without one it is prepared here. Raises
    RangeError before anything is sent, if an utterance cannot be scored.
    """
    monomials = job.monomials(utterances)
    engine = engine or job.prepare(met)
    scores = job.by_utterance(met.multiply(job.plan, monomials))
    last = np.array([len(each) for each in utterances]) - job.shape.shortest
    words = name_words(engine, job, None, scores, last)
    assert words is not None
    return words


def answer(
    met: Meeting, job: KeywordJob, models: WordArrays, weights: EncodedWeights, engine: ShareEngine | None = None
) -> None:
    """The server's side, in a session of the meeting: help the client to its words. `weights`: of the models, encoded
    by `encode_models` once for all jobs of so many utterances. `engine`: from `job.prepare`; without one it is prepared
    here. Raises ProtocolError for a client that does not keep to the protocol.
    """
    if models.shape != job.shape:
        raise PpspeechError("the job is of another shape than the models")
    engine = engine or job.prepare(met)
    name_words(engine, job, models, job.by_utterance(met.multiply(job.plan, weights)), None)


def encode_models(models: WordArrays, utterances: int = 1) -> EncodedWeights:
    """The weights for products of so many utterances: once a model. Raises RangeError if one does not fit."""
    return encode_weights(KeywordJob(models.shape, utterances).plan, models.score_weights, WORKERS)


def name_words(
    engine: ShareEngine, job: KeywordJob, models: WordArrays | None, scores: Residues, last: NDArray[np.int64] | None
) -> list[str | None] | None:
    """Steps 3 to 5, from shares of all components' scores: `share_scores`, then `name_best`."""
    with engine.in_flights():
        return name_best(engine, job.shape, models, share_scores(engine, job, models, scores, last))


def share_scores(
    engine: ShareEngine, job: KeywordJob, models: WordArrays | None, scores: Residues, last: NDArray[np.int64] | None
) -> Residues:
    """Steps 3 and 4: shares of every candidate's score, `(utterances, candidates)`. `scores`: shares of all components'
    scores as the product leaves them, `(utterances, frames, columns)`. `last`: the client's: the number of the last
    frame, counted from the shortest utterance's; None for the server.
    """
    shape = job.shape
    scores = counted_scores(engine, shape, models, scores)
    emissions = emission_scores(engine, shape, scores)
    run = WordRun(engine, shape, models, job.utterances, job.ahead)
    run.advance(emissions.reshape(*emissions.shape[:2], -1))
    gamma = run.scores(slice(shape.frames))
    rows = [gamma.reshape(*gamma.shape[:2], -1)]
    if shape.reject:
        rows.append(np.cumsum(scores[..., -1:], axis=1, dtype=np.uint64))
    possible = shape.scale.ring.reduce(np.concatenate(rows, axis=2)[:, shape.shortest - 1 :])
    count, frames, columns = possible.shape
    by_column = Shared(engine, possible.transpose(0, 2, 1).reshape(count * columns, frames), shape.scale.ring)
    ended = choose(by_column, None if last is None else np.repeat(last, columns))
    return end_scores(engine, shape, ended.residues.reshape(count, columns))


def counted_scores(engine: ShareEngine, shape: WordShape, models: WordArrays | None, scores: Residues) -> Residues:
    """Shares of frames' scores as they count, in [-F, 0] nats (`scores.range`), from those that the product leaves."""
    return shape.floored(engine, scores if models is None else models.below_top(scores))


def emission_scores(engine: ShareEngine, shape: WordShape, scores: Residues) -> Residues:
    """ln b of every state from the scores of all components, `(..., columns)` to `(..., words, states)`."""
    parts = scores[..., : shape.words * shape.states * shape.components]
    parts = parts.reshape(*scores.shape[:-1], shape.words, shape.states, shape.components)
    return Combine(shape.operation, shape.scale).reduce(engine, parts)


def end_scores(engine: ShareEngine, shape: WordShape, last: Residues) -> Residues:
    """Shares of the candidates' scores from γ of each last frame, `(utterances, words * states + reject)`."""
    states = last[:, : shape.words * shape.states].reshape(len(last), shape.words, shape.states)
    words = Combine(shape.operation, shape.scale).reduce(engine, states[..., list(shape.ends)])
    return np.concatenate((words, last[:, shape.words * shape.states :]), axis=1)


def name_best(
    engine: ShareEngine, shape: WordShape, models: WordArrays | None, scores: Residues
) -> list[str | None] | None:
    """Step 5: the labels of the best candidates, to the client. No score, no rank, not even a number. `scores`: shares,
    `(utterances, candidates)`. Returns for the client: a label each, None where the garbage model won. For the server:
    None.
    """
    known, size = None if models is None else models.label_numbers, (shape.candidates, shape.label_residues)
    told = tell_best(Shared(engine, scores, shape.scale.ring), known, size, TEXT_RING)
    return None if told is None else [read_text(row) for row in told]


def check_told(shape: WordShape, words: Sequence[str | None]) -> None:
    """Refuse answers without a word where there is no garbage model: a word beats all others, unless the server does
    not follow the protocol. To be called when all has been said that would be said in any case: the server must not see
    it. Raises ProtocolError.
    """
    if None in words and not shape.reject:
        raise ProtocolError(
            "no word beat all others, which cannot be within the range of the shares: the server does not follow the "
            "protocol, or serves other models than it says"
        )


def read_models(shape: WordShape, plain: Mapping[str, Any]) -> WordArrays:
    """Word models from what JSON can hold: `weights`, `transitions`, `initial` and `labels`; `top`, the score of a
    frame that the floor counts from, where it is not the highest that there can be. Raises PpspeechError if one is
    missing, is no array of numbers, or does not fit the shape.
    """
    try:
        weights, moves, starts = (np.array(plain[name], np.float64) for name in ("weights", "transitions", "initial"))
        top = None if plain.get("top") is None else float(plain["top"])
        return WordArrays(shape, weights, moves, starts, tuple(plain["labels"]), top)
    except KeyError as missing:
        raise PpspeechError(f"word models have weights, transitions, initial, labels: {missing} is missing") from None
    except (TypeError, ValueError) as error:
        raise PpspeechError(f"these are no word models: {error}") from None


@keyword.party("client")
def client(party: Party, utterance: Reals, *, shape: Mapping[str, Any]) -> str | None:
    """The client's whole program for one utterance, `(frames, dimensions)`; `shape` has a `WordShape`'s attributes."""
    job = KeywordJob(WordShape.from_params(shape))
    met = meet(party.channel, Side.SECOND)
    with met.session():
        words = recognize(met, job, [np.asarray(utterance, np.float64)])
    check_told(job.shape, words)
    return words[0]


@keyword.party("server")
def server(party: Party, models: Mapping[str, Any], *, shape: Mapping[str, Any]) -> None:
    """The server's whole program for one utterance; `models` as `read_models` takes them."""
    own = read_models(WordShape.from_params(shape), models)
    met = meet(party.channel, Side.FIRST)
    with met.session():
        answer(met, KeywordJob(own.shape), own, encode_models(own))
