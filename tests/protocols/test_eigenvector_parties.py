"""Principal directions of many parties: as of two, told to all, from shares that say nothing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ppspeech.crypto.message_kinds import Kind as CryptoKind
from ppspeech.crypto.packing import unpack_numbers
from ppspeech.errors import ProtocolError, RangeError
from ppspeech.network import Transcript, run_together
from ppspeech.protocols import Party, run_in_memory
from ppspeech.protocols.eigen.many import find_together, sharing_bytes
from ppspeech.protocols.eigen.two import alice, bob
from tests.protocols.alice_and_bob import as_alice, as_bob
from tests.protocols.eigen_problems import Reals, problem, spectrum, turned


def run(frames: list[Reals], **options: Any) -> list[Reals]:
    chosen = {"features": frames[0].shape[1], "bound": 10.0} | options
    return run_in_memory([("party", lambda party: find_together(party, frames[party.place], **chosen))] * len(frames))


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
        lambda c: alice(as_alice(c), frames[0], features=6, bound=10.0),
        lambda c: bob(as_bob(c), frames[1], features=6, bound=10.0),
    )
    # The kernel's own noise is in the bits below those released, which may then differ by one.
    assert np.abs(mesh[0] - pair[0]).max() < 3 * 2.0**-16


def test_what_a_computing_party_is_sent_looks_uniform() -> None:
    frames, _ = problem(spectrum(30, 2.0), seed=10, parties=3)
    kept: list[Transcript] = []

    def recorded(party: Party) -> Reals:
        records = {other: Transcript(channel, keep_payloads=True) for other, channel in party.channels.items()}
        if party.place == 0:
            kept.append(records["party 2"])
        watched = replace(party, channels=records)
        return find_together(watched, frames[party.place], features=30, bound=10.0, squarings=1)

    run_in_memory([("party", recorded)] * 3)
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
        run_in_memory([("party", lambda party: _leave(party, frames))] * 3)


def _leave(party: Party, frames: list[Reals]) -> Reals | None:
    """Party 2 is gone before it says anything."""
    return None if party.place == 2 else find_together(party, frames[party.place], features=3, bound=10.0)
