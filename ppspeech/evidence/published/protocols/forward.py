"""Steps 5-8 of the paper's Secure Forward Algorithm (Pathak 2010, 4.2.1): from encrypted log b_j(x_t) to encrypted log
P.

    5. Bob     ξ(log α_1(j)) = ξ(log π_j) ξ(log b_j(x_1))
    6. both    Secure LOGSUM for each j: ξ(log sum_l α_t(l) a_lj)
    7. Bob     ξ(log α_t+1(j)) = ξ(log sum_l α_t(l) a_lj) ξ(log b_j(x_t+1))
    8. Bob     ξ(log P) = prod_j ξ(log α_T(j))

Corrections:

- Step 8 as printed computes sum_j log α_T(j) = log prod_j α_T(j). The likelihood is sum_j α_T(j): one more LOGSUM, with
  weights 1. `strict` computes what is printed.
- A state that Bob knows cannot be reached at time t has log α_t = -10^6, encrypted by Bob: logarithms of zero do not
  exist, and the paper's left-right models are full of them.
- Underflow: Alice normalizes, see `exponent`. At six places a state some 14 nats behind the best still rounds to zero,
  and a path through it that would win later is lost: the paper's own error of half a percent.

Several HMMs run side by side, so that a step is one message for all of them. Correction 2.29 in docs/theory/asking.md.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ppspeech.crypto.paillier import Unfinished
from ppspeech.errors import ModelError
from ppspeech.evidence.published.protocols.gaussian_word import Chain
from ppspeech.evidence.published.protocols.logsum import alice_logsum, bob_logsum, encode_weights
from ppspeech.evidence.published.protocols.paillier_parties import Alice, Bob, Encrypted
from ppspeech.evidence.published.protocols.real_numbers import LOG_SCALE, LOG_ZERO, encode, encode_log


def alice_forward(alice: Alice, *, frames: int, chains: int, states: int, strict: bool = False) -> None:
    """Alice's part."""
    for _ in range(frames - 1):
        alice_logsum(alice, groups=chains, terms=states, sums=states)  # step 6
    if not strict:
        alice_logsum(alice, groups=chains, terms=states, sums=1)  # step 8


def bob_forward(bob: Bob, chains: Sequence[Chain], emissions: Sequence[Sequence[Encrypted]]) -> list[Unfinished]:
    """Bob's part: chains of as many states each, and for each frame log b_j of all states of all chains. Returns for
    each chain log P of the frames. All logarithms are at `LOG_SCALE`.
    """
    states = chains[0].states
    if any(chain.states != states for chain in chains):
        raise ModelError(f"all chains need as many states, got {[chain.states for chain in chains]}")
    weights = encode_weights(np.stack([chain.transitions.T for chain in chains]))
    reached = np.stack([chain.initial > 0 for chain in chains])
    initial = [encode_log(probability) for chain in chains for probability in chain.initial.tolist()]
    first = [bob.public.add_plain(emission, log) for emission, log in zip(emissions[0], initial, strict=True)]  # step 5
    logs = _joined(bob, first, reached)
    for emission in emissions[1:]:
        sums = bob_logsum(bob, logs, weights)  # step 6
        reached = np.any(weights.astype(bool) & reached[:, None, :], axis=2)
        logs = _joined(bob, [bob.public.add(s, e) for s, e in zip(sums, emission, strict=True)], reached)  # step 7
    if bob.strict:
        groups = [logs[at : at + states] for at in range(0, len(logs), states)]
        return [reduce(bob.public.add, group[1:], bob.public.add_plain(group[0], 0)) for group in groups]
    return bob_logsum(bob, logs, encode_weights(np.ones((len(chains), 1, states))))  # step 8


def _joined(bob: Bob, logs: list[Unfinished], reached: NDArray[np.bool_]) -> list[Encrypted]:
    """The logarithms, with those of states that cannot be reached replaced by that of zero."""
    zero = encode(LOG_ZERO, LOG_SCALE)
    return [
        log if there else bob.public.encrypt(zero) for log, there in zip(logs, reached.ravel().tolist(), strict=True)
    ]
