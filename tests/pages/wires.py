"""Parts of `wire.md`."""

from ppspeech.audio.usual import DERIVATIVES, FILTER_LEVEL, FILTER_SPREAD
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto.lattice import KEPT_BITS
from ppspeech.crypto.lattice.ntt import transform_of
from ppspeech.crypto.lattice.parameters import LARGEST_ERROR, SENT_BITS, LatticeParameters
from ppspeech.crypto.lattice.public_key import key_length
from ppspeech.crypto.lattice.wire import HEADER_BYTES
from ppspeech.crypto.lattice.zeros import SEED_BYTES
from ppspeech.crypto.shares.choose import DIGIT
from ppspeech.crypto.shares.compare import BLOCK, GROUP, STEP, WIDER
from ppspeech.crypto.shares.engine import ROOM
from ppspeech.crypto.shares.log_add import FEW as FEW_ADDITIONS
from ppspeech.crypto.shares.log_add import INDEX
from ppspeech.crypto.shares.log_add import LONGEST as LONGEST_BLOCK
from ppspeech.crypto.shares.text import LETTERS
from ppspeech.crypto.transfer.base import ANSWER_BYTES
from ppspeech.crypto.transfer.bit_matrix import PORTION, ROWS_TOGETHER
from ppspeech.crypto.transfer.check import CHECK_ROWS
from ppspeech.crypto.transfer.codes import CODE_COLUMNS
from ppspeech.crypto.transfer.extension import PAIR_COLUMNS
from ppspeech.crypto.transfer.setup import GREETING_BYTES, SETUP_BYTES_FIRST, SETUP_BYTES_SECOND
from ppspeech.network import Capacity, Limits
from ppspeech.network.channel import frames, hello
from ppspeech.network.group.join import BEGIN, INTRODUCTION
from ppspeech.network.tls.connect import TICKET
from ppspeech.protocols import Kind
from ppspeech.protocols.scores.states import VAGUE, WordShape
from ppspeech.protocols.trellis.combine import TABLE_STEP
from ppspeech.protocols.trellis.schedule import LATEST, LONGEST_INTERVAL
from ppspeech.protocols.words import recursion
from ppspeech.service.offer import FORMAT, LONGEST, MOST_BYTES, MOST_OFFERS
from ppspeech.service.requests import MEASURED, ORDERS, UNLIMITED, Ask
from ppspeech.service.server.session import MOST_PINGS
from tests.pages.tables import table

WORDS_NEED = {
    *(Kind.LATTICE_KEY, Kind.QUERY, Kind.REPLY, Kind.REQUEST, Kind.READY),
    *(CryptoKind.BASE_POINT, CryptoKind.BASE_REPLY, CryptoKind.BASE_COLUMNS, CryptoKind.RESUME, CryptoKind.COLUMNS),
    *(CryptoKind.CODE_COLUMNS, CryptoKind.ASK, CryptoKind.TABLES, CryptoKind.PRODUCT, CryptoKind.OPEN),
    CryptoKind.FLIGHT,
}
"""What a client of words sends or receives."""


def kinds() -> str:
    """Every kind of message."""
    session = [
        (frames.HELLO, "HELLO", "the session begins", "yes"),
        (frames.ABORT, "ABORT", "the session is over", "yes"),
    ]
    network = [
        (TICKET, "TICKET", "by which a listener knows the caller", ""),
        (INTRODUCTION, "INTRODUCTION", "a signature of who it is, in a group", ""),
        (BEGIN, "BEGIN", "that all of a group are there, or who is not", ""),
    ]
    own = [(int(k), k.name, k.meaning, "yes" if k in WORDS_NEED else "") for kinds in (Kind, CryptoKind) for k in kinds]
    rows = sorted([*session, *network, *own])
    return table(
        ("number", "name", "what it is, to whoever receives it", "words"),
        [(number, f"`{name}`", meaning, words) for number, name, meaning, words in rows],
    )


def requests() -> str:
    """What may be asked, and in which order of computation."""
    asked = [(f"{ask.value}", f"`{ask.name}`", "yes" if ask in MEASURED else "") for ask in Ask]
    orders = ", ".join(f"{number} `{name}`" for number, name in enumerate(ORDERS))
    return table(("what", "name", "has a size"), asked) + f"\n\nOrders: {orders}."


def constants() -> str:
    """Every number that the page speaks of."""
    ring, limits, capacity, shape = LatticeParameters(), Limits(), Capacity(), WordShape.__dataclass_fields__
    rows: list[tuple[str, object]] = [
        ("magic of a frame", f"{frames.MAGIC:#06x}"),
        ("version of a frame", frames.VERSION),
        ("bytes of a frame's header", frames.HEADER.size),
        ("last sequence number", frames.LAST_SEQUENCE),
        ("payload of ABORT", f"`{frames.ABORT_PAYLOAD.hex()}`"),
        ("bytes of a HELLO, at most", hello.MAX_BYTES),
        ("bytes of a nonce", hello.NONCE_BYTES),
        ("a protocol's name", f"`{hello.NAME.pattern}`"),
        ("bytes of a message, at most, by default", limits.message_bytes),
        ("seconds to the end of HELLO, by default", limits.handshake_seconds),
        ("seconds for one message, by default", limits.message_seconds),
        ("seconds for a session, by default", limits.session_seconds),
        ("seconds to the first message after HELLO, on a server", capacity.opening_seconds),
        ("format of a description", FORMAT),
        ("bytes of a description, at most", LONGEST),
        ("offers of a description, at most", MOST_OFFERS),
        ("bytes that our client exchanges for a question, at most", MOST_BYTES),
        ("pings in a row, at most", MOST_PINGS),
        ("queries left where they are not counted", UNLIMITED),
        ("columns of 1-of-2 transfers", PAIR_COLUMNS),
        ("columns of 1-of-n transfers", CODE_COLUMNS),
        ("rows come in multiples of", ROWS_TOGETHER),
        ("rows that only blind the check", CHECK_ROWS),
        ("transfers in one message, at most", PORTION),
        ("bytes of an answer to a base transfer", ANSWER_BYTES),
        ("bytes the server sends in the set-up", SETUP_BYTES_FIRST),
        ("bytes the client sends in the set-up", SETUP_BYTES_SECOND),
        ("bytes of RESUME", GREETING_BYTES),
        ("bytes of a flight, unless its only message is longer", ROOM),
        ("degree n of the ring", ring.degree),
        ("prime q", ring.prime),
        ("root ψ", int(transform_of(ring).roots[ring.degree // 2])),
        ("largest error", LARGEST_ERROR),
        ("bits of a residue that travel in a query", SENT_BITS),
        ("bits of a residue that travel in a reply", KEPT_BITS),
        ("bytes of a public key", key_length(ring)),
        ("bytes of a seed", SEED_BYTES),
        ("bytes of the header of QUERY and REPLY", HEADER_BYTES),
        ("bits of a block of a comparison, and of a wider one", f"{BLOCK}, {WIDER}"),
        ("blocks that are joined at once", GROUP),
        ("bits of a block that a carry walks through", STEP),
        ("bits of the index of log-add's table", INDEX),
        ("bits of the longest block of log-add", LONGEST_BLOCK),
        ("additions up to which log-add has blocks of that length", FEW_ADDITIONS),
        ("log of log-add's steps a nat", TABLE_STEP),
        ("bits of an index that one look-up takes", DIGIT),
        ("bytes of a label in one residue", LETTERS),
        ("log of the nats above the floor within which a score may count as it", VAGUE),
        ("frames a step, order `ahead`", recursion.FAR),
        ("frames a step, order `frames`, where it pays", recursion.NEAR),
        ("states of all utterances up to which it pays", recursion.FEW),
        ("frames above which it pays", recursion.LONG),
        ("longest interval of a schedule", LONGEST_INTERVAL),
        ("latest slot of a vertex", LATEST),
        ("bits of a share, by default", shape["bits"].default),
        ("bits after the point, by default", shape["fraction"].default),
        ("bytes of a label, by default", shape["label_bytes"].default),
        ("spread of the mean log filter energy", FILTER_SPREAD),
        ("its mean, level `peak` and `keep`", f"{FILTER_LEVEL['peak']}, {FILTER_LEVEL['keep']}"),
        ("spread of derivatives, as parts of a cepstrum's", ", ".join(f"1/{round(1 / each)}" for each in DERIVATIVES)),
    ]
    return table(("what", "value"), rows)
