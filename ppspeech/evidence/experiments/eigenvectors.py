"""Private eigenvectors: convergence and cost against dimension, parties and decoys, beside the paper's protocol.

Frames are drawn so that eigenvalues and directions are known. Ours runs whole, in memory; of the paper's protocol
(Pathak 2010, section 4.1.1) a few rounds at 2048 bits are timed and multiplied to the 128 that seven squarings stand
for, and whole runs at 512 bits show how its decoys slow it down and how little they hide: the attack of
`published.attacks.eigenvector` names them and recovers everyone's second moments.

Needs nothing; --quick takes about 15 s.
"""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.crypto.paillier import PaillierSecretKey, generate_paillier
from ppspeech.errors import PpspeechError
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.published.attacks.eigenvector import recover_moments
from ppspeech.evidence.published.protocols.eigenvector import run_published
from ppspeech.figures import Figure
from ppspeech.intervals import Mean
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.pictures import blank, save
from ppspeech.protocols import Party, run_in_memory
from ppspeech.protocols.eigen import SQUARINGS, alice, bob, find_together, second_moments

BOUND = 1e3
ROUNDS = 1 << SQUARINGS
DECOY_ROUNDS = 100
CLOSE = 1e-4  # 1 - |cos| at which an iteration counts as converged


@dataclass(frozen=True)
class Sweep:
    """What is varied, whole or quick."""

    ratios: tuple[float, ...]
    squarings: tuple[int, ...]
    dimensions: tuple[int, ...]
    parties: tuple[int, ...]
    genuine: tuple[float, ...]
    decoy_runs: int


WHOLE = Sweep(
    (1.05, 1.1, 1.5), tuple(range(1, 9)), (4, 8, 16, 39, 64, 96), (2, 3, 5, 10), (1.0, 0.8, 0.6, 0.4, 0.2), 10
)
QUICK = Sweep((1.1,), (2, 5, 7), (8, 39), (2, 3), (1.0, 0.5), 2)


@EXPERIMENTS.register("eigenvectors")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Vary one thing at a time; save the curves as `eigenvectors.png` in `folder`."""
    plan = QUICK if quick else WHOLE
    convergence = {ratio: {n: _error(ratio, n) for n in plan.squarings} for ratio in plan.ratios}
    secret = generate_paillier(2048)
    dimensions = {k: _cost_of_dimension(k, secret) for k in plan.dimensions}
    parties = {n: _cost_of_parties(n) for n in plan.parties}
    decoys = {p: _decoys(p, plan.decoy_runs) for p in plan.genuine}
    picture = folder / "eigenvectors.png"
    _plot(convergence, dimensions, parties, decoys, picture)
    figures = [
        Figure(f"eigenvectors.ratio{ratio:g}.squarings{n}.error", error, note="1 - |cos|, 20 features")
        for ratio, curve in convergence.items()
        for n, error in curve.items()
    ]
    squared = f"{SQUARINGS} squarings in one process; the peer's 128 rounds at 2048 bits from 2"
    for k, (seconds, size, published) in dimensions.items():
        figures += [
            Figure.less(f"eigenvectors.k{k}.seconds", seconds, "s", "Pathak 2010, 4.1.1", published, squared),
            Figure(f"eigenvectors.k{k}.bytes", size, "B", note="payload, both ways, setup included"),
        ]
    figures += [
        Figure(f"eigenvectors.parties{n}.seconds", seconds, "s", note="13 features, all parties in one process")
        for n, seconds in parties.items()
    ]
    for p, (rounds, error) in decoys.items():
        note = f"mean of {plan.decoy_runs} runs and an interval over them, 6 features, 512 bits, ratio 1.5; {picture}"
        close, apart = f"to 1 - |cos| < {CLOSE:g}; {note}", f"of the other's moments, relative; {note}"
        figures += [
            Figure.mean(f"eigenvectors.genuine{p:g}.rounds", rounds, note=close, limits=(1, DECOY_ROUNDS)),
            Figure.mean(f"eigenvectors.genuine{p:g}.attack_error", error, note=apart, limits=(0, math.inf)),
        ]
    return figures


def draw(features: int, ratio: float, parties: int, seed: int = 0) -> tuple[list[Reals], Reals]:
    """Frames of each party and their common direction: the first eigenvalue is `ratio` times the second."""
    rng = np.random.default_rng(seed)
    values = np.concatenate([[ratio], np.linspace(1.0, 0.1, features - 1)])
    directions = np.linalg.qr(rng.normal(size=(features, features)))[0]
    mixed = np.linalg.qr(rng.normal(size=(3 * features, features)))[0]
    frames = mixed @ (np.sqrt(values)[:, None] * directions.T)
    return np.array_split(frames, parties), directions[:, 0]


def _error(ratio: float, squarings: int, features: int = 20) -> float:
    (first, second), direction = draw(features, ratio, 2)
    terms: dict[str, Any] = {"features": features, "bound": BOUND, "squarings": squarings}
    found, _ = run_in_memory(
        [("alice", lambda party: alice(party, first, **terms)), ("bob", lambda party: bob(party, second, **terms))]
    )
    return 1 - abs(float(found[0] @ direction))


def _cost_of_dimension(features: int, secret: PaillierSecretKey) -> tuple[float, int, float]:
    """Seconds and bytes of ours, and seconds of the paper's protocol."""
    (first, second), _ = draw(features, 1.5, 2)
    here, there = memory_pair()
    record = Transcript(here)
    start = time.perf_counter()
    run_together(
        lambda _: alice(Party("alice", {"bob": record}), first, features=features, bound=BOUND),
        lambda c: bob(Party("bob", {"alice": c}), second, features=features, bound=BOUND),
        (here, there),
    )
    seconds = time.perf_counter() - start
    # The parties of the paper's protocol work at the same time: one of them, with all frames, and Trent take as long.
    together = [np.concatenate([first, second])]
    run_published(together, secret, rounds=1)  # tables of the key
    published = run_published(together, secret, rounds=2).seconds / 2 * ROUNDS
    return seconds, record.bytes_up + record.bytes_down, published


def _cost_of_parties(parties: int, features: int = 13) -> float:
    frames, direction = draw(features, 1.5, parties)

    def take_part(party: Party) -> Reals:
        return find_together(party, frames[party.place], features=features, bound=BOUND)

    start = time.perf_counter()
    results = run_in_memory([("party", take_part)] * parties)
    seconds = time.perf_counter() - start
    if abs(float(results[-1][0] @ direction)) < 1 - CLOSE:
        raise PpspeechError("the parties found another direction than that of their frames")
    return seconds


def _decoys(genuine: float, runs: int, features: int = 6) -> tuple[Mean, Mean]:
    """Rounds until the vector is close for good, and the error of the moments that the attack recovers."""
    secret = generate_paillier(512, insecure_demo=True)
    needed: list[float] = []
    errors: list[float] = []
    for seed in range(runs):
        frames, direction = draw(features, 1.5, 2, seed)
        result = run_published(
            frames, secret, rounds=DECOY_ROUNDS, genuine=genuine, decoy_noise=1e4, fraction=40, insecure_demo=True
        )
        seen = result.seen[0]
        lengths = np.linalg.norm(seen.vectors, axis=1)
        close = np.abs(seen.vectors @ direction) / lengths > 1 - CLOSE
        needed.append(int(np.argmax(close)) + 1 if close.any() else DECOY_ROUNDS)
        other = second_moments(frames[1])
        found = recover_moments(seen) - second_moments(frames[0])
        errors.append(float(np.linalg.norm(found - other) / np.linalg.norm(other)))
    return Mean.of(needed), Mean.of(errors)


def _plot(
    convergence: dict[float, dict[int, float]],
    dimensions: dict[int, tuple[float, int, float]],
    parties: dict[int, float],
    decoys: dict[float, tuple[Mean, Mean]],
    path: Path,
) -> None:
    picture = blank(11, 8)
    converge, dimension, party_count, decoy = picture.subplots(2, 2).flat
    for ratio, curve in convergence.items():
        converge.semilogy(list(curve), [max(error, 1e-12) for error in curve.values()], "o-", label=f"ratio {ratio:g}")
    converge.set(xlabel="squarings", ylabel="1 - |cos|", title="Convergence, 20 features")
    dimension.loglog(list(dimensions), [own for own, _, _ in dimensions.values()], "o-", label="on shares")
    dimension.loglog(list(dimensions), [peer for _, _, peer in dimensions.values()], "s--", label="as published")
    dimension.set(xlabel="features", ylabel="seconds", title="128 steps of the power method, two parties")
    party_count.plot(list(parties), list(parties.values()), "o-", label="on shares")
    party_count.set(xlabel="parties", ylabel="seconds", title="13 features, one process", ylim=(0, None))
    decoy.plot(list(decoys), [rounds.value for rounds, _ in decoys.values()], "s--", label="rounds to converge")
    decoy.set(xlabel="probability of a genuine round", ylabel="rounds", title="As published: decoys")
    attack = decoy.twinx()
    attack.semilogy(list(decoys), [error.value for _, error in decoys.values()], "x:", color="red")
    attack.set_ylabel("error of the moments recovered (red)")
    for axes in (converge, dimension, party_count, decoy):
        axes.legend()
    save(picture, path)
