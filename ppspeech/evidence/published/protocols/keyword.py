"""Protocol for Secure Keyword Recognition (Pathak 2010, 4.2.1): which of Bob's words Alice said, to Alice.

    1. both            `gaussian_forward` for each HMM: Bob has ξ(p_1), ..., ξ(p_Δ)
    2. Bob -> Alice    (ξ(p'_1), ..., ξ(p'_Δ)) = (ξ(p_1), ..., ξ(p_Δ)) R, R "order-preserving with random coefficients"
    3. Alice           decrypts; δ* = argmax p'
    4. both            1-of-Δ OT: Alice gets the word τ_δ*

Corrections: R is an integer matrix; "max" in step 3 is the argmax.

What stays wrong cannot be mended. A linear map keeps the order of all vectors only if R = a I + c 1' with a > 0: its
columns i and j must differ by a multiple of e_i - e_j. So p'_i = a p_i + constant, and Alice reads all gaps between the
words' scores up to one factor. All that `forward` shows her she has seen before. Correction 2.30 in
docs/theory/asking.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.crypto import uniform_below
from ppspeech.crypto.paillier import SECURE_BITS, PaillierSecretKey, Unfinished, generate_paillier
from ppspeech.errors import ModelError, ProtocolError, RangeError
from ppspeech.evidence.published.protocols.forward import alice_forward, bob_forward
from ppspeech.evidence.published.protocols.gaussian_forward import (
    check_frames,
    emission_plan,
    receive_emissions,
    send_products,
)
from ppspeech.evidence.published.protocols.gaussian_word import GaussianWord
from ppspeech.evidence.published.protocols.paillier_parties import Alice, Bob, meet_as_alice, meet_as_bob
from ppspeech.evidence.published.protocols.transfer import choose_entries, offer_entries
from ppspeech.protocols import Kind, Party, register_protocol

COEFFICIENT_BITS = 40
SPELLING_BYTES = 32  # every word is padded to this length in UTF-8


@dataclass(frozen=True, kw_only=True)
class KeywordTerms:
    """What both agree on: Bob has 2 to 256 words; with `strict`, what is printed is run wherever it can be."""

    frames: int
    words: int
    states: int
    key_bits: int = SECURE_BITS
    strict: bool = False
    insecure_demo: bool = False


keyword = register_protocol(
    "published_keyword",
    functionality="the word among bob's whose HMM gives alice's frames the largest likelihood, to alice",
    leakage="alice learns the gaps between the scores of all words up to one factor, at every frame log α of every "
    "state within 5.6 nats, and every sum up to a factor below 2^40; public are the number of frames, features, words "
    "and states; there is no simulator",
    assumptions="both follow the protocol; decisional composite residuosity; oblivious transfer as in crypto.transfer",
    terms=KeywordTerms,
)


@keyword.party("alice")
def recognize(party: Party, utterance: list[list[float]], /, **terms: Any) -> str:
    """Alice's program, with a key for the occasion: her frames `(frames, features)`."""
    agreed, given = KeywordTerms(**terms), np.asarray(utterance, np.float64)
    if len(given) != agreed.frames:
        raise RangeError(f"the terms say {agreed.frames} frames, got {len(given)}")
    key = generate_paillier(agreed.key_bits, insecure_demo=agreed.insecure_demo)
    options: dict[str, Any] = {"strict": agreed.strict, "insecure_demo": agreed.insecure_demo}
    return alice(party.channel, key, given, words=agreed.words, states=agreed.states, **options)


@keyword.party("bob")
def offer(party: Party, models: list[dict[str, Any]], /, **terms: Any) -> None:
    """Bob's program: his words, each a mapping of `word`, `initial`, `transitions`, `means` and `covariances`."""
    agreed, own = KeywordTerms(**terms), [GaussianWord.parse(word) for word in models]
    if (len(own), {model.chain.states for model in own}) != (agreed.words, {agreed.states}):
        raise RangeError(f"the terms say {agreed.words} words of {agreed.states} states each, and these are others")
    bob(party.channel, own, frames=agreed.frames, strict=agreed.strict, insecure_demo=agreed.insecure_demo)


def alice(
    channel: Channel,
    key: PaillierSecretKey,
    frames: Reals,
    *,
    words: int,
    states: int,
    strict: bool = False,
    insecure_demo: bool = False,
) -> str:
    """Alice's program: frames `(frames, features)` that can be encoded. Returns the word."""
    check_frames(frames)
    met = meet_as_alice(channel, key, keyword, insecure_demo=insecure_demo)
    send_products(met, frames)
    alice_forward(met, frames=len(frames), chains=words, states=states, strict=strict)  # step 1
    return choose_word(met, words)


def bob(
    channel: Channel, words: Sequence[GaussianWord], *, frames: int, strict: bool = False, insecure_demo: bool = False
) -> None:
    """Bob's program: 2 to 256 words of as many states and features each, else `ModelError`. `strict`: what is printed,
    wherever it can run: w_j, results that are not re-randomized, the last step.
    """
    models = list(words)
    spellings = spell(models)
    met = meet_as_bob(channel, keyword, strict=strict, insecure_demo=insecure_demo)
    emissions = receive_emissions(met, emission_plan(models, strict=strict), frames)
    scores = bob_forward(met, [model.chain for model in models], emissions)  # step 1
    offer_words(met, scores, spellings)


def choose_word(alice: Alice, words: int) -> str:
    """Alice's steps 3 and 4."""
    ordered = alice.receive(Kind.ORDERED, words)
    best = max(range(words), key=ordered.__getitem__)  # step 3
    (entry,) = choose_entries(alice.channel, np.array([best]), words, SPELLING_BYTES // 8)  # step 4
    try:
        return str(entry.astype("<u8").tobytes().rstrip(b"\0"), "utf-8")
    except UnicodeDecodeError:
        raise ProtocolError("the word that came is no text: the parties disagree on the number of words") from None


def offer_words(bob: Bob, scores: Sequence[Unfinished], spellings: NDArray[np.uint64]) -> None:
    """Bob's steps 2 and 4, for spellings `(words, 4)`."""
    public, largest = bob.public, mpz(1) << COEFFICIENT_BITS
    a = 1 + int(uniform_below(largest))
    common = public.scale(scores[0], 0)
    for score in scores:
        common = public.add(common, public.scale(score, int(uniform_below(largest))))
    bob.send(Kind.ORDERED, [public.add(public.scale(score, a), common) for score in scores])  # step 2
    offer_entries(bob.channel, spellings[None])  # step 4


def spell(models: list[GaussianWord]) -> NDArray[np.uint64]:
    """The words as entries of the transfer, `(words, 4)`. Raises `ModelError`, as `bob`."""
    if not 2 <= len(models) <= 256:
        raise ModelError(f"keyword recognition is among 2 to 256 words, got {len(models)}")
    if len({(model.chain.states, model.dimensions) for model in models}) > 1:
        raise ModelError("all words need as many states and features, got words that differ")
    spelled = [model.word.encode() for model in models]
    for model, data in zip(models, spelled, strict=True):
        if not 0 < len(data) <= SPELLING_BYTES:
            raise ModelError(f"a word has 1 to {SPELLING_BYTES} bytes in UTF-8, got {model.word!r}")
    joined = b"".join(data.ljust(SPELLING_BYTES, b"\0") for data in spelled)
    return np.frombuffer(joined, "<u8").astype(np.uint64).reshape(len(models), -1)
