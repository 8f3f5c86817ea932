"""Protocols by name."""

import secrets

import pytest

from ppspeech.errors import PpspeechError
from ppspeech.protocols import PROTOCOLS, RegisteredProtocol, register_protocol

STATEMENTS = {"functionality": "the larger, to both", "leakage": "the bits of both", "assumptions": "none"}


@pytest.fixture
def toy() -> RegisteredProtocol:
    return register_protocol(f"toy_{secrets.token_hex(4)}", **STATEMENTS)


def test_a_protocol_is_found_by_name_with_its_parties(toy: RegisteredProtocol) -> None:
    @toy.party("left")
    def left(channel: object) -> str:
        return "here"

    assert PROTOCOLS[toy.name] is toy
    assert toy.name in PROTOCOLS.names()
    assert toy.parties == {"left": left}
    assert left(None) == "here"
    assert toy.describe().splitlines()[1:] == [
        "  computes: the larger, to both",
        "  leaks:    the bits of both",
        "  assumes:  none",
    ]


def test_names_and_roles_are_taken_once(toy: RegisteredProtocol) -> None:
    toy.party("left")(print)
    with pytest.raises(PpspeechError, match="already"):
        toy.party("left")(repr)
    with pytest.raises(PpspeechError, match="already"):
        register_protocol(toy.name, **STATEMENTS)
    assert toy.parties == {"left": print}


@pytest.mark.parametrize("missing", STATEMENTS)
def test_every_statement_must_be_made(missing: str) -> None:
    with pytest.raises(PpspeechError, match=missing):
        register_protocol("unsaid", **(STATEMENTS | {missing: " "}))
    assert "unsaid" not in PROTOCOLS.names()


def test_an_unknown_name_gets_a_hint(toy: RegisteredProtocol) -> None:
    with pytest.raises(PpspeechError, match=f"did you mean '{toy.name}'"):
        PROTOCOLS[toy.name + "x"]
