"""Seed expansion, bit for bit that of SEAL."""

import os

import numpy as np
import pytest
import tenseal.sealapi as seal

from ppspeech.crypto.lattice.blake2xb import _stream_block, expand_seeds
from ppspeech.crypto.lattice.parameters import LatticeParameters

from .seal_objects import header, loaded, residues_of

REJECTING = LatticeParameters(prime=(1 << 50) - 27487215615)
"""2^64 = 0.4 q mod q: SEAL draws about one polynomial in 20 of this ring with a rejected word."""


def by_seal(seed: bytes, ring: LatticeParameters) -> np.ndarray:
    """Load a seeded ciphertext and read its second part."""
    drawn = header(16 + 65) + b"\x01" + seed
    zeros = np.zeros(ring.degree, dtype=np.uint64)
    return residues_of(loaded(seal.Ciphertext(), ring, zeros, transformed=False, drawn=drawn), ring)[1]


@pytest.mark.parametrize("ring", [LatticeParameters(), REJECTING, LatticeParameters(degree=4096)])
def test_polynomials_are_those_of_seal(ring: LatticeParameters) -> None:
    seeds = [os.urandom(64) for _ in range(20)]
    found = expand_seeds(seeds, ring, workers=2)
    assert all((row == by_seal(seed, ring)).all() for row, seed in zip(found, seeds, strict=True))


def test_rejected_words_are_drawn_again_as_seal_does() -> None:
    ring, top = REJECTING, (1 << 64) - 1
    largest = top - top % ring.prime - 1
    numbers = (number.to_bytes(64, "little") for number in range(10_000))
    rejecting = (seed for seed in numbers if (stream(seed, ring.degree // 512) >= np.uint64(largest)).any())
    for seed in (next(rejecting) for _ in range(3)):
        assert (expand_seeds([seed], ring)[0] == by_seal(seed, ring)).all()


def stream(seed: bytes, blocks: int) -> np.ndarray:
    out = np.empty(512 * blocks, dtype=np.uint64)
    room = np.empty(16, np.uint64), np.empty(16, np.uint64), np.empty(8, np.uint64)
    for block in range(blocks):
        _stream_block(np.frombuffer(seed, dtype=np.uint64), block, out, 512 * block, *room)
    return out
