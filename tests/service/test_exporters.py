"""Exported models score as the modules they come from; what cannot be served is refused by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ppspeech.audio import LIMIT, MfccConfig, in_usual_range, usual_range
from ppspeech.errors import ModelError, RangeError
from ppspeech.models import (
    DiscreteEmission,
    GaussianEmission,
    HiddenMarkovModel,
    LargeMarginHmm,
    TableClassifier,
    floored,
    left_right,
)
from ppspeech.models.hmm.topology import Topology
from ppspeech.models.linear import HuberSvm, LogisticRegression, SoftmaxRegression
from ppspeech.models.margin.gaussians import LargeMarginGaussians
from ppspeech.protocols.scores import RAREST
from ppspeech.service.export import EXPORTERS, Deployment, export_words
from tests.protocols.word_reference import plain_scores
from tests.service.voices import FAR, WHOLE, released

LABELS = ("no", "yes", "perhaps")


def made_bank(topology: Topology, seed: int = 0, **emission: Any) -> HiddenMarkovModel:
    torch.manual_seed(seed)
    bank = HiddenMarkovModel(topology, GaussianEmission(3, topology.states, 4, dtype=torch.float64, **emission))
    with torch.no_grad():
        for parameter in bank.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return bank


RING = Topology(
    ((True, True, False), (False, True, True), (True, False, True)), (True, False, True), (False, True, True)
)


@pytest.mark.parametrize(
    "topology", [left_right(3), left_right(4, skips=1, must_finish=True), RING], ids=["a", "b", "c"]
)
@pytest.mark.parametrize(
    "emission",
    [{}, {"covariance": "diagonal"}, {"covariance": "spherical"}, {"covariance": "tied"}, {"components": 3}],
    ids=str,
)
def test_word_models_score_as_the_bank(topology: Topology, emission: dict[str, Any]) -> None:
    bank = made_bank(topology, **emission)
    x, lengths = torch.randn(4, 9, 4, dtype=torch.float64), torch.tensor([9, 7, 4, 5])
    with torch.no_grad():
        expected = {"forward": bank(x, lengths).numpy()}
        if not emission.get("components"):
            expected["viterbi"] = bank.best_path(x, lengths).score.numpy()
    for operation, scores in expected.items():
        models = export_words("keyword_hmm", bank, LABELS, Deployment(frames=9, operation=operation))
        for at, length in enumerate(lengths.tolist()):
            np.testing.assert_allclose(plain_scores(models, x[at, :length].numpy()), scores[at], atol=1e-6)


def test_large_margin_words_score_as_the_module() -> None:
    model = LargeMarginHmm.from_hmm(made_bank(left_right(3)).float())
    x, lengths = torch.randn(2, 8, 4), torch.tensor([8, 6])
    models = export_words("large_margin_keyword", model, LABELS, Deployment(frames=8))
    with torch.no_grad():
        expected = model(x, lengths).numpy()
    for at, length in enumerate(lengths.tolist()):
        np.testing.assert_allclose(plain_scores(models, x[at, :length].numpy()), expected[at], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("components", [1, 2])
def test_large_margin_classes_score_as_the_module(components: int) -> None:
    torch.manual_seed(1)
    model = LargeMarginGaussians(3, 5, components=components, psd="projection", radius=1.0, constant=0.5)
    phi = torch.randn(3, components, 6, 6)
    model.set_phi_(phi @ phi.mT)
    x = torch.randn(7, 5) / 10
    models = export_words("large_margin_table", TableClassifier(model), LABELS)
    got = np.concatenate([plain_scores(models, each[None].numpy())[None] for each in x])
    np.testing.assert_allclose(got, model.scores(x).detach().numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("model", "labels"),
    [(LogisticRegression(5), LABELS[:2]), (HuberSvm(5), LABELS[:2]), (SoftmaxRegression(5, 3), LABELS)],
    ids=lambda value: type(value).__name__,
)
def test_linear_models_decide_as_the_module(model: Any, labels: tuple[str, ...]) -> None:
    torch.manual_seed(2)
    model.weight.data.normal_()
    x = torch.randn(20, 5)
    if model.radius is not None:
        x = x * (model.radius / x.norm(dim=-1, keepdim=True).clamp_min(model.radius))
    models = export_words("linear_table", TableClassifier(model), labels)
    got = [int(plain_scores(models, each[None].numpy()).argmax()) for each in x]
    assert got == model.predict(x).tolist()


def test_the_garbage_model_wins_where_no_word_fits() -> None:
    bank = made_bank(left_right(3))
    models = export_words("keyword_hmm", bank, LABELS, Deployment(frames=9, reject=True))
    mean = bank.emission.gaussians.mean[1].detach().numpy().repeat(2, axis=0)
    assert plain_scores(models, mean).argmax() == 1
    stranger = 3 * np.random.default_rng(0).normal(size=(9, 4))
    assert plain_scores(models, stranger).argmax() == 3
    easier = export_words("keyword_hmm", bank, LABELS, Deployment(frames=9, reject=True, garbage=-100.0))
    assert plain_scores(easier, stranger).argmax() < 3


def test_what_cannot_be_served_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match="a minimax_filter cannot be served encrypted"):
        export_words("minimax_filter", nn.Linear(2, 3), LABELS)
    with pytest.raises(ModelError, match="symbols"):
        export_words("keyword_hmm", HiddenMarkovModel(left_right(3), DiscreteEmission(3, 3, 5)), LABELS)
    margin = LargeMarginHmm.from_hmm(made_bank(left_right(3)).float())
    with pytest.raises(ModelError, match="garbage"):
        export_words("large_margin_keyword", margin, LABELS, Deployment(reject=True))
    with pytest.raises(ModelError, match="garbage"):
        export_words("linear_table", TableClassifier(SoftmaxRegression(5, 3)), LABELS, Deployment(reject=True))
    with pytest.raises(ModelError, match="already"):
        EXPORTERS.register("keyword_hmm")(lambda module, labels, deployment: None)


@pytest.mark.parametrize("mfcc", [WHOLE, FAR], ids=["normalized", "not"])
def test_frames_are_clipped_alike_in_the_clear_and_encrypted(mfcc: MfccConfig, tmp_path: Path) -> None:
    """Far beyond the limit too, where a score without limits is another."""
    bundle = released(tmp_path / "words", mfcc=mfcc)
    center, spread = map(torch.from_numpy, usual_range(mfcc))
    frames = center + 6 * spread * torch.randn(30, mfcc.features, generator=torch.Generator().manual_seed(0))
    models = export_words(bundle.config.type, bundle.model, bundle.labels, Deployment(frames=30), mfcc)
    assert models.shape.limit == LIMIT
    clear = bundle.recognizer.score([frames.float()])[0].numpy()
    np.testing.assert_allclose(plain_scores(models, in_usual_range(frames, mfcc)), clear, rtol=1e-4)
    with torch.no_grad():
        free = bundle.model(frames.float().unsqueeze(0), torch.tensor([30]))[0].numpy()
    assert not np.allclose(free, clear, rtol=1e-2)


def test_the_limit_grows_with_the_model_or_it_is_refused(tmp_path: Path) -> None:
    bundle = released(tmp_path / "words")
    gaussians: Any = bundle.model.emission.gaussians  # type: ignore[union-attr]
    gaussians.mean[0, 0, 0] = 25.0
    assert bundle.recognizer.limit == 32
    assert export_words("keyword_hmm", bundle.model, bundle.labels, mfcc=WHOLE).shape.limit == 32
    chosen = export_words("keyword_hmm", bundle.model, bundle.labels, Deployment(limit=5.0), WHOLE)
    assert chosen.shape.limit == 5
    gaussians.mean[0, 0, 0] = -200.0
    with pytest.raises(ModelError, match=r"256 spreads .* cmvn utterance or public"):
        export_words("keyword_hmm", bundle.model, bundle.labels, mfcc=WHOLE)


def test_frames_by_default_are_those_of_the_models_own_words() -> None:
    """Words of five states: 12 frames each on average, and one of 40 each; the last state is never left."""
    bank = HiddenMarkovModel(left_right(5), GaussianEmission(3, 5, 4))
    stays = torch.tensor([1 - 1 / 12, 1 - 1 / 12, 1 - 1 / 40]).logit().view(3, 1)
    bank.transition_logits.data.diagonal(dim1=-2, dim2=-1).copy_(stays.expand(3, 5))
    assert export_words("keyword_hmm", bank, LABELS).shape.frames == 300  # 200 and a deviation of 88, in steps of 50
    assert export_words("keyword_hmm", bank, LABELS, Deployment(frames=70)).shape.frames == 70
    short = made_bank(left_right(3))
    assert export_words("keyword_hmm", short, LABELS).shape.frames == 100


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"frames": 0}, "frames must lie in"),
        ({"limit": 0.0}, "the limit in"),
        ({"limit": 500.0}, "the limit in"),
        ({"bits": 40}, "12 to 32 bits"),
        ({"operation": "both"}, "not known"),
    ],
    ids=str,
)
def test_choices_that_cannot_be_are_refused_before_anyone_is_served(choice: dict[str, Any], words: str) -> None:
    with pytest.raises(RangeError, match=words):
        export_words("keyword_hmm", made_bank(left_right(3)), LABELS, Deployment(**choice))


def test_what_is_rare_is_the_same_in_the_clear_and_encrypted() -> None:
    assert floored.RAREST == RAREST
