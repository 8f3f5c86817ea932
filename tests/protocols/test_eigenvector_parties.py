"""Principal directions of many parties: as of two, told to all, from shares that say nothing."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from ppspeech.crypto.message_kinds import Kind as CryptoKind
from ppspeech.crypto.packing import unpack_numbers
from ppspeech.errors import ProtocolError, RangeError
from ppspeech.network import Transcript, run_mesh, run_together
from ppspeech.protocols.eigen import eigenvector
from ppspeech.protocols.eigen.eigenvector_parties import party, sharing_bytes
from tests.protocols.eigen_problems import Reals, problem, spectrum, turned


def run(frames: list[Reals], **options: Any) -> list[Reals]:
    chosen = {"features": frames[0].shape[1], "bound": 10.0} | options
    return run_mesh(
        [lambda channels, own=own: party(channels, frames[own], own=own, **chosen) for own in range(len(frames))]
    )


@pytest.mark.parametrize(("parties", "computing"), [(3, (0, 1)), (5, (4, 2))])
def test_all_get_the_direction_of_all(parties: int, computing: tuple[int, int]) -> None:
    frames, directions = problem(spectrum(7, 1.2), seed=parties, parties=parties)
    results = run(frames, computing=computing, count=2)
    for result in results:
        assert (result == results[0]).all()
    assert turned(results[0][0], directions[0]) < 1e-6
    assert turned(results[0][1], directions[1]) < 1e-4


def test_two_parties_get_what_alice_and_bob_get() -> None:
    frames, _ = problem(spectrum(6, 1.3), seed=9)
    mesh = run(frames)
    pair = run_together(
        lambda c: eigenvector.alice(c, frames[0], features=6, bound=10.0),
        lambda c: eigenvector.bob(c, frames[1], features=6, bound=10.0),
    )
    # The kernel's own noise is in the bits below those released, which may then differ by one.
    assert np.abs(mesh[0] - pair[0]).max() < 3 * 2.0**-16


def test_what_a_computing_party_is_sent_looks_uniform() -> None:
    frames, _ = problem(spectrum(30, 2.0), seed=10, parties=3)
    kept: list[Transcript] = []

    def recorded(channels: Any, own: int) -> Reals:
        records = {other: Transcript(channel, keep_payloads=True) for other, channel in channels.items()}
        if own == 0:
            kept.append(records[2])
        return party(records, frames[own], own=own, features=30, bound=10.0, squarings=1)

    run_mesh([lambda channels, own=own: recorded(channels, own) for own in range(3)])
    (entry,) = [entry for entry in kept[0].entries if entry.kind == CryptoKind.SHARES and entry.direction == "received"]
    assert entry.size == sharing_bytes(30)
    words = unpack_numbers(entry.payload or b"", 465, 59)
    for byte in (words & np.uint64(255), words >> np.uint64(51)):
        assert stats.chisquare(np.bincount(byte.astype(np.int64), minlength=256)).pvalue > 1e-4


@pytest.mark.parametrize("computing", [(0, 0), (0, 7)])
def test_computing_parties_are_two_of_the_parties(computing: tuple[int, int]) -> None:
    frames, _ = problem(spectrum(3, 2.0), seed=11, parties=3)
    with pytest.raises(RangeError, match="two different parties"):
        run(frames, computing=computing)


def test_a_party_with_bad_frames_ends_it_for_all() -> None:
    frames, _ = problem(spectrum(3, 2.0), seed=12, parties=3)
    with pytest.raises(RangeError, match="above the public bound"):
        run(frames, bound=1e-3)
    with pytest.raises(ProtocolError):
        run_mesh([lambda channels, own=own: _leave(channels, own, frames) for own in range(3)])


def _leave(channels: Any, own: int, frames: list[Reals]) -> Reals | None:
    """Party 2 is gone before it says anything."""
    return None if own == 2 else party(channels, frames[own], own=own, features=3, bound=10.0)
