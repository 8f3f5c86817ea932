"""Sentences: what is agreed on, what is asked, and one utterance from shares of its scores to its words."""

from dataclasses import replace
from typing import Any

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.audio import MfccConfig
from ppspeech.bundle import to_plain
from ppspeech.crypto import Ring
from ppspeech.crypto.shares import Cost, ShareEngine
from ppspeech.crypto.shares.select import multiply_loaded
from ppspeech.network.channel.hello import canonical
from ppspeech.protocols.sentences import SentenceArrays, SentenceShape, follow_words, product_plan, shares_cost
from ppspeech.service.requests import Ask, Request
from ppspeech.service.tasks.sentences import Sentences, most_words, shape_at_length
from tests.vectors.dealt import HOW, transcript
from tests.vectors.drawn import drawn

ARCS = (
    (1, 1, 0, -1), (2, 2, 0, -1), (3, 3, 0, -1), (4, 4, 0, -1), (0, 1, 1, 0), (1, 2, 0, -1), (2, 0, 0, -1),
    (2, 5, 0, -1), (0, 3, 1, -1), (3, 0, 0, 1), (3, 5, 0, 1), (0, 4, 1, 2), (4, 5, 0, -1), (5, 1, 1, 0),
)  # fmt: skip
"""A loop of two words, one of which is known where it ends, and silence before the end."""

SHAPE = SentenceShape(
    32, 2, "diagonal", (-1, 0, 1, 2, 3, -1), ARCS, ((1, 0), (4, 2)), 5, ("one", "größe", ""), most_words(32), bits=16,
    limit=8.0, radius=9.5,
)  # fmt: skip
"""The model that examples are of."""

FRAMES = 12
"""Of the utterance, which is asked about as one of 16."""


def sentences() -> dict[str, Any]:
    mfcc = MfccConfig(cepstra=2, deltas=0, cmvn="public", public_mean=(1.0, -2.5), public_std=(1.0, 2.0), vad_db=40.0)
    terms = Sentences("sentence_hmm", SHAPE, mfcc, 16, ("frames", "garbled"), True)
    shape, cost = terms.shape_of(1), shares_cost(terms.shape_of(1))
    return {
        "terms": to_plain(terms),
        "terms_canonical": canonical(to_plain(terms)).decode(),
        "agreement": terms.agreement("cd" * 32),
        "request": Request(Ask.SENTENCE, "frames", steps=1).encode().hex(),
        "records": list(shape.records),
        "fields": list(shape.fields),
        "shortest": shape.shortest,
        "factor_of_2_frames": shape.padded_monomials(np.array([[3.0, -2.0], [10.0, 0.5]]))[:3].tolist(),
        "costs": [_cost(frames) for frames in (16, 32)],
        "cuts": [_cut(*each) for each in ((32, 2), (160, 39), (1000, 39))],
        "product": _product(),
        "utterance": _utterance(shape) | {"correlations": HOW, "products": cost.products},
    }


def _cost(frames: int) -> dict[str, Any]:
    shape = shape_at_length(SHAPE, frames)
    cost = shares_cost(shape)
    return {
        "frames": frames,
        "tables": {f"{bits},{width}": count for (bits, width), count in sorted(cost.tables.items())},
        "products": cost.products,
        "online_bytes_client": cost.bytes_second,
        "online_bytes_server": cost.bytes_first,
        "joined_in_slots": [len(slot.joined) for slot in shape.plan.slots],
    }


def _cut(frames: int, dimensions: int) -> dict[str, Any]:
    plan = product_plan(replace(shape_at_length(replace(SHAPE, frames=frames), frames), dimensions=dimensions))
    return {
        "frames": frames,
        "dimensions": dimensions,
        "block": [plan.block_rows, plan.block_inner, plan.block_columns],
        "identity": plan.job.identity.hex(),
        "query_bytes": plan.job.query_bytes,
        "reply_bytes": plan.job.reply_bytes,
    }


def _product() -> dict[str, Any]:
    """One that carries a load, of as many bits as there may be."""
    bits = np.array([1, 0, 1, 1], np.uint8)
    residues, loads = np.array([5, 2**30, 12345, 0], np.uint64), np.array([1, 2**31 - 1, 77, 2**30 + 3], np.uint64)

    def program(engine: ShareEngine) -> Any:
        return multiply_loaded(engine, bits, residues, loads, Ring(32), 31)

    (found, carried), sent, received = transcript(Cost(products=4), program, program)
    return {
        "k": 32,
        "width": 31,
        "bits": bits.tolist(),
        "residues": residues.tolist(),
        "loads": loads.tolist(),
        "correlations": {each: HOW[each] for each in ("bits", "got, zero, one")},
        "sent": sent[0],
        "received": received[0],
        "share": found.tolist(),
        "share_of_loads": carried.tolist(),
    }


def _utterance(shape: SentenceShape) -> dict[str, Any]:
    """Both parties' programs, of scores and moves that are made up; words cost two nats."""
    size = shape.frames * shape.scores
    ring = shape.scale.ring
    scores = -(np.frombuffer(drawn("scores", size), np.uint8).astype(np.int64) // 4).reshape(shape.frames, -1)
    moves = -(np.frombuffer(drawn("moves", len(shape.arcs)), np.uint8) / 128.0)
    moves -= 2.0 * np.array([arc[2] for arc in shape.arcs])
    arrays = SentenceArrays(shape, np.zeros((shape.monomials, shape.scores)), moves, np.zeros(len(shape.starts)))
    own: Residues = ring.reduce(np.frombuffer(drawn("shares", 8 * size), "<u8").astype(np.uint64))
    own = own.reshape(scores.shape)
    theirs = ring.reduce(ring.from_signed(scores) - own)
    heard, sent, received = transcript(
        shares_cost(shape),
        lambda engine: follow_words(engine, shape, None, own, FRAMES),
        lambda engine: follow_words(engine, shape, arrays, theirs, None),
    )
    return {
        "frames": FRAMES,
        "scores": "our share: SHAKE-128 of 'shares', 8 bytes each, of which k bits count; row by row",
        "sent": sent,
        "received": received,
        "heard": [[each.word, each.start, each.end] for each in heard],
    }
