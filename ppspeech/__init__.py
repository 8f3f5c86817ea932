"""Private speech processing in PyTorch.

Importing this package loads nothing heavy; what is asked for is imported then::

    from ppspeech import connect, load_bundle, serve

    load_bundle("words").recognize("clip.wav").value
    with serve("words") as server, connect(server.address, pin=server.pin) as client:
        client.recognize("clip.wav").value
"""

import os
from typing import TYPE_CHECKING

from ppspeech.doors import door

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

# numba keeps what it compiles beside its source or in a user's home, and fails where it may write to neither, as in an
# image or a unit of systemd: there it is kept where features are. It runs what it finds: nobody else may write there.
if "PPSPEECH_CACHE" in os.environ and not os.access(__file__.rpartition("/")[0], os.W_OK):
    os.environ.setdefault("NUMBA_CACHE_DIR", f"{os.environ['PPSPEECH_CACHE']}/numba")

if not TYPE_CHECKING:
    __getattr__ = door(__name__)
