"""Principal directions on shares: right, alike for both, as costly as stated, and silent about everything else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.decomposition import TruncatedSVD

from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind as CryptoKind
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.evidence.published.attacks.eigenvector import recover_moments
from ppspeech.evidence.published.protocols.eigenvector import Seen
from ppspeech.network import Transcript, memory_pair, run_together, socket_pair
from ppspeech.protocols import PROTOCOLS
from ppspeech.protocols.eigen.moments import second_moments
from ppspeech.protocols.eigen.two import EigenJob, alice, bob
from tests.protocols.alice_and_bob import as_alice, as_bob
from tests.protocols.eigen_problems import Reals, problem, spectrum, turned


def run(frames: list[Reals], **options: Any) -> tuple[Reals, Reals]:
    chosen = {"features": frames[0].shape[1], "bound": 100.0} | options
    return run_together(
        lambda c: alice(as_alice(c), frames[0], **chosen), lambda c: bob(as_bob(c), frames[1], **chosen)
    )


@pytest.mark.parametrize("flat", [False, True])
def test_39_features_at_a_ratio_of_1_1(flat: bool) -> None:
    frames, directions = problem(spectrum(39, 1.1, flat=flat), seed=1)
    one, other = run(frames)
    assert (one == other).all()
    assert one.shape == (1, 39)
    assert turned(one[0], directions[0]) < 1e-5
    assert np.linalg.norm(one[0]) == pytest.approx(1)
    assert one[0][np.argmax(np.abs(one[0]))] > 0


def test_several_directions_are_those_of_scikit_learn() -> None:
    frames, _ = problem(np.array([8.0, 5.0, 3.0, 1.0, 0.5, 0.1]), seed=2)
    found, _ = run(frames, count=3)
    reference = TruncatedSVD(3, algorithm="arpack").fit(np.concatenate(frames)).components_
    for own, known in zip(found, reference, strict=True):
        assert turned(own, known) < 1e-6


def test_the_twin_with_whole_numbers_gives_the_same_direction() -> None:
    """The same steps in the clear: squares cut to 30 bits, scaled by powers of two, quotients to 16 bits."""
    frames, _ = problem(spectrum(8, 1.5), seed=3)
    (found,), _ = run(frames, bound=5.0)
    matrix = np.rint(np.ldexp(sum(map(second_moments, frames)) / 10.0, 30)).astype(np.int64).astype(object)
    one = 1 << 30
    for _ in range(7):
        while 2 * np.trace(matrix) < one:
            matrix = matrix * 2
        matrix = (matrix @ matrix) >> 30
    column = matrix[:, np.argmax(np.diagonal(matrix))]
    twin = np.array([int(entry) * 65536 // int(max(column)) for entry in column], np.float64) / 65536
    assert np.abs(found / found.max() - twin).max() < 3 * 2.0**-16


def test_over_a_socket_with_one_party_that_has_nothing() -> None:
    frames, directions = problem(spectrum(4, 2.0), seed=4, parties=1)
    own, nothing = frames[0], np.zeros((0, 4))
    found, _ = run_together(
        lambda c: alice(as_alice(c), own, features=4, bound=1e6, squarings=8),
        lambda c: bob(as_bob(c), nothing, features=4, bound=1e6, squarings=8),
        socket_pair(),
    )
    assert turned(found[0], directions[0]) < 1e-6


def record(party: Callable[[Channel], Any], peer: Callable[[Channel], Any]) -> Transcript:
    here, there = memory_pair()
    kept = Transcript(here, keep_payloads=True)
    run_together(lambda c: party(kept), peer, (here, there))
    return kept


@pytest.mark.parametrize(("features", "count", "squarings"), [(2, 1, 1), (5, 2, 3), (39, 1, 2)])
def test_the_transcript_is_that_of_the_formula(features: int, count: int, squarings: int) -> None:
    job = EigenJob(features, count, squarings)
    frames, _ = problem(spectrum(features, 3.0), seed=5)
    options: dict[str, Any] = {"features": features, "bound": 100.0, "count": count, "squarings": squarings}
    kept = record(lambda c: alice(as_alice(c), frames[0], **options), lambda c: bob(as_bob(c), frames[1], **options))
    setup = {CryptoKind.BASE_POINT, CryptoKind.BASE_REPLY, CryptoKind.BASE_COLUMNS, CryptoKind.RESUME}
    entries = [entry for entry in kept.entries if entry.kind not in setup]
    sent = sum(entry.size for entry in entries if entry.direction == "sent")
    received = sum(entry.size for entry in entries if entry.direction == "received")
    first, second = job.lattice_bytes
    assert sent == job.cost.bytes_first + job.cost.offline_bytes_first + first
    assert received == job.cost.bytes_second + job.cost.offline_bytes_second + second


def test_what_a_party_receives_does_not_tell_one_spectrum_from_another() -> None:
    """Two inputs of Bob's with the same result: the same messages, and bytes of the same law (chi-square at 1e-4).

    With the paper's protocol both would give away the other's second moments (`published`): here no vector of the
    iteration is ever sent, and bytes of one, put among those received, are noticed.
    """
    directions = np.linalg.qr(np.random.default_rng(6).normal(size=(4, 4)))[0]
    own = np.diag([2.0, 1.0, 0.7, 0.4]) @ directions.T
    shapes, samples = [], []
    for rest in ([0.1, 0.1, 0.1], [0.9, 0.01, 0.5]):
        others = np.diag([2.0, *rest]) @ directions.T
        said = b""
        for _ in range(2):
            kept = record(
                lambda c: alice(as_alice(c), own, features=4, bound=20.0),
                lambda c, others=others: bob(as_bob(c), others, features=4, bound=20.0),
            )
            received = [entry for entry in kept.entries if entry.direction == "received"]
            said += b"".join(entry.payload or b"" for entry in received if entry.kind != CryptoKind.RESUME)
        shapes.append(kept.shape())
        samples.append(np.bincount(np.frombuffer(said, np.uint8), minlength=256))
    assert shapes[0] == shapes[1]
    assert stats.chi2_contingency(np.array(samples)).pvalue > 1e-4
    result = run([own, np.diag([2.0, 0.1, 0.1, 0.1]) @ directions.T], bound=20.0)[0]
    with pytest.raises(PpspeechError, match="4 features need as many pairs"):
        recover_moments(Seen(result, np.ones(1), np.ones(1)))  # the result is the only vector that a party sees
    iterate = np.bincount(np.frombuffer((directions[:, 0] * 4).tobytes() * 400, np.uint8), minlength=256)
    assert stats.chi2_contingency(np.array([samples[0], samples[1] + iterate])).pvalue < 1e-4


def test_private_directions() -> None:
    """At epsilon 1 with many frames they are right, and with few they are noise: the noise is there."""
    rng = np.random.default_rng(7)
    widths = np.array([0.5, 0.2, 0.1, 0.1, 0.1])
    options = {"bound": 4e4, "epsilon": 1.0, "radius": 1.0}
    many = list(rng.normal(size=(2, 40_000, 5)) * widths)
    assert abs(run(many, **options)[0][0, 0]) > 0.999
    few = list(rng.normal(size=(2, 3, 5)) * widths)
    found = [run(few, **options)[0][0] for _ in range(3)]
    assert min(turned(found[0], found[1]), turned(found[1], found[2])) > 1e-3


GOOD = np.eye(3)


@pytest.mark.parametrize(
    ("frames", "options", "said"),
    [
        (np.eye(4), {}, "3 features have shape"),
        (np.ones(3), {}, "frames, features"),
        (np.full((3, 3), np.nan), {}, "finite"),
        (np.full((3, 3), np.inf), {}, "finite"),
        (GOOD * 10, {}, "above the public bound"),
        (GOOD, {"epsilon": 1.0}, "give radius"),
        (GOOD, {"bound": 0.0}, "bound"),
        (GOOD, {"bound": np.nan}, "bound"),
        (GOOD, {"count": 3}, "1 to 2 directions"),
        (GOOD, {"count": 0}, "1 to 2 directions"),
        (GOOD, {"features": 1}, "2 to 128"),
        (GOOD, {"squarings": 0}, "squarings"),
        (GOOD, {"squarings": 13}, "squarings"),
    ],
)
@pytest.mark.parametrize("party", [alice, bob])
def test_bad_input_is_refused_before_anything_is_sent(
    party: Callable[..., Reals], frames: Reals, options: dict[str, Any], said: str
) -> None:
    here, _ = memory_pair()
    kept = Transcript(here)
    with pytest.raises(RangeError, match=said):
        party(kept, frames, **({"features": 3, "bound": 5.0} | options))
    assert not kept.entries


def test_it_is_registered() -> None:
    known = PROTOCOLS["eigenvector"]
    assert set(known.parties) == {"alice", "bob"}
    assert "nothing but" in known.leakage
