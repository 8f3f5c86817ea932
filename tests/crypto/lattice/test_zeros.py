"""Encryptions of zero against SEAL, which decrypts them, and against the distributions they are drawn from."""

import numpy as np
import pytest
import tenseal.sealapi as seal
from scipy import stats

from ppspeech.crypto.lattice.blake2xb import expand_seeds
from ppspeech.crypto.lattice.ntt import quotients_of, transform_of
from ppspeech.crypto.lattice.parameters import LARGEST_ERROR, LatticeParameters, seal_context
from ppspeech.crypto.lattice.seal_bytes import secret_residues
from ppspeech.crypto.lattice.zeros import PublicZeros, SecretZeros, add_errors_, draw_ternary

from .seal_objects import loaded, residues_of

FALSE_ALARM = 1e-6
RING = LatticeParameters()


class Keys:
    """A key pair of SEAL, and what it makes of a ciphertext."""

    def __init__(self, ring: LatticeParameters) -> None:
        self.ring, self.context = ring, seal_context(ring)
        generator = seal.KeyGenerator(self.context)
        self.secret, self.public = generator.secret_key(), seal.PublicKey()
        generator.create_public_key(self.public)
        self.secret_residues = secret_residues(self.secret, ring)
        self.quotients = quotients_of(self.secret_residues, ring.prime)

    def noise(self, zeros: np.ndarray) -> np.ndarray:
        """c0 + c1 s, signed."""
        transform = transform_of(self.ring)
        product = transform.multiply_(transform.forward_(zeros[:, 1].copy()), self.secret_residues, self.quotients)
        found = (zeros[:, 0] + transform.inverse_(product)) % np.uint64(self.ring.prime)
        return np.where(found > self.ring.prime // 2, found.astype(np.int64) - self.ring.prime, found.astype(np.int64))

    def decrypted(self, zero: np.ndarray) -> str:
        """SEAL's plaintext: of what is encrypted under the public key noise is left, so large is its modulus here."""
        plain = seal.Plaintext()
        ciphertext = loaded(seal.Ciphertext(), self.ring, zero, transformed=False)
        seal.Decryptor(self.context, self.secret).decrypt(ciphertext, plain)
        return str(plain.to_string())


@pytest.fixture(scope="module", params=[RING, LatticeParameters(degree=4096)], ids=["2048", "4096"])
def keys(request: pytest.FixtureRequest) -> Keys:
    return Keys(request.param)


def test_those_of_the_public_key_have_the_noise_of_seals_own(keys: Keys) -> None:
    ring = keys.ring
    ours = np.stack(PublicZeros(ring, residues_of(keys.public, ring))(12))
    encryptor, theirs = seal.Encryptor(keys.context, keys.public), []
    for _ in range(12):
        zero = seal.Ciphertext()
        encryptor.encrypt_zero(zero)
        theirs.append(residues_of(zero, ring))
    noise, wanted = keys.noise(ours), keys.noise(np.stack(theirs))
    assert np.abs(noise).max() <= LARGEST_ERROR * (1 + 2 * ring.degree)
    assert stats.ks_2samp(noise.ravel(), wanted.ravel()).pvalue > FALSE_ALARM


def test_those_of_the_secret_key_hold_one_error_each(keys: Keys) -> None:
    zeros = SecretZeros(keys.ring, keys.secret_residues, keys.quotients)(12)
    seconds = expand_seeds([seed for _, seed in zeros], keys.ring)
    both = np.stack((np.stack([first for first, _ in zeros]), seconds), axis=1)
    assert keys.decrypted(both[0]) == "0"
    assert keys.decrypted(both[0] + np.array([[1 << 20], [0]], np.uint64)) != "0"
    assert_binomial(keys.noise(both))


def assert_binomial(errors: np.ndarray) -> None:
    """Centered binomial on 42 bits, beyond 10 taken together."""
    assert np.abs(errors).max() <= LARGEST_ERROR
    law = stats.binom(2 * LARGEST_ERROR, 0.5).pmf(np.arange(LARGEST_ERROR - 10, LARGEST_ERROR + 11))
    law[[0, -1]] += (1 - law.sum()) / 2
    seen = np.bincount(np.clip(errors.ravel(), -10, 10) + 10, minlength=21)
    assert stats.chisquare(seen, law * errors.size).pvalue > FALSE_ALARM


def test_errors_and_ternaries_have_their_laws() -> None:
    moved = add_errors_(np.full((200, RING.degree), 3, np.uint64), RING).astype(np.int64)
    assert moved.max() == RING.prime - 1
    assert_binomial(np.where(moved > RING.prime // 2, moved - RING.prime, moved) - 3)
    largest = add_errors_(np.full(2000, RING.prime - 1, np.uint64), RING)
    assert largest.max() < RING.prime
    values, seen = np.unique(draw_ternary((500, RING.degree), RING), return_counts=True)
    assert values.tolist() == [0, 1, RING.prime - 1]
    assert stats.chisquare(seen).pvalue > FALSE_ALARM  # a byte mod 3 without rejection fails: 86 of 256


def test_no_two_are_alike(keys: Keys) -> None:
    public = PublicZeros(keys.ring, residues_of(keys.public, keys.ring))
    assert len({part.tobytes() for zero in (*public(5), *public(5)) for part in zero}) == 20
    apart = np.diff(np.stack([zero[1] for zero in public(5)]).astype(np.int64), axis=0) % keys.ring.prime
    assert (np.minimum(apart, keys.ring.prime - apart) > 2 * LARGEST_ERROR).mean() > 0.99  # each has a u of its own
    secret = SecretZeros(keys.ring, keys.secret_residues, keys.quotients)
    made = [*secret(5), *secret(5)]
    assert len({seed for _, seed in made}) == len({first.tobytes() for first, _ in made}) == 10
    assert public(0) == secret(0) == []
