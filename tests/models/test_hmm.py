import numpy as np
import pytest
import torch
from hmmlearn.hmm import CategoricalHMM, GaussianHMM
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ppspeech.errors import ModelError
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.baum_welch import flat_start_, hmm_statistics, update_hmm_
from ppspeech.models.hmm.emissions import DiscreteEmission, GaussianEmission
from ppspeech.models.hmm.forward_backward import LOG_ZERO
from ppspeech.models.hmm.topology import Topology, ergodic, left_right

TOPOLOGIES = {"left_right": left_right(4), "skips": left_right(4, skips=1), "ergodic": ergodic(4)}


def speech(batch: int = 10, frames: int = 14, d: int = 3, models: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    make = torch.Generator().manual_seed(1)
    features = torch.randn(batch, frames, d, generator=make, dtype=torch.float64).cumsum(1)
    lengths = torch.randint(5, frames + 1, (batch,), generator=make)
    return features, lengths, torch.arange(batch) % models


def trained(topology: Topology, components: int = 1, covariance: str = "full") -> HiddenMarkovModel:
    emission = GaussianEmission(2, 4, 3, components, covariance, floor=0.05, dtype=torch.float64)
    bank = HiddenMarkovModel(topology, emission)
    flat_start_(bank, *speech())
    for logits in (bank.initial_logits, bank.transition_logits):
        torch.nn.init.normal_(logits)
    return bank


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical", "tied"])
def test_gaussian_scores_and_paths_are_those_of_hmmlearn(name: str, covariance: str) -> None:
    bank = trained(TOPOLOGIES[name], covariance=covariance)
    features, lengths, _ = speech()
    scores, best = bank(features, lengths), bank.best_path(features, lengths)
    gamma = bank.posteriors(features, lengths).states
    for m in range(2):
        variances = bank.emission.gaussians.variances()[m].detach().numpy()
        peer = GaussianHMM(4, {"diagonal": "diag"}.get(covariance, covariance))
        peer.startprob_ = bank.log_initial()[m].exp().detach().numpy()
        peer.transmat_ = bank.log_transitions()[m].exp().detach().numpy()
        peer.means_ = bank.emission.gaussians.mean[m].detach().numpy()
        peer.covars_ = {"tied": lambda v: v[0], "spherical": lambda v: v[:, 0]}.get(covariance, lambda v: v)(variances)
        for b, length in enumerate(lengths.tolist()):
            x = features[b, :length].numpy()
            assert scores[b, m].item() == pytest.approx(peer.score(x), abs=1e-6)
            score, path = peer.decode(x)
            assert best.score[b, m].item() == pytest.approx(score, abs=1e-6)
            assert best.states[b, :length, m].tolist() == path.tolist()
            np.testing.assert_allclose(gamma[b, :length, m].detach(), peer.predict_proba(x), atol=1e-6)


def test_discrete_scores_are_those_of_hmmlearn() -> None:
    bank = HiddenMarkovModel(ergodic(3), DiscreteEmission(2, 3, 5, dtype=torch.float64))
    for weights in bank.parameters():
        torch.nn.init.normal_(weights)
    symbols = torch.randint(0, 5, (6, 9))
    lengths = torch.tensor([9, 1, 4, 9, 2, 7])
    scores = bank(symbols, lengths)
    own = bank(symbols, lengths, torch.ones(6, dtype=torch.long))
    torch.testing.assert_close(own, scores[:, 1])
    peer = CategoricalHMM(3, n_features=5)
    peer.startprob_, peer.transmat_ = (
        t[1].exp().detach().numpy() for t in (bank.log_initial(), bank.log_transitions())
    )
    peer.emissionprob_ = bank.emission.logits[1].softmax(-1).detach().numpy()
    for b, length in enumerate(lengths.tolist()):
        assert scores[b, 1].item() == pytest.approx(peer.score(symbols[b, :length, None].numpy()), abs=1e-6)


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical", "tied"])
def test_an_utterance_under_its_own_model_scores_as_in_the_bank(components: int, covariance: str) -> None:
    bank = trained(left_right(4), components, covariance)
    features, lengths, labels = speech()
    scores = bank(features, lengths)
    torch.testing.assert_close(
        bank(features, lengths, labels), scores.gather(1, labels[:, None])[:, 0], atol=1e-9, rtol=0
    )


def test_what_the_topology_forbids_stays_impossible() -> None:
    bank = trained(left_right(4, must_finish=True))
    features, lengths, labels = speech()
    optimizer = torch.optim.SGD(bank.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (-bank(features, lengths, labels).mean()).backward()
        optimizer.step()
    update_hmm_(bank, hmm_statistics(bank, features, lengths, labels))
    allowed = torch.tensor(left_right(4).transitions)
    assert (bank.log_transitions()[:, ~allowed] == LOG_ZERO).all()
    torch.testing.assert_close(bank.log_transitions().exp().sum(-1), torch.ones(2, 4, dtype=torch.float64))
    assert (bank(features, torch.full((10,), 3)) < LOG_ZERO / 2).all(), "three frames cannot reach state four"


def test_the_gradient_of_the_score_in_all_parameters_is_right() -> None:
    bank = trained(left_right(4, skips=1), components=2, covariance="diagonal")
    features, lengths, _ = speech(batch=2, frames=6)
    names = [name for name, _ in bank.named_parameters()]

    def score(*values: Tensor) -> Tensor:
        return torch.func.functional_call(bank, dict(zip(names, values, strict=True)), (features, lengths.clamp_max(6)))

    assert torch.autograd.gradcheck(score, tuple(p.detach().requires_grad_() for p in bank.parameters()))


def test_there_are_no_buffers_and_weights_travel() -> None:
    bank, other = trained(left_right(4)), trained(left_right(4))
    assert not list(bank.buffers())
    with torch.no_grad():
        other.transition_logits.zero_()
    other.load_state_dict(bank.state_dict())
    features, lengths, _ = speech()
    torch.testing.assert_close(other(features, lengths), bank(features, lengths))


class StaysOnItsDevice(TorchDispatchMode):
    """Fails when a value is read back to Python or copied to another device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        assert func is not torch.ops.aten._local_scalar_dense.default, "a value was read back"
        if func is torch.ops.aten._to_copy.default and kwargs.get("device") is not None:
            assert args[0].numel() == 0 or kwargs["device"] == args[0].device, "a tensor left its device"
        return func(*args, **kwargs)


@pytest.mark.parametrize("components", [1, 2])
def test_no_tensor_leaves_its_device_in_a_step(components: int) -> None:
    bank = trained(left_right(4), components)
    features, lengths, labels = speech()
    with StaysOnItsDevice():
        (-bank(features, lengths).sum()).backward()
        bank.best_path(features, lengths)
        hmm_statistics(bank, features, lengths, labels)
    with pytest.raises(AssertionError, match="read back"), StaysOnItsDevice():
        lengths.max().item()


def test_scoring_runs_without_data() -> None:
    """On the meta device there are shapes and no values: nothing can depend on one."""
    bank = trained(left_right(4)).to("meta")
    features, lengths, labels = (t.to("meta") for t in speech())
    assert bank(features, lengths).shape == (10, 2)
    assert bank.best_path(features, lengths).states.shape == (10, 14, 2)
    assert hmm_statistics(bank, features, lengths, labels).emissions.shape == (2, 4, 4, 4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_the_forward_algorithm_compiles_whole() -> None:
    bank = trained(left_right(4))
    features, lengths, _ = speech(frames=5)
    lengths = lengths.clamp_max(5)
    compiled = torch.compile(bank, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(features, lengths), bank(features, lengths))


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ModelError, match="5 states and the emission 4"):
        HiddenMarkovModel(left_right(5), GaussianEmission(1, 4, 3))
    with pytest.raises(ModelError, match="frames have 2 features"):
        trained(left_right(4))(torch.zeros(1, 5, 2, dtype=torch.float64), torch.tensor([5]))
