"""Sixteen ways to make a bundle promise more than it does, by whoever can write its files and seal them again.

Eleven are refused, because what they change follows from something that they do not. Five change what happened itself
(whose events, how much noise, which weights, which figures) into something that fits: no check of a folder can tell,
and only a signature refuses them. The same list is in docs/THREATS.md.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch

from ppspeech.bundle import load_bundle, make_signing_key, renew_bundle
from ppspeech.bundle.format import CARD, DIGESTS, EVENTS, METRICS, PRIVACY, WEIGHTS
from ppspeech.bundle.statement import PrivacyStatement
from ppspeech.errors import BundleError
from ppspeech.privacy import Accountant
from tests.bundle.conftest import seal, small_config

Forgery = Callable[[Path], None]


def edited(name: str, *path: str | int, to: Any, sealed: bool = True) -> Forgery:
    """Another value at one place of a JSON file."""

    def forge(folder: Path) -> None:
        plain = place = json.loads((folder / name).read_text())
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to
        (folder / name).write_text(json.dumps(plain))
        if sealed:
            seal(folder)

    return forge


def card(*words: str) -> Forgery:
    """Another text on the card."""

    def forge(folder: Path) -> None:
        text = (folder / CARD).read_text()
        for old, new in zip(words[::2], words[1::2], strict=True):
            assert old in text
            text = text.replace(old, new)
        (folder / CARD).write_text(text)
        seal(folder)

    return forge


def all_charged(folder: Path) -> None:
    plain = json.loads((folder / PRIVACY).read_text())
    for touch in plain["touches"]:
        touch |= {"status": "charged", "note": "paid for", "charge": 1}
    (folder / PRIVACY).write_text(json.dumps(plain))
    seal(folder)


def half_a_delta(folder: Path) -> None:
    """(0, 0.5)-DP, by one event that says so."""
    event = {"type": "approximate", "stated_epsilon": 0.0, "stated_delta": 0.5, "unit": "speaker"}
    edited(EVENTS, "events", to=[{"count": 1, "event": {**event, "adjacency": "add_remove"}}])(folder)
    edited(PRIVACY, "guarantee", "epsilon", to=0.0)(folder)
    edited(PRIVACY, "guarantee", "delta", to=0.5)(folder)


REFUSED: dict[str, tuple[Forgery, str]] = {
    "another epsilon": (edited(PRIVACY, "guarantee", "epsilon", to=0.01, sealed=False), "changed since export"),
    "another epsilon, sealed": (edited(PRIVACY, "guarantee", "epsilon", to=0.01), "do not trust this bundle"),
    "a card with another epsilon": (card("**(0.", "**(0.0"), "not the card that follows"),
    "a card that says anonymous": (card("## Privacy", "## Privacy\n\nFully anonymous."), "not the card that follows"),
    "float noise said to be exact": (edited(PRIVACY, "guarantee", "float_safe", to=True), "its events say False"),
    "everything charged": (all_charged, "none is left to pay for it"),
    "everything covered": (edited(PRIVACY, "covers", to=["everything"]), "covers 'the weights"),
    "another method": (edited(PRIVACY, "method", to="rdp"), "epsilon is by 'rdp', which does not give it"),
    "one half for delta": (half_a_delta, "allows to publish people as they are"),
    "no events": (edited(EVENTS, "events", to=[]), "there are no events"),
    "no caveats": (edited(PRIVACY, "caveats", to=[]), "leaves out what must be known"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_follow_from_the_events_is_refused(name: str, folder: Path) -> None:
    forge, message = REFUSED[name]
    forge(folder)
    with pytest.raises(BundleError, match=message):
        load_bundle(folder)


def renewed(change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Forgery:
    """Other events, with the statement and the card that follow from them: the most careful of forgers."""

    def forge(folder: Path) -> None:
        events, stated = (json.loads((folder / name).read_text()) for name in (EVENTS, PRIVACY))
        change(events, stated)
        account = Accountant.from_json(events)
        told = account.guarantee(stated["guarantee"]["delta"]).to_json()
        stated["guarantee"] |= {"epsilon": told["epsilon"], "unit": told["unit"], "float_safe": told["float_safe"]}
        for name, plain in ((EVENTS, events), (PRIVACY, stated)):
            (folder / name).write_text(json.dumps(plain))
        seal(folder)
        fitting(folder)

    return forge


def fitting(folder: Path) -> None:
    """Give a folder the statement and the card that follow from its other files."""
    other = renew_bundle(folder, folder.with_name("fitting"))
    assert isinstance(other.statement, PrivacyStatement)
    for path in folder.with_name("fitting").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())


def to_parties(events: dict[str, Any], stated: dict[str, Any]) -> None:
    for place in (events, stated["guarantee"], *(entry["event"] for entry in events["events"])):
        place["unit"] = "party"


def more_noise(events: dict[str, Any], _: dict[str, Any]) -> None:
    events["events"][0]["event"]["noise_multiplier"] = 20_000.0


def made_up(events: dict[str, Any], stated: dict[str, Any]) -> None:
    event = {"type": "pure", "stated_epsilon": 0.001, "unit": "speaker", "adjacency": "add_remove"}
    events["events"] = [{"count": 1, "event": event}]
    stated["guarantee"] |= {"kind": "pure", "delta": 0.0}
    stated["touches"] = [touch for touch in stated["touches"] if touch["status"] != "charged"]


def other_weights(folder: Path) -> None:
    state = safetensors.torch.load((folder / WEIGHTS).read_bytes())
    (folder / WEIGHTS).write_bytes(safetensors.torch.save({name: value + 1 for name, value in state.items()}))
    seal(folder)


def better_figures(folder: Path) -> None:
    figures = json.loads((folder / METRICS).read_text())
    figures["figures"][0]["value"] = 0.99
    (folder / METRICS).write_text(json.dumps(figures))
    seal(folder)
    fitting(folder)


NEED_A_SIGNATURE: dict[str, Forgery] = {
    "another unit in all files": renewed(to_parties),
    "more noise than there was": renewed(more_noise),
    "a made-up event": renewed(made_up),
    "other weights": other_weights,
    "better figures": better_figures,
}


@pytest.mark.parametrize("name", NEED_A_SIGNATURE)
def test_what_happened_is_vouched_for_by_a_signature_alone(name: str, folder: Path, tmp_path: Path) -> None:
    """They fit, and load; where the signer is asked for they do not, however they are sealed."""
    signer = make_signing_key(tmp_path / "signing.pem")
    signed = tmp_path / "signed"
    renew_bundle(folder, signed, sign_with=tmp_path / "signing.pem")
    honest = load_bundle(signed, signer=signer)
    assert honest.signer == signer
    NEED_A_SIGNATURE[name](folder)
    assert load_bundle(folder).fingerprint != honest.fingerprint
    with pytest.raises(BundleError, match="not signed"):
        load_bundle(folder, signer=signer)
    for path in folder.iterdir():  # the honest signature beside forged files
        (signed / path.name).write_bytes(path.read_bytes())
    for asked in (signer, None):
        with pytest.raises(BundleError, match="does not fit its files"):
            load_bundle(signed, signer=asked)
    again, mallory = tmp_path / "again", make_signing_key(tmp_path / "mallory.pem")
    renew_bundle(folder, again, sign_with=tmp_path / "mallory.pem")
    with pytest.raises(BundleError, match=f"signed by {mallory}, not by {signer}"):
        load_bundle(again, signer=signer)


def test_all_sixteen_are_here_and_in_the_documents() -> None:
    assert len(REFUSED) + len(NEED_A_SIGNATURE) == 16
    told = (Path(__file__).parents[2] / "docs" / "THREATS.md").read_text()
    for name in NEED_A_SIGNATURE:
        assert name in told


def as_format_1(folder: Path) -> None:
    """What the first bundles looked like: other spellings, no groups, claims that nothing checked."""
    plain = json.loads((folder / PRIVACY).read_text())
    plain |= {"format": 1, "covers": ["the weights in model.safetensors"], "method": "by hand"}
    plain["guarantee"]["float_safe"] = True
    del plain["groups"]
    plain["touches"] = [
        {"topic": touch["topic"].replace("ization", "isation"), "status": touch["status"], "note": touch["note"]}
        for touch in plain["touches"]
        if touch["topic"] not in {"counts", "labels"}
    ]
    (folder / PRIVACY).write_text(json.dumps(plain))
    (folder / CARD).write_text("# Fully anonymous\n")
    seal(folder)


def test_a_bundle_of_the_first_format_is_refused_with_what_to_do_and_written_anew(folder: Path, tmp_path: Path) -> None:
    before = load_bundle(folder)
    as_format_1(folder)
    with pytest.raises(BundleError, match="`ppspeech export OLD --out NEW` writes it anew"):
        load_bundle(folder)
    again = renew_bundle(folder, tmp_path / "new")
    assert load_bundle(tmp_path / "new").fingerprint == again.fingerprint
    assert again.statement.guarantee.epsilon == before.statement.guarantee.epsilon
    assert not again.statement.guarantee.float_safe
    assert again.statement.method == before.statement.method
    stated = {touch.topic: touch.status for touch in again.statement.touches}
    assert stated["normalization"] == "untouched"
    assert stated["threshold"] == "not_covered"  # it was charged, and named no event
    assert stated["counts"] == "not_covered"  # nobody spoke about it
    assert "anonymous" not in (tmp_path / "new" / CARD).read_text()


def test_an_old_bundle_that_lies_about_its_unit_is_not_written_anew(folder: Path, tmp_path: Path) -> None:
    as_format_1(folder)
    edited(PRIVACY, "guarantee", "unit", to="party")(folder)
    with pytest.raises(BundleError, match="do not trust this bundle"):
        renew_bundle(folder, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"signature": "00" * 64}, "does not fit its files"),
        ({"signer": "00" * 31}, "does not fit its files"),
        ({"signer": 5}, "does not fit its files"),
        ({"format": 2}, "holds format 1"),
        ({"more": 1}, "holds format 1"),
    ],
)
def test_a_damaged_signature_is_refused_also_where_nobody_asks(
    folder: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    make_signing_key(tmp_path / "key.pem")
    renew_bundle(folder, tmp_path / "signed", sign_with=tmp_path / "key.pem")
    path = tmp_path / "signed" / "signature.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(BundleError, match=message):
        load_bundle(tmp_path / "signed")


def test_signing_keys_are_their_owners_alone(folder: Path, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    signer = make_signing_key(key)
    assert key.stat().st_mode & 0o777 == 0o600
    assert len(bytes.fromhex(signer)) == 32
    with pytest.raises(BundleError, match="never replaced"):
        make_signing_key(key)
    (tmp_path / "text.pem").write_text("no key")
    for wrong in ("text.pem", "absent.pem"):
        with pytest.raises(BundleError, match="cannot sign with"):
            renew_bundle(folder, tmp_path / "b", sign_with=tmp_path / wrong)
    assert not (tmp_path / "b").exists()
    renew_bundle(folder, tmp_path / "b", sign_with=key)
    for path in (tmp_path / "b").iterdir():
        assert b"PRIVATE" not in path.read_bytes()
    assert load_bundle(tmp_path / "b", signer=signer.upper()).signer == signer
    assert (tmp_path / "b" / DIGESTS).read_bytes() == (folder / DIGESTS).read_bytes()
    assert small_config() == load_bundle(tmp_path / "b").config
