"""Privacy preserving eigenvector computation (Pathak 2010, 4.1.1): power iterations through an arbitrator, Trent.

Party i has frames A_i' and a component α_i, which starts at random. All parties have one Paillier key, which Trent
lacks. In each round

    1. party -> Trent    E[A_i α_i], k numbers
    2. Trent -> parties  (Π_i E[A_i α_i])^r = E[r u] for a random r, or with probability 1 - p a decoy: an earlier
                         r u and Gaussian noise, after which what comes next is ignored and r u sent again
    3. party -> Trent    E[|A_i' r u|^2]
    4. Trent -> parties  E[sum_i |A_i' r u|^2] = E[n];   party: α_i = A_i' r u / sqrt(n)

and at the end Trent is given the α_i in the clear. With padding, A_i becomes [A_i  ρ_i I].

Corrections, without which it does not run or is not what it says:

- Trent does not scale the norms by r^2 again (eq. 4.4): the parties compute them from r u, which has r in it already.
- r is a whole number below 2^16, since a ciphertext has no other powers; numbers are fixed point, 2^-30 by default.
- Padding adds the sum of the ρ_i^2 to the eigenvalues, not the sum of the ρ_i, and so slows down convergence.
- The number of rounds is public. "Until convergence" would tell the gap of the eigenvalues, and with many parties
  no two would stop together. The last round is never a decoy.
- What Trent sends is re-randomized.

What stays wrong: r hides nothing. With y = r u of one round and y⁺ of the next, y·y⁺ = r⁺ sqrt(n), so that everyone
knows r⁺ and with it C y, C being the moments of all; k rounds give C, and C less one's own moments are the other's.
r⁺ is a whole number for genuine pairs only, which gives the decoys away. `attacks.eigenvector` does it. Besides, any
party and Trent together read everything, and Trent gets the α_i. Correction 3.13 in docs/theory/together.md.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.crypto import uniform_below, uniform_residues
from ppspeech.crypto.paillier import Ciphertext, PaillierPublicKey, PaillierSecretKey, Unfinished
from ppspeech.errors import RangeError
from ppspeech.evidence.published.protocols.paillier_parties import announce
from ppspeech.network import run_in_threads
from ppspeech.privacy.samplers import standard_normal
from ppspeech.protocols import Kind, Party, register_protocol

SCALING_BITS = 16
FRACTION = 30


@dataclass(frozen=True, kw_only=True)
class PublishedEigenTerms:
    """What all agree on: how many frames each party has, in order; ρ is drawn below `padding`; `genuine`, above 0, is
    the probability p that a round is no decoy, and `decoy_noise` the deviation of what is added to an earlier vector
    for one.
    """

    features: int
    samples: Sequence[int]
    rounds: int
    padding: float = 0.0
    genuine: float = 1.0
    decoy_noise: float = 1.0
    fraction: int = FRACTION
    insecure_demo: bool = False


published_eigenvector = register_protocol(
    "published_eigenvector",
    functionality="the principal direction of all parties' frames together, to all; the weights of the frames, to "
    "trent",
    leakage="every party learns the second moments of all frames together, so that of two each learns the other's; "
    "trent and any party together learn every product A_i α_i; trent learns the weights of the frames: "
    "there is no simulator",
    assumptions="all follow the protocol; decisional composite residuosity for what trent sees",
    terms=PublishedEigenTerms,
)


@published_eigenvector.party("party")
def take_part(own: Party, frames: list[list[float]], primes: list[int], /, **terms: Any) -> list[float]:
    """A party's program: its frames, and the primes of the key from the parties' authority. Returns the direction."""
    agreed, given = PublishedEigenTerms(**terms), np.asarray(frames, np.float64)
    if given.shape != (agreed.samples[own.place], agreed.features):
        raise RangeError(f"the terms say {agreed.samples[own.place]} frames of {agreed.features}, got {given.shape}")
    key = PaillierSecretKey(*map(int, primes), insecure_demo=agreed.insecure_demo)
    sizes: dict[str, Any] = {"rounds": agreed.rounds, "padding": agreed.padding, "fraction": agreed.fraction}
    seen = party(own.channels["trent"], given, key, **sizes, insecure_demo=agreed.insecure_demo)
    return [float(entry) for entry in seen.direction]


@published_eigenvector.party("trent")
def arbitrate(own: Party, modulus: int, /, **terms: Any) -> list[float]:
    """Trent's program: the modulus of the parties' key. Returns the weights of the frames."""
    agreed = {name: value for name, value in asdict(PublishedEigenTerms(**terms)).items() if name != "padding"}
    public = PaillierPublicKey(int(modulus), insecure_demo=agreed["insecure_demo"])
    return [float(weight) for weight in trent(own.channels_to("party"), public, **agreed)]


@dataclass(frozen=True, eq=False)
class Seen:
    """What a party saw in the clear by following the protocol.

    `vectors`: r u or a decoy of each round, `(rounds, features)`; `norms`: n of each round, `(rounds,)`; `component`:
    its own α at the end, `(samples,)`.
    """

    vectors: Reals
    norms: Reals
    component: Reals

    @property
    def direction(self) -> Reals:
        """The result: the last vector, of length 1, its largest entry positive."""
        last = self.vectors[-1] / np.linalg.norm(self.vectors[-1])
        signed: Reals = last * np.sign(last[np.argmax(np.abs(last))])
        return signed


def party(
    channel: Channel,
    frames: NDArray[np.floating],
    key: PaillierSecretKey,
    *,
    rounds: int,
    padding: float = 0.0,
    fraction: int = FRACTION,
    insecure_demo: bool = False,
) -> Seen:
    """A party's part: A' `(samples, features)`, and the key that all parties have from their authority."""
    data = np.asarray(frames, np.float64)
    if data.ndim != 2 or not np.isfinite(data).all():
        raise RangeError(f"frames are finite numbers (samples, features), got shape {data.shape}")
    announce(published_eigenvector, key.public, insecure_demo=insecure_demo)
    samples, features = data.shape
    if padding:
        data = np.concatenate([data, padding * _fraction() * np.eye(features)])
    component = np.array([_fraction() - 0.5 for _ in data])
    vectors, norms = np.empty((rounds, features)), np.empty(rounds)
    for number in range(rounds):
        _send(channel, Kind.COMPONENT_PRODUCT, key, data.T @ component, fraction)  # step 1
        vectors[number] = _receive(channel, Kind.SCALED_SUM, key, features, fraction)
        projected = data @ vectors[number]
        _send(channel, Kind.NORM_TERM, key, np.array([projected @ projected]), fraction)  # step 3
        norms[number] = _receive(channel, Kind.NORM, key, 1, fraction)[0]
        component = projected / np.sqrt(norms[number])
    channel.send(Kind.COMPONENT, component[:samples].astype("<f8").tobytes())
    return Seen(vectors, norms, component[:samples])


def trent(
    channels: Mapping[int, Channel],
    public: PaillierPublicKey,
    *,
    features: int,
    samples: Sequence[int],
    rounds: int,
    genuine: float = 1.0,
    decoy_noise: float = 1.0,
    fraction: int = FRACTION,
    insecure_demo: bool = False,
) -> Reals:
    """Trent's part. Returns all weights joined, the principal eigenvector of M'M: `(sum of samples,)`."""
    if not 0 < genuine <= 1:
        raise RangeError(f"the probability of a genuine round is above 0 and at most 1, got {genuine}")
    announce(published_eigenvector, public, insecure_demo=insecure_demo)
    parties = [channels[number] for number in sorted(channels)]
    held: list[Ciphertext] | None = None
    last = public.encrypt_many([0] * features)
    for number in range(1, rounds + 1):
        total = _add_up(parties, Kind.COMPONENT_PRODUCT, public, features)
        if held is None:
            scaling = 1 + int(uniform_below((mpz(1) << SCALING_BITS) - 1))
            held = public.finish_many([public.scale(entry, scaling) for entry in total])
        if number == rounds or _fraction() < genuine:
            sent, last, held = held, held, None
        else:
            sent = _decoy(public, last, decoy_noise, fraction)
        for channel in parties:
            channel.send(Kind.SCALED_SUM, public.dump(sent))  # step 2
        norm = public.finish_many(_add_up(parties, Kind.NORM_TERM, public, 1))
        for channel in parties:
            channel.send(Kind.NORM, public.dump(norm))  # step 4
    weights = [channel.receive(Kind.COMPONENT, 8 * size) for channel, size in zip(parties, samples, strict=True)]
    return np.frombuffer(b"".join(weights), "<f8").astype(np.float64)


@dataclass(frozen=True, eq=False)
class Result:
    """What `run_published` did: `weights` are Trent's, `seconds` those of all rounds, all parties in one process."""

    seen: list[Seen]
    weights: Reals
    seconds: float


def run_published(frames: Sequence[NDArray[np.floating]], key: PaillierSecretKey, **terms: Any) -> Result:
    """Run all parties, one matrix of `frames` each, and Trent as threads; `terms`: others of `PublishedEigenTerms`."""
    count, samples = len(frames), [len(own) for own in frames]
    agreed = asdict(PublishedEigenTerms(features=frames[0].shape[1], samples=samples, **terms))
    padding = agreed.pop("padding")
    shared = {name: agreed[name] for name in ("rounds", "fraction", "insecure_demo")}
    seen: dict[int, Seen] = {}

    def run(number: int, channels: Mapping[int, Channel]) -> Reals:
        if number == count:
            return trent(channels, key.public, **agreed)
        seen[number] = party(channels[count], frames[number], key, padding=padding, **shared)
        return seen[number].component

    start = time.perf_counter()
    results = run_in_threads([partial(run, number) for number in range(count + 1)])
    return Result([seen[number] for number in range(count)], results[-1], time.perf_counter() - start)


def party_bytes(public: PaillierPublicKey, features: int, samples: int, rounds: int) -> tuple[int, int]:
    """What a party sends and what it receives."""
    each = public.wire_bytes(features) + public.wire_bytes(1)
    return rounds * each + 8 * samples, rounds * each


def _send(channel: Channel, kind: Kind, key: PaillierSecretKey, values: Reals, fraction: int) -> None:
    channel.send(kind, key.public.dump(key.encrypt_many([round(float(value) * 2**fraction) for value in values])))


def _receive(channel: Channel, kind: Kind, key: PaillierSecretKey, count: int, fraction: int) -> Reals:
    received = key.public.load(channel.receive(kind, key.public.wire_bytes(count)), count)
    return np.array([value / 2**fraction for value in key.decrypt_many(received)])


def _add_up(parties: Sequence[Channel], kind: Kind, public: PaillierPublicKey, count: int) -> list[Unfinished]:
    vectors = [public.load(channel.receive(kind, public.wire_bytes(count)), count) for channel in parties]
    totals = [public.add_plain(entry, 0) for entry in vectors[0]]
    for vector in vectors[1:]:
        totals = [public.add(total, entry) for total, entry in zip(totals, vector, strict=True)]
    return totals


def _decoy(public: PaillierPublicKey, last: list[Ciphertext], noise: float, fraction: int) -> list[Ciphertext]:
    """The last genuine vector, or zero before there is one, and Gaussian noise."""
    added = [round(float(drawn) * noise * 2**fraction) for drawn in standard_normal((len(last),))]
    return public.finish_many([public.add_plain(entry, value) for entry, value in zip(last, added, strict=True)])


def _fraction() -> float:
    """Uniform in (0, 1)."""
    return (float(uniform_residues(1, 52)[0]) + 0.5) * 2.0**-52
