"""Networks by gradients: they learn, in the clear and privately, and are released as other models are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as lightning
import torch

from ppspeech.bundle import KeywordNetworkSettings
from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.errors import ModelError
from ppspeech.training import PrivacyHook, WordNetwork, release
from ppspeech.training.private.per_sample import gradients_one_by_one, per_sample_gradients

Make = Callable[..., lightning.Trainer]
TOLD: Any = {"expected_units": 4.0, "public_start": "drawn at random"}
LAYERS = ({"outputs": 16, "width": 5, "stride": 3}, {"outputs": 12, "activation": "gelu"})


def test_a_network_learns_words_and_is_released(voices: SpeechDataModule, trainer: Make, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, fit = WordNetwork(LAYERS), trainer(max_epochs=8)
    fit.fit(module, datamodule=voices)
    (measured,) = fit.test(module, datamodule=voices, verbose=False)
    assert measured["test_accuracy"] > 0.6  # of three words, by people who were not heard
    bundle = release(module.trained(), tmp_path / "words", not_private=True)
    assert isinstance(bundle.config.settings, KeywordNetworkSettings)
    assert bundle.config.settings.layers == module.shapes


def test_it_is_trained_privately_as_others_are(voices: SpeechDataModule, trainer: Make) -> None:
    module, hook = WordNetwork(LAYERS), PrivacyHook(epsilon=4.0, sampling=0.1, **TOLD)
    trainer(max_epochs=1, callbacks=[hook]).fit(module, datamodule=voices)
    assert 3.9 < hook.guarantee().epsilon <= 4.0


def test_gradients_of_each_example_are_those_of_a_loop(voices: SpeechDataModule) -> None:
    voices.setup("fit")
    module = WordNetwork(LAYERS)
    module.build_(voices.vocabulary["word"], voices.config(voices.corpus))
    batch = next(iter(voices.train_dataloader()))
    names = [name for name, _ in module.named_parameters()]
    found, losses = per_sample_gradients(module, batch, names)
    slow, slow_losses = gradients_one_by_one(module, batch, names)
    assert torch.allclose(losses, slow_losses, atol=1e-5)
    for one, other in zip(found, slow, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_layers_that_are_none_are_refused() -> None:
    with pytest.raises(ModelError, match="mapping of sizes"):
        WordNetwork([{"units": 3}])
