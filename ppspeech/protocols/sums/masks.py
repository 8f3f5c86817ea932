"""Masks that cancel in the sum of all parties, agreed on through a curator who cannot know them.

Every party makes an X25519 key for this session, which the curator passes on; then each signs the list of all keys with
the key of its pinned certificate. Two parties thus share a secret that neither the curator nor a third party has, even
if the curator would rather hand out keys of its own. A signature is worth nothing in another session, whose list has a
new key of everyone who checks it: a key that was once lost is not passed on again. From a secret comes one AES-256-CTR
stream a pair, which one of the two adds to what it sends and the other takes away.
"""

import hashlib
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
LARGEST_SIGNED = LARGEST


class Signatures:
    """Signs the session keys of all and checks that others have signed the same, by the pins of a group. `role`: of
    those who take part.
    """

    def __init__(self, group: Group, identity: Identity, role: str = "party") -> None:
        self.names = group.with_role(role)
        self._group = group
        self._identity = identity

    @property
    def place(self) -> int:
        """Our own among the names."""
        pins = [self._group.member(name).pin for name in self.names]
        return pins.index(self._identity.pin)

    def sign(self, keys: Sequence[bytes]) -> bytes:
        """Our certificate and signature on everyone's session keys."""
        return self._identity.sign(self._statement(keys))

    def check(self, place: int, keys: Sequence[bytes], signed: bytes) -> None:
        """Refuse keys that the party at this place has not signed, all of them. Raises `WrongKeyError`."""
        name = self.names[place]
        try:
            verify(signed, self._statement(keys), self._group.member(name).pin)
        except WrongKeyError as error:
            raise WrongKeyError(f"the session keys were not signed by {name}: {error}") from None

    def _statement(self, keys: Sequence[bytes]) -> bytes:
        everyone = hashlib.sha256(b"".join(keys)).digest()
        return b"ppspeech masks\x00" + bytes.fromhex(self._group.digest) + everyone


class SessionKey:
    """A party's key for the masks of one session; without signatures the curator is trusted to pass keys on."""

    def __init__(self, signatures: Signatures | None) -> None:
        self._signatures = signatures
        self._secret = X25519PrivateKey.generate()
        self.public = self._secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    def confirm(self, keys: Sequence[bytes]) -> bytes:
        """Our signature on everyone's keys, in an order that all agree on; nothing where keys are not signed. Raises
        `WrongKeyError` if ours is not among them, once and in its place.
        """
        own = self._place(keys)
        if self._signatures is None:
            return b""
        if own != self._signatures.place:
            raise WrongKeyError("the curator passes our key on as another party's")
        return self._signatures.sign(keys)

    def masks(self, keys: Sequence[bytes], signed: Sequence[bytes]) -> "PairMasks":
        """The masks with all others, from the keys of all, ours too, and what each has signed. Raises `WrongKeyError`
        if a party has not signed these keys, or ours is missing; `NotInGroupError` for one that gives no secret.
        """
        own = self._place(keys)
        added, taken = list[CipherContext](), list[CipherContext]()
        for place, key in enumerate(keys):
            if place == own:
                continue
            if self._signatures is not None:
                self._signatures.check(place, keys, signed[place])
            try:
                shared = self._secret.exchange(X25519PublicKey.from_public_bytes(key))
            except ValueError:
                raise NotInGroupError(f"the session key of party {place} is no point that gives a secret") from None
            pair = (self.public + key) if own < place else (key + self.public)
            (added if own < place else taken).append(_stream(shared, pair))
        return PairMasks(added, taken)

    def _place(self, keys: Sequence[bytes]) -> int:
        if keys.count(self.public) != 1:
            raise WrongKeyError("the curator does not pass on the key we sent")
        return keys.index(self.public)

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
