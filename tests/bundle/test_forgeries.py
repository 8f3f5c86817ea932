"""Sixteen ways to make a bundle promise more than it does, by whoever can write its files and seal them again.

Eleven are refused, because what they change follows from something that they do not. Five change what happened itself
(whose events, how much noise, which weights, which figures) into something that fits: no check of a folder can tell,
and only a signature refuses them. The same list is in docs/guides/threats.md.
"""

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from ppspeech.bundle import (
    load_bundle,
    make_signing_key,
    renew_bundle,
    sign_release,
    signer_of,
    verify_release,
    write_bundle,
)
from ppspeech.bundle.format import CARD, EVENTS, METRICS, PRIVACY, SIGNATURE, WEIGHTS
from ppspeech.bundle.releases.signing import _sign
from ppspeech.bundle.statement import PrivacyStatement
from ppspeech.errors import BundleError
from ppspeech.privacy import Accountant
from tests.bundle.conftest import gaussian_account, seal, small_config, statement_of, trained

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


signed = pytest.mark.skipif(find_spec("model_signing") is None, reason='needs pip install "ppspeech[sign]"')


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """A private key and its public one."""
    return tmp_path / "signing.pem", make_signing_key(tmp_path / "signing.pem")


@signed
@pytest.mark.parametrize("name", NEED_A_SIGNATURE)
def test_what_happened_is_vouched_for_by_a_signature_alone(name: str, folder: Path, keys: tuple[Path, Path]) -> None:
    """They fit, and load; where a signature is asked for they do not, however they are sealed."""
    private, public = keys
    forged = folder.with_name("forged")
    shutil.copytree(folder, forged)
    sign_release(folder, private)
    honest = verify_release(folder, public)
    NEED_A_SIGNATURE[name](forged)
    assert load_bundle(forged).fingerprint != honest.fingerprint
    with pytest.raises(BundleError, match="is not signed"):
        verify_release(forged, public)
    shutil.copy(folder / SIGNATURE, forged / SIGNATURE)  # the honest signature beside forged files
    words = "the weights were swapped" if name == "other weights" else "what is said about the model was changed"
    with pytest.raises(BundleError, match=words):
        verify_release(forged, public)
    (forged / SIGNATURE).unlink()
    mallory = make_signing_key(private.with_name("mallory.pem"))
    sign_release(forged, private.with_name("mallory.pem"))
    with pytest.raises(BundleError, match=f"signed by another key .{signer_of(mallory)}"):
        verify_release(forged, public)


@signed
def test_an_old_signature_is_not_one_of_a_new_release(folder: Path, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    """The same signer, the same kind of model, weights and events of another day."""
    private, public = keys
    sign_release(folder, private)
    account, config = gaussian_account(30.0), small_config()
    model = trained(config)
    torch.nn.init.zeros_(next(model.parameters()))
    new = write_bundle(
        tmp_path / "new", model=model, config=config, statement=statement_of(account), account=account, metrics=[]
    )
    shutil.copy(folder / SIGNATURE, tmp_path / "new" / SIGNATURE)
    with pytest.raises(
        BundleError, match=f"of another release .*not of this one .{new.fingerprint}.: an old signature"
    ):
        verify_release(tmp_path / "new", public)
    with pytest.raises(BundleError, match="is signed already"):
        sign_release(tmp_path / "new", private)
    assert load_bundle(tmp_path / "new").fingerprint == new.fingerprint  # loading asks nobody who signed


@signed
def test_a_statement_that_is_untrue_is_refused_whoever_signed_it(folder: Path, keys: tuple[Path, Path]) -> None:
    private, public = keys
    REFUSED["another epsilon, sealed"][0](folder)
    with pytest.raises(BundleError, match="do not trust this bundle"):
        sign_release(folder, private)
    (folder / SIGNATURE).write_bytes(_sign(folder, private))  # a signer who does not look
    with pytest.raises(BundleError, match="its events give"):
        verify_release(folder, public)


@signed
def test_a_signature_is_of_the_form_that_others_check(folder: Path, keys: tuple[Path, Path]) -> None:
    """By the library's own command, without ppspeech; whatever the folder is called."""
    sign_release(folder, keys[0])
    renamed = folder.rename(folder.with_name("another name"))
    verify_release(renamed, keys[1])
    command = [sys.executable, "-m", "model_signing", "verify", "key", str(renamed), "--signature"]
    more = [str(renamed / SIGNATURE), "--public_key", str(keys[1])]
    subprocess.run([*command, *more], check=True, capture_output=True)
    for path in renamed.iterdir():
        assert b"PRIVATE" not in path.read_bytes()


def test_all_sixteen_are_here_and_in_the_documents() -> None:
    assert len(REFUSED) + len(NEED_A_SIGNATURE) == 16
    told = (Path(__file__).parents[2] / "docs" / "guides" / "threats.md").read_text()
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


def resigned(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """Another payload under the same signature."""

    def edit(plain: dict[str, Any]) -> None:
        payload = json.loads(base64.b64decode(plain["dsseEnvelope"]["payload"]))
        change(payload)
        plain["dsseEnvelope"]["payload"] = base64.b64encode(json.dumps(payload).encode()).decode()

    return edit


@signed
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plain: plain["dsseEnvelope"]["signatures"][0].update(sig="AAAA"), "it was made up"),
        (resigned(lambda payload: payload.update(more=1)), "it was made up"),
        (resigned(lambda payload: payload.update(predicateType="https://model_signing/Digests/v0.1")), "is not a sig"),
        (resigned(lambda payload: payload["predicate"]["resources"][0].update(algorithm="blake3")), "is not a sig"),
        (lambda plain: plain["verificationMaterial"]["publicKey"].update(hint="00"), "signed by another key"),
        (lambda plain: plain["verificationMaterial"].pop("publicKey"), "is not a signature as"),
        (lambda plain: plain["dsseEnvelope"].update(payload="*"), "is not a signature as"),
        (lambda plain: plain["dsseEnvelope"].pop("signatures"), "cannot be read"),
    ],
)
def test_a_signature_that_was_changed_is_refused(
    folder: Path, keys: tuple[Path, Path], change: Callable[[dict[str, Any]], None], message: str
) -> None:
    sign_release(folder, keys[0])
    plain = json.loads((folder / SIGNATURE).read_text())
    change(plain)
    (folder / SIGNATURE).write_text(json.dumps(plain))
    with pytest.raises(BundleError, match=message):
        verify_release(folder, keys[1])


def test_signing_keys_are_their_owners_alone(folder: Path, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    key, public = keys
    assert key.stat().st_mode & 0o777 == 0o600
    assert "PRIVATE" not in public.read_text()
    with pytest.raises(BundleError, match="never replaced"):
        make_signing_key(key)
    (tmp_path / "text.pem").write_text("no key")
    for wrong in ("text.pem", "absent.pem"):
        with pytest.raises(BundleError, match="is no public key"):
            signer_of(tmp_path / wrong)
        if find_spec("model_signing") is not None:
            with pytest.raises(BundleError, match="cannot sign with"):
                sign_release(folder, tmp_path / wrong)
    assert not (folder / SIGNATURE).exists()


def test_a_signature_of_an_earlier_version_is_named(folder: Path) -> None:
    (folder / "signature.json").write_text("{}")
    with pytest.raises(BundleError, match=r"signature.json is of an earlier version: remove it, sign anew"):
        load_bundle(folder)


def test_without_the_library_one_is_told_what_to_install(
    folder: Path, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "model_signing.signing", None)
    with pytest.raises(BundleError, match=r'pip install "ppspeech\[sign\]"'):
        sign_release(folder, keys[0])
