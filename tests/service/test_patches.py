"""Words by patches over TLS: learned from clips, found where they are in the clear, sizes alone to the server."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from ppspeech.arrays import Residues
from ppspeech.crypto.shares import SharedBits
from ppspeech.errors import AudioError, BundleError, ModelError, PeerGoneError, PpspeechError, ProtocolError, RangeError
from ppspeech.models import PatchDetector
from ppspeech.network import Capacity
from ppspeech.protocols import Kind, meet_as_client
from ppspeech.protocols.search import Rule
from ppspeech.protocols.search import patches as protocol
from ppspeech.protocols.search.patches import RULES
from ppspeech.protocols.search.tournament import tell_where
from ppspeech.service import Archive, PatchWord, index_recordings, learn_patch_word, patches_in_archive, server_health
from ppspeech.service.offer import describe
from ppspeech.service.patches import Learned, band_frames
from ppspeech.service.requests import Ask, Request, send_request
from ppspeech.service.server.spotting import ServedArchive
from ppspeech.service.tasks.spotting import BANDS, PAGE_FITS, SPAN, PatchSize, PatchSizes
from tests.service.conftest import Running, serving
from tests.service.test_sentences import ended
from tests.service.voices import RATE, voice

Serve = Callable[..., AbstractContextManager[Running]]

LEARNED = Learned(clips=4, minutes=1.0, aside=1, found=1, aside_minutes=0.3, alarms=0)
BINS, PER_BIN = 3, 2


def whistle(late: float = 0.0) -> torch.Tensor:
    """Half a second that rises: nothing else in these recordings does."""
    time = torch.arange(RATE // 2) / RATE
    return 0.4 * torch.sin(2 * torch.pi * (500 + late + 2_500 * time) * time)


def talk(seed: int, seconds: float, at: float | None = None) -> torch.Tensor:
    """Noise, and the word at a second of it."""
    sound = 0.3 * voice(seed, seconds)
    if at is not None:
        first = round(at * RATE)
        sound[first : first + RATE // 2] += whistle()
    return sound


@pytest.fixture(scope="module")
def word() -> PatchWord:
    clips = [whistle(5.0 * n) for n in range(8)]
    background = [talk(n, 8.0) for n in range(8)]
    return learn_patch_word(clips, background, RATE, bins=BINS, per_bin=PER_BIN, candidates=8)


@pytest.fixture(scope="module")
def archive() -> Archive:
    """Three recordings, one in two pieces, and the word in two of them. Places at which the same pieces fit best are
    equal, and which of them is told is chance.
    """
    sounds = {"one": talk(50, 2.0), "two": talk(51, 2.3, at=1.2), "three": talk(52, 4.0, at=2.6)}
    return index_recordings(sounds, rate=RATE, longest_s=0.9, piece_s=2.6, tell_names=True)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, archive: Archive) -> Iterator[Running]:
    """One server for all tests that leave it as they found it."""
    with serving(tmp_path_factory.mktemp("server"), {"calls": archive}) as found:
        yield found


def test_a_word_is_found_where_it_is_and_as_in_the_clear(asked: Running, archive: Archive, word: PatchWord) -> None:
    assert word.learned.found == word.learned.aside == 2
    with asked.connect("calls") as client:
        answer = client.spot_patches(word)
    plain = patches_in_archive(word, archive)
    assert [each.recording for each in answer.value] == ["two", "three"] == [each.recording for each in plain]
    for found in (answer.value, plain):
        for each, at in zip(found, (1.2, 2.6), strict=True):
            assert each.start - 0.3 <= at <= each.end - 0.2
    assert answer.how == "linear"


def made(rule: Rule, seed: int, bias: float, per_bin: int = PER_BIN) -> PatchWord:
    """Any word of the usual size."""
    rng, grid = np.random.default_rng(seed), PatchSize(rule, BINS, per_bin, 0).grid
    rows = rng.normal(size=(grid.patches, BANDS * SPAN))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    gains = rng.normal(size=grid.patches)
    return PatchWord(PatchDetector(grid, rows, rng.uniform(0, 0.3, grid.patches), gains, bias, rule), LEARNED)


def test_two_words_of_one_size_look_the_same(asked: Running) -> None:
    """Lengths and order are equal, found everywhere or nowhere; bytes pass a two-sample chi-square at 1e-6."""
    shapes, counts = [], []
    with asked.connect("calls", keep_payloads=True) as client:
        for seed, bias in ((1, 99.0), (2, -99.0)):
            answer = client.spot_patches(made("linear", seed, bias))
            assert bool(answer.value) == (bias > 0)
            shapes.append(answer.transcript.shape())
            sent = [e.payload or b"" for e in answer.transcript.entries if e.direction == "sent"]
            online = b"".join(payload for payload in sent if len(payload) > 100)
            counts.append(np.bincount(np.frombuffer(online, np.uint8), minlength=256))
        stumps = client.spot_patches(made("stumps", 3, -99.0)).transcript.shape()
    assert shapes[0] == shapes[1] != stumps
    assert stats.chi2_contingency(np.array(counts) + 1).pvalue > 1e-6


def test_what_is_opened_does_not_change_what_is_sent(
    serve: Serve, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that spoils where a word is must not learn whether it was found, in a page before the last neither."""

    def spoiled(found: SharedBits, loads: Residues, width: int) -> Residues | None:
        return tell_where(found, loads | np.uint64(2**width - 1) if found.engine.is_first else loads * 0, width)

    monkeypatch.setattr(protocol, "tell_where", spoiled)
    monkeypatch.setattr("ppspeech.service.tasks.spotting.PAGE_FITS", 2_000)
    with serve({"calls": archive}) as running:
        for bias in (99.0, -99.0):
            with running.connect("calls") as client, suppress(ProtocolError):
                client.spot_patches(made("linear", 1, bias, per_bin=8))
                assert bias < 0
        log = ended(running, "calls", 2)
    seen = [{name: line[name] for name in ("outcome", "queries", "rounds", "bytes_up", "bytes_down")} for line in log]
    assert seen[0]["queries"] > 1
    assert seen[0] == seen[1]


def test_a_page_is_a_query_and_paid_before_it_is_answered(
    serve: Serve, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ppspeech.service.tasks.spotting.PAGE_FITS", 2_000)
    some = made("linear", 1, -99.0, per_bin=8)
    pages = len(archive.terms.patch_pages(some.size()))
    assert pages > 1
    with serve({"calls": archive}, limit=pages + 1) as running:
        with running.connect("calls") as client:
            client.spot_patches(some)
            assert client.queries_left == 1
            channel = running.door().open("calls", client.offer.agreement)
            meet_as_client(channel)
            assert send_request(channel, Request(Ask.SPOT_PATCHES, steps=some.size().code)) == 0
            channel.abort()
        assert server_health(running.door())["refused"] == 0


HOSTILE = {
    "no bins": 12 << 6,
    "no patches": 6 << 11,
    "no such page": PatchSize("linear", BINS, PER_BIN, 5).code,
    "longer than pieces overlap": PatchSize("stumps", 15, 1, 0).code,
    "every bit": 2**16 - 1,
}


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE)
def test_sizes_that_cannot_be_are_refused_before_anything_is_computed(asked: Running, code: int) -> None:
    with asked.connect("calls") as client:
        channel = asked.door().open("calls", client.offer.agreement)
    meet_as_client(channel)
    channel.send(Kind.REQUEST, Request(Ask.SPOT_PATCHES, steps=code).encode())
    with pytest.raises(PeerGoneError):
        channel.receive(Kind.READY, at_most=100)


def test_no_question_takes_more_than_a_session_has_memory_for(archive: Archive) -> None:
    """Of every size that may be asked for, in archives of any pieces."""
    terms = archive.terms
    for frames, pieces in ((90, (3, 1, 40)), (700, (3, 1, 40)), (2_000, (9, 1)), (20_000, (1,))):
        other = replace(terms, frames=frames, longest=60, pieces=pieces, recordings=())
        for code in range(0, 2**16, 37):
            if code in PatchSizes(other):
                shape = other.patch_shape(PatchSize.of(code))
                assert shape.patches * shape.pieces * shape.recordings <= PAGE_FITS
    assert Capacity().session_bytes >= 1 << 30


def test_all_pieces_are_on_one_page_each(archive: Archive) -> None:
    many = replace(archive.terms, pieces=(400, 300), recordings=())
    size = PatchSize("linear", BINS, PER_BIN, 0)
    pages = many.patch_pages(size)
    covered = [piece for page in pages for piece in many.pieces_of(replace(size, page=page))]
    assert covered == list(range(700))
    assert len(pages) > 1
    with pytest.raises(RangeError, match="more than 64 pages"):
        many.patch_pages(PatchSize("linear", 15, 31, 0))


def test_sizes_are_numbers_of_a_request() -> None:
    codes = set()
    for rule in RULES:
        for bins, per_bin, page in ((1, 1, 0), (15, 31, 63), (6, 6, 1)):
            size = PatchSize(rule, bins, per_bin, page)
            assert PatchSize.of(size.code) == size
            codes.add(size.code)
    assert len(codes) == 6
    with pytest.raises(RangeError, match="no size"):
        PatchSize.of(2**16)


def test_nothing_is_found_where_a_recording_is_padded(archive: Archive, word: PatchWord) -> None:
    for rule in ("linear", "stumps"):
        own = word if rule == "linear" else learn_patch_word(
            [whistle(5.0 * n) for n in range(4)], [talk(n, 8.0) for n in range(8)], RATE, rule="stumps", bins=2,
            per_bin=2, candidates=4,
        )  # fmt: skip
        detector = own.detector
        assert detector.rule == rule
        assert float(detector.sums(np.zeros((1, detector.grid.patches)))[0]) < 0
    pieces = archive.patch_pieces(word.size())
    assert not pieces[0, -5:].any()  # the first recording is shorter


# Files.


def test_a_word_is_a_private_file_that_comes_back(tmp_path: Path, word: PatchWord, archive: Archive) -> None:
    word.write(tmp_path / "w.patches")
    assert (tmp_path / "w.patches").stat().st_mode & 0o777 == 0o600
    again = PatchWord.load(tmp_path / "w.patches")
    assert again.to_bytes() == word.to_bytes()
    assert patches_in_archive(again, archive) == patches_in_archive(word, archive)


def forged(word: PatchWord, **changes: Any) -> bytes:
    return replace(word, detector=replace(word.detector, **changes)).to_bytes()


def test_a_forged_word_is_refused(tmp_path: Path, word: PatchWord) -> None:
    good = word.to_bytes()
    for bad, said in (
        (b"", "no word by patches: make one with `ppspeech patches`"),
        (b"\xff" * 100, "no word by patches"),
        (good[:-8], "damaged"),
        (good.replace(b'\\"bins\\": 3', b'\\"bins\\": 9'), "its sizes need"),
        (good.replace(b'\\"bins\\": 3', b'\\"bins\\": 0'), "1 to 15 bins"),
        (good.replace(b'\\"format\\": 1', b'\\"format\\": 9'), "format 1, got 9"),
        (forged(word, gains=np.full(BINS * PER_BIN, np.nan)), "finite"),
    ):
        with pytest.raises(PpspeechError, match=said):
            PatchWord.from_bytes(bad)
    with pytest.raises(BundleError, match="no word of at most"):
        PatchWord.load(tmp_path / "none.patches")


def test_archives_of_the_older_format_open_and_say_that_they_have_no_bands(archive: Archive, word: PatchWord) -> None:
    plain = Archive(replace(archive.contents, bands=()), archive.frames, archive.garbage, None)
    older = plain.to_bytes().replace(b'\\"format\\": 2', b'\\"format\\": 1').replace(b'\\"bands\\": [], ', b"")
    older = (len(older[8:]) - len(plain.to_bytes()[8:]) + int.from_bytes(older[:8], "little")).to_bytes(8, "little") + (
        older[8:]
    )
    opened = Archive.from_bytes(older)
    assert opened.terms.bands == 0
    with pytest.raises(RangeError, match="index it again"):
        patches_in_archive(word, opened)
    served = ServedArchive.of("calls", opened)
    assert b'"bands":0' in describe((served.offer,))


def test_lengths_of_recordings_are_not_told() -> None:
    first, second = (
        index_recordings({"a": talk(0, 1.6), "b": talk(1, seconds)}, rate=RATE, longest_s=0.6).terms
        for seconds in (0.7, 1.3)
    )
    assert first == second


def test_bands_of_a_recording_do_not_depend_on_how_loud_it_is() -> None:
    sound = talk(3, 2.0, at=0.5)
    assert np.allclose(band_frames(sound), band_frames(0.1 * sound), atol=1e-3)
    assert band_frames(sound[:100]).shape == (0, BANDS)


@pytest.mark.parametrize(
    ("clips", "background", "options", "error", "said"),
    [
        (3, 10, {}, ModelError, "4 clips of it or more, got 3"),
        (4, 1, {}, ModelError, "at least two recordings of 60 s together"),
        (4, 3, {}, ModelError, "got 3 of 24 s"),
        (4, 10, {"bins": 16}, RangeError, "1 to 15 bins"),
        (4, 10, {"per_bin": 0}, RangeError, "1 to 31 patches"),
    ],
    ids=str,
)
def test_what_a_word_cannot_be_learned_from_is_refused(
    clips: int, background: int, options: dict[str, Any], error: type[PpspeechError], said: str
) -> None:
    with pytest.raises(error, match=said):
        learn_patch_word([whistle()] * clips, [talk(n, 8.0) for n in range(background)], RATE, **options)
    with pytest.raises(AudioError, match="silent"):
        learn_patch_word([torch.zeros(RATE)] * 4, [talk(0, 8.0)], RATE)
