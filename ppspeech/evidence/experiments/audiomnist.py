"""Spoken digits of AudioMNIST: forty people to train on, twenty never heard to test on.

Needs the corpus audiomnist; --quick takes about 15 s.
"""

from pathlib import Path

from ppspeech.audio import MfccConfig
from ppspeech.data import load_corpus, split_by_speaker
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.spoken import Spoken
from ppspeech.figures import Figure
from ppspeech.intervals import Mean
from ppspeech.models import GaussianEmission, HiddenMarkovModel, Prior, baum_welch, flat_start_, left_right
from ppspeech.training import Confusion

TESTED = 20  # the last people of the corpus, 41 to 60, fixed in advance


@EXPERIMENTS.register("audiomnist")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Train ten word models of five states and recognize people never heard; `quick`: ten to train on, not forty."""
    corpus = load_corpus("audiomnist")
    split = split_by_speaker(corpus, test=corpus.speakers[-TESTED:])
    kept = set(split.train.speakers[: 10 if quick else None])
    train = Spoken.of(split.train.select(lambda u: u.speaker in kept), MfccConfig.wideband(), corpus.words)
    test = Spoken.of(split.test, MfccConfig.wideband(), corpus.words)
    prior = Prior(covariance=1_000.0)
    bank = HiddenMarkovModel(
        left_right(5), GaussianEmission(len(corpus.words), 5, train.features.shape[-1], floor=1e-2)
    )
    flat_start_(bank, *train.labeled, prior)
    baum_welch(bank, *train.labeled, iterations=4, prior=prior)
    confusion = Confusion(corpus.words)
    scores = test.scores(bank)
    confusion.add(test.words, scores.argmax(-1))
    confusion.plot(folder / "audiomnist.png")
    note = (
        f"{len(train.words):,} utterances of {len(kept)} people to train, {len(test.words):,} of {TESTED} others to "
        "test; 5 states, full covariance shrunk with the weight of 1,000 frames, 4 iterations; interval over people"
    )
    people = Mean.of(test.by_person(scores))
    figure = Figure("audiomnist.unseen.accuracy", test.accuracy(scores), note=note)
    return [figure.between(people.low, min(people.high, 1.0))]
