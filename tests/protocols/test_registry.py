"""Protocols by name."""

import secrets
from dataclasses import dataclass

import pytest

from ppspeech.crypto import Kind as CryptoKind
from ppspeech.errors import PpspeechError
from ppspeech.network import memory_pair
from ppspeech.protocols import PROTOCOLS, Kind, Party, RegisteredProtocol, kind_of, register_protocol, run_in_memory

STATEMENTS = {"functionality": "the larger, to both", "leakage": "the bits of both", "assumptions": "none"}


@pytest.fixture
def toy() -> RegisteredProtocol:
    return register_protocol(f"toy_{secrets.token_hex(4)}", **STATEMENTS)


def test_a_protocol_is_found_by_name_with_its_parties(toy: RegisteredProtocol) -> None:
    @toy.party("left")
    def left(party: Party, size: float, *, rounds: int = 2) -> str:
        return "here"

    assert PROTOCOLS[toy.name] is toy
    assert toy.name in PROTOCOLS.names()
    assert toy.parties == {"left": left}
    assert toy.bind("left", [1.0])(Party("left", {})) == "here"
    assert toy.describe().splitlines()[1:] == [
        "  computes: the larger, to both",
        "  leaks:    the bits of both",
        "  assumes:  none",
    ]
    assert toy.describe_programs().splitlines() == ["  left brings: size: float", "  terms: rounds: int = 2"]


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


def test_inputs_and_terms_that_do_not_fit_are_refused_before_anyone_is_met(toy: RegisteredProtocol) -> None:
    @dataclass(frozen=True)
    class Sizes:
        rows: int
        columns: int = 1

    wide = RegisteredProtocol("wide", **STATEMENTS, terms=Sizes)
    wide.party("left")(lambda party, number, /, *, scale=1, **terms: number)
    wide.bind("left", [1], {"rows": 2, "scale": 3})
    for role, inputs, terms, said in (
        ("right", [1], {}, "wide has the roles left"),
        ("left", [], {}, "left of wide brings number: got 0 inputs"),
        ("left", [1, 2], {}, "left of wide brings number: got 2 inputs"),
        ("left", [1], {"rows": 1, "depth": 2}, "wide has no term depth: its terms are scale, rows, columns"),
        ("left", [1], {"columns": 1}, "wide needs the term rows"),
    ):
        with pytest.raises(PpspeechError, match=said):
            wide.bind(role, inputs, terms)


def test_seats() -> None:
    def told(party: Party) -> tuple[str, int, list[str], list[str]]:
        return party.seat, party.place, list(party.channels), party.seats("party")

    found = run_in_memory([("curator", told), *[("party", told)] * 11], hub="curator")
    everyone = [f"party {place}" for place in range(11)]
    assert found[0] == ("curator", 0, everyone, everyone)
    assert found[11] == ("party 10", 10, ["curator"], everyone)
    assert run_in_memory([("ann", told), ("bob", told)])[1] == ("bob", 0, ["ann"], [])
    with pytest.raises(PpspeechError, match="curator talks to party 0, party 1: say to whom"):
        Party("curator", {"party 0": memory_pair()[0], "party 1": memory_pair()[0]}).channel  # noqa: B018


def test_kinds_say_what_they_are() -> None:
    numbers = [int(kind) for kinds in (Kind, CryptoKind) for kind in kinds]
    assert len(set(numbers)) == len(numbers)
    assert all(kind.meaning.strip() for kinds in (Kind, CryptoKind) for kind in kinds)
    assert (kind_of(Kind.QUERY), kind_of(CryptoKind.OPEN), kind_of(199)) == (Kind.QUERY, CryptoKind.OPEN, None)
