"""Every operation on shares against whole numbers: all edges, many at random, bytes and rounds as recorded."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.packing import pack_numbers, packed_bytes, unpack_numbers
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.shares import (
    Cost,
    LogAdd,
    Shared,
    SharedBits,
    ShareEngine,
    argmax,
    blank,
    carry,
    extend,
    is_negative,
    largest,
    log_add,
    log_add_twin,
    look_up,
    maximum,
    minimum,
    multiply_bit,
    multiply_loaded,
    open_bits_to,
    open_to,
    record,
    round_local,
    select,
    share_input,
    smallest,
    truncate_local,
    widen,
)
from ppspeech.crypto.shares.bits import all_bits
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import RangeError

from .pairs import together

MANY = 100_000


def signed(count: int, bits: int) -> np.ndarray:
    """Uniform signed numbers of `bits` bits, with the edges among them."""
    values = Ring(bits).to_signed(uniform_residues(count, bits))
    edges = [0, -1, 1, -(1 << (bits - 1)), (1 << (bits - 1)) - 1][:count]
    values[: len(edges)] = np.clip(edges, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return values


def on_shares(run: Callable[..., np.ndarray], ring: Ring, *inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share signed inputs, run an operation on them as two parties: both results."""
    shares = [ring.share(ring.from_signed(values)) for values in inputs]

    def program(engine: ShareEngine, party: Side) -> np.ndarray:
        return run(engine, *(pair[party] for pair in shares), ring)

    first, second, _, _ = together(program)
    return first, second


def on_shared(operation: Callable[..., Shared | SharedBits]) -> Callable[..., np.ndarray]:
    """An operation on `Shared` as one on plain shares."""

    def run(engine: ShareEngine, *given: Any) -> np.ndarray:
        *own, ring = given
        result = operation(*(Shared(engine, each, ring) for each in own))
        return result.residues if isinstance(result, Shared) else result.own

    return run


def joined(results: tuple[np.ndarray, np.ndarray], ring: Ring) -> np.ndarray:
    return ring.to_signed(ring.join(*results))


@pytest.mark.parametrize("bits", [1, 2, 6, 12, 21, 22, 25, 26, 32, 48, 61])
def test_signs(bits: int) -> None:
    ring, values = Ring(bits), signed(2000, bits)
    first, second = on_shares(is_negative, ring, values)
    assert ((first ^ second) == (values < 0)).all()


def test_all_signs_of_a_small_ring_however_they_are_shared() -> None:
    ring = Ring(7)
    left, right = (each.ravel().astype(np.uint64) for each in np.meshgrid(np.arange(128), np.arange(128)))
    program = lambda engine, party: is_negative(engine, (left, right)[party], ring)  # noqa: E731
    first, second, _, _ = together(program)
    assert ((first ^ second) == (ring.to_signed(ring.join(left, right)) < 0)).all()


@pytest.mark.parametrize("width", [1, 5, 20, 21, 24, 25, 60])
def test_carries(width: int) -> None:
    own = [uniform_residues(1000, width), uniform_residues(1000, width)]
    top = np.uint64((1 << width) - 1)
    own[1][:500] = top - own[0][:500]  # propagates through all blocks
    own[0][250:500] += own[0][250:500] < top  # and one more: carries
    first, second, _, _ = together(lambda e, p: carry(e, own[p], width))
    expected = own[0].astype(object) + own[1].astype(object) >= 1 << width
    assert ((first ^ second) == expected).all()


def test_a_hundred_thousand_maxima_without_an_error() -> None:
    ring = Ring(21)
    left, right = signed(MANY, 20), signed(MANY, 20)
    left[10:1000] = right[10:1000]
    left[1000:2000] = right[1000:2000] + 1
    got = joined(on_shares(on_shared(maximum), ring, left.clip(max=2**19 - 1), right), ring)
    assert (got == np.maximum(left.clip(max=2**19 - 1), right)).all()


@pytest.mark.parametrize(("operation", "twin"), [(maximum, np.maximum), (minimum, np.minimum)])
@pytest.mark.parametrize("bits", [2, 9, 33, 61])
def test_maximum_and_minimum_in_other_rings(operation: Callable, twin: Callable, bits: int) -> None:
    ring = Ring(bits)
    left, right = signed(300, bits - 1), signed(300, bits - 1)
    assert (joined(on_shares(on_shared(operation), ring, left, right), ring) == twin(left, right)).all()


def test_at_least_counts_ties() -> None:
    ring = Ring(21)
    left, right = np.array([1, 2, 3, -5]), np.array([2, 2, 2, -5])
    first, second = on_shares(on_shared(operator.ge), ring, left, right)
    assert ((first ^ second) == [0, 1, 1, 1]).all()
    first, second = on_shares(on_shared(operator.lt), ring, left, right)
    assert ((first ^ second) == [1, 0, 0, 0]).all()


LOG_ADDS = [LogAdd(Ring(21), 6, 3), LogAdd(Ring(32), 12, 9), LogAdd(Ring(12), 4, 1), LogAdd(Ring(45), 20, 17)]
LOG_ADDS += [LogAdd(Ring(25), 7, 4), LogAdd(Ring(25), 6, 3), LogAdd(Ring(16), 6, 3), LogAdd(Ring(22), 6, 3)]


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("how", LOG_ADDS, ids=lambda how: f"{how.ring.bits} bits, {how.upper(1)}")
def test_log_add_is_its_twin_and_close_to_the_real_one(how: LogAdd, few: bool) -> None:
    ring, count = how.ring, 400 if few else MANY if how.ring.bits == 21 else 3000
    left = signed(count, ring.bits - 2)
    right = left + Ring(how.fraction + 5).to_signed(uniform_residues(count, how.fraction + 5))
    right[: count // 4] = signed(count // 4, ring.bits - 2)
    right[-9:] = left[-9:]
    bound = 1 << (ring.bits - 3)
    left, right = left.clip(-bound, bound), right.clip(-bound, bound)
    shares = [ring.share(ring.from_signed(values)) for values in (left, right)]
    run = lambda engine, party: log_add(engine, shares[0][party], shares[1][party], how)  # noqa: E731
    first, second, _, _ = together(run)
    assert (ring.join(first, second) == log_add_twin(shares[0], shares[1], how)).all()
    real = np.logaddexp(np.ldexp(left, -how.fraction), np.ldexp(right, -how.fraction))
    error = np.abs(np.ldexp(joined((first, second), ring), -how.fraction) - real)
    # Half a step near v = 0, where T is steepest; at the ends of the table e^-4, or less, is left out.
    assert error.max() < max(2.0 ** (how.step - how.fraction) / 2, 0.02) + 2.0**-how.fraction
    assert error.mean() < 0.02


def test_log_add_refuses_steps_that_leave_no_range() -> None:
    with pytest.raises(RangeError):
        LogAdd(Ring(12), 6, 6)
    with pytest.raises(RangeError):
        LogAdd(Ring(62), 6, 3)


@pytest.mark.parametrize(("bits", "width"), [(1, 1), (3, 8), (6, 21), (8, 61), (8, 64)])
def test_look_up(bits: int, width: int) -> None:
    ring, count = Ring(width), 200
    own = [uniform_residues(count, 64), uniform_residues(count, 64)]
    index = (own[0] + own[1]) & np.uint64((1 << bits) - 1)
    for table in (uniform_residues(1 << bits, width), uniform_residues((count, 1 << bits), width)):
        # The second party sees no table: it passes one of the same shape.
        run = lambda e, p, t=table: look_up(e, own[p], t if p is Side.FIRST else np.zeros_like(t), ring)  # noqa: E731
        first, second, _, _ = together(run)
        expected = table[index] if table.ndim == 1 else table[np.arange(count), index]
        assert (ring.join(first, second) == expected).all()


@pytest.mark.parametrize("entries", [0, 1, 3, 48, 512])
def test_tables_of_other_lengths_are_refused(entries: int) -> None:
    with pytest.raises(RangeError):
        look_up(None, np.zeros(1, np.uint64), np.zeros(entries, np.uint64), Ring(8))
    with pytest.raises(RangeError, match="as many tables"):
        look_up(None, np.zeros(3, np.uint64), np.zeros((2, 16), np.uint64), Ring(8))


@pytest.mark.parametrize("bits", [1, 8, 21, 61])
def test_products_and_choices(bits: int) -> None:
    ring, count = Ring(bits), MANY if bits == 21 else 1000
    words, zeros = signed(count, bits), signed(count, bits)[::-1]
    flags = uniform_residues(count, 1).astype(np.uint8)
    masks = uniform_residues(count, 1).astype(np.uint8)
    own = [flags ^ masks, masks]
    shares = [ring.share(ring.from_signed(values)) for values in (words, zeros)]
    run = lambda e, p: multiply_bit(e, own[p], shares[0][p], ring)  # noqa: E731
    first, second, _, _ = together(run)
    assert (joined((first, second), ring) == words * flags).all()
    run = lambda e, p: select(SharedBits(e, own[p]), *(Shared(e, each[p], ring) for each in shares)).residues  # noqa: E731
    first, second, _, _ = together(run)
    assert (joined((first, second), ring) == np.where(flags, words, zeros)).all()


@pytest.mark.parametrize(("bits", "width"), [(1, 62), (16, 17), (21, 1), (40, 23)])
def test_products_carry_loads(bits: int, width: int) -> None:
    ring, count = Ring(bits), 1000
    words, loads = signed(count, bits), uniform_residues(count, width)
    flags = uniform_residues(count, 1).astype(np.uint8)
    masks, blinds = uniform_residues(count, 1).astype(np.uint8), uniform_residues(count, width)
    own, carried = [flags ^ masks, masks], [loads ^ blinds, blinds]
    shares = ring.share(ring.from_signed(words))
    run = lambda e, p: multiply_loaded(e, own[p], shares[p], carried[p], ring, width)  # noqa: E731
    first, second, _, _ = together(run)
    assert (joined((first[0], second[0]), ring) == words * flags).all()
    assert ((first[1] ^ second[1]) == loads * flags).all()


def test_products_refuse_other_shapes_and_rings() -> None:
    with pytest.raises(RangeError, match="travel in 64 bits"):
        multiply_loaded(None, np.zeros(2, np.uint8), np.zeros(2, np.uint64), np.zeros(2, np.uint64), Ring(40), 24)
    with pytest.raises(RangeError, match="flat and alike"):
        multiply_loaded(None, np.zeros(2, np.uint8), np.zeros(2, np.uint64), np.zeros(3, np.uint64), Ring(16), 8)
    with pytest.raises(RangeError, match="flat and alike"):
        multiply_bit(None, np.zeros(2, np.uint8), np.zeros(3, np.uint64), Ring(8))
    with pytest.raises(RangeError, match="up to 61"):
        multiply_bit(None, np.zeros(2, np.uint8), np.zeros(2, np.uint64), Ring(62))


def test_and() -> None:
    bits = [np.array([0, 0, 1, 1] * 8, np.uint8), np.array([0, 1] * 16, np.uint8)]
    masks = [uniform_residues(32, 1).astype(np.uint8) for _ in bits]
    own = [[bit ^ mask for bit, mask in zip(bits, masks, strict=True)], masks]
    first, second, _, _ = together(lambda e, p: (SharedBits(e, own[p][0]) & SharedBits(e, own[p][1])).own)
    assert ((first ^ second) == (bits[0] & bits[1])).all()


@pytest.mark.parametrize("width", [1, 2, 8, 9, 17, 65])
def test_all_bits(width: int) -> None:
    bits = (uniform_residues((50, width), 6) > 0).astype(np.uint8)
    bits[:10] = 1
    mask = uniform_residues(bits.shape, 1).astype(np.uint8)
    first, second, _, _ = together(lambda e, p: all_bits(e, (bits ^ mask, mask)[p]))
    assert ((first ^ second) == bits.all(axis=1)).all()


@pytest.mark.parametrize("candidates", [1, 2, 9, 10, 30])
def test_argmax_and_extremes(candidates: int) -> None:
    ring, count = Ring(21), 40
    words = Ring(3).to_signed(uniform_residues((count, candidates), 3)) * 100_000
    words[0] = 7  # all tied
    best = np.eye(candidates, dtype=np.uint8)
    first, second = on_shares(on_shared(argmax), ring, words)
    assert ((first ^ second) == best[words.argmax(axis=1)]).all()
    assert (joined(on_shares(on_shared(largest), ring, words), ring) == words.max(axis=1)).all()
    assert (joined(on_shares(on_shared(smallest), ring, words), ring) == words.min(axis=1)).all()


def test_argmax_refuses_what_is_no_table() -> None:
    for shape in ((3,), (3, 0)):
        with pytest.raises(RangeError, match="candidates"):
            argmax(Shared(None, np.zeros(shape, np.uint64), Ring(21)))


def test_words_need_not_be_reduced() -> None:
    ring, values = Ring(21), signed(50, 21)
    shares = [share + np.uint64(5 << 21) for share in ring.share(ring.from_signed(values))]
    first, second, _, _ = together(lambda e, p: is_negative(e, shares[p], ring))
    assert ((first ^ second) == (values < 0)).all()
    wide = Ring(40)
    run = lambda e, p: extend(Shared(e, shares[p], ring), wide).residues  # noqa: E731
    assert (joined(together(run)[:2], wide) == values).all()
    local = [truncate_local(Shared(None, share, ring), 4).residues for share in shares]
    missing = ((values >> 4) - joined((local[0], local[1]), Ring(17))) % (1 << 17)
    assert set(missing.tolist()) <= {0, 1}


def test_extension() -> None:
    ring, wider, values = Ring(21), Ring(40), signed(500, 21)
    run = on_shared(lambda shared: extend(shared, wider))
    assert (joined(on_shares(run, ring, values), wider) == values).all()
    with pytest.raises(RangeError):
        extend(Shared(None, np.zeros(1, np.uint64), wider), ring)
    with pytest.raises(RangeError):
        truncate_local(Shared(None, np.zeros(1, np.uint64), ring), 21)


@pytest.mark.parametrize(("bits", "more"), [(3, 1), (15, 12), (20, 41)])
def test_widening(bits: int, more: int) -> None:
    """All that lies within a quarter of the ring, to its ends."""
    ring, wider, quarter = Ring(bits), Ring(bits + more), 1 << (bits - 2)
    values = np.concatenate((signed(300, bits) % quarter, -(signed(300, bits) % quarter), [-quarter, quarter - 1]))
    run = on_shared(lambda shared: widen(shared, wider))
    assert (joined(on_shares(run, ring, values), wider) == values).all()
    with pytest.raises(RangeError):
        widen(Shared(None, np.zeros(1, np.uint64), wider), ring)


def test_rounding_is_off_by_a_step_at_the_most_and_by_nothing_on_average() -> None:
    """8,000 shares of one value: six deviations of the mean, each off by less than half a step of deviation."""
    ring, left = Ring(24), Ring(17)
    values = np.full(8_000, 12_345)
    run = on_shared(lambda shared: round_local(shared, 7))
    apart = joined(on_shares(run, ring, values), left) - values / 128
    assert np.abs(apart).max() <= 1
    assert abs(apart.mean()) < 6 * 0.5 / np.sqrt(len(values)) + 1 / 128


@pytest.mark.parametrize("receiver", list(Side))
def test_only_the_named_party_gets_the_result(receiver: Side) -> None:
    ring, values = Ring(21), signed(10, 21)
    shares = ring.share(ring.from_signed(values))
    results = together(lambda e, p: open_to(e, receiver, shares[p], ring))
    assert (ring.to_signed(results[receiver]) == values).all()
    assert results[1 - receiver] is None
    bits = np.array([0, 1, 1], np.uint8), np.array([0, 0, 1], np.uint8)
    results = together(lambda e, p: open_bits_to(e, receiver, bits[p]))
    assert (results[receiver] == [0, 1, 0]).all()
    assert results[1 - receiver] is None


def test_flights_give_the_same_at_fewer_messages() -> None:
    ring, values = Ring(21), signed(50, 19)
    shares = ring.share(ring.from_signed(values))

    def recursion(engine: ShareEngine, party: Side) -> np.ndarray:
        state = Shared(engine, shares[party], ring)
        for _ in range(4):
            state = maximum(state, state[np.arange(-1, 49)])
        return state.residues

    def program(engine: ShareEngine, party: Side) -> np.ndarray:
        with engine.in_flights():
            return recursion(engine, party)

    plain = record(lambda engine: recursion(engine, Side.SECOND))
    flights = record(lambda engine: program(engine, Side.SECOND))
    first, second, _, _ = together(program)
    expected = values
    for _ in range(4):
        expected = np.maximum(expected, np.roll(expected, 1))
    assert (joined((first, second), ring) == expected).all()
    assert flights.messages < plain.messages
    assert flights.rounds == plain.rounds == 8


@given(st.integers(1, 64), st.lists(st.integers(0, 2**64 - 1), max_size=40))
@settings(max_examples=60, deadline=None)
def test_numbers_survive_the_wire(width: int, numbers: list[int]) -> None:
    kept = np.array([number & ((1 << width) - 1) for number in numbers], np.uint64)
    data = pack_numbers(kept, width)
    assert len(data) == packed_bytes(len(kept), width)
    assert (unpack_numbers(data, len(kept), width) == kept).all()


def test_costs_add_up() -> None:
    one = record(lambda engine: is_negative(engine, blank(5), Ring(21)))
    other = record(lambda engine: look_up(engine, blank(2), blank(16), Ring(9)))
    assert one * 3 == one + one + one
    assert (one + other).total_bytes > one.total_bytes
    assert (one + other).online_bytes == one.online_bytes + other.online_bytes
    assert one + Cost() == one


@pytest.mark.parametrize("owner", list(Side))
def test_an_input_is_shared_without_a_message(owner: Side) -> None:
    ring, values = Ring(13), signed(12, 13).reshape(3, 4)
    given = ring.from_signed(values)

    def program(engine: ShareEngine, party: Side) -> np.ndarray:
        return share_input(engine, owner, given if party is owner else None, (3, 4), ring).own

    first, second, _, online = together(program)
    assert (joined((first, second), ring) == values).all()
    assert online.messages == 0
    for party in Side:
        with pytest.raises(RangeError, match="has these values"):
            record(lambda e: share_input(e, owner, None if e.party is owner else given, (3, 4), ring), party)
    with pytest.raises(RangeError, match="agreed on"):
        record(lambda e: share_input(e, owner, given, (4, 3), ring), owner)


def test_shares_read_as_mathematics() -> None:
    """Sums, differences, signs and products of any shape, with bits broadcast; shares of two rings do not mix."""
    ring = Ring(21)
    left, right = signed(12, 19).reshape(3, 4), signed(12, 19)[::-1].reshape(3, 4)
    shares = [ring.share(ring.from_signed(values)) for values in (left, right)]

    def program(engine: ShareEngine, party: Side) -> list[np.ndarray | None]:
        one, other = (Shared(engine, each[party], ring) for each in shares)
        is_larger, is_first_larger = one >= other, (one >= other)[:, :1]
        results = [one + other, one - other, -one, one.sum(axis=1), is_first_larger * one, is_larger * one[0]]
        both = is_larger & (other < one)
        return [each.open_to(Side.SECOND) for each in (*results, both)]

    first, second, _, _ = together(program)
    assert first == [None] * 7
    larger = left >= right
    wanted = [left + right, left - right, -left, left.sum(axis=1), larger[:, :1] * left, larger * left[0]]
    for got, expected in zip(second[:6], wanted, strict=True):
        assert (got == ring.reduce(expected.astype(np.int64).view(np.uint64))).all()
    assert (second[6] == (left > right)).all()
    with pytest.raises(RangeError, match="21 bits and of 13"):
        record(lambda e: Shared(e, blank(2), ring) + Shared(e, blank(2), Ring(13)))
