"""Patches, encrypted: the same places as in the clear, and nothing of what was not found."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ppspeech.channel import Channel
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto.transfer import Side
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.models import sliding_maxima
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import Kind, Party
from ppspeech.protocols.meeting import meet
from ppspeech.protocols.search import Patches, PatchShape, encode_pieces, patches, prepare_patches
from ppspeech.protocols.search import patches_cost as cost_of
from ppspeech.protocols.search.patches import LINEAR_BITS, RULES, share_sums

MEETING = {Kind.LATTICE_KEY, CryptoKind.BASE_POINT, CryptoKind.BASE_REPLY, CryptoKind.BASE_COLUMNS, CryptoKind.RESUME}
SHAPE = PatchShape(pieces=24, numbers=6, bins=3, step=2, window=5, per_bin=2, recordings=2, fraction=9)
LINEAR = replace(SHAPE, rule="linear")


def made(shape: PatchShape, seed: int, bias: float | None = None) -> tuple[Patches, np.ndarray]:
    """A word, and recordings with pieces on a coarse grid, so that no fit is near a threshold."""
    rng = np.random.default_rng(seed)
    pieces = rng.normal(size=(shape.recordings, shape.pieces, shape.numbers))
    pieces /= np.linalg.norm(pieces, axis=-1, keepdims=True)
    own = rng.normal(size=(shape.patches, shape.numbers))
    own /= np.linalg.norm(own, axis=-1, keepdims=True)
    thresholds = rng.uniform(0.3, 0.7, shape.patches)
    gains = rng.normal(size=shape.patches)
    return Patches(shape, own, thresholds, gains, float(rng.normal()) if bias is None else bias), pieces


def clear(own: Patches, pieces: np.ndarray) -> tuple[list[int | None], np.ndarray, float]:
    """Places by plain numbers with whole gains, the sums, and how near a fit is to its threshold; of a linear rule, how
    near the two best sums are to each other, or the best to zero, in units of all gains together.
    """
    shape, (gains, bias) = own.shape, own.whole
    sums, near = [], np.inf
    for recording in pieces:
        best = sliding_maxima(recording @ own.patches.T, shape.window)
        late = shape.step * (np.arange(shape.patches) // shape.per_bin)
        fits = best[np.arange(shape.places)[:, None] + late, np.arange(shape.patches)]
        if shape.rule == "linear":
            sums.append(fits @ gains + bias)
            second, first = np.sort(np.append(sums[-1], -np.inf))[-2:] / (1 << LINEAR_BITS)
            near = min(near, abs(first), first - second if first > 0 else np.inf)
        else:
            near = min(near, float(np.abs(fits - own.thresholds).min()))
            sums.append((fits >= own.thresholds) @ gains + bias)
    return [int(each.argmax()) if each.max() >= 0 else None for each in sums], np.array(sums), near


def asked(own: Patches, pieces: np.ndarray) -> tuple[list[int | None], Transcript]:
    params, ends = own.shape.to_params(), memory_pair()
    record = Transcript(ends[0], keep_payloads=True)
    inputs = [own.patches.tolist(), own.thresholds.tolist(), own.gains.tolist(), own.bias]
    told, _ = run_together(
        lambda _: patches.client(Party("client", {"server": record}), *inputs, shape=params),
        lambda c: patches.server(Party("server", {"client": c}), pieces.tolist(), shape=params),
        ends,
    )
    return told, record


def sure(shape: PatchShape, seeds: range) -> list[tuple[Patches, np.ndarray]]:
    """Words and recordings of which no fit is so near a threshold, and no sum so near another, that rounding could move
    it across.
    """
    made_ = [made(shape, seed) for seed in seeds]
    error = shape.error + 2.0**-shape.fraction
    if shape.rule == "linear":
        error = 2 * (shape.error + shape.sum_error)
    return [each for each in made_ if clear(*each)[2] > error]


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"window": 1},
        {"window": 8, "recordings": 1},
        {"bins": 1, "per_bin": 3},
        {"pieces": 9},
        {"rule": "linear"},
        {"rule": "linear", "window": 1, "bins": 1, "per_bin": 3},
        {"rule": "linear", "pieces": 9, "recordings": 1},
    ],
    ids=str,
)
def test_places_are_those_of_plain_numbers(sizes: dict[str, Any]) -> None:
    shape = PatchShape.from_params(SHAPE.to_params() | sizes)
    chosen = sure(shape, range(30))[: 1 if "rule" in sizes else 3]
    assert chosen
    for own, pieces in chosen:
        assert asked(own, pieces)[0] == clear(own, pieces)[0]


@pytest.mark.parametrize("shape", [SHAPE, LINEAR], ids=RULES)
def test_some_are_found_and_some_are_not(shape: PatchShape) -> None:
    told = [each for own, pieces in sure(shape, range(40)) for each in clear(own, pieces)[0]]
    assert None in told
    assert len({each for each in told if each is not None}) > 2


def test_a_word_at_the_edges_of_a_recording_is_found() -> None:
    shape = PatchShape.from_params(SHAPE.to_params() | {"recordings": 1})
    for place in (0, shape.places - 1):
        _, pieces = made(shape, 5)
        late = np.array([0, shape.window - 1] * shape.bins) if place else np.zeros(shape.patches, int)
        at = place + shape.step * (np.arange(shape.patches) // shape.per_bin) + late
        own = Patches(shape, pieces[0, at], np.full(shape.patches, 0.97), np.ones(shape.patches), -shape.patches + 0.5)
        assert asked(own, pieces)[0] == [place]


def test_fits_at_both_ends_of_the_range_are_told_apart() -> None:
    """Patches and their opposites: fits of 1 and of -1."""
    shape = PatchShape(pieces=6, numbers=4, bins=1, window=2, per_bin=2, fraction=4)
    one = np.zeros((1, 6, 4))
    one[0, :, 0] = np.array([-1, -1, -1, 1, -1, -1])
    own = Patches(shape, np.array([[1.0, 0, 0, 0], [1.0, 0, 0, 0]]), np.array([0.5, -1.0]), np.ones(2), -1.5)
    assert asked(own, one)[0] == [2]


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_linear_sums_at_both_ends_of_the_range_are_told_apart(value: float) -> None:
    """All fits 1 at one place and -1 at the others; gains that are all positive, or all negative."""
    shape = PatchShape(pieces=6, numbers=4, bins=2, step=1, window=1, per_bin=2, rule="linear")
    one = np.zeros((1, 6, 4))
    one[0, :, 0] = value * np.array([-1, -1, -1, 1, 1, -1])
    own = Patches(shape, np.eye(4)[[0, 0, 0, 0]], np.zeros(4), np.full(4, value), -3.5)
    assert asked(own, one)[0] == [3]


def test_both_shares_of_a_linear_sum_are_uniform_and_add_up() -> None:
    """What the client holds after the server's shares were weighed says nothing of the fits."""
    own, pieces = made(LINEAR, 3)
    ring = LINEAR.sums.ring

    def halves(channel: Channel, side: Side) -> list[np.ndarray]:
        met, given = meet(channel, side), own if side is Side.SECOND else encode_pieces(LINEAR, pieces)
        with met.session():
            return [share_sums(met, prepare_patches(met, LINEAR), LINEAR, given).residues for _ in range(8)]

    both = run_together(lambda c: halves(c, Side.SECOND), lambda c: halves(c, Side.FIRST))
    _, plain, _ = clear(own, pieces)
    for mine, theirs in zip(*both, strict=True):
        found = ring.to_signed(ring.join(mine, theirs)) / 2.0 ** (LINEAR.fraction + LINEAR_BITS)
        near = np.abs(found - (plain - own.whole[1]) / (1 << LINEAR_BITS))
        assert near.max() <= LINEAR.error + LINEAR.sum_error
    for seen in map(np.stack, both):
        counts = np.bincount((seen.ravel() >> np.uint64(ring.bits - 3)).astype(int), minlength=8)
        assert stats.chisquare(counts).pvalue > 1e-7


@pytest.mark.parametrize("shape", [SHAPE, LINEAR], ids=RULES)
def test_lengths_depend_on_public_sizes_alone_and_are_those_of_the_record(shape: PatchShape) -> None:
    found, none = (asked(*made(shape, seed, bias)) for seed, bias in ((1, 99.0), (2, -99.0)))
    assert None not in found[0]
    assert none[0] == [None, None]
    assert found[1].shape() == none[1].shape()
    total = sum(size for _, kind, size in found[1].shape() if kind not in MEETING)
    assert total == shape.product_bytes + cost_of(shape).total_bytes


@pytest.mark.parametrize("gain", [1e-6, 1.0, 1e6])
def test_gains_and_bias_stay_within_their_ring(gain: float) -> None:
    rng = np.random.default_rng(0)
    for bias in (0.0, 1e9 * gain, -1e9 * gain):
        own = Patches(SHAPE, np.zeros((6, 6)), np.zeros(6), gain * rng.normal(size=6), bias)
        whole, shift = own.whole
        assert np.abs(whole).sum() < 1 << 12
        assert abs(shift) < 1 << 12
        assert max(np.abs(whole).sum(), abs(shift)) > 1 << 11
        whole, shift = replace(own, shape=LINEAR).whole
        assert (1 << LINEAR_BITS) * 0.99 < max(np.abs(whole).sum(), abs(shift)) <= 1 << LINEAR_BITS


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"pieces": 0}, "pieces must lie in"),
        ({"window": True}, "window must lie in"),
        ({"pieces": 8}, "a place looks at"),
        ({"fraction": 1}, "after the point"),
        ({"rule": "votes"}, "stumps or linear, got 'votes'"),
        ({"rule": ["linear"]}, "stumps or linear"),
        ({"rule": "linear", "fraction": 12, "pieces": 2_000, "bins": 40, "per_bin": 50, "recordings": 4}, "too rough"),
        ({"pieces": 900, "bins": 100, "per_bin": 100}, "10000 patches of at most 2,000"),
        ({"pieces": 20_000, "per_bin": 100, "recordings": 1_000}, "fits"),
        ({"more": 1}, "not the shape"),
    ],
    ids=str,
)
def test_shapes_that_are_not_agreed_to_are_refused(changed: dict[str, Any], said: str) -> None:
    assert PatchShape.from_params(SHAPE.to_params()) == SHAPE
    with pytest.raises(RangeError, match=said):
        PatchShape.from_params(SHAPE.to_params() | changed)


def test_what_is_not_of_the_shape_is_refused_before_anything_is_sent() -> None:
    nobody = memory_pair()[0]
    asking, answering = Party("client", {"server": nobody}), Party("server", {"client": nobody})
    own, pieces = made(SHAPE, 0)
    good: list[Any] = [own.patches.tolist(), own.thresholds.tolist(), own.gains.tolist(), 0.0]
    params = SHAPE.to_params()
    for place, bad, said in (
        (0, good[0][:2], "of shape"),
        (0, np.full((6, 6), np.nan).tolist(), "finite"),
        (1, [0.0], "as many thresholds"),
        (2, [np.inf] * 6, "as many gains"),
        (2, [0.0] * 6, "not all zero"),
        (3, float("nan"), "finite bias"),
    ):
        with pytest.raises(PpspeechError, match=said):
            patches.client(asking, *good[:place], bad, *good[place + 1 :], shape=params)
    with pytest.raises(RangeError, match="of shape"):
        patches.server(answering, pieces[:1].tolist(), shape=params)
    long = Patches(SHAPE, 9 * own.patches, own.thresholds, own.gains, 0.0)
    assert np.linalg.norm(long.patches, axis=1).max() <= 1 + 1e-12  # or scores would wrap
