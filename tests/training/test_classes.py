"""The large-margin recipe by the solver and by gradients."""

from collections.abc import Callable
from pathlib import Path

import pytest
import pytorch_lightning as lightning

from ppspeech.audio import MfccConfig
from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.errors import ModelError
from ppspeech.training import LargeMarginClassifier, load_checkpoint

Make = Callable[..., lightning.Trainer]
OPTIONS = {"words": ["six", "one"], "speakers": 12, "takes": 2}


@pytest.mark.parametrize(("solver", "epochs"), [("newton", 1), ("adam", 15)])
def test_words_are_told_apart(trainer: Make, tmp_path: Path, solver: str, epochs: int) -> None:
    voices = SpeechDataModule("synthetic", OPTIONS, batch_size=16, mfcc=MfccConfig.hamm2015())
    model = LargeMarginClassifier(solver=solver, quadratic=1.0)  # type: ignore[arg-type]
    run = trainer(max_epochs=epochs)
    run.fit(model, datamodule=voices)
    assert run.test(model, datamodule=voices, verbose=False)[0]["test_accuracy"] >= 0.9
    run.save_checkpoint(tmp_path / "margin.ckpt")
    assert load_checkpoint(tmp_path / "margin.ckpt", "recognize").config.labels == ("one", "six")


def test_a_corpus_without_the_label_is_refused(trainer: Make) -> None:
    voices = SpeechDataModule("synthetic", OPTIONS, mfcc=MfccConfig.hamm2015())
    with pytest.raises(ModelError, match="1 values of 'emotion'"):
        trainer(max_epochs=1).fit(LargeMarginClassifier(label="emotion"), datamodule=voices)
