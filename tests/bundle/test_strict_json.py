"""JSON is taken literally."""

from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.audio import MfccConfig
from ppspeech.bundle.strict_json import check_text, from_plain, read_json, to_plain, write_json
from ppspeech.errors import BundleError


@dataclass(frozen=True)
class Inner:
    name: str


@dataclass(frozen=True)
class Outer:
    count: int
    ratio: float
    flag: bool
    choice: Literal["a", 1]
    maybe: float | None
    values: tuple[float, ...]
    inner: Inner


PLAIN = {
    "count": 1, "ratio": 2, "flag": True, "choice": "a", "maybe": None, "values": [1, 2.5], "inner": {"name": "x"},
}  # fmt: skip


def test_exact_values_pass_and_return() -> None:
    built = from_plain(Outer, PLAIN, "outer")
    assert built == Outer(1, 2.0, True, "a", None, (1.0, 2.5), Inner("x"))
    assert from_plain(Outer, read_json(write_json(to_plain(built)), "x"), "outer") == built


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("count", 1.0), ("count", True), ("count", "1"), ("count", None), ("count", 10**7),
        ("ratio", True), ("ratio", "2"), ("ratio", float("inf")), ("ratio", float("nan")), ("ratio", None),
        ("ratio", 10**400), ("values", [-(10**309)]),
        ("flag", 1), ("choice", "b"), ("choice", True), ("maybe", "x"), ("values", 1), ("values", ["1"]),
        ("values", (1.0,)), ("inner", {}), ("inner", {"name": 1}), ("inner", {"name": "x", "y": 1}), ("inner", []),
    ],
)  # fmt: skip
def test_other_values_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(BundleError, match=f"outer.{field}"):
        from_plain(Outer, {**PLAIN, field: value}, "outer")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e999}', "1e999 is not a number"),
        (b"[1]", "one JSON object"),
        (b"\xff\xfe", "not JSON"),
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_loose_json_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        read_json(data, "file.json")


@settings(deadline=None)
@given(st.text(max_size=80))
def test_text_is_printable_or_refused(text: str) -> None:
    try:
        assert check_text("text", text) == text
    except BundleError:
        return
    assert text.strip()
    assert not any(ord(character) < 32 for character in text)


@settings(deadline=None)
@given(st.binary(min_size=49, max_size=200))
def test_keys_in_hexadecimal_or_base64_are_refused(key: bytes) -> None:
    import base64

    for encoded in (key.hex(), base64.b64encode(key).decode(), base64.urlsafe_b64encode(key).decode()):
        with pytest.raises(BundleError, match="looks like a key"):
            check_text("text", f"the value is {encoded}.")


@settings(max_examples=40, deadline=None)
@given(
    st.builds(
        MfccConfig,
        sample_rate=st.sampled_from([8000, 16000]),
        cepstra=st.integers(1, 20),
        deltas=st.sampled_from([0, 1, 2]),
        cmvn=st.sampled_from(["utterance", "none"]),
        vad_db=st.none() | st.floats(1, 60),
        high_hz=st.none() | st.floats(1000, 4000),
    )
)
def test_every_front_end_survives(config: MfccConfig) -> None:
    assert from_plain(MfccConfig, read_json(write_json(to_plain(config)), "mfcc"), "mfcc") == config
