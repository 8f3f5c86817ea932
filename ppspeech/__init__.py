"""Private speech processing in PyTorch.

Importing this package loads nothing heavy; what is asked for is imported then::

    from ppspeech import connect, load_bundle, serve

    load_bundle("words").recognize("clip.wav").value
    with serve("words") as server, connect(server.address, pin=server.pin) as client:
        client.recognize("clip.wav").value
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ppspeech.audio import Mfcc
    from ppspeech.bundle import load_bundle
    from ppspeech.data import load_corpus
    from ppspeech.privacy import Accountant
    from ppspeech.service import connect, serve

__all__ = ["Accountant", "Mfcc", "__version__", "connect", "load_bundle", "load_corpus", "serve"]

__version__ = "0.1.0"

# A waiting thread must not burn a core that another needs. OpenMP reads this once, when torch or numba load it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

_ROOMS = {
    "audio", "bundle", "crypto", "data", "filters", "models", "network", "privacy", "protocols", "service", "training"
}  # fmt: skip
_ROOM_OF = {
    "Accountant": "privacy",
    "Mfcc": "audio",
    "connect": "service",
    "load_bundle": "bundle",
    "load_corpus": "data",
    "serve": "service",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _ROOMS:
            return import_module(f"{__name__}.{name}")
        if name not in _ROOM_OF:
            raise AttributeError(f"{__name__} has no {name!r}")
        return getattr(import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
