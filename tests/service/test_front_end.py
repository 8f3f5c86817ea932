"""The client's features are those of the model in the clear, spoken at once or bit by bit."""

from typing import Any

import numpy as np
import torch

from ppspeech.audio import Mfcc
from ppspeech.service.client.words import FrontEnd
from ppspeech.service.export import Deployment
from ppspeech.service.server.words import ServedWords
from tests.service.voices import CLASSES, RATE, released, voice


def test_statistics_are_scaled_as_the_classifier_does(tmp_path: Any) -> None:
    bundle = released(tmp_path / "classes", CLASSES)
    model: Any = bundle.model
    model.mean.normal_(generator=torch.Generator().manual_seed(0))
    model.std.fill_(0.05)  # so that the radius clips
    served = ServedWords.of("classes", bundle, Deployment())
    vector = FrontEnd(served.offer.terms).frames(voice(0), RATE)
    assert vector.shape == (1, served.offer.terms.shape.dimensions)
    scores = served.offer.terms.shape.frame_monomials(vector) @ served.models.weights
    frames = Mfcc(bundle.mfcc)(voice(0))
    with torch.no_grad():
        expected = bundle.model(frames.features, frames.lengths).numpy()
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
