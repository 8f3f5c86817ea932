"""Principal directions where each party has some of the features."""

from typing import Any

import numpy as np
import pytest

from ppspeech.crypto.message_kinds import Kind as CryptoKind
from ppspeech.errors import RangeError
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols.eigen.two import EigenJob
from ppspeech.protocols.eigen.vertical import alice, block_plan, bob
from tests.protocols.alice_and_bob import as_alice, as_bob
from tests.protocols.eigen_problems import problem, spectrum, turned


@pytest.mark.parametrize(("left", "right", "ratio"), [(1, 2, 2.0), (4, 3, 1.2), (20, 19, 1.1)])
def test_the_directions_of_all_features(left: int, right: int, ratio: float) -> None:
    (frames,), directions = problem(spectrum(left + right, ratio), seed=left, parties=1)
    options: dict[str, Any] = {"features": (left, right), "samples": len(frames), "bound": 100.0}
    one, other = run_together(
        lambda c: alice(as_alice(c), frames[:, :left], **options), lambda c: bob(as_bob(c), frames[:, left:], **options)
    )
    assert (one == other).all()
    assert turned(one[0], directions[0]) < 1e-5


def test_features_that_only_the_parties_together_see() -> None:
    """The first direction lies across both: each party's own moments are the same in all directions."""
    rng = np.random.default_rng(1)
    common = rng.normal(size=(200, 2))
    noise = rng.normal(size=(200, 4)) * 0.3
    frames = np.concatenate([common, common], axis=1) + noise
    frames[:, 1] *= 0.9
    options: dict[str, Any] = {"features": (2, 2), "samples": 200, "bound": 1e4}
    found, _ = run_together(
        lambda c: alice(as_alice(c), frames[:, :2], **options), lambda c: bob(as_bob(c), frames[:, 2:], **options)
    )
    assert turned(found[0], np.linalg.svd(frames)[2][0]) < 1e-6


def test_the_transcript_is_that_of_the_formula() -> None:
    (frames,), _ = problem(spectrum(5, 2.0), seed=3, parties=1)
    options: dict[str, Any] = {"features": (2, 3), "samples": len(frames), "bound": 100.0, "squarings": 2}
    here, there = memory_pair()
    kept = Transcript(here)
    run_together(
        lambda c: alice(as_alice(kept), frames[:, :2], **options),
        lambda c: bob(as_bob(c), frames[:, 2:], **options),
        (here, there),
    )
    setup = {CryptoKind.BASE_POINT, CryptoKind.BASE_REPLY, CryptoKind.BASE_COLUMNS, CryptoKind.RESUME}
    total = sum(entry.size for entry in kept.entries if entry.kind not in setup)
    job = EigenJob(5, squarings=2)
    assert total == job.cost.total_bytes + sum(job.lattice_bytes) + block_plan((2, 3), len(frames)).total_bytes


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        (np.ones((4, 3)), "agreed shape"),
        (np.ones((5, 2)), "agreed shape"),
        (np.full((4, 2), np.nan), "finite"),
        (np.full((4, 2), 9.0), "above the public bound"),
    ],
)
@pytest.mark.parametrize("party", [alice, bob])
def test_bad_input_is_refused_before_anything_is_sent(party: Any, frames: Any, said: str) -> None:
    here, _ = memory_pair()
    kept = Transcript(here)
    with pytest.raises(RangeError, match=said):
        party(kept, frames, features=(2, 2), samples=4, bound=10.0)
    with pytest.raises(RangeError, match="bound"):
        party(kept, np.ones((4, 2)), features=(2, 2), samples=4, bound=-1.0)
    assert not kept.entries
