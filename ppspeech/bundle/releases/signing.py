"""Who vouches for a release: `model.sig`, a signature of all files of a bundle by OpenSSF Model Signing.

Whoever can write a bundle can make up events, weights or figures that fit each other, and digests that fit them: no
check of the files tells. A signature does, for those who know the signer's public key. It is made and checked by
`model-signing` (the extra `sign`), offline and with a key of one's own (ECDSA on P-256), so that others can check it
without ppspeech too: `model_signing verify key`.
"""

import base64
import binascii
import importlib
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ppspeech.bundle.format import (
    CARD,
    DIGESTS,
    EVENTS,
    METRICS,
    PRIVACY,
    SIGNATURE,
    SIZES,
    WEIGHTS,
    digests,
    read_files,
)
from ppspeech.bundle.reader import Bundle, bundle_of
from ppspeech.bundle.releases.ledger import Ledger
from ppspeech.bundle.strict_json import read_json, write_json
from ppspeech.errors import BundleError
from ppspeech.storage import atomic_write

PUBLIC = ".pub"
"""The public key is beside the private one, under its name with this ending."""

NOT_PROVEN = (
    "that the events are what happened, and that noise was drawn as they say: that is the signer's word",
    "that nothing else was released from the same data: a ledger says what was (`ppspeech ledger`)",
    "that this is the newest release: a whole old one, signature and all, is as valid as on its first day",
    "who the signer is: that the public key is theirs you must know from elsewhere",
)
"""What a valid signature leaves open."""

STATED = frozenset({PRIVACY, EVENTS, CARD, METRICS})

PREDICATE = "https://model_signing/signature/v1.0"

HEAD, HEAD_SIGNATURE = ".head", ".head.sig"
"""Beside a ledger: its head as of when it was signed, and the signature."""


def make_signing_key(path: Path) -> Path:
    """Make a P-256 key in a PEM file that its owner alone can read; returns the file of the public key beside it.

    Raises BundleError where either exists: a key is never replaced.
    """
    private = ec.generate_private_key(ec.SECP256R1())
    pem = serialization.Encoding.PEM
    secret = private.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    for file, data, mode in ((path, secret, 0o600), (path.with_suffix(PUBLIC), public, 0o644)):
        try:
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            raise BundleError(f"{file} exists already: a key is never replaced; choose another file") from None
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
    return path.with_suffix(PUBLIC)


def sign_release(folder: str | Path, key: Path) -> Bundle:
    """Sign a bundle that loads; the signature becomes one of its files. Raises BundleError if it is signed already."""
    folder = Path(folder)
    contents = read_files(folder)
    bundle = bundle_of(contents)
    if SIGNATURE in contents:
        raise BundleError(f"{folder} is signed already: remove {SIGNATURE} to sign it anew")
    signature = _sign(folder, key)
    if _signed(signature)[1] != bundle.digests:
        raise BundleError(f"{folder} changed while it was being signed: it is not signed")
    with atomic_write(folder / SIGNATURE) as temporary:
        temporary.write_bytes(signature)
    return bundle


def verify_release(folder: str | Path, key: Path) -> Bundle:
    """Load a bundle that the holder of this key has signed, and refuse any other.

    All that `load_bundle` checks is checked, epsilon recomputed from the events; and that weights, statement, events,
    card and figures are, byte by byte, those that were signed. `NOT_PROVEN` says what that leaves open.

    Raises BundleError for a bundle that is not signed, or by another key; whose weights or statement are not those that
    were signed; that has the signature of another release; and for whatever `load_bundle` refuses.
    """
    folder = Path(folder)
    contents = read_files(folder)
    if SIGNATURE not in contents:
        raise BundleError(f"{folder} is not signed: there is no {SIGNATURE} in it")
    found = digests({name: contents[name] for name in SIZES})
    signed = _check(folder, contents[SIGNATURE], key)
    if signed != found:
        raise BundleError(_difference(signed, found))
    return bundle_of(contents)


def sign_head(path: Path, ledger: Ledger, key: Path) -> str:
    """Vouch for a ledger up to its head, in two files beside it; returns the head. Later entries need a new one."""
    head, signature = _beside(path)
    with atomic_write(head) as temporary:
        temporary.write_bytes(write_json({"head": ledger.head}))
    sealed = _sign(head, key)
    with atomic_write(signature) as temporary:
        temporary.write_bytes(sealed)
    return ledger.head


def check_signed_head(path: Path, ledger: Ledger, key: Path) -> str:
    """The head that the holder of this key has vouched for; BundleError if there is none, or the ledger lacks it."""
    head, signature = _beside(path)
    if not (head.is_file() and signature.is_file()):
        raise BundleError(f"no head of {path} is signed: there is no {head.name} with {signature.name}")
    data, sealed = _small(head), _small(signature)
    if _check(head, sealed, key) != {".": digests({".": data})["."]}:
        raise BundleError(f"{head} is not the head that was signed")
    known = read_json(data, head.name).get("head")
    ledger.check_head(known if isinstance(known, str) else "")
    return str(known)


def _beside(path: Path) -> tuple[Path, Path]:
    return path.with_name(path.name + HEAD), path.with_name(path.name + HEAD_SIGNATURE)


def _small(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(1 << 16)


def _library(name: str) -> Any:
    """A module of `model-signing`, which is imported when it is needed, and not before."""
    try:
        return importlib.import_module(f"model_signing.{name}")
    except ImportError as missing:
        raise BundleError(f'signatures need model-signing ({missing}): pip install "ppspeech[sign]"') from None


def _sign(what: Path, key: Path) -> bytes:
    signing, hashing = _library("signing"), _library("hashing")
    try:
        signer = signing.Config().use_elliptic_key_signer(private_key=key)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BundleError(f"cannot sign with {key}: {error}; `ppspeech keys signing FOLDER` makes a key") from None
    plain = hashing.Config().set_ignored_paths(paths=[SIGNATURE], ignore_git_paths=False)
    with tempfile.TemporaryDirectory() as place:
        signer.set_hashing_config(plain).sign(what, Path(place) / SIGNATURE)
        return (Path(place) / SIGNATURE).read_bytes()


def _check(what: Path, signature: bytes, key: Path) -> dict[str, str]:
    """The digests that the holder of `key` has signed, by file. They need not be those of the files at `what`.

    The library reads signature and files itself: what it has checked is a copy of these bytes of the signature, and the
    files are compared with it by whoever has read them.
    """
    hint, signed = _signed(signature)
    signer = signer_of(key)
    if hint != signer:
        raise BundleError(f"signed by another key ({hint:.64}), not by {key} ({signer}): do not trust it")
    try:
        verifier = _library("verifying").Config().use_elliptic_key_verifier(public_key=key)
    except (ValueError, AttributeError) as error:
        raise BundleError(f"{key} is no key on a curve that signs bundles: {error}") from None
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / SIGNATURE
        copy.write_bytes(signature)
        try:
            verifier.verify(what, copy)
        except InvalidSignature:
            raise BundleError("the signature was not made with the key that it names: it was made up") from None
        except ValueError as refused:
            # The signature holds and the files are others: the caller says which.
            if not str(refused).startswith("Signature mismatch"):
                raise BundleError(f"the signature cannot be read: {refused}") from None
    return signed


def signer_of(key: Path) -> str:
    """How a signer is known: SHA-256 of the public key as PEM, in hexadecimal. Raises BundleError for another file."""
    try:
        public = serialization.load_pem_public_key(key.read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise BundleError(f"{key} is no public key: {error}") from None
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return digests({"": pem})[""]


def _signed(signature: bytes) -> tuple[str, dict[str, str]]:
    """Whose key a signature names, and the digests it is about, as they stand there: nothing is checked yet."""
    plain = read_json(signature, SIGNATURE)
    with suppress(KeyError, TypeError, ValueError, binascii.Error, RecursionError):
        hint = plain["verificationMaterial"]["publicKey"]["hint"]
        statement = json.loads(base64.b64decode(plain["dsseEnvelope"]["payload"], validate=True))
        resources = statement["predicate"]["resources"]
        signed = {each["name"]: each["digest"] for each in resources}
        if (
            statement["predicateType"] == PREDICATE
            and all(each["algorithm"] == "sha256" for each in resources)
            and all(isinstance(text, str) for text in (hint, *signed, *signed.values()))
        ):
            return hint, signed
    raise BundleError(f"{SIGNATURE} is not a signature as `ppspeech sign` makes them")


def _difference(signed: Mapping[str, str], found: Mapping[str, str]) -> str:
    """What was done, as far as the digests show."""
    others = {name for name in found if signed.get(name) != found[name]} - {DIGESTS}
    if not others <= STATED | {WEIGHTS} or (WEIGHTS in others and others & {PRIVACY, EVENTS}):
        return (
            f"the signature is of another release ({signed.get(DIGESTS, 'unknown')}), not of this one "
            f"({found[DIGESTS]}): an old signature was put beside other files"
        )
    if WEIGHTS in others:
        return f"{WEIGHTS} is not the file that was signed: the weights were swapped"
    return f"{', '.join(sorted(others)) or DIGESTS} is not what was signed: what is said about the model was changed"
