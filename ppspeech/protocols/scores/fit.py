"""The smallest shares that hold a model's scores for certain, and the widest floor that its product needs."""

import math
from dataclasses import replace

from ppspeech.arrays import Reals
from ppspeech.errors import RangeError
from ppspeech.protocols.scores.range import needed_bits
from ppspeech.protocols.scores.states import MOST_REACH, VAGUE, WordArrays, WordShape, score_bounds, with_stays

FRACTION = {"forward": 5, "viterbi": 4}
"""Bits after the point. A log-add is right to an eighth of a nat, and 22 bits in all keep an entry of its table at
three bytes; 21 bits in all are compared in blocks of 5."""
ONE_FRAME_FRACTION = 7
MOST_BITS = 32
USUAL_BITS = 25
"""With more, a comparison takes a step more: one or two bits after the point are given up for it."""
COARSEST = 3
ROUNDS = 4


def fit_words(
    shape: WordShape,
    weights: Reals,
    transitions: Reals,
    initial: Reals,
    labels: tuple[str, ...],
    *,
    floor: tuple[float, int] | None,
    bits: int | None = None,
) -> WordArrays:
    """Word models with the `bits`, `fraction`, `floor`, `reach` and `top` that their scores need; those of `shape` are
    not looked at. `floor`: the score of a frame, staying included, below which nothing counts, and how many nats that
    is below the highest; None: what a frame scores counts, however low. `bits`: so many, or RangeError, instead of as
    many as are needed.

    How low a frame can score shows in no more than `reach`; the garbage model's height in steps of 16 nats alone.
    """
    fraction = ONE_FRAME_FRACTION if shape.frames == 1 else FRACTION[shape.operation]
    wide = replace(shape, bits=MOST_BITS, fraction=fraction, floor=None, reach=None)
    scored = with_stays(wide, weights, transitions)
    found = wide
    for _ in range(ROUNDS):  # errors of the product, which count, depend on its range
        lowest, highest = score_bounds(found, scored)
        if floor is None:
            highest = float(math.ceil(highest))  # whole nats: taking them off a frame's score rounds nothing
        depth = math.ceil(highest - lowest) if floor is None else _depth(floor, highest)
        before, found = found, _with_depth(wide, depth, bits)
        if floor is not None:
            highest = floor[0] + depth
            found = replace(found, floor=depth, reach=_reach(found, highest - lowest) if lowest < floor[0] else None)
        if found == before:
            break
    return WordArrays(found, weights, transitions, initial, labels, highest)


def _depth(floor: tuple[float, int], highest: float) -> int:
    """From the floor to the highest score that there can be: what was asked for, and steps of 16 nats."""
    level, depth = floor
    step = 1 << VAGUE
    return depth + step * math.ceil(max(0.0, highest - level - depth) / step)


def _with_depth(shape: WordShape, depth: int, bits: int | None) -> WordShape:
    coarse = min(shape.fraction, COARSEST)
    for most, least in ((USUAL_BITS, coarse), (MOST_BITS, 0)):
        for fraction in range(shape.fraction, least - 1, -1):
            found = replace(shape, fraction=fraction)
            if needed_bits(found, depth) <= most:
                return replace(found, bits=bits or needed_bits(found, depth))
    return replace(shape, fraction=0, bits=bits or MOST_BITS)


def _reach(shape: WordShape, span: float) -> int:
    reach = 1 + math.ceil(math.log2(span + (2 << VAGUE)))
    if reach > MOST_REACH:
        raise RangeError(
            f"a frame of features within {shape.limit:g} can score {span:,.0f} nats below the highest, and a product "
            f"has room for 2^{MOST_REACH - 1}: lower the limit of features"
        )
    return max(reach, shape.bits - shape.fraction)
