"""Masks that cancel in the sum of all parties, agreed on through a curator who cannot know them.

Every party makes an X25519 key for this session and signs its public half with the key of its pinned certificate; the
curator passes the signed keys on. Two parties thus share a secret that neither the curator nor a third party has,
even if the curator would rather hand out keys of its own. From it comes one AES-256-CTR stream a pair, which one of
the two adds to what it sends and the other takes away.
"""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ppspeech.arrays import Residues
from ppspeech.errors import NotInGroupError, WrongKeyError
from ppspeech.network.group import LARGEST, Group, Identity, verify

KEY_BYTES = 32
LARGEST_KEY = KEY_BYTES + LARGEST


class Signatures:
    """Signs our session key and checks those of others, by the pins of a group. `role`: of those who take part."""

    def __init__(self, group: Group, identity: Identity, role: str = "party") -> None:
        self.names = group.with_role(role)
        self._group = group
        self._identity = identity

    def sign(self, key: bytes) -> bytes:
        """Our certificate and signature on a session key."""
        return self._identity.sign(self._statement(key))

    def check(self, place: int, key: bytes, signed: bytes) -> None:
        """Refuse a session key that the party at this place has not signed. Raises `WrongKeyError` if it has not."""
        name = self.names[place]
        try:
            verify(signed, self._statement(key), self._group.member(name).pin)
        except WrongKeyError as error:
            raise WrongKeyError(f"the session key of {name} was not signed by {name}: {error}") from None

    def _statement(self, key: bytes) -> bytes:
        return b"ppspeech masks\x00" + bytes.fromhex(self._group.digest) + key


class SessionKey:
    """A party's key for the masks of one session; without signatures the curator is trusted to pass keys on."""

    def __init__(self, signatures: Signatures | None) -> None:
        self._signatures = signatures
        self._secret = X25519PrivateKey.generate()
        self._public = self._secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    def introduction(self) -> bytes:
        """The public key, and its signature where keys are signed: what the curator passes on."""
        return self._public + (b"" if self._signatures is None else self._signatures.sign(self._public))

    def masks(self, introductions: Sequence[bytes]) -> "PairMasks":
        """The masks with all others, from the introductions of all, ours too, in an order that all agree on. Raises
        `WrongKeyError` if a key is not the one its party sent, or ours is missing; `NotInGroupError` for one that
        gives no secret.
        """
        keys = [introduction[:KEY_BYTES] for introduction in introductions]
        if keys.count(self._public) != 1:
            raise WrongKeyError("the curator does not pass on the key we sent")
        own = keys.index(self._public)
        added, taken = list[CipherContext](), list[CipherContext]()
        for place, key in enumerate(keys):
            if self._signatures is not None:
                self._signatures.check(place, key, introductions[place][KEY_BYTES:])
            if place == own:
                continue
            try:
                shared = self._secret.exchange(X25519PublicKey.from_public_bytes(key))
            except ValueError:
                raise NotInGroupError(f"the session key of party {place} is no point that gives a secret") from None
            pair = (self._public + key) if own < place else (key + self._public)
            (added if own < place else taken).append(_stream(shared, pair))
        return PairMasks(added, taken)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a session key is secret: it cannot be pickled or copied")


class PairMasks:
    """One party's masks, which add up to zero over all: those with later parties added, with earlier ones taken. None
    comes twice.
    """

    def __init__(self, added: Sequence[CipherContext], taken: Sequence[CipherContext]) -> None:
        self._added, self._taken = list(added), list(taken)

    def next(self, count: int) -> Residues:
        """The next `count` residues mod 2^64."""
        total = np.zeros(count, np.uint64)
        for stream in self._added:
            total += _words(stream, count)
        for stream in self._taken:
            total -= _words(stream, count)
        return total

    def __reduce__(self) -> NoReturn:
        raise TypeError("masks are secret and used once: they cannot be pickled or copied")


def _stream(shared: bytes, pair: bytes) -> CipherContext:
    """The key stream of a pair: both public keys are in its derivation, the earlier party's first."""
    key = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"ppspeech masks" + pair).derive(shared)
    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()


def _words(stream: CipherContext, count: int) -> Residues:
    return np.frombuffer(stream.update(bytes(8 * count)), "<u8").astype(np.uint64)
