"""Sums of many parties' vectors with noise that nobody knows, through a curator who sees only uniform residues.

The parties talk to the curator alone. Each adds to its vector, in whole steps of a common grid, its share of the noise
and masks that cancel in the sum of all; the curator adds up what it gets and gives everyone the sum:

    1. party -> curator   its session key
    2. curator -> party   everyone's session keys
    3. party -> curator   its signature on all of them
    4. curator -> party   everyone's signatures
    5. party -> curator   vector + noise share + masks, mod 2^64
    6. curator -> party   the sum of all, mod 2^64

Steps 5 and 6 may be repeated. A sum exists exactly if every party's vector has arrived: whoever is missing before ends
the session, and everyone else is told why. That nothing was published is the curator's word alone: it may hold all
vectors and say that one is missing, to get the same ones again under fresh noise. So what was sent counts as released
(`JointSum`), a session ends with the first sum that does not come, and a group's file is good for few sessions
(`Ledger`). Pathak, Rane and Raj 2010 (section 3.2) computes a single party's noise in three stages; here no party's
share is the noise. Proofs: Theorems 3.3 and 3.4 in docs/theory/together.md.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import torch

from ppspeech.arrays import Residues, Whole
from ppspeech.channel import Channel
from ppspeech.errors import BadLengthError, PeerGoneError, PeerTimeoutError, ProtocolError, RangeError
from ppspeech.privacy import Adjacency, Relation, Unit
from ppspeech.privacy.mechanisms import MOST_PARTIES, Law, NoiseShares, shares_for
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.sums.ledger import Ledger
from ppspeech.protocols.sums.masks import KEY_BYTES, LARGEST_SIGNED, SessionKey, Signatures

WELL, OVER = b"\x00", b"\x01"
"""What every message of the curator begins with: the next step, or the reason why there is none."""
LONGEST_WORD = 500
PARTY, CURATOR = "party", "curator"


@dataclass(frozen=True, kw_only=True)
class SumTerms:
    """The public terms of one noisy sum. `dimension`: how many numbers everyone brings; `sensitivity`: how far one unit
    moves the sum, l2; `colluders`: how many parties may share what they know.
    """

    dimension: int
    sensitivity: float
    epsilon: float
    delta: float = 1e-5
    law: Law = "skellam"
    unit: Unit = "record"
    adjacency: Adjacency = "replace"
    colluders: int = 1

    def shares(self, parties: int) -> NoiseShares:
        """One party's part of the noise."""
        return shares_for(
            self.law,
            epsilon=self.epsilon,
            delta=self.delta,
            parties=parties,
            sensitivity=self.sensitivity,
            dimension=self.dimension,
            relation=Relation(self.unit, self.adjacency),
            colluders=self.colluders,
        )


aggregate = register_protocol(
    "aggregate",
    functionality="the sum of the parties' vectors with distributed noise, to everyone",
    leakage="to t colluders and the curator: the noisy sum of the others, whose noise alone meets the guarantee",
    assumptions=(
        "parties follow the protocol; session keys are signed under pinned certificates, else the curator passes them "
        "on unchanged; a curator that denies a sum has it, at most three times over with one group's file; "
        "Diffie-Hellman on X25519, AES-256 in counter mode"
    ),
    terms=SumTerms,
)


class RoundEndedError(ProtocolError):
    """A sum that does not come: somebody is missing, or is said to be."""


@aggregate.party(PARTY)
def contribute(party: Party, value: Sequence[float], **terms: Any) -> list[float]:
    """One party's program: its vector, of the length all agreed on. Returns the noisy sum."""
    agreed = SumTerms(**terms)
    if len(value) != agreed.dimension:
        raise RangeError(f"all parties agreed on {agreed.dimension} numbers, got {len(value)}")
    shares = agreed.shares(len(party.seats(PARTY)))
    total = PartySession.of(party).sum(noisy_steps(torch.tensor(list(value), dtype=torch.float64), shares))
    return [float(step) * shares.grid.step for step in total]


@aggregate.party(CURATOR)
def curate(party: Party, **terms: Any) -> str:
    """The curator's program: no input, and of the public terms only the number of numbers."""
    agreed = SumTerms(**terms)
    CuratorSession.of(party).sum(agreed.dimension)
    return f"the sum of {len(party.channels)} parties' vectors of {agreed.dimension} numbers, as released to them"


def noisy_steps(value: torch.Tensor, shares: NoiseShares) -> Whole:
    """A party's vector in whole steps of the grid, with its share of the noise."""
    steps: Whole = shares.grid.to_steps(value).numpy(force=True).ravel()
    return steps + shares.share()


class PartySession:
    """One party's end: keys agreed on, then sums until one does not come, of 2 to 100 parties. Without `signatures` the
    curator is trusted to pass keys on unchanged; a `ledger` remembers what was sent. Raises `RoundEndedError` if a
    party is missing.
    """

    def __init__(
        self, channel: Channel, parties: int, signatures: Signatures | None = None, ledger: Ledger | None = None
    ) -> None:
        if not 2 <= parties <= MOST_PARTIES or (signatures is not None and len(signatures.names) != parties):
            raise RangeError(f"sums are of 2 to {MOST_PARTIES} parties, those in the group, got {parties}")
        self.sent = 0  # so many vectors: each is released, whatever the curator says
        self._over = False
        self._channel = channel
        self._parties = parties
        self._ledger = ledger
        key = SessionKey(signatures)
        channel.send(Kind.SESSION_KEY, key.public)  # 1
        roster = self._receive(Kind.ROSTER, parties * KEY_BYTES)  # 2
        if len(roster) != parties * KEY_BYTES:
            raise BadLengthError(f"the curator's roster is not one of {parties} parties")
        keys = [roster[at : at + KEY_BYTES] for at in range(0, len(roster), KEY_BYTES)]
        channel.send(Kind.SIGNED_KEYS, key.confirm(keys))  # 3
        signed = _unpack(self._receive(Kind.SIGNATURES, parties * (LARGEST_SIGNED + 2)), parties)  # 4
        self._masks = key.masks(keys, signed)

    @classmethod
    def of(cls, party: Party) -> "PartySession":
        """For a party that talks to the curator; in a group, session keys are signed, and what is sent is remembered
        beside our key. Raises `PrivacyError` where it was sent too often already.
        """
        signatures = ledger = None
        if party.group is not None and party.identity is not None:
            signatures = Signatures(party.group, party.identity, PARTY)
            ledger = Ledger.beside(party.identity.key, party.group.digest)
        return cls(party.channels[CURATOR], len(party.seats(PARTY)), signatures, ledger)

    def sum(self, steps: Whole) -> Whole:
        """The sum of all parties' whole numbers, `(count,)`, none so large that it could wrap around. Without a party
        there is no sum, and no other in this session: `RoundEndedError`.
        """
        largest = 2**62 // self._parties
        if steps.size and int(np.abs(steps).max()) > largest:
            raise RangeError(f"{int(np.abs(steps).max())} steps are too many for {self._parties} parties: clip first")
        if self._over:
            raise RoundEndedError("this session ended with a sum that did not come: nothing more is sent in it")
        self._over = True  # until the sum is there
        masked = steps.astype(np.int64).view(np.uint64) + self._masks.next(len(steps))
        if self._ledger is not None:
            self._ledger.book(new_session=self.sent == 0)
        self.sent += 1
        self._channel.send(Kind.MASKED_VECTOR, masked.astype("<u8").tobytes())  # 5
        payload = self._receive(Kind.SUM, 8 * len(steps))  # 6
        if len(payload) != 8 * len(steps):
            raise BadLengthError(f"a sum of {len(steps)} numbers has {8 * len(steps)} bytes, got {len(payload)}")
        self._over = False
        return np.frombuffer(payload, "<u8").astype(np.uint64).view(np.int64)

    def _receive(self, kind: Kind, at_most: int) -> bytes:
        try:
            message = self._channel.receive(kind, at_most=1 + max(at_most, LONGEST_WORD))
        except ProtocolError as error:
            raise RoundEndedError(
                f"the curator failed ({error}): the round is over, nothing is published here"
            ) from error
        if message[:1] != WELL:
            raise RoundEndedError(message[1:].decode(errors="replace") or "the curator ended the round without a word")
        return message[1:]


class CuratorSession:
    """The curator's end: passes keys on, adds up residues, and tells everyone how it went, by name and in the order on
    which all agree. Raises `RoundEndedError` if a party is missing; all others have been told.
    """

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        if not 2 <= len(channels) <= MOST_PARTIES:
            raise RangeError(f"sums are of 2 to {MOST_PARTIES} parties, got {len(channels)}")
        self._channels = dict(channels)
        keys = self._from_all(lambda channel: channel.receive(Kind.SESSION_KEY, KEY_BYTES), Kind.ROSTER)
        self._to_all(Kind.ROSTER, b"".join(keys))
        signed = self._from_all(
            lambda channel: channel.receive(Kind.SIGNED_KEYS, at_most=LARGEST_SIGNED), Kind.SIGNATURES
        )
        self._to_all(Kind.SIGNATURES, b"".join(len(each).to_bytes(2, "big") + each for each in signed))

    @classmethod
    def of(cls, party: Party) -> "CuratorSession":
        """For the curator, whose words call the parties by their names."""
        return cls({party.names[seat]: party.channels[seat] for seat in party.seats(PARTY)})

    def sum(self, count: int) -> Residues:
        """Add up everyone's `count` residues and give everyone the sum."""
        parts = self._from_all(lambda channel: channel.receive(Kind.MASKED_VECTOR, 8 * count), Kind.SUM)
        total = np.zeros(count, np.uint64)
        for part in parts:
            total += np.frombuffer(part, "<u8").astype(np.uint64)
        self._to_all(Kind.SUM, total.astype("<u8").tobytes())
        return total

    def _from_all(self, receive: Callable[[Channel], bytes], answer: Kind) -> list[bytes]:
        """What every party sends, all waited for at the same time; they will be waiting for `answer`."""
        with ThreadPoolExecutor(len(self._channels)) as pool:
            waiting = {name: pool.submit(receive, channel) for name, channel in self._channels.items()}
        failures: dict[str, ProtocolError] = {}
        for name, future in waiting.items():
            try:
                future.result()
            except ProtocolError as error:
                failures[name] = error
        if failures:
            self._end(failures, answer)
        return [future.result() for future in waiting.values()]

    def _to_all(self, kind: Kind, payload: bytes) -> None:
        """Give everyone who is still there the same; who is not will be missed at the next step, if there is one."""
        for channel in self._channels.values():
            with suppress(ProtocolError):
                channel.send(kind, WELL + payload)

    def _end(self, failures: Mapping[str, ProtocolError], answer: Kind) -> NoReturn:
        who = ", ".join(f"{name} {_reason(error)}" for name, error in failures.items())
        word = f"{who}: the round is over, nothing is published"
        for name, channel in self._channels.items():
            if name not in failures:
                with suppress(ProtocolError):
                    channel.send(answer, OVER + word.encode()[:LONGEST_WORD])
        raise RoundEndedError(word)


def _reason(error: ProtocolError) -> str:
    """Why a party is missing, in words that give nobody's secrets away."""
    if isinstance(error, PeerGoneError):
        return "is gone"
    return "did not answer in time" if isinstance(error, PeerTimeoutError) else "broke the protocol"


def _unpack(message: bytes, parties: int) -> list[bytes]:
    """What exactly so many parties have signed. Raises `BadLengthError` for anything else."""
    signed: list[bytes] = []
    rest = memoryview(message)
    while len(rest) >= 2 and len(signed) < parties:
        length = int.from_bytes(rest[:2], "big")
        signed.append(bytes(rest[2 : 2 + length]))
        rest = rest[2 + length :] if 2 + length <= len(rest) else memoryview(b"cut short")
    if len(signed) != parties or len(rest):
        raise BadLengthError(f"the curator's signatures are not those of {parties} parties")
    return signed
