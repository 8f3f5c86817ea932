"""One server, honest and hostile clients, half an hour: no wrong answer, and nothing that grows.

`PPSPEECH_SOAK_SECONDS=60` for a shorter one.
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import pytest

from ppspeech.bundle import Bundle
from ppspeech.evidence.bench.hostile import attackers
from ppspeech.network import Capacity, ClientTls, Limits
from ppspeech.service import Deployment
from ppspeech.service.server.words import ServedWords
from tests.service.conftest import Running
from tests.service.test_load import resident
from tests.service.voices import RATE, plain_answer, voice

SECONDS = float(os.environ.get("PPSPEECH_SOAK_SECONDS", "1800"))
PEOPLE, CROWD = 3, 40
PATIENT = Limits(handshake_seconds=60, message_seconds=60)
MEBIBYTE = 2**20


@dataclass(frozen=True)
class Sample:
    """What a server holds at one moment. `child` is the largest of the sessions' own memory."""

    parent: int
    children: int
    child: int
    descriptors: int
    threads: int
    files: int
    state: int


def sample(pid: int, folder: Path) -> Sample:
    """Look at a server, its sessions, and the folder of its state, without its log, which is there to grow."""
    pids = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    memory = []
    for each in pids:
        try:
            memory.append(resident(each))
        except OSError:  # it has just ended
            continue
    kept = [path for path in folder.iterdir() if path.name != "log.jsonl"]
    sizes = [path.stat().st_size for path in kept if path.exists()]
    return Sample(
        resident(pid),
        len(pids),
        max(memory, default=0),
        len(list(Path(f"/proc/{pid}/fd").iterdir())),
        len(list(Path(f"/proc/{pid}/task").iterdir())),
        len([path for path in kept if not path.name.endswith("-journal")]),
        sum(sizes),
    )


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_soak(serve: Callable[..., AbstractContextManager[Running]], bundles: dict[str, Bundle]) -> None:
    bundle = bundles["whole"]
    right = {seed: plain_answer(bundle, voice(seed)) for seed in range(12)}
    clear = {seed: word for seed, (word, margin) in right.items() if margin > 0.5}
    assert len(set(clear.values())) > 1
    ends = time.monotonic() + SECONDS
    agreement = ServedWords.of("whole", bundle, Deployment(frames=40)).offer.agreement

    def ask(number: int) -> tuple[int, int]:
        """Meet, ask a few times, leave, come again: how many answers, and how many of them were wrong."""
        chosen, answers, wrong = np.random.default_rng(number), 0, 0
        while time.monotonic() < ends:
            with running.connect(limits=PATIENT) as client:
                for seed in chosen.choice(list(clear), 5):
                    wrong += client.recognize(voice(int(seed)), RATE).value != clear[int(seed)]
                    answers += 1
        return answers, wrong

    capacity = Capacity(sessions=24, waiting=64, waiting_seconds=60)
    with serve({"whole": bundle}, capacity=capacity, limits=PATIENT) as running:
        tls, pid, folder = ClientTls(pin=running.pin), running.process.pid, running.log.parent
        with (
            attackers(running.process.address, tls, CROWD, "whole", agreement, pause=0.3),
            ThreadPoolExecutor(PEOPLE) as people,
        ):
            asking = [people.submit(ask, number) for number in range(PEOPLE)]
            samples = []
            while time.monotonic() < ends:
                time.sleep(min(2.0, SECONDS / 30))
                samples.append(sample(pid, folder))
            results = [each.result() for each in asking]
        until = time.monotonic() + 90
        while (rest := sample(pid, folder)).children and time.monotonic() < until:
            time.sleep(0.5)
    answers, wrong = (sum(column) for column in zip(*results, strict=True))
    quarter = max(2, len(samples) // 4)
    held = np.array([astuple(each) for each in samples])
    more = np.median(held[-quarter:], 0) - np.median(held[quarter : 2 * quarter], 0)
    grown, largest = (dict(zip(Sample.__dataclass_fields__, row.tolist(), strict=True)) for row in (more, held.max(0)))
    counts = running.process.counters
    print(f"{SECONDS:g} s: {answers} answers, {wrong} wrong; {counts}")
    print(f"at most {largest}; more than at first {grown}; at rest {rest}")
    assert wrong == 0
    assert answers >= PEOPLE
    assert counts is not None
    assert set(counts.failed) <= {
        "BadTypeError",
        "Killed",
        "NotInGroupError",
        "PeerGoneError",
        "PeerTimeoutError",
        "WrongSessionError",
    }, "a session ended with an error of its own"
    assert sum(counts.failed.values()) > SECONDS  # they were not idle
    assert grown["parent"] < 4 * MEBIBYTE
    assert grown["child"] < 32 * MEBIBYTE
    assert grown["state"] < 16 * 1024
    assert max(each.descriptors for each in samples) < 2 * (capacity.sessions + capacity.waiting) + 32
    assert max(each.children for each in samples) <= capacity.sessions
    assert {each.threads for each in samples} == {rest.threads}
    assert (rest.children, rest.files) == (0, samples[0].files)
    assert rest.descriptors < 32
