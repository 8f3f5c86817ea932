"""A new kind of model touches two files: its module with its kind, and its recipe. Here both are in one.

The toy knows each word by the average of its frames. It is trained, saved, released, loaded, used in the clear and
prepared for an encrypted service, and nothing elsewhere knows of it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytorch_lightning as lightning
import torch
from torch import Tensor, nn

from ppspeech.audio import MfccConfig, length_mask
from ppspeech.bundle import MODEL_TYPES, DataTouch, load_bundle, model_type
from ppspeech.data import Batch, SpeechDataModule
from ppspeech.errors import ModelError
from ppspeech.protocols.scores import WordArrays as EncryptedWords
from ppspeech.service.export import EXPORTERS, Deployment, export_words, one_frame_models
from ppspeech.training import SpeechModule, export_checkpoint, load_checkpoint, release
from ppspeech.training.module import MaximizationStep


class NearestMean(nn.Module):
    """Scores of utterances by the distance of their average frame to each word's, times `sharpness`."""

    def __init__(self, words: int, features: int, sharpness: float) -> None:
        super().__init__()
        self.sharpness = sharpness
        self.mean = nn.Parameter(torch.zeros(words, features))

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        return -self.sharpness * torch.cdist(averages(features, lengths), self.mean).square()


def averages(features: Tensor, lengths: Tensor) -> Tensor:
    inside = length_mask(lengths, features.shape[1]).unsqueeze(-1)
    return (features * inside).sum(1) / lengths.unsqueeze(-1)


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    """The kind and its exporter, for these tests only."""
    model_type("nearest_mean", "recognize")(NearestMeanSettings)
    EXPORTERS.register("nearest_mean")(export_nearest_mean)
    yield
    for registry in (MODEL_TYPES, EXPORTERS):
        del registry._entries["nearest_mean"]  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestMeanSettings:
    sharpness: float

    def task(self, labels: tuple[str, ...]) -> str:
        return f"Says which of {len(labels)} words was spoken, by the average of its frames."

    def build(self, labels: tuple[str, ...], features: int) -> NearestMean:
        return NearestMean(len(labels), features, self.sharpness)


def export_nearest_mean(model: NearestMean, labels: tuple[str, ...], deployment: Deployment) -> EncryptedWords:
    """-|x - m|^2 without |x|^2, which all words share, is linear in [x, 1]."""
    weights = torch.cat((2 * model.mean, -model.mean.square().sum(-1, keepdim=True)), -1) * model.sharpness
    columns = weights.double().mT.contiguous().numpy()
    return one_frame_models(columns, "linear", model.mean.shape[1], labels, deployment)


class NearestMeans(SpeechModule):
    """The recipe: one epoch adds up the averages of every word's utterances."""

    label = "word"

    def __init__(self, sharpness: float = 1.0) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.sharpness = sharpness
        self._sums: Tensor | float = 0.0

    def settings(self) -> NearestMeanSettings:
        return NearestMeanSettings(sharpness=self.sharpness)

    def touches(self) -> tuple[DataTouch, ...]:
        return (DataTouch("threshold", "untouched", "the highest score wins"),)

    def configure_optimizers(self) -> MaximizationStep:
        return MaximizationStep(self.parameters(), self._set)

    def training_step(self, batch: Batch) -> None:
        member = nn.functional.one_hot(batch["word"], len(self.labels)).float()
        x = averages(batch["features"], batch["lengths"])
        self._sums = self._sums + member.mT @ torch.cat((x, torch.ones(len(x), 1)), -1)
        if self.last_batch():
            self.maximize()

    @torch.no_grad()
    def _set(self) -> None:
        assert isinstance(self.model, NearestMean)
        assert isinstance(self._sums, Tensor)
        self.model.mean.copy_(self._sums[:, :-1] / self._sums[:, -1:])


def test_a_new_kind_is_trained_released_loaded_and_used(
    trainer: Callable[..., lightning.Trainer], tmp_path: Path
) -> None:
    options = {"words": ["zero", "one", "two"], "speakers": 8, "takes": 2}
    voices = SpeechDataModule("synthetic", options, batch_size=16, mfcc=MfccConfig(cmvn="none"))
    module, run = NearestMeans(), trainer(max_epochs=1)
    run.fit(module, datamodule=voices)
    run.save_checkpoint(tmp_path / "means.ckpt")
    released = export_checkpoint(tmp_path / "means.ckpt", tmp_path / "bundle", not_private=True)
    assert release(module, tmp_path / "again", not_private=True).fingerprint == released.fingerprint
    bundle = load_bundle(tmp_path / "bundle")
    assert bundle.config.type == "nearest_mean"
    assert dict(bundle.config.tensors()) == {"mean": (3, 39)}

    part = voices.parts["test"].corpus
    heard = [bundle.recognize(utterance.path).value for utterance in part if utterance.path is not None]
    assert sum(said.word == word for said, word in zip(part, heard, strict=True)) > len(part) / 2
    with pytest.raises(ModelError, match="nearest_mean"):
        _ = bundle.transcriber
    with pytest.raises(ModelError, match="it cannot verify"):
        load_checkpoint(tmp_path / "means.ckpt", "verify")

    served = export_words(bundle.config.type, bundle.model, bundle.labels)
    assert served.labels == bundle.labels
    batch = next(iter(voices.test_dataloader()))
    x = averages(batch["features"], batch["lengths"])
    linear = torch.cat((x, torch.ones(len(x), 1)), -1).double() @ torch.from_numpy(served.weights)
    plain = bundle.model(batch["features"], batch["lengths"])
    assert torch.equal(linear.argmax(-1), plain.argmax(-1))
