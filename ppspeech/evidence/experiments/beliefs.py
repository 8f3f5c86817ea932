"""Belief propagation with secret priors: trees, grids, 10,000 messages, and a contagion among 1,000 people.

Needs nothing; --quick takes about 30 s.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.evidence.bench.clock import machine
from ppspeech.evidence.bench.shares import MEETING
from ppspeech.evidence.bench.two_parties import Timed, certificates, measure, processor_seconds
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.figures import Figure
from ppspeech.network import run_together
from ppspeech.protocols import PROTOCOLS, run_in_memory
from ppspeech.protocols.beliefs import BeliefShape, beliefs_in_clear, believe, costs, prepare

SIDE, COUPLING, ROUNDS = 50, 0.3, 20
"""Of a torus of 2,500 nodes: 10,000 messages a round."""
PEOPLE, CONTACTS, FAR = 1_000, 3, 600
"""Everyone knows the three next on either side, and 600 pairs know each other besides."""
SYMPTOM = 0.6
"""How far apart those who are ill and those who are not feel, in standard deviations, half of it."""
SWEEPS = 300
STEPS = 1 << 10
"""Couplings, and priors of graphs with cycles, are drawn in such parts of a nat: messages that go round by minima add
up what rounding leaves of them.
"""


@EXPERIMENTS.register("beliefs")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001
    """Errors are the largest of any node, in nats of log odds. Trees are held against sums over all states, graphs with
    cycles against the same rounds in the clear. In the contagion who is ill is drawn from the model, and everyone
    begins with a symptom of its own. `quick`: fewer draws and repeats.
    """
    draws = 3 if quick else 20
    trees = [exact_error(seed) for seed in range(draws)]
    grids = {
        (operation, damping): max(loopy_error(grid(3, operation, damping, seed), seed) for seed in range(draws))
        for operation, damping in (("sum", 0), ("sum", 4), ("min", 0))
    }
    note = f"{draws} draws of couplings within 0.8 and priors, {ROUNDS} rounds"
    return [
        Figure("beliefs.tree.error", max(trees), note=f"{note}; trees of 12 nodes, against all 4,096 states"),
        Figure("beliefs.grid.error", grids["sum", 0], note=f"{note}; grids of 3 x 3, against the same in the clear"),
        Figure("beliefs.grid.damped_error", grids["sum", 4], note=f"{note}; half of each message is kept"),
        Figure("beliefs.grid.min_error", grids["min", 0], note=f"{note}; minima instead of sums: exact"),
        Figure("beliefs.peers.error", peers_error(), note="five peers in a ring with a chord, 4 rounds, no servers"),
        *speed(2 if quick else 7),
        *contagion(),
    ]


def grid(side: int, operation: str, damping: int, seed: int) -> BeliefShape:
    """Neighbors in two directions, with couplings of either sign."""
    node = np.arange(side * side).reshape(side, side)
    pairs = [*zip(node[:, :-1].ravel(), node[:, 1:].ravel(), strict=True)]
    pairs += zip(node[:-1].ravel(), node[1:].ravel(), strict=True)
    params = {
        "nodes": side * side,
        "edges": [[int(one), int(other)] for one, other in pairs],
        "couplings": _couplings(np.random.default_rng(seed), len(pairs)),
        "rounds": ROUNDS,
        "operation": operation,
        "damping": damping,
    }
    return BeliefShape.from_params(params)


def tree(nodes: int, seed: int) -> BeliefShape:
    """Every node but the first hangs on one before it."""
    rng = np.random.default_rng(seed)
    edges = tuple((int(rng.integers(0, node)), node) for node in range(1, nodes))
    return BeliefShape(nodes, edges, tuple(_couplings(rng, nodes - 1)), rounds=nodes)


def exact_error(seed: int) -> float:
    """How far beliefs on a tree are from the log odds that a sum over all states gives."""
    shape = tree(12, seed)
    priors = np.random.default_rng(100 + seed).normal(size=shape.nodes)
    states = np.array(list(product((-1, 1), repeat=shape.nodes)))
    ends = shape.ends.T
    weights = np.exp(states @ priors / 2 + (states[:, ends[0]] * states[:, ends[1]]) @ np.array(shape.couplings))
    likely = (weights @ (states > 0)) / weights.sum()
    return float(np.abs(believed(shape, priors) - np.log(likely / (1 - likely))).max())


def loopy_error(shape: BeliefShape, seed: int) -> float:
    """How far beliefs on shares are from the same rounds in the clear, of priors that need no rounding."""
    priors = np.random.default_rng(200 + seed).normal(size=shape.nodes).clip(-3.9, 3.9)
    priors = np.rint(priors * STEPS) / STEPS
    return float(np.abs(believed(shape, priors) - beliefs_in_clear(shape, priors)).max())


def believed(shape: BeliefShape, priors: Reals) -> Reals:
    """What two servers in this process compute on shares, put together."""
    shares = _cut(shape, priors)

    def server(channel: Channel, side: Side) -> Residues:
        setup = PairSetup.agree(channel, side)
        with setup.session(channel):
            return believe(channel, setup, shape, shares[side])

    parts = run_together(lambda c: server(c, Side.FIRST), lambda c: server(c, Side.SECOND))
    return shape.ring.to_signed(shape.ring.join(*parts)) * 2.0**-shape.fraction


def peers_error() -> float:
    """The same among peers."""
    edges = tuple((node, (node + 1) % 5) for node in range(5))
    shape = BeliefShape(5, (*edges, (0, 2)), (0.5, -0.4, 0.6, 0.3, 0.7, -0.2), rounds=4)
    priors = np.random.default_rng(3).normal(size=5)
    take_part = PROTOCOLS["beliefs_peers"].bind
    terms = {"graph": shape.to_params()}
    found = run_in_memory([("peer", take_part("peer", [float(prior)], terms)) for prior in priors])
    return float(np.abs(np.array(found) - beliefs_in_clear(shape, priors)).max())


def speed(repeats: int) -> list[Figure]:
    """10,000 messages, 20 times round, between two servers over TLS."""
    shape = torus(SIDE)
    shares = _cut(shape, np.random.default_rng(0).normal(size=shape.nodes))
    total = sum(cost.total_bytes for cost in costs(shape))

    def half(setup: PairSetup, channel: Channel) -> Callable[[], object]:
        engine = prepare(channel, setup, shape)
        return lambda: believe(channel, setup, shape, shares[setup.party], engine)

    job = Timed("beliefs", half, half, lambda share: len(share) == shape.nodes, total)
    with certificates() as tls:
        found = measure([job], repeats, meet=MEETING, tls=tls)["beliefs"]
        busy = processor_seconds(job, repeats, meet=MEETING, tls=tls)
    messages = len(shape.sources)
    note = (
        f"{messages:,} messages, {shape.rounds} rounds, {shape.ring.bits} bits, {1 << shape.lines.index} lines; "
        f"two processes, TLS on loopback, {machine()}; best of {repeats} after a warm-up"
    )
    return [
        Figure("beliefs.10k20.s", found.total, "s", note=note),
        Figure("beliefs.10k20.median_s", found.median, "s", note=note),
        Figure("beliefs.10k20.cpu_s", busy, "s", note="of both servers' processors"),
        Figure("beliefs.10k20.bytes", found.bytes, "B", note="payload, offline and online, both ways"),
        Figure("beliefs.10k20.rounds", found.rounds, note="round trips online"),
    ]


def torus(side: int) -> BeliefShape:
    """A grid that is closed on both sides."""
    node = np.arange(side * side).reshape(side, side)
    around = np.concatenate([np.stack((node, np.roll(node, -1, axis)), axis=-1).reshape(-1, 2) for axis in (0, 1)])
    edges = tuple((int(one), int(other)) for one, other in around)
    return BeliefShape(side * side, edges, (COUPLING,) * len(edges), ROUNDS)


def contagion(people: int = PEOPLE) -> list[Figure]:
    """Who is ill? By a symptom of one's own, and by what others' symptoms say of it, which nobody shows."""
    shape = acquaintances(people)
    ill = drawn_states(shape)
    felt = SYMPTOM * ill + np.random.default_rng(11).normal(size=people)
    priors = np.clip(2 * SYMPTOM * felt, -shape.prior, shape.prior)
    found = believed(shape, priors)
    error = float(np.abs(found - beliefs_in_clear(shape, priors)).max())
    right = [int(((guess > 0) == (ill > 0)).sum()) for guess in (found, priors)]
    note = (
        f"{people:,} people, {len(shape.ends):,} acquaintances, {shape.rounds} rounds, half of each message kept; "
        "two servers, nobody learns another's symptom or belief"
    )
    return [
        Figure("beliefs.contagion.error", error, note=note),
        Figure.share(
            "beliefs.contagion.accuracy",
            right[0],
            people,
            "people, who depend on one another",
            "one's own symptom",
            right[1] / people,
            right[0] / right[1],
            note,
        ),
    ]


def acquaintances(people: int) -> BeliefShape:
    """Neighbors on a circle, and pairs that know each other besides (Watts and Strogatz 1998)."""
    rng = np.random.default_rng(5)
    pairs = {(node, (node + step) % people) for node in range(people) for step in range(1, CONTACTS + 1)}
    known = {(min(pair), max(pair)) for pair in pairs}
    for one, other in rng.integers(0, people, (FAR * people // PEOPLE, 2)).tolist():
        if one != other:
            known.add((min(one, other), max(one, other)))
    edges = tuple(sorted(known))
    return BeliefShape(people, edges, (0.2,) * len(edges), ROUNDS, damping=4)


def drawn_states(shape: BeliefShape) -> Reals:
    """States of all, +1 or -1, drawn from the model without symptoms by Gibbs sampling."""
    rng = np.random.default_rng(7)
    strength = np.zeros((shape.nodes, shape.nodes))
    strength[tuple(shape.ends.T)] = shape.couplings
    strength += strength.T
    states = rng.choice([-1.0, 1.0], shape.nodes)
    for _ in range(SWEEPS):
        for node in range(shape.nodes):
            likely = 1 / (1 + np.exp(-2 * strength[node] @ states))
            states[node] = 1.0 if rng.random() < likely else -1.0
    return states


def _cut(shape: BeliefShape, priors: Reals) -> tuple[Residues, Residues]:
    """As everyone would: a share for each server."""
    return shape.narrow.share(shape.narrow.from_signed(shape.encoded(priors)))


def _couplings(rng: np.random.Generator, count: int) -> list[float]:
    size = rng.uniform(0.05, 0.8, count) * rng.choice([-1, 1], count)
    return [float(each) for each in np.rint(size * STEPS) / STEPS]
