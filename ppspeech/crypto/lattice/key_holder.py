"""The party with the secret key: it encrypts polynomials, seeded and at half size, and opens replies to shares.

Secret keys are SEAL's; a message is added to the first part of an encryption of zero.
"""

from typing import NoReturn

import numpy as np
import tenseal.sealapi as seal
from numpy.typing import NDArray

from ppspeech.arrays import Residues
from ppspeech.crypto.lattice.job import Job
from ppspeech.crypto.lattice.ntt import quotients_of, transform_of
from ppspeech.crypto.lattice.parameters import KEPT_BITS, LatticeParameters, seal_context
from ppspeech.crypto.lattice.public_key import COIN_BYTES, first_half
from ppspeech.crypto.lattice.residues import from_residues, to_residues
from ppspeech.crypto.lattice.seal_bytes import secret_residues
from ppspeech.crypto.lattice.wire import dump_query, key_identity, load_reply
from ppspeech.crypto.lattice.zeros import SecretZeros
from ppspeech.crypto.randomness import uniform_bytes
from ppspeech.crypto.single_use import SingleUse
from ppspeech.errors import PpspeechError


class KeyHolder:
    """A fresh key and what only its owner can do. It cannot be pickled. `public_key` is for the other party, which
    needs `coins` too: what the two have agreed on (`public_key`), or else what is drawn here.
    """

    def __init__(self, parameters: LatticeParameters | None = None, coins: bytes | None = None) -> None:
        self.parameters = parameters or LatticeParameters()
        self.coins = uniform_bytes(COIN_BYTES) if coins is None else coins
        secret = seal.KeyGenerator(seal_context(self.parameters)).secret_key()
        self._secret = secret_residues(secret, self.parameters)
        self._secret_quotients = quotients_of(self._secret, self.parameters.prime)
        self.public_key = first_half(self._secret, self.coins, self.parameters)
        self.identity = key_identity(self.public_key, self.coins)
        self._zeros = SingleUse(SecretZeros(self.parameters, self._secret, self._secret_quotients))

    def prepare(self, job: Job, queries: int = 1) -> None:
        """Offline work of some queries: encryptions of zero, to which messages are added. May be left out."""
        self._zeros.prepare(queries * job.groups * job.terms)

    def __reduce__(self) -> NoReturn:
        raise PpspeechError("a secret key stays in the process that made it")

    def query(self, job: Job, polynomials: NDArray[np.int64]) -> bytes:
        """Encrypt polynomials `(groups * terms, degree)` of magnitudes far below the prime."""
        prime = np.int64(self.parameters.prime)
        expected = (job.groups * job.terms, self.parameters.degree)
        if job.parameters != self.parameters or polynomials.shape != expected:
            raise PpspeechError(f"expected {expected} coefficients of the key's ring, got {polynomials.shape}")
        zeros = self._zeros.take(len(polynomials))
        hidden = np.stack([residues for residues, _ in zeros]).view(np.int64)
        residues = np.mod(hidden + polynomials, prime).view(np.uint64)
        return dump_query(self.parameters, job.identity, self.identity, [seed for _, seed in zeros], residues)

    def open(self, job: Job, reply: bytes, workers: int = 1) -> Residues:
        """The key holder's shares mod 2^32 of what a reply holds, shape `(groups, outputs, kept)`. Raises
        BadCiphertextError if the reply is not one of this job, WrongKeyError if it was made for another key.
        """
        count = job.groups * job.outputs
        first, second = load_reply(reply, self.parameters, job.identity, self.identity, count, len(job.kept))
        transform = transform_of(self.parameters)
        product = from_residues(second, self.parameters)
        transform.forward_(product, workers)
        transform.multiply_(product, self._secret, self._secret_quotients, workers)
        transform.inverse_(product, workers)
        masked = first + to_residues(product[:, job.kept_index], self.parameters)
        return (masked & np.uint64((1 << KEPT_BITS) - 1)).reshape(job.groups, job.outputs, -1)
