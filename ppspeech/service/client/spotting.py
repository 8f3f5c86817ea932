"""The client of a search: where a keyword is said in a server's archive, or a server's keywords in our recordings.

The server of an archive sees how many words and units a keyword has, or how many words by example, or the rule, bins
and patches of a word by patches; one of keywords sees how many recordings are asked about, up to a power of two, and
how long the longest is, in blocks. Nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.audio import Cepstra, Sound, in_usual_range
from ppspeech.errors import ModelError, ProtocolError, RangeError, WrongSessionError
from ppspeech.protocols import meet_as_client
from ppspeech.protocols.search import (
    Answers,
    Found,
    Keywords,
    Recordings,
    SpotShape,
    ask,
    ask_patches,
    check_found,
    prepare,
    prepare_patches,
    spotting_cost,
)
from ppspeech.service.client.connect import QUESTIONS, Client
from ppspeech.service.client.session import Answer, Clock
from ppspeech.service.offer import MOST_BYTES
from ppspeech.service.requests import Ask, Request
from ppspeech.service.seek import Keyword, sought
from ppspeech.service.tasks.spotting import STEP_S, PatchSize, Spotting

if TYPE_CHECKING:
    from ppspeech.service.archive import Archive
    from ppspeech.service.patches import PatchWord

LEAST = 50  # bytes of a maximum on shares, of any number of bits


@dataclass(frozen=True, slots=True)
class Spotted:
    """Where a keyword is said, in seconds: `starts` of each word of a phrase, and the end of the last.

    Attributes:
        recording: its name, or its number from 1 where the server tells no names.
        keyword: of a server that has keywords; empty where it is ours.
    """

    recording: str
    starts: tuple[float, ...]
    end: float
    keyword: str = ""

    @property
    def start(self) -> float:
        """Of the first word."""
        return self.starts[0]


@QUESTIONS.register("spotting")
class AskSpotting:
    """What may be asked of an archive, or of keywords."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._terms: Spotting = client.offer.terms

    def spot(
        self, keyword: Keyword, rate: int | None = None, threshold: float | None = None, *, average: bool = False
    ) -> Answer[list[Spotted]]:
        """Where our keyword is said in the server's recordings; all of them in one question."""
        terms = self._terms
        if terms.holder != "server":
            raise ModelError(f"{self._client.offer.name} has keywords and no recordings: give yours, spot_in(…)")
        question = sought(terms, keyword, rate, threshold, average=average)
        request = Request(question.what, question.way, steps=question.code)
        answer, found = self._ask(request, question.keywords)
        return replace(answer, value=in_archive(terms, found[0]))

    def spot_patches(self, word: "PatchWord") -> Answer[list[Spotted]]:
        """Where a word by patches is said in the server's recordings: a question a page of its archive, each a query.
        What was told is not looked at before all is said.
        """
        terms = self._terms
        if terms.holder != "server":
            raise ModelError(f"{self._client.offer.name} has keywords and no recordings: give yours, spot_in(…)")
        sizes = [word.size(page) for page in terms.patch_pages(word.size())]
        questions = [word.sought(terms.patch_shape(size)) for size in sizes]
        told: list[int | None] = []
        answers: list[Answer[list[Spotted]]] = []
        session = self._client.session(meet_as_client)
        for size, question in zip(sizes, questions, strict=True):
            with session.asking(Request(Ask.SPOT_PATCHES, steps=size.code)) as record:
                met = replace(session.met, channel=record)
                with met.session():
                    clock = Clock()
                    engine = prepare_patches(met, question.shape)
                    clock.is_prepared()
                    told += ask_patches(met, question, engine)
                    nothing: list[Spotted] = []
                    answers += clock.answers([nothing], record, word.detector.rule)
        return _in_all(answers, places_in_archive(terms, word.size(), told))

    def spot_in(self, sounds: Sequence[Sound], rate: int | None = None) -> Answer[list[Spotted]]:
        """Where the server's keywords are said in our recordings; all of them in as few questions as they fit in."""
        terms = self._terms
        if terms.holder != "client":
            raise ModelError(f"{self._client.offer.name} has recordings and no keywords: give one, spot(…)")
        if not sounds:
            raise RangeError("there is no recording to look in: give at least one")
        heard = [self.frames(sound, rate) for sound in sounds]
        steps = [self._steps(sounds[place], len(each)) for place, each in enumerate(heard)]
        most = terms.together[-1]
        if len(heard) > most:
            raise RangeError(f"{len(heard)} recordings are too many for one question of at most {most}: ask in parts")
        count = next(size for size in terms.together if size >= len(heard))
        shape = terms.own_shape(count, max(steps), "frames")
        nothing = np.zeros((1, terms.mfcc.features))
        padded = [*heard, *[nothing] * (count - len(heard))]
        own = Recordings(shape, padded, [np.zeros(len(each)) for each in padded])
        answer, found = self._ask(Request(Ask.SPOT, utterances=count, steps=max(steps)), own)
        return replace(answer, value=in_ours(terms, found, sounds), together=len(sounds))

    def frames(self, sound: Sound, rate: int | None = None) -> Reals:
        """A recording as the keywords take it, in the usual range of speech, `(frames, features)`; it stays here."""
        return in_usual_range(Cepstra(self._terms.mfcc).of(sound, rate), self._terms.mfcc)

    def _steps(self, sound: Sound, frames: int) -> int:
        terms, steps = self._terms, -(-frames // self._terms.block)
        if steps not in terms.steps:
            name = str(sound) if isinstance(sound, str | Path) else "a recording"
            raise RangeError(
                f"{name}: recordings last up to {terms.frames * terms.mfcc.hop_s:.1f} s here, got "
                f"{frames * terms.mfcc.hop_s:.1f} s: cut it, or have it served with more (--spotting seconds=…)"
            )
        return steps

    def _ask(self, request: Request, own: Keywords | Recordings) -> tuple[Answer[list[Spotted]], Answers]:
        """What was found, and what it took; not looked at before all is said."""
        shape, session = own.shape, self._client.session(meet_as_client)
        check_cost(self._client.offer.name, shape)
        with session.asking(request) as record:
            met = replace(session.met, channel=record)
            with met.session():
                clock = Clock()
                engine = prepare(met, shape)
                clock.is_prepared()
                found = ask(met, own, engine)
                nothing: list[Spotted] = []
                (answer,) = clock.answers([nothing], record, request.order)
        check_found(shape, found)
        return answer, found


def _in_all(answers: Sequence[Answer[list[Spotted]]], value: list[Spotted]) -> Answer[list[Spotted]]:
    """What several questions took together."""
    first = answers[0]
    for each in answers[1:]:
        first.transcript.entries += each.transcript.entries
    seconds, offline = (sum(times) for times in zip(*((a.seconds, a.offline_seconds) for a in answers), strict=True))
    up, down, rounds = (
        sum(counts) for counts in zip(*((a.bytes_up, a.bytes_down, a.rounds) for a in answers), strict=True)
    )
    return Answer(value, seconds, up, down, rounds, first.transcript, offline, first.how)


def check_cost(name: str, shape: SpotShape) -> None:
    """Refuse, with a WrongSessionError, a search that would exchange more than `MOST_BYTES`."""
    size = shape.product.total_bytes + LEAST * shape.lanes * shape.window * (shape.columns + 1)
    if size <= MOST_BYTES:  # otherwise the shares would be too many to record what they cost
        size = shape.product.total_bytes + spotting_cost(shape).total_bytes
    if size > MOST_BYTES:
        raise WrongSessionError(
            f"{name} would exchange {size:,} bytes for this search, of at most {MOST_BYTES:,}: take a shorter keyword, "
            "or have the recordings served in several archives"
        )


def in_archive(terms: Spotting, found: Sequence[Found | None]) -> list[Spotted]:
    """What pieces of recordings tell, in seconds of the recordings; where pieces overlap, the same is told once."""
    hop = terms.mfcc.hop_s
    return _told_once(
        terms,
        [None if each is None else (tuple(at * hop for at in each.starts), each.end * hop) for each in found],
        lambda frame: frame * hop,
    )


def places_in_archive(terms: Spotting, size: PatchSize, places: Sequence[int | None]) -> list[Spotted]:
    """What pieces tell of a word by patches, likewise: its window, which is longer than the word. Raises ProtocolError
    for places that there are not.
    """
    last = terms.patch_shape(size).places
    if any(place is not None and place >= last for place in places):
        raise ProtocolError(f"a place of at most {last} was told: the server does not follow the protocol")
    seconds = size.grid.frames * STEP_S
    return _told_once(
        terms,
        [None if place is None else ((place * STEP_S,), place * STEP_S + seconds) for place in places],
        lambda frame: terms.band_start(frame) * STEP_S,
    )


def patches_in_archive(word: "PatchWord", archive: "Archive") -> list[Spotted]:
    """What a search by patches would tell if one party had both."""
    from ppspeech.service.patches import clear_places

    terms = archive.terms
    sizes = [word.size(page) for page in terms.patch_pages(word.size())]
    places = [place for size in sizes for place in clear_places(word, archive.patch_pieces(size))]
    return places_in_archive(terms, word.size(), places)


def _told_once(
    terms: Spotting, found: Sequence[tuple[tuple[float, ...], float] | None], begins: Callable[[int], float]
) -> list[Spotted]:
    """From seconds of pieces; `begins`: where a piece does, in seconds, from its first frame of the recording."""
    step, rows, spotted = terms.frames - terms.longest, iter(found), []
    for number, pieces in enumerate(terms.pieces):
        name = terms.recordings[number] if terms.recordings else str(number + 1)
        until = -1.0
        for piece in range(pieces):
            each = next(rows)
            if each is None:
                continue
            before = begins(piece * step)
            starts, end = tuple(before + start for start in each[0]), before + each[1]
            if starts[0] >= until:
                spotted.append(Spotted(name, starts, end))
            until = max(until, end)
    return spotted


def in_ours(terms: Spotting, found: Answers, sounds: Sequence[Sound]) -> list[Spotted]:
    """By recording, then by time."""
    hop, spotted = terms.mfcc.hop_s, []
    for place, sound in enumerate(sounds):
        name = str(sound) if isinstance(sound, str | Path) else str(place + 1)
        here = [
            Spotted(name, tuple(start * hop for start in each.starts), each.end * hop, keyword)
            for keyword, row in zip(terms.names, found, strict=True)
            if (each := row[place]) is not None
        ]
        spotted += sorted(here, key=lambda each: each.start)
    return spotted
