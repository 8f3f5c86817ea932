"""Margins between sequences against a list of all of them."""

import itertools
import math

import pytest
import torch

from ppspeech.errors import ModelError
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.baum_welch import baum_welch, flat_start_
from ppspeech.models.hmm.emissions import DiscreteEmission, GaussianEmission
from ppspeech.models.hmm.topology import left_right
from ppspeech.models.margin.hmm import LargeMarginHmm, train_large_margin

WORDS, STATES = 3, 2


def bank() -> HiddenMarkovModel:
    generator = torch.Generator().manual_seed(3)
    model = HiddenMarkovModel(left_right(STATES), GaussianEmission(WORDS, STATES, 2, covariance="full"))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=generator))
    return model


def utterances() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    return torch.randn(5, 4, 2, generator=generator), torch.tensor([4, 3, 1, 2, 4]), torch.tensor([0, 1, 2, 0, 1])


def all_paths(model: LargeMarginHmm, frames: torch.Tensor) -> dict[tuple[int, tuple[int, ...]], float]:
    """The score of every path of every word, from the definition."""
    bank_phi = model.phi().detach()
    transitions = model._terms(frames.unsqueeze(0), torch.tensor([len(frames)]))[1].detach()
    scores = {}
    for word in range(WORDS):
        for path in itertools.product(range(STATES), repeat=len(frames)):
            if path[0] != 0 or any(b - a not in (0, 1) for a, b in itertools.pairwise(path)):
                continue
            total = 0.0
            for x, state in zip(frames, path, strict=True):
                z = torch.cat([x, torch.ones(1)])
                total -= float(z @ bank_phi[word, state] @ z)
            total += sum(float(transitions[word, a, b]) for a, b in itertools.pairwise(path))
            scores[word, path] = total
    return scores


def soft_max(values: list[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))


def hinge(u: float, h: float) -> float:
    return 0.0 if u < -h else u if u > h else (u + h) ** 2 / (4 * h)


def test_losses_equal_the_sum_over_all_paths() -> None:
    model = LargeMarginHmm.from_hmm(bank(), margin=0.7, width=0.9)
    features, lengths, labels = utterances()
    by_word = model.loss(features, lengths, labels, level="word")
    by_state = model.loss(features, lengths, labels, level="state")
    alignment = model.align(features, lengths, labels)
    scores = model(features, lengths)
    for i, (length, label) in enumerate(zip(lengths.tolist(), labels.tolist(), strict=True)):
        paths = all_paths(model, features[i, :length])
        words = [soft_max([v for (w, _), v in paths.items() if w == word]) for word in range(WORDS)]
        torch.testing.assert_close(scores[i].detach(), torch.tensor(words))
        rivals = soft_max([words[word] + 0.7 * length for word in range(WORDS) if word != label])
        expected = hinge(rivals - words[label], 0.9) / length
        assert by_word[i].item() == pytest.approx(expected, abs=1e-5)
        right = max((p for p in paths if p[0] == label), key=lambda p: paths[p])
        assert tuple(alignment[i, :length].tolist()) == right[1]

        def hamming(word: int, path: tuple[int, ...], right=right) -> int:
            return sum((word, a) != (right[0], b) for a, b in zip(path, right[1], strict=True))

        rivals = soft_max([value + 0.7 * hamming(*key) for key, value in paths.items()])
        assert by_state[i].item() == pytest.approx(hinge(rivals - paths[right], 0.9) / length, abs=1e-5)


def test_the_start_decides_like_the_bank_and_is_positive_semidefinite() -> None:
    start = bank()
    model = LargeMarginHmm.from_hmm(start)
    features, lengths, _ = utterances()
    ours, theirs = model(features, lengths).detach(), start(features, lengths).detach()
    shift = (ours - theirs) / lengths.unsqueeze(-1)  # one constant a frame
    torch.testing.assert_close(shift, shift[:1, :1].expand_as(shift), atol=1e-4, rtol=0)
    assert torch.linalg.eigvalsh(model.phi().detach()).min() >= -1e-5


def test_padding_does_not_matter() -> None:
    model = LargeMarginHmm.from_hmm(bank())
    features, lengths, labels = utterances()
    for level in ("word", "state"):
        together = model.loss(features, lengths, labels, level=level)
        for i, length in enumerate(lengths.tolist()):
            alone = model.loss(features[i : i + 1, :length], lengths[i : i + 1], labels[i : i + 1], level=level)
            torch.testing.assert_close(alone[0], together[i])


@pytest.mark.parametrize("level", ["word", "state"])
def test_training_beats_the_maximum_likelihood_start(level: str) -> None:
    # Two words whose frames overlap and are not Gaussian: a heavy common part that maximum likelihood spends
    # itself on, and a small shift that tells them apart.
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(240) % 2
    frames = torch.randn(240, 6, 2, generator=generator)
    frames = frames * torch.where(torch.rand(240, 6, 1, generator=generator) < 0.2, 6.0, 0.5)
    frames[..., 0] += 0.35 * (2 * labels - 1).view(-1, 1)
    lengths = torch.full((240,), 6)
    train, test = slice(0, 120), slice(120, None)
    start = HiddenMarkovModel(left_right(2), GaussianEmission(2, 2, 2, covariance="full"))
    flat_start_(start, frames[train], lengths[train], labels[train])
    baum_welch(start, frames[train], lengths[train], labels[train], iterations=3)
    model = LargeMarginHmm.from_hmm(start, margin=0.3)
    history = train_large_margin(
        model, frames[train], lengths[train], labels[train], level, epochs=60, learning_rate=1e-2
    )
    assert history[-1] < history[0]
    assert torch.linalg.eigvalsh(model.phi().detach()).min() >= -1e-5

    def right(scores: torch.Tensor) -> int:
        return int((scores.argmax(-1) == labels[test]).sum())

    assert right(model(frames[test], lengths[test])) > right(start(frames[test], lengths[test]))


def test_refusals() -> None:
    with pytest.raises(ModelError, match="models >= 2"):
        LargeMarginHmm(left_right(2), 1, 3)
    with pytest.raises(ModelError, match="margin"):
        LargeMarginHmm(left_right(2), 2, 3, margin=0.0)
    with pytest.raises(ModelError, match="one Gaussian"):
        LargeMarginHmm.from_hmm(HiddenMarkovModel(left_right(2), DiscreteEmission(2, 2, 4)))
    model = LargeMarginHmm(left_right(2), 2, 2)
    with pytest.raises(ModelError, match="level"):
        model.loss(*utterances(), level="frame")
    features, lengths, labels = utterances()
    with pytest.raises(ModelError, match="epochs"):
        train_large_margin(model, features, lengths, labels % 2, epochs=0)
    with pytest.raises(ModelError, match="at least one frame"):
        train_large_margin(model, features, lengths * 0, labels % 2)
