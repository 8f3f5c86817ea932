"""Every private recipe attacked from end to end: what it states against what an attacker can show.

A row is one recipe at its own parameters, run on canaries and public speech alone: one run with canaries (Steinke, Nasr
and Jagielski 2023, by guesses; Agrawal et al. 2026, by how far scores lie apart), seen by who sees every release (white
box) and by who sees the model (black box); and everything it books, released many times by the code that releases it.
The largest of the bounds is the row's. Bounds of all kinds hold with 99.9 % each time; a bound above what is stated
would refute it, and one below proves nothing. Beside it, membership inference on word models as a user meets them:
which of a known speaker's recordings were in the training set, at 0.1 % and 1 % false accusations.

Needs the corpus audiomnist.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ppspeech.audio import MfccConfig
from ppspeech.data import load_corpus
from ppspeech.data.corpora import DIGIT_WORDS
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.spoken import Spoken
from ppspeech.figures import Figure
from ppspeech.models.hmm import HiddenMarkovModel, baum_welch, by_length
from ppspeech.privacy.audit import CONFIDENCE, AuditReport, audit_account, found_at
from ppspeech.privacy.mechanisms import StatisticsRelease, UnitSums
from ppspeech.training import (
    POOLED,
    LargeMarginClassifier,
    PrivacyHook,
    SpeakerUbm,
    SpeechModule,
    WordModels,
    public_bank,
)
from ppspeech.training.audit import audit_joint_words, audit_recipe
from ppspeech.training.private import hmm_moments, maximize_hmm_
from ppspeech.training.together import WordTraining

WORDS = tuple(sorted(DIGIT_WORDS[:4]))
RATES = {"0_1_percent": 0.001, "1_percent": 0.01}
FRONT_END = MfccConfig(vad_db=30.0, vad_hangover=3)


@dataclass(frozen=True)
class Case:
    """A recipe: its model, its privacy block and its epochs."""

    module: Callable[[], SpeechModule]
    privacy: dict[str, object]
    epochs: int
    mfcc: MfccConfig = FRONT_END


def _words(**settings: object) -> Callable[[], SpeechModule]:
    return lambda: WordModels(covariance="diagonal", start="public", **settings)  # type: ignore[arg-type]


def _ubm() -> SpeechModule:
    return SpeakerUbm(components=16, start="public")


BY_UTTERANCE = {"unit": "utterance", "epsilon": 4.0, "delta": 1e-5}
BY_SPEAKER = {"unit": "speaker", "epsilon": 4.0, "delta": 1e-5}
STEPS = {"sampling": 0.2, "clip": 0.5, "expected_units": 100.0}
CASES = {
    "keywords_utterance": Case(_words(states=8), BY_UTTERANCE, 3),
    "keywords_speaker": Case(_words(states=8), BY_SPEAKER, 1),
    "ubm_utterance": Case(_ubm, BY_UTTERANCE, 3),
    "ubm_speaker": Case(_ubm, BY_SPEAKER, 3),
    "dp_sgd_utterance": Case(_words(states=3, method="gradient"), BY_UTTERANCE | STEPS, 4),
    "dp_sgd_speaker": Case(_words(states=3, method="gradient"), BY_SPEAKER | STEPS, 4),
    "large_margin_utterance": Case(lambda: LargeMarginClassifier(label="word"), BY_UTTERANCE, 1, MfccConfig.hamm2015()),
}
JOINT = WordTraining(epsilon=4.0, words=WORDS, states=8, unit="utterance")


@EXPERIMENTS.register("audit")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001
    """Quick: 200 canaries and 10,000 draws in the place of 1,000 and 100,000, and no membership inference."""
    canaries, draws = (200, 10_000) if quick else (1_000, 100_000)
    figures = []
    for name, case in CASES.items():
        module, hook = case.module(), PrivacyHook(**case.privacy)  # type: ignore[arg-type]
        module.build_(() if module.label is None else WORDS, case.mfcc)
        figures += row(name, audit_recipe(name, module, hook, case.epochs, canaries=canaries, runs=draws))
    joint = audit_joint_words(JOINT, canaries)
    booked = audit_account(joint.account.events, joint.guarantee, draws, confidence=CONFIDENCE)
    figures += row("joint_utterance", [*joint.reports("joint"), *booked])
    return figures if quick else [*figures, *membership()]


def row(name: str, reports: list[AuditReport]) -> list[Figure]:
    """What a recipe states, the largest bound, and the largest of each way to look."""
    best = max(reports, key=lambda report: report.eps_lower)
    said = f"{best.relation}, delta {best.delta:g}"
    found = {"many_draws": [r for r in reports if r.method == "sampling"]}
    for box in ("white", "black"):
        found[f"{box}_box"] = [r for r in reports if r.mechanism.endswith(f".{box}")]
    figures = [
        Figure(f"audit.{name}.eps_stated", best.eps_stated, note=said),
        Figure(f"audit.{name}.eps_lower", best.eps_lower, note=f"{best.method} of {best.mechanism}: {best.verdict}"),
    ]
    for way, seen in found.items():
        if seen:
            top = max(seen, key=lambda report: report.eps_lower)
            how = f"{top.method}, confidence {top.confidence:.6g}"
            figures.append(Figure(f"audit.{name}.{way}.eps_lower", top.eps_lower, note=how))
    return figures


def membership(states: int = 8) -> list[Figure]:
    """Word models of everyone's first four takes; the other four are of the same people and were not heard."""
    corpus = load_corpus("audiomnist")
    whole = Spoken.of(corpus, FRONT_END, DIGIT_WORDS)
    heard = torch.tensor([utterance.take < 4 for utterance in corpus])
    start = public_bank(DIGIT_WORDS, FRONT_END, states)
    members = whole.where(heard)
    plain = copy.deepcopy(start)
    baum_welch(plain, *members.labeled, 10, POOLED)
    figures = []
    for name, bank in (("plain", plain), ("eps4", _private(start, members, StatisticsRelease(4.0)))):
        gain = _own(bank, whole) - _own(start, whole)
        for rate, allowed in RATES.items():
            found, count = found_at(gain[heard].numpy(), gain[~heard].numpy(), allowed), int(heard.sum())
            sizes = f"{count:,} recordings in, {int((~heard).sum()):,} of the same people out"
            note = f"{sizes}; chance finds {allowed:g}"
            metric = f"membership.words.{name}.tpr_at_{rate}"
            figures.append(Figure.share(metric, round(found * count), count, "recordings in", note=note))
    return figures


def _private(start: HiddenMarkovModel, part: Spoken, release: StatisticsRelease) -> HiddenMarkovModel:
    bank = copy.deepcopy(start)
    for _ in range(release.iterations):
        sums = UnitSums(release, int(part.speakers.max()) + 1)
        for features, lengths, words, speakers in by_length(*part.labeled, part.speakers):
            sums.add(hmm_moments(bank, features, lengths, words), lengths, speakers)
        maximize_hmm_(bank, sums.released(), release)
    return bank


def _own(bank: HiddenMarkovModel, part: Spoken) -> Tensor:
    """How well each recording's own word explains a frame of it, `(utterances,)`."""
    own = part.scores(bank).gather(1, part.words.unsqueeze(1)).squeeze(1)
    return own / part.lengths
