"""Classifiers of scikit-learn that know the word, with settings chosen in halves of the training clips."""

import torch
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from torch import Tensor

from ppspeech.filters.attack.attackers.attacker import CLIP_ATTACKERS, Clips, Scorer
from ppspeech.filters.attack.attackers.densities import chosen
from ppspeech.filters.attack.attackers.gaussians import Scale
from ppspeech.filters.attack.attackers.networks import knowing_words
from ppspeech.filters.attack.attackers.vectors import fitted

RIDGES = (3e-2, 3e-3, 3e-4)  # in a sample's share of the loss
LEAVES = (1, 2, 4)  # fewest clips in a leaf
TREES = 200
PENALTIES = (1.0, 10.0, 100.0)
WORD = 2.0  # how far apart words are for a kernel, in deviations: clips of other words count, but less


@CLIP_ATTACKERS.register("word_logistic")
def word_logistic(clips: Clips, labels: Tensor, classes: int, seed: int) -> Scorer[Clips]:
    """Multinomial logistic regressions, one a word."""

    def fit(some: Clips, own: Tensor, people: int, ridge: float) -> Scorer[Clips]:
        models = {}
        for word in torch.unique(some.words).tolist():
            rows = some.words == word
            if len(torch.unique(own[rows])) > 1:
                classifier = LogisticRegression(C=1 / (ridge * int(rows.sum())), max_iter=200, random_state=seed)
                models[word] = fitted(classifier, some.features[rows], own[rows], people)

        def scores(asked: Clips) -> Tensor:
            found = torch.zeros(len(asked.words), people, dtype=torch.float64, device=asked.words.device)
            for word, model in models.items():
                rows = asked.words == word
                if bool(rows.any()):
                    found[rows] = model(asked.features[rows]).log_softmax(-1)
            return found

        return scores

    return chosen(fit, RIDGES, clips, labels, classes, seed)


@CLIP_ATTACKERS.register("word_svm")
def word_svm(clips: Clips, labels: Tensor, classes: int, seed: int) -> Scorer[Clips]:
    """A support vector machine with a Gaussian kernel on features and word."""
    scale, number = Scale(clips.features), int(clips.words.max()) + 1

    def inputs(some: Clips) -> Tensor:
        return knowing_words(scale(some.features) / WORD, some.words, number) * WORD

    def fit(some: Clips, own: Tensor, people: int, penalty: float) -> Scorer[Clips]:
        machine = SVC(C=penalty, gamma=1 / scale.mean.shape[0], random_state=seed)
        model = fitted(machine, inputs(some), own, people, standardize=False)
        return lambda asked: model(inputs(asked)).log_softmax(-1)

    return chosen(fit, PENALTIES, clips, labels, classes, seed)


@CLIP_ATTACKERS.register("forest")
def forest(clips: Clips, labels: Tensor, classes: int, seed: int) -> Scorer[Clips]:
    """Randomized trees (Geurts, Ernst and Wehenkel 2006) on features and word: no matter how a feature is bent."""
    number = int(clips.words.max()) + 1

    def inputs(some: Clips) -> Tensor:
        return knowing_words(some.features.detach().double(), some.words, number)

    def fit(some: Clips, own: Tensor, people: int, leaf: int) -> Scorer[Clips]:
        trees = ExtraTreesClassifier(TREES, min_samples_leaf=leaf, random_state=seed)
        model = fitted(trees, inputs(some), own, people, standardize=False)
        return lambda asked: model(inputs(asked))

    return chosen(fit, LEAVES, clips, labels, classes, seed)
