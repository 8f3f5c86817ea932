"""Private Baum-Welch under the Trainer: a model that hears, an account that is right, a checkpoint that opens."""

from collections.abc import Callable
from pathlib import Path

import pytest
import pytorch_lightning as lightning

from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.errors import ModelError, PrivacyError
from ppspeech.privacy.mechanisms import StatisticsRelease
from ppspeech.training import WordModels, load_checkpoint, public_bank
from ppspeech.training.private.gradients import GradientPrivacy
from ppspeech.training.private.keyword import PrivateKeywordHmm

Make = Callable[..., lightning.Trainer]


def test_a_private_bank_hears_and_states_its_guarantee(voices: SpeechDataModule, trainer: Make, tmp_path: Path) -> None:
    module = PrivateKeywordHmm(StatisticsRelease(4.0, iterations=2), states=4)
    runner = trainer(max_epochs=2)
    runner.fit(module, datamodule=voices)
    assert runner.test(module, datamodule=voices, verbose=False)[0]["test_accuracy"] >= 0.6
    guarantee = module.guarantee()
    assert guarantee.epsilon == pytest.approx(4.0, rel=1e-3)
    assert (guarantee.unit, guarantee.adjacency) == ("utterance", "add_remove")
    runner.save_checkpoint(tmp_path / "model.ckpt")
    assert load_checkpoint(tmp_path / "model.ckpt", "recognize").config.labels == module.labels


def test_another_number_of_epochs_is_refused(voices: SpeechDataModule, trainer: Make) -> None:
    with pytest.raises(PrivacyError, match="max_epochs to 2"):
        trainer(max_epochs=3).fit(PrivateKeywordHmm(StatisticsRelease(1.0, iterations=2)), datamodule=voices)


def test_a_word_without_public_speech_is_refused() -> None:
    mfcc = PrivateKeywordHmm(StatisticsRelease(1.0)).mfcc
    with pytest.raises(ModelError, match="no public recording of one, zero"):
        public_bank(("zero", "one"), mfcc, 3, corpora=())


def test_an_hmm_trains_by_private_gradients(voices: SpeechDataModule, trainer: Make) -> None:
    module = WordModels("gradient", states=3, covariance="diagonal", start="public", learning_rate=1e-2)
    hook = GradientPrivacy(noise_multiplier=1.0, sampling=0.5, unit="speaker")
    runner = trainer(max_epochs=1, callbacks=[hook])
    runner.fit(module, datamodule=voices)
    assert hook.steps == 2
    assert hook.guarantee().unit == "speaker"
    assert runner.test(module, datamodule=voices, verbose=False)[0]["test_accuracy"] >= 0.6
