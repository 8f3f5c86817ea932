"""Received ciphertexts: what is well formed comes back the same, everything else is refused with a typed error."""

from typing import Any

import numpy as np
import pytest
import tenseal.sealapi as seal
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.crypto.lattice import seal_bytes
from ppspeech.crypto.lattice.parameters import LatticeParameters, seal_context
from ppspeech.crypto.lattice.seal_bytes import (
    check_ciphertext,
    ciphertext_length,
    dump_ciphertext,
    load_ciphertext,
    load_public_key,
    residues_of,
)
from ppspeech.errors import BadCiphertextError

RING = LatticeParameters()
START = ciphertext_length(RING) - 16 * RING.degree
"""Where the residues begin: every bit before is fixed."""


@pytest.fixture(scope="module")
def keys() -> tuple[Any, Any]:
    generator, public = seal.KeyGenerator(seal_context(RING)), seal.PublicKey()
    generator.create_public_key(public)
    return generator.secret_key(), public


@pytest.fixture(scope="module")
def ciphertext(keys: tuple[Any, Any]) -> Any:
    made = seal.Ciphertext()
    seal.Encryptor(seal_context(RING), keys[1]).encrypt(seal.Plaintext("5x^7 + 3"), made)
    return made


def test_a_ciphertext_survives_the_journey(keys: tuple[Any, Any], ciphertext: Any) -> None:
    sent = dump_ciphertext(ciphertext, RING)
    assert len(sent) == ciphertext_length(RING)
    received, opened = load_ciphertext(sent, RING), seal.Plaintext()
    assert (residues_of(received, RING) == residues_of(ciphertext, RING)).all()
    seal.Decryptor(seal_context(RING), keys[0]).decrypt(received, opened)
    assert opened[0] == pytest.approx(3, abs=1 << 12)  # the plaintext modulus is near the noise
    evaluator, total = seal.Evaluator(seal_context(RING)), seal.Ciphertext()
    evaluator.add(received, ciphertext, total)
    assert total.size() == 2


def test_a_public_key_survives_the_journey(keys: tuple[Any, Any]) -> None:
    received = load_public_key(dump_ciphertext(keys[1], RING, transformed=True), RING)
    assert (residues_of(received, RING) == residues_of(keys[1], RING)).all()


@pytest.mark.parametrize("load", [load_ciphertext, load_public_key])
def test_every_flipped_bit_before_the_residues_is_refused(load: Any, keys: tuple[Any, Any], ciphertext: Any) -> None:
    key = load is load_public_key
    sent = dump_ciphertext(keys[1] if key else ciphertext, RING, transformed=key)
    for bit in range(8 * START):
        damaged = bytearray(sent)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BadCiphertextError):
            load(bytes(damaged), RING)


def _three_parts(sent: bytes) -> bytes:
    """What SEAL would load without complaint: a valid object of three parts."""
    residues = np.frombuffer(sent, dtype="<u8", offset=START)
    fields = seal_bytes._FIELDS.pack(seal_bytes._ring_identity(RING), False, 3, RING.degree, 1, 1.0, 1)
    content = fields + seal_bytes._array(np.concatenate((residues, residues[: RING.degree])))
    return seal_bytes._header(16 + len(content)) + content


def _residue(sent: bytes, place: int, value: int) -> bytes:
    start = START + 8 * place
    return sent[:start] + value.to_bytes(8, "little") + sent[start + 8 :]


MALFORMED = {
    "empty": lambda sent: b"",
    "one byte": lambda sent: b"\x5e",
    "header only": lambda sent: sent[:16],
    "truncated": lambda sent: sent[:-1],
    "one more byte": lambda sent: sent + b"\0",
    "three parts": _three_parts,
    "three parts, cut to length": lambda sent: _three_parts(sent)[: len(sent)],
    "transformed": lambda sent: sent[:48] + b"\x01" + sent[49:],
    "residue q": lambda sent: _residue(sent, 0, RING.prime),
    "last residue q": lambda sent: _residue(sent, 2 * RING.degree - 1, RING.prime),
    "residue 2^64 - 1": lambda sent: _residue(sent, 5, (1 << 64) - 1),
}


@pytest.mark.parametrize("damage", MALFORMED)
def test_malformed_ciphertexts_are_refused(damage: str, ciphertext: Any) -> None:
    with pytest.raises(BadCiphertextError):
        load_ciphertext(MALFORMED[damage](dump_ciphertext(ciphertext, RING)), RING)


def test_seal_itself_would_have_taken_three_parts(ciphertext: Any) -> None:
    taken = seal_bytes._load(seal.Ciphertext(), RING, _three_parts(dump_ciphertext(ciphertext, RING))[16:])
    assert taken.size() == 3


@pytest.mark.parametrize("other", [LatticeParameters(prime=(1 << 46) - 110591), LatticeParameters(degree=4096)])
def test_ciphertexts_of_other_rings_are_refused(other: LatticeParameters) -> None:
    generator, public = seal.KeyGenerator(seal_context(other)), seal.PublicKey()
    generator.create_public_key(public)
    with pytest.raises(BadCiphertextError):
        load_public_key(dump_ciphertext(public, other, transformed=True), RING)


def test_the_trivial_public_key_is_refused(keys: tuple[Any, Any]) -> None:
    sent = dump_ciphertext(keys[1], RING, transformed=True)
    with pytest.raises(BadCiphertextError, match="trivial"):
        load_public_key(sent[: START + 8 * RING.degree] + bytes(8 * RING.degree), RING)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400) | st.binary(max_size=64).map(lambda part: part.ljust(ciphertext_length(RING), b"\xa1")))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(BadCiphertextError):
        check_ciphertext(data, RING)
