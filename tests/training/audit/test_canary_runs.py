"""Canaries through whole recipes: they use up the bound, an attacker finds them without noise, and not with it."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ppspeech.audio import MfccConfig
from ppspeech.bundle import load_bundle
from ppspeech.errors import PrivacyError
from ppspeech.privacy.mechanisms import StatisticsRelease, UnitSums
from ppspeech.training import (
    LargeMarginClassifier,
    PrivacyHook,
    SpeakerUbm,
    SpeechModule,
    WordModels,
    export_checkpoint,
    public_bank,
    run_recipe,
)
from ppspeech.training.audit import Canaries, CanaryRun, audit_joint_words, run_with_canaries
from ppspeech.training.private import hmm_moments
from ppspeech.training.together import WordTraining

WORDS, MFCC = ("one", "two", "zero"), MfccConfig()
LOUD = 500.0  # an epsilon at which there is next to no noise


def words(**settings: Any) -> SpeechModule:
    return WordModels(states=3, covariance="diagonal", start="public", **settings)


RECIPES: list[tuple[str, Callable[[], SpeechModule], dict[str, Any]]] = [
    ("words", words, {"unit": "utterance"}),
    ("words by people", words, {"unit": "speaker", "emission_norm": 0.6}),
    ("shifts", words, {"unit": "speaker"}),
    ("background", lambda: SpeakerUbm(components=8, start="public"), {"unit": "utterance"}),
    ("gradients", lambda: words(method="gradient"), {"unit": "utterance", "sampling": 0.5, "expected_units": 15.0}),
    (
        "gradients by people",
        lambda: words(method="gradient"),
        {"unit": "speaker", "sampling": 0.5, "expected_units": 15.0},
    ),
    ("classifier", lambda: LargeMarginClassifier(label="word"), {"unit": "utterance"}),
]


QUICK = ("words", "shifts")


def ran(module: SpeechModule, block: dict[str, Any], epsilon: float, canaries: int = 60) -> CanaryRun:
    module.build_(() if module.label is None else WORDS, MFCC)
    epochs = 4 if "sampling" in block else 1
    return run_with_canaries(module, PrivacyHook(epsilon=epsilon, **block), epochs, canaries)


def apart(scores: np.ndarray, included: np.ndarray) -> float:
    """The share of pairs, one in and one out, that the scores put in the right order."""
    return float((scores[included][:, None] > scores[~included][None]).mean())


@pytest.mark.parametrize(
    ("name", "made", "block"),
    [pytest.param(*each, marks=() if each[0] in QUICK else pytest.mark.slow, id=each[0]) for each in RECIPES],
)
def test_an_attacker_tells_who_was_there_from_next_to_no_noise(
    name: str, made: Callable[[], SpeechModule], block: dict[str, Any]
) -> None:
    by_gradients = "gradients" in name
    count = (
        120 if by_gradients else 60
    )  # sampled gradients tell less: about 0.80, and 0.50 +- 0.05 where nothing is told
    found = ran(made(), block, LOUD, count)
    assert found.guarantee.relation.unit == block["unit"]
    assert len(found.black) == len(found.included) == count
    if name == "classifier":
        assert found.white is None
        assert apart(found.black, found.included) > 0.6
    else:
        assert found.white is not None
        assert apart(found.white, found.included) > (0.65 if by_gradients else 0.9)


def test_with_noise_nothing_is_refuted_and_every_attacker_reports() -> None:
    found = ran(words(), {"unit": "utterance"}, 1.0)
    reports = found.reports("words")
    assert {(r.mechanism, r.method) for r in reports} == {
        (f"words.{box}", method) for box in ("white", "black") for method in ("one_run", "one_run_gaussian")
    }
    assert all(report.verdict == "no violation found" for report in reports)
    assert all(report.eps_stated == found.guarantee.epsilon for report in reports)


@pytest.mark.parametrize(("unit", "said", "norm"), [("utterance", 1, 1.5), ("speaker", 3, 0.6)])
def test_canaries_use_up_the_bound_and_look_apart(unit: Any, said: int, norm: float) -> None:
    from ppspeech.privacy import Relation

    bank = public_bank(WORDS, MFCC, 4)
    release = StatisticsRelease(1.0, relation=Relation(unit, "add_remove"), emission_norm=norm)
    canaries = Canaries.around(bank, WORDS, 12, said)
    batch = canaries.batch("word")
    vectors = []
    for who in range(12):
        own, sums = canaries.owners == who, UnitSums(release, 1)
        moments = hmm_moments(bank, batch["features"][own], batch["lengths"][own], batch["word"][own])
        sums.add(moments, batch["lengths"][own], torch.zeros(int(own.sum()), dtype=torch.long))
        vectors.append(sums.total())
    every = torch.stack(vectors).double()
    assert float(every.norm(dim=1).min()) > 0.9 * math.sqrt(1 - release.transition_share)
    alike = torch.nn.functional.normalize(every, dim=1)
    assert float((alike @ alike.mT - torch.eye(12)).abs().max()) < 0.5


def test_training_together_is_attacked_by_the_worst_coalition() -> None:
    loud = audit_joint_words(WordTraining(epsilon=200.0, words=WORDS, states=3, rounds=1, unit="utterance"), 40)
    assert loud.white is not None
    assert apart(loud.white, loud.included) > 0.9
    with pytest.raises(PrivacyError, match="utterances"):
        audit_joint_words(WordTraining(epsilon=1.0, words=WORDS, states=3), 40)


def test_few_canaries_are_refused() -> None:
    with pytest.raises(PrivacyError, match="at least 20"):
        ran(words(), {"unit": "utterance"}, 1.0, canaries=5)


RECIPE = """
model: {class_path: WordModels, init_args: {states: 3, covariance: diagonal, start: public}}
privacy: {unit: utterance, epsilon: 4.0, delta: 1.0e-5}
data:
  class_path: SpeechDataModule
  init_args: {corpus: synthetic, options: {words: [zero, one], speakers: 4, takes: 2, seed: 1}, test: 0.25}
trainer: {max_epochs: 1, accelerator: cpu, enable_progress_bar: false, logger: false, default_root_dir: ROOT}
"""


def test_what_an_audit_found_leaves_with_the_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(RECIPE.replace("ROOT", json.dumps(str(tmp_path / "runs"))))
    recipe = run_recipe(["fit", "--config", str(path), "--audit", "canaries=40"])
    assert "audit.eps_stated" in capsys.readouterr().out
    saved = recipe.trainer.checkpoint_callback.best_model_path  # type: ignore[union-attr]
    export_checkpoint(saved, tmp_path / "bundle")
    bundle = load_bundle(tmp_path / "bundle")
    found = {figure.metric: figure.value for figure in bundle.metrics}
    assert found["audit.eps_stated"] == pytest.approx(4.0, rel=1e-3)
    assert found["audit.white.one_run.eps_lower"] <= 4.0
    assert not any(touch.topic == "metrics" and touch.status == "not_covered" for touch in bundle.statement.touches)
    for asked, word in (("canaries=none", "canaries=1000"), ("birds=7", "canaries=1000")):
        with pytest.raises(PrivacyError, match=word):
            run_recipe(["fit", "--config", str(path), "--audit", asked])
    with pytest.raises(PrivacyError, match="this recipe has none"):
        run_recipe(["fit", "--config", str(path), "--privacy", "null", "--audit", "canaries=40"])
