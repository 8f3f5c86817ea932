"""Spoken digits of FSDD: the official split, with and without a margin, and speakers never heard, beside hmmlearn.

Needs the corpus fsdd and hmmlearn; --quick takes about 30 s.
"""

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from ppspeech.audio import MfccConfig
from ppspeech.bundle import BundleConfig, KeywordHmmSettings, Recognizer
from ppspeech.data import Corpus, leave_one_speaker_out, load_corpus, split_official
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.spoken import Spoken, hmmlearn_like
from ppspeech.figures import Figure
from ppspeech.intervals import Mean
from ppspeech.models import (
    GaussianEmission,
    HiddenMarkovModel,
    LargeMarginHmm,
    Prior,
    baum_welch,
    flat_start_,
    left_right,
    train_large_margin,
)
from ppspeech.models.hmm import MAXIMUM_LIKELIHOOD
from ppspeech.progress import track
from ppspeech.training import Confusion

STATES = 5
PLAIN = MfccConfig.narrowband()  # 13 cepstra with derivatives, normalized over each utterance: what hmmlearn gets too
ROBUST = replace(PLAIN, vad_db=35.0, vad_hangover=2, low_hz=100.0, high_hz=3_600.0, delta_reach=3)
"""For people never heard: without the silence around words, the band edges and quick derivatives."""

SHRINKAGE = Prior(covariance=1_000.0)
"""Pull every state's covariance towards the pooled one, with the weight of 1,000 frames."""


@EXPERIMENTS.register("fsdd")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Train and test; save the confusion matrix of the official test as `fsdd.png` in `folder`.

    Ours and hmmlearn's models have the same sizes, starting point and number of iterations. For speakers never heard
    we use the front end `ROBUST` and `SHRINKAGE`; they were chosen on these six speakers, so the figure is optimistic
    by what a search over about thirty settings gains. hmmlearn is measured on both front ends.
    `quick`: a third of the recordings, no margin training, and one speaker left out instead of six.
    """
    corpus = load_corpus("fsdd")
    if quick:
        corpus = corpus.select(lambda u: u.take % 3 == 0)
    official = split_official(corpus)
    train, test = Spoken.of(official.train, PLAIN, corpus.words), Spoken.of(official.test, PLAIN, corpus.words)
    bank = train_bank(train, iterations=10)
    confusion = Confusion(corpus.words)
    scores = test.scores(bank)
    confusion.add(test.words, scores.argmax(-1))
    confusion.plot(folder / "fsdd.png", f"FSDD official test: {float(confusion.accuracy()):.2%} right")
    peer = f"hmmlearn {version('hmmlearn')}"
    sizes = f"{len(train.words):,} to train, {len(test.words):,} to test"
    note = f"{sizes}; 10 words x 5 states, full covariance, 10 iterations, 39 MFCCs"
    count = len(test.words)
    beside = (peer, _peer(train, test, 10))
    figures = [Figure.share("fsdd.hmm.accuracy", test.right(scores), count, "utterances", *beside, note=note)]
    if not quick:
        margin = LargeMarginHmm.from_hmm(train_bank(train, iterations=5), margin=1.0)
        train_large_margin(margin, *train.labeled, epochs=4)
        right, how = test.right(test.scores(margin)), "5 iterations, then 4 epochs for a margin"
        figures.append(Figure.share("fsdd.large_margin.accuracy", right, count, "utterances", note=how))
    return figures + _left_out(corpus, quick, peer)


def _left_out(corpus: Corpus, quick: bool, peer: str) -> list[Figure]:
    splits = list(leave_one_speaker_out(corpus))[: 1 if quick else 6]
    found: dict[str, list[float]] = {"ours": [], "plain": [], "theirs": [], "same": []}
    for split in track(splits, "Leaving out a speaker"):
        for config, own, other in ((ROBUST, "ours", "same"), (PLAIN, "plain", "theirs")):
            train, test = (Spoken.of(part, config, corpus.words) for part in (split.train, split.test))
            found[own].append(test.accuracy(test.scores(train_bank(train, iterations=4, prior=SHRINKAGE))))
            found[other].append(_peer(train, test, 4))
    value = {name: sum(scores) / len(scores) for name, scores in found.items()}

    def over_people(metric: str, name: str, beside: float | None, note: str) -> Figure:
        made = Figure(f"fsdd.loso.{metric}", value[name], "", None if beside is None else peer, beside, note=note)
        if len(splits) == 1:
            return made
        people = Mean.of(found[name])
        return replace(made, note=f"{note}; interval over people").between(people.low, min(people.high, 1.0))

    people = f"mean over {len(splits)} of 6 speakers, each tested by models of the other five; 4 iterations"
    search = "ours: pauses cut, 100-3600 Hz, shrunk covariances, chosen on these speakers; peer: 39 MFCCs"
    equal = "our front end for both"
    return [
        over_people("accuracy", "ours", value["theirs"], f"{people}; {search}"),
        over_people("hmmlearn_accuracy", "theirs", None, "39 MFCCs, as for the official split"),
        over_people("same_front_end.accuracy", "ours", value["same"], equal),
        over_people("plain.accuracy", "plain", value["theirs"], "both on 39 MFCCs"),
    ]


def train_bank(data: Spoken, iterations: int, prior: Prior = MAXIMUM_LIKELIHOOD) -> HiddenMarkovModel:
    """Ten words of five states, from a flat start."""
    bank = _started(data, torch.float32, prior)
    baum_welch(bank, *data.labeled, iterations, prior)
    return bank


def recognizer_of(bank: HiddenMarkovModel, words: tuple[str, ...], mfcc: MfccConfig) -> Recognizer:
    """Such models as a bundle would use them in the clear."""
    settings = KeywordHmmSettings(
        states=STATES, components=1, covariance="full", floor=1e-2, skips=0, must_finish=False
    )
    return Recognizer.of(bank, BundleConfig(settings, words, mfcc))


def _started(data: Spoken, dtype: torch.dtype, prior: Prior = MAXIMUM_LIKELIHOOD) -> HiddenMarkovModel:
    emission = GaussianEmission(10, STATES, data.features.shape[-1], floor=1e-2, dtype=dtype)
    bank = HiddenMarkovModel(left_right(STATES), emission)
    flat_start_(bank, data.features.to(dtype), data.lengths, data.words, prior)
    return bank


def _peer(train: Spoken, test: Spoken, iterations: int) -> float:
    """Accuracy of hmmlearn from the same start; its own floor and prior as it comes."""
    models = hmmlearn_like(_started(train, torch.float64), iterations, params="stmc")
    for word, model in enumerate(models):
        clips = train.clips(word)
        model.fit(np.concatenate(clips), [len(clip) for clip in clips])
    return test.accuracy(torch.tensor([[model.score(clip) for model in models] for clip in test.clips()]))
