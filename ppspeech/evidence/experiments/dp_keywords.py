"""Words of AudioMNIST with differential privacy: accuracy on unseen people against epsilon, by utterance and speaker.

Fixed in advance: speakers 01-48 train, 49-60 test, delta = 1e-5, add_remove. The model is a bank of ten hidden Markov
models by private Baum-Welch, started from speech that counts as public here: the built-in voices and FSDD. Iterations
and bounds were chosen on those two corpora (one as the public, the other as the private one); that twelve states beat
eight was also seen on a split of the training speakers, a look that the epsilon stated does not cover.
The start already knows the words: its accuracy without any private speech is a figure of its own, and what privacy
leaves to learn is what the curves show beyond it.

Needs the corpora audiomnist and fsdd; --quick takes about 25 s.
"""

import copy
import math
from dataclasses import replace
from pathlib import Path

from ppspeech.audio import MfccConfig
from ppspeech.data import load_corpus
from ppspeech.data.corpora import DIGIT_WORDS
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.spoken import Spoken
from ppspeech.figures import Figure
from ppspeech.models.hmm import HiddenMarkovModel, baum_welch, by_length
from ppspeech.pictures import blank, save
from ppspeech.privacy import Relation
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.mechanisms import StatisticsRelease, UnitSums
from ppspeech.training import POOLED, public_bank
from ppspeech.training.private import hmm_moments, maximize_hmm_

TRAINING = 48
DELTA = 1e-5
FRONT_END = MfccConfig(vad_db=30.0, vad_hangover=3)
PUBLIC = ("synthetic", "fsdd")
RELEASES = {
    "utterance": StatisticsRelease(1.0, DELTA, iterations=3, emission_norm=1.5),
    "speaker": StatisticsRelease(
        1.0, DELTA, iterations=1, relation=Relation("speaker", "add_remove"), emission_norm=0.6, transition_norm=0.1
    ),
}
BATCH_FRAMES = 16_384
VOICES_ONLY = "started from the built-in voices alone: no person's speech is taken for public"


@EXPERIMENTS.register("dp-keywords")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Save `dp_keywords.png` in `folder`; `quick`: 8 states instead of 12, two epsilons and one run each."""
    states, repeats = (8, 1) if quick else (12, 3)
    epsilons = (1.0, 4.0) if quick else (0.5, 1.0, 2.0, 4.0, 8.0)
    training, test = _parts()
    start = public_bank(DIGIT_WORDS, FRONT_END, states, PUBLIC)
    reference = copy.deepcopy(start)
    baum_welch(reference, *training.labeled, 3, POOLED)
    setting = f"{states} states, {len(training.words):,} utterances of {TRAINING} people, tested on 12 others"
    figures = [
        Figure("dp_keywords.public.accuracy", _accuracy(start, test), note="the public start, no private speech"),
        Figure("dp_keywords.nonprivate.accuracy", _accuracy(reference, test), note="same start and model, no noise"),
    ]
    curves: dict[str, list[list[float]]] = {}
    for unit, release in RELEASES.items():
        first = _sums(start, training, release)
        for epsilon in epsilons:
            spending = replace(release, epsilon=epsilon)
            found = [_accuracy(_train(start, training, spending, first), test) for _ in range(repeats)]
            curves.setdefault(unit, []).append(found)
            note = f"{setting}; {_statement(spending)}; mean of {repeats} runs, {min(found):.4f}..{max(found):.4f}"
            figures.append(Figure(f"dp_keywords.{unit}.eps{epsilon:g}.accuracy", math.fsum(found) / repeats, note=note))
    voices = public_bank(DIGIT_WORDS, FRONT_END, states)
    figures.append(Figure("dp_keywords.voices_only.public.accuracy", _accuracy(voices, test), note=VOICES_ONLY))
    first = _sums(voices, training, RELEASES["utterance"])
    for epsilon in (1.0, 4.0):
        spending = replace(RELEASES["utterance"], epsilon=epsilon)
        once = _accuracy(_train(voices, training, spending, first), test)
        name = f"dp_keywords.voices_only.utterance.eps{epsilon:g}.accuracy"
        figures.append(Figure(name, once, note=f"{VOICES_ONLY}; {_statement(spending)}"))
    _plot(epsilons, curves, figures[0].value, figures[1].value, folder / "dp_keywords.png")
    return figures


def _parts() -> tuple[Spoken, Spoken]:
    """The first 48 people, and the other 12."""
    whole = Spoken.of(load_corpus("audiomnist"), FRONT_END, DIGIT_WORDS)
    known = whole.speakers < TRAINING
    return whole.where(known), whole.where(~known)


def _sums(bank: HiddenMarkovModel, part: Spoken, release: StatisticsRelease) -> UnitSums:
    """The E-step: what the units contribute under this bank."""
    sums = UnitSums(release, TRAINING)
    for features, lengths, words, speakers in by_length(*part.labeled, part.speakers, batch_frames=BATCH_FRAMES):
        sums.add(hmm_moments(bank, features, lengths, words), lengths, speakers)
    return sums


def _train(start: HiddenMarkovModel, part: Spoken, release: StatisticsRelease, first: UnitSums) -> HiddenMarkovModel:
    """Private Baum-Welch; the first sums depend on the public start alone and are shared by all runs, the noise not."""
    bank = copy.deepcopy(start)
    for iteration in range(release.iterations):
        sums = first.with_release(release) if iteration == 0 else _sums(bank, part, release)
        maximize_hmm_(bank, sums.released(), release)
    return bank


def _statement(release: StatisticsRelease) -> str:
    account = Accountant(release.relation)
    account.compose(release.mechanism.event, release.iterations)
    return str(account.guarantee(release.delta))


def _accuracy(bank: HiddenMarkovModel, part: Spoken) -> float:
    return part.accuracy(part.scores(bank))


def _plot(
    epsilons: tuple[float, ...], curves: dict[str, list[list[float]]], public: float, reference: float, path: Path
) -> None:
    picture = blank(6, 4)
    axes = picture.subplots()
    for unit, runs in curves.items():
        mean = [math.fsum(found) / len(found) for found in runs]
        spread = [
            [m - min(f) for m, f in zip(mean, runs, strict=True)],
            [max(f) - m for m, f in zip(mean, runs, strict=True)],
        ]
        axes.errorbar(epsilons, mean, yerr=spread, marker="o", capsize=3, label=f"one {unit} protected")
    axes.axhline(reference, color="black", linestyle="--", label="no privacy")
    axes.axhline(public, color="gray", linestyle=":", label="public start")
    axes.set(xscale="log", xlabel="epsilon (delta = 1e-5)", ylabel="share of words right")
    axes.set_title("AudioMNIST, 12 unseen people")
    axes.legend()
    save(picture, path)
