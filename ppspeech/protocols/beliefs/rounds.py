"""The rounds of messages on shares of two parties, all messages of a round at once."""

from functools import lru_cache

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.channel import Channel
from ppspeech.crypto.shares import (
    Cost,
    Shared,
    ShareEngine,
    blank,
    extend,
    follow_lines,
    maximum,
    minimum,
    record,
    scale_public,
)
from ppspeech.crypto.transfer import PairSetup
from ppspeech.protocols.beliefs.shape import BeliefShape

MOST_PREPARED = 1 << 25
"""Bytes of pads that are made at a time."""


def answered(engine: ShareEngine, shape: BeliefShape, inside: Residues, before: Residues, which: slice) -> Residues:
    """Shares of the next messages from shares of what goes into them, and of those before; `which`: of all messages of
    the shape, those that are here.
    """
    ring = shape.ring
    _, functions = shape.strengths
    if shape.operation == "sum":
        after = follow_lines(engine, inside, shape.lines, functions[which])
    else:
        limit = Shared(engine, engine.public(shape.limits[which]), ring)
        bounded = maximum(minimum(Shared(engine, ring.reduce(inside), ring), limit), -limit).residues
        alike = shape.strengths[0][functions[which]] > 0
        after = np.where(alike, bounded, ring.reduce(np.uint64(0) - bounded))
    if shape.damping:
        after = after + scale_public(engine, ring.reduce(before - after), ring, shape.damping)
    return ring.reduce(after)


def go_round(engine: ShareEngine, shape: BeliefShape, priors: Residues, messages: Residues, rounds: int) -> Residues:
    """Shares of all messages, `(messages,)`, so many rounds later."""
    for _ in range(rounds if len(messages) else 0):
        came = priors + shape.gathered(messages)
        inside = came[shape.sources] - messages[shape.against]
        messages = answered(engine, shape, inside, messages, slice(None))
    return messages


def widened(engine: ShareEngine, shape: BeliefShape, priors: Residues) -> Residues:
    """Shares of priors in the ring of messages, from shares in their own."""
    return extend(Shared(engine, shape.narrow.reduce(priors), shape.narrow), shape.ring).residues


@lru_cache(maxsize=16)
def start_cost(shape: BeliefShape) -> Cost:
    """Of `widened`."""
    return record(lambda engine: widened(engine, shape, blank(shape.nodes)))


@lru_cache(maxsize=32)
def rounds_cost(shape: BeliefShape, rounds: int) -> Cost:
    """Of so many rounds."""
    messages = blank(len(shape.sources))
    return record(lambda engine: go_round(engine, shape, blank(shape.nodes), messages, rounds))


def portions(shape: BeliefShape) -> list[int]:
    """The rounds that are prepared together."""
    pads = (8 << shape.lines.index) + 512 if shape.operation == "sum" else 1_024
    each = max(1, MOST_PREPARED // max(1, pads * len(shape.sources)))
    return [min(each, shape.rounds - at) for at in range(0, shape.rounds, each)]


def costs(shape: BeliefShape) -> list[Cost]:
    """Of each portion, the first with what is done to priors."""
    found = [rounds_cost(shape, rounds) for rounds in portions(shape)]
    return [start_cost(shape) + found[0], *found[1:]]


def prepare(channel: Channel, setup: PairSetup, shape: BeliefShape) -> ShareEngine:
    """Offline, both servers at the same time: for the first portion."""
    return ShareEngine(channel, setup, costs(shape)[0])


def believe(
    channel: Channel, setup: PairSetup, shape: BeliefShape, priors: Residues, engine: ShareEngine | None = None
) -> Residues:
    """Either server's side, in a session of the setup: shares of all beliefs `(nodes,)` from shares of all priors."""
    engine = engine or prepare(channel, setup, shape)
    own = widened(engine, shape, priors)
    messages = np.zeros(len(shape.sources), np.uint64)
    for number, (rounds, cost) in enumerate(zip(portions(shape), costs(shape), strict=True)):
        engine = ShareEngine(channel, setup, cost) if number else engine
        messages = go_round(engine, shape, own, messages, rounds)
    return shape.ring.reduce(own + shape.gathered(messages))
