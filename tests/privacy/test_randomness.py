"""Noise comes from the operating system, follows its law, and leaves nothing to seed, store or repeat.

Distribution tests have a false-alarm rate of 1e-6 each.
"""

import inspect
import random
from collections import Counter

import numpy as np
import pytest
import torch
from scipy import stats

from ppspeech.privacy.samplers import randomness
from ppspeech.privacy.samplers.randomness import (
    coins,
    erlang,
    exponential,
    random_below,
    random_bytes,
    random_order,
    standard_laplace,
    standard_normal,
    uniform,
)

ALARM = 1e-6


def test_seeding_everything_changes_nothing() -> None:
    def draw() -> tuple[bytes, bytes, list[float]]:
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        torch.manual_seed(1)
        return random_bytes(32), random_bytes(4096), standard_normal((8,)).tolist()

    first, second = draw(), draw()
    assert all(a != b for a, b in zip(first, second, strict=True))


def test_the_module_holds_no_state() -> None:
    kept = [value for name, value in vars(randomness).items() if not name.startswith("__")]
    assert not [value for value in kept if isinstance(value, bytes | bytearray | np.random.Generator | torch.Generator)]
    assert not [value for value in kept if inspect.isclass(value) and value.__module__ == randomness.__name__]


def test_bits_are_balanced() -> None:
    ones = np.unpackbits(np.frombuffer(random_bytes(1 << 17), np.uint8)).sum()
    assert stats.binomtest(int(ones), 1 << 20).pvalue > ALARM


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 64])
def test_random_below_is_uniform(bound: int) -> None:
    drawn = random_below(bound, 20_000)
    assert drawn.min() >= 0
    assert drawn.max() < bound
    if bound > 1:
        assert stats.chisquare(np.bincount(drawn, minlength=bound)).pvalue > ALARM


def test_random_below_reaches_its_bound_and_refuses_others() -> None:
    assert random_below(2**62, 64).max() > 2**60
    for bound in (0, -1, 2**62 + 1):
        with pytest.raises(ValueError, match="bound"):
            random_below(bound, 1)


def test_coins_fall_as_often_as_asked_and_never_more() -> None:
    assert stats.binomtest(int(coins(0.3, 50_000).sum()), 50_000, 0.3).pvalue > ALARM
    assert coins(1.0, 1000).all()
    assert not coins(0.0, 1000).any()
    assert not coins(2.0**-65, 1000).any()  # rounded down
    with pytest.raises(ValueError, match="a probability is in"):
        coins(1.5, 1)


@pytest.mark.parametrize("word", [0, 2**64 - 1, 2**63 + 2**11, 2**12 - 1])
def test_no_uniform_number_is_an_end(word: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every word becomes an odd multiple of 2^-53, whose logarithms are finite."""
    monkeypatch.setattr(randomness, "random_words", lambda count: np.full(count, word, dtype=np.uint64))
    (drawn,) = uniform(1)
    assert 0 < drawn < 1
    assert (drawn * 2**53) % 2 == 1


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (lambda: uniform(50_000), stats.uniform()),
        (lambda: exponential(50_000), stats.expon()),
        (lambda: standard_normal((100, 501)).ravel().numpy(), stats.norm()),
        (lambda: standard_laplace((50_000,)).numpy(), stats.laplace()),
        (lambda: np.array([erlang(7) for _ in range(5000)]), stats.gamma(7)),
    ],
)
def test_laws(draw: object, law: object) -> None:
    assert stats.kstest(draw(), law.cdf).pvalue > ALARM  # type: ignore[operator,attr-defined]


def test_normals_are_independent_and_take_the_form_asked_for() -> None:
    drawn = standard_normal((20_000, 2))
    assert abs(float(torch.corrcoef(drawn.T)[0, 1])) < 5 / 20_000**0.5
    assert standard_normal((3, 0)).shape == (3, 0)
    assert standard_normal((), like=torch.zeros(1, dtype=torch.float32)).dtype == torch.float32


def test_orders_are_uniform_permutations() -> None:
    drawn = Counter(tuple(random_order(3).tolist()) for _ in range(3000))
    assert len(drawn) == 6
    assert stats.chisquare(list(drawn.values())).pvalue > ALARM
