"""Which song is it? The terms on which an index of songs is asked. Names are not told, nor how long songs are."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, ClassVar

from ppspeech.bundle import to_plain
from ppspeech.errors import BundleError
from ppspeech.network.channel import canonical
from ppspeech.protocols.music import LandmarkShape, MusicShape
from ppspeech.service.offer import TASKS


@TASKS.register("music")
@dataclass(frozen=True, slots=True)
class Music:
    """One index of songs; what is None cannot be asked for.

    Attributes:
        map_digest: SHA-256 of the sealed map, in hexadecimal digits, so that a client that has it need not take it
            again.

    Raises BundleError for parts that do not fit each other.
    """

    TASK: ClassVar[str] = "music"

    fingerprints: MusicShape | None
    shapes: MusicShape | None
    landmarks: LandmarkShape | None
    map_digest: str

    def __post_init__(self) -> None:
        if self.fingerprints is None and self.shapes is None and self.landmarks is None:
            raise BundleError("an index of songs is asked by fingerprints, shapes or landmarks, got none of them")
        for method in ("fingerprints", "shapes"):
            shape: MusicShape | None = getattr(self, method)
            if shape is not None and shape.method != method:
                raise BundleError(f"{method} are told by a shape of {method}, got {shape.method}")
        if not re.fullmatch("[0-9a-f]{64}", self.map_digest):
            raise BundleError("a digest is 64 hexadecimal digits")

    @property
    def asked(self) -> str:
        """How it is asked from the command line."""
        return "music find clip.wav --server {}"

    @property
    def takes(self) -> str:
        """What may be asked about."""
        return ""

    def agreement(self, fingerprint: str) -> dict[str, Any]:
        """Public parameters of a session: both parties mean this index, on these terms."""
        return {"model": fingerprint, "terms": hashlib.sha256(canonical(to_plain(self))).hexdigest()}
