"""Checkpoints into bundles: the same scores, the right statement, and nothing of the checkpoint beside the weights."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as lightning
import torch

from ppspeech.audio import MfccConfig
from ppspeech.bundle import CohortSettings, DataTouch, add_cohort_, load_bundle
from ppspeech.bundle.format import SIZES
from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.errors import BundleError, ModelError, PrivacyError
from ppspeech.figures import Figure
from ppspeech.models import Impostors, UbmVoices
from ppspeech.privacy import Accountant, DiscreteGaussianEvent, GaussianEvent, NonPrivateEvent
from ppspeech.privacy.relation import Relation, Unit
from ppspeech.training import (
    LargeMarginClassifier,
    PrivacyHook,
    SpeakerUbm,
    SpeechModule,
    WordModels,
    export_checkpoint,
    release,
)
from ppspeech.training.private.record import PrivacyRecord

WORDS = ("one", "two", "zero")
MFCC = MfccConfig(cepstra=5, deltas=0)


def record(unit: Unit = "utterance", *, touches: tuple[DataTouch, ...] = ()) -> PrivacyRecord:
    account = Accountant(Relation(unit, "add_remove"))
    account.compose(GaussianEvent(8.0, Relation(unit, "add_remove")), count=4)
    return PrivacyRecord(account=account, delta=1e-5, touches=touches, assumptions=("one device each",))


def keyword() -> WordModels:
    module = WordModels(states=3, components=2, covariance="tied", skips=1, must_finish=True)
    module.build_(WORDS, MFCC)
    return module


def margin_keyword() -> WordModels:
    module = WordModels("margin", states=2, margin=2.0)
    module.build_(WORDS, MFCC)
    return module


def classifier(label: str = "word") -> LargeMarginClassifier:
    module = LargeMarginClassifier(label=label)  # type: ignore[arg-type]
    module.build_(WORDS, MfccConfig.hamm2015())
    return module


def background() -> SpeakerUbm:
    module = SpeakerUbm(components=4)
    module.build_((), MFCC)
    return module


def checkpoint(module: SpeechModule, path: Path, kept: PrivacyRecord | None) -> Path:
    """What a Trainer would save, with private things around it."""
    torch.manual_seed(1)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    plain: dict[str, Any] = {
        "state_dict": module.state_dict(),
        "hyper_parameters": dict(module.hparams),
        "optimizer_states": [{"exp_avg": torch.full((64,), 123456.0)}],
        "rng": torch.get_rng_state(),
        "noise_vector": torch.full((64,), 654321.0),
    }
    module.on_save_checkpoint(plain)
    if kept is not None:
        kept.write_(plain)
    torch.save(plain, path)
    return path


@pytest.mark.parametrize("make", [keyword, margin_keyword, classifier])
def test_the_bundle_scores_as_the_checkpoint(make: Callable[[], Any], tmp_path: Path) -> None:
    module = make()
    bundle = export_checkpoint(checkpoint(module, tmp_path / "a.ckpt", record()), tmp_path / "bundle")
    features, lengths = torch.randn(4, 12, module.mfcc.features), torch.tensor([12, 9, 8, 12])
    torch.testing.assert_close(bundle.model(features, lengths), module.eval()(features, lengths))
    assert bundle.labels == WORDS
    assert bundle.mfcc == module.mfcc
    assert bundle.statement.guarantee == record().guarantee()
    assert load_bundle(tmp_path / "bundle").fingerprint == bundle.fingerprint


def test_nothing_else_of_the_checkpoint_enters(tmp_path: Path) -> None:
    export_checkpoint(checkpoint(keyword(), tmp_path / "a.ckpt", record()), tmp_path / "bundle")
    secrets = [torch.full((1,), value).numpy().tobytes() for value in (123456.0, 654321.0)]
    rng = torch.get_rng_state().numpy().tobytes()[:64]
    found = sorted(path.name for path in (tmp_path / "bundle").rglob("*"))
    assert found == sorted(SIZES)
    for path in (tmp_path / "bundle").iterdir():
        data = path.read_bytes()
        assert not any(secret in data for secret in (*secrets, rng, b"optimizer", b"hyper_parameters", b"noise_vector"))
        assert str(tmp_path).encode() not in data


def test_what_the_run_does_not_mention_is_not_covered(tmp_path: Path) -> None:
    path = checkpoint(keyword(), tmp_path / "a.ckpt", record())
    bundle = export_checkpoint(path, tmp_path / "b", metrics=[Figure("test.accuracy", 0.9)])
    status = {touch.topic: touch.status for touch in bundle.statement.touches}
    assert status == {
        "normalization": "untouched",  # the front end normalizes each utterance by itself
        "early_stopping": "not_covered",
        "tuning": "not_covered",
        "threshold": "untouched",  # words are told apart by the highest score
        "initialization": "not_covered",
        "labels": "not_covered",
        "counts": "not_covered",
        "metrics": "not_covered",
    }
    caveats = " ".join(bundle.statement.caveats)
    assert "One utterance is protected, not a person" in caveats
    assert "floating point" in caveats
    assert bundle.statement.guarantee.assumptions == ("one device each",)

    fixed = tuple(
        DataTouch(topic, "untouched", "fixed in advance")
        for topic in ("early_stopping", "tuning", "threshold", "initialization", "counts")
    )
    kept = record("speaker", touches=fixed)
    exact = Accountant(kept.account.relation)
    exact.compose(DiscreteGaussianEvent(8000.0, 1000.0, 4000.0, 16, kept.account.relation), count=4)
    kept = replace(kept, account=exact)
    bundle = export_checkpoint(checkpoint(keyword(), tmp_path / "b.ckpt", kept), tmp_path / "c")
    assert {t.status for t in bundle.statement.touches if t.topic != "labels"} == {"untouched"}
    assert "floating point" not in " ".join(bundle.statement.caveats)
    assert "not a person" not in " ".join(bundle.statement.caveats)


def test_a_model_that_is_not_private_needs_the_flag_and_says_so(tmp_path: Path) -> None:
    path = checkpoint(keyword(), tmp_path / "plain.ckpt", None)
    with pytest.raises(BundleError, match="--not-private"):
        export_checkpoint(path, tmp_path / "b")
    assert not (tmp_path / "b").exists()
    bundle = export_checkpoint(path, tmp_path / "b", not_private=True)
    assert bundle.statement.guarantee.kind == "none"
    assert "no privacy guarantee of any kind" in " ".join(bundle.statement.caveats)

    broken = record()
    broken.account.compose(NonPrivateEvent("one shared noise matrix", Relation("utterance", "add_remove")))
    path = checkpoint(keyword(), tmp_path / "published.ckpt", broken)
    with pytest.raises(BundleError, match="prove nothing \\(one shared noise matrix\\)"):
        export_checkpoint(path, tmp_path / "c")
    assert export_checkpoint(path, tmp_path / "c", not_private=True).statement.guarantee.kind == "none"

    path = checkpoint(keyword(), tmp_path / "private.ckpt", record())
    with pytest.raises(BundleError, match="leave --not-private out"):
        export_checkpoint(path, tmp_path / "d", not_private=True)


def test_voices_of_the_private_corpus_leave_only_where_nothing_is_promised(tmp_path: Path) -> None:
    def exported(name: str, source: str | None, kept: PrivacyRecord | None) -> Any:
        module = background()
        if source is not None:
            found = Impostors.of(UbmVoices(module.ubm, MFCC), [[torch.randn(40, MFCC.features)] for _ in range(5)])
            sizes = {"frames": found.frames, "owners": found.owners}
            module.cohort = CohortSettings(source=source, voices="some corpus", **sizes)  # type: ignore[arg-type]
            add_cohort_(module.ubm, found)
        path = checkpoint(module, tmp_path / f"{name}.ckpt", kept)
        return export_checkpoint(path, tmp_path / name, not_private=kept is None)

    def stated(bundle: Any) -> str:
        return {t.topic: t.status for t in bundle.statement.touches}["threshold"]

    with pytest.raises(BundleError, match="5 people of some corpus, whose voices would leave"):
        exported("refused", "validation", record("speaker"))
    assert not (tmp_path / "refused").exists()
    public = exported("public", "public", record("speaker"))
    assert stated(public) == "untouched"
    assert public.verifier.impostors.people == 5
    assert stated(exported("open", "validation", None)) == "not_covered"
    none = exported("none", None, record("speaker"))
    assert stated(none) == "untouched"
    assert none.verifier.impostors is None


def test_a_speaker_classifier_cannot_promise_speakers(tmp_path: Path) -> None:
    path = checkpoint(classifier("speaker"), tmp_path / "a.ckpt", record("speaker"))
    with pytest.raises(BundleError, match="the speakers themselves"):
        export_checkpoint(path, tmp_path / "b")
    path = checkpoint(classifier("speaker"), tmp_path / "a.ckpt", record("utterance"))
    assert "name people" in " ".join(export_checkpoint(path, tmp_path / "b").statement.caveats)


def test_the_record_is_plain_and_strict() -> None:
    kept = record(touches=(DataTouch("tuning", "charged", "by the first event", 0),))
    plain = kept.to_plain()
    assert {"events", "unit", "adjacency", "delta", "touches"} <= set(plain)
    again = PrivacyRecord.from_plain(copy.deepcopy(plain))
    assert again.to_plain() == plain
    assert again.guarantee() == kept.guarantee()
    assert PrivacyRecord.of(kept.account, kept.guarantee(), kept.touches) == kept
    short = {name: plain[name] for name in ("events", "unit", "adjacency", "delta", "touches")}
    for claimed in (short, {**plain, "float_safe": True}):  # which an earlier record may say; the events do not
        assert not PrivacyRecord.from_plain(claimed).guarantee().float_safe
    for damaged in (
        {**plain, "seed": 1},
        {name: value for name, value in plain.items() if name != "unit"},
        {**plain, "unit": None},
        {**plain, "touches": [{"what": "x"}]},
        {**plain, "events": [{"type": "gaussian"}]},
        [],
    ):
        with pytest.raises(PrivacyError):
            PrivacyRecord.from_plain(damaged)  # type: ignore[arg-type]


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no checkpoint at"):
        export_checkpoint(tmp_path / "absent.ckpt", tmp_path / "b")
    (tmp_path / "rubbish.ckpt").write_bytes(b"rubbish")
    with pytest.raises(ModelError, match="not a checkpoint"):
        export_checkpoint(tmp_path / "rubbish.ckpt", tmp_path / "b", not_private=True)
    with pytest.raises(ModelError, match="has no model yet"):
        release(WordModels(), tmp_path / "b", not_private=True)
    assert not (tmp_path / "b").exists()


def test_a_real_run_is_exported(
    voices: SpeechDataModule, trainer: Callable[..., lightning.Trainer], tmp_path: Path
) -> None:
    run = trainer(max_epochs=1)
    module = WordModels(states=3, covariance="diagonal")
    run.fit(module, datamodule=voices)
    run.save_checkpoint(tmp_path / "run.ckpt")
    bundle = export_checkpoint(tmp_path / "run.ckpt", tmp_path / "bundle", not_private=True)
    batch = next(iter(voices.test_dataloader()))
    torch.testing.assert_close(
        bundle.model(batch["features"], batch["lengths"]), module(batch["features"], batch["lengths"])
    )
    in_hand = release(module, tmp_path / "in_hand", not_private=True)
    assert in_hand.fingerprint == bundle.fingerprint


def test_a_module_in_hand_knows_what_its_hook_spent(
    voices: SpeechDataModule, trainer: Callable[..., lightning.Trainer], tmp_path: Path
) -> None:
    run = trainer(max_epochs=1, callbacks=[PrivacyHook(epsilon=4.0, delta=1e-5)])
    module = WordModels(states=3, covariance="diagonal", start="public")
    run.fit(module, datamodule=voices)
    run.save_checkpoint(tmp_path / "run.ckpt")
    bundle = release(module, tmp_path / "in_hand")
    assert bundle.statement.guarantee.epsilon == pytest.approx(4.0, rel=1e-3)
    assert export_checkpoint(tmp_path / "run.ckpt", tmp_path / "exported").fingerprint == bundle.fingerprint
    with pytest.raises(BundleError, match="leave --not-private out"):
        release(module, tmp_path / "plain", not_private=True)
