"""A small released model: three words, two states, trained on nothing but a seed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from ppspeech.audio import MfccConfig
from ppspeech.bundle import BundleConfig, DataTouch, KeywordHmmSettings, PrivacyStatement, write_bundle
from ppspeech.bundle.format import DIGESTS, SIZES, digest_file
from ppspeech.figures import Figure
from ppspeech.privacy import Accountant, GaussianEvent, NonPrivateEvent, Relation

Edit = Callable[[dict[str, Any]], None]


def small_config() -> BundleConfig:
    settings = KeywordHmmSettings(states=2, components=2, covariance="diagonal", floor=0.01, skips=0, must_finish=True)
    return BundleConfig(settings, ("no", "stop", "yes"), MfccConfig(cepstra=4, deltas=0))


def trained(config: BundleConfig) -> nn.Module:
    torch.manual_seed(0)
    model = config.build()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model


def gaussian_account(z: float = 20.0) -> Accountant:
    account = Accountant(Relation("speaker", "add_remove"))
    account.compose(GaussianEvent(z, Relation("speaker", "add_remove")), count=10)
    account.compose(GaussianEvent(10 * z, Relation("speaker", "add_remove")))  # for the threshold
    return account


def plain_account() -> Accountant:
    account = Accountant(Relation("speaker", "add_remove"))
    account.compose(NonPrivateEvent("trained in the open", Relation("speaker", "add_remove")))
    return account


def touches() -> tuple[DataTouch, ...]:
    return (
        DataTouch("normalization", "untouched", "each utterance by itself"),
        DataTouch("early_stopping", "untouched", "the number of iterations is fixed"),
        DataTouch("tuning", "not_covered", "states chosen on the training speakers"),
        DataTouch("threshold", "charged", "by the last event", 1),
        DataTouch("initialization", "untouched", "drawn at random"),
        DataTouch("labels", "untouched", "chosen in advance"),
        DataTouch("counts", "untouched", "in noisy sums alone"),
    )


def paid(account: Accountant) -> tuple[DataTouch, ...]:
    """Those touches; where an account has one event alone, the threshold is not charged."""
    return tuple(
        touch if touch.charge is None or len(account.events) > 1 else DataTouch(touch.topic, "not_covered", touch.note)
        for touch in touches()
    )


def statement_of(account: Accountant, delta: float = 1e-5, config: BundleConfig | None = None) -> PrivacyStatement:
    made_for = small_config() if config is None else config
    return PrivacyStatement.of(account, made_for, paid(account), delta=delta, caveats=("for the tests only",))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bundle on disk, (0.6ish, 1e-5)-DP for one speaker."""
    config, account = small_config(), gaussian_account()
    path = tmp_path / "words"
    write_bundle(
        path,
        model=trained(config),
        config=config,
        statement=statement_of(account),
        account=account,
        metrics=[Figure("test.accuracy", 0.91, note="12 unseen speakers")],
    )
    return path


def seal(folder: Path) -> None:
    """Write the digests anew, as a forger would."""
    names = set(SIZES) - {DIGESTS}
    (folder / DIGESTS).write_bytes(digest_file({name: (folder / name).read_bytes() for name in names}))


def forge(folder: Path, name: str, edit: Edit) -> None:
    """Change a JSON file of a bundle and make the digests fit."""
    plain = json.loads((folder / name).read_text())
    edit(plain)
    (folder / name).write_text(json.dumps(plain))
    seal(folder)
