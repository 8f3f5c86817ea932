"""The published split of a network: right classes, and all weights to who has the key; of shares, none."""

from typing import Any

import numpy as np
import pytest

from ppspeech.errors import PrivacyError, RangeError
from ppspeech.evidence.bench.network import made_frames, made_network
from ppspeech.evidence.experiments import gelu_net as experiment
from ppspeech.evidence.published.attacks.gelu_net import correlation, recovered, steal_published, steal_shared
from ppspeech.evidence.published.protocols import gelu_net
from ppspeech.network import memory_pair, run_together
from ppspeech.protocols import NOBODY, Kind, Party
from tests.evidence.published.views import DEMO, demo_key, run_recorded, seen

SIZES = (6, 5, 4, 3)
TERMS: dict[str, Any] = {"sizes": list(SIZES), "frames": 7, "key_bits": 512, "insecure_demo": True}
WITHIN = 1e-4


def network() -> Any:
    return made_network(7, SIZES)


def weights(own: Any) -> dict[str, Any]:
    return {"matrices": [each.tolist() for each in own.matrices], "biases": [each.tolist() for each in own.biases]}


@pytest.mark.parametrize("strict", [False, True])
def test_classes_are_those_of_the_clear(strict: bool) -> None:
    own, frames, terms = network(), made_frames(7, 6), TERMS | {"strict": strict}
    classes, _ = run_together(
        lambda c: gelu_net.classify(Party("alice", {"bob": c}), frames.tolist(), **terms),
        lambda c: gelu_net.offer(Party("bob", {"alice": c}), weights(own), **terms),
    )
    assert classes == own.scores(own.shape.clipped(frames)).argmax(axis=1).tolist()


def test_alice_sees_every_pre_activation() -> None:
    own, frames = network(), made_frames(7, 6)

    def follow(layer: int, before: Any) -> Any:
        return np.maximum(before, 0) if layer else frames

    _, _, record = run_recorded(
        lambda c: gelu_net.alice(c, demo_key(), SIZES, follow, **DEMO),
        lambda c: gelu_net.bob(c, own.matrices, own.biases, frames=7, **DEMO),
    )
    values = frames
    for layer, answered in enumerate(seen(record, Kind.PRE_ACTIVATIONS)):
        values = values @ own.matrices[layer] + own.biases[layer]
        assert np.abs(np.array(answered).reshape(values.shape) / 1e12 - values).max() < 1e-4
        values = np.maximum(values, 0)


def test_all_weights_of_the_published_split_are_read() -> None:
    own = network()
    found, _ = run_together(
        lambda c: steal_published(c, demo_key(), SIZES, **DEMO),
        lambda c: gelu_net.bob(c, own.matrices, own.biases, frames=7, **DEMO),
    )
    assert recovered(found, own.matrices, own.biases, WITHIN) == 1.0
    assert correlation(found, own.matrices) > 0.999999


def test_no_weight_is_read_from_shares() -> None:
    """The same questions: what comes back is uniform, and says nothing. 1,440 weights, five deviations."""
    sizes = (40, 24, 16, 6)
    own = made_network(41, sizes)
    found, _ = run_together(lambda c: steal_shared(c, own.shape), lambda c: experiment.serve(c, own))
    count = sum(each.size for each in own.matrices)
    assert recovered(found, own.matrices, own.biases, WITHIN) < 0.01
    assert abs(correlation(found, own.matrices)) < 5 / np.sqrt(count)


def test_the_experiment_says_so(tmp_path: Any) -> None:
    figures = {figure.metric: figure.value for figure in experiment.run(True, tmp_path)}
    assert figures["gelu_net.weights_recovered"] == 1.0
    assert figures["gelu_net.ours.weights_recovered"] < 0.02


def test_what_is_not_agreed_on_is_refused() -> None:
    own = network()
    with pytest.raises(RangeError, match="7 frames of 6"):
        gelu_net.classify(Party("alice", {"bob": NOBODY}), [[0.0] * 5] * 7, **TERMS)
    with pytest.raises(RangeError, match="layers of"):
        gelu_net.offer(Party("bob", {"alice": NOBODY}), weights(own), **TERMS | {"sizes": [6, 5, 3]})
    with pytest.raises(PrivacyError, match="protects nothing"):
        gelu_net.alice(memory_pair()[0], demo_key(), SIZES, lambda *_: np.zeros((7, 6)))
