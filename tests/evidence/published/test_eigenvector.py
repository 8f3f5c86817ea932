"""The paper's eigenvector protocol: it computes what it says, and a party that keeps notes gets the other's moments."""

import itertools
from typing import Any

import numpy as np
import pytest

from ppspeech.crypto.paillier.group import KEY_ID_BYTES
from ppspeech.errors import PpspeechError, PrivacyError, RangeError
from ppspeech.evidence.published.attacks.eigenvector import genuine_rounds, recover_moments
from ppspeech.evidence.published.protocols.eigenvector import (
    Seen,
    party,
    party_bytes,
    published_eigenvector,
    run_published,
    trent,
)
from ppspeech.network import Transcript, memory_pair, run_in_threads
from ppspeech.protocols.eigen.moments import second_moments
from ppspeech.protocols.message_kinds import Kind
from tests.evidence.published.views import DEMO, demo_key
from tests.protocols.eigen_problems import Reals, problem, spectrum, turned


def run(
    frames: list[Reals], rounds: int, *, padding: float = 0.0, **options: Any
) -> tuple[list[Seen], Reals, list[Transcript]]:
    """What the parties saw, what Trent has at the end, and Trent's transcripts with each of them."""
    key, last = demo_key(), len(frames)
    records: list[Transcript] = []

    def be_trent(channels: Any) -> Reals:
        kept = {number: Transcript(channel, keep_payloads=True) for number, channel in channels.items()}
        records.extend(kept[number] for number in sorted(kept))
        samples = [len(each) for each in frames]
        features = frames[0].shape[1]
        return trent(
            kept, key.public, features=features, samples=samples, rounds=rounds, fraction=40, **options, **DEMO
        )

    programs = [
        lambda channels, own=own: party(channels[last], own, key, rounds=rounds, padding=padding, fraction=40, **DEMO)
        for own in frames
    ]
    *seen, weights = run_in_threads([*programs, be_trent])
    return seen, weights, records


@pytest.mark.parametrize(
    ("parties", "padding", "genuine"), [(2, 0.0, 1.0), (3, 0.0, 1.0), (2, 0.5, 1.0), (2, 0.0, 0.7)]
)
def test_the_principal_direction_and_the_weights_of_the_frames(parties: int, padding: float, genuine: float) -> None:
    frames, directions = problem(spectrum(4, 3.0), seed=1, parties=parties)
    result = run_published(
        frames, demo_key(), rounds=60, padding=padding, genuine=genuine, decoy_noise=10.0, fraction=40, **DEMO
    )
    seen, weights = result.seen, result.weights
    assert result.seconds > 0
    for own in seen:
        assert turned(own.direction, directions[0]) < 1e-6
    together = np.concatenate(frames) @ directions[0]
    assert turned(weights / np.linalg.norm(weights), together / np.linalg.norm(together)) < 1e-4
    assert (weights == np.concatenate([own.component for own in seen])).all()


@pytest.mark.parametrize("genuine", [1.0, 0.6])
def test_a_party_recovers_the_moments_of_the_other(genuine: float) -> None:
    """From the vectors and norms that it decrypts by following the protocol, with decoys and without."""
    frames, _ = problem(np.array([5.0, 3.0, 2.0, 1.0]), seed=2)
    seen, _, _ = run(frames, 30, genuine=genuine, decoy_noise=1e4)
    other = recover_moments(seen[0]) - second_moments(frames[0])
    assert np.abs(other - second_moments(frames[1])).max() < 1e-4 * np.abs(other).max()


def test_decoys_are_found_out() -> None:
    """Genuine rounds are those whose vector is a multiple of C times the one before; the attack needs no C for it."""
    frames, _ = problem(np.array([5.0, 3.0, 2.0, 1.0]), seed=3)
    (seen, _), _, _ = run(frames, 24, genuine=0.5, decoy_noise=1e4)
    moments = sum(map(second_moments, frames))
    found = genuine_rounds(seen)
    assert len(found) < 24
    assert found[-1] == 23
    for before, after in itertools.pairwise(found):
        step = moments @ seen.vectors[before]
        assert turned(step / np.linalg.norm(step), seen.vectors[after] / np.linalg.norm(seen.vectors[after])) < 1e-6


def test_padding_hides_the_moments_up_to_a_multiple_of_the_identity() -> None:
    frames, _ = problem(np.array([5.0, 3.0, 2.0, 1.0]), seed=4)
    seen, _, _ = run(frames, 30, padding=1.0)
    extra = recover_moments(seen[0]) - sum(map(second_moments, frames))
    shift = np.trace(extra) / 4
    assert shift > 0
    assert np.abs(extra - shift * np.eye(4)).max() < 1e-4


def test_too_few_rounds_do_not_suffice() -> None:
    frames, _ = problem(np.array([5.0, 3.0, 2.0, 1.0]), seed=5)
    seen, _, _ = run(frames, 4)
    with pytest.raises(PpspeechError, match="4 features need as many pairs"):
        recover_moments(seen[0])


def test_any_party_reads_what_another_sends_to_trent() -> None:
    """One key for all: what Trent receives of Bob, Alice decrypts."""
    frames, _ = problem(spectrum(4, 3.0), seed=6)
    seen, _, records = run(frames, 3)
    (first, *_) = [entry for entry in records[1].entries if entry.kind == Kind.COMPONENT_PRODUCT][1:]
    key = demo_key()
    product = np.array(key.decrypt_many(key.public.load(first.payload or b"", 4))) / 2**40
    other = frames[1].T @ (frames[1] @ seen[0].vectors[0] / np.sqrt(seen[0].norms[0]))
    assert np.abs(product - other).max() < 1e-9


def test_the_transcript_is_that_of_the_formula_and_nothing_is_sent_twice() -> None:
    frames, _ = problem(spectrum(4, 3.0), seed=7, parties=3)
    _, _, records = run(frames, 5, genuine=0.5)
    for record, own in zip(records, frames, strict=True):
        assert (record.bytes_down, record.bytes_up) == party_bytes(demo_key().public, 4, len(own), 5)
    sums = [entry.payload or b"" for entry in records[0].entries if entry.kind == Kind.SCALED_SUM]
    assert len({payload[KEY_ID_BYTES:] for payload in sums}) == len(sums)


def test_doors() -> None:
    here, _ = memory_pair()
    kept = Transcript(here)
    key = demo_key()
    with pytest.raises(PrivacyError, match="insecure_demo"):
        party(kept, np.ones((2, 2)), key, rounds=1)
    with pytest.raises(PrivacyError, match="insecure_demo"):
        trent({0: kept}, key.public, features=2, samples=[2], rounds=1)
    with pytest.raises(RangeError, match="finite"):
        party(kept, np.full((2, 2), np.nan), key, rounds=1, **DEMO)
    with pytest.raises(RangeError, match="genuine round"):
        trent({0: kept}, key.public, features=2, samples=[2], rounds=1, genuine=0.0, **DEMO)
    assert not kept.entries
    assert set(published_eigenvector.parties) == {"party", "trent"}
