"""What a private run says about itself is what was seen of it: watchers, starts, labels, counts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as lightning
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint, Timer
from pytorch_lightning.cli import LightningArgumentParser, SaveConfigCallback

from ppspeech.audio import MfccConfig
from ppspeech.data import SpeechDataModule, load_corpus, write_packed
from ppspeech.errors import CorpusError, PrivacyError
from ppspeech.training import LargeMarginClassifier, PrivacyHook, SpeakerUbm, WordModels, WordNetwork, export_checkpoint
from ppspeech.training.private.observed import ONLY_SHOW

Make = Callable[..., lightning.Trainer]


def words(**changes: Any) -> WordModels:
    return WordModels(**({"states": 2, "covariance": "diagonal", "start": "public"} | changes))


def statuses(hook: PrivacyHook) -> dict[str, str]:
    return {touch.topic: touch.status for touch in hook.record().touches}


def notes(hook: PrivacyHook) -> dict[str, str]:
    return {touch.topic: touch.note for touch in hook.record().touches}


class LeavesEarly(lightning.Callback):
    """A callback of somebody's own, that ends a run when it has seen enough."""

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        trainer.should_stop = True


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _: EarlyStopping("val_accuracy", strict=False), "EarlyStopping watched val_accuracy"),
        (lambda path: ModelCheckpoint(path, monitor="val_accuracy"), "ModelCheckpoint kept the best by val_accuracy"),
        (lambda _: Timer("00:01:00:00"), "Timer watched the run"),
        (lambda _: LeavesEarly(), "LeavesEarly watched the run"),
    ],
)
def test_whoever_watches_the_run_is_named_and_not_covered(
    voices: SpeechDataModule, trainer: Make, tmp_path: Path, make: Any, said: str
) -> None:
    hook = PrivacyHook(epsilon=4.0)
    run = trainer(max_epochs=2, callbacks=[hook, make(tmp_path / "kept")])
    voices.validation = 0.25
    run.fit(words(), datamodule=voices)
    assert statuses(hook)["early_stopping"] == "not_covered"
    assert said in notes(hook)["early_stopping"]
    run.save_checkpoint(tmp_path / "run.ckpt")
    stated = {t.topic: t.status for t in export_checkpoint(tmp_path / "run.ckpt", tmp_path / "b").statement.touches}
    assert stated["early_stopping"] == "not_covered"


def test_the_callback_that_every_recipe_has_does_not_watch(
    voices: SpeechDataModule, trainer: Make, tmp_path: Path
) -> None:
    """It writes settings down before the run begins; else no private recipe could be said to run as planned."""
    parser = LightningArgumentParser()
    settings = SaveConfigCallback(parser, parser.parse_args([]), overwrite=True)
    hook = PrivacyHook(epsilon=4.0)
    trainer(max_epochs=1, callbacks=[hook, settings], default_root_dir=tmp_path).fit(words(), datamodule=voices)
    assert settings.already_saved
    assert statuses(hook)["early_stopping"] == "untouched"


def test_a_run_that_nobody_watched_says_so_and_one_cut_short_does_not(
    voices: SpeechDataModule, trainer: Make, tmp_path: Path
) -> None:
    hook = PrivacyHook(epsilon=4.0)
    run = trainer(max_epochs=2, callbacks=[hook, ModelCheckpoint(tmp_path / "each", save_top_k=-1)])
    run.fit(words(), datamodule=voices)
    assert statuses(hook) == {
        "early_stopping": "untouched",
        "tuning": "not_covered",
        "initialization": "untouched",
        "labels": "not_covered",
        "counts": "untouched",
    }
    assert "read from the private corpus" in notes(hook)["labels"]
    assert "synthetic" in notes(hook)["initialization"]
    assert not any("vocabulary" in line for line in hook.guarantee().assumptions)
    first, last = sorted((tmp_path / "each").iterdir())
    ended = {}
    for name, path in (("first", first), ("last", last)):
        touches = export_checkpoint(path, tmp_path / name).statement.touches
        (ended[name],) = (touch for touch in touches if touch.topic == "early_stopping")
    assert ended["last"].status == "untouched"
    assert (ended["first"].status, "1 of 2 releases" in ended["first"].note) == ("not_covered", True)


@pytest.mark.filterwarnings("ignore:.*callbacks used to create the checkpoint")  # which is what somebody forgot
def test_what_watched_the_first_part_of_a_run_is_remembered_in_the_second(
    voices: SpeechDataModule, trainer: Make, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"noise_multiplier": 1.0, "sampling": 0.5, "expected_units": 20.0}
    watched = trainer(max_epochs=1, callbacks=[PrivacyHook(**options), EarlyStopping("anything", strict=False)])
    watched.fit(words(method="gradient"), datamodule=voices)
    watched.save_checkpoint(tmp_path / "a.ckpt")
    hook = PrivacyHook(**options)
    resumed = {"ckpt_path": tmp_path / "a.ckpt", "weights_only": True}
    trainer(max_epochs=2, callbacks=[hook]).fit(words(method="gradient"), datamodule=voices, **resumed)
    assert "EarlyStopping watched anything" in notes(hook)["early_stopping"]


def test_a_learning_rate_that_follows_a_metric_is_seen(voices: SpeechDataModule, trainer: Make) -> None:
    class Follows(WordModels):
        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.Adam(self.bank.emission.parameters(), 1e-3)
            plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": plateau, "monitor": "val_accuracy"}}

    voices.validation = 0.25
    hook = PrivacyHook(noise_multiplier=1.0, sampling=0.5, expected_units=20.0)
    module = Follows("gradient", states=2, covariance="diagonal", start="public")
    trainer(max_epochs=1, callbacks=[hook]).fit(module, datamodule=voices)
    assert "the learning rate followed val_accuracy" in notes(hook)["early_stopping"]


def test_callbacks_that_only_show_change_nothing() -> None:
    assert all(kind is not lightning.Callback for kind in ONLY_SHOW)
    assert not any(issubclass(kind, EarlyStopping | ModelCheckpoint) for kind in ONLY_SHOW)


@pytest.mark.parametrize(
    "make",
    [words, lambda: words(method="gradient"), lambda: SpeakerUbm(components=2, start="public"), LargeMarginClassifier],
    ids=["statistics", "gradients", "background", "scale"],
)
def test_a_start_that_heard_the_private_recordings_is_refused(
    trainer: Make, make: Any, request: pytest.FixtureRequest
) -> None:
    """The corpus that the start calls public is the one that is to be protected."""
    private = SpeechDataModule("synthetic", {"words": ["zero", "two"], "speakers": 8, "takes": 2}, batch_size=16)
    told: Any = {"expected_units": 10.0} if request.node.callspec.id == "gradients" else {}
    hook = PrivacyHook(epsilon=1.0, delta=1e-5, **told)
    with pytest.raises(
        CorpusError, match=r"recordings of the private corpus, .* are in the public corpus synthetic too"
    ):
        trainer(max_epochs=1, callbacks=[hook]).fit(make(), datamodule=private)
    assert hook.spent == 0


def test_under_replace_the_number_is_public(voices: SpeechDataModule, trainer: Make) -> None:
    hook = PrivacyHook(epsilon=4.0, adjacency="replace")
    trainer(max_epochs=1, callbacks=[hook]).fit(words(), datamodule=voices)
    assert statuses(hook)["counts"] == "not_covered"
    assert "number of utterances is public" in notes(hook)["counts"]


def test_packed_features_are_not_believed_to_be_others_than_the_public(tmp_path: Path, trainer: Make) -> None:
    """A start from public speech is refused, one that is drawn at random is not."""
    corpus = load_corpus("synthetic", words=("no", "yes"), speakers=4, takes=2)
    write_packed(tmp_path / "packed", corpus, MfccConfig.at_rate(corpus.sample_rate))
    hook, data = PrivacyHook(epsilon=4.0), SpeechDataModule(str(tmp_path / "packed"), test=0)
    with pytest.raises(PrivacyError, match="do not show whether public recordings are among them"):
        trainer(max_epochs=1, callbacks=[hook]).fit(words(), datamodule=data)
    assert hook.spent == 0
    hook = PrivacyHook(epsilon=4.0, sampling=0.5, expected_units=2.0, unit="speaker", public_start="drawn at random")
    data = SpeechDataModule(str(tmp_path / "packed"), test=0)
    trainer(max_epochs=1, callbacks=[hook]).fit(WordNetwork(), datamodule=data)
    assert hook.spent == 2
