"""A guarantee cannot be written without unit and adjacency, and survives a file."""

import json
import math
from typing import Any

import pytest

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Guarantee, Relation

SOUND: dict[str, Any] = {
    "kind": "approximate",
    "relation": Relation("speaker", "add_remove"),
    "epsilon": 1.5,
    "delta": 1e-5,
}


def test_an_epsilon_needs_its_unit() -> None:
    with pytest.raises(TypeError):
        Guarantee(kind="pure", epsilon=1.0)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "change",
    [
        {"relation": None},
        {"kind": "strong"},
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"epsilon": math.inf},
        {"delta": 1.0},
        {"kind": "pure"},
        {"kind": "zcdp", "rho": None},
        {"kind": "broken"},
        {"kind": "broken", "epsilon": math.inf, "delta": 0.0},
        {"claimed_epsilon": 1.0},
    ],
)
def test_impossible_statements_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(PrivacyError):
        Guarantee(**{**SOUND, **change})


@pytest.mark.parametrize(
    "guarantee",
    [
        Guarantee(**SOUND, assumptions=("clipped",), float_safe=True),
        Guarantee(kind="zcdp", relation=Relation("frame", "replace"), rho=0.5),
        Guarantee(kind="broken", relation=Relation("record", "replace"), claimed_epsilon=1.0, caveat="shared noise"),
    ],
)
def test_a_file_holds_it(guarantee: Guarantee) -> None:
    assert Guarantee.from_json(json.loads(json.dumps(guarantee.to_json(), allow_nan=False))) == guarantee


@pytest.mark.parametrize(
    "damage",
    [
        {"unit": None},
        {"epsilon": "1"},
        {"epsilon": True},
        {"float_safe": 1},
        {"assumptions": "x"},
        {"extra": 1},
        {"delta": None},
    ],
)
def test_a_damaged_file_is_refused(damage: dict[str, Any]) -> None:
    plain = Guarantee(**SOUND).to_json() | damage
    with pytest.raises(PrivacyError):
        Guarantee.from_json(plain)
    with pytest.raises(PrivacyError):
        Guarantee.from_json({name: value for name, value in Guarantee(**SOUND).to_json().items() if name != "unit"})
