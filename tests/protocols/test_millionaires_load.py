"""One server, two hundred secret comparisons at once, none mixed up."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ppspeech.channel import Channel
from ppspeech.network import Address, Limits, Server, Service, connect, in_background
from ppspeech.protocols.millionaires import alice, bob
from tests.protocols.alice_and_bob import as_alice, as_bob

WEALTH = 1_000
LIMITS = Limits(handshake_seconds=300, message_seconds=300, session_seconds=600)


def serve(channel: Channel, params: Any) -> None:
    alice(as_alice(channel), WEALTH, bits=params["bits"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_hundred_comparisons_at_once() -> None:
    params = {"bits": 16}
    server = Server(Address("127.0.0.1", 0), {"millionaires": Service(serve, params)}, insecure=True, limits=LIMITS)
    with in_background(server) as running:

        def ask(number: int) -> str:
            with connect(running.address, "millionaires", params, insecure=True, limits=LIMITS) as channel:
                return bob(as_bob(channel), number, bits=16)

        numbers = [10 * i for i in range(200)]
        with ThreadPoolExecutor(len(numbers)) as pool:
            answers = list(pool.map(ask, numbers))
    expected = ["alice is richer" if number < WEALTH else "alice is not richer" for number in numbers]
    assert answers == expected
