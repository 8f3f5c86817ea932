"""GELU-Net (Zhang et al. 2018): a network "globally encrypted, locally unencrypted", split between two parties.

    for every layer
    1. Alice -> Bob    ξ(a), her activations
    2. Bob -> Alice    ξ(W a + b)
    3. Alice           decrypts z = W a + b; the next activations are f(z), computed in the clear
    at the end, Alice takes the largest

No approximation of f is needed, and Bob sees ciphertexts alone. What stays wrong cannot be mended: she sees every
pre-activation. The answers to 0 and to the unit vectors are b and the columns of W: after as many questions as a layer
is wide, and one, she has the network (`attacks.gelu_net`). That the two parties do not collude does not help, since the
one who must not learn the weights is the one with the key. In training the masks are against Bob.

Corrections: Bob's results are re-randomized, unless `strict`. Weights and activations are at 10^6, results at 10^12.
Correction 2.24 in docs/theory/asking.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.crypto.paillier import SECURE_BITS, PaillierSecretKey, RecodedWeights, generate_paillier
from ppspeech.errors import RangeError
from ppspeech.evidence.published.protocols.gaussian_forward import check_frames
from ppspeech.evidence.published.protocols.paillier_parties import meet_as_alice, meet_as_bob
from ppspeech.evidence.published.protocols.real_numbers import FACTOR, LOG_SCALE, decode, encode
from ppspeech.protocols import Kind, Party, register_protocol

Activations = Callable[[int, Reals], Reals]
"""What Alice sends into a layer, from its number and the pre-activations of the one before."""


@dataclass(frozen=True, kw_only=True)
class NetworkTerms:
    """What both agree on. `sizes`: numbers of a frame, of every layer's output. `frames`: one after the other."""

    sizes: list[int]
    frames: int
    key_bits: int = SECURE_BITS
    strict: bool = False
    insecure_demo: bool = False


gelu_net = register_protocol(
    "published_gelu_net",
    functionality="the class that bob's network gives each of alice's frames, to alice",
    leakage="alice learns every pre-activation of every layer, from which all weights follow after as many "
    "questions as a layer is wide, and one; public are the sizes of all layers; there is no simulator",
    assumptions="both follow the protocol; decisional composite residuosity",
    terms=NetworkTerms,
)


@gelu_net.party("alice")
def classify(party: Party, utterance: list[list[float]], /, **terms: Any) -> list[int]:
    """Alice's program, with a key for the occasion: her frames `(frames, features)`."""
    agreed, given = NetworkTerms(**terms), np.asarray(utterance, np.float64)
    if given.shape != (agreed.frames, agreed.sizes[0]):
        raise RangeError(f"the terms say {agreed.frames} frames of {agreed.sizes[0]} numbers, got {given.shape}")
    check_frames(given)
    key = generate_paillier(agreed.key_bits, insecure_demo=agreed.insecure_demo)

    def follow(layer: int, before: Reals) -> Reals:
        return np.maximum(before, 0.0) if layer else given

    seen = alice(party.channel, key, agreed.sizes, follow, insecure_demo=agreed.insecure_demo)
    return [int(each) for each in seen[-1].argmax(axis=1)]


@gelu_net.party("bob")
def offer(party: Party, weights: Mapping[str, Any], /, **terms: Any) -> None:
    """Bob's program: his `matrices` `(inputs, outputs)` and `biases`."""
    agreed = NetworkTerms(**terms)
    matrices = [np.asarray(each, np.float64) for each in weights["matrices"]]
    biases = [np.asarray(each, np.float64) for each in weights["biases"]]
    found = [len(matrices[0]), *(each.shape[1] for each in matrices)]
    if found != list(agreed.sizes):
        raise RangeError(f"the terms say layers of {agreed.sizes}, and these are of {found}")
    options: dict[str, Any] = {"strict": agreed.strict, "insecure_demo": agreed.insecure_demo}
    bob(party.channel, matrices, biases, frames=agreed.frames, **options)


def alice(
    channel: Channel,
    key: PaillierSecretKey,
    sizes: Sequence[int],
    activations: Activations,
    *,
    insecure_demo: bool = False,
) -> list[Reals]:
    """Alice's program: what she sends into every layer is hers to choose. Returns what she sees: the pre-activations of
    every layer, `(frames, outputs)` each.
    """
    met = meet_as_alice(channel, key, gelu_net, insecure_demo=insecure_demo)
    seen: list[Reals] = []
    for layer, outputs in enumerate(sizes[1:]):
        given = activations(layer, seen[-1] if seen else np.zeros((0, 0)))
        met.send(Kind.ACTIVATIONS, [encode(value) for value in given.ravel().tolist()])  # step 1
        answered = met.receive(Kind.PRE_ACTIVATIONS, len(given) * outputs)
        seen.append(np.array(decode(answered, LOG_SCALE)).reshape(len(given), outputs))  # step 3
    return seen


def bob(
    channel: Channel,
    matrices: Sequence[Reals],
    biases: Sequence[Reals],
    *,
    frames: int,
    strict: bool = False,
    insecure_demo: bool = False,
) -> None:
    """Bob's program: the layers' weights `(inputs, outputs)` and biases."""
    met = meet_as_bob(channel, gelu_net, strict=strict, insecure_demo=insecure_demo)
    for matrix, bias in zip(matrices, biases, strict=True):
        plan = RecodedWeights.of(np.rint(matrix.T * FACTOR).astype(np.int64))
        offsets = [encode(value, LOG_SCALE) for value in bias.tolist()]
        given = met.receive(Kind.ACTIVATIONS, frames * len(matrix))
        results = []
        for at in range(frames):
            products = met.public.scalar_products(given[at * len(matrix) : (at + 1) * len(matrix)], plan)
            results += [met.public.add_plain(each, more) for each, more in zip(products, offsets, strict=True)]
        met.send(Kind.PRE_ACTIVATIONS, results)  # step 2
