"""Twenty parties sum their classifiers with distributed noise over TLS, beside the published protocol.

Needs nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ppspeech.channel import Channel
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine
from ppspeech.figures import Figure
from ppspeech.network import Limits
from ppspeech.network.group import Group, Identity
from ppspeech.network.local import Outcome, Player, run_group
from ppspeech.protocols import Party
from ppspeech.protocols.sums import contribute, curate

PARTIES = 20
DIMENSION = 123
SIZE = 1628
EPSILON, PENALTY = 1.0, 0.01
PUBLISHED = {"parties": 5, "dimension": 20}  # sizes of the published protocol with --quick


@BENCHES.register("parties")
def run(quick: bool) -> list[Figure]:
    """Run both with every party a process; with `quick`, the published one is smaller and no ratio is stated."""
    load = machine()
    repeats = 3 if quick else 7
    outcomes = sorted((_sound(PARTIES, DIMENSION) for _ in range(repeats)), key=_seconds)[repeats // 2]
    total = _seconds(outcomes)
    most = max(o.bytes_sent + o.bytes_received for n, o in outcomes.items() if n != "curator")
    note = (
        f"{PARTIES} parties and a curator, each a process; TLS 1.3 on loopback, signed keys, Skellam noise, "
        f"{DIMENSION} numbers; connecting included; median of {repeats}; {load}"
    )
    figures = [
        Figure("parties.k20.total_s", total, "s", note=note),
        Figure("parties.k20.bytes_per_party", most, "B", note=f"sent and received, at most; {2048 * PARTIES} allowed"),
    ]
    parties, dimension = (PUBLISHED["parties"], PUBLISHED["dimension"]) if quick else (PARTIES, DIMENSION)
    published = _seconds(_published(parties, dimension))
    beside = f"2048 bits, {parties} parties, {dimension} numbers, the same processes and TLS; one run"
    figures.append(Figure("parties.published.total_s", published, "s", note=beside))
    if not quick:
        speedup, peer = published / total, "Pathak, Rane and Raj 2010 at 2048 bits"
        figures.append(Figure("parties.k20.speedup_vs_published", speedup, "x", peer, published, speedup, beside))
    return figures


def _sound(parties: int, dimension: int) -> dict[str, Outcome]:
    """One run of ours; refused if a party fails, or the sum is not the one in the clear up to the noise."""
    values = [[(place + 1) / (number + 1) for number in range(dimension)] for place in range(parties)]
    sensitivity = 2 / (2 * SIZE * parties * PENALTY)

    terms: dict[str, Any] = {"dimension": dimension, "sensitivity": sensitivity, "epsilon": EPSILON}

    def adds(place: int) -> Callable[[Mapping[str, Channel], Group, Identity], Any]:
        return lambda *met: contribute(Party.met(*met), values[place], **terms)

    players = {"curator": Player("curator", lambda *met: curate(Party.met(*met), **terms))}
    players |= {f"party{place}": Player("party", adds(place)) for place in range(parties)}
    outcomes = run_group("aggregate", players, hub="curator")
    _check(outcomes)
    wrong = np.abs(np.array(outcomes["party0"].result) - np.sum(values, axis=0)).max()
    if wrong > 40 * sensitivity:
        raise PpspeechError(f"the sum is {wrong} away from the one in the clear, far more than the noise")
    return outcomes


def _published(parties: int, dimension: int) -> dict[str, Outcome]:
    """One run of the paper's protocol, at 2048 bits, every party a process, over the same TLS."""
    from ppspeech.evidence.published.protocols.aggregation import contribute as contribute_published
    from ppspeech.evidence.published.protocols.aggregation import curate as curate_published

    terms = {"parties": parties, "dimension": dimension, "epsilon": EPSILON, "penalty": PENALTY}

    def takes_part(place: int) -> Callable[[Mapping[str, Channel], Group, Identity], Any]:
        own = [0.01 * place] * dimension
        return lambda *met: contribute_published(Party.met(*met), own, SIZE + place, **terms)

    players = {f"party{place}": Player("party", takes_part(place)) for place in range(parties)}
    players["charlie"] = Player("charlie", lambda *met: curate_published(Party.met(*met), **terms))
    limits = Limits(message_seconds=1800.0)
    outcomes = run_group("published_aggregation", players, limits=limits, wait_seconds=300.0)
    _check(outcomes)
    return outcomes


def _check(outcomes: Mapping[str, Outcome]) -> None:
    for name, outcome in outcomes.items():
        if outcome.error:
            raise PpspeechError(f"{name} failed: {outcome.error}")


def _seconds(outcomes: Mapping[str, Outcome]) -> float:
    return max(outcome.seconds for outcome in outcomes.values())
