"""The speaker recipe: EM under the Trainer, enrollment, trials, threshold."""

from collections.abc import Callable
from pathlib import Path

import pytest
import pytorch_lightning as lightning
import torch

from ppspeech.audio import MfccConfig
from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.errors import ModelError
from ppspeech.training import SpeakerUbm, load_checkpoint

Make = Callable[..., lightning.Trainer]


@pytest.fixture
def voices() -> SpeechDataModule:
    options = {"words": ["zero", "one", "two", "three", "four"], "speakers": 12, "takes": 4}
    mfcc = MfccConfig(cmvn="none", vad_db=30.0)
    return SpeechDataModule("synthetic", options, test=0.5, batch_size=64, mfcc=mfcc)


def test_held_out_speakers_are_told_apart(voices: SpeechDataModule, trainer: Make, tmp_path: Path) -> None:
    model = SpeakerUbm(components=8, enroll_takes=[0, 1], floor=0.1)
    run = trainer(max_epochs=4)
    run.fit(model, datamodule=voices)
    result = run.test(model, datamodule=voices, verbose=False)[0]
    assert result["test_eer"] < 0.2
    assert result["test_accuracy"] == pytest.approx(1 - result["test_eer"])
    assert (Path(str(run.log_dir)) / "det.png").read_bytes().startswith(b"\x89PNG")

    run.save_checkpoint(tmp_path / "speakers.ckpt")
    loaded = load_checkpoint(tmp_path / "speakers.ckpt", "verify")
    assert loaded.config.settings == model.settings()
    assert model.threshold is not None
    assert torch.equal(loaded.model.state_dict()["logits"], model.ubm.logits)
    part = voices.parts["test"]
    by_speaker = [[f for f, s in zip(part.features, part.speakers.tolist(), strict=True) if s == who] for who in
                  sorted(set(part.speakers.tolist()))]  # fmt: skip
    verifier = model.enroll([clips[:10] for clips in by_speaker])
    scores = torch.stack([verifier(torch.cat(clips[10:]).unsqueeze(0)).squeeze(0) for clips in by_speaker])
    assert (scores.argmax(1) == torch.arange(len(by_speaker))).float().mean() > 0.8
    with pytest.raises(ModelError, match="at least one clip"):
        model.enroll([[]])
    with pytest.raises(ModelError, match="takes among"):
        model.trials({(0, 0): by_speaker[0]}, [0])
