"""A log-in by voice that an active client cannot bend: the server asks for digits, and learns one bit about all of it.

A name is claimed in the open, so that failures can be counted by name; the claimed person's codes are known to the
server while it checks. What is said becomes codes of signs (`codes`): one of the voice, one of every digit. Part c of
the check holds where the client's code x_c agrees with the person's w_c, of the voice or of the digit that was asked
for at this place, in t_c bits or more. Let s_c be the number that agree.

    1. server          digits, drawn anew
    2. client, server  offline, while somebody speaks: a transfer for every bit of all codes, of random choices
    3. client          its codes, masked with the choices
    4. server          for every bit the step between its two pads: 0 opens r, 1 opens r ± (1, α_1, α_2), + where the
                       person's bit is 1, with α of the part, so that the client's sums over a part are
                           p = s + R,    z_i = α_i s + R_i;
                       for every part and every s from 1 on, a label "holds" or "fails" behind H(z_1, z_2, p);
                       for every choice of one label a part, the label "yes" where all hold, or else "no", behind all
    5. client          the one of these that its labels open; it cannot tell which it is

Against a client that does anything, and a server that follows the protocol: its codes are what it asked the transfers
for, before it saw anything of this log-in but the digits. To open another row p + d of a part, it needs α_1 d and
α_2 d, which are secret and uniform; another row of the last table, a label that it does not have. The server learns
"yes" or "no" and not which part failed (but for a part of which not a single bit agrees, which opens nothing: the label
is neither then, and a no). Proof: Theorem 2.31 in docs/theory/asking.md.

What is sent remains the client's choice, as in any remote biometry: whoever has a voice that says these digits, or
makes one in the time there is, has what is asked for.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bytes, Reals
from ppspeech.channel import Channel
from ppspeech.crypto import uniform_bytes, uniform_residues
from ppspeech.crypto.transfer import BlockHash, Code, PairSetup, Side
from ppspeech.errors import BadTypeError, ModelError, RangeError
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.speakers.codes import Code as Signs
from ppspeech.protocols.speakers.codes import least_agreeing, voice_codes
from ppspeech.protocols.speakers.decision_rows import WORDS, in_order, receive_steps, row_pads, send_steps
from ppspeech.protocols.speakers.verify import say

LABEL = 16
TEN = 10
FEWEST_BITS, MOST_BITS = 64, 8192
MOST_DIGITS = 8
SECONDS = 30.0  # from the question to the answer


@dataclass(frozen=True)
class LoginTerms:
    """What both parties know of a log-in.

    Attributes:
        voice: numbers of a voice's direction.
        digit: numbers of a digit's direction.
        digits: how many are asked for, 1 to 8.
        voice_bits: of a voice's code, a power of two, 64 to 8192.
        digit_bits: of a digit's.
    """

    voice: int
    digit: int
    digits: int = 4
    voice_bits: int = MOST_BITS
    digit_bits: int = 512

    def __post_init__(self) -> None:
        if self.voice < 1 or self.digit < 1 or not 1 <= self.digits <= MOST_DIGITS:
            raise ModelError(f"a log-in has a voice and 1 to {MOST_DIGITS} digits, of one number or more, got {self}")
        for bits in (self.voice_bits, self.digit_bits):
            if not FEWEST_BITS <= bits <= MOST_BITS or bits & (bits - 1):
                raise RangeError(f"codes have {FEWEST_BITS}, 128, … or {MOST_BITS} bits, got {bits}")

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Signs of every part: the voice's, then those of the digits."""
        return np.array([self.voice_bits, *[self.digit_bits] * self.digits])

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where every part begins among all bits."""
        return np.concatenate([[0], self.sizes.cumsum()[:-1]])

    @property
    def bits(self) -> int:
        """Of all parts: transfers, and rows of their tables."""
        return int(self.sizes.sum())

    @property
    def gates(self) -> int:
        """Rows of the last table: ways in which parts hold or fail."""
        return int(2 ** len(self.sizes))

    @property
    def offline_bytes(self) -> int:
        """What the client sends for transfers."""
        return Code.total_bytes(self.bits)

    @property
    def bytes_up(self) -> int:
        """What the client sends: transfers, its codes and a label."""
        return self.offline_bytes + self.bits // 8 + LABEL

    @property
    def bytes_down(self) -> int:
        """What the server sends: digits, pads' steps, and the tables."""
        return self.digits + 8 * WORDS * self.bits + LABEL * (self.bits + self.gates)

    def codes(self, voice: Reals, digits: Reals) -> Signs:
        """The codes of a voice `(voice,)` and of what it said `(digits, digit)`, one after the other, `(bits,)`.

        Raises RangeError for directions that are none.
        """
        found, said = np.asarray(voice, np.float64), np.asarray(digits, np.float64)
        if found.shape != (self.voice,) or said.shape != (self.digits, self.digit):
            raise RangeError(
                f"a log-in is a voice of {self.voice} numbers and {self.digits} digits of {self.digit}, got shapes "
                f"{found.shape} and {said.shape}"
            )
        return np.concatenate(
            [voice_codes(found[None], self.voice_bits)[0], voice_codes(said, self.digit_bits).reshape(-1)]
        )


login = register_protocol(
    "voice_login",
    functionality="whether the codes of the client's voice, and of the digits that it says, agree with those of the "
    "person who is claimed, each in as many bits as the server asks for; digits are drawn by the server",
    leakage="how many digits; the server learns one bit for all of it, and knows who is claimed",
    assumptions="the server follows the protocol, the client may do anything; Diffie-Hellman on ed25519, AES a random "
    "permutation, SHA-256 an oracle",
    terms=LoginTerms,
)


@dataclass(frozen=True, eq=False)
class LoginPerson:
    """The server's side for one log-in; `of` makes one, and it is to be forgotten after it.

    Attributes:
        voice: its code, `(voice_bits,)`.
        digits: codes of the ten digits as the person says them, `(10, digit_bits)`.
        least: bits that must agree: of the voice, then of each of the ten digits, `(11,)`.
    """

    terms: LoginTerms
    voice: Signs
    digits: Signs
    least: NDArray[np.int64]

    @staticmethod
    def of(terms: LoginTerms, voice: Reals, digits: Reals, thresholds: Sequence[float] | Reals) -> "LoginPerson":
        """From directions, of a voice `(voice,)` and of the ten digits `(10, digit)`, and 11 thresholds in cosines.

        Raises RangeError for other shapes, directions or cosines.
        """
        found, said = np.asarray(voice, np.float64), np.asarray(digits, np.float64)
        limits = np.asarray(thresholds, np.float64)
        if found.shape != (terms.voice,) or said.shape != (TEN, terms.digit) or limits.shape != (1 + TEN,):
            raise RangeError(
                f"a person has a voice of {terms.voice} numbers, {TEN} digits of {terms.digit} and {1 + TEN} "
                f"thresholds, got shapes {found.shape}, {said.shape} and {limits.shape}"
            )
        least = [least_agreeing(limits[:1], terms.voice_bits), least_agreeing(limits[1:], terms.digit_bits)]
        codes = voice_codes(found[None], terms.voice_bits)[0], voice_codes(said, terms.digit_bits)
        return LoginPerson(terms, *codes, np.concatenate(least))

    @staticmethod
    def nobody(terms: LoginTerms) -> "LoginPerson":
        """Codes that nobody knows, of which all bits must agree: a claim that cannot hold looks like any other."""
        count = terms.voice_bits + TEN * terms.digit_bits
        drawn = uniform_residues(count, 1).astype(np.bool_)
        voice, digits = drawn[: terms.voice_bits], drawn[terms.voice_bits :].reshape(TEN, -1)
        return LoginPerson(terms, voice, digits, np.array([terms.voice_bits, *[terms.digit_bits] * TEN]))

    def asked(self, digits: Sequence[int]) -> tuple[Signs, NDArray[np.int64]]:
        """What answers must agree with, `(bits,)`, and in how many bits of every part, `(1 + digits,)`."""
        at = np.asarray(digits)
        return np.concatenate([self.voice, self.digits[at].reshape(-1)]), self.least[np.concatenate([[0], 1 + at])]


def draw_digits(count: int) -> tuple[int, ...]:
    """What is asked for, from the operating system's generator: nobody knows it before, and no two log-ins share it
    but by chance.
    """
    return tuple(secrets.randbelow(TEN) for _ in range(count))


def log_in_as_client(
    channel: Channel,
    setup: PairSetup,
    terms: LoginTerms,
    answer: Callable[[tuple[int, ...]], tuple[Reals, Reals]],
) -> None:
    """The client's program; the decision is the server's.

    `answer` is called with the digits when all is ready, and gives the directions of a voice `(voice,)` and of what it
    said `(digits, digit)`. Raises BadTypeError for a question that is none, RangeError for directions that are none.
    """
    with setup.session(channel):
        asked = channel.receive(Kind.CHALLENGE, terms.digits)  # 1
        if max(asked) >= TEN:
            raise BadTypeError(f"digits are asked for, got {max(asked)}")
        choices = uniform_residues(terms.bits, 1).astype(np.bool_)
        keys = setup.receiver.choose_keys(channel, choices)  # 2
        codes = terms.codes(*answer(tuple(asked)))
        channel.send(Kind.VOICE_CODE, np.packbits(codes ^ choices).tobytes())  # 3
        pads = receive_steps(channel, _hash(setup, b"pads"), keys, codes)  # 4
        sums = np.add.reduceat(pads, terms.starts, axis=0)
        sent = channel.receive(Kind.DECISION_TABLE, LABEL * (terms.bits + terms.gates))
        table = np.frombuffer(sent, np.uint8).reshape(-1, LABEL)
        rows = terms.starts + (sums[:, 0] % terms.sizes.astype(np.uint64)).astype(np.int64)
        opened = (row_pads(_hash(setup, b"rows"), z[None, 1:], int(row))[0] for row, z in zip(rows, sums, strict=True))
        labels = table[rows] ^ np.stack(list(opened))
        gate = int((labels[:, 0] & 1) @ (1 << np.arange(len(labels))))
        channel.send(Kind.DECISION, (table[terms.bits + gate] ^ _gate_pad(setup, terms, labels, gate)).tobytes())  # 5


def log_in_as_server(
    channel: Channel,
    setup: PairSetup,
    person: LoginPerson,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """The server's program: the decision. Whatever is not the label of "yes" is a no, and so is an answer that comes
    later than `seconds` after the question; it takes the same messages.
    """
    terms = person.terms
    with setup.session(channel):
        digits = draw_digits(terms.digits)
        channel.send(Kind.CHALLENGE, bytes(digits))  # 1
        began = clock()
        keys = setup.sender.offer_keys(channel, terms.bits)  # 2
        keys = in_order(keys, channel.receive(Kind.VOICE_CODE, terms.bits // 8))  # 3
        in_time = clock() - began <= seconds
        own, least = person.asked(digits)
        parts = len(terms.sizes)
        secret = np.concatenate([np.ones((parts, 1), np.uint64), uniform_residues(2 * parts).reshape(parts, 2)], axis=1)
        ways = (2 * own.astype(np.int64) - 1).view(np.uint64)[:, None] * np.repeat(secret, terms.sizes, axis=0)
        pads = send_steps(channel, _hash(setup, b"pads"), keys, ways)  # 4
        zeros = np.add.reduceat(~own, terms.starts, dtype=np.uint64)
        masks = np.add.reduceat(pads, terms.starts, axis=0) - zeros[:, None] * secret
        labels = _drawn_labels(parts)  # "fails" and "holds" of every part
        tables = []
        for part, (start, size) in enumerate(zip(terms.starts.tolist(), terms.sizes.tolist(), strict=True)):
            rows = np.arange(size, dtype=np.uint64)
            scores = (rows - masks[part, 0] - np.uint64(1)) % np.uint64(size) + np.uint64(1)
            openers = scores[:, None] * secret[part, 1:] + masks[part, 1:]
            holds = scores >= np.uint64(least[part])
            tables.append(row_pads(_hash(setup, b"rows"), openers, start) ^ labels[part][holds.astype(np.int64)])
        yes, no = (np.frombuffer(uniform_bytes(LABEL), np.uint8) for _ in range(2))
        tables.append(_gates(setup, terms, labels, yes, no))
        channel.send(Kind.DECISION_TABLE, np.concatenate(tables).tobytes())
        accepted = hmac.compare_digest(channel.receive(Kind.DECISION, LABEL), yes.tobytes())  # 5
        return accepted and in_time


def _drawn_labels(parts: int) -> Bytes:
    """Two labels for each part, `(parts, 2, 16)`, of which the lowest bit tells one from the other, and not which."""
    drawn = np.frombuffer(uniform_bytes(2 * parts * LABEL), np.uint8).reshape(parts, 2, LABEL).copy()
    drawn[:, 1, 0] = (drawn[:, 1, 0] & 0xFE) | (~drawn[:, 0, 0] & 1)
    return drawn


def _gates(setup: PairSetup, terms: LoginTerms, labels: Bytes, yes: Bytes, no: Bytes) -> Bytes:
    """The last table, `(gates, 16)`: in the row that labels point to, "yes" where all of them say "holds"."""
    ways = np.arange(terms.gates)[:, None] >> np.arange(len(labels)) & 1  # the lowest bits of a row's labels
    holds = ways ^ (labels[:, 0, 0] & 1)  # which of the two labels of a part has this lowest bit
    table = np.where(np.asarray(holds.all(axis=1))[:, None], yes, no)
    for gate, chosen in enumerate(holds):
        table[gate] ^= _gate_pad(setup, terms, labels[np.arange(len(labels)), chosen], gate)
    return table


def _gate_pad(setup: PairSetup, terms: LoginTerms, labels: Bytes, gate: int) -> Bytes:
    """What hides a row of the last table from whoever lacks one of its labels `(parts, 16)`."""
    first = gate * len(terms.sizes)
    blocks = np.ascontiguousarray(labels).view(np.uint64)
    pad: Bytes = np.bitwise_xor.reduce(_hash(setup, b"gates").hash_blocks(blocks, first).view(np.uint8), axis=0)
    return pad


def _hash(setup: PairSetup, use: bytes) -> BlockHash:
    return BlockHash(hashlib.sha256(b"ppspeech login " + use + setup.id).digest()[:16])


@login.party("client")
def client(party: Party, voice: list[float], digits: list[list[float]], /, **terms: Any) -> str:
    """Agree on transfers, and log in once, with a voice and how it says each of the ten digits."""
    own, said = LoginTerms(**terms), np.asarray(digits, np.float64)
    if said.shape != (TEN, own.digit):
        raise RangeError(f"give a direction for each of the {TEN} digits, got shape {said.shape}")
    own.codes(np.asarray(voice), said[: own.digits])
    setup = PairSetup.agree(party.channel, Side.SECOND)
    log_in_as_client(party.channel, setup, own, lambda asked: (np.asarray(voice), said[list(asked)]))
    return "the server knows"


@login.party("server")
def server(party: Party, voice: list[float], digits: list[list[float]], threshold: float, /, **terms: Any) -> str:
    """Agree on transfers, and judge once, for a person's voice and ten digits, all with one threshold."""
    person = LoginPerson.of(LoginTerms(**terms), np.asarray(voice), np.asarray(digits), [threshold] * (1 + TEN))
    return say(log_in_as_server(party.channel, PairSetup.agree(party.channel, Side.FIRST), person))
