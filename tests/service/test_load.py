"""Thirty-two clients at once, for ten minutes: no wrong answer, no growth, nobody waits much longer than others."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from ppspeech.bundle import Bundle
from ppspeech.network import Capacity, Limits
from tests.service.conftest import Running
from tests.service.voices import RATE, plain_answer, voice

CLIENTS = 32
SECONDS = float(os.environ.get("PPSPEECH_LOAD_SECONDS", "600"))
VOICES = 12
PATIENT = Limits(handshake_seconds=120, message_seconds=120)
"""With so many clients on two cores, everything takes a while."""


def resident(pid: int) -> int:
    """Bytes of memory that a process has of its own."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon:", "RssShmem:")))


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_load(serve: Callable[..., AbstractContextManager[Running]], bundles: dict[str, Bundle]) -> None:
    """Each client meets, asks for ten seconds, leaves, and comes again, so that sessions come and go all the time."""
    bundle = bundles["whole"]
    right = {seed: plain_answer(bundle, voice(seed)) for seed in range(VOICES)}
    clear = {seed: word for seed, (word, margin) in right.items() if margin > 0.5}
    assert len(set(clear.values())) > 1
    ends = time.monotonic() + SECONDS

    def ask(number: int) -> tuple[int, list[float]]:
        wrong, took = 0, []
        chosen = np.random.default_rng(number)
        while time.monotonic() < ends:
            until = min(ends, time.monotonic() + 10)
            with running.connect(limits=PATIENT) as client:
                while time.monotonic() < until:
                    seed = int(chosen.choice(list(clear)))
                    started = time.monotonic()
                    wrong += client.recognize(voice(seed), RATE).value != clear[seed]
                    took.append(time.monotonic() - started)
        return wrong, took

    capacity = Capacity(sessions=2 * CLIENTS, handshakes=2 * CLIENTS, per_address=2 * CLIENTS, waiting_seconds=120)
    with (
        serve({"whole": bundle}, capacity=capacity, limits=PATIENT) as running,
        ThreadPoolExecutor(CLIENTS + 1) as pool,
    ):
        asking = [pool.submit(ask, number) for number in range(CLIENTS)]
        time.sleep(min(30.0, SECONDS / 3))
        early = resident(running.process.pid)
        results = [each.result() for each in asking]
        late = resident(running.process.pid)
        latency = [float(np.median(took)) for _, took in results if took]
    assert sum(wrong for wrong, _ in results) == 0
    assert len(latency) == CLIENTS
    assert max(latency) < 3 * float(np.median(latency))
    assert late - early < 16 * 2**20
    assert running.process.counters is not None
    assert not running.process.counters.failed
    assert running.process.counters.finished >= 2 * CLIENTS
