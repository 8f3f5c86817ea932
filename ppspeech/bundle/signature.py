"""`signature.json`: who vouches for a bundle. Without it, its files only fit each other.

Whoever can write a bundle can make up events, weights or figures that fit each other, and digests that fit them: no
check of the files tells. A signature does, for those who know the signer's public key: Ed25519 over `digests.json`,
which names every other file.
"""

import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ppspeech.bundle.strict_json import read_json, write_json
from ppspeech.errors import BundleError

SIGNATURE = "signature.json"
FORMAT = 1
PURPOSE = b"ppspeech bundle, digests.json\n"
"""What is signed begins with it: a signature made for something else says nothing about a bundle."""


def make_signing_key(path: Path) -> str:
    """Make an Ed25519 key in a PEM file that its owner alone can read; returns the signer's pin. Never replaces one."""
    private = Ed25519PrivateKey.generate()
    secret = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise BundleError(f"{path} exists already: a key is never replaced; choose another file") from None
    with os.fdopen(handle, "wb") as file:
        file.write(secret)
    return _pin(private.public_key())


def sign(digests: bytes, key: Path) -> bytes:
    """`signature.json` for these bytes of `digests.json`. Raises BundleError for what is no Ed25519 key."""
    try:
        private = serialization.load_pem_private_key(key.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise BundleError(f"cannot sign with {key}: {error}; `ppspeech keys signing FOLDER` makes a key") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise BundleError(f"{key} is no Ed25519 key: `ppspeech keys signing FOLDER` makes one")
    signature = private.sign(PURPOSE + digests).hex()
    return write_json({"format": FORMAT, "signer": _pin(private.public_key()), "signature": signature})


def check_signature(digests: bytes, signature: bytes | None, signer: str | None) -> str | None:
    """Who signed these bytes of `digests.json`; None if nobody did and nobody was asked for.

    Raises BundleError for a signature that does not fit, whether it was asked for or not; and where the signer with the
    pin `signer` is asked for, if there is none, or another's.
    """
    found = None if signature is None else _signed_by(digests, signature)
    if signer is not None and found is None:
        raise BundleError(f"the bundle is not signed, and the signature of {signer:.80} is asked for")
    if signer is not None and found != signer.lower():
        raise BundleError(f"the bundle is signed by {found}, not by {signer:.80}: do not trust it")
    return found


def _signed_by(digests: bytes, signature: bytes) -> str:
    plain = read_json(signature, SIGNATURE)
    fields = {"format", "signer", "signature"}
    if set(plain) != fields or plain["format"] != FORMAT or type(plain["format"]) is not int:
        raise BundleError(f"{SIGNATURE} holds format {FORMAT}, a signer and a signature, got {sorted(plain)}")
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(plain["signer"]))
        key.verify(bytes.fromhex(plain["signature"]), PURPOSE + digests)
    except (InvalidSignature, ValueError, TypeError):
        raise BundleError(
            f"the signature of this bundle does not fit its files ({SIGNATURE}): do not trust it"
        ) from None
    return _pin(key)


def _pin(key: Ed25519PublicKey) -> str:
    """How a signer is known: the public key, in hexadecimal."""
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw).hex()
