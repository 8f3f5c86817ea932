"""The client's features are those of the model in the clear, spoken at once or bit by bit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ppspeech.audio import Mfcc, MfccConfig
from ppspeech.bundle import Bundle
from ppspeech.errors import AudioError
from ppspeech.service.client.front_end import FrontEnd, LiveFrames, waits_for_the_end
from ppspeech.service.export import Deployment
from ppspeech.service.server.words import ServedWords
from tests.service.voices import CLASSES, LIVE, RATE, WHOLE, released, voice


@pytest.mark.parametrize("chunk", [77, 160, 1_000, 10_000])
@pytest.mark.parametrize("changes", [{}, {"cmvn": "none"}, {"deltas": 0, "cmvn": "none"}, {"delta_reach": 3}], ids=str)
def test_live_features_are_those_of_the_whole(chunk: int, changes: dict[str, Any]) -> None:
    config, sound = replace(LIVE, **changes), voice(3, 0.12)
    live = LiveFrames(config)
    given = [live.feed(piece) for piece in sound.split(chunk)]
    early = sum(len(each) for each in given)
    frames = np.concatenate([*given, live.finish()])
    np.testing.assert_allclose(frames, Mfcc(config)(sound).features[0].numpy(), atol=1e-5)
    assert early == len(frames) - config.deltas * config.delta_reach  # only what may still change waits


@pytest.mark.parametrize("config", [WHOLE, replace(LIVE, level="peak"), replace(LIVE, vad_db=30.0)], ids=str)
def test_features_that_wait_are_refused_by_name(config: MfccConfig) -> None:
    assert waits_for_the_end(config) is not None
    with pytest.raises(AudioError, match="not known before the end"):
        LiveFrames(config)
    assert waits_for_the_end(LIVE) is None


def test_statistics_are_scaled_as_the_classifier_does(tmp_path: Any) -> None:
    bundle = released(tmp_path / "classes", CLASSES)
    model: Any = bundle.model
    model.mean.normal_(generator=torch.Generator().manual_seed(0))
    model.std.fill_(0.05)  # so that the radius clips
    served = ServedWords.of("classes", bundle, Deployment())
    vector = FrontEnd(served.offer).frames(voice(0), RATE)
    assert vector.shape == (1, served.offer.shape.dimensions)
    scores = served.offer.shape.frame_monomials(vector) @ served.models.weights
    frames = Mfcc(bundle.mfcc)(voice(0))
    with torch.no_grad():
        expected = bundle.model(frames.features, frames.lengths).numpy()
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)


def test_rates_are_changed(bundles: dict[str, Bundle]) -> None:
    offer = ServedWords.of("whole", bundles["whole"], Deployment()).offer
    front = FrontEnd(offer)
    time = torch.arange(8_000) / 8_000
    slow, fast = torch.sin(2_000 * time), torch.sin(2_000 * torch.arange(16_000) / 16_000)
    assert len(front.waveform(slow, 8_000)) == 16_000
    np.testing.assert_allclose(front.waveform(slow, 8_000)[2_000:6_000], fast[2_000:6_000], atol=0.02)
