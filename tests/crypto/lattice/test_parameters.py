"""Rings are secure or refused."""

import pytest
import tenseal.sealapi as seal

from ppspeech.crypto.lattice.parameters import MOST_MODULUS_BITS, LatticeParameters
from ppspeech.errors import PpspeechError

RING = LatticeParameters()


@pytest.mark.parametrize(
    ("degree", "prime", "complaint"),
    [
        (1024, RING.prime, "below 128-bit security"),
        (2048, (1 << 55) + 1, "below 128-bit security"),
        (2048, (1 << 51) - 1, "46 to 50 bits"),
        (2048, 65537, "46 to 50 bits"),
        (2048, RING.prime + 2, "not a prime"),
        (2048, RING.prime - 4096, "not a prime"),
        (1000, RING.prime, "ring degree must be one of"),
    ],
)
def test_rings_without_security_or_transform_are_refused(degree: int, prime: int, complaint: str) -> None:
    with pytest.raises(PpspeechError, match=complaint):
        LatticeParameters(degree, prime)


def test_the_security_table_is_seals() -> None:
    for degree, bits in MOST_MODULUS_BITS.items():
        assert seal.CoeffModulus.MaxBitCount(degree, seal.SEC_LEVEL_TYPE.TC128) == bits
