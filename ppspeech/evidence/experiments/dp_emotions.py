"""Emotions of EmoDB with differential privacy: a task that no public speech of this package knows anything about.

A sentence is 52 numbers (mean, maximum, minimum and deviation of 13 cepstra), made white by LibriSpeech's, which is
public and says nothing about emotions. The model is one Gaussian an emotion with a common variance; its means are
learned by the release of clipped statistics that word models use, in one iteration from a start in which all emotions
are alike. Everyone is tested by models of the eight or nine other people: ten people in five folds. One utterance is
protected, delta = 1e-5, add_remove; for a whole person ten people are too few to learn anything from.
Accuracy is balanced: the mean over seven emotions of the share that is recognized. Guessing, and one answer to all,
are right 1/7 of the time. Clip and weights are those of the recipe for words; nothing was tuned on EmoDB.

Needs the corpora emodb and librispeech.
"""

import copy
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import Frames, MfccConfig, utterance_statistics
from ppspeech.data import Corpus, FeatureStore, load_corpus, numbered
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.figures import Figure
from ppspeech.intervals import SHARE, Mean
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, left_right
from ppspeech.privacy.mechanisms import StatisticsRelease, UnitSums
from ppspeech.training.private import hmm_moments, maximize_hmm_

FOLDS = 5
DELTA = 1e-5
DEVIATIONS = 3.0  # numbers beyond so many public deviations are cut off: outliers of another corpus
LEAST = 0.05  # of the largest public variance: directions below it are not blown up
NO_NOISE = 1e3  # an epsilon at which the same release has next to no noise


@EXPERIMENTS.register("dp-emotions")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001
    """Quick: one draw of the noise instead of five."""
    corpus, public = load_corpus("emodb"), _statistics(load_corpus("librispeech"))
    x = whitened(_statistics(corpus), public)
    _, emotions = numbered([str(utterance.emotion) for utterance in corpus])
    _, people = numbered([utterance.speaker for utterance in corpus])
    draws = 1 if quick else 5
    cases = {
        "start": (None, 1),
        "eps1": (1.0, draws),
        "eps4": (4.0, draws),
        "eps8": (8.0, draws),
        "nonprivate": (NO_NOISE, 1),
    }
    figures = []
    for name, (epsilon, times) in cases.items():
        heard = torch.stack([_recognized(x, emotions, people, epsilon) for _ in range(times)])
        figures += _figures(name, heard, emotions, people)
    return figures


def _statistics(corpus: Corpus) -> Tensor:
    """Of every utterance, `(utterances, 52)`."""
    frames = FeatureStore(MfccConfig.hamm2015()).load(corpus.utterances)
    lengths = torch.tensor([len(each) for each in frames])
    return utterance_statistics(Frames(pad_sequence(frames, batch_first=True), lengths)).double()


def whitened(x: Tensor, public: Tensor) -> Tensor:
    """Mean 0 and variance 1 in all directions of public speech, cut off far outside."""
    values, directions = torch.linalg.eigh(public.T.cov())
    scaled = (x - public.mean(0)) @ directions / values.clamp_min(LEAST * float(values.median())).sqrt()
    bounded: Tensor = scaled.clamp(-DEVIATIONS, DEVIATIONS).float()
    return bounded


def _recognized(x: Tensor, emotions: Tensor, people: Tensor, epsilon: float | None) -> Tensor:
    """What is heard in each utterance by a model of other people, `(utterances,)`."""
    heard = torch.zeros_like(emotions)
    for fold in range(FOLDS):
        tested = people % FOLDS == fold
        bank = all_alike(int(emotions.max()) + 1, x.shape[1])
        if epsilon is not None:
            release = StatisticsRelease(epsilon, DELTA, iterations=1, transition_share=0.0)
            maximize_hmm_(bank, said_of(bank, x[~tested], emotions[~tested], release).released(), release)
        with torch.no_grad():
            scores = bank(x[tested].unsqueeze(1), torch.ones(int(tested.sum()), dtype=torch.long))
        heard[tested] = scores.argmax(-1)
    return heard


def all_alike(emotions: int, features: int) -> HiddenMarkovModel:
    """All alike: white, about zero."""
    bank = HiddenMarkovModel(left_right(1), GaussianEmission(emotions, 1, features, covariance="diagonal"))
    assert isinstance(bank.emission, GaussianEmission)
    mean = torch.zeros_like(bank.emission.gaussians.mean)
    bank.emission.gaussians.set_moments_(mean, torch.ones_like(mean))
    return bank


def said_of(bank: HiddenMarkovModel, x: Tensor, emotions: Tensor, release: StatisticsRelease) -> UnitSums:
    """What utterances `(n, features)` say of their emotion's model, clipped one by one."""
    sums, one = UnitSums(release, 1), torch.ones(len(x), dtype=torch.long)
    sums.add(hmm_moments(copy.deepcopy(bank), x.unsqueeze(1), one, emotions), one, 0 * one)
    return sums


def _figures(name: str, heard: Tensor, emotions: Tensor, people: Tensor) -> list[Figure]:
    """Balanced accuracy with an interval over people, and whether one answer is given to everything."""
    right, classes = (heard == emotions).double(), int(emotions.max()) + 1
    balanced = torch.stack([right[:, emotions == each].mean() for each in range(classes)]).mean()
    weights = torch.bincount(emotions).double().reciprocal()[emotions] * len(emotions) / classes
    by_person = torch.stack([(right * weights)[:, people == who].mean() for who in sorted(set(people.tolist()))])
    most = max(float((heard == each).double().mean()) for each in range(classes))
    said = sum(bool((heard == each).any(0).sum() >= (emotions == each).sum() / 4) for each in range(classes))
    note = f"10 people by models of others, mean of {len(heard)} runs; interval over people; chance {1 / classes:.4f}"
    mean = Mean(float(balanced), Mean.of(by_person.tolist()).half_width)
    return [
        Figure.mean(f"dp_emotions.{name}.balanced_accuracy", mean, note=note, limits=SHARE),
        Figure(
            f"dp_emotions.{name}.largest_answer",
            most,
            note=f"share of the commonest answer; {said} of {classes} are given",
        ),
    ]
