"""Sums through a curator: exact, uniform in between, noisy enough for insiders, and whole or not at all."""

import contextlib
import os
import pickle
import random
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ppspeech.channel import Channel
from ppspeech.errors import (
    BadLengthError,
    NotInGroupError,
    PpspeechError,
    PrivacyError,
    ProtocolError,
    RangeError,
    WrongKeyError,
)
from ppspeech.network import Address, Limits, MemoryChannel, Transcript, make_certificate, memory_pair
from ppspeech.network.group.file import Group, Member
from ppspeech.network.group.identity import Identity
from ppspeech.network.local.groups import Player, run_group
from ppspeech.privacy import Relation
from ppspeech.privacy.mechanisms.distributed import SkellamShares, shares_for
from ppspeech.protocols import Party, run_in_memory
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.sums.aggregation import (
    CuratorSession,
    PartySession,
    RoundEndedError,
    contribute,
    curate,
    noisy_steps,
)
from ppspeech.protocols.sums.joint import JointSum, PlainSum
from ppspeech.protocols.sums.ledger import MOST_SESSIONS, Ledger
from ppspeech.protocols.sums.masks import SessionKey, Signatures

ALARM = 1e-6
RECORD = Relation("record", "replace")
QUICK = Limits(message_seconds=5, session_seconds=20)


class DiedError(Exception):
    """What happens to a party that a test kills."""


class Dying:
    """A channel whose owner dies at a certain call."""

    def __init__(self, channel: MemoryChannel, calls: int, count: list[int]) -> None:
        self.channel, self.calls, self.count = channel, calls, count

    def _live_on(self) -> None:
        if self.count[0] == self.calls:
            raise DiedError
        self.count[0] += 1

    def send(self, kind: int, payload: bytes | bytearray | memoryview) -> None:
        self._live_on()
        self.channel.send(kind, payload)

    def receive(self, kind: int, size: int | None = None, *, at_most: int | None = None) -> bytes:
        self._live_on()
        return self.channel.receive(kind, size, at_most=at_most)


def run_star(
    hub: Callable[[Mapping[str, Channel]], Any],
    parties: Sequence[Callable[[Channel], Any]],
    dies: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Results or errors by name; whoever ends closes its channels, as a process would."""
    found: dict[str, Any] = {}
    ends = {f"p{place}": memory_pair(QUICK) for place in range(len(parties))}
    dies = dies or {}

    def run(name: str, work: Callable[[], Any], own: Sequence[MemoryChannel]) -> None:
        try:
            found[name] = work()
        except (ProtocolError, DiedError, PrivacyError) as error:
            found[name] = error
        finally:
            for channel in own:
                channel.close()

    def wrapped(name: str, channel: MemoryChannel, count: list[int]) -> Channel:
        return Dying(channel, dies[name], count) if name in dies else channel

    count = [0]
    inner = {name: wrapped("curator", pair[0], count) for name, pair in ends.items()}
    jobs = [("curator", lambda: hub(inner), [pair[0] for pair in ends.values()])]
    for (name, pair), program in zip(ends.items(), parties, strict=True):
        end = wrapped(name, pair[1], [0])
        jobs.append((name, lambda program=program, end=end: program(end), [pair[1]]))  # type: ignore[misc]
    threads = [threading.Thread(target=run, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()
    return found


def summing(values: np.ndarray, rounds: int = 1) -> list[Callable[[Channel], list[list[int]]]]:
    """Parties who add up their rows `(parties, count)` so many times."""

    def program(own: np.ndarray) -> Callable[[Channel], list[list[int]]]:
        def run(channel: Channel) -> list[list[int]]:
            session = PartySession(channel, len(values))
            return [session.sum(own + number).tolist() for number in range(rounds)]

        return run

    return [program(own) for own in values]


def curating(count: int, rounds: int = 1) -> Callable[[Mapping[str, Channel]], list[list[int]]]:
    def run(channels: Mapping[str, Channel]) -> list[list[int]]:
        session = CuratorSession(channels)
        return [session.sum(count).view(np.int64).tolist() for _ in range(rounds)]

    return run


@pytest.mark.parametrize("parties", [2, 3, 20])
def test_everyone_gets_the_exact_sum_round_after_round(parties: int) -> None:
    largest = 2**62 // parties - 2
    values = np.random.default_rng(parties).integers(-largest, largest, (parties, 11))
    found = run_star(curating(11, 3), summing(values, 3))
    expected = [(values + number).sum(0).tolist() for number in range(3)]
    assert all(result == expected for result in found.values()), found


def test_a_hundred_parties() -> None:
    values = np.arange(300).reshape(100, 3)
    found = run_star(curating(3), summing(values))
    assert all(result == [values.sum(0).tolist()] for result in found.values())


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.integers(1, 40))
def test_masks_cancel_and_never_repeat(parties: int, count: int) -> None:
    keys = [SessionKey(None) for _ in range(parties)]
    public = [key.public for key in keys]
    masks = [key.masks(public, [b""] * parties) for key in keys]
    first = np.stack([mask.next(count) for mask in masks])
    second = np.stack([mask.next(count) for mask in masks])
    assert (first.sum(0, dtype=np.uint64) == 0).all()
    assert (second.sum(0, dtype=np.uint64) == 0).all()
    assert (first != second).any()


def test_what_a_party_uploads_is_uniform_whatever_it_holds() -> None:
    """Chi-square at 1e-6 on every byte of what the curator sees from a party with zeros, and one with huge numbers."""
    count, seen = 4096, {}

    def hub(channels: Mapping[str, Channel]) -> None:
        records = {name: Transcript(channel, keep_payloads=True) for name, channel in channels.items()}
        CuratorSession(records).sum(count)
        seen.update({name: record.entries[-2].payload for name, record in records.items()})

    values = np.stack([np.zeros(count), np.full(count, 2**60), np.arange(count)]).astype(np.int64)
    run_star(hub, summing(values))
    uploads = {name: np.frombuffer(payload, np.uint8).reshape(count, 8) for name, payload in seen.items()}
    for upload in uploads.values():
        for place in range(8):
            assert stats.chisquare(np.bincount(upload[:, place], minlength=256)).pvalue > ALARM
    difference = np.frombuffer(seen["p0"], "<u8") - np.frombuffer(seen["p1"], "<u8")
    assert stats.chisquare(np.bincount(difference.view(np.uint8)[7::8], minlength=256)).pvalue > ALARM


def test_the_view_of_a_colluding_party_and_the_curator_still_holds_all_the_noise() -> None:
    """Taking off what an insider added leaves noise of at least the stated variance, of the stated law (KS at 1e-6)."""
    terms: dict[str, Any] = {"sensitivity": 1.0, "dimension": 3000, "relation": Relation("record", "replace")}
    shares = shares_for("skellam", epsilon=1.0, delta=1e-5, parties=4, **terms)
    assert isinstance(shares, SkellamShares)
    own = [noisy_steps(torch.zeros(3000), shares) for _ in range(4)]
    found = run_star(curating(3000), summing(np.stack(own)))
    left = np.array(found["curator"][0]) - own[0]
    deviation = np.sqrt(shares.event.variance)
    assert stats.kstest(left / deviation, "norm").pvalue > ALARM
    assert stats.kstest((left - own[1]) / deviation, "norm").pvalue < ALARM  # two insiders are one more than stated


@pytest.mark.parametrize("law", ["skellam", "polya"])
def test_the_party_program_releases_the_noisy_sum(law: Any) -> None:
    delta = 1e-5 if law == "skellam" else 0.0
    values = np.random.default_rng(0).normal(size=(3, 5))

    terms = {"dimension": 5, "sensitivity": 1e-4, "epsilon": 1.0, "delta": delta, "law": law}
    one: tuple[str, Callable[[Party], Any]]
    one = ("party", lambda party: contribute(party, values[party.place].tolist(), **terms))
    said, *found = run_in_memory([("curator", lambda party: curate(party, **terms)), one, one, one], hub="curator")
    assert found[0] == found[1] == found[2]
    error = np.abs(np.array(found[0]) - values.sum(0))
    assert 0 < error.max() < 0.05
    assert "3 parties" in said


@pytest.mark.parametrize("victim", ["p0", "p2", "curator"])
@pytest.mark.parametrize("call", range(10))
def test_a_party_that_dies_ends_the_round_and_everyone_is_told(victim: str, call: int) -> None:
    """At every send and receive of a party: a sum that somebody holds is the sum of all, or there is none."""
    values = np.arange(12).reshape(4, 3)
    dies = {victim: call if victim != "curator" else 2 * call}
    found = run_star(curating(3, 2), summing(values, 2), dies)
    whole = [(values + number).sum(0).tolist() for number in range(2)]
    survivors = {name: result for name, result in found.items() if name != victim}
    uploads = call > 6  # of two rounds: key, roster, signature, signatures, upload, sum, upload, sum
    for name, result in survivors.items():
        if isinstance(result, Exception):
            assert isinstance(result, RoundEndedError), result
            who = "curator" if victim == "curator" else victim
            assert who in str(result)
            assert "nothing is published" in str(result)
        else:
            assert result == whole, name
    if victim != "curator":
        assert all(isinstance(result, RoundEndedError) != uploads for result in survivors.values())
        assert "is gone" in str(survivors["curator"]) or uploads


def test_a_party_that_is_silent_is_not_waited_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "QUICK", Limits(message_seconds=0.3, session_seconds=20))

    def silent(channel: Channel) -> None:
        PartySession(channel, 3)
        threading.Event().wait(0.8)

    def patient(channel: Channel) -> Any:
        channel.limits = Limits(message_seconds=5)  # type: ignore[attr-defined]
        return summing(np.zeros((3, 2), np.int64))[0](channel)

    found = run_star(curating(2), [patient, patient, silent])
    for name in ("curator", "p0", "p1"):
        assert "p2 did not answer in time" in str(found[name])


def test_a_party_that_breaks_the_protocol_is_named() -> None:
    def wrong(channel: Channel) -> None:
        session = PartySession(channel, 3)
        session.sum(np.zeros(7, np.int64))

    found = run_star(curating(2), [*summing(np.zeros((3, 2), np.int64))[:2], wrong])
    assert "p2 broke the protocol" in str(found["p0"])


class TestSignedKeys:
    @pytest.fixture
    def group(self, tmp_path: Path) -> tuple[Group, dict[str, Identity]]:
        identities, members = {}, []
        for name in ("charlie", "p0", "p1", "p2"):
            files = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
            pin = make_certificate(*files)
            identities[name] = Identity(*files)
            role, address = ("curator", Address("127.0.0.1", 7000)) if name == "charlie" else ("party", None)
            members.append(Member(name, role, pin, address))
        return Group("aggregate", tuple(members), "charlie"), identities

    def keys(self, group: tuple[Group, dict[str, Identity]]) -> list[SessionKey]:
        return [SessionKey(Signatures(group[0], group[1][f"p{place}"])) for place in range(3)]

    def test_masks_cancel(self, group: tuple[Group, dict[str, Identity]]) -> None:
        keys = self.keys(group)
        public = [key.public for key in keys]
        signed = [key.confirm(public) for key in keys]
        total = sum(key.masks(public, signed).next(5) for key in keys)
        assert (total == 0).all()

    def test_a_curator_cannot_hand_out_keys_of_its_own(self, group: tuple[Group, dict[str, Identity]]) -> None:
        """Without signatures the same attack goes through: the curator then knows the mask of the pair."""
        keys = self.keys(group)
        public = [key.public for key in keys]
        signed = [key.confirm(public) for key in keys]
        fake = SessionKey(None)
        swapped = [public[0], fake.public, public[2]]
        for said in (b"", signed[1], signed[2]):
            with pytest.raises(WrongKeyError, match="not signed by p1"):
                keys[0].masks(swapped, [signed[0], said, signed[2]])
        with pytest.raises(WrongKeyError, match="does not pass on the key we sent"):
            keys[1].confirm(swapped)  # and who was left out signs nothing
        unsigned = [SessionKey(None) for _ in range(3)]
        told = [unsigned[0].public, fake.public, unsigned[2].public]
        known = fake.masks(told[:2], [b""] * 2).next(4)
        assert (known == -unsigned[0].masks(told[:2], [b""] * 2).next(4)).all()

    def test_a_curator_cannot_use_a_signature_twice(self, group: tuple[Group, dict[str, Identity]]) -> None:
        """Whoever has learned the secret of a session key has not learned the masks of another session."""
        before = self.keys(group)
        public = [key.public for key in before]
        recorded, lost = before[1].confirm(public), before[1]
        later = self.keys(group)
        told = [later[0].public, lost.public, later[2].public]
        with pytest.raises(WrongKeyError, match="not signed by p1"):
            later[0].masks(told, [later[0].confirm(told), recorded, later[2].confirm(told)])

    def test_a_curator_cannot_tell_parties_of_different_keys(self, group: tuple[Group, dict[str, Identity]]) -> None:
        keys, others = self.keys(group), self.keys(group)
        public = [key.public for key in keys]
        told = [public[0], public[1], others[2].public]  # what p1 is told, and signs
        signed = [keys[0].confirm(public), keys[1].confirm(told), keys[2].confirm(public)]
        with pytest.raises(WrongKeyError, match="not signed by p1"):
            keys[0].masks(public, signed)
        with pytest.raises(WrongKeyError, match="as another party's"):
            keys[0].confirm([public[1], public[0], public[2]])

    def test_a_curator_cannot_leave_a_party_out(self, group: tuple[Group, dict[str, Identity]]) -> None:
        keys = self.keys(group)
        with pytest.raises(WrongKeyError, match="does not pass on the key we sent"):
            keys[0].confirm([keys[1].public, keys[2].public])
        signatures = Signatures(group[0], group[1]["p0"])
        here, _ = memory_pair()
        with pytest.raises(RangeError, match="those in the group"):
            PartySession(here, 2, signatures)

    def test_keys_that_give_no_secret_are_refused(self) -> None:
        key = SessionKey(None)
        with pytest.raises(NotInGroupError):
            key.masks([key.public, bytes(32)], [b""] * 2)

    def test_secrets_cannot_be_copied(self) -> None:
        key = SessionKey(None)
        for secret in (key, key.masks([key.public, SessionKey(None).public], [b""] * 2)):
            with pytest.raises(TypeError):
                pickle.dumps(secret)


class TestCurators:
    """A curator that has every vector, and says that one is missing."""

    @staticmethod
    def denies(channels: Mapping[str, Channel]) -> list[np.ndarray]:
        """Takes what it can get, for ever; what it then knows."""
        curator, sums = CuratorSession(channels), []
        with contextlib.suppress(ProtocolError):
            while True:
                sent = [np.frombuffer(channel.receive(Kind.MASKED_VECTOR, 80), "<u8") for channel in channels.values()]
                sums.append(np.sum(sent, axis=0, dtype=np.uint64).view(np.int64))
                for channel in curator._channels.values():
                    channel.send(Kind.SUM, b"\x01p1 is gone: the round is over, nothing is published")
        return sums

    @staticmethod
    def insists(session: Callable[[Channel], PartySession]) -> Callable[[Channel], Any]:
        """A party that tries again whenever it is told that there was no sum."""

        def run(channel: Channel) -> tuple[int, list[str]]:
            began, said = session(channel), []
            for _ in range(20):
                try:
                    began.sum(np.arange(10))
                except RoundEndedError as error:
                    said.append(str(error))
            return began.sent, said

        return run

    def test_it_gets_one_sum_a_session(self) -> None:
        found = run_star(self.denies, [self.insists(lambda channel: PartySession(channel, 2))] * 2)
        assert [total.tolist() for total in found["curator"]] == [(2 * np.arange(10)).tolist()]
        for party in ("p0", "p1"):
            sent, said = found[party]
            assert sent == 1
            assert "p1 is gone" in said[0]
            assert all("nothing more is sent" in each for each in said[1:])

    def test_it_gets_few_sessions_of_one_file(self, tmp_path: Path) -> None:
        known = 0
        for attempt in range(6):
            ledgers = [Path(tmp_path, f"p{place}.key") for place in range(2)]
            programs = [
                self.insists(lambda channel, key=key: PartySession(channel, 2, ledger=Ledger.beside(key, "terms")))
                for key in ledgers
            ]
            found = run_star(self.denies, programs)
            if attempt >= MOST_SESSIONS:
                assert "remove" in str(found["p0"])
                assert isinstance(found["p0"], PrivacyError)
            known += 0 if isinstance(found["curator"], Exception) else len(found["curator"])
        assert known == MOST_SESSIONS == 3
        assert Ledger.beside(ledgers[0], "other terms").spent == (0, 0)
        assert ledgers[0].with_suffix(".sums.sqlite").stat().st_mode & 0o077 == 0

    def test_a_session_counts_once_however_many_sums_it_has(self, tmp_path: Path) -> None:
        def adds(channel: Channel, key: Path) -> tuple[int, int]:
            ledger = Ledger.beside(key, "terms")
            session = PartySession(channel, 2, ledger=ledger)
            for _ in range(5):
                session.sum(np.arange(3))
            return ledger.spent

        keys = [tmp_path / "a.key", tmp_path / "b.key"]
        found = run_star(curating(3, 5), [lambda channel, key=key: adds(channel, key) for key in keys])
        assert found["p0"] == found["p1"] == (1, 5)

    def test_what_it_denies_is_booked(self) -> None:
        """Twenty sums of which it says that there were none: the account knows all of them."""

        def denied(steps: np.ndarray) -> np.ndarray:
            raise RoundEndedError("p1 is gone")

        shares = shares_for(
            "skellam", epsilon=1.0, delta=1e-5, parties=2, sensitivity=1.0, dimension=3, relation=RECORD
        )
        joint = JointSum(denied, shares)
        for _ in range(20):
            with pytest.raises(RoundEndedError):
                joint(torch.zeros(3))
        assert joint.account().events == ((shares.event, 20),)
        assert joint.guarantee(1e-5).epsilon > 4

    def test_a_place_that_cannot_be_written_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(PpspeechError, match="remembers what it has sent"):
            Ledger.beside(tmp_path / "file" / "a.key", "terms")


@pytest.mark.parametrize("roster", [b"", bytes(64), bytes(95), b"\x00\x05hello"])
def test_a_roster_of_other_parties_is_refused(roster: bytes) -> None:
    here, there = memory_pair(QUICK)
    there.send(Kind.ROSTER, b"\x00" + roster)
    with pytest.raises(BadLengthError, match="roster"):
        PartySession(here, 3)


@pytest.mark.parametrize(
    "signed", [b"", bytes(4), bytes(5), bytes(8), b"\x00\x05hello", b"\x00\x00\x00\x00\x00\x05hell"]
)
def test_signatures_of_other_parties_are_refused(signed: bytes) -> None:
    here, there = memory_pair(QUICK)

    def curator() -> None:
        key = there.receive(Kind.SESSION_KEY, 32)
        there.send(Kind.ROSTER, b"\x00" + key + SessionKey(None).public + SessionKey(None).public)
        there.receive(Kind.SIGNED_KEYS, 0)
        there.send(Kind.SIGNATURES, b"\x00" + signed)

    thread = threading.Thread(target=curator)
    thread.start()
    with pytest.raises(BadLengthError, match="signatures"):
        PartySession(here, 3)
    thread.join()


def test_numbers_that_could_wrap_around_are_refused_before_they_are_sent() -> None:
    def large(channel: Channel) -> Any:
        with pytest.raises(RangeError, match="clip first"):
            PartySession(channel, 2).sum(np.array([2**62 // 2 + 1]))

    found = run_star(curating(1), [large, *summing(np.zeros((2, 1), np.int64))[:1]])
    assert "p0 is gone" in str(found["p1"])


def test_one_party_or_too_many_are_refused() -> None:
    here, _ = memory_pair()
    for parties in (1, 101):
        with pytest.raises(RangeError, match="2 to 100"):
            PartySession(here, parties)
    with pytest.raises(RangeError, match="2 to 100"):
        CuratorSession({"p0": here})
    with pytest.raises(RangeError, match="agreed on 5"):
        contribute(Party("party", {"curator": here}), [1.0], dimension=5, sensitivity=1.0, epsilon=1.0)


def test_joint_sums_keep_their_account() -> None:
    shares = shares_for(
        "skellam",
        epsilon=1.0,
        delta=1e-5,
        parties=2,
        sensitivity=1.0,
        dimension=6,
        relation=Relation("record", "add_remove"),
        releases=2,
    )
    joint = JointSum(lambda steps: steps, shares)
    value = torch.arange(6, dtype=torch.float32).view(2, 3)
    released = joint(value)
    assert released.shape == value.shape
    assert released.dtype == value.dtype
    joint(value)
    assert joint.account().events == ((shares.event, 2),)
    assert joint.guarantee(1e-5).epsilon <= 1.0
    with pytest.raises(PrivacyError, match="calibrated for 6"):
        joint(torch.zeros(5))
    with pytest.raises(PrivacyError, match="NaN"):
        joint(torch.full((6,), torch.nan))
    plain = PlainSum(lambda steps: 3 * steps, step=0.25)
    assert plain(torch.tensor([0.3, -1.0])).tolist() == [0.75, -3.0]
    with pytest.raises(RangeError, match="NaN"):
        plain(torch.tensor([torch.nan]))


@pytest.mark.slow
def test_fifty_runs_with_parties_killed_at_random_never_give_a_wrong_sum() -> None:
    """Processes over TLS; the victim is killed by the operating system at a random moment."""
    chance = random.Random(0)
    values = np.arange(40).reshape(4, 10)
    whole = values.sum(0).tolist()
    ends = {"whole": 0, "ended": 0}
    for _ in range(50):
        victim = chance.choice(["curator", "p0", "p1", "p2", "p3"])
        delay = chance.uniform(0, 0.15)

        def mortal(
            name: str, work: Callable[..., Any], victim: str = victim, delay: float = delay
        ) -> Callable[..., Any]:
            def program(*arguments: Any) -> Any:
                if name == victim:
                    threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
                return work(*arguments)

            return program

        def adds(own: np.ndarray) -> Callable[..., Any]:
            def program(channels: Mapping[str, Channel], group: Group, identity: Identity) -> Any:
                session = PartySession(channels["curator"], 4, Signatures(group, identity))
                for _ in range(19):
                    session.sum(own)
                return session.sum(own).tolist()

            return program

        def curates(channels: Mapping[str, Channel], *_: object) -> None:
            session = CuratorSession(channels)
            for _ in range(20):
                session.sum(10)

        players = {"curator": Player("curator", mortal("curator", curates))}
        players |= {f"p{i}": Player("party", mortal(f"p{i}", adds(own))) for i, own in enumerate(values)}
        outcomes = run_group("aggregate", players, hub="curator", limits=Limits(message_seconds=10))
        for name, outcome in outcomes.items():
            if name == victim and outcome.error == "Killed":
                continue
            if outcome.error:
                assert outcome.error.startswith("RoundEndedError"), outcome
                assert "nothing is published" in outcome.error
                ends["ended"] += 1
            elif name != "curator":
                assert outcome.result == whole
                ends["whole"] += 1
    assert ends["ended"] > 20
