"""Voices of a public network, encrypted: claims and names among 10,000 people, between two processes over TLS.

Offline and online are apart; what the network itself takes, on the device that hears the voice, stands beside them.

Needs the weights of Resemblyzer.
"""

import numpy as np
import torch

from ppspeech.audio.embeddings import EmbeddingConfig
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, machine
from ppspeech.evidence.bench.speakers import AGREED, DIMENSIONS, hardened_job, identification_job, verification_job
from ppspeech.evidence.bench.two_parties import Measured, certificates, measure
from ppspeech.figures import Figure
from ppspeech.models import EmbeddedVoices

PEOPLE = 10_000
SECONDS = 3.0
RATE = 16_000


@BENCHES.register("voices")
def run(quick: bool) -> list[Figure]:
    """`quick`: fewer repeats."""
    repeats, generator, load = (3 if quick else 20), np.random.default_rng(0), machine()
    with certificates() as tls:
        jobs = [verification_job("verify", generator, PEOPLE), identification_job("identify", generator, PEOPLE)]
        found = measure(jobs, repeats, tls=tls)
        found |= measure([hardened_job("hardened", generator, PEOPLE)], repeats, meet=AGREED, tls=tls)
    note = f"{PEOPLE:,} enrolled x {DIMENSIONS}; two processes, TLS on loopback; best of {repeats}; {load}"
    figures = [figure for name, each in found.items() for figure in _figures(name, each, note)]
    first = figures[0]
    summary = Figure(f"voices.{PEOPLE}.offline_ms", 1e3 * found["verify"].offline, "ms", note=first.note)
    return [*figures, summary, _hearing(repeats, load)]


def _figures(name: str, measured: Measured, note: str) -> list[Figure]:
    """A question: all of it, its parts, bytes, round trips, and the client's memory."""
    what = {
        "verify": "a claim, hidden among all",
        "identify": "the name of the best, or nobody's; in a new order each time",
        "hardened": "a claim of a client that may do anything",
    }[name]
    both = f"{what}; offline {1e3 * measured.offline:.0f}, online {1e3 * measured.online:.0f} ms; {note}"
    prefix = f"voices.{PEOPLE}.{name}"
    return [
        Figure(f"{prefix}_ms", 1e3 * measured.total, "ms", note=both),
        Figure(f"{prefix}_median_ms", 1e3 * measured.median, "ms", note=both),
        Figure(f"{prefix}_offline_ms", 1e3 * measured.offline, "ms", note=both),
        Figure(f"{prefix}_online_ms", 1e3 * measured.online, "ms", note=both),
        Figure(f"{prefix}_bytes", measured.bytes, "B", note="payload, offline and online, both ways"),
        Figure(f"{prefix}_rounds", measured.rounds, note="round trips online"),
        Figure(
            f"{prefix}_mb",
            measured.megabytes,
            "MB",
            note="the client's peak so far, libraries and made-up people included",
        ),
    ]


def _hearing(repeats: int, load: str) -> Figure:
    """What the network takes for a few seconds of sound, on one core."""
    voices = EmbeddedVoices(EmbeddingConfig("voice"))
    sound = 0.1 * torch.randn(round(SECONDS * RATE), generator=torch.Generator().manual_seed(0))

    def hear() -> None:
        voices.directions(voices.features([sound], RATE)[0].unsqueeze(0))

    hear()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds = best_seconds(hear, repeats)
    finally:
        torch.set_num_threads(threads)
    return Figure("voices.hearing_ms", 1e3 * seconds, "ms", note=f"{SECONDS:g} s of sound to a direction; {load}")
