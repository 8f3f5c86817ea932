"""Where is it in the text? The terms on which a text is searched for patterns that its server does not see."""

import hashlib
import struct
from dataclasses import dataclass
from typing import Any, ClassVar

from ppspeech.bundle import to_plain
from ppspeech.channel import Channel
from ppspeech.errors import BadTypeError, BundleError, RangeError
from ppspeech.network.channel import canonical
from ppspeech.protocols import Kind
from ppspeech.protocols.text import TELLS, WAYS, Alphabet, Tells, TextShape, alphabet_of
from ppspeech.service.offer import TASKS

_WANTED = struct.Struct(">BBH")


@TASKS.register("text")
@dataclass(frozen=True, slots=True)
class Texts:
    """One text. What is told of it is its size, rounded up, and to what alphabet it was folded.

    Attributes:
        tells: the most that a client may ask for; less may always be asked.

    Raises BundleError for a size or an alphabet that cannot be.
    """

    TASK: ClassVar[str] = "text"

    alphabet: str
    lines: int
    width: int
    tells: Tells

    def __post_init__(self) -> None:
        try:
            self.shape("classes", 7, self.tells)
        except RangeError as refused:
            raise BundleError(str(refused)) from None

    @property
    def letters(self) -> Alphabet:
        """What the text was folded to."""
        return alphabet_of(self.alphabet)

    @property
    def offered(self) -> tuple[Tells, ...]:
        """What may be asked for."""
        return TELLS[: TELLS.index(self.tells) + 1]

    def shape(self, way: Any, size: int, tells: Any) -> TextShape:
        """Of a search. Raises RangeError for sizes that cannot be."""
        return TextShape(self.lines, self.width, self.letters.bits, way, size, tells)

    @property
    def asked(self) -> str:
        """How it is asked from the command line."""
        return "grep PATTERN --server {}"

    @property
    def takes(self) -> str:
        """What patterns are of."""
        return f"patterns over {self.alphabet}"

    def agreement(self, fingerprint: str) -> dict[str, Any]:
        """Public parameters of a session: both parties mean this text, on these terms."""
        return {"model": fingerprint, "terms": hashlib.sha256(canonical(to_plain(self))).hexdigest()}


def send_wanted(channel: Channel, shape: TextShape) -> None:
    """Client: what is public of its search."""
    channel.send(Kind.REQUEST, _WANTED.pack(WAYS.index(shape.way), TELLS.index(shape.tells), shape.size))


def receive_wanted(channel: Channel, terms: Texts) -> TextShape:
    """Server: what `send_wanted` sent. Raises BadTypeError for a search that is not offered, RangeError for one that is
    too large.
    """
    way, tells, size = _WANTED.unpack(channel.receive(Kind.REQUEST, _WANTED.size))
    if way >= len(WAYS) or tells >= len(terms.offered):
        raise BadTypeError(f"this text may be asked for {', '.join(terms.offered)} by {', '.join(WAYS)}")
    return terms.shape(WAYS[way], size, TELLS[tells])
