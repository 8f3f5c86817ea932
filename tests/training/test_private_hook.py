"""One hook for every recipe: it picks the way, keeps the account, and the checkpoint says what was spent."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as lightning
import torch
from pytorch_lightning.callbacks import EarlyStopping

from ppspeech.audio import MfccConfig
from ppspeech.data import SentenceDataModule, SpeechDataModule
from ppspeech.errors import ModelError, PrivacyError
from ppspeech.training import (
    LargeMarginClassifier,
    PrivacyHook,
    SentenceModels,
    SpeakerUbm,
    WordModels,
    export_checkpoint,
    load_checkpoint,
    public_bank,
    release,
)
from ppspeech.training.recipe import run_recipe as main

Make = Callable[..., lightning.Trainer]


def words(method: Any = "baum_welch", states: int = 4, **changes: Any) -> WordModels:
    given = {"states": states, "covariance": "diagonal", "start": "public", "learning_rate": 1e-2}
    return WordModels(method, **(given | changes))


def utterances(**choices: Any) -> SpeechDataModule:
    options = {"words": ["six", "one"], "speakers": 12, "takes": 2, "seed": 1}
    return SpeechDataModule("synthetic", options, batch_size=16, mfcc=MfccConfig.hamm2015(), **choices)


def test_statistics_make_word_models_private(voices: SpeechDataModule, trainer: Make, tmp_path: Path) -> None:
    """A model that hears, an account that is right, a checkpoint that says what it is and opens."""
    module, hook = words(), PrivacyHook(epsilon=4.0)
    runner = trainer(max_epochs=2, callbacks=[hook])
    runner.fit(module, datamodule=voices)
    assert type(module) is WordModels
    assert "train_log_likelihood" not in runner.logged_metrics
    assert runner.test(module, datamodule=voices, verbose=False)[0]["test_accuracy"] >= 0.6
    assert hook.guarantee().epsilon == pytest.approx(4.0, rel=1e-3)
    assert str(hook.relation) == "one utterance (add_remove)"
    runner.save_checkpoint(tmp_path / "model.ckpt")
    trained = load_checkpoint(tmp_path / "model.ckpt")
    assert trained.config.labels == module.labels
    assert trained.record is not None
    assert trained.record.to_plain() == hook.record().to_plain()
    exported = export_checkpoint(tmp_path / "model.ckpt", tmp_path / "bundle")
    assert exported.statement.guarantee.epsilon == pytest.approx(4.0, rel=1e-3)
    stated = {touch.topic: touch.status for touch in exported.statement.touches}
    for topic in ("early_stopping", "initialization", "threshold", "normalization"):
        assert stated[topic] == "untouched"


def test_statistics_make_a_background_model_private(voices: SpeechDataModule, trainer: Make) -> None:
    module, hook = SpeakerUbm(components=4, start="public"), PrivacyHook(epsilon=8.0, unit="speaker")
    trainer(max_epochs=2, callbacks=[hook]).fit(module, datamodule=voices)
    assert hook.spent == 2
    assert module.cohort is None
    told = SpeakerUbm(components=4, start="public", cohort="validation")
    with pytest.raises(ModelError, match="cannot release voices of its own corpus"):
        trainer(max_epochs=1, callbacks=[PrivacyHook(epsilon=8.0, unit="speaker")]).fit(told, datamodule=voices)
    assert hook.guarantee().epsilon == pytest.approx(8.0, rel=1e-3)


def test_gradients_make_word_models_private(voices: SpeechDataModule, trainer: Make, tmp_path: Path) -> None:
    module, hook = (
        words("gradient", 3),
        PrivacyHook(noise_multiplier=1.0, sampling=0.5, unit="speaker", expected_units=4.0),
    )
    runner = trainer(max_epochs=1, callbacks=[hook])
    runner.fit(module, datamodule=voices)
    assert hook.spent == 2
    assert "train_loss" not in runner.logged_metrics
    assert runner.test(module, datamodule=voices, verbose=False)[0]["test_accuracy"] >= 0.6
    bundle = release(module, tmp_path / "bundle", record=hook.record())
    assert bundle.statement.guarantee.unit == "speaker"


@pytest.mark.parametrize("unit", ["utterance", "speaker"])
def test_a_convex_objective_makes_the_classifier_private(trainer: Make, tmp_path: Path, unit: Any) -> None:
    """With a budget too large to protect anything, words are told apart; the statement is in the checkpoint."""
    model, hook = LargeMarginClassifier(quadratic=1.0), PrivacyHook(epsilon=1e6, delta=0.0, unit=unit)
    run = trainer(max_epochs=1, callbacks=[hook])
    run.fit(model, datamodule=utterances())
    assert "train_objective" not in run.logged_metrics
    assert run.test(model, datamodule=utterances(), verbose=False)[0]["test_accuracy"] >= 0.8
    run.save_checkpoint(tmp_path / "private.ckpt")
    record = load_checkpoint(tmp_path / "private.ckpt").record
    assert record is not None
    assert record.account.relation.unit == unit
    assert record.account.epsilon(0.0, method="basic") == pytest.approx(1e6)
    stated = {touch.topic: touch.status for touch in record.touches}
    assert (stated["early_stopping"], stated["initialization"]) == ("untouched", "untouched")
    with pytest.raises(PrivacyError, match="budget of its own"):
        run.fit(LargeMarginClassifier(quadratic=1.0), datamodule=utterances(), ckpt_path=tmp_path / "private.ckpt")


def test_a_small_budget_drowns_the_words(trainer: Make) -> None:
    model = LargeMarginClassifier(quadratic=1.0)
    trainer(max_epochs=1, callbacks=[PrivacyHook(epsilon=0.01, delta=0.0)]).fit(model, datamodule=utterances())
    assert model.private_fit is not None
    assert model.private_fit.plan.regularization > 100


REFUSED: list[Any] = [
    (lambda: LargeMarginClassifier(solver="adam"), {}, {}, "solver 'newton'"),
    (LargeMarginClassifier, {}, {"max_epochs": 2}, "max_epochs to 1, got 2"),
    (LargeMarginClassifier, {"clip": 1.0}, {}, "by its objective, where clip mean nothing"),
    (words, {"sampling": 0.1}, {}, "by its statistics, where sampling"),
    (lambda: words(start="cut"), {}, {}, "set its `start` to public"),
    (lambda: words("gradient", start="cut"), {}, {}, "set its `start` to public"),
    (lambda: words("gradient"), {"adjacency": "replace", "expected_units": 10.0}, {}, "add_remove"),
    (lambda: words("gradient"), {}, {}, "expected_units is missing"),
    (lambda: words("gradient"), {"expected_units": 10.0}, {"accumulate_grad_batches": 2}, "accumulated"),
    (lambda: words("gradient"), {"expected_units": 10.0}, {"limit_train_batches": 2}, "a limit on training batches"),
    (words, {}, {"limit_train_batches": 2}, "of 36 this epoch heard 32 so"),
    (words, {"unit": "speaker"}, {"limit_train_batches": 0.5}, "of 36 this epoch heard 16 so"),
    (LargeMarginClassifier, {}, {"limit_train_batches": 1}, "of 36 this epoch heard 16 so"),
    (words, {}, {"max_epochs": -1}, "no end"),
    (words, {}, {"callbacks": [EarlyStopping("train_log_likelihood")]}, "which private training tells nobody"),
    (lambda: words(covariance="full"), {}, {}, "diagonal covariance"),
]


@pytest.mark.parametrize(("make", "settings", "options", "message"), REFUSED, ids=[row[3] for row in REFUSED])
def test_what_would_break_the_guarantee_is_refused(
    voices: SpeechDataModule, trainer: Make, make: Any, settings: Any, options: Any, message: str
) -> None:
    callbacks = [*options.get("callbacks", ()), PrivacyHook(epsilon=1.0, **settings)]
    runner = trainer(**({"max_epochs": 1} | options | {"callbacks": callbacks}))
    with pytest.raises((PrivacyError, ModelError), match=message):
        runner.fit(make(), datamodule=voices)


class SavesInBetween(lightning.Callback):
    """A checkpoint after the first batch, as one that is written every so many minutes, or when a machine is taken."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        if trainer.fit_loop.epoch_loop.batch_idx == 0:
            trainer.save_checkpoint(self.path)


def test_sums_of_a_part_of_an_epoch_are_not_released(voices: SpeechDataModule, trainer: Make, tmp_path: Path) -> None:
    """Whom a run that goes on from within an epoch still hears depends on how many there are: no clip bounds that."""
    saved = SavesInBetween(tmp_path / "between.ckpt")
    trainer(max_epochs=1, callbacks=[PrivacyHook(epsilon=1.0), saved]).fit(words(), datamodule=voices)
    hook = PrivacyHook(epsilon=1.0)
    with pytest.raises(PrivacyError, match=r"of 36 this epoch heard 32 so.*a checkpoint of a whole epoch"):
        trainer(max_epochs=1, callbacks=[hook]).fit(words(), datamodule=voices, ckpt_path=saved.path, weights_only=True)
    assert hook.spent == 0


def test_sentences_promise_nothing_to_anyone(trainer: Make) -> None:
    """Neither their own recipe nor another that is trained on joined utterances."""
    options = {"words": ["zero", "one"], "speakers": 4, "takes": 1, "seed": 1}
    data = SentenceDataModule(corpus="synthetic", options=options, sentences=1, test_sentences=1)
    for module, unit in ((SentenceModels(), "utterance"), (words(), "utterance"), (words(), "speaker")):
        runner = trainer(max_epochs=1, callbacks=[PrivacyHook(epsilon=1.0, unit=unit)])
        with pytest.raises(PrivacyError, match="in many sentences"):
            runner.fit(module, datamodule=data)


def test_who_is_told_apart_cannot_be_hidden(trainer: Make) -> None:
    runner = trainer(max_epochs=1, callbacks=[PrivacyHook(epsilon=1.0, unit="speaker")])
    with pytest.raises(PrivacyError, match="cannot hide"):
        runner.fit(LargeMarginClassifier(label="speaker"), datamodule=utterances(split="take", test=0.5))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "one of the two"),
        ({"epsilon": 1.0, "noise_multiplier": 1.0}, "one of the two"),
        ({"epsilon": 0.0}, "epsilon must be > 0"),
        ({"epsilon": 1.0, "sampling": 0.0}, "sampling"),
        ({"epsilon": 1.0, "unit": "frame"}, "one speaker or one record"),
        ({"epsilon": 1.0, "adjacency": "swap"}, "adjacency"),
        ({"epsilon": 1.0, "clip": 0.0}, "clip"),
        ({"epsilon": 1.0, "delta": 2.0}, "delta"),
        ({"epsilon": 1.0, "delta": 0.5}, "at most 0.001"),
    ],
)
def test_bad_parameters_are_refused_at_once(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(PrivacyError, match=message):
        PrivacyHook(**settings)


def test_a_resumed_run_goes_on_with_its_account_on_the_same_terms(
    voices: SpeechDataModule, trainer: Make, tmp_path: Path
) -> None:
    first = PrivacyHook(noise_multiplier=1.0, sampling=0.5, expected_units=10.0)
    runner = trainer(max_epochs=1, callbacks=[first])
    runner.fit(words("gradient", 3), datamodule=voices)
    runner.save_checkpoint(tmp_path / "a.ckpt")
    second = PrivacyHook(noise_multiplier=1.0, sampling=0.5, expected_units=10.0)
    trainer(max_epochs=2, callbacks=[second]).fit(
        words("gradient", 3), datamodule=voices, ckpt_path=tmp_path / "a.ckpt", weights_only=True
    )
    assert (first.spent, second.spent) == (2, 4)
    trainer(max_epochs=1, callbacks=[first]).fit(words("gradient", 3), datamodule=voices)
    assert first.spent == 4
    others: list[tuple[dict[str, Any], str]] = [
        ({"unit": "speaker"}, "unit utterance .now speaker"),
        ({"clip": 2.0}, "clip 1.0"),
        ({"sampling": 0.25}, "sampling 0.5 .now 0.25"),
        ({"noise_multiplier": 2.0}, "noise_multiplier 1.0"),
        ({"expected_units": 20.0}, "expected_units 10.0"),
        ({"automatic": True}, "automatic False"),
    ]
    for changed, message in others:
        other = PrivacyHook(**({"noise_multiplier": 1.0, "sampling": 0.5, "expected_units": 10.0} | changed))
        with pytest.raises(PrivacyError, match=message):
            trainer(max_epochs=2, callbacks=[other]).fit(
                words("gradient", 3), datamodule=voices, ckpt_path=tmp_path / "a.ckpt", weights_only=True
            )


RECIPES = {
    "keyword_hmm": [
        *("--model.start", "public", "--model.covariance", "diagonal"),
        *("--trainer.max_epochs", "2", "--trainer.callbacks", "null"),
    ],
    "speaker_ubm": ["--model.start", "public", "--model.components", "4", "--trainer.max_epochs", "2"],
    "large_margin": ["--trainer.max_epochs", "1"],
    "words_embedded": ["--trainer.max_epochs", "1"],
}


@pytest.mark.parametrize("name", RECIPES)
def test_one_block_makes_any_recipe_private(name: str, tmp_path: Path) -> None:
    config = Path(__file__).parents[2] / "configs" / f"{name}.yaml"
    small = ["--data.options", "{words: [zero, one, two], speakers: 8, takes: 4, seed: 1}", "--trainer.logger", "false"]
    quiet = ["--trainer.enable_progress_bar", "false", "--trainer.default_root_dir", str(tmp_path), "--expect", "{}"]
    run = ["fit", "--config", str(config), *small, *quiet, *RECIPES[name]]
    with pytest.raises(PrivacyError, match="has no epsilom"):
        main([*run, "--privacy", "{epsilom: 8}"])
    main([*run, "--privacy", "{unit: utterance, adjacency: add_remove, epsilon: 8, delta: 1.0e-5}"])
    (checkpoint,) = tmp_path.rglob("*.ckpt")
    record = load_checkpoint(checkpoint).record
    assert record is not None
    assert record.guarantee().epsilon == pytest.approx(8.0, rel=0.02)


def test_a_word_without_public_speech_is_refused() -> None:
    with pytest.raises(ModelError, match="no public recording of one, zero"):
        public_bank(("zero", "one"), MfccConfig(), 3, corpora=())


def test_the_data_module_given_stays_as_it_is(voices: SpeechDataModule, trainer: Make) -> None:
    voices.setup()
    methods, batches = set(vars(voices)), voices.train_dataloader().batch_sampler
    trainer(max_epochs=1, callbacks=[PrivacyHook(noise_multiplier=1.0, sampling=0.5, expected_units=10.0)]).fit(
        words("gradient", 3), datamodule=voices
    )
    assert set(vars(voices)) - {"_hparams"} == methods  # which Lightning sets
    assert type(voices.train_dataloader().batch_sampler) is type(batches)
    assert torch.is_tensor(voices.parts["train"].speakers)
