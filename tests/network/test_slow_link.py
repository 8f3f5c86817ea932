"""A slow link hands on every byte, later."""

import hashlib
import time

from ppspeech.channel import Channel
from ppspeech.network import run_in_processes

DATA = bytes(range(256)) * 4096


def echo(channel: Channel) -> None:
    for _ in range(3):
        channel.send(2, hashlib.sha256(channel.receive(1, len(DATA))).digest())


def test_bytes_arrive_whole_and_not_before_their_time() -> None:
    def ask(channel: Channel) -> list[float]:
        times = []
        for _ in range(3):
            began = time.monotonic()
            channel.send(1, DATA)
            assert channel.receive(2, 32) == hashlib.sha256(DATA).digest()
            times.append(time.monotonic() - began)
        return times

    assert min(run_in_processes(ask, echo, delay=0.03)) >= 0.06
