"""Words over slow links: the recursion in a garbled circuit, so that no frame waits for a round trip.

    offline   both              transfers for the client's shares; tables, from the server
    1, 2      client ⇄ server   encrypted frames, masked scores: the server's share was fixed before
    3, 4      client ⇄ server   the client's choices, masked; labels, and all words' texts, of which one opens

Two round trips for any number of utterances. The models are one graph that ends in one place: the best path through it
ends in the best word, whose number the circuit has in labels. Under those of each number the server hides its text
(`Garbler.tell_text`), so that the client learns the word's and no other's, nor which number it has.

Best paths alone: a sum over all of them would need a table a step, and is done on shares (`keyword`). Theorem 2.22 in
docs/theory/asking.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.lattice import EncodedWeights, ReplyMask, share_before
from ppspeech.crypto.shares import show_text
from ppspeech.crypto.transfer import Side
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.meeting import Meeting, meet
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.scores.states import WordArrays, WordShape
from ppspeech.protocols.trellis import (
    Arc,
    GarbledCost,
    Rule,
    Set,
    Start,
    Trellis,
    TrellisCircuit,
    WholeEvaluation,
    WholeGarbling,
    plan_circuit,
    plan_trellis,
    whole_cost,
)
from ppspeech.protocols.words.keyword import KeywordJob, check_told, encode_models, read_models

keyword_garbled = register_protocol(
    "keyword_garbled",
    functionality="as keyword, of best paths, in two round trips",
    leakage="sizes alone: the padded length, dimensions, words, states, components, structure of the models",
    assumptions="as those of keyword, and the hash of half gates circular correlation robust; SHAKE-256 an oracle",
)

MOST_CELLS = 1 << 22
"""Arcs times frames that a party is ready to follow in a circuit."""


def why_not_garbled(shape: WordShape) -> str | None:
    """Why words of this shape are not recognized in a circuit; None where they are."""
    if shape.operation != "viterbi":
        return "a circuit takes best paths, and these models add up all: serve words with operation=viterbi"
    if shape.reach is not None:
        return "a circuit has no floor under scores, and frames of these models need one: lower their radius"
    if shape.frames * shape.columns * (len(shape.moves) + 2) > MOST_CELLS:
        return f"{shape.columns:,} states over {shape.frames:,} frames are too many for a circuit: serve fewer frames"
    return None


@lru_cache(maxsize=16)
def word_circuit(shape: WordShape) -> TrellisCircuit:
    """All models in one graph, whose best path meets the number of its word once, where it ends. Raises RangeError for
    shapes that no circuit takes.
    """
    why = why_not_garbled(shape)
    if why is not None:
        raise RangeError(why)
    trellis = _graph(shape)
    return plan_circuit(plan_trellis(trellis, shape.frames), len(trellis.columns) - 1)


def _graph(shape: WordShape) -> Trellis:
    """A vertex a column; where states have components, one that gathers those of a state, and one that leads to them;
    one in which all words end. Weights: of moves elsewhere, then of beginnings.
    """
    columns: list[int | None] = [*range(shape.columns)]
    moves = [move for move in shape.moves if move]
    arcs: list[Arc] = []
    starts: list[Start] = []
    ends: list[tuple[int, int]] = []

    def junction() -> int:
        columns.append(None)
        return len(columns) - 1

    def vertices(word: int, state: int) -> range:
        first = (word * shape.states + state) * shape.components
        return range(first, first + shape.components)

    for word in range(shape.words):
        leads, taken = [], []
        for state in range(shape.states):
            own = vertices(word, state)
            if shape.components == 1:
                taken.append(own[0])
                leads.append(own[0])
                continue
            gathered, lead = junction(), junction()
            arcs += [Arc(each, gathered, 0) for each in own]
            arcs += [Arc(lead, each) for each in own]
            taken.append(gathered)
            leads.append(lead)
        delay = 1 if shape.components == 1 else 0
        for target in range(shape.states):
            if 0 in shape.moves:
                arcs.append(Arc(taken[target], leads[target], delay))
            for number, move in enumerate(moves):
                source = target - move
                if 0 <= source < shape.states:
                    weight = (word * shape.states + source) * len(moves) + number
                    arcs.append(Arc(taken[source], leads[target], delay, weight))
        first = shape.words * shape.states * len(moves) + word * len(shape.starts)
        starts += [Start(v, first + at) for at, state in enumerate(shape.starts) for v in vertices(word, state)]
        ends += [(taken[state], word) for state in shape.ends]
    if shape.reject:
        garbage = shape.columns - 1
        arcs.append(Arc(garbage, garbage))
        starts.append(Start(garbage))
        ends.append((garbage, shape.words))
    end = junction()
    arcs += [Arc(source, end, 0, rules=(Rule(Set.CONSTANT, word),)) for source, word in ends]
    return Trellis(tuple(columns), tuple(arcs), tuple(starts), shape.bits, (shape.candidates.bit_length(),))


def move_residues(models: WordArrays) -> Residues:
    """Weights of the graph, at the scale of the shares."""
    elsewhere = [number for number, move in enumerate(models.shape.moves) if move]
    moves = models.transition_residues[:, :, elsewhere]
    return np.concatenate([moves.reshape(-1), models.initial_residues.reshape(-1)])


def garbled_cost(shape: WordShape) -> GarbledCost:
    """Payload of the circuit of one utterance, without the encrypted product."""
    return whole_cost(word_circuit(shape), shape.label_bytes)


def garbled_bytes(shape: WordShape, utterances: int = 1) -> int:
    """Payload of everything, offline and online, both ways."""
    return KeywordJob(shape, utterances).plan.total_bytes + utterances * garbled_cost(shape).total


@dataclass(frozen=True, eq=False)
class PreparedWords:
    """The server's side of some utterances, prepared."""

    mask: ReplyMask
    garblings: tuple[WholeGarbling, ...]


def prepare_texts(met: Meeting, job: KeywordJob, models: WordArrays) -> PreparedWords:
    """Offline, the server: what is to be sent, as the client does `prepare_naming`."""
    if models.shape != job.shape:
        raise PpspeechError("the job is of another shape than the models")
    circuit, weights = word_circuit(job.shape), move_residues(models)
    met.lattice.prepare(job.plan.job)
    mask = ReplyMask(job.plan.job)
    shares = job.by_utterance(share_before(job.plan, mask))
    made = tuple(WholeGarbling(met.channel, met.setup, circuit, weights, share) for share in shares)
    return PreparedWords(mask, made)


def prepare_naming(met: Meeting, job: KeywordJob) -> tuple[WholeEvaluation, ...]:
    """Offline, the client: transfers, and tables that are kept until they are used."""
    circuit = word_circuit(job.shape)
    met.lattice.prepare(job.plan.job)
    return tuple(WholeEvaluation(met.channel, met.setup, circuit) for _ in range(job.utterances))


def recognize_garbled(
    met: Meeting, job: KeywordJob, utterances: Sequence[Reals], prepared: tuple[WholeEvaluation, ...] | None = None
) -> list[str | None]:
    """As `recognize`; None also where what the server sent opens to nothing (`check_told`, when all has been said)."""
    monomials = job.monomials(utterances)
    prepared = prepared or prepare_naming(met, job)
    shares = job.by_utterance(met.multiply(job.plan, monomials))
    for each, share, utterance in zip(prepared, shares, utterances, strict=True):
        each.ask(share, len(utterance))
    return [show_text(each.named(job.shape.label_bytes) or b"") for each in prepared]


def answer_garbled(
    met: Meeting, job: KeywordJob, models: WordArrays, weights: EncodedWeights, prepared: PreparedWords | None = None
) -> None:
    """As `answer`; `prepared`: by `prepare_texts`."""
    prepared = prepared or prepare_texts(met, job, models)
    met.multiply(job.plan, weights, prepared.mask)
    texts = [label.encode().ljust(job.shape.label_bytes, b"\0") for label in models.labels]
    if job.shape.reject:
        texts.append(bytes(job.shape.label_bytes))
    for each in prepared.garblings:
        each.name(texts)


@keyword_garbled.party("client")
def client(party: Party, utterance: Reals, *, shape: Mapping[str, Any]) -> str | None:
    """The client's whole program for one utterance, `(frames, dimensions)`; `shape` has a `WordShape`'s attributes."""
    job = KeywordJob(WordShape.from_params(shape))
    met = meet(party.channel, Side.SECOND)
    with met.session():
        words = recognize_garbled(met, job, [np.asarray(utterance, np.float64)])
    check_told(job.shape, words)
    return words[0]


@keyword_garbled.party("server")
def server(party: Party, models: Mapping[str, Any], *, shape: Mapping[str, Any]) -> None:
    """The server's whole program for one utterance; `models` as `read_models` takes them."""
    own = read_models(WordShape.from_params(shape), models)
    met = meet(party.channel, Side.FIRST)
    with met.session():
        answer_garbled(met, KeywordJob(own.shape), own, encode_models(own))
