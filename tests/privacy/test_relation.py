"""The relation travels whole, refuses unknown words, and stands in files as its two words, as it always did."""

import json
from pathlib import Path
from typing import Any

import pytest

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Accountant, Guarantee, PureEvent, Relation, event_from_json, event_to_json

WRITTEN = json.loads((Path(__file__).parent / "data" / "accounts_format_1.json").read_text())
"""Accounts of every event type and their guarantees, written before relations were one value."""


@pytest.mark.parametrize(
    ("unit", "adjacency", "message"),
    [
        ("person", "replace", "unit must be one of"),
        ("speaker", "swap", "adjacency must be one of"),
        (None, "replace", "unit"),
    ],
)
def test_unknown_words_are_refused(unit: Any, adjacency: Any, message: str) -> None:
    with pytest.raises(PrivacyError, match=message):
        Relation(unit, adjacency)


@pytest.mark.parametrize("bad", [None, "speaker", ("speaker", "replace")])
def test_nothing_is_stated_without_a_relation(bad: Any) -> None:
    with pytest.raises(PrivacyError, match="a relation is needed"):
        Guarantee(kind="pure", relation=bad, epsilon=1.0)
    with pytest.raises(PrivacyError, match="a relation is needed"):
        Accountant(bad)
    with pytest.raises(PrivacyError, match="a relation is needed"):
        Accountant(Relation("speaker", "replace")).compose(PureEvent(1.0, bad))


@pytest.mark.filterwarnings("ignore:overflow")  # scipy, at orders of Renyi that are not the best
@pytest.mark.parametrize("written", WRITTEN, ids=lambda w: json.loads(w["account"])["events"][0]["event"]["type"])
def test_what_was_written_before_is_replayed(written: dict[str, Any]) -> None:
    """To the byte, but for the last digits of an epsilon that Fourier transforms give: processors differ there."""
    plain = json.loads(written["account"])
    account = Accountant.from_json(plain)
    assert json.dumps(account.to_json()) == written["account"]
    (entry,) = plain["events"]
    assert json.dumps(event_to_json(event_from_json(entry["event"]))) == json.dumps(entry["event"])
    epsilon = float("inf") if written["epsilon"] is None else written["epsilon"]
    assert account.epsilon(1e-5) == pytest.approx(epsilon, rel=1e-8)
    stated, replayed = json.loads(written["guarantee"]), account.guarantee(1e-5).to_json()
    replayed["float_safe"] = stated["float_safe"]  # it was claimed then; now the events say it
    said = [each.pop("epsilon") for each in (stated, replayed)]
    assert said == [None, None] or said[0] == pytest.approx(said[1], rel=1e-8)
    assert json.dumps(replayed) == json.dumps(stated)
    assert json.dumps(Guarantee.from_json(json.loads(written["guarantee"])).to_json()) == written["guarantee"]
