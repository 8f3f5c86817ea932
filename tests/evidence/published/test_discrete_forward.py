"""The paper's forward algorithm by oblivious transfer: the likelihood, what the printed last step gives, and shapes."""

import math

import numpy as np
import pytest
from hmmlearn.hmm import CategoricalHMM

from ppspeech.errors import ModelError, RangeError
from ppspeech.evidence.published.protocols.discrete_forward import ENTRY_WORDS, GAMMA_BYTES, LIFT, alice, bob
from ppspeech.evidence.published.protocols.exponent import MU_LARGEST
from ppspeech.evidence.published.protocols.gaussian_word import Chain
from ppspeech.evidence.published.protocols.real_numbers import LOG_SCALE, decode
from ppspeech.network import memory_pair
from ppspeech.protocols import PROTOCOLS
from ppspeech.protocols.message_kinds import Kind

from .views import DEMO, demo_key, looks_uniform, run_recorded, seen

ERGODIC = Chain(np.array([0.7, 0.3]), np.array([[0.8, 0.2], [0.35, 0.65]]))
LEFT_RIGHT = Chain(np.array([1.0, 0.0, 0.0]), np.array([[0.6, 0.4, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]]))


def emissions_of(chain: Chain, alphabet: int = 5) -> np.ndarray:
    return np.random.default_rng(3).dirichlet(np.ones(alphabet), chain.states)


def alphas(chain: Chain, emissions: np.ndarray, symbols: list[int]) -> np.ndarray:
    """α_t(j), the slow and obvious way: `(frames, states)`."""
    rows = [chain.initial * emissions[:, symbols[0]]]
    for symbol in symbols[1:]:
        rows.append((rows[-1] @ chain.transitions) * emissions[:, symbol])
    return np.array(rows)


def run(chain: Chain, emissions: np.ndarray, symbols: list[int], strict: bool = False) -> tuple[float, object]:
    key = demo_key()
    options = {"strict": strict, **DEMO}
    _, found, record = run_recorded(
        lambda c: alice(c, key, np.array(symbols), states=chain.states, alphabet=emissions.shape[1], **options),
        lambda c: bob(c, chain, emissions, frames=len(symbols), **options),
    )
    return key.decrypt(found) / LOG_SCALE, record


@pytest.mark.parametrize("symbols", [[2], [1, 4], [0, 0, 1, 1, 2, 4], [at * at % 5 for at in range(98)]])
@pytest.mark.parametrize("chain", [ERGODIC, LEFT_RIGHT], ids=["ergodic", "left-right"])
def test_bob_gets_the_log_likelihood(chain: Chain, symbols: list[int]) -> None:
    """The longest, of the paper's 98 frames, has a likelihood that six decimal places cannot hold."""
    emissions = emissions_of(chain)
    reference = CategoricalHMM(chain.states)
    reference.startprob_, reference.transmat_ = chain.initial, chain.transitions
    reference.emissionprob_ = emissions
    expected = reference.score(np.array(symbols)[:, None])
    assert math.log(alphas(chain, emissions, symbols)[-1].sum()) == pytest.approx(expected)
    found, _ = run(chain, emissions, symbols)
    assert found == pytest.approx(expected, abs=1e-3)


def test_states_that_cannot_be_reached_stay_so() -> None:
    """In a cycle half of them at each frame; the symbols are ten trillion times likelier in the wrong half."""
    chain = Chain(np.array([1.0, 0.0]), np.array([[0.0, 1.0], [1.0, 0.0]]))
    emissions = np.array([[1e-13, 1 - 1e-13], [1 - 1e-13, 1e-13]])
    found, _ = run(chain, emissions, [0, 0, 0])
    assert found == pytest.approx(2 * math.log(1e-13), abs=1e-3)


def test_the_printed_last_step_gives_the_sum_of_the_logarithms() -> None:
    symbols = [1, 4, 0, 3]
    emissions = emissions_of(ERGODIC)
    last = alphas(ERGODIC, emissions, symbols)[-1]
    found, _ = run(ERGODIC, emissions, symbols, strict=True)
    assert found == pytest.approx(np.log(last).sum(), abs=1e-2)
    assert abs(found - math.log(last.sum())) > 5


def test_symbols_that_never_occur_have_a_likelihood_too_small_to_see() -> None:
    emissions = np.array([[1.0, 0.0], [1.0, 0.0]])
    found, _ = run(ERGODIC, emissions, [0, 1, 0])
    assert found < -1e5


def test_alice_sees_every_alpha_within_the_mask() -> None:
    symbols = [1, 4, 0, 3]
    emissions = emissions_of(ERGODIC)
    _, record = run(ERGODIC, emissions, symbols)
    read = np.array([decode(message, LOG_SCALE) for message in seen(record, Kind.BLINDED_LOG)])
    true = np.log(alphas(ERGODIC, emissions, symbols))
    gaps = true - read  # α_1, ..., α_T, the last for the repaired step 8
    assert gaps.shape == (4, 2)
    assert (gaps >= -0.01).all()
    assert (gaps <= math.log(MU_LARGEST) + 0.01).all()


def test_what_the_transfer_gives_alice_tells_nothing() -> None:
    """The one mask that is sound: γ + log b, of the same symbol in the same state, passes the test that P1 fails."""
    symbols, count = [2] * 2048, 2048
    chain = Chain(np.ones(1), np.ones((1, 1)))
    key = demo_key()

    def only_emissions(channel: object) -> list[int]:
        """Alice up to step 3, who then goes away."""
        with pytest.raises(RuntimeError, match="enough"):
            alice(Leaving(channel), key, np.array(symbols), states=1, alphabet=3, **DEMO)
        return []

    class Leaving:
        """A channel that ends with step 3 and keeps what was sent in it."""

        def __init__(self, channel: object) -> None:
            self.send_on, self.receive = channel.send, channel.receive

        def send(self, kind: int, payload: bytes) -> None:
            if kind == Kind.EMISSION:
                kept.append(payload)
                raise RuntimeError("enough")
            self.send_on(kind, payload)

    kept: list[bytes] = []
    with pytest.raises(Exception, match="gone"):
        run_recorded(only_emissions, lambda c: bob(c, chain, np.array([[0.2, 0.3, 0.5]]), frames=count, **DEMO))
    entries = key.decrypt_many(key.public.load(kept[0], count))
    assert looks_uniform([entry - LIFT for entry in entries], 1 << 8 * GAMMA_BYTES)
    assert max(entries) < 1 << 64 * ENTRY_WORDS


def test_shapes_say_nothing_of_symbols_or_probabilities() -> None:
    shapes = [run(ERGODIC, emissions_of(ERGODIC), symbols)[1].shape() for symbols in ([0, 0, 0], [4, 1, 2])]
    shapes.append(run(Chain(np.array([0.0, 1.0]), np.eye(2)), np.full((2, 5), 0.2), [4, 1, 2])[1].shape())
    assert shapes[0] == shapes[1] == shapes[2]


@pytest.mark.parametrize("symbols", [[], [[0]], [0, 5], [-1]])
def test_alice_refuses_symbols_that_are_none(symbols: list) -> None:
    with pytest.raises(RangeError):
        alice(memory_pair()[0], demo_key(), np.array(symbols, np.int64), states=2, alphabet=5, **DEMO)


@pytest.mark.parametrize(
    ("emissions", "what"),
    [(np.full((3, 5), 0.2), "shape"), (np.full((2, 5), 0.3), "add up to 1"), (np.full((2, 2), np.nan), "add up to 1")],
)
def test_bob_refuses_emissions_that_are_none(emissions: np.ndarray, what: str) -> None:
    with pytest.raises(ModelError, match=what):
        bob(memory_pair()[0], ERGODIC, emissions, frames=1, **DEMO)


@pytest.mark.parametrize(
    ("initial", "transitions"),
    [
        (np.array([0.5, 0.6]), np.eye(2)),
        (np.array([0.5, 0.5]), np.eye(3)),
        (np.array([1.5, -0.5]), np.eye(2)),
        (np.array([0.5, 0.5]), np.array([[1.0, 0.0], [np.nan, 1.0]])),
    ],
)
def test_chains_that_are_none_are_refused(initial: np.ndarray, transitions: np.ndarray) -> None:
    with pytest.raises(ModelError):
        Chain(initial, transitions)


def test_it_says_what_it_leaks(caplog: pytest.LogCaptureFixture) -> None:
    run(ERGODIC, emissions_of(ERGODIC), [1])
    leakage = PROTOCOLS["published_forward"].leakage
    assert "within 5.6 nats" in leakage
    assert [r.levelname for r in caplog.records if leakage in r.getMessage()] == ["WARNING", "WARNING"]
