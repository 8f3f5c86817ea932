"""What a database is given to keep and cannot read: rows sealed under a key that the servers hold.

    tag      a name as 32 hexadecimal digits, by a keyed hash: a name is found again in its table, none is read
    sealed   XChaCha20-Poly1305, bound to the row that it is of: one that was changed or moved is refused

Whoever has the database and not the key learns how many rows there are, their sizes, counts in them, and when they
change.
"""

import json
import os
import re
import secrets
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_ABYTES,
    crypto_aead_xchacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt,
    crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
    crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
)
from nacl.exceptions import CryptoError

from ppspeech.errors import PpspeechError

KEY_BYTES = crypto_aead_xchacha20poly1305_ietf_KEYBYTES
_NONCE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
SEAL_BYTES = _NONCE + crypto_aead_xchacha20poly1305_ietf_ABYTES  # by which what is sealed is longer


@dataclass(frozen=True, slots=True)
class StoreSeal:
    """The key that all servers of a store hold, and the database does not."""

    _tags: bytes = field(repr=False)
    _seals: bytes = field(repr=False)

    @classmethod
    def under(cls, key: bytes) -> "StoreSeal":
        """Two keys from one, so that tags and sealed rows share none."""
        return cls(_derived(key, b"tags"), _derived(key, b"seals"))

    @classmethod
    def read(cls, path: Path) -> "StoreSeal":
        """The key in a file. Raises PpspeechError for a file that is none, or that everybody can read."""
        return cls.under(read_key_file(path, 0o007, "ppspeech keys store"))

    @property
    def fingerprint(self) -> str:
        """Which key it is, without telling it."""
        return self.tag("which key")

    def tag(self, name: str, *where: str) -> str:
        """What stands for a name at one place: the same each time there, and nothing to whoever has no key."""
        return blake2b(json.dumps([*where, name]).encode(), digest_size=16, key=self._tags).hexdigest()

    def key_for(self, use: str) -> bytes:
        """A key that all servers of the store have and nobody else, for another use."""
        return _derived(self._tags, use.encode())

    def seal(self, plain: bytes, about: str) -> bytes:
        """What only the key opens, and only as this row."""
        return seal_under(self._seals, plain, about)

    def open(self, sealed: bytes, about: str) -> bytes:
        """What `seal` sealed. Raises PpspeechError for bytes that were changed, or are another row's."""
        plain = open_under(self._seals, sealed, about)
        if plain is None:
            raise PpspeechError("a row of the store was changed, or sealed under another key: it is not used")
        return plain


def seal_under(key: bytes, plain: bytes, about: str) -> bytes:
    """What only this key opens, and only as what it is about."""
    nonce = secrets.token_bytes(_NONCE)
    return nonce + crypto_aead_xchacha20poly1305_ietf_encrypt(plain, about.encode(), nonce, key)


def open_under(key: bytes, sealed: bytes, about: str) -> bytes | None:
    """What `seal_under` sealed; None for another key, for bytes that were changed, or are about something else."""
    try:
        parts = bytes(sealed[_NONCE:]), about.encode(), bytes(sealed[:_NONCE])
        return bytes(crypto_aead_xchacha20poly1305_ietf_decrypt(*parts, key))
    except (CryptoError, ValueError, TypeError):
        return None


def write_store_key(path: Path) -> None:
    """A new key in a new file for its owner alone. Raises PpspeechError for a file that is there already."""
    write_key_file(path, secrets.token_bytes(KEY_BYTES))


def write_key_file(path: Path, key: bytes) -> None:
    """Keep a key in a new file for its owner alone. Raises PpspeechError for a file that is there already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise PpspeechError(
            f"{path} is there already: a key is not replaced, what it sealed would be lost; name another file"
        ) from None
    with os.fdopen(opened, "w") as file:
        file.write(key.hex() + "\n")


def read_key_file(path: Path, closed: int, maker: str) -> bytes:
    """The key in a file. `closed`: bits of its mode that must not be set. `maker`: the command that writes such a file.

    Raises PpspeechError for a file that is none, or that is open to others.
    """
    try:
        if path.stat().st_mode & closed:
            who = "others" if closed & 0o070 else "everybody"
            raise PpspeechError(f"{who} can read the key {path}: chmod 600 it, and use another if somebody has")
        text = path.read_text("ascii").strip()
    except OSError as error:
        raise PpspeechError(f"cannot read the key {path}: {error.strerror}; `{maker}` makes one") from None
    except UnicodeDecodeError:
        text = ""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise PpspeechError(f"{path} holds no key: 64 hexadecimal digits, as `{maker}` writes them")
    return bytes.fromhex(text)


def _derived(key: bytes, use: bytes) -> bytes:
    if len(key) != KEY_BYTES:
        raise PpspeechError(f"the key of a store has {KEY_BYTES} bytes, got {len(key)}")
    return blake2b(use, digest_size=KEY_BYTES, key=key, person=b"ppspeech store").digest()
