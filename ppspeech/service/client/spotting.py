"""The client of a search: where a keyword is said in a server's archive, or a server's keywords in our recordings.

The server of an archive sees how many words and units a keyword has, or how many words by example; one of keywords sees
how many recordings are asked about, up to a power of two, and how long the longest is, in blocks. Nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from ppspeech.arrays import Reals
from ppspeech.audio import Mfcc, Sound, features_of, in_usual_range
from ppspeech.errors import ModelError, RangeError, WrongSessionError
from ppspeech.protocols import meet_as_client
from ppspeech.protocols.search import (
    Answers,
    Found,
    Keywords,
    Recordings,
    SpotShape,
    ask,
    check_found,
    prepare,
    spotting_cost,
)
from ppspeech.service.client.connect import QUESTIONS, Client
from ppspeech.service.client.session import Answer, Clock
from ppspeech.service.offer import MOST_BYTES
from ppspeech.service.requests import Ask, Request
from ppspeech.service.seek import Keyword, sought
from ppspeech.service.tasks.spotting import Spotting

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

    @torch.no_grad()
    def frames(self, sound: Sound, rate: int | None = None) -> Reals:
        """A recording as the keywords take it, in the usual range of speech, `(frames, features)`; it stays here."""
        (features,) = features_of([sound], Mfcc(self._terms.mfcc), rate)
        return in_usual_range(features, self._terms.mfcc)

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
    hop, step, rows = terms.mfcc.hop_s, terms.frames - terms.longest, iter(found)
    spotted: list[Spotted] = []
    for number, pieces in enumerate(terms.pieces):
        name = terms.recordings[number] if terms.recordings else str(number + 1)
        until = -1.0
        for piece in range(pieces):
            each = next(rows)
            if each is None:
                continue
            starts, end = tuple((piece * step + start) * hop for start in each.starts), (piece * step + each.end) * hop
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
