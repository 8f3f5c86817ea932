"""Self-signed certificates for parties that know each other by fingerprint."""

import datetime
import hashlib
import hmac
import ipaddress
import os
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ppspeech.errors import PpspeechError, WrongKeyError


def make_certificate(
    certificate: Path,
    key: Path,
    names: Sequence[str] = ("localhost", "127.0.0.1"),
    days: float = 365,
    start: datetime.datetime | None = None,
) -> str:
    """Make a key (P-256), readable by its owner alone, and a certificate signed with it, as PEM files.

    Returns the fingerprint, which the other party pins. Never replaces a key; negative `days` make one that has
    expired. `start`: when its days begin, five minutes ago by default.
    """
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    start = start or datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=5)  # clocks differ
    end = start + datetime.timedelta(days=days)
    made = (
        x509.CertificateBuilder(subject_name=name, issuer_name=name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(start, end - datetime.timedelta(days=1)))
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([_general_name(each) for each in names]), critical=False)
        # Not an authority: whoever is let in by this certificate must not be able to sign itself others.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    secret = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    # The mode is given at creation: a file that is made readable and then closed can be read in between.
    with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret)
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return made.fingerprint(hashes.SHA256()).hex()


def fingerprint(certificate: Path) -> str:
    """The SHA-256 of a PEM certificate's DER form, in hexadecimal: what a peer pins."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.read_text())).hexdigest()


def check_pin(der: bytes | None, pin: str) -> None:
    """Raises `WrongKeyError` unless a peer's certificate is the pinned one and within its time."""
    if der is None or not hmac.compare_digest(hashlib.sha256(der).hexdigest(), pin):
        raise WrongKeyError("the peer's certificate is not the pinned one: ask the peer for its fingerprint again")
    pinned = x509.load_der_x509_certificate(der)
    if not pinned.not_valid_before_utc <= datetime.datetime.now(datetime.UTC) <= pinned.not_valid_after_utc:
        raise WrongKeyError(f"the peer's certificate was valid until {pinned.not_valid_after_utc}; it needs a new one")


def check_current(certificate: Path) -> None:
    """Raises `PpspeechError` for a PEM certificate that every client would refuse: expired, or not yet valid."""
    try:
        own = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError):
        return  # `ServerTls.context` says what is wrong with the file
    if not own.not_valid_before_utc <= datetime.datetime.now(datetime.UTC) <= own.not_valid_after_utc:
        raise PpspeechError(
            f"{certificate} is valid from {own.not_valid_before_utc:%Y-%m-%d %H:%M} to "
            f"{own.not_valid_after_utc:%Y-%m-%d %H:%M} UTC, not now: clients would refuse it; make another, as by "
            "`ppspeech keys new`"
        )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
