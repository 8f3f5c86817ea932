"""Secure Forward Algorithm (Pathak 2010, 4.2.1) for an HMM over M symbols: emissions by oblivious transfer.

    1. Bob             for each t and j a random γ_tj and the column log b_j + γ_tj
    2. both            1-of-M OT: Alice gets log b_j(x_t) + γ_tj
    3. Alice -> Bob    ξ(log b_j(x_t) + γ_tj)
    4. Bob             ξ(log b_j(x_t) + γ_tj) ξ(-γ_tj) = ξ(log b_j(x_t))
    5-8.               `forward`

Corrections, beside those of `forward`: no real γ is uniform, so that log b_j + γ_tj would tell log b_j; γ_tj is an
integer uniform below 2^120, which hides the 60 bits of log b_j within 2^-60. The logarithm of zero is -10^6.

With the strict step 8 the result is the sum of the states' logarithms and no likelihood.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.crypto import uniform_bytes
from ppspeech.crypto.paillier import SECURE_BITS, Ciphertext, PaillierSecretKey, generate_paillier
from ppspeech.errors import ModelError, RangeError
from ppspeech.evidence.published.protocols.forward import alice_forward, bob_forward
from ppspeech.evidence.published.protocols.gaussian_word import Chain, check_distributions
from ppspeech.evidence.published.protocols.paillier_parties import meet_as_alice, meet_as_bob
from ppspeech.evidence.published.protocols.real_numbers import encode_log
from ppspeech.evidence.published.protocols.transfer import choose_entries, offer_entries
from ppspeech.protocols import Kind, Party, register_protocol

GAMMA_BYTES = 15
ENTRY_WORDS = 2
LIFT = 1 << 64  # added to every entry, so that none is negative: more than the largest logarithm


@dataclass(frozen=True, kw_only=True)
class ForwardTerms:
    """What both agree on: Alice's frames are of M = `alphabet` symbols, 2 to 256; with `strict`, step 8 is as printed,
    and results leave as they come out of the homomorphic operations.
    """

    frames: int
    states: int
    alphabet: int
    key_bits: int = SECURE_BITS
    strict: bool = False
    insecure_demo: bool = False


forward = register_protocol(
    "published_forward",
    functionality="a ciphertext, under alice's key, of the log-likelihood of alice's symbols under bob's HMM, to bob",
    leakage="alice learns at every frame log α of every state within 5.6 nats, and every sum up to a factor below "
    "2^40; public are the number of frames, states and symbols; there is no simulator",
    assumptions="both follow the protocol; decisional composite residuosity; oblivious transfer as in crypto.transfer",
    terms=ForwardTerms,
)


@forward.party("alice")
def observe(party: Party, symbols: list[int], /, **terms: Any) -> None:
    """Alice's program, with a key for the occasion: her symbols `(frames,)`."""
    agreed, given = ForwardTerms(**terms), np.asarray(symbols, np.int64)
    if len(given) != agreed.frames:
        raise RangeError(f"the terms say {agreed.frames} symbols, got {len(given)}")
    key = generate_paillier(agreed.key_bits, insecure_demo=agreed.insecure_demo)
    sizes: dict[str, Any] = {"states": agreed.states, "alphabet": agreed.alphabet}
    alice(party.channel, key, given, **sizes, strict=agreed.strict, insecure_demo=agreed.insecure_demo)


@forward.party("bob")
def score(
    party: Party, initial: list[float], transitions: list[list[float]], emissions: list[list[float]], /, **terms: Any
) -> str:
    """Bob's program: his HMM. Returns the ciphertext, in hexadecimal digits."""
    agreed, given = ForwardTerms(**terms), np.asarray(emissions, np.float64)
    chain = Chain(np.asarray(initial, np.float64), np.asarray(transitions, np.float64))
    if given.shape != (agreed.states, agreed.alphabet):
        raise RangeError(f"the terms say emissions ({agreed.states}, {agreed.alphabet}), got {given.shape}")
    switches: dict[str, bool] = {"strict": agreed.strict, "insecure_demo": agreed.insecure_demo}
    return f"{int(bob(party.channel, chain, given, frames=agreed.frames, **switches).value):x}"


def alice(
    channel: Channel,
    key: PaillierSecretKey,
    symbols: NDArray[np.int64],
    *,
    states: int,
    alphabet: int,
    strict: bool = False,
    insecure_demo: bool = False,
) -> None:
    """Alice's program: her symbols `(frames,)`, at least one, each below `alphabet`, else `RangeError`."""
    if symbols.ndim != 1 or not len(symbols):
        raise RangeError(f"symbols have the shape (frames,) and there is at least one, got {symbols.shape}")
    met = meet_as_alice(channel, key, forward, insecure_demo=insecure_demo)
    entries = choose_entries(channel, np.repeat(symbols, states), alphabet, ENTRY_WORDS)  # step 2
    met.send(Kind.EMISSION, [int(low) + (int(high) << 64) for low, high in entries])  # step 3
    alice_forward(met, frames=len(symbols), chains=1, states=states, strict=strict)


def bob(
    channel: Channel, chain: Chain, emissions: Reals, *, frames: int, strict: bool = False, insecure_demo: bool = False
) -> Ciphertext:
    """Bob's program: b `(states, alphabet)`, a distribution for each state, else `ModelError`. Returns ξ(log P), at
    `LOG_SCALE`.
    """
    if emissions.ndim != 2 or len(emissions) != chain.states:
        raise ModelError(
            f"emissions have the shape (states, alphabet), here ({chain.states}, M), got {emissions.shape}"
        )
    check_distributions(emissions, "emission probabilities")
    met = meet_as_bob(channel, forward, strict=strict, insecure_demo=insecure_demo)
    count = frames * chain.states
    drawn = uniform_bytes(GAMMA_BYTES * count)
    gammas = [int.from_bytes(drawn[at : at + GAMMA_BYTES], "big") for at in range(0, len(drawn), GAMMA_BYTES)]
    logs = [[encode_log(probability) + LIFT for probability in state] for state in emissions.tolist()]
    columns = [[log + gamma for log in logs[at % chain.states]] for at, gamma in enumerate(gammas)]  # step 1
    offer_entries(channel, _words(columns))  # step 2
    masked = met.receive(Kind.EMISSION, count)
    found = [met.public.add_plain(each, -gamma - LIFT) for each, gamma in zip(masked, gammas, strict=True)]  # step 4
    frame_logs = [found[at : at + chain.states] for at in range(0, count, chain.states)]
    return met.public.finish(bob_forward(met, [chain], frame_logs)[0])


def _words(columns: list[list[int]]) -> NDArray[np.uint64]:
    """Integers below 2^128 as two words each, the low one first: `(count, entries, 2)`."""
    data = b"".join(entry.to_bytes(8 * ENTRY_WORDS, "little") for column in columns for entry in column)
    return np.frombuffer(data, "<u8").astype(np.uint64).reshape(len(columns), -1, ENTRY_WORDS)
