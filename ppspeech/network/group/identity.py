"""Who is calling: a party shows its certificate and signs the session with the certificate's key.

The party that connects knows the other by TLS and the pin. This is the other direction: the one that listens learns
which party called, without a certificate authority. The signature covers the session, which both nonces name, and the
fingerprint of the one it is shown to, so that it cannot be shown to somebody else.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ppspeech.errors import PpspeechError, WrongKeyError
from ppspeech.network.tls.certificates import check_pin, fingerprint

ECDSA = ec.ECDSA(hashes.SHA256())
LARGEST_CERTIFICATE = 4096
LARGEST_SIGNATURE = 160
LARGEST = 2 + LARGEST_CERTIFICATE + LARGEST_SIGNATURE


@dataclass(frozen=True, repr=False)
class Identity:
    """A party's own certificate and key. `key`: PEM file of its private key, on an elliptic curve, as
    `make_certificate` makes it. Raises `PpspeechError` if a file cannot be read or does not fit.
    """

    certificate: Path
    key: Path

    def __post_init__(self) -> None:
        self._private()
        self.der()

    @property
    def pin(self) -> str:
        """The fingerprint that others know us by."""
        return fingerprint(self.certificate)

    def der(self) -> bytes:
        """The certificate as bytes."""
        try:
            loaded = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        except (OSError, ValueError) as error:
            raise PpspeechError(f"cannot use the certificate {self.certificate}: {error}") from None
        return loaded.public_bytes(serialization.Encoding.DER)

    def sign(self, message: bytes) -> bytes:
        """Our certificate and a signature, for `verify`."""
        der = self.der()
        return len(der).to_bytes(2, "big") + der + self._private().sign(message, ECDSA)

    def __repr__(self) -> str:
        return f"Identity({self.certificate})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an identity can sign: it cannot be pickled or copied")

    def _private(self) -> ec.EllipticCurvePrivateKey:
        try:
            key = serialization.load_pem_private_key(self.key.read_bytes(), password=None)
        except (OSError, ValueError, TypeError) as error:
            raise PpspeechError(f"cannot use the key {self.key}: {error}") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise PpspeechError(f"{self.key} must be a key on an elliptic curve, as ppspeech makes them")
        return key


def verify(signed: bytes, message: bytes, pin: str) -> None:
    """Check that the party with this pin has signed the message. Raises `WrongKeyError` if it has not."""
    length = int.from_bytes(signed[:2], "big")
    der, signature = signed[2 : 2 + length], signed[2 + length :]
    check_pin(der, pin)  # before anything is parsed: what follows are bytes that we have agreed on
    key = x509.load_der_x509_certificate(der).public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise WrongKeyError("the pinned certificate has no key on an elliptic curve")
    try:
        key.verify(signature, message, ECDSA)
    except InvalidSignature:
        raise WrongKeyError("the signature is not by the pinned certificate's key") from None
