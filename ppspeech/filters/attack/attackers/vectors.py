"""Attackers that see one vector a sample: the linear one that filters are trained against, and four that are not.

Each standardizes what it sees first, so that a filter cannot hide anyone by making a feature small. Their settings are
fixed and public, chosen to be strong on a few thousand samples; nothing is tuned on what they are scored on.
"""

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor

from ppspeech.filters.attack.attackers.attacker import VECTOR_ATTACKERS, Scorer

RIDGE = 1e-3  # of the logistic attacker, in a sample's share of the loss


@VECTOR_ATTACKERS.register("logistic")
def logistic(features: Tensor, labels: Tensor, classes: int, seed: int) -> Scorer[Tensor]:
    """Multinomial logistic regression: the adversary of Hamm 2015, retrained on what the filter gives."""
    classifier = LogisticRegression(C=1 / (RIDGE * len(labels)), max_iter=1_000, random_state=seed)
    return fitted(classifier, features, labels, classes)


@VECTOR_ATTACKERS.register("svm")
def svm(features: Tensor, labels: Tensor, classes: int, seed: int) -> Scorer[Tensor]:
    """A support vector machine with a Gaussian kernel, of the usual width (the inverse of the dimension)."""
    return fitted(SVC(C=10.0, random_state=seed), features, labels, classes)


@VECTOR_ATTACKERS.register("trees")
def trees(features: Tensor, labels: Tensor, classes: int, seed: int) -> Scorer[Tensor]:
    """Gradient-boosted trees on histograms; shallow, for little data and many people."""
    rounds = max(15, min(60, 600 // classes))
    classifier = HistGradientBoostingClassifier(
        max_iter=rounds, max_leaf_nodes=12, learning_rate=0.2, early_stopping=False, random_state=seed
    )
    return fitted(classifier, features, labels, classes)


@VECTOR_ATTACKERS.register("mlp")
def mlp(features: Tensor, labels: Tensor, classes: int, seed: int) -> Scorer[Tensor]:
    """A network of one hidden layer of 200, with weight decay instead of early stopping: little data is held back."""
    classifier = MLPClassifier((200,), alpha=1e-2, batch_size=min(128, len(labels)), max_iter=60, random_state=seed)
    return fitted(classifier, features, labels, classes)


@VECTOR_ATTACKERS.register("neighbors")
def neighbors(features: Tensor, labels: Tensor, classes: int, seed: int) -> Scorer[Tensor]:  # noqa: ARG001 (no chance)
    """The five nearest neighbors, weighted by distance: linkage by similarity, with no training at all."""
    return fitted(KNeighborsClassifier(min(5, len(labels)), weights="distance"), features, labels, classes)


def fitted(
    classifier: Any, features: Tensor, labels: Tensor, classes: int, *, standardize: bool = True
) -> Scorer[Tensor]:
    """A scorer from a scikit-learn classifier; classes it never saw score below all others."""
    pipeline = make_pipeline(*([StandardScaler()] if standardize else []), classifier)
    with warnings.catch_warnings():
        # An attacker that has not converged is a weaker attacker, not a wrong one: its score is still an attack.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Many people with one clip each of a word are classes all the same.
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%", UserWarning)
        with threadpool_limits(1, "openmp"):  # on so few samples threads of the trees wait more than they work
            pipeline.fit(_array(features), labels.numpy(force=True))
    known = torch.from_numpy(classifier.classes_)

    def scores(asked: Tensor) -> Tensor:
        with threadpool_limits(1, "openmp"):
            found = torch.from_numpy(np.asarray(_scores(pipeline, _array(asked)), dtype=np.float64))
        everyone = found.new_full((len(found), classes), float(found.min()) - 1 if found.numel() else 0.0)
        everyone[:, known] = found
        return everyone.to(asked.device)

    return scores


def _scores(pipeline: Any, asked: NDArray[np.float64]) -> NDArray[np.float64]:
    """Decision values or log-probabilities, `(samples, known classes)`."""
    if hasattr(pipeline, "predict_proba"):
        return np.log(np.asarray(pipeline.predict_proba(asked)) + 1e-12)
    values = np.asarray(pipeline.decision_function(asked))
    return np.stack([-values, values], axis=1) if values.ndim == 1 else values


def _array(features: Tensor) -> NDArray[np.float64]:
    array: NDArray[np.float64] = features.detach().double().numpy(force=True)
    return array
