"""Every message of every operation is exactly uniform, for every input of small rings and every value that hides it."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.shares import (
    LogAdd,
    Shared,
    ShareEngine,
    argmax,
    at_least,
    blank,
    compare,
    extend,
    is_negative,
    log_add,
    look_up,
    maximum,
    multiply_bit,
    multiply_loaded,
    record,
    select,
    truncate_local,
    widen,
)
from ppspeech.crypto.shares.correlations import Offered
from ppspeech.crypto.shares.cost import Cost, TableShape
from ppspeech.crypto.shares.look_up import PublicTable, look_up_public
from ppspeech.crypto.transfer.setup import Side

from . import dealer as dealer_module
from .dealer import Dealer, Half, Piece, play

Program = Callable[[ShareEngine, np.ndarray], object]


# Every variable of the view at once.


def all_of(*bits: int) -> list[np.ndarray]:
    """Every combination of numbers of so many bits, as flat arrays."""
    grids = np.meshgrid(*(np.arange(1 << each, dtype=np.uint64) for each in bits), indexing="ij")
    return [grid.reshape(-1) for grid in grids]


def given(**variables: np.ndarray) -> Callable[[str, int, int, int], np.ndarray]:
    """Draws what is given, by name and take (`choice_0`), and anything for the rest."""

    def draw(name: str, take: int, count: int, bits: int) -> np.ndarray:
        found = variables.get(f"{name}_{take}".replace(" ", "_"))
        return uniform_residues(count, bits) if found is None else found

    return draw


def is_every_value(seen: np.ndarray, bits: int) -> bool:
    """Whether each row of the view's values, joined, is each of them exactly once."""
    return bool((np.sort(seen.reshape(-1, 1 << bits), axis=1) == np.arange(1 << bits)).all())


@pytest.mark.parametrize("bits", [2, 4, pytest.param(6, marks=pytest.mark.slow)])
def test_a_comparison_shows_nothing_to_either_party(bits: int) -> None:
    """All shares of all numbers, both masks and both choices: what is opened, and what is asked, taken together."""
    run = lambda engine, side: is_negative(engine, (left, right)[side], Ring(bits))  # noqa: E731
    left, right, choice, choice_last, mask, mask_last = all_of(bits, bits, 5, 1, 2, 1)
    draw = given(choice_0=choice, choice_1=choice_last, mask_0=mask, mask_1=mask_last)
    first, last = play(Dealer(Side.SECOND, 1, draw), run)
    assert is_every_value(first.values << np.uint64(1) | last.values, 3)
    left, right, mask, mask_last, choice, choice_last = all_of(bits, bits, 2, 1, 5, 1)
    draw = given(choice_0=choice, choice_1=choice_last, mask_0=mask, mask_1=mask_last)
    first, last = play(Dealer(Side.FIRST, 1, draw), run)
    assert is_every_value(first.values << np.uint8(1) | last.values, 6)


@pytest.mark.parametrize("viewer", list(Side))
@pytest.mark.parametrize("bits", [1, 3, 5])
def test_a_product_with_a_bit_shows_nothing_to_either_party(bits: int, viewer: Side) -> None:
    """All bits, residues, transfers: the message that comes, with what the viewer got from the transfer before."""
    bit, residue, chose, got, theirs, other = all_of(1, bits, 1, bits, 1, bits)
    draws = {f"bit_{int(viewer)}_0": chose, f"bit_{int(1 - viewer)}_0": theirs, "got_0": got, "other_0": other}

    def run(engine: ShareEngine, side: Side) -> None:
        own = (bit, residue) if side != viewer else (uniform_residues(len(bit), 1), uniform_residues(len(bit), bits))
        multiply_bit(engine, own[0].astype(np.uint8), own[1], Ring(bits))

    flipped, word = play(Dealer(viewer, bits, given(**draws)), run)
    assert is_every_value(flipped.values << np.uint64(bits) | word.values, bits + 1)


@pytest.mark.parametrize("of_sums", [False, True])
def test_a_table_hides_all_entries_but_the_one_asked_for(of_sums: bool) -> None:
    """A table of 4 entries of 2 bits: all numbers, choices, masks and pads. Given its choice and its pad, the second
    party sees each of the 2^8 messages once for each of the 2^8 masks and other pads."""
    own, asked, choice, pad, mask, *others = all_of(2, 2, 2, 2, 2, 2, 2, 2)
    table = PublicTable(TableShape(2, 2), np.array([3, 1, 0, 2, 2, 1, 3, 0][: 8 if of_sums else 4]), of_sums)
    pads = np.empty((len(own), 4), np.uint8)
    every = np.arange(len(own))
    pads[every, choice] = pad
    for place, other in enumerate(others, 1):
        pads[every, choice ^ np.uint64(place)] = other
    play_pads = Dealer(Side.SECOND, 1, given(choice_0=choice, mask_0=mask, pad_0=pad))
    play_pads.table(0, table.shape, len(own))["pads"][:] = pads
    sent: list[np.ndarray] = []

    def run(engine: ShareEngine, side: Side) -> None:
        numbers = (own, asked)[side].astype(np.uint8)
        shares = look_up_public(engine, [table], [numbers])[0]
        if side is Side.SECOND:
            entry = next(each for each in engine.channel.entries if each.direction == "received")
            sent.append(np.frombuffer(entry.payload, np.uint8))
            assert (shares == table.entries[(own + asked if of_sums else own ^ asked).astype(int)] ^ mask).all()

    play(play_pads, run)
    assert is_every_value(sent[0], 8)


@pytest.mark.parametrize("secret", [False, True])
def test_a_look_up_shows_nothing_to_either_party(secret: bool) -> None:
    """A table of 4 residues of 3 bits, public or the first party's: all shares of indices, masks and choices."""
    own, asked, choice, mask = all_of(2, 2, 2, 3)
    table = np.array([7, 0, 3, 5], np.uint64)

    def run(engine: ShareEngine, side: Side) -> None:
        theirs = np.tile(table, (len(own), 1)) if secret else table
        look_up(engine, (own, asked)[side], theirs if side is Side.FIRST else np.zeros_like(theirs), Ring(3))

    (opened,) = play(Dealer(Side.SECOND, 1, given(choice_0=choice, mask_0=mask)), run)
    assert is_every_value(opened.values, 3)
    own, asked, mask, choice = all_of(2, 2, 3, 2)
    (flips,) = play(Dealer(Side.FIRST, 1, given(choice_0=choice, mask_0=mask)), run)
    assert is_every_value(flips.values, 2)


# One variable after the other, where all at once are too many.


def swept(inputs: int, values: int, fresh: tuple[str, int, int], by_parts: bool) -> Callable[..., np.ndarray]:
    """Draws the same for all values of an input, but for the fresh variable (name, take, part): every value in turn.
    Parts of one element lie together, or, for products `by_parts`, one part of all elements after the other."""

    def draw(name: str, take: int, count: int, bits: int) -> np.ndarray:
        parts = count // (inputs * values)
        drawn = np.repeat(uniform_residues((inputs, 1, parts), bits), values, axis=1)
        if (name, take) == fresh[:2]:
            drawn[:, :, fresh[2]] = np.arange(values)
        turn = by_parts and name not in {"choice", "pad", "mask"}
        return np.ascontiguousarray(drawn.transpose(2, 0, 1) if turn else drawn).reshape(-1)

    return draw


def shaped(piece: Piece, inputs: int, values: int, by_parts: bool) -> np.ndarray:
    """A piece as `(inputs, values, parts)`."""
    if by_parts and piece.name not in {"choice", "mask"}:
        return piece.values.reshape(-1, inputs, values).transpose(1, 2, 0)
    return piece.values.reshape(inputs, values, -1)


def check_every_piece(
    run: Program, shares: list[np.ndarray], width: int, viewer: Side, by_parts: bool = False
) -> list[tuple[str, int, int, int]]:
    """Sweep the variable behind every piece that the viewer sees: (name, take, part, bits) of all of them."""
    inputs = len(shares[0])
    seen = play(Dealer(viewer, width, swept(inputs, 1, ("", 0, 0), by_parts)), lambda e, s: run(e, shares[s]))
    found = [
        (piece.name, piece.take, part, piece.bits)
        for piece in seen
        for part in range(shaped(piece, inputs, 1, by_parts).shape[2])
    ]
    for name, take, part, bits in found:
        values = 1 << bits
        spread = [np.repeat(each, values, axis=0) for each in shares]
        draw = swept(inputs, values, (name, take, part), by_parts)
        for piece in play(Dealer(viewer, width, draw), lambda e, s, own=spread: run(e, own[s])):
            moved = shaped(piece, inputs, values, by_parts)
            here = (piece.name, piece.take) == (name, take)
            still = np.delete(moved, part, axis=2) if here else moved
            assert (still == still[:, :1]).all(), f"{piece[:3]} moves with {name, take, part}"
            if here:
                assert (np.sort(moved[:, :, part], axis=1) == np.arange(values)).all(), (name, take, part)
                break
    return found


def all_shares(bits: int, *shape: int) -> list[np.ndarray]:
    """Both parties' shares of every array of this shape, however it is shared: `(inputs, *shape)` each."""
    count = int(np.prod(shape))
    columns = np.stack(all_of(*[bits] * (2 * count)), axis=1)
    return [columns[:, :count].reshape(-1, *shape), columns[:, count:].reshape(-1, *shape)]


PROGRAMS: dict[str, tuple[Program, list[np.ndarray], int, bool]] = {
    "comparison of 11 bits": (
        lambda e, x: is_negative(e, x[:, 0] << np.uint64(5), Ring(11)),
        all_shares(6, 1),
        1,
        False,
    ),
    "maximum": (
        lambda e, x: maximum(Shared(e, x[:, 0], Ring(6)), Shared(e, blank(len(x)), Ring(6))),
        all_shares(6, 1),
        6,
        False,
    ),
    "maximum of two": (
        lambda e, x: maximum(Shared(e, x[:, 0], Ring(3)), Shared(e, x[:, 1], Ring(3))),
        all_shares(3, 2),
        3,
        False,
    ),
    "maximum with a load": (
        lambda e, x: multiply_loaded(e, is_negative(e, x[:, 0], Ring(3)), x[:, 0], x[:, 1], Ring(3), 3),
        all_shares(3, 2),
        6,
        False,
    ),
    "choice between two": (
        lambda e, x: select(
            Shared(e, x[:, 0], Ring(3)).is_negative(), Shared(e, x[:, 1], Ring(3)), Shared(e, x[:, 0], Ring(3))
        ),
        all_shares(3, 2),
        3,
        False,
    ),
    "extension": (lambda e, x: extend(Shared(e, x[:, 0], Ring(5)), Ring(6)), all_shares(5, 1), 6, False),
    "widening": (lambda e, x: widen(Shared(e, x[:, 0], Ring(5)), Ring(6)), all_shares(5, 1), 6, False),
    "floor": (lambda e, x: at_least(Shared(e, x[:, 0], Ring(6)), -6, 2, 1, Ring(4)), all_shares(6, 1), 4, False),
    "floor, the carry walking": (
        lambda e, x: at_least(Shared(e, x[:, 0] << np.uint64(2), Ring(8)), -24, 1, 3, Ring(5)),
        all_shares(6, 1),
        5,
        False,
    ),
    "argmax": (lambda e, x: argmax(Shared(e, x, Ring(2))), all_shares(2, 3), 1, False),
    "argmax of two": (lambda e, x: argmax(Shared(e, x, Ring(4))), all_shares(4, 2), 1, False),
    "log-add": (
        lambda e, x: log_add(e, x[:, 0], blank(len(x)), LogAdd(Ring(7), 0, 0)),
        [uniform_residues((128, 1), 7) for _ in Side],
        7,
        True,
    ),
}


@pytest.mark.parametrize("viewer", list(Side), ids=["first", "second"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_piece_of_a_view_is_each_value_once(name: str, viewer: Side) -> None:
    """All shares of all inputs of small rings; log-add, whose smallest ring has 7 bits, for 128 inputs a run."""
    run, shares, width, by_parts = PROGRAMS[name]
    found = check_every_piece(run, shares, width, viewer, by_parts)
    assert found
    cost = record(lambda engine: run(engine, blank(*shares[0][:1].shape)))
    pieces = sum(cost.tables.values()) + 2 * cost.products
    assert len(found) == pieces  # nothing that the viewer sees was left out


@pytest.mark.parametrize("walk", [1, 2, 5])
@pytest.mark.parametrize(
    ("bits", "least", "vague", "fewer", "narrow"),
    [(6, -6, 2, 1, 4), (6, 0, 1, 0, 6), (6, -31, 0, 0, 5), (6, 4, 3, 2, 3), (5, -8, 1, 3, 2)],
)
def test_a_floor_is_right_for_all_residues_however_shared(
    bits: int, least: int, vague: int, fewer: int, narrow: int, walk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the floor it is the floor; 2^vague above, the residue itself, in coarser steps; never less than the floor,
    whether the carry walks by one bit, by two or by all."""
    monkeypatch.setattr(compare, "STEP", walk)
    wide, ring = Ring(bits), Ring(narrow)
    shares = all_of(bits, bits)
    lowest = max(-(1 << (bits - 1)), least - (1 << (bits - 1)) + (2 << vague))
    signed = wide.to_signed(shares[0] + shares[1])
    inside = (signed >= lowest) & (signed - least < min(1 << (bits - 1), (1 << (narrow + fewer - 1)) - (1 << fewer)))
    shares, signed = [each[inside] for each in shares], signed[inside]
    results = {}

    def run(engine: ShareEngine, side: Side) -> None:
        results[side] = at_least(Shared(engine, shares[side], wide), least, vague, fewer, ring).residues

    play(Dealer(Side.SECOND, narrow, given()), run)
    found = ring.to_signed(results[Side.FIRST] + results[Side.SECOND] - np.uint64((least >> fewer) % (1 << 64)))
    above = signed - least
    assert len(above) > 1 << bits
    assert (found[above < 0] == 0).all()
    assert (found >= 0).all()
    sure = above >= 1 << vague
    off = np.abs(found * 2.0**fewer - above)
    step = 1 << fewer if fewer else 0
    assert (off[sure] <= step).all()
    between = ~sure & (above >= 0)
    assert ((found == 0) | (off <= step))[between].all()


def test_dropping_bits_says_nothing() -> None:
    for bits, dropped in product(range(2, 7), range(6)):
        if dropped < bits:
            assert record(lambda e, b=bits, d=dropped: truncate_local(Shared(e, blank(9), Ring(b)), d)) == Cost()


def test_an_exhaustive_test_notices_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table without its mask, a product whose residue has one bit too few to hide it."""
    run, shares, width, _ = PROGRAMS["maximum of two"]
    plain = Half.take_offered
    monkeypatch.setattr(
        dealer_module.Half,
        "take_offered",
        lambda self, shape, count: Offered(plain(self, shape, count).pads, np.zeros(count, np.uint8)),
    )
    with pytest.raises(AssertionError):
        check_every_piece(run, shares, width, Side.SECOND)
    monkeypatch.undo()
    taken = Half.take_products

    def short(self: Half, count: int) -> object:
        products = taken(self, count)
        products.step &= np.uint64(3)
        return products

    monkeypatch.setattr(dealer_module.Half, "take_products", short)
    with pytest.raises(AssertionError):
        check_every_piece(run, shares, width, Side.SECOND)
