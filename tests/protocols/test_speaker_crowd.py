"""Names among a crowd: right, the same in the clear; nobody learns more; a mask is used once; shards may be lost."""

import pickle
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from ppspeech.crypto import Ring, pack_numbers, unpack_numbers
from ppspeech.crypto.message_kinds import Kind as CryptoKind
from ppspeech.crypto.shares import TEXT_RING, ShareEngine, shared
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import ModelError, PeerGoneError, PpspeechError, RangeError
from ppspeech.protocols import PROTOCOLS, run_in_memory
from ppspeech.protocols.meeting import Meeting
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.speakers import crowd as crowd_programs
from ppspeech.protocols.speakers.crowd import (
    Blind,
    claim_cost,
    client,
    identify_in_crowd_as_client,
    identify_in_crowd_as_server,
    name_cost,
    name_of_best,
    prepare_as_client,
    prepare_as_server,
    server,
    shift_as_client,
    shift_as_server,
    verify_in_crowd_as_client,
    verify_in_crowd_as_server,
)
from ppspeech.protocols.speakers.crowd_gallery import (
    EMPTY,
    FRACTION,
    RANGE,
    Crowd,
    CrowdTerms,
    Entries,
    sieved_in_the_clear,
)
from ppspeech.protocols.speakers.crowd_shards import CrowdShard, OwnShards
from ppspeech.protocols.speakers.identify import Identity
from tests.protocols.speaker_meeting import ask, received, unit

generator = np.random.default_rng(5)
FEATURES, SPEAKERS = 48, 150
TEMPLATES = unit(generator.normal(size=(SPEAKERS, FEATURES)), axis=1)
NAMES = [f"speaker {number}" for number in range(SPEAKERS)]
THRESHOLDS = generator.uniform(0.6, 0.8, size=SPEAKERS)


@cache
def crowd(recipient: str = "client", places: int = 200, speakers: int = SPEAKERS) -> Crowd:
    plan = CrowdTerms(FEATURES, places, recipient)  # type: ignore[arg-type]
    entries = Entries.of(plan, TEMPLATES[:speakers], NAMES[:speakers], THRESHOLDS[:speakers])
    return Crowd.of(plan, entries)


def near(who: int, noise: float = 0.05) -> np.ndarray:
    return unit(TEMPLATES[who] + noise * generator.normal(size=FEATURES))


def identify(who: Crowd, voice: np.ndarray) -> tuple[Identity | None, Identity | None, object, object]:
    return ask(
        lambda met: identify_in_crowd_as_client(met, who.plan, voice),
        lambda met: identify_in_crowd_as_server(met, who),
    )


@pytest.mark.parametrize(("speakers", "places"), [(1, 1), (1, 9), (2, 2), (150, 150), (150, 200)])
def test_the_best_name_or_nobody(speakers: int, places: int) -> None:
    who = crowd("client", places, speakers)
    assert identify(who, near(speakers - 1))[:2] == (Identity(NAMES[speakers - 1]), None)
    assert identify(who, -near(speakers - 1))[:2] == (Identity(None), None)


def test_many_voices_against_plain_scores() -> None:
    """Those who lead by more than two coarse steps are named, where they reach their own threshold."""
    who, answers = crowd("server"), set()
    for trial in range(10):
        voice = near(trial, 0.1 + 0.02 * trial)
        scores = TEMPLATES @ voice - THRESHOLDS
        best, next_best = np.sort(scores)[[-1, -2]]
        if best - next_best < 2 / 512 or abs(best) < 1e-3:
            continue
        wanted = NAMES[int(scores.argmax())] if best >= 0 else None
        assert identify(who, voice)[:2] == (None, Identity(wanted))
        answers.add(wanted)
    assert None in answers
    assert len(answers) > 3


def test_a_claim_is_decided_at_its_own_place() -> None:
    who = crowd()

    def claim(voice: np.ndarray, place: int, recipient: str) -> tuple[bool | None, bool | None]:
        return ask(
            lambda met: verify_in_crowd_as_client(met, who.plan, voice, place, recipient),  # type: ignore[arg-type]
            lambda met: verify_in_crowd_as_server(met, who, recipient),  # type: ignore[arg-type]
        )[:2]

    assert claim(near(7), 7, "server") == (None, True)
    assert claim(near(7), 8, "client") == (False, None)
    assert claim(near(7), 199, "client") == (False, None)  # an empty place


def test_whoever_comes_later_is_found_and_nobody_else_moves() -> None:
    plan = CrowdTerms(FEATURES, 4000)
    some = [Entries.of(plan, TEMPLATES[part], NAMES[part], 0.7) for part in (slice(0, 3), slice(3, 5))]
    places = [np.array([0, 17, 2100]), np.array([3999, 5])]
    shards = OwnShards([CrowdShard(plan.product, 1, 2048 * number) for number in range(2)])
    who = Crowd.empty(plan, shards).added(some[0], places[0]).added(some[1], places[1])
    for each in range(5):
        assert identify(who, near(each))[0] == Identity(NAMES[each])


def test_products_in_the_clear_are_those_of_numpy() -> None:
    plan = CrowdTerms(FEATURES, 200)
    weights = generator.integers(-4096, 4097, size=(2048, FEATURES)).astype(np.int16)
    vector = generator.integers(0, 1 << 27, size=FEATURES).astype(np.uint32)
    filled = (np.arange(2048) % 3 > 0).astype(np.uint8)
    wanted = (weights.astype(np.int64) @ vector.astype(np.int64)) % (1 << 32) * filled
    for workers in (1, 2):
        shard = CrowdShard(plan.product, 1, workers=workers)
        shard.put(np.arange(2048), weights)
        assert (shard.times(vector, filled) == wanted).all()


def test_how_long_a_product_takes_does_not_tell_how_many_are_enrolled() -> None:
    """Nobody, a hundredth and all: the quickest of many, which were thirty times apart."""
    shard, vector = CrowdShard(CrowdTerms(256, 40_000).product, 20), np.ones(256, np.uint32)
    shard._weights[:] = 1
    quickest = []
    for share in (0, 100, 1):
        filled = np.zeros(20 * 2048, np.uint8)
        if share:
            filled[::share] = 1
        shard._blocks = [
            each._replace(filled=part) for each, part in zip(shard._blocks, np.split(filled, 20), strict=True)
        ]
        taken = []
        for _ in range(30):
            began = time.perf_counter()
            assert int(shard.times(vector, filled).sum()) == 256 * filled.sum()
            taken.append(time.perf_counter() - began)
        quickest.append(min(taken))
    assert max(quickest) < 3 * min(quickest)


PAGES = Path("/proc/self/pagemap")


@pytest.mark.skipif(not PAGES.exists(), reason="which pages are in memory is read there")
def test_slots_of_nobody_are_in_memory_as_others_are() -> None:
    """Pages that were never written are one and the same: read sooner, they told how many are enrolled."""
    size, plan = resource.getpagesize(), CrowdTerms(1, (1 << 20) - 1, longest_name=35)
    held = [CrowdShard(CrowdTerms(256, 1).product, 40)._weights, Crowd.empty(plan, OwnShards([])).names]
    for each in held:  # so large that they are not in pages of something else
        with PAGES.open("rb") as pages:
            pages.seek(each.ctypes.data // size * 8)
            found = np.frombuffer(pages.read(each.nbytes // size * 8), np.uint64)
        assert (found >> np.uint64(62) > 0).all()  # in memory, or where memory is swapped to
        assert not each.any()


def test_blocks_of_nobody_are_each_in_memory() -> None:
    """One that all shared would stay in the cache, and be multiplied sooner than those of somebody."""
    blocks = CrowdShard(CrowdTerms(8, 5000).product, 3)._blocks
    assert len({each.encoded.factors.ctypes.data for each in blocks if each.encoded is not None}) == 3


def test_scores_are_exact_but_for_the_errors_of_the_lattice() -> None:
    """Both parties' shares, added up as no deployed party can: within 2^-15 of the product of what was rounded."""
    who, voice = crowd(), near(3)
    numbers = who.plan.numbers(voice)

    def ours(met: Meeting) -> np.ndarray:
        with met.session():
            return shift_as_client(prepare_as_client(met, who.plan), numbers)

    def theirs(met: Meeting) -> np.ndarray:
        with met.session():
            return shift_as_server(prepare_as_server(met, who))

    one, other, *_ = ask(ours, theirs)
    found = ((one + other) & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.int32) / 2.0 ** (5 + 2 * FRACTION)
    rounded = np.rint(TEMPLATES * 4096) @ RANGE.to_signed(numbers) / 4.0**FRACTION - THRESHOLDS
    assert np.abs(found[1 : 1 + SPEAKERS] - rounded).max() < 2.0**-15
    assert np.abs(found[1 + SPEAKERS :] - EMPTY).max() < 2.0**-15


def test_the_twin_decides_as_the_protocol_does() -> None:
    who = crowd()
    for trial in range(6):
        voice = near(trial, 0.12)
        weights = np.zeros((who.plan.places, FEATURES))
        weights[:SPEAKERS] = np.rint(TEMPLATES * 4096)
        scores = weights @ RANGE.to_signed(who.plan.numbers(voice)) + who.offsets[1:].astype(np.uint32).view(np.int32)
        place, score = sieved_in_the_clear(who.plan, scores.astype(np.int64), generator)
        assert identify(who, voice)[0] == Identity(NAMES[place] if score >= 0 else None)


def test_the_transcript_is_that_of_the_formula_and_hides_how_many_there_are() -> None:
    shapes = []
    for speakers in (1, 150):
        who = crowd("client", 200, speakers)
        _, _, ours, _ = identify(who, near(0))
        shapes.append([each for each in ours.shape() if each[1] != CryptoKind.RESUME])  # type: ignore[attr-defined]
    assert shapes[0] == shapes[1]
    cost, plan, job = name_cost(who.plan), who.plan, who.plan.product.job
    up, down = (sum(size for way, _, size in shapes[0] if way == which) for which in ("sent", "received"))
    assert up == cost.bytes_second + cost.offline_bytes_second + job.query_bytes + plan.shift_bytes
    assert down == cost.bytes_first + cost.offline_bytes_first + plan.blocks * job.reply_bytes
    assert up + down == plan.product_bytes + cost.total_bytes
    assert claim_cost(plan).total_bytes < cost.total_bytes


def test_what_the_server_sees_of_a_voice_is_uniform() -> None:
    """Chi-square at 1e-4 on the upper bits of one and the same voice under 40 masks; and they differ."""
    who, voice, seen = crowd("client", 9, 1), near(0), []
    for _ in range(40):
        *_, theirs = identify(who, voice)
        data = received(theirs, Kind.MASKED_VOICE).tobytes()  # type: ignore[arg-type]
        seen.append(unpack_numbers(data, FEATURES, RANGE.bits).astype(np.int64))
    counts = np.bincount(np.concatenate(seen) >> (RANGE.bits - 4), minlength=16)
    assert stats.chisquare(counts).pvalue > 1e-4
    assert len({tuple(each) for each in seen}) == 40


def test_what_the_client_gets_of_the_gallery_is_uniform() -> None:
    """Chi-square at 1e-4 on both parties' shares of one and the same product."""
    who, voice = crowd("client", 9, 1), near(0)
    numbers = who.plan.numbers(voice)

    def shares(met: Meeting, half: Callable[[Meeting], np.ndarray]) -> np.ndarray:
        with met.session():
            return half(met)

    found: list[list[np.ndarray]] = [[], []]
    for _ in range(60):
        one, other, *_ = ask(
            lambda met: shares(met, lambda own: shift_as_client(prepare_as_client(own, who.plan), numbers)),
            lambda met: shares(met, lambda own: shift_as_server(prepare_as_server(own, who))),
        )
        found[0].append(one)
        found[1].append(other)
    for each in found:
        counts = np.bincount((np.concatenate(each) >> np.uint64(28)).astype(np.int64), minlength=16)
        assert stats.chisquare(counts).pvalue > 1e-4


def test_all_that_the_client_opens_is_a_name() -> None:
    """Of what it receives on shares only the last look-up depends on who won; nothing is opened before."""
    who = crowd()
    for voice in (near(2), -near(2)):
        _, _, ours, theirs = identify(who, voice)
        for record in (ours, theirs):
            assert len([each for each in record.entries if each.kind == CryptoKind.OPEN]) == 1  # type: ignore[attr-defined]
        assert ours.entries[-1].kind == CryptoKind.OPEN  # type: ignore[attr-defined]
        assert ours.entries[-1].direction == "received"  # type: ignore[attr-defined]


@pytest.mark.parametrize("recipient", ["client", "server"])
def test_one_thing_is_opened_to_whom_it_is_for(recipient: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of what travels in flights with other messages, where a transcript does not tell it from them."""
    opened: list[tuple[Side, int]] = []
    plain = shared.open_to

    def seen(engine: ShareEngine, receiver: Side, residues: np.ndarray, ring: Ring) -> np.ndarray | None:
        opened.append((receiver, residues.size * ring.bits))
        return plain(engine, receiver, residues, ring)

    monkeypatch.setattr(shared, "open_to", seen)
    who = crowd(recipient)
    wanted = (Side.SECOND, who.plan.names[1] * TEXT_RING.bits) if recipient == "client" else (Side.FIRST, 8)
    name_cost.cache_clear()
    name_cost(who.plan)
    assert opened == [wanted]  # as it is recorded
    for voice in (near(2), -near(2)):
        opened.clear()
        identify(who, voice)
        assert opened == [wanted] * 2  # by either party


def test_a_server_that_is_told_learns_a_place_or_nothing() -> None:
    """Rejected, the place that is opened is 0, whoever came closest."""
    opened = []
    for voice in (near(2), -near(2), -near(9)):
        _, _, _, theirs = identify(crowd("server"), voice)
        last = [each for each in theirs.entries if each.kind == CryptoKind.OPEN]  # type: ignore[attr-defined]
        assert len(last) == 1
        opened.append(identify(crowd("server"), voice)[1])
    assert opened == [Identity(NAMES[2]), Identity(None), Identity(None)]


def test_a_mask_hides_one_voice() -> None:
    blind = Blind(np.zeros(3, np.uint64), np.zeros(4, np.uint64))
    blind.take()
    with pytest.raises(PpspeechError, match="hidden a voice already"):
        blind.take()
    with pytest.raises(TypeError, match="used once"):
        pickle.dumps(Blind(np.zeros(3, np.uint8), np.zeros(1, np.uint64)))


def test_two_questions_of_one_preparation_are_refused_and_why() -> None:
    """What a server would see of two voices under one mask is how they differ."""
    who, voices = crowd("client", 9, 1), [near(0), near(1)]
    numbers = [who.plan.numbers(voice) for voice in voices]

    def twice(met: Meeting) -> str:
        with met.session():
            prepared = prepare_as_client(met, who.plan)
            shift_as_client(prepared, numbers[0])
            try:
                shift_as_client(prepared, numbers[1])
            except PpspeechError as refused:
                return str(refused)
        return "answered"

    def once(met: Meeting) -> None:
        with met.session():
            shift_as_server(prepare_as_server(met, who))

    said, _, ours, _ = ask(twice, once)
    assert "hidden a voice already" in said
    assert len([each for each in ours.entries if each.kind == Kind.MASKED_VOICE]) == 1


def test_an_active_client_reads_the_names_and_that_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stated limit: whoever is at a place to whose share of the score 2 is added, wins."""
    who, plain = crowd("client", 9, 3), crowd_programs.shift_as_client

    def bent(prepared: crowd_programs.Prepared, voice: np.ndarray) -> np.ndarray:
        share = plain(prepared, voice)
        share[2] += np.uint64(2 << 29)
        return share & np.uint64(0xFFFFFFFF)

    monkeypatch.setattr(crowd_programs, "shift_as_client", bent)
    assert identify(who, near(40))[0] == Identity(NAMES[1])
    assert "reads the names" in PROTOCOLS["speaker_identification_crowd"].assumptions


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"features": 0, "places": 1}, "a crowd has up to"),
        ({"features": 4, "places": 1 << 20}, "a crowd has up to"),
        ({"features": 1 << 14, "places": 9}, "of up to 16,383 numbers each"),
        ({"features": 1024, "places": 1 << 19}, "a crowd has up to"),
        ({"features": 4, "places": 4, "recipient": "third"}, "the client or the server"),
        ({"features": 4, "places": 4, "longest_name": 0}, "1 to 256 bytes"),
        ({"features": 4, "places": 4, "cohort": 3}, "public terms"),
    ],
)
def test_terms_that_cannot_be_are_refused(terms: dict[str, object], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        crowd_programs._plan(terms)


@pytest.mark.parametrize(
    ("templates", "names", "thresholds", "error", "words"),
    [
        (TEMPLATES[:2], ["a"], 0.5, ModelError, "as many names"),
        (TEMPLATES[:2], ["a", ""], 0.5, ModelError, "1 to 21 bytes"),
        (2 * TEMPLATES[:2], ["a", "b"], 0.5, RangeError, "no longer than"),
        (TEMPLATES[:2], ["a", "b"], -0.1, RangeError, "thresholds of a crowd"),
        (TEMPLATES[:2], ["a", "b"], [0.5, np.nan], RangeError, "thresholds of a crowd"),
        (TEMPLATES[:2], ["a", "b"], [0.5, 0.5, 0.5], RangeError, "one for all or 2"),
    ],
)
def test_speakers_that_cannot_be_enrolled_are_refused(
    templates: np.ndarray, names: list[str], thresholds: float, error: type[Exception], words: str
) -> None:
    plan = CrowdTerms(FEATURES, 9)
    with pytest.raises(error, match=words):
        Entries.of(plan, templates, names, np.asarray(thresholds))


def test_what_does_not_fit_is_refused_before_anything_is_sent() -> None:
    plan = CrowdTerms(FEATURES, 1)
    with pytest.raises(ModelError, match="do not fit"):
        Crowd.of(plan, Entries.of(plan, TEMPLATES[:2], NAMES[:2], 0.5))
    with pytest.raises(RangeError, match="has blocks"):
        CrowdShard(plan.product, 0)
    with pytest.raises(RangeError, match="48 numbers each"):
        CrowdShard(plan.product, 1).put(np.arange(2), np.zeros((2, 7), np.int16))
    with pytest.raises(RangeError, match="no longer than"):
        identify_in_crowd_as_client(None, plan, 2 * TEMPLATES[0])  # type: ignore[arg-type]
    with pytest.raises(RangeError, match="numbers 0 to 0"):
        verify_in_crowd_as_client(None, plan, TEMPLATES[0], 1)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="as many scores"):
        sieved_in_the_clear(plan, np.zeros(3, np.int64), generator)


def test_it_runs_by_name_over_a_bare_channel() -> None:
    public = {"features": 2, "places": 3, "recipient": "server", "longest_name": 8}
    said = run_in_memory(
        [
            ("client", lambda party: client(party, [0.0, 1.0], **public)),
            ("server", lambda party: server(party, [[1.0, 0.0], [0.0, 1.0]], ["Ada", "Grace"], 0.5, **public)),
        ]
    )
    assert said == ["the other party knows", "Grace"]


def test_a_shift_of_any_bytes_is_read_as_residues() -> None:
    """Whatever a client sends in its place, the server multiplies it: it is as uniform as an honest one."""
    who = crowd("client", 9, 3)

    def send(met: Meeting) -> np.ndarray:
        with met.session():
            prepared = prepare_as_client(met, who.plan)
            _, share = prepared.blind.take()
            met.channel.send(Kind.MASKED_VOICE, pack_numbers(np.full(FEATURES, (1 << 27) - 1, np.uint64), RANGE.bits))
            return name_of_best(prepared.engine, who.plan, share)

    assert isinstance(ask(send, lambda met: identify_in_crowd_as_server(met, who))[0], Identity)


def test_shards_elsewhere_give_the_same_names() -> None:
    whole, places = crowd("client", 4000, 9), np.arange(9)
    entries = Entries.of(whole.plan, TEMPLATES[:9], NAMES[:9], 0.7)
    parts = OwnShards([CrowdShard(whole.plan.product, 1, at) for at in (0, 2048)])
    cut = Crowd.empty(whole.plan, parts).added(entries, places)
    assert identify(cut, near(4))[0] == identify(whole, near(4))[0] == Identity(NAMES[4])


def asked_while(who: Crowd, voice: np.ndarray, happens: Callable[[], object]) -> Identity | None:
    """What the client is told, where something happens to the server between the two products."""

    def ours(met: Meeting) -> Identity | None:
        with met.session():
            prepared = prepare_as_client(met, who.plan)
            return name_of_best(prepared.engine, who.plan, shift_as_client(prepared, who.plan.numbers(voice)))

    def theirs(met: Meeting) -> None:
        with met.session():
            prepared = prepare_as_server(met, who)
            happens()
            name_of_best(prepared.engine, who.plan, shift_as_server(prepared), who)

    return ask(ours, theirs)[0]


def test_whoever_is_enrolled_between_the_products_changes_no_name() -> None:
    """Not even one with the asking voice: the mask has not met them. Without that the score would be anything."""
    plan = CrowdTerms(FEATURES, 3000)
    who = Crowd.of(plan, Entries.of(plan, TEMPLATES[:3], NAMES[:3], 0.7))
    late = np.arange(3, 150)

    def enroll() -> None:
        who.added(Entries.of(plan, TEMPLATES[late], [NAMES[each] for each in late], 0.0), late)

    assert asked_while(who, near(1), enroll) == Identity(NAMES[1])
    assert asked_while(who, TEMPLATES[77], lambda: None) == Identity(None)  # in the shards, and not in this snapshot
    known = who.added(Entries.of(plan, TEMPLATES[77:78], ["late"], 0.7), np.array([77]))
    assert asked_while(known, near(77), enroll) == Identity("late")


def test_another_gallery_than_the_masks_is_refused() -> None:
    """A shard that comes back without those whom the mask has met."""
    plan = CrowdTerms(FEATURES, 9)
    shards = [CrowdShard(plan.product, 1)]
    who = Crowd.empty(plan, OwnShards(shards)).added(Entries.of(plan, TEMPLATES[:3], NAMES[:3], 0.7), np.arange(3))
    with pytest.raises(ModelError, match="not the one that a mask was multiplied with"):
        asked_while(who, near(1), lambda: shards.__setitem__(0, CrowdShard(plan.product, 1)))
    with pytest.raises(ModelError, match="do not hold everybody"):
        asked_while(who, near(1), lambda: None)


def test_a_slot_is_somebodys_for_good() -> None:
    shard, weights = CrowdShard(CrowdTerms(FEATURES, 9).product, 1), np.ones((2, FEATURES), np.int16)
    shard.put(np.array([3, 5]), weights)
    shard.put(np.array([3, 5]), weights)
    with pytest.raises(ModelError, match="somebody else is there"):
        shard.put(np.array([5]), 2 * weights[:1])
    assert np.flatnonzero(shard.filled()).tolist() == [3, 5]


def test_of_twins_one_is_named() -> None:
    plan = CrowdTerms(FEATURES, 300)
    both = np.stack([TEMPLATES[0]] * 2)
    who = Crowd.of(plan, Entries.of(plan, both, ["Ada", "Eva"], 0.7), np.array([4, 290]))
    assert identify(who, TEMPLATES[0])[0] in (Identity("Ada"), Identity("Eva"))


class BrokenChannel:
    """A line on which nothing gets through."""

    def send(self, kind: int, payload: bytes) -> None:
        raise PeerGoneError("gone")


def test_a_mask_is_gone_where_a_question_failed() -> None:
    """A line that breaks under the masked voice: asked again, there is no mask, and so nothing that could differ."""
    who = crowd("client", 9, 1)
    numbers = who.plan.numbers(near(0))

    def ours(met: Meeting) -> str:
        with met.session():
            prepared = prepare_as_client(met, who.plan)
            prepared.met = replace(met, channel=BrokenChannel())
            with pytest.raises(PeerGoneError):
                shift_as_client(prepared, numbers)
            with pytest.raises(PpspeechError, match="hidden a voice already"):
                shift_as_client(prepared, numbers)
        return "refused"

    def theirs(met: Meeting) -> None:
        with met.session():
            prepare_as_server(met, who)

    assert ask(ours, theirs)[0] == "refused"
