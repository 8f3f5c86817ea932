"""The header's layout, and each way it can be wrong."""

import hashlib
import struct
import tracemalloc

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ppspeech.errors import (
    BadLengthError,
    BadSequenceError,
    BadTypeError,
    FrameTooLargeError,
    PeerGoneError,
    ProtocolError,
    WrongSessionError,
)
from ppspeech.network.channel.frames import ABORT, HEADER, MAGIC, VERSION, check_header, pack_header
from ppspeech.network.channel.hello import Hello, accept_only, canonical, session_id

SESSION = bytes(range(16))


def check(header: bytes, **other: object) -> int:
    wanted: dict[str, object] = {"kind": 7, "session": SESSION, "sequence": 3, "size": None, "at_most": 100}
    return check_header(header, **(wanted | other))  # type: ignore[arg-type]


def test_layout_is_the_specified_one() -> None:
    header = pack_header(7, SESSION, 3, 100)
    assert header == b"\x50\x53" + b"\x01" + b"\x07" + SESSION + b"\x00\x00\x00\x03" + b"\x00\x00\x00\x64"
    assert HEADER.size == 28
    assert check(header) == 100
    assert check(header, size=100) == 100


@pytest.mark.parametrize(
    ("header", "error"),
    [
        (b"\x50\x54" + pack_header(7, SESSION, 3, 4)[2:], BadTypeError),
        (struct.pack(">HBB16sII", MAGIC, VERSION + 1, 7, SESSION, 3, 4), BadTypeError),
        (pack_header(8, SESSION, 3, 4), BadTypeError),
        (pack_header(7, bytes(16), 3, 4), WrongSessionError),
        (pack_header(7, SESSION, 2, 4), BadSequenceError),
        (pack_header(7, SESSION, 4, 4), BadSequenceError),
        (pack_header(7, SESSION, 3, 101), FrameTooLargeError),
        (pack_header(7, SESSION, 3, 2**32 - 1), FrameTooLargeError),
        (pack_header(ABORT, SESSION, 3, 1), PeerGoneError),
        (pack_header(ABORT, bytes(16), 3, 1), PeerGoneError),
        (pack_header(ABORT, b"x" * 16, 3, 1), WrongSessionError),
    ],
)
def test_each_wrong_field_has_its_error(header: bytes, error: type[ProtocolError]) -> None:
    with pytest.raises(error):
        check(header)


def test_an_exact_length_is_exact() -> None:
    with pytest.raises(BadLengthError):
        check(pack_header(7, SESSION, 3, 9), size=10)
    with pytest.raises(FrameTooLargeError):
        check(pack_header(7, SESSION, 3, 11), size=10)


@given(st.binary(min_size=28, max_size=28))
def test_any_28_bytes_pass_or_raise_a_protocol_error(header: bytes) -> None:
    with pytest.raises(ProtocolError):
        check(header)


@given(st.integers(0, 27), st.integers(1, 255))
def test_no_changed_byte_passes_unnoticed(place: int, change: int) -> None:
    good = pack_header(7, SESSION, 3, 64)
    bad = bytearray(good)
    bad[place] ^= change
    with pytest.raises(ProtocolError):
        check(bytes(bad), size=64)


HELLO = Hello("toy", {"bits": 32, "names": ["a", "b"]}, bytes(16))


def test_hello_comes_back_and_names_the_session_as_specified() -> None:
    assert Hello.decode(HELLO.encode()) == HELLO
    other = Hello("toy", HELLO.params, b"s" * 16)
    text = bytes(16) + b"s" * 16 + b"toy" + b'{"bits":32,"names":["a","b"]}'
    assert session_id(HELLO, other) == hashlib.sha256(text).digest()[:16]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 4096,
        HELLO.encode() + b" ",
        HELLO.encode().replace(b":", b": ", 1),
        HELLO.encode().replace(b'"version":1', b'"version":2'),
        HELLO.encode().replace(b'"version":1', b'"version":true'),
        HELLO.encode().replace(b'"version":1', b'"version":1,"version":1'),
        HELLO.encode().replace(b'"version":1', b'"version":1,"xtra":1'),
        HELLO.encode().replace(b"toy", b"Toy"),
        HELLO.encode().replace(b'"toy"', b"3"),
        HELLO.encode().replace(b"00", b"zz", 1),
        HELLO.encode().replace(b"00", b"", 1),
        HELLO.encode().replace(b"32", b"NaN"),
        HELLO.encode().replace(b"32", b"1e999"),
        HELLO.encode().replace(b'{"bits":32,"names":["a","b"]}', b"[]"),
    ],
)
def test_a_hello_that_is_not_canonical_is_refused(data: bytes) -> None:
    with pytest.raises(WrongSessionError):
        Hello.decode(data)


@given(st.binary(max_size=200))
def test_any_bytes_as_hello_raise_a_protocol_error(data: bytes) -> None:
    with pytest.raises(WrongSessionError):
        Hello.decode(data)


@pytest.mark.parametrize(
    "params", [{"x": float("nan")}, {"x": b"bytes"}, {1: 2}, {"x": (1, 2)}, {"x": "a" * 5000}, {"x": {1}}]
)
def test_parameters_that_cannot_be_sent_are_refused(params: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="param"):
        Hello("toy", params, bytes(16)).encode()


@pytest.mark.parametrize("name", ["", "Toy", "a b", 'x"{', "x" * 65, "-x"])
def test_names_that_cannot_be_sent_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="named by"):
        accept_only(name, {})


def test_one_and_true_are_different_parameters() -> None:
    for ours, theirs in [(1, True), (1, 1.0), (0, False), ("1", 1)]:
        with pytest.raises(WrongSessionError):
            accept_only("toy", {"x": ours})("toy", {"x": theirs})
    accept_only("toy", {"x": 1, "y": 2})("toy", {"y": 2, "x": 1})


params = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), params, max_size=4))
def test_canonical_parameters_survive_the_wire(given_params: dict[str, object]) -> None:
    assume(len(canonical(given_params)) < 4000)
    back = Hello.decode(Hello("toy", given_params, b"n" * 16).encode())
    assert canonical(back.params) == canonical(given_params)
    accept_only("toy", given_params)("toy", back.params)


def fuzz(count: int, seed: int) -> None:
    """Random, mutated and spliced headers and HELLOs: each must be refused with a protocol error, or be whole."""
    import random

    rng = random.Random(seed)
    good_header, good_hello = pack_header(7, SESSION, 3, 64), HELLO.encode()
    for number in range(count):
        if number % 4 == 0:
            data = rng.randbytes(28)
        else:
            source = good_header if number % 4 == 1 else good_hello
            mutant = bytearray(source)
            for _ in range(rng.randrange(1, 4)):
                mutant[rng.randrange(len(mutant))] = rng.randrange(256)
            data = bytes(mutant[: rng.randrange(len(mutant) + 1)]) if number % 4 == 3 else bytes(mutant)
        try:
            if number % 4 < 2:
                assert check(data, size=64) == 64
                assert data == good_header
            else:
                assert Hello.decode(data).encode() == data
        except ProtocolError:
            continue


def test_quick_fuzz_of_headers_and_hellos() -> None:
    fuzz(20_000, seed=1)


@pytest.mark.slow
def test_a_million_inputs_crash_nothing_and_take_no_memory() -> None:
    fuzz(10_000, seed=2)  # caches fill
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    fuzz(100_000, seed=3)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 100_000
    fuzz(900_000, seed=4)
