"""Keywords over TLS, in processes of their own: found where they are in the clear, sizes alone to the server."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from ppspeech.arrays import Residues
from ppspeech.audio import MfccConfig
from ppspeech.bundle import Bundle, ModelSettings
from ppspeech.crypto.shares import SharedBits
from ppspeech.errors import (
    AudioError,
    BundleError,
    ModelError,
    PeerGoneError,
    PpspeechError,
    ProtocolError,
    RangeError,
    WrongSessionError,
)
from ppspeech.network import Capacity
from ppspeech.protocols import Kind, meet_as_client
from ppspeech.protocols.search import Recordings
from ppspeech.protocols.search import spotting as protocol
from ppspeech.service import (
    Archive,
    BudgetSpentError,
    Client,
    SpotDeployment,
    Spotted,
    clear_segments,
    export_keywords,
    in_archive,
    in_the_clear,
    index_recordings,
    server_health,
    sought,
)
from ppspeech.service.client import spotting as client_module
from ppspeech.service.client.spotting import in_ours
from ppspeech.service.offer import Offer, describe, read_offers
from ppspeech.service.requests import Ask, Request, send_request
from ppspeech.service.seek import Keyword
from ppspeech.service.server.spotting import ServedArchive, ServedKeywords
from ppspeech.service.tasks.spotting import Sizes, Spotting, packed, unpacked
from tests.service.conftest import Running, serving
from tests.service.test_sentences import ended
from tests.service.voices import HMM, RATE, SENTENCES, SPEAKERS, released, voice

Serve = Callable[..., AbstractContextManager[Running]]

MFCC = MfccConfig(cepstra=4, deltas=0, hop_s=0.02)
SECONDS = (1.3, 0.9, 2.6)
OURS = SpotDeployment(threshold=14.0, longest=0.3, seconds=1.8)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("spotting") / "words", SENTENCES, MFCC)


def sounds(seed: int = 0) -> dict[str, torch.Tensor]:
    return {f"call {n}": voice(10 * seed + n, seconds) for n, seconds in enumerate(SECONDS)}


@pytest.fixture(scope="module")
def archive(bundle: Bundle) -> Archive:
    """Three recordings, one of which is cut into pieces."""
    return index_recordings(sounds(), bundle, RATE, longest_s=0.3, piece_s=1.2, tell_names=True)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, bundle: Bundle, archive: Archive) -> Iterator[Running]:
    """One server for all tests that leave it as they found it."""
    with serving(
        tmp_path_factory.mktemp("server"), {"calls": archive, "words": bundle}, spotting=OURS, sentences=None
    ) as found:
        yield found


@pytest.mark.parametrize(
    ("settings", "why"), [(HMM, "one at a time"), (SPEAKERS, "no models of words")], ids=["words", "people"]
)
def test_models_that_would_not_find_a_word_are_refused(settings: ModelSettings, why: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=why):
        export_keywords(released(tmp_path / "b", settings), OURS)


@pytest.mark.parametrize("recordings", [1, 30, 400])
def test_keywords_have_room_for_the_errors_of_any_archive(recordings: int, archive: Archive) -> None:
    """More recordings share a polynomial, and so more errors meet."""
    many = replace(archive.terms, pieces=(1,) * recordings, recordings=())
    shape, (middle, reach) = many.spelled_shape((2, 1), "frames"), many.reach
    assert shape.scores[0] <= middle - reach - shape.error(2.0)
    assert shape.scores[1] >= middle + reach + shape.error(2.0)


def clear(archive: Archive, keyword: Keyword, threshold: float, *, average: bool = False) -> list[Spotted]:
    question = sought(archive.terms, keyword, RATE, threshold, average=average)
    answers = in_the_clear(question.keywords, archive.recordings(question.keywords.shape))
    return in_archive(archive.terms, answers[0])


def sure(archive: Archive, keywords: Iterable[Keyword], *, average: bool = False) -> tuple[Keyword, float]:
    """A keyword, and a threshold between its scores, for which small errors of scores change no answer."""
    rng = np.random.default_rng(0)
    for keyword in keywords:
        question = sought(archive.terms, keyword, RATE, 0.0, average=average)
        own, recordings = question.keywords, archive.recordings(question.keywords.shape)
        (found,) = clear_segments(own, recordings)
        scores = found.score.sort().values
        widest = int(scores.diff().argmax())
        decided = replace(own, thresholds=(scores[widest : widest + 2].mean(0, keepdim=True).numpy()))
        seen = {str(in_the_clear(decided, recordings))}
        for _ in range(10):
            linear = 0.03 * (own.shape.terms == "linear")  # of every state, or of all states of a frame
            frames = [each + rng.normal(0, linear, each.shape) for each in recordings.frames]
            garbage = [each + rng.normal(0, 0.03, each.shape) for each in recordings.garbage]
            seen.add(str(in_the_clear(decided, Recordings(own.shape, frames, garbage))))
        if len(seen) == 1:
            return keyword, float(decided.thresholds[0])
    raise AssertionError("every keyword is a matter of opinion")


NAMES = ("aardvark", "bumblebee", "caterpillar", "sil")
PAIRS = [" ".join(each) for each in product(NAMES, repeat=2)]
KEYWORDS: dict[str, tuple[list[Keyword], bool]] = {
    "a unit": ([*NAMES], False),
    "units": ([f"{each} {last}" for each in PAIRS for last in NAMES], False),
    "a phrase": ([" ... ".join(each) for each in product(NAMES, repeat=2)], False),
    "an average": ([*NAMES, *PAIRS], True),
    "an example": ([[voice(seed, 0.5)] for seed in range(30)], False),
    "takes": ([[voice(seed, 0.45), voice(seed + 1, 0.5)] for seed in range(30)], False),
    "a phrase of examples": ([[voice(seed, 0.4), "...", voice(seed + 1, 0.4)] for seed in range(30)], False),
}


@pytest.mark.parametrize("case", KEYWORDS)
def test_keywords_are_found_where_they_are_in_the_clear(asked: Running, archive: Archive, case: str) -> None:
    candidates, average = KEYWORDS[case]
    keyword, threshold = sure(archive, candidates, average=average)
    expected = clear(archive, keyword, threshold, average=average)
    with asked.connect("calls") as client:
        answer = client.spot(keyword, RATE, threshold, average=average)
        assert answer.value == expected
        assert {each.recording for each in expected} <= set(sounds())
        assert len(expected[0].starts) == (2 if "phrase" in case else 1)
        assert answer.how == ("average" if average else "frames")
        assert client.spot(keyword, RATE, 400.0, average=average).value == []  # and nowhere if it is not


def test_our_recordings_are_searched_for_keywords_of_the_server(asked: Running, bundle: Bundle) -> None:
    own = export_keywords(bundle, OURS)
    shape, rng = own.terms.own_shape(4, 3, "frames"), np.random.default_rng(0)
    with asked.connect("words") as client:
        for seed in range(20, 60):
            ours = [voice(seed + n, 0.4 + 0.6 * n) for n in range(3)]
            heard = [*(client._questions.frames(sound, RATE) for sound in ours), np.zeros((1, MFCC.features))]
            plain, *others = (
                in_the_clear(
                    own.keywords(shape),
                    Recordings(shape, heard, [rng.normal(0, error, len(each)) for each in heard]),
                )
                for error in (0.0, *[0.05] * 10)
            )
            if all(each == plain for each in others):
                break
        else:
            raise AssertionError("every recording is a matter of opinion")
        answer = client.spot_in(ours, RATE)
    expected = in_ours(own.terms, plain, ours)
    assert answer.value == expected
    assert answer.together == 3
    assert 0 < len(expected) < 9
    assert {each.keyword for each in expected} <= set(bundle.labels)


def test_one_question_for_many_recordings_is_dearer_only_in_bytes(bundle: Bundle) -> None:
    """One set of rounds, however many."""
    one = index_recordings({"a": voice(0, 1.3)}, bundle, RATE, longest_s=0.3).terms
    many = index_recordings({str(n): voice(n, 1.3) for n in range(8)}, bundle, RATE, longest_s=0.3).terms
    costs = [protocol.spotting_cost(terms.spelled_shape((2,), "frames")) for terms in (one, many)]
    assert costs[0].rounds == costs[1].rounds
    assert 5 * costs[0].total_bytes < costs[1].total_bytes < 9 * costs[0].total_bytes


# What the server sees, and the client.


def test_two_keywords_of_one_size_look_the_same(asked: Running) -> None:
    """Lengths and order are equal, found or not; bytes pass a two-sample chi-square at 1e-4."""
    shapes, counts = [], []
    with asked.connect("calls", keep_payloads=True) as client:
        for keyword, threshold in (("aardvark sil", -400.0), ("bumblebee caterpillar", 400.0)):
            answers = [client.spot(keyword, RATE, threshold) for _ in range(2)]
            assert bool(answers[0].value) == (threshold < 0)
            shapes += [answer.transcript.shape() for answer in answers]
            sent = [e.payload or b"" for a in answers for e in a.transcript.entries if e.direction == "sent"]
            online = b"".join(payload for payload in sent if len(payload) > 100)
            counts.append(np.bincount(np.frombuffer(online, np.uint8), minlength=256))
        other = client.spot("aardvark", RATE, 0.0).transcript.shape()
        examples = [client.spot([voice(n, 0.4 + 0.1 * n)], RATE, 0.0).transcript.shape() for n in range(2)]
    assert all(shape == shapes[0] != other for shape in shapes)
    assert examples[0] == examples[1]  # how long an example is, nobody sees
    assert stats.chi2_contingency(np.array(counts) + 1).pvalue > 1e-4


def test_how_many_recordings_we_have_is_seen_up_to_a_power_of_two_and_how_long_in_blocks(asked: Running) -> None:
    with asked.connect("words", keep_payloads=True) as client:
        three = client.spot_in([voice(n, 0.65) for n in range(3)], RATE).transcript
        four = client.spot_in([voice(n, 1.1) for n in range(4)], RATE).transcript
        longer = client.spot_in([voice(n, 1.3) for n in range(4)], RATE).transcript
        frames = client._questions.frames(voice(0, 0.65), RATE)
    assert three.shape() == four.shape() != longer.shape()
    wire = b"".join(entry.payload or b"" for entry in three.entries)
    for frame in frames[:5]:
        for form in (np.float32, np.float64):
            assert frame[:2].astype(form).tobytes() not in wire


@pytest.mark.parametrize("careful", [False, True], ids=["strict", "as it is"])
def test_what_is_opened_does_not_change_what_is_sent(
    careful: bool, serve: Serve, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that spoils where a segment ends must not learn whether there was one."""
    original = protocol.tell_where

    def spoiled(found: SharedBits, loads: Residues, width: int) -> Residues | None:
        if found.engine.is_first:
            loads = loads ^ np.uint64(2**width - 1)
        return original(found, loads, width)

    monkeypatch.setattr(protocol, "tell_where", spoiled)
    if not careful:

        def strict(*given: Any) -> Any:
            found = protocol.ask(*given)
            protocol.check_found(given[1].shape, found)
            return found

        monkeypatch.setattr(client_module, "ask", strict)
    thresholds = [-400.0, 400.0, 400.0, -400.0]
    with serve({"calls": archive}) as running:
        for threshold in thresholds:
            with running.connect("calls") as client, suppress(ProtocolError):
                client.spot("aardvark", RATE, threshold)
                assert threshold > 0
        log = ended(running, "calls", len(thresholds))
    seen = [{name: line[name] for name in ("outcome", "queries", "rounds", "bytes_up", "bytes_down")} for line in log]
    assert [each != seen[1] for each in seen] == ([False] * 4 if careful else [True, False, False, True])


def test_names_of_files_are_told_only_where_that_was_chosen(bundle: Bundle) -> None:
    hidden = index_recordings(sounds(), bundle, RATE, longest_s=0.3, piece_s=1.2)
    served = ServedArchive.of("calls", hidden)
    assert b"call" not in describe((served.offer,)).replace(b'"calls"', b"")
    assert {each.recording for each in clear(hidden, "aardvark", -400.0)} <= {"1", "2", "3"}


def test_lengths_of_recordings_are_not_told(bundle: Bundle) -> None:
    """Two archives whose shorter recordings differ in length are asked for on the same terms."""
    first, second = (
        index_recordings({"a": voice(0, 1.2), "b": voice(1, seconds)}, bundle, RATE, longest_s=0.3).terms
        for seconds in (0.5, 0.9)
    )
    assert first == second


# Budgets, refusals, faults and cheats.


def test_a_search_is_a_query_and_paid_before_it_is_answered(serve: Serve, archive: Archive, bundle: Bundle) -> None:
    with serve({"calls": archive, "words": bundle}, limit=4, spotting=OURS) as running:
        with running.connect("calls") as client:
            client.spot("aardvark", RATE)
            assert client.queries_left == 3
            channel = running.door().open("calls", client.offer.agreement)
            meet_as_client(channel)
            assert send_request(channel, Request(Ask.SPOT, steps=1)) == 2
            channel.abort()
        with running.connect("words") as client:
            client.spot_in([voice(n, 0.4) for n in range(3)], RATE)
            assert client.queries_left == 0
            with pytest.raises(BudgetSpentError, match="0 left"):
                client.spot_in([voice(0, 0.4)], RATE)
        assert server_health(running.door())["refused"] == 1
    assert ServedArchive.of("calls", archive).usual_budget == 100 == ServedKeywords.of("w", bundle, OURS).usual_budget


def not_a_number(seconds: float = 0.5) -> torch.Tensor:
    sound = voice(0, seconds)
    sound[100] = torch.nan
    return sound


REFUSED: list[tuple[str, Any, type[PpspeechError], str]] = [
    ("a unit that is not there", "zebra", ModelError, "no unit for zebra; there are aardvark.*an example"),
    ("nothing", "", RangeError, "names of units or examples"),
    ("a gap alone", "aardvark ...", RangeError, "names of units or examples"),
    ("both", ["aardvark", "no.wav"], RangeError, "spelled, or comes from examples, not both"),
    ("too many words", "aardvark ... " * 4 + "sil", RangeError, "1 to 4 words of 1 to 15 units"),
    ("too many units", "aardvark " * 16, RangeError, "1 to 4 words of 1 to 15 units"),
    ("no file", "no.wav", AudioError, "no sound file at no.wav"),
    ("too short", [voice(0, 0.15)], RangeError, "a word lasts 0.28 to 0.60 s here.*record it longer"),
    ("too long", [voice(0, 3.0)], RangeError, "cut it, or join words"),
    ("not a number", [not_a_number()], AudioError, "NaN"),
    ("silence", [torch.zeros(8_000)], AudioError, "silent"),
]


@pytest.mark.parametrize(("what", "keyword", "error", "words"), REFUSED, ids=[each[0] for each in REFUSED])
def test_what_cannot_be_asked_is_refused_before_anything_is_sent(
    asked: Running, what: str, keyword: Any, error: type[PpspeechError], words: str
) -> None:
    with asked.connect("calls") as client:
        rate = None if isinstance(keyword, str) or "no.wav" in keyword[-1:] else RATE
        with pytest.raises(error, match=words):
            client.spot(keyword, rate)
        assert client._session is None, what


def test_recordings_that_cannot_be_searched_are_refused_before_anything_is_sent(asked: Running) -> None:
    with asked.connect("words") as client:
        for given, error, words in (
            ([], RangeError, "no recording to look in"),
            ([voice(0, 5.0)], RangeError, r"up to 1\.8 s here, got 5\.0 s: cut it"),
            ([voice(0, 0.3)] * 65, RangeError, "65 recordings are too many"),
            ([voice(0, 0.5), not_a_number()], AudioError, "NaN"),
            ([torch.zeros(8_000)], AudioError, "silent"),
            ([voice(0, 0.01)], AudioError, "samples"),
        ):
            with pytest.raises(error, match=words):
                client.spot_in(given, RATE)
        assert client._session is None
        with pytest.raises(ModelError, match="keywords and no recordings"):
            client.spot("aardvark")
    with asked.connect("calls") as client:
        with pytest.raises(ModelError, match="recordings and no keywords"):
            client.spot_in([voice(0, 0.5)], RATE)
        with pytest.raises(ModelError, match="calls does not recognize_all"):
            client.recognize(voice(0), RATE)
        with pytest.raises(RangeError, match="averages are of one word"):
            client.spot("aardvark ... sil", RATE, average=True)


HOSTILE = {
    "no size": b"\x0b\0\0\1\0\0",
    "a hole in a phrase": Request(Ask.SPOT, steps=0x101).encode(),
    "an example of two units": Request(Ask.SPOT_EXAMPLE, steps=2).encode(),
    "several at once": Request(Ask.SPOT, utterances=2, steps=1).encode(),
    "another order": Request(Ask.SPOT, "garbled", steps=1).encode(),
    "a sentence": Request(Ask.SENTENCE, steps=1).encode(),
    "an average of a phrase": Request(Ask.SPOT, "average", steps=0x11).encode(),
}


@pytest.mark.parametrize("fault", [*HOSTILE, "dies"])
def test_a_client_that_misbehaves_hurts_nobody_else(asked: Running, archive: Archive, fault: str) -> None:
    keyword, threshold = sure(archive, [*NAMES, *PAIRS])
    with asked.connect("calls") as client:
        before = client.spot(keyword, RATE, threshold).value
        channel = asked.door().open("calls", client.offer.agreement)
        meet_as_client(channel)
        if fault == "dies":
            send_request(channel, Request(Ask.SPOT, steps=2))
            channel.abort()
        else:
            channel.send(Kind.REQUEST, HOSTILE[fault])
        if fault == "an average of a phrase":  # what cannot be is seen when it is computed
            channel.receive(Kind.READY, at_most=100)
        with pytest.raises(PeerGoneError):
            channel.receive(Kind.READY, at_most=100)
        assert client.spot(keyword, RATE, threshold).value == before


def test_forged_sizes_of_recordings_are_refused(asked: Running) -> None:
    with asked.connect("words") as client:
        for request in (
            Request(Ask.SPOT, steps=4),
            Request(Ask.SPOT, steps=65_535),
            Request(Ask.SPOT, utterances=3, steps=1),
            Request(Ask.SPOT, utterances=65_535, steps=1),
            Request(Ask.SPOT_EXAMPLE, steps=1),
        ):
            channel = asked.door().open("words", client.offer.agreement)
            meet_as_client(channel)
            channel.send(Kind.REQUEST, request.encode())
            with pytest.raises(PeerGoneError):
                channel.receive(Kind.READY, at_most=100)


def ask_until_it_fails(client: Client) -> None:
    for _ in range(100):
        client.spot("aardvark", RATE)
        time.sleep(0.05)


def test_a_server_that_stops(serve: Serve, archive: Archive) -> None:
    quick = Capacity(grace_seconds=0.2)
    with serve({"calls": archive}, capacity=quick) as running, running.connect("calls") as client:
        client.spot("aardvark", RATE)
        os.kill(running.process.pid, signal.SIGTERM)
        with pytest.raises(ProtocolError):
            ask_until_it_fails(client)
        with pytest.raises(PeerGoneError, match="nobody listens"):
            client.spot("aardvark", RATE)


def test_who_asks_for_what_is_not_offered_is_told_what_is(serve: Serve, archive: Archive) -> None:
    with serve({"calls": archive}) as running:
        with pytest.raises(PpspeechError, match="ask it with `ppspeech spot`"):
            running.connect(model=None, task="sentences")
        with running.connect(model=None) as client:
            assert client.offer.terms.TASK == "spotting"


# What is offered, and the archive.


@pytest.fixture(scope="module")
def offers(archive: Archive, bundle: Bundle) -> dict[str, Offer[Spotting]]:
    return {"calls": ServedArchive.of("calls", archive).offer, "words": ServedKeywords.of("words", bundle, OURS).offer}


def test_offers_come_back_as_they_were(offers: dict[str, Offer[Spotting]]) -> None:
    assert read_offers(describe(offers.values()), "spotting") == tuple(offers.values())
    terms = offers["calls"].terms
    assert terms.pieces == (2, 1, 3)
    assert terms.names == ("aardvark", "bumblebee", "caterpillar", "sil")
    assert replace(offers["calls"], terms=replace(terms, states=3)).agreement != offers["calls"].agreement


CHANGES: list[tuple[str, str, Any]] = [
    ("calls", "holder", "nobody"),
    ("calls", "names", ["a", "a"]),
    ("calls", "names", ["a\x1b[2J"]),
    ("calls", "states", 0),
    ("calls", "states", 200),
    ("calls", "longest", 0),
    ("calls", "longest", 60),
    ("calls", "frames", 10**6),
    ("calls", "pieces", []),
    ("calls", "pieces", [2, 0, 3]),
    ("calls", "pieces", [10**6]),
    ("calls", "recordings", ["a"]),
    ("calls", "mfcc.sample_rate", 0),
    ("calls", "more", 1),
    ("words", "scores", []),
    ("words", "scores", [5, 1]),
    ("words", "scores", [-900_000, 900_000]),
    ("words", "names", []),
    ("words", "radius", -1.0),
    ("words", "pieces", [1]),
    ("words", "monomials", "cubic"),
]


@pytest.mark.parametrize(("name", "field", "value"), CHANGES, ids=lambda value: str(value)[:40])
def test_a_description_that_is_not_right_is_refused(
    offers: dict[str, Offer[Spotting]], name: str, field: str, value: Any
) -> None:
    plain = json.loads(describe((offers[name],)))
    at = plain["spotting"][0]
    *path, last = field.split(".")
    for each in path:
        at = at[each]
    at[last] = value
    with pytest.raises(WrongSessionError, match="cannot be used"):
        read_offers(json.dumps(plain).encode(), "spotting")


def test_a_client_refuses_a_search_of_more_than_it_exchanges(asked: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MOST_BYTES", 100_000)
    with asked.connect("calls") as client, pytest.raises(WrongSessionError, match=r"would exchange .* shorter keyword"):
        client.spot("aardvark", RATE)


def test_an_archive_is_a_private_file_that_comes_back(archive: Archive, tmp_path: Path) -> None:
    path = tmp_path / "calls.archive"
    archive.write(path)
    assert path.stat().st_mode & 0o077 == 0
    again = Archive.load(path)
    assert again.contents == archive.contents
    assert again.fingerprint == archive.fingerprint
    assert clear(again, "aardvark", -400.0) == clear(archive, "aardvark", -400.0)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"",
        lambda data: data[:100],
        lambda data: data[:-4],
        lambda data: b"\xff" * 8 + data[8:],
        lambda data: data.replace(b"F32", b"F16"),
        lambda data: data.replace(b'\\"states\\": 2', b'\\"states\\": 3'),
        lambda data: data.replace(b'\\"format\\": 2', b'\\"format\\": 3'),
        lambda data: data.replace(b'\\"told\\": true', b'\\"told\\": 1234'),
        lambda data: data[:-4] + np.float32(np.nan).tobytes(),
    ],
)
def test_a_forged_archive_is_refused(archive: Archive, change: Callable[[bytes], bytes]) -> None:
    data = archive.to_bytes()
    assert change(data) != data
    with pytest.raises(BundleError):
        Archive.from_bytes(change(data))


def test_what_cannot_be_indexed(bundle: Bundle, tmp_path: Path, bundles: dict[str, Bundle]) -> None:
    with pytest.raises(BundleError, match="nothing to index"):
        index_recordings({}, bundle)
    with pytest.raises(BundleError, match="no archive of at most"):
        Archive.load(tmp_path / "none")
    with pytest.raises(AudioError, match="no sound file"):
        index_recordings({"a": tmp_path / "none.wav"}, bundle)
    assert index_recordings({"a": voice(0, 0.9)}, None, RATE).terms.names == ()
    with pytest.raises(RangeError, match=r"no units .* ask by an example"):
        sought(index_recordings({"a": voice(0, 0.9)}, None, RATE).terms, "aardvark")


def test_sizes_of_phrases_are_numbers_of_a_request(archive: Archive) -> None:
    for sizes in ((1,), (15,), (3, 1), (15, 15, 15, 15)):
        assert unpacked(packed(sizes)) == sizes
    for code in (0, 0x10, 0x101, 0x11111):
        with pytest.raises(RangeError):
            unpacked(code)
        assert code not in Sizes(archive.terms, spelled=True)
    assert 2 in Sizes(archive.terms, spelled=True)
    assert 2 not in Sizes(archive.terms, spelled=False)
    assert 0x11 in Sizes(archive.terms, spelled=False)
