"""Privacy by one callback."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as lightning
import torch

from ppspeech.audio import MfccConfig
from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.errors import PrivacyError
from ppspeech.training import LargeMarginClassifier
from ppspeech.training.private.objective import ObjectivePrivacy
from ppspeech.training.private.record import PrivacyRecord

Make = Callable[..., lightning.Trainer]
OPTIONS = {"words": ["six", "one"], "speakers": 12, "takes": 2}


def voices() -> SpeechDataModule:
    return SpeechDataModule("synthetic", OPTIONS, batch_size=16, mfcc=MfccConfig.hamm2015())


@pytest.mark.parametrize("unit", ["utterance", "speaker"])
def test_a_recipe_becomes_private(trainer: Make, tmp_path: Path, unit: Any) -> None:
    """With a budget too large to protect anything, words are told apart; the statement is in the checkpoint."""
    privacy = ObjectivePrivacy(epsilon=1e6, delta=0.0, unit=unit)
    model = LargeMarginClassifier(quadratic=1.0)
    run = trainer(max_epochs=1, callbacks=[privacy])
    run.fit(model, datamodule=voices())
    assert "train_objective" not in run.logged_metrics
    assert run.test(model, datamodule=voices(), verbose=False)[0]["test_accuracy"] >= 0.8
    assert privacy.fit is not None
    run.save_checkpoint(tmp_path / "private.ckpt")
    kept = torch.load(tmp_path / "private.ckpt", weights_only=True)["privacy"]
    record = PrivacyRecord.from_plain(kept)
    assert record.account.relation.unit == unit
    assert record.account.epsilon(0.0, method="basic") == pytest.approx(1e6)
    assert {touch.topic for touch in record.touches} == {"normalization", "early_stopping", "threshold"}


def test_a_small_budget_drowns_the_words(trainer: Make) -> None:
    model = LargeMarginClassifier(quadratic=1.0)
    trainer(max_epochs=1, callbacks=[ObjectivePrivacy(epsilon=0.01)]).fit(model, datamodule=voices())
    assert model.private_fit is not None
    assert model.private_fit.plan.regularization > 100


@pytest.mark.parametrize(
    ("changes", "epochs", "unit", "message"),
    [
        ({"solver": "adam"}, 1, "utterance", "solver 'newton'"),
        ({}, 2, "utterance", "max_epochs to 1, got 2"),
        ({"label": "speaker"}, 1, "speaker", "cannot hide"),
    ],
)
def test_recipes_it_cannot_protect_are_refused(
    trainer: Make, changes: dict[str, Any], epochs: int, unit: Any, message: str
) -> None:
    run = trainer(max_epochs=epochs, callbacks=[ObjectivePrivacy(epsilon=1.0, unit=unit)])
    with pytest.raises(PrivacyError, match=message):
        run.fit(LargeMarginClassifier(**changes), datamodule=voices())


def test_bad_parameters_are_refused_at_once() -> None:
    with pytest.raises(PrivacyError, match="epsilon must be > 0"):
        ObjectivePrivacy(epsilon=0.0)
    with pytest.raises(PrivacyError, match="utterance or speaker"):
        ObjectivePrivacy(epsilon=1.0, unit="frame")  # type: ignore[arg-type]
