"""Why no score of a search leaves its ring: bounds that hold for every recording, every keyword and every template.

Shares mod 2^k with f bits after the point tell two scores apart while these differ by less than 2^(k - 1 - f) nats.
Every frame lies within a public limit and a public radius (its holder clips it), so what a keyword's state can score is
known in advance (`scores.range.frame_bounds`); both parties' parts of a frame's ratio e are then within what the shape
says, or refused where they are made. With u = 2^(1 - f) for rounding, on both sides:

**Spotting**, -L <= e <= H, S states of a phrase in all, B frames of a block, C for constant and threshold.

1. A token may enter the first state at every frame, with 0; from there a path of S frames leads through all states. So
   wherever a token can be at all, the best one there scores at least -S (L + u); and no path of at most B frames scores
   more than B (H + u). Gaps between words keep what came before them.
2. Two scores that are compared, in a state, where words meet, as the best so far, or between blocks, therefore differ
   by at most D = S (L + u) + B (H + u), and the last comparison, with the threshold, is of at most D + C.
3. Beyond the end of a recording a frame scores -20, which lies in [-L, H].

**Best average**: θ, an average of ratios and of the constant over at least S frames, is in [-L - C, H + C], and is
taken off every ratio: the same with L + H + C + u instead of both L and H.

**Warping**, frames within a radius r: -2 r² <= s <= 0, up to errors of the product and of rounding, v in all. A cell
(i, j) is reached along the diagonal and then straight, by at most max(i, j) + 1 <= n cells, all in the band if the last
one is: no best score is below -n (2 r² + v), and none above (2 n - 1) v. So two that are compared, in a cell, between
templates, or with a threshold in [-2 n r², 0], differ by at most n (2 r² + v) + 2 n v.

A shape is refused unless its ring holds these. Theorem 2.18 in docs/theory/asking.md.
"""


def spotting_apart(states: int, frames: int, lowest: float, highest: float, fraction: int) -> float:
    """D: the nats by which two scores that are compared can differ; `states` of a phrase, `frames` of a block."""
    rounding = 2.0 ** (1 - fraction)
    return states * (max(0.0, -lowest) + rounding) + frames * (max(0.0, highest) + rounding)


def average_apart(states: int, frames: int, lowest: float, highest: float, constant: float, fraction: int) -> float:
    """As `spotting_apart`, where an average is taken off every ratio."""
    span = highest - lowest + constant + 2.0 ** (1 - fraction)
    return spotting_apart(states, frames, -span, span, fraction)


def warping_apart(length: int, radius: float, rounding: float) -> float:
    """The nats by which two scores of alignments that are compared can differ; `rounding`: v."""
    return length * (2 * radius**2 + rounding) + 2 * length * rounding


def needed_bits(apart: float, fraction: int) -> int:
    """Of shares, for scores that differ by at most `apart` nats.

    >>> needed_bits(8191.9, 2), needed_bits(8192.0, 2)
    (16, 17)
    """
    bits = 2
    while not apart < 2.0 ** (bits - 1 - fraction):
        bits += 1
    return bits
