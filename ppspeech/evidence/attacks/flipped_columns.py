"""A client whose columns do not choose alike: row j differs in column j, so that the server's row j tells bit j of its
secret, and with the secret every table opens.
"""

from typing import Any

import numpy as np

from ppspeech.arrays import Bytes
from ppspeech.crypto.transfer import Side
from ppspeech.errors import ProtocolError
from ppspeech.evidence.attacks import Gain, Target, attack
from ppspeech.evidence.attacks.target import Victim, half_asked
from ppspeech.protocols import meet
from ppspeech.service import send_request

COLUMNS = {"code": 256, "receiver": 128}
"""Of the 1-of-n and the 1-of-2 transfers, by their names in a setup."""


def flipping(code: Any) -> Any:
    """A receiver's code that says something else in column j of row j than what was chosen."""

    def encode(parts: Bytes) -> Bytes:
        columns: Bytes = code.encode(parts).copy()
        rows = np.arange(min(len(columns), 8 * columns.shape[1]))
        columns[rows, rows // 8] ^= np.left_shift(1, rows % 8).astype(np.uint8)
        return columns

    return type("Flipping", (code,), {"encode": staticmethod(encode)})


def goes_on(victim: Victim, which: str) -> bool:
    """Whether the server, after such columns of one extension, multiplies a query: it has not noticed."""
    try:
        with victim.session() as channel:
            met = meet(channel, Side.SECOND)
            extension = getattr(met.setup, which)
            extension.code = flipping(extension.code)
            send_request(channel, victim.request)
            with met.session():
                half_asked(victim, met)
    except ProtocolError:
        return False
    return True


@attack(
    "flipped_columns",
    "the server's secret of its transfers, by columns that do not choose alike",
    tasks=("words", "sentences"),
)
def flipped_columns(target: Target) -> Gain:
    """Both extensions, each in sessions of its own: what a session tells is spent with it."""
    tries = 1 if target.quick else 3
    victim = target.usual
    survived = [which for which in COLUMNS for _ in range(tries) if goes_on(victim, which)]
    bits = sum(COLUMNS[which] for which in survived)
    note = f"{len(survived)} of {2 * tries} sessions went on"
    return Gain(bits, "bits", 2 * tries, bool(survived), note)
