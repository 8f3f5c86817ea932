"""What a session costs a server while it lasts: memory that it shares with no other session.

    server     one process a session, forked from one that has all models; words as in `bench keyword`, over TLS
    sessions   open at the same time, each after its first word

Needs nothing but /proc.
"""

import statistics
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ppspeech.channel import Channel
from ppspeech.crypto import Kind
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine
from ppspeech.evidence.bench.keyword import made_models, made_utterance, timed, with_operation
from ppspeech.evidence.bench.two_parties import certificates
from ppspeech.figures import Figure
from ppspeech.network import Address, Limits, Server, Service, connect, in_background
from ppspeech.protocols import meet_as_client, meet_as_server

PATIENT = Limits(handshake_seconds=60, message_seconds=120)
MEGABYTE = 1e6


@BENCHES.register("scale-session")
def run(quick: bool) -> list[Figure]:
    """Private memory of sessions that have recognized a word, and of the process that they are forked from."""
    sessions, server = held_open(2 if quick else 12)
    note = f"not shared with others, after one word; median of {len(sessions)} sessions that are open at a time"
    return [
        Figure("scale.session.mb", statistics.median(sessions) / MEGABYTE, "MB", note=f"{note}; {machine()}"),
        Figure("scale.session.most_mb", max(sessions) / MEGABYTE, "MB", note="of the session that has most"),
        Figure(
            "scale.session.server_mb", server / MEGABYTE, "MB", note="all that the process with the models has, once"
        ),
    ]


def held_open(count: int) -> tuple[list[int], int]:
    """Bytes of each of so many sessions that nobody else holds, and bytes of the server whose models they share."""
    job = timed(with_operation(made_models(), "viterbi"), [made_utterance()])

    def program(channel: Channel, _: object) -> None:
        met = meet_as_server(channel)
        with met.session():
            job.server(met, channel)()
        channel.receive(Kind.SHARES, at_most=1)  # stays until the client has been looked at

    looked, done = threading.Event(), threading.Barrier(count + 1)

    with certificates() as (client, identity):
        server = Server(Address("127.0.0.1", 0), {"words": Service(program)}, tls=identity)
        with in_background(server) as running:

            def one(_: int) -> None:
                with connect(running.address, "words", {}, tls=client, limits=PATIENT) as channel:
                    met = meet_as_client(channel)
                    with met.session():
                        answer = job.client(met, channel)()
                    if not job.right(answer):
                        raise PpspeechError(f"the answer {answer!r} is wrong; no figure can be trusted")
                    done.wait(120)
                    looked.wait(120)
                    channel.send(Kind.SHARES, b"1")

            with ThreadPoolExecutor(count) as people:
                asked = [people.submit(one, number) for number in range(count)]
                done.wait(120)
                found = [_private(pid) for pid in _children(running.pid)]
                own = _bytes(running.pid, ("Rss:",))
                looked.set()
                for each in asked:
                    each.result()
    if len(found) != count:
        raise PpspeechError(f"{len(found)} sessions were seen where {count} are open")
    return found, own


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _private(pid: int) -> int:
    return _bytes(pid, ("Private_Clean:", "Private_Dirty:"))


def _bytes(pid: int, kinds: Sequence[str]) -> int:
    """Sums that the kernel keeps of a process's memory. Raises PpspeechError where it keeps none."""
    path = Path(f"/proc/{pid}/smaps_rollup")
    for _ in range(5):
        try:
            lines = path.read_text().splitlines()
            return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(tuple(kinds)))
        except OSError:
            time.sleep(0.1)
    raise PpspeechError(f"{path} cannot be read: this bench needs Linux")
