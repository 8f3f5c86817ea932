"""Networks on frames: padded, cut and clipped as stated, and the same for an utterance alone or in a batch."""

import pytest
import torch

from ppspeech.errors import ModelError
from ppspeech.models import FrameLayer, FrameNetwork

LAYERS = (
    FrameLayer(6, width=3, stride=2, activation="gelu"),
    FrameLayer(5, width=2, dilation=2, activation="sigmoid", pool="max", pool_width=2),
)


def made(layers: tuple[FrameLayer, ...] = LAYERS, frames: int = 20) -> FrameNetwork:
    torch.manual_seed(0)
    return FrameNetwork(3, 4, frames, 2.5, layers).eval()


@torch.no_grad()
def test_what_is_beyond_the_end_says_nothing() -> None:
    network, x = made(), torch.randn(3, 30, 4)
    lengths = torch.tensor([30, 20, 7])
    together = network(x, lengths)
    for number, length in enumerate(lengths.tolist()):
        alone = network(x[number : number + 1, :length], torch.tensor([length]))
        assert torch.allclose(together[number], alone[0], atol=1e-6)
    assert torch.allclose(network(x[:1], torch.tensor([30])), network(x[:1, :20], torch.tensor([20])), atol=1e-6)


@torch.no_grad()
def test_frames_are_within_the_radius() -> None:
    network, x = made(), 10 * torch.randn(2, 20, 4)
    lengths = torch.tensor([20, 11])
    norms = network.fitted(x, lengths).norm(dim=-1)
    assert norms.max() <= 2.5 * (1 + 1e-6)
    assert (norms[1, 11:] == 0).all()
    assert torch.allclose(network(x, lengths), network(3 * x, lengths), atol=1e-5)


def test_sizes() -> None:
    network = made()
    assert network.left == LAYERS[1].frames_after(LAYERS[0].frames_after(20))
    assert network.frame_scores(torch.zeros(2, 5, 4), torch.tensor([5, 5])).shape == (2, network.left, 3)
    assert made(()).left == 20
    for layers, frames in ((LAYERS, 5), (LAYERS, 0), (LAYERS, 5_000)):
        with pytest.raises(ModelError, match="none comes out"):
            made(layers, frames)
    with pytest.raises(ModelError, match="outputs"):
        FrameLayer(0)
    with pytest.raises(ModelError, match="pool"):
        FrameLayer(1, pool="max")
