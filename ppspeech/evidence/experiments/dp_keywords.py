"""Words of AudioMNIST with differential privacy: accuracy on unseen people against epsilon, by utterance and speaker.

Fixed in advance: speakers 01-48 train, 49-60 test, delta = 1e-5, add_remove. The model is a bank of ten hidden Markov
models, started from speech that counts as public here: the built-in voices and FSDD, or the voices alone. One utterance
is protected by private Baum-Welch, one person by the release of people's shifts (`ppspeech.training.private.shifts`).
Iterations, bounds and coordinates were chosen on those two corpora (one as the public, the other as the private one);
that twelve states beat eight was also seen on a split of the training speakers, a look that the epsilon stated does not
cover. That first moments alone serve a person best was seen on speakers 49-60 too; the coordinates of shifts and their
clip come from public speech alone, and a second division, speakers 13-60 and 01-12, has test people of no comparison.
The start already knows the words: its accuracy without any private speech is a figure of its own, and what privacy
leaves to learn is what the curves show beyond it. Intervals are of 95 % over the twelve people.

Needs the corpora audiomnist and fsdd; --quick takes about 25 s.
"""

import copy
import math
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ppspeech.audio import MfccConfig
from ppspeech.data import load_corpus
from ppspeech.data.corpora import DIGIT_WORDS
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.spoken import Spoken
from ppspeech.figures import Figure
from ppspeech.intervals import SHARE, Mean
from ppspeech.models.hmm import HiddenMarkovModel, baum_welch, by_length
from ppspeech.pictures import blank, save
from ppspeech.privacy import Guarantee
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.mechanisms import ShiftRelease, StatisticsRelease, UnitSums
from ppspeech.training import POOLED, public_bank, public_utterances
from ppspeech.training.private import PersonSums, ShiftSpace, hmm_moments, maximize_hmm_

TESTED = 12
DELTA = 1e-5
FRONT_END = MfccConfig(vad_db=30.0, vad_hangover=3)
BOTH, VOICES = ("synthetic", "fsdd"), ("synthetic",)
UTTERANCE = StatisticsRelease(1.0, DELTA, iterations=3, emission_norm=1.5)
BATCH_FRAMES = 16_384
VOICES_ONLY = "started from the built-in voices alone: no person's speech is taken for public"


@dataclass(frozen=True)
class Start:
    """A public bank, and what the training people say about it: computed once, as no noise is in it yet."""

    bank: HiddenMarkovModel
    space: ShiftSpace
    utterances: UnitSums
    people: PersonSums

    @classmethod
    def of(cls, corpora: tuple[str, ...], states: int, training: Spoken) -> "Start":
        """From these public corpora."""
        bank = public_bank(DIGIT_WORDS, FRONT_END, states, corpora)
        public = PersonSums.of(bank, *public_utterances(DIGIT_WORDS, FRONT_END, corpora))
        space = ShiftSpace.around(bank, public, FRONT_END.deltas + 1)
        people = PersonSums.of(bank, *training.labeled, training.speakers)
        return cls(bank, space, _sums(bank, training, UTTERANCE), people)

    def by_utterance(self, training: Spoken, epsilon: float) -> tuple[HiddenMarkovModel, Guarantee]:
        """Private Baum-Welch: fresh noise every time, the first sums of all runs are the same."""
        release, bank = replace(UTTERANCE, epsilon=epsilon), copy.deepcopy(self.bank)
        for iteration in range(release.iterations):
            sums = self.utterances.with_release(release) if iteration == 0 else _sums(bank, training, release)
            maximize_hmm_(bank, sums.released(), release)
        return bank, _stated(release)

    def by_person(self, epsilon: float) -> tuple[HiddenMarkovModel, Guarantee]:
        """One release of people's shifts."""
        release, bank = ShiftRelease(epsilon, DELTA, self.space.dimension, self.space.clip), copy.deepcopy(self.bank)
        vectors = self.space.vectors(self.people)[self.people.count.sum((1, 2)) > 0]
        self.space.move_(bank, *release.means(release.release(vectors).value))
        return bank, _stated(release)


@EXPERIMENTS.register("dp-keywords")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Save `dp_keywords.png` in `folder`; `quick`: 8 states instead of 12, two epsilons and one run each."""
    states, repeats = (8, 1) if quick else (12, 3)
    epsilons = (1.0, 4.0) if quick else (0.5, 1.0, 2.0, 4.0, 8.0)
    training, test = _parts(slice(48, 60))
    setting = f"{states} states, {len(training.words):,} utterances of 48 people, tested on {TESTED} others"
    figures: list[Figure] = []
    curves: dict[str, list[list[float]]] = {}
    for corpora in (BOTH, VOICES):
        alone, start = corpora == VOICES, Start.of(corpora, states, training)
        where = f"{setting}; {VOICES_ONLY}" if alone else setting
        before, between = ("voices_only.", "voices.") if alone else ("", "")
        figures.append(_figure(f"{before}public", [start.bank], test, "the public start, no private speech"))
        if not alone:
            reference = copy.deepcopy(start.bank)
            baum_welch(reference, *training.labeled, 3, POOLED)
            figures.append(_figure("nonprivate", [reference], test, "same start and model, no noise"))
        for epsilon in (1.0, 4.0) if alone else epsilons:
            by_utterance = [start.by_utterance(training, epsilon) for _ in range(repeats)]
            by_person = [start.by_person(epsilon) for _ in range(1 if quick else 10)]
            names = f"{before}utterance.eps{epsilon:g}", f"speaker.{between}eps{epsilon:g}"
            for unit, name, made in zip(("utterance", "speaker"), names, (by_utterance, by_person), strict=True):
                banks = [bank for bank, _ in made]
                figures.append(_figure(name, banks, test, f"{where}; {made[0][1]}"))
                if not alone:
                    curves.setdefault(unit, []).append([_accuracy(bank, test) for bank in banks])
    if not quick:
        figures += _confirmed(states)
    _plot(epsilons, curves, figures[0].value, figures[1].value, folder / "dp_keywords.png")
    return figures


def _confirmed(states: int) -> list[Figure]:
    """The other division, by person, from the voices alone: its test people were not looked at before."""
    training, test = _parts(slice(0, 12))
    start, where = Start.of(VOICES, states, training), "speakers 13-60 train, 01-12 test"
    figures = [_figure("voices_only.confirmed.public", [start.bank], test, where)]
    for epsilon in (1.0, 4.0):
        banks = [start.by_person(epsilon)[0] for _ in range(10)]
        figures.append(_figure(f"speaker.voices.confirmed.eps{epsilon:g}", banks, test, f"{where}; {VOICES_ONLY}"))
    return figures


def _figure(name: str, banks: list[HiddenMarkovModel], test: Spoken, note: str) -> Figure:
    """The mean accuracy over banks, with an interval over people."""
    right = torch.stack([(test.scores(bank).argmax(-1) == test.words).double() for bank in banks])
    by_person = torch.stack([right[:, test.speakers == who].mean() for who in sorted(set(test.speakers.tolist()))])
    reach = Mean.of(by_person.tolist()).half_width
    draws = right.mean(1)
    spread = (
        f"; mean of {len(banks)} runs, {float(draws.min()):.4f}..{float(draws.max()):.4f}" if len(banks) > 1 else ""
    )
    mean, over = Mean(float(right.mean()), reach), f"{note}{spread}; interval over people"
    return Figure.mean(f"dp_keywords.{name}.accuracy", mean, note=over, limits=SHARE)


def _parts(tested: slice) -> tuple[Spoken, Spoken]:
    """Everyone else, and the people tested, by their place in the corpus."""
    whole = Spoken.of(load_corpus("audiomnist"), FRONT_END, DIGIT_WORDS)
    held = (whole.speakers >= tested.start) & (whole.speakers < tested.stop)
    return whole.where(~held), whole.where(held)


def _sums(bank: HiddenMarkovModel, part: Spoken, release: StatisticsRelease) -> UnitSums:
    """The E-step: what the units contribute under this bank."""
    sums = UnitSums(release, int(part.speakers.max()) + 1)
    for features, lengths, words, speakers in by_length(*part.labeled, part.speakers, batch_frames=BATCH_FRAMES):
        sums.add(hmm_moments(bank, features, lengths, words), lengths, speakers)
    return sums


def _stated(release: StatisticsRelease | ShiftRelease) -> Guarantee:
    account = Accountant(release.relation)
    account.compose(release.event, release.iterations)
    return account.guarantee(release.delta)


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
