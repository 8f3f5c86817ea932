import math

import pytest
import torch
from torch import nn

from ppspeech.errors import ModelError, PrivacyError
from ppspeech.filters import CodeFilter, CodeNoise, Learning, NoisyFilter, codes_of, learn_codes
from ppspeech.filters.codes import nearest
from tests.filters.games import people


def scaled_codes(seed: int = 0) -> CodeFilter:
    torch.manual_seed(seed)
    return CodeFilter(6, 8, 3, 5)


@pytest.mark.parametrize("with_gradients", [True, False])
def test_what_comes_out_is_a_code_bit_by_bit(with_gradients: bool) -> None:
    """Whatever goes in, one of five rows comes out: the last bits of a sum would tell what was replaced."""
    module = scaled_codes()
    x = torch.randn(4000, 6) * torch.logspace(-3, 3, 4000).unsqueeze(-1)
    x[0], x[1], x[2] = math.nan, math.inf, -math.inf
    with torch.set_grad_enabled(with_gradients):
        rows = module(x).detach().unique(dim=0)
    assert len(rows) == 5
    assert torch.equal(rows, module.codes.detach().unique(dim=0))


def test_the_nearest_code_is_taken_and_of_equal_ones_the_first() -> None:
    module = scaled_codes()
    x = torch.randn(50, 6)
    codes = module.codes.detach()
    for vector, code in zip(module.before(x).detach(), module(x).detach(), strict=True):
        apart = [float((vector - other).norm()) for other in codes]
        assert torch.equal(code, codes[apart.index(min(apart))])
    twice = torch.ones(2, 3)
    assert nearest(torch.randn(7, 3), twice).tolist() == [0] * 7


def test_gradients_pass_through_to_the_network_and_to_the_codes() -> None:
    module = scaled_codes()
    x, given = torch.randn(20, 6), torch.randn(20, 3)
    (module(x) * given).sum().backward()
    straight = torch.autograd.grad((module.network(x) * given).sum(), list(module.network.parameters()))
    for parameter, wanted in zip(module.network.parameters(), straight, strict=True):
        torch.testing.assert_close(parameter.grad, wanted)
    own = torch.zeros(5, 3).index_add_(0, nearest(module.before(x), module.codes), given)
    torch.testing.assert_close(module.codes.grad, own)


@pytest.mark.parametrize("codes", [0, 4])
def test_codes_keep_the_task_and_nothing_of_a_person_with_the_same_code(codes: int) -> None:
    x, subject, task = people(400, inputs=8)
    found = Learning(filter="codes", codes=codes).fit(x.float(), subject, task, 1, seed=0)
    with torch.no_grad():
        out = found.filter(x.float())
    kept = codes_of(found.filter)
    assert kept is not None
    assert len(out.unique(dim=0)) == len(kept) == (codes or 2)
    of_class = (out.unsqueeze(1) == kept).all(-1).double().argmax(-1) // (len(kept) // 2)
    assert float((of_class == task).double().mean()) > 0.9
    again = learn_codes(x.float(), task, codes, features=1)
    assert torch.equal(again(x.float()), out)  # the people have no part in it


def test_frames_become_codes_one_by_one() -> None:
    x, _, task = people(300, inputs=6)
    frames, labels = x.float().reshape(100, 3, 6), task.reshape(100, 3)
    found = learn_codes(frames, labels, epochs=5)
    assert found(frames).shape == (100, 3, 1)
    assert torch.equal(found(frames).flatten(0, 1), found(x.float()))


@pytest.mark.parametrize(
    ("codes", "labels", "word"), [(3, 2, "multiple of the 2 classes"), (1, 2, "multiple"), (2, 1, "label for each")]
)
def test_codes_that_do_not_fit_are_refused(codes: int, labels: int, word: str) -> None:
    with pytest.raises(ModelError, match=word):
        learn_codes(torch.randn(8, 3), torch.arange(8 // (3 - labels)) % 2, codes)


def test_a_random_code_is_told_as_often_as_is_promised() -> None:
    """What a receiver counts: own code p = e^eps / (e^eps + K - 1), each other p e^-eps, within 5 sigma."""
    codes, epsilon, runs = torch.randn(4, 2), 1.0, 40_000
    noise = CodeNoise(codes=codes, epsilon=epsilon)
    told = noise.release(codes[2].expand(runs, 2) + 0.01).value
    counts = (told.unsqueeze(1) == codes).all(-1).double().sum(0)
    assert counts.sum() == runs
    own = math.exp(epsilon) / (math.exp(epsilon) + 3)
    for code, expected in enumerate([own / math.e, own / math.e, own, own / math.e]):
        assert abs(counts[code] - runs * expected) < 5 * math.sqrt(runs * expected * (1 - expected))


def test_what_random_codes_promise() -> None:
    noise = CodeNoise(codes=torch.eye(3), epsilon=0.5)
    assert (noise.guarantee.kind, noise.guarantee.epsilon, noise.guarantee.float_safe) == ("pure", 0.5, True)
    assert noise.guarantee_for(8).epsilon == pytest.approx(4.0)
    assert noise.truth < (math.exp(0.5) - 1) / (math.exp(0.5) + 2)  # never told more often than that
    released = NoisyFilter(nn.Identity(), noise).release(torch.full((2, 4, 3), math.nan))
    assert released.value.shape == (2, 4, 3)
    assert released.guarantee.epsilon == 0.5
    for wrong in ({"epsilon": 0.0}, {"codes": torch.zeros(1, 3)}, {"codes": torch.full((2, 2), math.inf)}):
        with pytest.raises(PrivacyError):
            CodeNoise(**{"codes": torch.eye(3), "epsilon": 1.0, **wrong})  # type: ignore[arg-type]
