"""Belief propagation among a few peers, without servers: a message from i to j is shared between i and j, and nobody.

In every round, with λ_{k→i} = a_{k→i} (k's share) + b_{k→i} (i's),

    1. k → i     a_{k→i} under the key of each other neighbor j of i, who will be told their sum
    2. i → j     the sum of what came for j, and of a random number ρ: one ciphertext, however many neighbors i has
    3. j         opens it: its share of what goes into λ_{i→j}; i's is h_i + Σ_{k ≠ j} b_{k→i} - ρ
    4. i, j      f of that, on shares: new shares of λ_{i→j}, and of λ_{j→i} in the same messages

At the end all but one neighbor j send i their shares under j's key; i adds them up and a random number, j opens that,
adds its own share and says it to i. So i learns the sum of all that came to it, which is its belief, and j nothing.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.channel import Channel
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto import Ring, pack_numbers, uniform_bytes
from ppspeech.crypto.paillier import (
    SECURE_BITS,
    Ciphertext,
    PaillierPublicKey,
    PaillierSecretKey,
    check_key_size,
    generate_paillier,
)
from ppspeech.crypto.shares import Cost, ShareEngine, blank, record
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import RangeError
from ppspeech.protocols.beliefs.rounds import answered
from ppspeech.protocols.beliefs.servers import receive_shares
from ppspeech.protocols.beliefs.shape import BeliefShape
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import Party, register_protocol

MASK_BYTES = 16
"""Of ρ: 128 bits hide sums of shares of up to 24 bits and whatever is carried out of them."""
MOST_PEERS = 64
LARGEST_KEY_BYTES = 3 + 1024

beliefs_peers = register_protocol(
    "beliefs_peers",
    functionality="after so many rounds of belief propagation on a public graph with everyone's secret prior, the log "
    "odds of each peer, to that peer",
    leakage="sizes alone: the graph, its couplings and the rounds; two neighbors together know what they send each "
    "other",
    assumptions="all follow the protocol, and no two neighbors collude; decisional composite residuosity, "
    "Diffie-Hellman on ed25519, AES a random permutation, SHA-256 an oracle",
)


@beliefs_peers.party("peer")
def take_part(
    party: Party,
    prior: float,
    *,
    graph: Mapping[str, Any],
    key_bits: int = SECURE_BITS,
    insecure_demo: bool = False,
) -> float:
    """A peer's whole program: the log odds of its node, which has its number, to begin with and in the end. A peer
    without neighbors is told what it knows. Raises WrongKeyError, BadCiphertextError for what is no ciphertext of its
    key.
    """
    shape = BeliefShape.from_params(graph)
    place, channels = party.place, party.channels_to(party.role)
    if shape.nodes != len(channels) + 1 or shape.nodes > MOST_PEERS:
        raise RangeError(f"{shape.nodes} peers were agreed on, up to {MOST_PEERS}; got {len(channels) + 1}")
    check_key_size(key_bits, insecure_demo=insecure_demo)
    own = int(shape.encoded(np.array(prior)))
    peer = _Peer(shape, place, channels, generate_paillier(key_bits, insecure_demo=insecure_demo), insecure_demo)
    for _ in range(shape.rounds):
        peer.go_round(own)
    return peer.belief(own) * 2.0**-shape.fraction


class _Peer:
    """One peer: its key and everyone's, a pair of transfers with each neighbor, and its shares of messages."""

    def __init__(
        self, shape: BeliefShape, place: int, channels: Mapping[int, Channel], key: PaillierSecretKey, demo: bool
    ) -> None:
        self._shape, self._place, self._channels, self._key = shape, place, channels, key
        for _, channel in sorted(channels.items()):  # to all, not through neighbors, who could put in their own
            channel.send(Kind.PEER_KEY, key.public.to_bytes())
        self._keys = {place: key.public}
        for other, channel in sorted(channels.items()):
            said = channel.receive(Kind.PEER_KEY, at_most=LARGEST_KEY_BYTES)
            self._keys[other] = PaillierPublicKey.from_bytes(said, insecure_demo=demo)
        self._near = {node: sorted(_near(shape, node)) for node in range(shape.nodes)}
        self._edges = [n for n, ends in enumerate(shape.ends.tolist()) if place in ends]
        self._sent = dict.fromkeys(self._near[place], 0)  # our shares of what we say, and of what is said to us
        self._came = dict(self._sent)
        self._setups = {edge: PairSetup.agree(self._along(edge), self._side(edge)) for edge in self._edges}
        self._cost = _edge_cost(shape)

    def go_round(self, own: int) -> None:
        """One round of messages."""
        inside = self._relay(own)
        sent, came = {}, {}
        for edge in self._edges:  # in one order for all, so that nobody waits for somebody who waits for it
            other, side, channel = self._other(edge), self._side(edge), self._along(edge)
            order = slice(None) if side is Side.FIRST else slice(None, None, -1)  # first what the first says
            which = slice(edge, None, len(self._shape.ends))
            into = _residues([inside[other][0], inside[other][1]], self._shape.ring)[order]
            before = _residues([self._sent[other], self._came[other]], self._shape.ring)[order]
            with self._setups[edge].session(channel):
                engine = ShareEngine(channel, self._setups[edge], self._cost)
                said = answered(engine, self._shape, into, before, which)[order]
            sent[other], came[other] = int(said[0]), int(said[1])
        self._sent, self._came = sent, came

    def belief(self, own: int) -> int:
        """What all messages that came to us add up to, with our own prior."""
        place, near, ring = self._place, self._near[self._place], self._shape.ring
        for node in near:  # to each neighbor, for the one who will open its sum
            opener = self._near[node][0]
            if opener != place:
                self._send(node, opener, [self._sent[node]])
        if near:
            shares = [self._load(k, near[0], 1)[0] for k in near[1:]]
            mask = self._forward(near[0], shares)
        for node in near:
            if self._near[node][0] == place:
                total = self._open(node) + self._sent[node]
                self._channels[node].send(CryptoKind.OPEN, pack_numbers(_residues([total], ring), ring.bits))
        if not near:
            return own
        (told,) = receive_shares(self._channels[near[0]], CryptoKind.OPEN, 1, ring)
        return int(ring.to_signed(_residues([own + sum(self._came.values()) + int(told) - mask], ring))[0])

    def _relay(self, own: int) -> dict[int, tuple[int, int]]:
        """Our shares of what goes into the message to each neighbor, and into the one from it."""
        near = self._near[self._place]
        for node in near:
            for opener in self._near[node]:
                if opener != self._place:
                    self._send(node, opener, [self._sent[node]])
        arrived: dict[int, list[Ciphertext]] = {j: [] for j in near}
        for k in near:
            for j in near:
                if j != k:
                    arrived[j] += self._load(k, j, 1)
        masks = {j: self._forward(j, arrived[j]) for j in near}
        total = own + sum(self._came.values())
        return {j: (total - self._came[j] - masks[j], self._open(j)) for j in near}

    def _send(self, node: int, opener: int, values: list[int]) -> None:
        key = self._keys[opener]
        self._channels[node].send(Kind.PEER_SHARES, key.dump(key.encrypt_many(values)))

    def _load(self, node: int, opener: int, count: int) -> list[Ciphertext]:
        key = self._keys[opener]
        return key.load(self._channels[node].receive(Kind.PEER_SHARES, key.wire_bytes(count)), count)

    def _forward(self, opener: int, shares: list[Ciphertext]) -> int:
        """Send a neighbor the sum of some ciphertexts of its key and of a random number, which is returned."""
        key, mask = self._keys[opener], int.from_bytes(uniform_bytes(MASK_BYTES), "big")
        total = key.add_plain(key.encrypt(0), mask)
        for share in shares:
            total = key.add(total, share)
        self._channels[opener].send(Kind.MASKED_SUM, key.dump([key.finish(total)]))
        return mask

    def _open(self, node: int) -> int:
        public = self._key.public
        (total,) = public.load(self._channels[node].receive(Kind.MASKED_SUM, public.wire_bytes(1)), 1)
        return self._key.decrypt(total)

    def _other(self, edge: int) -> int:
        one, other = self._shape.ends[edge].tolist()
        return int(other if one == self._place else one)

    def _side(self, edge: int) -> Side:
        return Side.FIRST if int(self._shape.ends[edge, 0]) == self._place else Side.SECOND

    def _along(self, edge: int) -> Channel:
        return self._channels[self._other(edge)]


def _edge_cost(shape: BeliefShape) -> Cost:
    """Of one round of one edge: the same for all."""
    if not len(shape.ends):
        return Cost()
    return record(lambda engine: answered(engine, shape, blank(2), blank(2), slice(0, None, len(shape.ends))))


def _near(shape: BeliefShape, node: int) -> list[int]:
    return [other for ends in shape.ends.tolist() for one, other in (ends, ends[::-1]) if one == node]


def _residues(values: list[int], ring: Ring) -> Residues:
    return np.array([value % (1 << ring.bits) for value in values], np.uint64)
