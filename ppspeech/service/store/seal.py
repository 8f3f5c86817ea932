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
    crypto_aead_xchacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt,
    crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
    crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
)
from nacl.exceptions import CryptoError

from ppspeech.errors import PpspeechError

KEY_BYTES = crypto_aead_xchacha20poly1305_ietf_KEYBYTES
_NONCE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES


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
        try:
            if path.stat().st_mode & 0o007:
                raise PpspeechError(f"everybody can read the key {path}: chmod 600 it, or make another")
            text = path.read_text("ascii").strip()
        except OSError as error:
            raise PpspeechError(
                f"cannot read the key {path}: {error.strerror}; `ppspeech keys store FOLDER` makes one"
            ) from None
        except UnicodeDecodeError:
            text = ""
        if not re.fullmatch("[0-9a-f]{64}", text):
            raise PpspeechError(f"{path} holds no key: 64 hexadecimal digits, as `ppspeech keys store` writes them")
        return cls.under(bytes.fromhex(text))

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
        nonce = secrets.token_bytes(_NONCE)
        return nonce + crypto_aead_xchacha20poly1305_ietf_encrypt(plain, about.encode(), nonce, self._seals)

    def open(self, sealed: bytes, about: str) -> bytes:
        """What `seal` sealed. Raises PpspeechError for bytes that were changed, or are another row's."""
        try:
            plain = crypto_aead_xchacha20poly1305_ietf_decrypt(
                bytes(sealed[_NONCE:]), about.encode(), bytes(sealed[:_NONCE]), self._seals
            )
        except (CryptoError, ValueError, TypeError):
            raise PpspeechError("a row of the store was changed, or sealed under another key: it is not used") from None
        return bytes(plain)


def write_store_key(path: Path) -> None:
    """A new key in a new file for its owner alone. Raises PpspeechError for a file that is there already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise PpspeechError(f"{path} is there already: a key is not replaced, what it sealed would be lost") from None
    with os.fdopen(opened, "w") as file:
        file.write(secrets.token_hex(KEY_BYTES) + "\n")


def _derived(key: bytes, use: bytes) -> bytes:
    if len(key) != KEY_BYTES:
        raise PpspeechError(f"the key of a store has {KEY_BYTES} bytes, got {len(key)}")
    return blake2b(use, digest_size=KEY_BYTES, key=key, person=b"ppspeech store").digest()
