"""What a party receives, made without anybody's input: a simulator for every protocol whose messages hide all inputs.

A party learns no more than its output if what it receives could be drawn from public sizes and that output alone. Here
it is drawn so, the same way for every protocol:

    order, kinds, sizes    are public, and the same in every run
    format                 bits that never vary (headers, spare bits of a residue, names of a job) are public too; a
                           simulator finds them by rehearsing the protocol on inputs that it makes up
    points of a group      drawn as points
    everything else        each bit that varies is drawn uniformly: residues under masks, ciphertexts (pseudorandom
                           under ring-LWE), pads, seeds, digests, shares of what is opened
    what is released       a sum, directions: taken from the output, of which it is a part

The greeting of a session (`RESUME`), which repeats the party's own, is left out. A share of an output (`OPEN`, a share
of a name) is uniform by itself and, beside the receiver's own share, gives the output: that the two together hold no
more is what `tests/crypto/test_exhaustive.py` shows. `tests/protocols/test_simulators.py` compares real views with
simulated ones, of every party of every protocol. Proposition 2.15 in docs/theory/asking.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import nacl.bindings as sodium
import numpy as np

from ppspeech.arrays import Bytes
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto import uniform_bytes
from ppspeech.crypto.transfer import POINT_BYTES
from ppspeech.errors import PpspeechError, ProtocolError
from ppspeech.protocols.message_kinds import Kind, kind_of

POINTS = frozenset(kind for kind in CryptoKind if "point" in kind.meaning)
RELEASED = frozenset(kind for kind in Kind if kind.meaning.startswith("the released"))
"""What every receiver is to learn: part of its output."""
PRINTED_OR_FILTERED = (range(40, 80), range(125, 200))  # as `message_kinds` numbers them
SHOWN = frozenset(
    kind
    for kind in Kind
    if kind.name in {"REQUEST", "READY"} or any(kind in numbers for numbers in PRINTED_OR_FILTERED)
)
"""What cannot be drawn without an input: the printed protocols' ciphertexts and blinded numbers, whose statements say
what they tell, filtered samples and their labels; and what people ask of a server, which is public.
"""

View = Sequence[tuple[int, bytes]]
"""Kind and payload of every message that a party received on a channel, in order; greetings apart."""


@dataclass(frozen=True)
class Format:
    """What is public of the messages of a channel: their kinds and sizes, which bits vary, and the bits that do not.

    `fixed`: of each message, its bytes with zeros where bits vary. `varies`: of each, ones where they do.
    """

    kinds: tuple[int, ...]
    fixed: tuple[Bytes, ...]
    varies: tuple[Bytes, ...]

    @classmethod
    def of(cls, views: Sequence[View]) -> "Format":
        """From views of a party in several runs. Raises ProtocolError if kinds, sizes or order differ between them."""
        shapes = {tuple((kind, len(payload)) for kind, payload in view) for view in views}
        if len(shapes) != 1:
            raise ProtocolError(f"a party's messages differ in kinds, sizes or order between runs: {len(shapes)} ways")
        runs = [[np.frombuffer(payload, np.uint8) for _, payload in view] for view in views]
        varies = [np.bitwise_or.reduce([each ^ first for each in others]) for first, *others in zip(*runs, strict=True)]
        fixed = [first & ~moving for first, moving in zip(runs[0], varies, strict=True)]
        return cls(tuple(kind for kind, _ in views[0]), tuple(fixed), tuple(varies))


def simulate(form: Format, output: Mapping[int, Sequence[bytes]] | None = None) -> list[tuple[int, bytes]]:
    """A view that nobody can tell from a real one. `output`: the messages that release the party's output, by kind.

    Raises PpspeechError for a message that cannot be drawn: the protocol states what it tells.
    """
    released = {kind: iter(messages) for kind, messages in (output or {}).items()}
    return [
        (kind, next(released[kind]) if kind in RELEASED else _drawn(kind, fixed, varies))
        for kind, fixed, varies in zip(form.kinds, form.fixed, form.varies, strict=True)
    ]


def _drawn(kind: int, fixed: Bytes, varies: Bytes) -> bytes:
    if kind in SHOWN:
        meaning = getattr(kind_of(kind), "meaning", kind)
        raise PpspeechError(f"{meaning} cannot be drawn without an input: the protocol states what it tells")
    if kind in POINTS:
        scalars = [
            sodium.crypto_core_ed25519_scalar_reduce(uniform_bytes(64)) for _ in range(len(fixed) // POINT_BYTES)
        ]
        return b"".join(map(sodium.crypto_scalarmult_ed25519_base_noclamp, scalars))
    return (fixed | (np.frombuffer(uniform_bytes(len(fixed)), np.uint8) & varies)).tobytes()
