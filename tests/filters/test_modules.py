import math

import pytest
import torch
from torch import nn

from ppspeech.errors import ModelError
from ppspeech.filters import (
    ClassTask,
    LinearFilter,
    Mlp,
    SigmoidNetwork,
    Standardized,
    TemporalConvolution,
    pretrain_,
    supervise_,
)
from ppspeech.filters.modules import Scaling
from tests.filters.games import people

VECTORS = {"linear": LinearFilter(5, 2), "sigmoid": SigmoidNetwork(5, 4, 2), "mlp": Mlp(5, [4, 3], 2)}


@pytest.mark.parametrize("name", [*VECTORS, "convolution"])
def test_shapes_of_frames_and_vectors(name: str) -> None:
    module = TemporalConvolution(5, 4, 2) if name == "convolution" else VECTORS[name]
    assert module.features == 2
    assert module(torch.randn(3, 7, 5)).shape == (3, 7, 2)
    if name != "convolution":
        frames = torch.randn(3, 7, 5)
        torch.testing.assert_close(module(frames)[1, 4], module(frames[1, 4]))


@pytest.mark.parametrize("name", [*VECTORS, "convolution"])
def test_filters_hold_to_the_device_they_are_on(name: str) -> None:
    """On the meta device there are shapes and no values: nothing can depend on one."""
    module = TemporalConvolution(5, 4, 2) if name == "convolution" else VECTORS[name]
    out = module.to("meta")(torch.zeros(3, 7, 5, device="meta"))
    assert out.device.type == "meta"
    assert out.shape == (3, 7, 2)
    VECTORS.update({"linear": LinearFilter(5, 2), "sigmoid": SigmoidNetwork(5, 4, 2), "mlp": Mlp(5, [4, 3], 2)})


def test_a_convolution_sees_its_neighborhood_and_no_more() -> None:
    module = TemporalConvolution(3, 4, 2, kernel=3)
    frames = torch.randn(1, 20, 3)
    changed = frames.clone()
    changed[0, 10] += 1
    moved = (module(changed) - module(frames)).abs().sum(-1)[0] > 1e-6
    assert set(moved.nonzero().flatten().tolist()) <= set(range(8, 13))
    assert moved[10]


@pytest.mark.parametrize("kind", ["linear", "sigmoid"])
def test_undoing_the_scaling_gives_the_same_filter_for_raw_inputs(kind: str) -> None:
    raw = 50 * torch.randn(40, 5, dtype=torch.float64) + 3
    raw[:, 2] = 4.0  # never changes
    scaling = Scaling(raw)
    learned = (LinearFilter(5, 2) if kind == "linear" else SigmoidNetwork(5, 4, 2)).double()
    whole = scaling.undo(learned, torch.float64)
    assert isinstance(whole, LinearFilter if kind == "linear" else Standardized)
    torch.testing.assert_close(whole(raw), learned(scaling(raw)))
    standard = scaling(raw)
    torch.testing.assert_close(standard.mean(0), torch.zeros(5).double(), atol=1e-9, rtol=0)
    torch.testing.assert_close(standard[:, 0].std(correction=0), torch.ones(()).double())
    assert standard[:, 2].eq(0).all()
    restored = type(whole)(5, 2) if kind == "linear" else Standardized(SigmoidNetwork(5, 4, 2), scaling)
    restored.double().load_state_dict(whole.state_dict())
    torch.testing.assert_close(restored(raw), whole(raw))


def test_pretraining_restores_better_than_the_mean() -> None:
    x, _, _ = people(200)
    x = (x - x.mean(0)) / x.std(0)
    torch.manual_seed(0)
    network = SigmoidNetwork(6, 8, 4).double()
    few, _ = pretrain_(network, x, steps=5)
    many, second = pretrain_(network, x, steps=300)
    assert many < 0.6 < few  # the mean's error is 1
    assert second < 0.05


def test_supervision_trains_filter_and_model_together() -> None:
    x, _, task = people(200)
    torch.manual_seed(0)
    network = SigmoidNetwork(6, 4, 2).double()
    asked = ClassTask(task, 2, 1e-4)
    before = float(asked.best_response(network(x).detach()).loss)
    after = supervise_(network, x, [asked], steps=200)
    assert after < before / 2
    assert float(asked.best_response(network(x).detach()).loss) <= after + 1e-6


def test_what_is_refused() -> None:
    with pytest.raises(ModelError, match="sizes"):
        LinearFilter(0, 2)
    with pytest.raises(ModelError, match="kernel must be odd"):
        TemporalConvolution(3, 4, 2, kernel=4)
    for inputs in (
        torch.zeros(1, 3),
        torch.zeros(4),
        torch.zeros(4, 3, dtype=torch.int64),
        torch.full((4, 3), math.nan),
    ):
        with pytest.raises(ModelError, match="inputs must be finite"):
            Scaling(inputs)
    with pytest.raises(ModelError, match=r"inputs must be \(n, 6\)"):
        pretrain_(SigmoidNetwork(6, 4, 2), torch.zeros(4, 5))
    with pytest.raises(ModelError, match="corruption"):
        pretrain_(SigmoidNetwork(6, 4, 2), torch.zeros(4, 6), corruption=1.0)
    with pytest.raises(ModelError, match="at least one task"):
        supervise_(nn.Linear(3, 2), torch.zeros(4, 3), [])
