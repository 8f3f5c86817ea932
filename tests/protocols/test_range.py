"""No score leaves the range of its shares: shapes and models that could are refused, and no frame brings it about."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.shares import ShareEngine
from ppspeech.crypto.transfer import Side
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.network import run_together
from ppspeech.protocols import Party
from ppspeech.protocols.scores.fit import fit_words
from ppspeech.protocols.scores.monomials import form_weights
from ppspeech.protocols.scores.range import (
    RAREST,
    deepest_floor,
    frame_bounds,
    most_apart,
    most_monomials,
    unreached,
)
from ppspeech.protocols.scores.states import VAGUE, WordArrays, WordShape
from ppspeech.protocols.words import keyword_stream
from ppspeech.protocols.words.keyword import KeywordJob, share_scores
from ppspeech.protocols.words.keyword import client as ask
from ppspeech.protocols.words.keyword import server as serve
from tests.crypto.pairs import together
from tests.protocols.word_reference import plain_models, plain_scores, plain_word

CHAIN: dict[str, Any] = {"words": 2, "states": 3, "ends": (0, 1, 2), "bits": 17, "fraction": 3}
ANY: dict[str, Any] = CHAIN | {"moves": (-1, 0, 1), "starts": (0, 2), "bits": 19}


def tight(frames: int = 9, **sizes: Any) -> WordShape:
    """A shape whose floor is as deep as its shares can hold."""
    shape = WordShape(frames, 1, "linear", **(CHAIN | sizes))
    return replace(shape, floor=deepest_floor(shape), reach=20)


def by_hand(shape: WordShape, stays: float) -> WordArrays:
    """Models whose scores of frames are given by hand; who may stay may not move, and the other way round."""
    moves = np.full((shape.words, shape.states, len(shape.moves)), RAREST - stays)
    moves[:, :, shape.moves.index(0)] = stays
    begins = np.full((shape.words, len(shape.starts)), RAREST - stays)
    return WordArrays(shape, np.zeros((shape.monomials, shape.columns)), moves, begins, ("a", "b"), top=16.0)


def on_shares(models: WordArrays, job: KeywordJob, emissions: Reals) -> Reals:
    """Scores of the candidates from emissions `(utterances, frames, columns)` in nats, above the floor or far below."""
    shape = models.shape
    scale = shape.score_scale
    shares = scale.ring.share(scale.ring.from_signed(scale.encode(emissions + models.highest)))
    last = np.full(len(emissions), shape.frames - shape.shortest)

    def program(engine: ShareEngine, side: Side) -> Residues:
        mine = (models, None) if side is Side.FIRST else (None, last)
        return share_scores(engine, job, mine[0], shares[side], mine[1])

    first, second, _, _ = together(program)
    return shape.scale.decode(shape.scale.ring.to_signed(shape.scale.ring.join(first, second)))


def by_paths(models: WordArrays, emissions: Reals) -> Reals:
    """The same in the clear: every state's best, or sum, of what leads there."""
    shape = models.shape
    combine = np.logaddexp if shape.operation == "forward" else np.maximum
    e = np.maximum(emissions, -shape.depth)
    each = e[..., : shape.words * shape.states].reshape(*e.shape[:2], shape.words, shape.states)
    moves = models.transition_residues, models.initial_residues
    relative, begin = (shape.scale.decode(shape.scale.ring.to_signed(one)) for one in moves)
    gamma = np.full(each[:, 0].shape, -np.inf)
    gamma[..., list(shape.starts)] = begin
    gamma = gamma + each[:, 0]
    for t in range(1, shape.frames):
        arriving = np.full(gamma.shape, -np.inf)
        for number, move in enumerate(shape.moves):
            for source in range(max(0, -move), min(shape.states, shape.states - move)):
                came = gamma[..., source] + relative[:, source, number]
                arriving[..., source + move] = combine(arriving[..., source + move], came)
        gamma = arriving + each[:, t]
    words: Reals = combine.reduce(gamma[..., list(shape.ends)], axis=-1)
    if shape.reject:
        words = np.concatenate((words, e[..., -1].sum(axis=1, keepdims=True)), axis=-1)
    return words


def wild(shape: WordShape, count: int, seed: int) -> Reals:
    """Emissions that pull paths as far apart as they go: words, states and halves of the utterance at the ends of the
    range, at the floor, far below it, at random."""
    make = np.random.default_rng(seed)
    size = (count, shape.frames, shape.columns)
    lowest = -(2.0 ** (shape.reach - 1)) + (4 << VAGUE)
    ends = np.array([0.0, -shape.depth, lowest, -shape.depth - 1.0, -shape.depth + 2.0 * (1 << VAGUE)])
    picked = ends[make.integers(len(ends), size=size)]
    by_column = np.broadcast_to(ends[make.integers(len(ends), size=(count, 1, shape.columns))], size)
    halves = np.where(
        np.arange(shape.frames)[:, None] < make.integers(shape.frames, size=(count, 1, 1)), by_column, picked
    )
    kinds = np.stack([picked, by_column, halves, make.uniform(lowest, 0, size)])
    found = kinds[make.integers(len(kinds), size=count), np.arange(count)]
    found[:2], found[0, :, : shape.states], found[1, :, -1] = lowest, 0.0, 0.0
    return found


@pytest.mark.parametrize("operation", ["forward", "viterbi"])
@pytest.mark.parametrize(
    "sizes", [CHAIN, ANY, CHAIN | {"reject": True, "ends": (2,)}], ids=["chains", "any structure", "garbage"]
)
@pytest.mark.parametrize("stays", [0.0, RAREST], ids=["stay", "move"])
def test_no_emission_brings_a_score_out_of_range(sizes: dict[str, Any], operation: Any, stays: float) -> None:
    """As deep a floor as the shares hold, and emissions that use all of it: every score is that of whole numbers."""
    shape = tight(**(sizes | {"operation": operation}))
    models = by_hand(shape, stays)
    emissions = wild(shape, 60, seed=6)
    found = on_shares(models, KeywordJob(shape, 60), emissions)
    wanted = by_paths(models, emissions)
    apart = wanted - wanted[:, :1]
    assert np.abs(apart[0]).max() > 0.9 * shape.frames * shape.depth  # the range is used
    assert np.abs(apart).max() < most_apart(shape) <= shape.scale.bound
    np.testing.assert_allclose(found - found[:, :1], apart, rtol=0, atol=3.0 if operation == "forward" else 1.2)


@pytest.mark.parametrize("fraction", [0, 4, 7])
def test_what_is_below_the_floor_counts_as_the_floor_and_nothing_else_changes(fraction: int) -> None:
    shape = replace(tight(fraction=fraction, bits=14 + fraction), floor=300)
    models = by_hand(shape, 0.0)
    scale, low = shape.score_scale, -300.0
    nats = np.array([0.0, -1.25, low + 17, low + 16, low - 1 / 64, low - 1, low - 1000, -(2.0**19) + 64] * 50)
    shares = scale.ring.share(scale.ring.from_signed(scale.encode(nats)))
    first, second, _, _ = together(lambda engine, side: models.shape.floored(engine, shares[side]))
    found = shape.scale.decode(shape.scale.ring.to_signed(shape.scale.ring.join(first, second)))
    below = nats < low
    assert (found[below] == low).all()
    assert (found >= low).all()
    np.testing.assert_allclose(found[~below], nats[~below], rtol=0, atol=2.0**-fraction)


@given(
    st.integers(1, 3_000),
    st.integers(1, 40),
    st.sampled_from([(0, 1), (0, 1, 2), (-1, 0, 1), (1,)]),
    st.integers(1, 300),
    st.sampled_from(["forward", "viterbi"]),
    st.integers(12, 32),
)
@settings(max_examples=200, deadline=None)
def test_a_shape_holds_what_it_says_or_is_refused(
    frames: int, states: int, moves: tuple[int, ...], floor: int, operation: Any, bits: int
) -> None:
    sizes: dict[str, Any] = {"words": 2, "states": states, "ends": (states - 1,), "moves": moves}
    try:
        shape = WordShape(frames, 2, "full", **sizes, operation=operation, bits=bits, fraction=5, floor=floor)
    except RangeError:
        return
    # Two paths that could not be further apart, and what no path has reached, whose log-add must not be felt.
    path = frames * floor + -RAREST * 2 * (1 + (min(states, frames) - 1 if moves[0] >= 0 else frames - 1))
    assert path + 4 < shape.scale.bound
    assert -shape.scale.bound < unreached(shape) < -frames * floor - 4


def test_models_that_score_lower_than_their_shape_says_are_refused() -> None:
    shape = WordShape(50, 2, "diagonal", words=1, states=1, ends=(0,), moves=(0,), bits=20, fraction=5)
    phi = np.zeros((1, 3, 3))
    phi[0, 0, 0] = phi[0, 1, 1] = -1.0
    arrays = form_weights(phi, "diagonal"), np.zeros((1, 1, 1)), np.zeros((1, 1)), ("a",)
    assert WordArrays(shape, *arrays).highest == pytest.approx(0, abs=0.1)
    for weights in (5 * arrays[0], -5 * arrays[0]):
        with pytest.raises(RangeError, match="raise bits"):
            WordArrays(shape, weights, *arrays[1:])
    with pytest.raises(RangeError, match="room"):
        WordArrays(shape, *arrays, top=-1.0)
    with pytest.raises(PpspeechError, match="logarithms"):
        WordArrays(shape, arrays[0], np.ones((1, 1, 1)), *arrays[2:])
    for wrong in (
        {"reach": 20},
        {"floor": 10, "reach": 14},
        {"floor": 10, "reach": 26},
        {"floor": 2.5},
        {"floor": 0},
        {"floor": "low"},
        {"floor": 10**400},
    ):
        with pytest.raises(RangeError):
            WordShape.from_params(shape.to_params() | wrong)


@given(
    st.sampled_from(["full", "diagonal", "linear"]),
    st.booleans(),
    st.sampled_from([None, 0.5, 4.0]),
    st.integers(0, 10**6),
)
@settings(max_examples=90, deadline=None)
def test_bounds_of_columns_hold_within_limit_and_radius(
    terms: Any, concave: bool, radius: float | None, seed: int
) -> None:
    make = np.random.default_rng(seed)
    shape = WordShape(1, 4, terms, words=3, states=1, ends=(0,), moves=(0,), limit=3.0, radius=radius)
    weights = make.normal(size=(shape.monomials, 3))
    if concave and terms != "linear":
        roots = make.normal(size=(3, 4, 4))
        forms = np.zeros((3, 5, 5))
        forms[:, :4, :4] = -roots @ roots.transpose(0, 2, 1)
        forms[:, 4, :] = forms[:, :, 4] = make.normal(size=(3, 5))
        weights = form_weights(forms, terms)
    lowest, highest = frame_bounds(weights, terms, 3.0, radius)
    frames = make.choice([-3.0, 3.0, 0.5], size=(300, 4)) * make.uniform(0.3, 1.0, size=(300, 1))
    monomials = shape.frame_monomials(np.concatenate((frames, make.choice([-3.0, 3.0], size=(300, 4)))))
    scores = monomials @ weights
    assert np.abs(monomials).sum(axis=1).max() <= most_monomials(4, terms, 3.0, radius) + 1e-9
    assert (lowest - 1e-9 <= scores.min(axis=0)).all()
    assert (scores.max(axis=0) <= highest + 1e-9).all()


def test_a_fit_takes_no_more_bits_than_the_scores_need() -> None:
    shape = WordShape(40, 2, "diagonal", words=2, states=1, ends=(0,), moves=(0,))
    phi = np.zeros((2, 3, 3))
    phi[:, 0, 0] = phi[:, 1, 1] = -20.0
    arrays = form_weights(phi, "diagonal"), np.zeros((2, 1, 1)), np.zeros((2, 1)), ("a", "b")
    floored_models = fit_words(shape, *arrays, floor=(-100.0, 100))
    found = floored_models.shape
    assert (found.floor, floored_models.highest) == (116, 16.0)  # errors of the product lie above 0: a step of 16 nats
    assert found.reach == max(13, found.bits - found.fraction)  # 2 x 20 x 64 nats, and as many above
    with pytest.raises(RangeError, match="raise bits"):
        replace(found, bits=found.bits - 1)
    assert fit_words(shape, *arrays, floor=(-4_000.0, 4_000)).shape.reach is None
    free = fit_words(shape, *arrays, floor=None).shape
    assert (free.floor, free.reach) == (None, None)
    assert free.depth > 2 * 20 * 64
    steep = (1e5 * arrays[0], *arrays[1:])
    with pytest.raises(RangeError, match="lower the limit"):
        fit_words(replace(shape, limit=100.0), *steep, floor=(-100.0, 100))


@pytest.mark.parametrize("way", ["frames", "stream"])
@pytest.mark.parametrize("sizes", [{}, {"components": 2}, {"reject": True, "operation": "viterbi"}], ids=str)
def test_words_of_outliers_are_those_in_the_clear(way: Any, sizes: dict[str, Any]) -> None:
    """Steep densities and frames at the limit: scores 100,000 nats down before the floor, and the same words after."""
    shape = WordShape(9, 2, "full", **({"words": 3, "states": 2, "ends": (1,), "bits": 32} | sizes))
    make = np.random.default_rng(1)
    forms, means = np.zeros((shape.columns, 3, 3)), make.normal(size=(shape.columns, 2))
    for form, mean in zip(forms, means, strict=True):
        root = make.normal(size=(2, 2), scale=12)
        form[:2, :2] = -root @ root.T
        form[2, :2] = form[:2, 2] = -form[:2, :2] @ mean
        form[2, 2] = mean @ form[:2, :2] @ mean
    moves = np.log(np.full((3, 2, 2), 0.5))
    weights, begins = form_weights(forms, "full"), np.zeros((3, 1))
    models = fit_words(shape, weights, moves, begins, ("a", "b", "c"), floor=(np.log(0.5) - 512, 512))
    assert models.shape.reach is not None
    frames = make.choice([-8.0, 8.0, 0.1], size=(200, 9, 2)) + means[make.integers(len(means), size=(200, 9))]
    scores = np.stack([plain_scores(models, each) for each in frames])
    sure = np.flatnonzero(np.diff(np.sort(scores, axis=1)[:, -2:])[:, 0] > 100)[:4]
    assert (scores[sure].min(axis=1) < -9 * 350).all()  # the floor was reached
    params = models.shape.to_params()
    for each in frames[sure]:
        client, server = (keyword_stream.client, keyword_stream.server) if way == "stream" else (ask, serve)
        told, _ = run_together(
            lambda c, x=each, ask=client: ask(Party("client", {"server": c}), x, shape=params),
            lambda c, serve=server: serve(Party("server", {"client": c}), plain_models(models), shape=params),
        )
        assert told == plain_word(models, each)
