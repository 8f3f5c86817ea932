"""A public encoder: the same numbers alone and in a batch, live and whole; by hand; and what is none."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ppspeech.audio import LiveFrames, Mfcc, MfccConfig, PublicEncoder, usual_range
from ppspeech.audio.encoder import Encoder, with_neighbors
from ppspeech.audio.frames import Frames
from ppspeech.errors import AudioError

LAYERS = [
    (torch.randn(6, 4 * 5, generator=torch.Generator().manual_seed(1)), torch.arange(6.0) / 3),
    (torch.randn(3, 6, generator=torch.Generator().manual_seed(2)), torch.arange(3.0)),
]
SMALL = PublicEncoder.of(LAYERS, 4)
LIVE = MfccConfig(
    cepstra=4, deltas=0, cmvn="public", level="keep", public_mean=(0.0,) * 4, public_std=(5.0,) * 4, encoder=SMALL
)


def slow(features: torch.Tensor) -> torch.Tensor:
    """One frame after the other, in float64."""
    (first, b), (last, c) = ((w.double(), k.double()) for w, k in LAYERS)
    rows = []
    for t in range(len(features)):
        beside = torch.cat([features[min(max(t + off, 0), len(features) - 1)] for off in range(-2, 3)]).double()
        rows.append(last @ (first @ beside + b).relu() + c)
    return torch.stack(rows)


def test_an_encoder_is_its_formula_whatever_it_is_batched_with() -> None:
    assert (SMALL.reach, SMALL.widths, SMALL.outputs) == (2, (4, 6, 3), 3)
    batch, lengths = torch.randn(3, 9, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([9, 4, 1])
    found, _ = Encoder(SMALL, torch.float64)(Frames(batch.double(), lengths))
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(found[row, :length], slow(batch[row, :length]), rtol=1e-3, atol=1e-3)
        assert not found[row, length:].any()
    assert with_neighbors(batch, lengths, 0).shape == batch.shape


def test_features_are_the_encoders_and_live_ones_are_those_of_the_whole() -> None:
    assert (LIVE.features, LIVE.computed) == (3, 4)
    assert [len(part) for part in usual_range(LIVE)] == [3, 3]
    sound = torch.randn(6_000, generator=torch.Generator().manual_seed(3))
    whole = Mfcc(LIVE)(sound).features[0]
    plain = Mfcc(replace(LIVE, encoder=None))(sound).features[0]
    torch.testing.assert_close(whole.double(), slow(plain), rtol=1e-3, atol=1e-2)
    live = LiveFrames(LIVE)
    pieces = [live.feed(piece) for piece in torch.split(sound, 700)] + [live.finish()]
    np.testing.assert_allclose(np.concatenate(pieces), whole.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reach": -1}, "frames ahead"),
        ({"reach": 33}, "frames ahead"),
        ({"widths": (4,)}, "1 to 8 layers"),
        ({"widths": (4, 0, 3)}, "1 to 8 layers"),
        ({"widths": (4, 10**6, 3)}, "1 to 8 layers"),
        ({"widths": (4, 6, 6, 3)}, "have 189 numbers, got 147"),
        ({"widths": (4, 512, 60), "numbers": (0.0,) * 41_532}, "have 41,532 numbers.*at most 30,000"),
        ({"numbers": SMALL.numbers[:-1]}, "147 numbers, got 146"),
        ({"numbers": (*SMALL.numbers[:-1], float("nan"))}, "finite"),
        ({"numbers": (*SMALL.numbers[:-1], 1e9)}, "finite"),
    ],
)
def test_what_is_no_encoder_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(AudioError, match=message):
        replace(SMALL, **changes)  # type: ignore[arg-type]


def test_an_encoder_of_other_features_is_refused() -> None:
    with pytest.raises(AudioError, match="takes 4 numbers a frame, and there are 39"):
        MfccConfig(encoder=SMALL)
