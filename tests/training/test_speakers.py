"""The speaker recipe: EM under the Trainer, enrollment, trials, a cohort."""

from collections.abc import Callable
from pathlib import Path

import pytest
import pytorch_lightning as lightning
import torch

from ppspeech.audio import MfccConfig
from ppspeech.bundle import Verifier
from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.errors import ModelError
from ppspeech.training import SpeakerUbm, load_checkpoint
from ppspeech.training.speakers import _draw_det

Make = Callable[..., lightning.Trainer]


@pytest.fixture
def voices() -> SpeechDataModule:
    options = {"words": ["zero", "one", "two", "three", "four"], "speakers": 16, "takes": 4}
    mfcc = MfccConfig(cmvn="none", vad_db=30.0)
    return SpeechDataModule("synthetic", options, test=0.375, validation=0.3125, batch_size=64, mfcc=mfcc)


def test_held_out_speakers_are_told_apart(voices: SpeechDataModule, trainer: Make, tmp_path: Path) -> None:
    model = SpeakerUbm(components=8, enroll_takes=[0, 1], floor=0.1, cohort="validation")
    run = trainer(max_epochs=4)
    run.fit(model, datamodule=voices)
    result = run.test(model, datamodule=voices, verbose=False)[0]
    assert result["test_eer"] < 0.2
    assert result["test_accuracy"] == pytest.approx(1 - result["test_eer"])
    assert result["test_false_accept_at_0.01"] <= 0.25  # of six built-in voices, by five others
    assert result["test_miss_at_0.01"] <= 0.9
    assert (Path(str(run.log_dir)) / "det.png").read_bytes().startswith(b"\x89PNG")

    run.save_checkpoint(tmp_path / "speakers.ckpt")
    loaded = load_checkpoint(tmp_path / "speakers.ckpt", "verify")
    assert loaded.config.settings == model.settings()
    assert str(model.cohort) == "5 people of synthetic, held out of training"
    impostors = Verifier.of(loaded.model, loaded.config).impostors
    assert impostors is not None
    assert torch.equal(impostors.directions, model.ubm.get_buffer("cohort_directions"))
    trainer(max_epochs=5).fit(model, datamodule=voices, ckpt_path=str(tmp_path / "speakers.ckpt"))  # goes on
    with pytest.raises(ModelError, match="takes among"):
        model.trials({(0, 0): list(voices.parts["test"].features)}, [0])


@pytest.mark.parametrize(
    ("cohort", "said"), [("public", "recorded people"), ("validation", "needs people in it")], ids=["public", "nobody"]
)
def test_a_cohort_that_will_not_be_there_is_refused_before_training(cohort: str, said: str, trainer: Make) -> None:
    options = {"words": ["zero", "one"], "speakers": 4, "takes": 1}
    model = SpeakerUbm(components=2, cohort=cohort)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=said):
        trainer(max_epochs=1).fit(model, datamodule=SpeechDataModule("synthetic", options, test=0.5))


def test_a_det_curve_says_what_it_is_of(tmp_path: Path) -> None:
    scores, genuine = torch.tensor([0.1, 0.2, 0.3, 0.9]), torch.tensor([False, True, False, True])
    _draw_det(scores, genuine, tmp_path / "det.svg")
    assert "equal error rate 50.00% of 4 trials" in (tmp_path / "det.svg").read_text()
