"""Identification with mixtures: the best speaker of plain scores, by name, and dummies that never win."""

import numpy as np
import pytest

from ppspeech.crypto.message_kinds import Kind as CryptoKind
from ppspeech.errors import ModelError, RangeError
from ppspeech.protocols import Party, run_in_memory
from ppspeech.protocols.scores.mixture import MixturePlan, Mixtures
from ppspeech.protocols.speakers.identify import (
    Identification,
    Identity,
    arrange_mixtures,
    client,
    identify_as_client,
    identify_as_server,
    mixture_server,
)
from tests.protocols.speaker_meeting import ask

PARTS, D, SPEAKERS = 4, 3, 3
generator = np.random.default_rng(7)
BACKGROUND = Mixtures(
    np.full((1, PARTS), -np.log(PARTS)),
    generator.normal(size=(1, PARTS, D)),
    generator.uniform(0.5, 1.5, size=(1, PARTS, D)),
)
SPEECH = Mixtures(
    np.repeat(BACKGROUND.log_weights, SPEAKERS, 0),
    BACKGROUND.means + generator.normal(size=(SPEAKERS, PARTS, D)),
    np.repeat(BACKGROUND.covariances, SPEAKERS, 0),
)
NAMES = ["Ada", "Grace", "Hedy"]


def job_of(places: int) -> Identification:
    return Identification(MixturePlan(16, D, PARTS, places, norm=10.0, reach=10), "client", 7)


def speech(speaker: int, frames: int) -> np.ndarray:
    parts = generator.integers(PARTS, size=frames)
    return SPEECH.means[speaker, parts] + 0.5 * generator.normal(size=(frames, D))


def average(mixtures: Mixtures, frames: np.ndarray) -> np.ndarray:
    monomials = np.concatenate([frames**2, frames, np.ones((len(frames), 1))], axis=1)
    return np.logaddexp.reduce(np.einsum("tf,fmk->tmk", monomials, mixtures.weights("diagonal")), axis=-1).mean(0)


@pytest.mark.parametrize("places", [3, 5])
def test_the_best_name_or_nobody(places: int) -> None:
    job = job_of(places)
    enrolled = arrange_mixtures(job, BACKGROUND, SPEECH, NAMES, 0.3)
    seen = set()
    for trial in range(8):
        frames = speech(trial % 3, 12) if trial < 5 else 0.5 * generator.normal(size=(12, D))
        scores = average(SPEECH, frames) - average(BACKGROUND, frames)
        close = np.sort(np.append(scores, 0.3))
        if np.diff(close).min() < 0.05:
            continue
        wanted = Identity(NAMES[int(scores.argmax())] if scores.max() >= 0.3 else None)
        one, other, ours, _ = ask(
            lambda met, x=frames: identify_as_client(met, job, x),
            lambda met: identify_as_server(met, job, enrolled),
        )
        assert (one, other) == (wanted, None)
        seen.add(wanted)
    assert len(seen) > 1
    sizes = sum(size for _, kind, size in ours.shape() if kind != CryptoKind.RESUME)
    assert sizes == job.cost.total_bytes + job.plan.product.total_bytes


def test_bad_input_is_refused() -> None:
    job = job_of(3)
    with pytest.raises(ModelError, match="places"):
        arrange_mixtures(job_of(2), BACKGROUND, SPEECH, NAMES, 0.0)
    with pytest.raises(ModelError, match="as many names, got 2"):
        arrange_mixtures(job, BACKGROUND, SPEECH, NAMES[:2], 0.0)
    with pytest.raises(ModelError, match="dummies"):
        arrange_mixtures(job, BACKGROUND, SPEECH, NAMES, -64.0)
    with pytest.raises(ModelError, match="no T-norm"):
        Identification(MixturePlan(16, D, PARTS, 3, 2))
    enrolled = arrange_mixtures(job, BACKGROUND, SPEECH, NAMES, 0.0)
    with pytest.raises(ModelError, match="was made for"):
        identify_as_server(None, job_of(4), enrolled)  # type: ignore[arg-type]
    with pytest.raises(RangeError):
        identify_as_client(None, job, np.zeros((17, D)))  # type: ignore[arg-type]


def test_it_runs_by_name_over_a_bare_channel() -> None:
    public = {"frames": 16, "dimensions": D, "components": PARTS, "models": 3, "norm": 10.0, "reach": 10}
    given = [{name: field.tolist() for name, field in vars(each).items()} for each in (BACKGROUND, SPEECH)]
    frames = np.tile(SPEECH.means[2], (4, 1))
    said = run_in_memory(
        [
            ("client", lambda party: client(party, frames.tolist(), **public)),
            ("server", lambda party: mixture_server(party, *given, NAMES, -9.0, **public)),
        ]
    )
    assert said == ["Hedy", "the other party knows"]
    with pytest.raises(ModelError, match="log_weights"):
        mixture_server(Party("server", {}), {"means": [[0.0]]}, {}, NAMES, 0.0, **public)
