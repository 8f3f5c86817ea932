"""NumPy arrays are taken wherever people begin: features, fits, filters; what comes out is what tensors give."""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ppspeech.audio import Mfcc
from ppspeech.filters import MinimaxTransformer, learn_filter
from ppspeech.models import LogisticRegression
from ppspeech.models.gaussian import fit_mixture
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, baum_welch, flat_start_, left_right
from ppspeech.models.margin import LargeMarginGaussians

GENERATOR = np.random.default_rng(0)
X, Y = GENERATOR.normal(size=(120, 3)), np.arange(120) % 2
X[:, 0] += 2 * Y


def test_features_of_an_array() -> None:
    sound = GENERATOR.normal(size=16_000)
    heard = Mfcc()(sound)
    torch.testing.assert_close(heard.features, Mfcc()(torch.from_numpy(sound)).features)
    both = Mfcc()(np.stack((sound, sound)), np.array([16_000, 8_000]))
    assert both.lengths[1] < both.lengths[0] == heard.lengths[0]


def test_models_are_fitted_to_arrays() -> None:
    tensors = torch.from_numpy(X), torch.from_numpy(Y)
    ours, same = LogisticRegression(3, dtype=torch.float64), LogisticRegression(3, dtype=torch.float64)
    ours.fit(X, Y, quadratic=1.0)
    same.fit(*tensors, quadratic=1.0)
    assert torch.equal(ours.weight, same.weight)
    large = LargeMarginGaussians(2, 3)
    large.fit(X.astype(np.float32), Y, quadratic=1.0)
    assert float((large.predict(tensors[0].float()) == tensors[1]).double().mean()) > 0.8
    mixture = fit_mixture(X, 2)
    assert torch.equal(mixture.log_prob(tensors[0]), fit_mixture(tensors[0], 2).log_prob(tensors[0]))


def test_word_models_are_trained_on_arrays() -> None:
    utterances = X.reshape(12, 10, 3).astype(np.float32)
    bank = HiddenMarkovModel(left_right(2), GaussianEmission(2, 2, 3, covariance="diagonal", floor=0.1))
    given = utterances, np.full(12, 10), np.arange(12) % 2
    flat_start_(bank, *given)
    history = baum_welch(bank, *given, 3)
    assert history[0] <= history[-1]


def test_a_filter_is_a_transformer_of_scikit_learn() -> None:
    """In a pipeline, with names for labels; the person is lost and the task is not."""
    people = np.arange(600) % 6
    task = (np.arange(600) // 6) % 2
    ways = GENERATOR.normal(size=(8, 12))
    x = GENERATOR.normal(size=(600, 12)) + ways[people] + 1.5 * ways[6 + task]
    said, who = np.array(["no", "yes"])[task], np.array([f"p{i}" for i in people])
    line = make_pipeline(StandardScaler(), MinimaxTransformer(2), Peer())
    line.fit(x[:300], said[:300], minimaxtransformer__private=who[:300])
    assert line.score(x[300:], said[300:]) > 0.9
    filtered = line[:-1].transform(x)
    assert filtered.shape == (600, 2)
    attacker = Peer().fit(filtered[:300], who[:300]).score(filtered[300:], who[300:])
    unfiltered = Peer().fit(x[:300], who[:300]).score(x[300:], who[300:])
    assert attacker < 0.5 < unfiltered

    transformer = MinimaxTransformer(2, iterations=3)
    direct = learn_filter(x, people, task, features=2, rho=1.0, iterations=3)
    found = transformer.fit_transform(x, task, private=people)
    with torch.no_grad():
        np.testing.assert_allclose(found, direct.filter(torch.from_numpy(x)).numpy())
