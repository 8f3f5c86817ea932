"""Belief propagation for many: everyone cuts its priors into two shares, one for each of two servers, who go round.

    1. person → server 0, server 1    uniform residues that add up to its priors
    2. servers                        rounds of messages on shares
    3. server 0, server 1 → person    shares of the beliefs of its own nodes

Nobody sees a message, or another's prior or belief; Kearns, Tan and Wortman 2007 do this on trees.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto import Ring, pack_numbers, packed_bytes, unpack_numbers
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import RangeError
from ppspeech.protocols.beliefs.rounds import believe
from ppspeech.protocols.beliefs.shape import BeliefShape
from ppspeech.protocols.party import Party, register_protocol

beliefs = register_protocol(
    "beliefs",
    functionality="after so many rounds of belief propagation on a public graph with everyone's secret priors, the log "
    "odds of a person's own nodes, to that person",
    leakage="sizes alone: the graph, its couplings, the rounds, and who holds which nodes",
    assumptions="the two servers follow the protocol and do not collude; persons may do anything: whatever one sends "
    "is some prior within the public bounds. Diffie-Hellman on ed25519, AES a random permutation, SHA-256 an oracle",
)


def send_shares(channels: list[Channel], values: Residues, ring: Ring) -> None:
    """A person: residues, cut into uniform shares, one for each server."""
    for channel, share in zip(channels, ring.share(values), strict=True):
        channel.send(CryptoKind.SHARES, pack_numbers(share, ring.bits))


def receive_shares(channel: Channel, kind: CryptoKind, count: int, ring: Ring) -> Residues:
    """So many residues from another."""
    data = channel.receive(kind, packed_bytes(count, ring.bits))
    return unpack_numbers(data, count, ring.bits).astype(np.uint64)


@beliefs.party("server")
def serve(party: Party, *, graph: Mapping[str, Any], holds: list[list[int]]) -> str:
    """Either server's whole program; `graph` has a `BeliefShape`'s attributes, `holds` the nodes of each person."""
    shape, held, persons = _agreed(party, graph, holds)
    priors = np.zeros(shape.nodes, np.uint64)
    for own, channel in zip(held, persons, strict=True):
        priors[own] = receive_shares(channel, CryptoKind.SHARES, len(own), shape.narrow)
    side, (other,) = Side(party.place), party.channels_to("server").values()
    setup = PairSetup.agree(other, side)
    with setup.session(other):
        share = believe(other, setup, shape, priors)
    for own, channel in zip(held, persons, strict=True):
        channel.send(CryptoKind.OPEN, pack_numbers(share[own], shape.ring.bits))
    return f"{shape.nodes} nodes went round {shape.rounds} times"


@beliefs.party("person")
def take_part(party: Party, priors: list[float], *, graph: Mapping[str, Any], holds: list[list[int]]) -> Reals:
    """A person's whole program: log odds of its nodes to begin with, and what it believes of them in the end."""
    shape, held, servers = _agreed(party, graph, holds)
    own = held[party.place]
    if len(priors) != len(own):
        raise RangeError(f"this person holds the nodes {own} and brings a prior for each, got {len(priors)}")
    values = shape.narrow.from_signed(shape.encoded(np.array(priors)))
    send_shares(servers, values, shape.narrow)
    shares = [receive_shares(channel, CryptoKind.OPEN, len(own), shape.ring) for channel in servers]
    return shape.ring.to_signed(shape.ring.join(shares[0], shares[1])) * 2.0**-shape.fraction


def _agreed(
    party: Party, graph: Mapping[str, Any], holds: list[list[int]]
) -> tuple[BeliefShape, list[list[int]], list[Channel]]:
    """The graph, who holds what, and channels to those with the other role. Raises RangeError for what cannot be."""
    shape = BeliefShape.from_params(graph)
    if sorted(node for own in holds for node in own) != list(range(shape.nodes)):
        raise RangeError(f"every node of 0 to {shape.nodes - 1} is held by one person")
    servers, persons = party.seats("server"), party.seats("person")
    if len(servers) != 2 or len(persons) != len(holds):
        raise RangeError(f"two servers and {len(holds)} persons were agreed on, got {len(servers)} and {len(persons)}")
    others = persons if party.role == "server" else servers
    return shape, holds, [party.channels[seat] for seat in others]
