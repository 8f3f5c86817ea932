import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from hmmlearn.hmm import GaussianHMM
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio.mfcc_config import MfccConfig
from ppspeech.data.corpora.fsdd import load_fsdd
from ppspeech.data.features import FeatureStore
from ppspeech.errors import ModelError
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.baum_welch import (
    baum_welch,
    by_length,
    flat_start_,
    hmm_statistics,
    update_hmm_,
    utterance_hmm_statistics,
)
from ppspeech.models.hmm.emissions import DiscreteEmission, GaussianEmission, Prior
from ppspeech.models.hmm.topology import Topology, ergodic, left_right

TOPOLOGIES = {
    "left_right": left_right(3),
    "finishing": left_right(3, skips=1, must_finish=True),
    "ergodic": ergodic(3),
}


def speech(utterances: int = 12, frames: int = 15, models: int = 2, d: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    make = torch.Generator().manual_seed(3)
    features = torch.randn(utterances, frames, d, generator=make, dtype=torch.float64).cumsum(1)
    lengths = torch.randint(4, frames + 1, (utterances,), generator=make)
    return features, lengths, torch.arange(utterances) % models


def gaussian_bank(topology: Topology, components: int = 1, covariance: str = "full", d: int = 3) -> HiddenMarkovModel:
    emission = GaussianEmission(2, topology.states, d, components, covariance, floor=0.01, dtype=torch.float64)
    return HiddenMarkovModel(topology, emission)


def assert_never_falls(history: tuple[float, ...]) -> None:
    assert history[-1] > history[0]
    for before, after in itertools.pairwise(history):
        assert after >= before - 1e-9 * abs(before), history


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical", "tied"])
@pytest.mark.parametrize("components", [1, 2])
def test_likelihood_never_falls(topology: str, covariance: str, components: int) -> None:
    bank = gaussian_bank(TOPOLOGIES[topology], components, covariance)
    flat_start_(bank, *speech())
    assert_never_falls(baum_welch(bank, *speech(), iterations=6, batch_frames=60))


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_likelihood_never_falls_for_symbols(topology: str) -> None:
    bank = HiddenMarkovModel(TOPOLOGIES[topology], DiscreteEmission(2, 3, 6, dtype=torch.float64))
    _, lengths, labels = speech()
    symbols = torch.randint(0, 6, (12, 15), generator=torch.Generator().manual_seed(0))
    flat_start_(bank, symbols, lengths, labels)
    assert_never_falls(baum_welch(bank, symbols, lengths, labels, iterations=6))


@pytest.mark.parametrize("topology", ["left_right", "ergodic"])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "tied"])
def test_training_goes_where_hmmlearn_goes(topology: str, covariance: str) -> None:
    features, lengths, labels = speech(d=2)
    bank = gaussian_bank(TOPOLOGIES[topology], covariance=covariance, d=2)
    flat_start_(bank, features, lengths, labels)
    kind = {"diagonal": "diag"}.get(covariance, covariance)
    peers = []
    for m in range(2):
        # hmmlearn's own priors off, so that both maximize the likelihood.
        peer = GaussianHMM(3, kind, n_iter=3, tol=-np.inf, init_params="", min_covar=0, covars_prior=0)
        if covariance == "diagonal":
            peer.covars_weight = 1
        peer.startprob_ = bank.log_initial()[m].exp().detach().numpy()
        peer.transmat_ = bank.log_transitions()[m].exp().detach().numpy()
        peer.means_ = bank.emission.gaussians.mean[m].detach().numpy()
        variances = bank.emission.gaussians.variances()[m].detach().numpy()
        peer.covars_ = variances[0] if covariance == "tied" else variances
        own = (labels == m).nonzero().flatten().tolist()
        peer.fit(np.concatenate([features[i, : lengths[i]].numpy() for i in own]), lengths[own].tolist())
        peers.append(peer)
    history = baum_welch(bank, features, lengths, labels, iterations=3)
    np.testing.assert_allclose(sum(np.array(peer.monitor_.history) for peer in peers), history, rtol=1e-6)
    for m, peer in enumerate(peers):
        np.testing.assert_allclose(bank.emission.gaussians.mean[m].detach(), peer.means_, atol=1e-6)
        np.testing.assert_allclose(bank.log_transitions()[m].exp().detach(), peer.transmat_, atol=1e-6)


def test_statistics_add_up_over_batches_and_speakers() -> None:
    features, lengths, labels = speech()
    bank = gaussian_bank(left_right(3))
    flat_start_(bank, features, lengths, labels)
    whole = hmm_statistics(bank, features, lengths, labels)
    parts = hmm_statistics(bank, features[:5], lengths[:5], labels[:5]) + hmm_statistics(
        bank, features[5:], lengths[5:], labels[5:]
    )
    speakers = torch.arange(12) // 4
    rows = utterance_hmm_statistics(bank, features, lengths, labels)
    by_speaker = rows.sum_by(speakers * 2 + labels, 6)
    for name in ("initial", "transitions", "emissions", "log_likelihood", "utterances"):
        torch.testing.assert_close(getattr(parts, name), getattr(whole, name))
        folded = getattr(by_speaker, name).view(3, 2, *getattr(whole, name).shape[1:]).sum(0)
        torch.testing.assert_close(folded, getattr(whole, name))
    assert whole.utterances.tolist() == [6, 6]
    with pytest.raises(ModelError, match="sum them by model"):
        update_hmm_(bank, rows)


def test_flat_start_takes_the_means_of_equal_parts() -> None:
    features, lengths, labels = speech(models=1)
    bank = gaussian_bank(left_right(3))
    flat_start_(bank, features, lengths, labels)
    parts: list[list[Tensor]] = [[], [], []]
    for x, length in zip(features, lengths.tolist(), strict=True):
        for t in range(length):
            parts[t * 3 // length].append(x[t])
    for state, frames in enumerate(parts):
        torch.testing.assert_close(bank.emission.gaussians.mean[0, state], torch.stack(frames).mean(0))
    assert (bank.emission.gaussians.mean[1] == 0).all(), "a model without utterances stays as it was"


def test_mixture_components_start_apart() -> None:
    left, right = torch.full((20, 6, 2), -4.0), torch.full((20, 6, 2), 4.0)
    features = torch.cat([left, right]).double() + 0.1 * torch.randn(40, 6, 2, dtype=torch.float64)
    bank = HiddenMarkovModel(left_right(2), GaussianEmission(1, 2, 2, 2, "diagonal", dtype=torch.float64))
    labels, lengths = torch.zeros(40, dtype=torch.long), torch.full((40,), 6)
    flat_start_(bank, features, lengths, labels)
    baum_welch(bank, features, lengths, labels, iterations=5)
    found = bank.emission.gaussians.mean[0].sort(dim=1).values
    torch.testing.assert_close(
        found, torch.tensor([-4.0, 4.0])[None, :, None].expand(2, 2, 2).double(), atol=0.2, rtol=0
    )


@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical", "tied"])
@pytest.mark.parametrize("components", [1, 3])
def test_one_utterance_an_empty_one_and_dead_states_give_numbers(covariance: str, components: int) -> None:
    """Three frames for four states, and a model whose only utterance is empty."""
    features = torch.randn(2, 3, 3, dtype=torch.float64)
    lengths, labels = torch.tensor([3, 0]), torch.tensor([0, 1])
    bank = gaussian_bank(left_right(4), components, covariance)
    before = {name: value.clone() for name, value in bank.state_dict().items()}
    flat_start_(bank, features, lengths, labels)
    history = baum_welch(bank, features, lengths, labels, iterations=3)
    assert all(np.isfinite(history))
    for name, value in bank.state_dict().items():
        assert value.isfinite().all(), name
        if components == 1:
            torch.testing.assert_close(value[1], before[name][1])
    assert bank(features, lengths).isfinite().all()


def test_a_prior_pulls_covariances_to_the_pooled_one() -> None:
    features, lengths, labels = speech()
    banks = [gaussian_bank(left_right(3)) for _ in range(3)]
    for bank, weight in zip(banks, (0.0, 20.0, 1e9), strict=True):
        flat_start_(bank, features, lengths, labels, Prior(covariance=weight))
    loose, middle, tight = (bank.emission.gaussians.covariances().detach() for bank in banks)
    torch.testing.assert_close(tight, tight[:1, :1].expand_as(tight), atol=1e-5, rtol=0)
    pooled = tight[0, 0]
    assert ((middle - pooled).norm(dim=(-1, -2)) < (loose - pooled).norm(dim=(-1, -2))).all()
    with pytest.raises(ModelError, match="must be >= 0"):
        Prior(covariance=-1)


def test_batches_by_length_hold_every_utterance_once() -> None:
    features, lengths, _ = speech()
    seen = []
    for some, lasting, index in by_length(features, lengths, torch.arange(12), batch_frames=60):
        assert some.shape[1] == lasting.max()
        assert some.shape[0] * some.shape[1] <= 60
        torch.testing.assert_close(some, features[index, : some.shape[1]])
        seen += index.tolist()
    assert sorted(seen) == list(range(12))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": torch.full((12, 15, 3), torch.nan)}, "not finite"),
        ({"features": torch.zeros(12, 15, 2)}, r"\(batch, frames, 3\)"),
        ({"lengths": torch.full((12,), 16)}, "0..15, got 16..16"),
        ({"labels": torch.full((12,), 2)}, "0..1, got 2..2"),
        ({"labels": torch.zeros(3, dtype=torch.long)}, "12 utterances"),
    ],
)
def test_training_data_that_does_not_fit_is_refused(change, message) -> None:
    inputs = dict(zip(("features", "lengths", "labels"), speech(), strict=True)) | change
    with pytest.raises(ModelError, match=message):
        baum_welch(gaussian_bank(left_right(3)), **inputs)
    bank = HiddenMarkovModel(left_right(3), DiscreteEmission(1, 3, 6))
    with pytest.raises(ModelError, match=r"0\.\.5, got 9"):
        baum_welch(bank, torch.full((1, 2), 9), torch.tensor([2]), torch.tensor([0]))


def test_mixtures_stay_finite_on_real_digits(data: Path) -> None:
    """hmmlearn's GMMHMM turns to NaN on these."""
    corpus = load_fsdd(data / "fsdd").select(lambda u: u.word in {"one", "nine"} and 5 <= u.take < 9)
    frames = FeatureStore(MfccConfig.narrowband()).load(corpus.utterances)
    features, lengths = pad_sequence(frames, batch_first=True), torch.tensor([len(f) for f in frames])
    labels = torch.tensor([corpus.words.index(str(u.word)) for u in corpus])
    bank = HiddenMarkovModel(left_right(5), GaussianEmission(2, 5, 39, components=3, covariance="diagonal"))
    flat_start_(bank, features, lengths, labels)
    history = baum_welch(bank, features, lengths, labels, iterations=8)
    assert history[-1] > history[0]
    assert all(p.isfinite().all() for p in bank.parameters())
    assert (bank(features, lengths).argmax(-1) == labels).double().mean() > 0.95


@pytest.mark.parametrize("components", [1, 2])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_one_label_for_all_gives_the_same_statistics(components: int, covariance: str) -> None:
    features, lengths, labels = speech()
    bank = gaussian_bank(left_right(3), components, covariance)
    flat_start_(bank, features, lengths, labels)
    one = hmm_statistics(bank, features, lengths, 1)
    each = hmm_statistics(bank, features, lengths, torch.ones_like(labels))
    for name in ("initial", "transitions", "emissions", "log_likelihood", "utterances"):
        torch.testing.assert_close(getattr(one, name), getattr(each, name), atol=1e-9, rtol=1e-9)
    symbols = torch.randint(0, 6, (12, 15))
    discrete = HiddenMarkovModel(left_right(3), DiscreteEmission(2, 3, 6, dtype=torch.float64))
    torch.testing.assert_close(
        hmm_statistics(discrete, symbols, lengths, 1).emissions,
        hmm_statistics(discrete, symbols, lengths, torch.ones_like(labels)).emissions,
    )
