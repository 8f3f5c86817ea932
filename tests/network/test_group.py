"""Groups: files that make sense, parties who meet over TLS whoever comes first, and clear words when one does not."""

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ppspeech.channel import Channel
from ppspeech.errors import PeerGoneError, PeerTimeoutError, PpspeechError, ProtocolError, WrongKeyError
from ppspeech.network import Address, ClientTls, Limits, Listener, ServerTls, connect, make_certificate
from ppspeech.network.group.file import Group, Member
from ppspeech.network.group.identity import Identity, verify
from ppspeech.network.group.join import INTRODUCTION, join
from ppspeech.network.local.groups import Player, run_group

QUICK = Limits(handshake_seconds=5, message_seconds=5, session_seconds=30)
PINS = ["0a" * 32, "0b" * 32, "0c" * 32]


LISTENERS: list[Listener] = []


@pytest.fixture(autouse=True)
def _close_listeners() -> Iterator[None]:
    yield
    while LISTENERS:
        LISTENERS.pop().close()


def make_group(folder: Path, names: list[str], hub: str | None, wait: float = 10.0) -> tuple[Group, dict[str, Any]]:
    """A group on free ports, and the identity and bound listener of each."""
    parties: dict[str, Any] = {}
    members = []
    for place, name in enumerate(names):
        files = folder / f"{name}.pem", folder / f"{name}.key"
        pin = make_certificate(*files, days=1)
        listener = None
        if name == hub or (hub is None and place < len(names) - 1):
            listener = Listener(Address("127.0.0.1", 0), tls=ServerTls(*files), limits=QUICK)
            LISTENERS.append(listener)
        parties[name] = Identity(*files), listener
        members.append(Member(name, "party", pin, listener.address if listener else None))
    return Group("adding", tuple(members), hub, {"scale": 2}, wait), parties


def run_threads(jobs: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Results or errors by name."""
    found: dict[str, Any] = {}

    def run(name: str) -> None:
        try:
            found[name] = jobs[name]()
        except PpspeechError as error:
            found[name] = error

    threads = [threading.Thread(target=run, args=(name,)) for name in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()
    return found


def exchange(channels: Mapping[str, Channel], name: str) -> list[str]:
    """Tell everyone our name and hear theirs."""
    for channel in channels.values():
        channel.send(1, name.encode())
    return [channel.receive(1, at_most=20).decode() for channel in channels.values()]


def member_job(group: Group, parties: dict[str, Any], name: str, delay: float = 0.0) -> Callable[[], list[str]]:
    identity, listener = parties[name]

    def job() -> list[str]:
        time.sleep(delay)
        with join(group, name, identity, limits=QUICK, listener=listener) as channels:
            assert list(channels) == list(group.others(name))
            return exchange(channels, name)

    return job


@pytest.mark.parametrize("hub", [None, "carol"])
def test_everyone_meets_in_any_order(tmp_path: Path, hub: str | None) -> None:
    names = ["alice", "bob", "carol", "dave"]
    group, parties = make_group(tmp_path, names, hub)
    delays = {"alice": 0.3, "bob": 0.0, "carol": 0.5, "dave": 0.1}
    found = run_threads({name: member_job(group, parties, name, delays[name]) for name in names})
    for name in names:
        assert found[name] == list(group.others(name)), found[name]


@pytest.mark.parametrize("hub", [None, "alice"])
def test_a_party_that_does_not_come_is_named_to_everyone(tmp_path: Path, hub: str | None) -> None:
    group, parties = make_group(tmp_path, ["alice", "bob", "carol"], hub, wait=1.0)
    found = run_threads({name: member_job(group, parties, name) for name in ("alice", "bob")})
    assert isinstance(found["alice"], PeerTimeoutError)
    assert "carol did not come within 1 seconds" in str(found["alice"])
    assert isinstance(found["bob"], ProtocolError)
    assert "carol" in str(found["bob"])


def test_a_hub_that_does_not_come_is_named(tmp_path: Path) -> None:
    group, parties = make_group(tmp_path, ["alice", "bob"], "alice", wait=0.5)
    parties["alice"][1].close()
    found = run_threads({"bob": member_job(group, parties, "bob")})
    assert "alice was not there within 0.5 seconds" in str(found["bob"])


def test_a_party_that_crashed_during_the_set_up_may_come_back(tmp_path: Path) -> None:
    group, parties = make_group(tmp_path, ["alice", "bob", "carol"], "alice")
    identity, _ = parties["bob"]
    said: list[str] = []

    def hub() -> list[str]:
        with join(
            group, "alice", parties["alice"][0], limits=QUICK, say=said.append, listener=parties["alice"][1]
        ) as c:
            return exchange(c, "alice")

    def twice() -> list[str]:
        address = group.member("alice").address
        assert address is not None
        first = connect(
            address, "adding", {"group": group.digest}, tls=ClientTls(pin=group.member("alice").pin), limits=QUICK
        )
        statement = b"ppspeech group\x00" + first.session + bytes.fromhex(group.member("alice").pin) + b"bob"
        first.send(INTRODUCTION, identity.sign(statement))
        time.sleep(0.3)
        first.abort()  # bob crashes, and starts again
        return member_job(group, parties, "bob")()

    found = run_threads({"alice": hub, "bob": twice, "carol": member_job(group, parties, "carol", 1.0)})
    assert found["alice"] == ["bob", "carol"], found
    assert found["bob"] == ["alice"]
    assert "bob came again" in said


def test_a_stranger_is_refused_and_does_not_end_the_set_up(tmp_path: Path) -> None:
    group, parties = make_group(tmp_path, ["alice", "bob"], "alice")
    stranger = tmp_path / "eve.pem", tmp_path / "eve.key"
    make_certificate(*stranger, days=1)
    pin = group.member("alice").pin
    address = group.member("alice").address
    assert address is not None

    def eve() -> None:
        channel = connect(address, "adding", {"group": group.digest}, tls=ClientTls(pin=pin), limits=QUICK)
        statement = b"ppspeech group\x00" + channel.session + bytes.fromhex(pin) + b"bob"
        channel.send(INTRODUCTION, Identity(*stranger).sign(statement))
        channel.receive(1, 1)

    def replays() -> None:
        """Bob's certificate is public: showing it without his key must not do."""
        channel = connect(address, "adding", {"group": group.digest}, tls=ClientTls(pin=pin), limits=QUICK)
        der = parties["bob"][0].der()
        signed = Identity(*stranger).sign(b"anything")
        signature = signed[2 + int.from_bytes(signed[:2], "big") :]
        channel.send(INTRODUCTION, len(der).to_bytes(2, "big") + der + signature)
        channel.receive(1, 1)

    found = run_threads(
        {
            "alice": member_job(group, parties, "alice"),
            "eve": eve,
            "mallory": replays,
            "bob": member_job(group, parties, "bob", 0.7),
        }
    )
    assert found["alice"] == ["bob"]
    assert found["bob"] == ["alice"]
    assert isinstance(found["eve"], PeerGoneError)
    assert isinstance(found["mallory"], PeerGoneError)


def test_strangers_who_stall_keep_nobody_waiting(tmp_path: Path) -> None:
    """Forty who say nothing, half a handshake, or HELLO and no more: each had kept the hub for five seconds."""
    group, parties = make_group(tmp_path, ["alice", "bob", "carol"], "alice", wait=20)
    address, pin = group.member("alice").address, group.member("alice").pin
    assert address is not None
    strangers: list[Any] = [socket.create_connection((address.host, address.port)) for _ in range(40)]
    for stranger in strangers[::2]:
        stranger.sendall(b"\x16\x03\x01\x02")

    def late() -> list[str]:
        with contextlib.suppress(ProtocolError):
            strangers.extend(
                connect(address, "adding", {"group": group.digest}, tls=ClientTls(pin=pin), limits=QUICK)
                for _ in range(4)
            )
        return member_job(group, parties, "carol")()

    began = time.monotonic()
    found = run_threads(
        {"alice": member_job(group, parties, "alice"), "bob": member_job(group, parties, "bob"), "carol": late}
    )
    assert found["alice"] == ["bob", "carol"], found
    assert time.monotonic() - began < 5  # less than one of them may take
    for stranger in strangers:
        stranger.close()


def test_parties_with_other_files_do_not_meet(tmp_path: Path) -> None:
    group, parties = make_group(tmp_path, ["alice", "bob"], "alice", wait=1.0)
    other = Group(group.protocol, group.members, group.hub, {"scale": 3}, 1.0)
    found = run_threads({"alice": member_job(group, parties, "alice"), "bob": member_job(other, parties, "bob")})
    assert "bob did not come" in str(found["alice"])
    assert "someone was refused: we want 'adding'" in str(found["alice"])
    assert isinstance(found["bob"], ProtocolError)


def test_a_wrong_certificate_is_noticed_before_anyone_is_called(tmp_path: Path) -> None:
    group, parties = make_group(tmp_path, ["alice", "bob"], "alice")
    with pytest.raises(PpspeechError, match="not the one pinned for bob"), join(group, "bob", parties["alice"][0]):
        pass
    with pytest.raises(PpspeechError, match="no party 'eve'"), join(group, "eve", parties["alice"][0]):
        pass


def test_identities_sign_and_stay(tmp_path: Path) -> None:
    files = tmp_path / "a.pem", tmp_path / "a.key"
    pin = make_certificate(*files)
    identity = Identity(*files)
    signed = identity.sign(b"message")
    verify(signed, b"message", pin)
    for wrong, message, who in ((signed, b"other", pin), (signed, b"message", "0a" * 32), (b"", b"message", pin)):
        with pytest.raises(WrongKeyError):
            verify(wrong, message, who)
    with pytest.raises(TypeError):
        identity.__reduce__()
    with pytest.raises(PpspeechError, match="cannot use the key"):
        Identity(files[0], tmp_path / "absent")
    with pytest.raises(PpspeechError, match="cannot use the certificate"):
        Identity(tmp_path / "absent", files[1])


def test_processes_run_return_and_die(tmp_path: Path) -> None:
    def adds(number: int) -> Callable[..., Any]:
        def program(channels: Mapping[str, Channel], group: Group, _: object) -> int:
            for channel in channels.values():
                channel.send(1, bytes([number]))
            return int(group.params["scale"]) * (number + sum(c.receive(1, 1)[0] for c in channels.values()))

        return program

    def dies(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    players = {name: Player("party", adds(number)) for number, name in enumerate(("a", "b", "c"))}
    outcomes = run_group("adding", players, params={"scale": 10}, limits=QUICK)
    assert [outcome.result for outcome in outcomes.values()] == [30, 30, 30]
    assert all(outcome.bytes_sent > 0 and outcome.seconds > 0 for outcome in outcomes.values())
    outcomes = run_group("adding", players | {"c": Player("party", dies)}, params={"scale": 10}, limits=QUICK)
    assert outcomes["c"].error == "Killed"
    assert outcomes["a"].error.startswith("PeerGoneError")


def test_the_file_is_read_as_it_was_written() -> None:
    members = (
        Member("charlie", "curator", PINS[0], Address("127.0.0.1", 7000)),
        Member("alice", "party", PINS[1]),
        Member("bob", "party", PINS[2], Address("::1", 7001)),
    )
    group = Group("aggregate", members, "charlie", {"epsilon": 1.0, "sizes": [1, 2]}, 5.0)
    again = Group.from_yaml(group.to_yaml())
    assert again == group
    assert again.digest == group.digest
    assert group.with_role("party") == ("alice", "bob")
    assert group.others("alice") == ("charlie",)
    changed = Group("aggregate", members, "charlie", {"epsilon": 1.1, "sizes": [1, 2]}, 5.0)
    assert changed.digest != group.digest


GOOD = f"""
protocol: adding
hub: a
parties:
  a: {{role: party, pin: "{PINS[0]}", address: "127.0.0.1:7000"}}
  b: {{role: party, pin: "{PINS[1]}"}}
"""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("hub: a", "hub: z"), "the hub must be one of"),
        (("hub: a", ""), None),
        (("hub: a", "hub: b"), "b is waited for by others and needs an address"),
        ((', address: "127.0.0.1:7000"', ""), "a is waited for"),
        ((PINS[1], PINS[0]), "same pin"),
        ((PINS[1], "1234"), "the pin of b"),
        (("role: party,", "rolle: party,"), "party .* lacks"),
        (("127.0.0.1:7000", "nowhere"), "HOST:PORT"),
        (("protocol: adding", "protocol: A B"), "names and roles"),
        (("protocol: adding", "protocols: adding"), "the group's file (has|lacks)"),
        (("protocol: adding", "protocol: [adding"), "no YAML"),
        (("hub: a", "wait_seconds: -1"), "wait_seconds"),
        (("hub: a", "params: {1: 2}"), "params"),
        (("hub: a", "params: [1]"), "mappings"),
        (("hub: a", "x: !!python/object/apply:os.system ['true']"), "no YAML"),
        (("hub: a", "params: {x: &a [1, 1], y: *a}"), "aliases"),
        (("hub: a", f"params: {{x: {'9' * 5000}}}"), "no YAML"),
        (("hub: a", "params: {x: 2001-99-99}"), "no YAML"),
        (("hub: a", f"params: {'[' * 100_000}"), "no YAML"),
        (("parties:", "parties: 3\nrest:"), "the group's file (has|lacks)"),
    ],
)
def test_files_that_make_no_group_are_refused(change: tuple[str, str], said: str | None) -> None:
    text = GOOD.replace(*change)
    if said is None:
        assert Group.from_yaml(text).hub is None
        return
    with pytest.raises(PpspeechError, match=said):
        Group.from_yaml(text)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PpspeechError, match="cannot read"):
        Group.load(tmp_path / "absent.yaml")
    (tmp_path / "large.yaml").write_text("#" * (2**20 + 1))
    with pytest.raises(PpspeechError, match="larger"):
        Group.load(tmp_path / "large.yaml")
    with pytest.raises(PpspeechError, match="two parties or more"):
        Group("adding", (Member("a", "party", PINS[0]),))
