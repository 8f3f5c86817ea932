"""The speaker recipe: EM under the Trainer, enrollment, trials, a cohort."""

from collections.abc import Callable
from pathlib import Path

import pytest
import pytorch_lightning as lightning
import torch

from ppspeech.audio import MfccConfig, write_audio
from ppspeech.bundle import Verifier
from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.errors import ModelError
from ppspeech.training import SpeakerUbm, export_checkpoint, load_checkpoint, run_recipe
from ppspeech.training.speakers import _draw_det
from tests.service.voices import RATE, voice

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


def test_one_clip_a_person_trains_a_model_that_is_not_tested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with LibriSpeech's background people: what cannot be tested is said, before training and after."""
    recipe = Path(__file__).parents[2] / "configs" / "speaker_ubm.yaml"
    folder = tmp_path / "people"
    folder.mkdir()
    rows = []
    for who in range(8):
        write_audio(folder / f"{who}.wav", voice(who, 0.6), RATE)
        rows.append(f"{who}.wav,person{who}")
    (folder / "manifest.csv").write_text("\n".join(["path,speaker", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    run_recipe(
        [
            "fit", "--config", str(recipe), "--data.corpus", str(folder), "--model.components", "2",
            "--trainer.max_epochs", "2", "--trainer.logger", "false", "--trainer.enable_progress_bar", "false",
        ]
    )  # fmt: skip
    shown, warned = capsys.readouterr()
    assert "has one take: nobody can be enrolled with one and tried with another" in warned
    assert "no error rate is measured" in warned
    assert "nobody who was held out can be tried: the model was not tested" in shown
    assert "test_eer" not in shown
    (found,) = tmp_path.rglob("*.ckpt")
    trained = load_checkpoint(found, "verify")
    assert not trained.measured
    bundle = export_checkpoint(found, tmp_path / "bundle", not_private=True)
    assert bundle.verify([voice(0, 0.6)], [voice(0, 0.6)], RATE, threshold=0.9).value


def test_takes_that_do_not_fit_are_still_refused(voices: SpeechDataModule, trainer: Make) -> None:
    model = SpeakerUbm(components=2, enroll_takes=[9])
    model.will_be_tested = True
    with pytest.raises(ModelError, match="choose others"):
        trainer(max_epochs=1).fit(model, datamodule=voices)
