"""A person's template, sealed under the person's own key: who steals the server's store has nothing without it.

    template   the direction of a voice, and of the ten digits as the person says them; 32-bit floats
    sealed     XChaCha20-Poly1305 under the key, bound to the name and to the space that the template is of

The device draws the key and seals; the server keeps what it cannot open. At a log-in the device hands over the key: the
server opens the template for this one check and keeps neither. A server that does not follow the protocol could.
"""

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_ABYTES,
    crypto_aead_xchacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt,
    crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
    crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
)
from nacl.exceptions import CryptoError

from ppspeech.arrays import Reals
from ppspeech.crypto import unpack_floats
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.speakers import TEN, LoginTerms

KEY_BYTES = crypto_aead_xchacha20poly1305_ietf_KEYBYTES
_NONCE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
_EXTRA = _NONCE + crypto_aead_xchacha20poly1305_ietf_ABYTES
UNIT = 1e-3  # how far a direction's length may be from 1


@dataclass(frozen=True, eq=False)
class Template:
    """What a template is before it is sealed: a voice `(voice,)` and ten digits `(10, digit)`, all of length 1.

    Raises RangeError for anything else.
    """

    voice: Reals
    digits: Reals

    def __post_init__(self) -> None:
        rows = [self.voice[None], self.digits]
        if self.voice.ndim != 1 or self.digits.ndim != 2 or len(self.digits) != TEN:
            raise RangeError(f"a template is a voice and {TEN} digits, got {self.voice.shape} and {self.digits.shape}")
        lengths = np.concatenate([np.linalg.norm(each, axis=1) for each in rows])
        if not (np.abs(lengths - 1) <= UNIT).all():  # false for NaN too
            raise RangeError("directions have length 1")


def sealed_bytes(terms: LoginTerms) -> int:
    """How long every sealed template is."""
    return _EXTRA + 4 * (terms.voice + TEN * terms.digit)


def new_key() -> bytes:
    """A key, from the operating system's generator."""
    return secrets.token_bytes(KEY_BYTES)


def seal(key: bytes, name: str, space: str, template: Template) -> bytes:
    """A template that only the key opens, and only as that of this name in this space."""
    plain = np.concatenate([template.voice, template.digits.reshape(-1)]).astype("<f4").tobytes()
    nonce = secrets.token_bytes(_NONCE)
    return nonce + crypto_aead_xchacha20poly1305_ietf_encrypt(plain, _bound(name, space), nonce, key)


def open_sealed(key: bytes, name: str, space: str, sealed: bytes, terms: LoginTerms) -> Template | None:
    """What `seal` sealed; None for another key, name or space, bytes that were changed, or what is no template."""
    try:
        plain = crypto_aead_xchacha20poly1305_ietf_decrypt(sealed[_NONCE:], _bound(name, space), sealed[:_NONCE], key)
        numbers = unpack_floats(plain)
        return Template(numbers[: terms.voice], numbers[terms.voice :].reshape(TEN, terms.digit))
    except (CryptoError, RangeError, ValueError):
        return None


def write_key(path: Path, key: bytes) -> None:
    """Keep a key in a new file for its owner alone. Raises PpspeechError for a file that is there already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise PpspeechError(f"{path} is there already, and a key is not replaced: give another --key") from None
    with os.fdopen(opened, "w") as file:
        file.write(key.hex() + "\n")


def read_key(path: Path) -> bytes:
    """The key in a file. Raises PpspeechError for a file that is none, or that others can read."""
    try:
        if path.stat().st_mode & 0o077:
            raise PpspeechError(f"others can read the key {path}: chmod 600 it, and enroll anew if they have")
        text = path.read_text("ascii").strip()
    except OSError as error:
        raise PpspeechError(f"cannot read the key {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        text = ""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise PpspeechError(f"{path} holds no key: 64 hexadecimal digits, as `ppspeech login enroll` writes them")
    return bytes.fromhex(text)


def _bound(name: str, space: str) -> bytes:
    return f"ppspeech login {space} {name}".encode()
