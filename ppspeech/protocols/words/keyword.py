"""Keyword recognition: the client has a voice, the server word models; the client learns the word, and that is all.

    1. client → server   monomials of the padded frames, encrypted under the client's key
    2. server → client   all state scores, masked: each party now has a share of every ln b_j(x_t)
    3. both              mixtures, then the recursion over frames, on shares: log-add (forward) or max (Viterbi)
    4. both              the row of the true last frame, by an index only the client knows; the ends of the words
    5. both              the best word's label, spelled out on shares and opened to the client

Any number of utterances run in lock step: they share round trips and fill ciphertexts better. What depends on sizes
alone (transfers, encryptions of zero) is done by `prepare`, while the client still listens to its user.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.lattice import EncodedWeights, MatrixPlan, encode_weights, plan_product
from ppspeech.crypto.shares import Cost, ShareEngine, choose, choose_cost
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.meeting import WORKERS, MetClient, MetServer, meet_as_client, meet_as_server
from ppspeech.protocols.party import register_protocol
from ppspeech.protocols.scores.states import WordModels, WordShape
from ppspeech.protocols.trellis.combine import Combine
from ppspeech.protocols.trellis.recursion import Paths, step_costs
from ppspeech.protocols.trellis.scan import scan_cost, scan_paths
from ppspeech.protocols.words.choice import choice_cost, choose_residues

Order = Literal["frames", "scan"]

keyword = register_protocol(
    "keyword",
    functionality="the word whose hidden Markov model scores the client's utterance best, to the client",
    leakage="sizes alone: the padded length, dimensions, words, states, components, structure of the models",
    assumptions=(
        "both follow the protocol; ring-LWE at 128 bits, Diffie-Hellman on ed25519, AES a random permutation, SHA-256 "
        "an oracle; scores of an utterance stay within the range of the shares, or the word is wrong"
    ),
)


@dataclass(frozen=True)
class KeywordJob:
    """One recognition of some utterances: its plan and what it costs, from public sizes alone.

    Attributes:
        shape: of the models.
        utterances: in lock step.
        order: `frames`, a step a frame; or `scan`, for links where a round trip is dear.
    """

    shape: WordShape
    utterances: int = 1
    order: Order = "frames"

    @cached_property
    def plan(self) -> MatrixPlan:
        """The encrypted product of all utterances: the more there are, the fuller the replies' polynomials."""
        rows = self.utterances * self.shape.frames
        return plan_product(rows, self.shape.monomials, self.shape.columns, self.shape.precision)

    @cached_property
    def shares_cost(self) -> Cost:
        """All that happens on shares."""
        shape, n = self.shape, self.utterances
        combine = Combine(shape.operation, shape.scale)
        cost = combine.reduce_cost(n * shape.frames * shape.words * shape.states, shape.components)
        cost += scan_cost(shape, n) if self.order == "scan" else step_costs(shape, n, shape.frames)
        columns = shape.words * shape.states + shape.reject
        cost += choose_cost(shape.scale.ring, n * columns, shape.frames - shape.shortest + 1)
        return (cost + end_cost(shape, n)).in_flights()

    @property
    def total_bytes(self) -> int:
        """Payload of everything, offline and online, both ways."""
        return self.plan.total_bytes + self.shares_cost.total_bytes

    def by_utterance(self, scores: Residues) -> Residues:
        """Shares of all scores, `(utterances, frames, columns)`, from those of the product."""
        return scores.reshape(self.utterances, self.shape.frames, self.shape.columns)

    @property
    def rounds(self) -> int:
        """Round trips online."""
        return 1 + self.shares_cost.rounds


class KeywordClient:
    """The client's side of a meeting; use it inside `met.session()`.

    Args:
        met: with the server.
        job: agreed on with it.
    """

    def __init__(self, met: MetClient, job: KeywordJob) -> None:
        self._met = met
        self._job = job
        self._engine: ShareEngine | None = None

    def prepare(self) -> None:
        """Offline: transfers with the server, encryptions of zero; then one `recognize`."""
        self._engine = self._met.prepare(self._job.plan, self._job.shares_cost)

    def recognize(self, utterances: Sequence[Reals]) -> list[str | None]:
        """The word of each utterance `(frames, dimensions)`; None where the garbage model won.

        Raises:
            RangeError: before anything is sent, if an utterance cannot be scored.
        """
        shape, plan = self._job.shape, self._job.plan
        if len(utterances) != self._job.utterances:
            raise RangeError(f"this job is for {self._job.utterances} utterances, got {len(utterances)}")
        monomials = np.concatenate([shape.padded_monomials(each) for each in utterances])
        if self._engine is None:
            self.prepare()
        engine, self._engine = self._engine, None
        assert engine is not None
        emissions = self._job.by_utterance(self._met.multiply(plan, monomials))
        last = np.array([len(each) for each in utterances]) - shape.shortest
        with engine.in_flights():
            answer = choose_residues(engine, shape, None, share_scores(engine, self._job, None, emissions, last))
        assert answer is not None
        return answer


class KeywordServer:
    """The server's side of a meeting; use it inside `met.session()`.

    Args:
        met: with the client.
        job: agreed on with it.
        models: its own.
        weights: of the models, encoded by `encode_models` once for all jobs of so many utterances.
    """

    def __init__(self, met: MetServer, job: KeywordJob, models: WordModels, weights: EncodedWeights) -> None:
        if models.shape != job.shape:
            raise PpspeechError("the job is of another shape than the models")
        self._met = met
        self._job = job
        self._models = models
        self._weights = weights
        self._engine: ShareEngine | None = None

    def prepare(self) -> None:
        """Offline; the client does so at the same time."""
        self._engine = self._met.prepare(self._job.plan, self._job.shares_cost)

    def answer(self) -> None:
        """Help the client to its words.

        Raises:
            ProtocolError: for a client that does not keep to the protocol.
        """
        if self._engine is None:
            self.prepare()
        engine, self._engine = self._engine, None
        assert engine is not None
        emissions = self._job.by_utterance(self._met.multiply(self._job.plan, self._weights))
        with engine.in_flights():
            scores = share_scores(engine, self._job, self._models, emissions, None)
            choose_residues(engine, self._job.shape, self._models, scores)


def encode_models(models: WordModels, utterances: int = 1) -> EncodedWeights:
    """The weights as the encrypted product of so many utterances needs them: once a model.

    Raises:
        RangeError: if a weight does not fit.
    """
    return encode_weights(KeywordJob(models.shape, utterances).plan, models.score_weights, WORKERS)


def share_scores(
    engine: ShareEngine, job: KeywordJob, models: WordModels | None, scores: Residues, last: NDArray[np.int64] | None
) -> Residues:
    """Steps 3 and 4: shares of every candidate's score, `(utterances, candidates)`.

    Args:
        engine: this party's.
        job: agreed on.
        models: the server's; None for the client.
        scores: shares of all components' scores, `(utterances, frames, columns)`.
        last: the client's: the number of the last frame, counted from the shortest utterance's; None for the server.
    """
    shape = job.shape
    emissions = emission_scores(engine, shape, scores)
    if job.order == "scan":
        gamma = scan_paths(engine, shape, models, emissions)
    else:
        paths, state, states = Paths(engine, shape, models), None, []
        for emission in emissions.swapaxes(0, 1):
            state = paths.step(state, emission)
            states.append(state)
        gamma = np.stack(states, axis=1)
    rows = [gamma.reshape(*gamma.shape[:2], -1)]
    if shape.reject:
        rows.append(np.cumsum(scores[..., -1:], axis=1, dtype=np.uint64))
    possible = shape.scale.ring.reduce(np.concatenate(rows, axis=2)[:, shape.shortest - 1 :])
    count, frames, columns = possible.shape
    by_column = possible.transpose(0, 2, 1).reshape(count * columns, frames)
    index = None if last is None else np.repeat(last, columns)
    return end_scores(engine, shape, choose(engine, by_column, index, shape.scale.ring).reshape(count, columns))


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


def end_cost(shape: WordShape, utterances: int) -> Cost:
    """`end_scores`, and the choice among them."""
    ends = Combine(shape.operation, shape.scale).reduce_cost(utterances * shape.words, len(shape.ends))
    return ends + choice_cost(shape, utterances)


@keyword.party("client")
def client(channel: Channel, utterance: Reals, *, shape: WordShape, order: Order = "frames") -> str | None:
    """The client's whole program for one utterance."""
    met = meet_as_client(channel)
    with met.session():
        return KeywordClient(met, KeywordJob(shape, order=order)).recognize([utterance])[0]


@keyword.party("server")
def server(channel: Channel, models: WordModels, *, shape: WordShape, order: Order = "frames") -> None:
    """The server's whole program for one utterance."""
    met = meet_as_server(channel)
    with met.session():
        KeywordServer(met, KeywordJob(shape, order=order), models, encode_models(models)).answer()
