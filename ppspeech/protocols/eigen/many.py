"""Principal directions of what any number of parties have together; two of them, named in advance, do the computing.

Every party cuts its own second moments into two shares, one for each computing party, who add up what they get: either
alone has uniform residues. Then the two run the protocol of `two` and tell the others the result. Pathak 2010,
section 4.1.1, "Extension to Multiple Parties".
"""

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.crypto import packed_bytes
from ppspeech.crypto.shares import share_among
from ppspeech.errors import RangeError
from ppspeech.protocols.eigen.matrix import START
from ppspeech.protocols.eigen.moments import DELTA, own_moments, start_share
from ppspeech.protocols.eigen.two import SQUARINGS, EigenJob, find_directions
from ppspeech.protocols.meeting import meet_as_client, meet_as_server
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import Party, register_protocol

eigenvector_parties = register_protocol(
    "eigen",
    functionality="the first principal directions of all parties' frames together, to all",
    leakage="nothing but the public sizes; each direction is that of 2^squarings steps of the power method to 2^-16",
    assumptions="all follow the protocol and the two computing parties do not collude; ring LWE at 128 bits, "
    "Diffie-Hellman on ed25519, AES a random permutation",
)


@eigenvector_parties.party("party")
def find_together(
    party: Party,
    frames: Reals,
    *,
    features: int,
    bound: float,
    count: int = 1,
    squarings: int = SQUARINGS,
    computing: tuple[int, int] = (0, 1),
    epsilon: float | None = None,
    delta: float = DELTA,
    radius: float | None = None,
) -> NDArray[np.float64]:
    """Any party's program; see `two.alice`. `computing`: the numbers of the two who compute. Returns unit vectors
    `(count, features)`, the same for all. Raises `ProtocolError` if a party is missing.
    """
    own, channels = party.place, party.channels_to(party.role)
    if len(set(computing)) != 2 or not set(computing) <= {own, *channels}:
        raise RangeError(f"two different parties compute, got {computing} of {sorted({own, *channels})}")
    job = EigenJob(features, count, squarings)
    moments = own_moments(frames, bound, epsilon, delta, radius)
    share = start_share(moments, features, bound, parties=len(channels) + 1)
    sums = share_among(channels, own, share, START, computing)
    first, second = computing
    if sums is None:
        return _receive(channels[first], job)
    if own == second:
        return find_directions(meet_as_client(channels[first]), sums, job)
    found = find_directions(meet_as_server(channels[second]), sums, job)
    for other in sorted(set(channels) - {second}):
        channels[other].send(Kind.DIRECTIONS, found.astype("<f8").tobytes())
    return found


def sharing_bytes(features: int) -> int:
    """What a party sends to each computing party, before they compute as in `EigenJob.cost`."""
    return packed_bytes(features * (features + 1) // 2, START.bits)


def _receive(channel: Channel, job: EigenJob) -> NDArray[np.float64]:
    data = channel.receive(Kind.DIRECTIONS, 8 * job.count * job.features)
    found = np.frombuffer(data, "<f8").astype(np.float64).reshape(job.count, job.features)
    if not np.allclose(np.linalg.norm(found, axis=1), 1.0):
        raise RangeError("what the computing party sent is not made of unit vectors")
    return found
