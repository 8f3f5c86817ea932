"""A person's template, sealed under the person's own key: who steals the server's store has nothing without it.

    template   the direction of a voice, and of the ten digits as the person says them; 32-bit floats
    sealed     XChaCha20-Poly1305 under the key, bound to the name and to the space that the template is of

The device draws the key and seals; the server keeps what it cannot open. At a log-in the device hands over the key: the
server opens the template for this one check and keeps neither. A server that does not follow the protocol could.
"""

import secrets
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.crypto import unpack_floats
from ppspeech.errors import RangeError
from ppspeech.protocols.speakers import TEN, LoginTerms
from ppspeech.service.store import KEY_BYTES, SEAL_BYTES, open_under, read_key_file, seal_under, write_key_file

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
    return SEAL_BYTES + 4 * (terms.voice + TEN * terms.digit)


def new_key() -> bytes:
    """A key, from the operating system's generator."""
    return secrets.token_bytes(KEY_BYTES)


def seal(key: bytes, name: str, space: str, template: Template) -> bytes:
    """A template that only the key opens, and only as that of this name in this space."""
    plain = np.concatenate([template.voice, template.digits.reshape(-1)]).astype("<f4").tobytes()
    return seal_under(key, plain, _bound(name, space))


def open_sealed(key: bytes, name: str, space: str, sealed: bytes, terms: LoginTerms) -> Template | None:
    """What `seal` sealed; None for another key, name or space, bytes that were changed, or what is no template."""
    plain = open_under(key, sealed, _bound(name, space))
    if plain is None:
        return None
    try:
        numbers = unpack_floats(plain)
        return Template(numbers[: terms.voice], numbers[terms.voice :].reshape(TEN, terms.digit))
    except (RangeError, ValueError):
        return None


def write_key(path: Path, key: bytes) -> None:
    """Keep a key in a new file for its owner alone. Raises PpspeechError for a file that is there already."""
    write_key_file(path, key)


def read_key(path: Path) -> bytes:
    """The key in a file. Raises PpspeechError for a file that is none, or that others can read."""
    return read_key_file(path, 0o077, "ppspeech login enroll")


def _bound(name: str, space: str) -> str:
    return f"ppspeech login {space} {name}"
