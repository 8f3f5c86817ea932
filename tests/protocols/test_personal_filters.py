"""Algorithm 3 as a conversation: what it computes, what is seen, and that nobody can stop or spoil the others."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ppspeech.channel import Channel
from ppspeech.errors import ModelError, PeerGoneError, ProtocolError, RangeError, WrongKeyError
from ppspeech.filters import LinearFilter
from ppspeech.filters.personal import Filtered, PersonalFilter, PersonalSettings, improve_all_
from ppspeech.network import (
    Address,
    ClientTls,
    Limits,
    Listener,
    MemoryChannel,
    ServerTls,
    Transcript,
    connect,
    make_certificate,
    memory_pair,
)
from ppspeech.protocols import Party, run_in_memory
from ppspeech.protocols.filters.board import NO_TICKET, TICKET_BYTES
from ppspeech.protocols.filters.personal_filters import (
    FINISHED,
    SEEN,
    Aggregator,
    Contributor,
    PersonalTerms,
    aggregator,
    attend_all,
    contributor,
    digest_of,
)
from ppspeech.protocols.message_kinds import Kind
from tests.filters.personal_crowd import common_filter, crowd

SETTINGS = PersonalSettings(steps=1)
COMMON = digest_of(common_filter())
TERMS = PersonalTerms(6, 3, 2, rounds=2, settings=SETTINGS, most_samples=60, bound=50.0, common=COMMON)
PLAIN = {"inputs": 6, "features": 3, "classes": 2, "rounds": 2, "settings": {"steps": 1}, "common": COMMON}
NAMES = ["ann", "bob", "cid", "dee"]
LIMITS = Limits(message_seconds=10)

Program = Callable[[Channel], Any]


def play(
    programs: dict[str, Program], terms: PersonalTerms = TERMS, watch: bool = False
) -> tuple[Aggregator, dict[str, Any], dict[str, Transcript]]:
    """Run contributors against an aggregator in memory: the aggregator, what each gave or raised, its transcripts."""
    party = Aggregator(common_filter(), list(programs), terms, gather_seconds=5)
    ends = {name: memory_pair(LIMITS) for name in programs}
    results: dict[str, Any] = {}

    def run(name: str) -> None:
        try:
            results[name] = programs[name](ends[name][0])
        except ProtocolError as error:
            results[name] = error
        finally:
            ends[name][0].close()

    threads = [threading.Thread(target=run, args=(name,)) for name in programs]
    for thread in threads:
        thread.start()
    records = {name: Transcript(end, keep_payloads=watch) for name, (_, end) in ends.items()}
    results["words"] = attend_all(party, records)
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()
    return party, results, records


def honest(terms: PersonalTerms = TERMS) -> dict[str, Contributor]:
    return {name: Contributor(x, z, terms) for name, (x, z) in zip(NAMES, crowd(), strict=True)}


def programs_of(parties: dict[str, Contributor]) -> dict[str, Program]:
    return {name: party.take_part for name, party in parties.items()}


def test_the_conversation_computes_algorithm_3() -> None:
    """Everyone in one place, in order, gives the same filters; the wire rounds to single precision."""
    parties = honest()
    board, results, _ = play(programs_of(parties))
    filters = [PersonalFilter(common_filter()) for _ in NAMES]
    for _ in range(TERMS.rounds):
        improve_all_(filters, crowd(), 2, SETTINGS)
    for name, wanted, (x, z) in zip(NAMES, filters, crowd(), strict=True):
        assert results[name] == FINISHED
        found = parties[name].filter
        assert isinstance(found, PersonalFilter)
        assert found.shift.abs().max() > 1e-2
        torch.testing.assert_close(found.shift, wanted.shift, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(board.shown()[name].features, wanted(x).detach(), atol=1e-3, rtol=1e-3)
        assert torch.equal(board.shown()[name].labels, z)
    assert set(board.standings().values()) == {"done"}


def test_everyone_may_move_at_once() -> None:
    terms = PersonalTerms(6, 3, 2, 4, SETTINGS, "asynchronous", 100, common=COMMON)
    parties = honest(terms)
    board, _, _ = play(programs_of(parties), terms)
    assert [seat.turns for seat in board.board.seats.values()] == [4] * 4
    assert all(party.history[-1][-1] < party.history[0][0] for party in parties.values())


def test_programs_run_by_name_with_plain_values() -> None:
    common = common_filter()
    own = [(x.tolist(), z.tolist()) for x, z in crowd()]

    def first(party: Party) -> Any:
        return aggregator(party, common.weight.tolist(), common.bias.tolist(), **PLAIN)

    others: list[tuple[str, Any]] = [
        ("contributor", lambda party, xz=xz: contributor(party, *xz, **PLAIN)) for xz in own
    ]
    found, *filters = run_in_memory([("aggregator", first), *others], hub="aggregator")
    for (x, z), seen, ours in zip(own, found.values(), filters, strict=True):
        assert (seen["standing"], seen["turns"], seen["labels"], ours["end"]) == ("done", 2, z, FINISHED)
        wanted = np.array(x) @ np.array(ours["weight"]).T + np.array(ours["bias"])
        np.testing.assert_allclose(seen["features"], wanted, atol=1e-4)


def test_the_aggregator_sees_filtered_samples_and_labels_and_no_more() -> None:
    """Inputs that differ where the common filter is blind give the same bytes: nothing else about them travels."""
    x, z = crowd()[0]
    blind = torch.linalg.svd(common_filter().weight.detach()).Vh[3:].mT
    moved = x + 5 * torch.randn(len(x), 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) @ blind.mT
    views = []
    for inputs in (x, moved):
        parties = honest() | {"ann": Contributor(inputs, z, TERMS)}
        _, _, records = play(programs_of(parties), watch=True)
        views.append(records["ann"].entries)
        sizes = [(e.kind, e.size) for e in records["ann"].entries if e.direction == "received"]
        filtered = (Kind.FILTERED, len(x) * 3 * 4)
        assert sizes == [(Kind.ENTER, TICKET_BYTES), (Kind.TASK_LABELS, 2 * len(x)), *[filtered] * 3]
        last = np.frombuffer(records["ann"].entries[-2].payload or b"", "<f4").reshape(-1, 3)
        own = parties["ann"].filter
        assert own is not None
        np.testing.assert_allclose(last, own(inputs).detach(), atol=1e-4)  # and no less: these are the samples
    for one, other in zip(*views, strict=True):
        if one.kind == Kind.FILTERED:
            numbers = [np.frombuffer(e.payload or b"", "<f4") for e in (one, other)]
            np.testing.assert_allclose(*numbers, atol=1e-3)
    # What is said about personal maps is true: the first and the last samples tell the shift.
    frames = [e.payload or b"" for e in records["ann"].entries if e.kind == Kind.FILTERED]
    first, end = (np.frombuffer(payload, "<f4").reshape(-1, 3) for payload in (frames[0], frames[-1]))
    np.testing.assert_allclose((end - first).mean(0), own.shift.detach(), atol=1e-4)  # type: ignore[union-attr]
    assert {party for party, _ in SEEN} == {"aggregator", "contributor", "nobody"}


def test_a_contributor_sees_the_others_samples_without_names() -> None:
    parties = honest()
    seen: list[Transcript] = []

    def watched(channel: Channel) -> str:
        seen.append(Transcript(channel, keep_payloads=True))
        return parties["dee"].take_part(seen[0])

    play(programs_of(parties) | {"dee": watched})
    received = [e for e in seen[0].entries if e.direction == "received"]
    assert [e.kind for e in received] == [Kind.COMMON_FILTER, *[Kind.OTHERS] * 3]
    others = sum(len(z) for _, z in crowd()[:3])
    assert [e.size for e in received[1:]] == [1 + others * (3 * 4 + 2)] * 2 + [1 + len(FINISHED)]


def test_an_aggregator_with_a_filter_of_its_own_sees_nothing() -> None:
    """One that keeps every input of one contributor, say: it would get the inputs themselves."""
    parties = honest()
    seen: list[Any] = []

    def cheats(channel: Channel) -> None:
        channel.receive(Kind.ENTER, TICKET_BYTES)
        whole = np.eye(3, 6, dtype="<f4").tobytes() + np.zeros(3, "<f4").tobytes()
        channel.send(Kind.COMMON_FILTER, NO_TICKET + whole)
        try:
            seen.append(channel.receive(Kind.TASK_LABELS, at_most=10_000))
            seen.append(channel.receive(Kind.FILTERED, at_most=100_000))
        except ProtocolError as error:
            seen.append(error)

    here, there = memory_pair(LIMITS)
    cheating = threading.Thread(target=cheats, args=(there,))
    cheating.start()
    with pytest.raises(WrongKeyError, match="not the one that was agreed on"):
        parties["ann"].take_part(here)
    here.close()
    cheating.join()
    assert [type(each) for each in seen] == [PeerGoneError]


def leaves(after: str) -> Program:
    """A contributor that vanishes."""

    def program(channel: Channel) -> None:
        x, z = crowd()[1]
        if after == "nothing":
            return
        channel.send(Kind.ENTER, NO_TICKET)
        channel.receive(Kind.COMMON_FILTER, at_most=10_000)
        if after == "entering":
            return
        channel.send(Kind.TASK_LABELS, z.numpy().astype("<u2").tobytes())
        if after == "labels":
            return
        channel.send(Kind.FILTERED, common_filter()(x).detach().numpy().astype("<f4").tobytes())
        if after == "turn":
            channel.receive(Kind.OTHERS, at_most=100_000)

    return program


@pytest.mark.parametrize("after", ["nothing", "entering", "labels", "samples", "turn"])
def test_who_drops_out_stops_nobody(after: str) -> None:
    parties = honest()
    board, results, _ = play(programs_of(parties) | {"bob": leaves(after)})
    assert board.standings() == {"ann": "done", "bob": "away", "cid": "done", "dee": "done"}
    assert [results[name] for name in ("ann", "cid", "dee")] == [FINISHED] * 3
    assert all(len(parties[name].history) == TERMS.rounds for name in ("ann", "cid", "dee"))
    # What it had shown stays: the others go on hiding among it.
    assert ("bob" in board.shown()) == (after in {"samples", "turn"})


def sends(labels: bytes, features: bytes, later: bytes | None = None) -> Program:
    """A contributor that sends what it likes."""

    def program(channel: Channel) -> bytes:
        channel.send(Kind.ENTER, NO_TICKET)
        channel.receive(Kind.COMMON_FILTER, at_most=10_000)
        channel.send(Kind.TASK_LABELS, labels)
        channel.send(Kind.FILTERED, features)
        answer = channel.receive(Kind.OTHERS, at_most=100_000)
        if later is not None and answer[:1] == b"\x00":
            channel.send(Kind.FILTERED, later)
            answer = channel.receive(Kind.OTHERS, at_most=100_000)
        return answer

    return program


GOOD = np.zeros((4, 3), "<f4").tobytes()
LABELS = np.array([0, 1, 0, 1], "<u2").tobytes()


@pytest.mark.parametrize(
    ("rubbish", "word"),
    [
        (sends(LABELS, np.full((4, 3), np.nan, "<f4").tobytes()), "finite and within 50"),
        (sends(LABELS, np.full((4, 3), np.inf, "<f4").tobytes()), "finite and within 50"),
        (sends(LABELS, np.full((4, 3), 51, "<f4").tobytes()), "finite and within 50"),
        (sends(np.array([0, 2, 0, 1], "<u2").tobytes(), GOOD), "labels must lie in 0..1"),
        (sends(b"", GOOD), "at least one of them"),
        (sends(LABELS + b"\x00", GOOD), "two bytes each"),
        (sends(LABELS, GOOD[:-4]), "exactly 48"),
        (sends(LABELS, GOOD + GOOD), "48 may come"),
        (sends(bytes(2 * 61), GOOD), "at most 120 may come"),
        (sends(LABELS, GOOD, np.full((4, 3), np.nan, "<f4").tobytes()), "finite and within 50"),
        (sends(LABELS, GOOD, GOOD[:-1]), "exactly 48"),
        (lambda channel: channel.send(Kind.FILTERED, GOOD), "expected a message of kind 160"),
    ],
)
def test_who_sends_rubbish_is_expelled_and_spoils_nothing(rubbish: Program, word: str) -> None:
    parties = honest()
    board, results, _ = play(programs_of(parties) | {"bob": rubbish})
    assert word in results["words"]["bob"]
    assert board.standings() == {"ann": "done", "bob": "expelled", "cid": "done", "dee": "done"}
    assert set(board.shown()) == {"ann", "cid", "dee"}
    for name in ("ann", "cid", "dee"):
        assert results[name] == FINISHED
        shift = parties[name].filter.shift  # type: ignore[union-attr]
        assert shift.isfinite().all()
        assert len(parties[name].history) == TERMS.rounds


class Breaking:
    """A channel that breaks before it sends message number `at`."""

    def __init__(self, channel: MemoryChannel, at: int) -> None:
        self._channel, self._left = channel, at

    def send(self, kind: int, payload: bytes | bytearray | memoryview) -> None:
        self._left -= 1
        if self._left < 0:
            self._channel.close()
        self._channel.send(kind, payload)

    def receive(self, kind: int, size: int | None = None, *, at_most: int | None = None) -> bytes:
        return self._channel.receive(kind, size, at_most=at_most)


@pytest.fixture
def meeting() -> Iterator[tuple[Aggregator, Callable[[Program, str | None], threading.Thread]]]:
    """An aggregator for ann and bob, and a way to let programs in."""
    party = Aggregator(common_filter(), ["ann", "bob"], TERMS, gather_seconds=5)
    threads = []

    def let_in(program: Program, name: str | None) -> threading.Thread:
        here, there = memory_pair(LIMITS)
        threads.extend(
            [
                threading.Thread(target=party.attend, args=(there, name)),
                threading.Thread(target=lambda: program(here)),
            ]
        )
        for thread in threads[-2:]:
            thread.start()
        return threads[-1]

    yield party, let_in
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()


@pytest.mark.parametrize("at", [3, 4])
def test_who_comes_back_goes_on(meeting: Any, at: int) -> None:
    """The connection breaks in a turn; the ticket is enough to come back, and the filter is not lost."""
    party, let_in = meeting
    bob, ann = (Contributor(*crowd()[i], TERMS) for i in (1, 0))
    broken = threading.Event()

    def breaking(channel: MemoryChannel) -> None:
        with pytest.raises(PeerGoneError):
            bob.take_part(Breaking(channel, at))
        broken.set()

    def patient(channel: Channel) -> None:
        class Waiting(Transcript):
            """Takes its turn only when bob has gone."""

            def send(self, kind: int, payload: bytes | bytearray | memoryview) -> None:
                if len(ann.history) > at - 2 and not broken.wait(timeout=10):
                    raise PeerGoneError("bob never left")
                super().send(kind, payload)

        ann.take_part(Waiting(channel))

    let_in(patient, "ann")
    let_in(breaking, "bob").join(timeout=20)
    before = len(bob.history)
    let_in(bob.take_part, None).join(timeout=20)
    let_in(lambda channel: channel.close(), None)  # and someone without a ticket changes nothing
    deadline = time.monotonic() + 10
    while not party.board.over and time.monotonic() < deadline:
        time.sleep(0.01)
    assert party.standings() == {"ann": "done", "bob": "done"}
    assert len(bob.history) > before
    assert isinstance(bob.filter, PersonalFilter)
    torch.testing.assert_close(party.shown()["bob"].features, bob.filter(bob.inputs).detach(), atol=1e-4, rtol=1e-4)


def test_a_ticket_is_needed_and_an_old_session_counts_no_more() -> None:
    party = Aggregator(common_filter(), ["ann", "bob"], TERMS, gather_seconds=0.01)
    board = party.board
    shown = Filtered(torch.zeros(2, 3), torch.zeros(2, dtype=torch.long))
    for ticket in (NO_TICKET, b"\x01" * TICKET_BYTES):
        with pytest.raises(ProtocolError, match="without a seat"):
            board.enter(None, ticket)
    with pytest.raises(ProtocolError, match="without a seat"):
        board.enter("eve", NO_TICKET)
    _, first, ticket = board.enter("ann", NO_TICKET)
    assert board.enter(None, ticket)[:2] == ("ann", first + 1)
    with pytest.raises(ProtocolError, match="another session"):
        board.show("ann", first, shown, turn=False)
    board.leave("ann", first, expelled=True)  # by the old session: nothing happens
    board.show("ann", first + 1, shown, turn=False)
    board.leave("ann", first + 1, expelled=True)
    with pytest.raises(ProtocolError, match="expelled"):
        board.enter("ann", NO_TICKET)


def test_alone_there_is_nobody_to_hide_among() -> None:
    party = Aggregator(common_filter(), ["ann", "bob"], TERMS, gather_seconds=0.1)
    here, there = memory_pair(LIMITS)
    ann = Contributor(*crowd()[0], TERMS)
    words = []
    thread = threading.Thread(target=lambda: words.append(ann.take_part(here)))
    thread.start()
    party.attend(there, "ann")
    thread.join(timeout=10)
    assert words == ["nobody else is there to hide among"]
    assert party.board.over


def test_over_tls_and_back_again(tmp_path: Path) -> None:
    """The same programs over TLS: two contributors, one of which loses its connection and returns."""
    files = tmp_path / "a.pem", tmp_path / "a.key"
    pin = make_certificate(*files, days=1)
    party = Aggregator(common_filter(), ["ann", "bob"], TERMS, gather_seconds=10)
    contributors = {name: Contributor(x, z, TERMS) for name, (x, z) in zip(["ann", "bob"], crowd(), strict=False)}
    words: dict[str, str] = {}
    with Listener(Address("127.0.0.1", 0), tls=ServerTls(*files), limits=LIMITS) as listener:
        params = {"rounds": TERMS.rounds}

        def call(name: str, breaks: bool) -> None:
            for attempt in range(2 if breaks else 1):
                with connect(
                    listener.address, "personal_filters", params, tls=ClientTls(pin=pin), limits=LIMITS
                ) as way:
                    try:
                        channel = Breaking(way, 3) if breaks and attempt == 0 else way  # type: ignore[arg-type]
                        words[name] = contributors[name].take_part(channel)
                    except ProtocolError:
                        pass

        def attend(name: str | None) -> threading.Thread:
            channel = listener.wait("personal_filters", params, 10)

            def serve() -> None:
                with channel:
                    party.attend(channel, name)

            thread = threading.Thread(target=serve)
            thread.start()
            return thread

        callers = [threading.Thread(target=call, args=("bob", True))]
        callers[0].start()
        served = [attend("bob")]
        callers.append(threading.Thread(target=call, args=("ann", False)))
        callers[1].start()
        served += [attend("ann"), attend(None)]
        for thread in callers + served:
            thread.join(timeout=30)
            assert not thread.is_alive()
    assert words == {"ann": FINISHED, "bob": FINISHED}
    assert party.standings() == {"ann": "done", "bob": "done"}


PROCESSES = """
import torch
torch.set_num_threads(1)
from ppspeech.filters import LinearFilter
from ppspeech.network.local import Player, run_group
from ppspeech.protocols import Party
from ppspeech.protocols.filters.personal_filters import aggregator, contributor, digest_of
from tests.filters.personal_crowd import common_filter, crowd
common = common_filter()
terms = {"inputs": 6, "features": 3, "classes": 2, "rounds": 2, "settings": {"steps": 1}, "common": digest_of(common)}
def first(*met):
    return aggregator(Party.met(*met), common.weight.tolist(), common.bias.tolist(), **terms)
def other(x, z):
    return lambda *met: contributor(Party.met(*met), x.tolist(), z.tolist(), **terms)
players = {"hub": Player("aggregator", first)}
players |= {f"c{i}": Player("contributor", other(x, z)) for i, (x, z) in enumerate(crowd()[:2])}
found = run_group("personal_filters", players, hub="hub", params=terms)
assert all(not outcome.error for outcome in found.values()), found
print([seat["standing"] for seat in found["hub"].result.values()], found["c0"].result["end"])
"""


def test_between_processes_over_tls() -> None:
    # A process of its own: forks and native thread pools do not mix.
    done = subprocess.run([sys.executable, "-c", PROCESSES], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"['done', 'done'] {FINISHED}"


def make(x: Tensor | None = None, z: Tensor | None = None) -> Contributor:
    inputs, labels = crowd()[0]
    return Contributor(inputs if x is None else x, labels if z is None else z, TERMS)


@pytest.mark.parametrize(
    ("wrong", "kind", "word"),
    [
        (lambda: make(x=torch.zeros(60, 5)), RangeError, "6 inputs"),
        (lambda: make(x=torch.zeros(0, 6)), RangeError, "1 to 60 samples"),
        (lambda: make(x=torch.full((60, 6), torch.nan)), RangeError, "samples"),
        (lambda: make(z=torch.full((60,), 2)), RangeError, "0..1"),
        (lambda: make(z=torch.zeros(60)), RangeError, "integers"),
        (lambda: PersonalTerms(6, 3, 1, common=COMMON), ModelError, "classes"),
        (lambda: PersonalTerms(6, 3, 2, rounds=0, common=COMMON), ModelError, "rounds"),
        (lambda: PersonalTerms(6, 3, 2, order="random", common=COMMON), ModelError, "order must be"),  # type: ignore[arg-type]
        (lambda: PersonalTerms(6, 3, 2, common="abc"), ModelError, "64 hexadecimal"),
        (lambda: Aggregator(common_filter(2), NAMES, TERMS), ModelError, "write `common: [0-9a-f]{64}`"),
        (lambda: Aggregator(LinearFilter(5, 3), ["a", "b"], TERMS), ModelError, "6 inputs to 3"),
        (lambda: Aggregator(common_filter(), ["a"], TERMS), ModelError, "2 to 1000 contributors"),
        (lambda: Aggregator(common_filter(), ["a", "a"], TERMS), ModelError, "name of its own"),
    ],
)
def test_bad_input_is_refused_before_anything_is_sent(
    wrong: Callable[[], Any], kind: type[Exception], word: str
) -> None:
    with pytest.raises(kind, match=word):
        wrong()


@pytest.mark.parametrize(
    "payload", [b"\x00", b"\x00" + bytes(13), b"\x00" + np.full(3, np.nan, "<f4").tobytes() + bytes(2)]
)
def test_a_contributor_takes_no_rubbish_from_the_aggregator(payload: bytes) -> None:
    here, there = memory_pair(LIMITS)
    filter = common_filter()
    numbers = [part.detach().numpy().astype("<f4").tobytes() for part in (filter.weight, filter.bias)]
    there.send(Kind.COMMON_FILTER, b"t" * TICKET_BYTES + b"".join(numbers))
    there.send(Kind.OTHERS, payload)
    with pytest.raises(ProtocolError, match=r"bytes each|finite"):
        make().take_part(here)
