"""Certificates that browsers let a page pin: of at most fourteen days, each known to pages long before it is shown."""

import datetime
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from ppspeech.errors import PpspeechError
from ppspeech.network.tls.certificates import make_certificate
from ppspeech.storage import atomic_write, private_folder

logger = logging.getLogger(__name__)

LIFE = datetime.timedelta(days=13)
"""Browsers take up to fourteen days, from its first moment to its last, for one that is known by its hash."""
OVERLAP = datetime.timedelta(days=1)
"""Of a certificate and the next, which takes over in the middle: clocks may be half a day off."""
PINS = "pins.json"


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@dataclass(frozen=True, slots=True)
class ShortLived:
    """A certificate with its key, both as `cryptography` has them."""

    certificate: x509.Certificate
    key: Any = field(repr=False)

    @property
    def pin(self) -> str:
        """The SHA-256 of its DER form, in hexadecimal."""
        return self.certificate.fingerprint(hashes.SHA256()).hex()


class ShortLivedCertificates:
    """The certificate that is shown now and the one after it, kept in a folder that is closed to other users.

    There are always two, so that whoever writes the pins into a page has twelve days to do so; they are in the file
    `pins.json` of the folder too. `renew` is to be called now and then. `clock`: what time it is.

    Raises PpspeechError for a folder with other files than these.
    """

    def __init__(self, folder: Path, clock: Callable[[], datetime.datetime] = _now) -> None:
        self._folder, self._clock = private_folder(folder), clock
        self._kept = [_read(file) for file in sorted(self._folder.glob("*.pem"))]  # by name, and so by time
        self.renew()

    @property
    def current(self) -> ShortLived:
        """The one to show."""
        return self._kept[0]

    @property
    def pins(self) -> list[str]:
        """What pages pin: the certificate that is shown, and the next."""
        return [each.pin for each in self._kept]

    def renew(self) -> None:
        """Leave a certificate whose time is over, and make the one after the next."""
        now, before = self._clock(), len(self._kept)
        kept = [each for each in self._kept if each.certificate.not_valid_after_utc - OVERLAP / 2 > now]
        if kept and kept[0].certificate.not_valid_before_utc > now:
            kept = []  # of a clock that was set back
        if len(kept) == before == 2:
            return
        for each in self._kept:
            if each not in kept:
                for file in self._files(each.certificate.not_valid_before_utc):
                    file.unlink(missing_ok=True)
        self._kept = kept
        while len(self._kept) < 2:
            start = self._kept[-1].certificate.not_valid_after_utc - OVERLAP if self._kept else now - OVERLAP / 24
            certificate, key = self._files(start)
            key.unlink(missing_ok=True)  # of one that was not finished
            make_certificate(certificate, key, days=LIFE.days, start=start)
            self._kept.append(_read(certificate))
        with atomic_write(self._folder / PINS, private=True) as path:
            path.write_text(json.dumps(self.pins) + "\n")
        begins = self._kept[1].certificate.not_valid_before_utc
        logger.info("pages pin %s, and soon after %s %s", self.pins[0], begins, self.pins[1])

    def _files(self, start: datetime.datetime) -> tuple[Path, Path]:
        name = f"{start:%Y%m%dT%H%M%S}"
        return self._folder / f"{name}.pem", self._folder / f"{name}.key"


def _read(certificate: Path) -> ShortLived:
    try:
        key = serialization.load_pem_private_key(certificate.with_suffix(".key").read_bytes(), None)
        return ShortLived(x509.load_pem_x509_certificate(certificate.read_bytes()), key)
    except (OSError, ValueError) as error:
        raise PpspeechError(f"cannot use {certificate} and its key: {error}; remove both to have others made") from None
