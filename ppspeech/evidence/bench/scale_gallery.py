"""Names among 100,000 and a million people, encrypted: two processes over TLS, what needs no voice apart from the rest.

Time, bytes, round trips and memory; what an entry costs, beside the protocol for up to 10,000 places; and what coarse
comparisons do to names (`crowd_trials`). Quick: 10,000 and 100,000 people.

Needs the weights of Resemblyzer, the corpora audiomnist and librispeech, and 4 GB of memory; --quick takes about 1 min.
"""

from collections.abc import Callable
from dataclasses import replace
from multiprocessing import Value
from typing import Any

import numpy as np

from ppspeech.channel import Channel
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import forget_peak, machine, peak_megabytes
from ppspeech.evidence.bench.crowd_trials import accuracy, unit
from ppspeech.evidence.bench.speakers import DIMENSIONS, identification_job
from ppspeech.evidence.bench.two_parties import Measured, Timed, certificates, measure
from ppspeech.figures import Figure
from ppspeech.protocols import Meeting
from ppspeech.protocols.speakers import (
    Crowd,
    CrowdTerms,
    Entries,
    Identity,
    name_cost,
    name_of_best,
    prepare_as_client,
    prepare_as_server,
    shift_as_client,
    shift_as_server,
)
from ppspeech.storage import data_folder

SIZES = (100_000, 1_000_000)
QUICK = (10_000, 100_000)
LINEAR = 10_000
THRESHOLD = 0.5
AT_A_TIME = 1 << 15


@BENCHES.register("scale-gallery")
def run(quick: bool) -> list[Figure]:
    """`quick`: fewer people and repeats. Without a data folder it raises `CorpusError` before anything is measured."""
    data_folder()
    repeats, load = (2 if quick else 5), machine()
    figures: list[Figure] = []
    with certificates() as tls:
        linear = measure([identification_job("linear", np.random.default_rng(0), LINEAR)], repeats, tls=tls)["linear"]
        for people in QUICK if quick else SIZES:
            job, peaks = crowd_job(people)
            found = measure([job], repeats, tls=tls)[job.name]
            note = f"{people:,} enrolled x {DIMENSIONS}; two processes, TLS on loopback; best of {repeats}; {load}"
            figures += _figures(people, found, [peak.value for peak in peaks], note)
            entry = Figure.less(
                "scale.gallery.us_per_entry",
                1e6 * found.total / people,
                "us",
                f"linear, {LINEAR:,} places",
                1e6 * linear.total / LINEAR,
                note=f"offline and online; online {1e6 * found.online / people:.2f}; {note}",
            )
            del job
    return [*figures, entry, *accuracy(quick)]


def crowd_job(people: int) -> tuple[Timed, tuple[Any, Any]]:
    """A name among so many people, and what the client's, and the server's, memory grew to, in megabytes."""
    generator, plan = np.random.default_rng(0), CrowdTerms(DIMENSIONS, people)
    parts, asked = [], people // 3
    voice = np.zeros(DIMENSIONS)
    for start in range(0, people, AT_A_TIME):
        count = min(AT_A_TIME, people - start)
        some = unit(generator.standard_normal((count, DIMENSIONS), dtype=np.float32))
        if start <= asked < start + count:
            voice = some[asked - start].astype(np.float64)
        parts.append(Entries.of(plan, some, [f"speaker {start + each}" for each in range(count)], THRESHOLD))
    every = Entries(*(np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])))
    del parts
    crowd, peaks, numbers = Crowd.of(plan, every), (Value("d"), Value("d")), plan.numbers(voice)

    def client(met: Meeting, channel: Channel) -> Callable[[], object]:
        held = forget_peak()  # what this process began with: the gallery too, which is not its
        prepared = prepare_as_client(replace(met, channel=channel), plan)

        def ask() -> Identity | None:
            found = name_of_best(prepared.engine, plan, shift_as_client(prepared, numbers))
            peaks[0].value = max(peaks[0].value, peak_megabytes() - held)
            return found

        return ask

    def server(met: Meeting, channel: Channel) -> Callable[[], object]:  # noqa: ARG001 (that of the meeting)
        prepared = prepare_as_server(met, crowd)

        def answer() -> None:
            name_of_best(prepared.engine, plan, shift_as_server(prepared), crowd)
            peaks[1].value = peak_megabytes()

        return answer

    cost = name_cost(plan)
    rounds = ("s" + cost.directions).count("sr")
    wanted = Identity(f"speaker {asked}")
    total = plan.product_bytes + cost.total_bytes
    return Timed(f"crowd.{people}", client, server, lambda got: got == wanted, total, rounds), peaks


def _figures(people: int, found: Measured, peaks: list[float], note: str) -> list[Figure]:
    plan, prefix = CrowdTerms(DIMENSIONS, people), f"scale.gallery.{people}"
    online = plan.shift_bytes + name_cost(plan).online_bytes
    return [
        Figure(f"{prefix}.ms", 1e3 * found.online, "ms", note=f"online, from the voice to the name; {note}"),
        Figure(f"{prefix}.offline_ms", 1e3 * found.offline, "ms", note=f"before there is a voice; {note}"),
        Figure(f"{prefix}.bytes", online, "B", note="payload online, both ways; as the formula says"),
        Figure(f"{prefix}.offline_bytes", found.bytes - online, "B", note="payload offline, both ways"),
        Figure(f"{prefix}.rounds", found.rounds, note="round trips online"),
        Figure(f"{prefix}.client_mb", peaks[0], "MB", note="what the client's memory grew by"),
        Figure(f"{prefix}.server_mb", peaks[1], "MB", note="the server's peak, gallery and libraries included"),
    ]
