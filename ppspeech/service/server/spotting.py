"""Searches for keywords: in an archive that is here, or for keywords that are here; and a session with either."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from ppspeech.bundle import Bundle, in_words
from ppspeech.channel import Channel
from ppspeech.crypto.lattice import EncodedWeights
from ppspeech.errors import RangeError
from ppspeech.network import run_together
from ppspeech.protocols import Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.search import (
    Keywords,
    Recordings,
    SpotShape,
    answer,
    answer_patches,
    ask,
    encode,
    encode_pieces,
    spotting_cost,
)
from ppspeech.service.archive import Archive
from ppspeech.service.estimate import Knowledge
from ppspeech.service.export_spotting import KeywordBundle, SpotDeployment, export_keywords
from ppspeech.service.offer import Offer
from ppspeech.service.requests import Ask, Request, Way
from ppspeech.service.server.book import Visitor
from ppspeech.service.server.session import Handler
from ppspeech.service.tasks.spotting import WAYS, PatchSize, PatchSizes, Sizes, Spotting, unpacked

USUAL = ((1,), (2,), (3,), (4,), (1, 1))
"""Sizes of keywords that are prepared before the first client."""
PROMISE = "Recordings, not a model: a client learns whether and where its keywords are said, and nothing else."


@dataclass(frozen=True, eq=False)
class Prepared:
    """What the server has, for a search of one shape."""

    own: Keywords | Recordings
    encoded: EncodedWeights

    def answer(self, met: Meeting) -> None:
        """The server's side of one search."""
        with met.session():
            answer(met, self.own, self.encoded)


@dataclass(frozen=True, eq=False)
class ServedArchive:
    """An archive; what searches of usual sizes need is made before the server forks, and shared by all sessions."""

    offer: Offer[Spotting]
    archive: Archive
    ready: dict[SpotShape, Prepared] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, archive: Archive) -> "ServedArchive":
        """Raises BundleError for an archive that is too large to be searched at once."""
        terms, hours = archive.terms, sum(archive.contents.lengths) * archive.contents.mfcc.hop_s / 3600
        said = f"Finds keywords in {len(terms.pieces)} recordings, {hours:.1f} hours of speech."
        served = cls(Offer(name, said, archive.fingerprint, PROMISE, terms=terms), archive)
        warm_up()
        shapes = [terms.example_shape(1, "frames")]
        for sizes in USUAL if terms.names else ():
            try:
                shapes.append(terms.spelled_shape(sizes, "frames"))
            except RangeError:  # a longer keyword than fits these pieces
                continue
        for shape in shapes:
            served.ready[shape] = served.prepared(shape)
            spotting_cost(shape)
        return served

    @property
    def usual_budget(self) -> int:
        """What follows from the bits that an answer tells of all frames."""
        terms = self.offer.terms
        return knowledge(terms.example_shape(1, "frames"), sum(self.archive.contents.lengths) * terms.mfcc.features)

    def prepared(self, shape: SpotShape) -> Prepared:
        """What a search of this shape needs of us."""
        if shape in self.ready:
            return self.ready[shape]
        own = self.archive.recordings(shape)
        return Prepared(own, encode(own))

    def meet(self, channel: Channel, visitor: Visitor) -> dict[Ask, Handler]:  # noqa: ARG002
        """Meet one client; it may ask with keywords of any size that can be searched for."""
        met, terms = meet_as_server(channel), self.offer.terms

        def spell(record: Channel, request: Request) -> None:
            shape = terms.spelled_shape(unpacked(request.steps), request.order)
            self.prepared(shape).answer(replace(met, channel=record))

        def example(record: Channel, request: Request) -> None:
            shape = terms.example_shape(len(unpacked(request.steps)), request.order)
            self.prepared(shape).answer(replace(met, channel=record))

        def patches(record: Channel, request: Request) -> None:
            size, own = PatchSize.of(request.steps), replace(met, channel=record)
            shape = terms.patch_shape(size)
            encoded = encode_pieces(shape, self.archive.patch_pieces(size))
            with own.session():
                answer_patches(own, shape, encoded)

        found = {Ask.SPOT_EXAMPLE: Handler(example, orders=WAYS, steps=Sizes(terms, spelled=False))}
        if terms.names:
            found[Ask.SPOT] = Handler(spell, orders=WAYS, steps=Sizes(terms, spelled=True))
        if terms.bands:
            found[Ask.SPOT_PATCHES] = Handler(patches, orders=("frames",), steps=PatchSizes(terms))
        return found


@dataclass(frozen=True, eq=False)
class ServedKeywords:
    """Keywords of a bundle, for recordings of clients. Searches are prepared when a client asks: there are many sizes,
    and models are small.
    """

    offer: Offer[Spotting]
    keywords: KeywordBundle

    @classmethod
    def of(cls, name: str, bundle: Bundle, deployment: SpotDeployment | None = None) -> "ServedKeywords":
        """Raises ModelError for a bundle without keywords; RangeError for scores that shares do not hold."""
        own = export_keywords(bundle, deployment)
        own.keywords(own.terms.own_shape(1, 1, "frames"))
        promise = f"{bundle.statement.guarantee}. {in_words(bundle.statement.guarantee)}"
        said = f"Looks for {len(bundle.labels)} keywords in your recordings."
        warm_up()
        return cls(Offer(name, said, bundle.fingerprint, promise, terms=own.terms), own)

    @property
    def usual_budget(self) -> int:
        """What follows from the bits that an answer of the longest recording tells of the models."""
        terms = self.offer.terms
        return knowledge(terms.own_shape(1, terms.steps[-1], "frames"), self.keywords.weights.size)

    def meet(self, channel: Channel, visitor: Visitor) -> Mapping[Ask, Handler]:  # noqa: ARG002
        """Meet one client; it may ask with some recordings at a time, each a query."""
        met, terms = meet_as_server(channel), self.offer.terms

        def search(record: Channel, request: Request) -> None:
            shape = terms.own_shape(request.utterances, request.steps, request.order)
            own = self.keywords.keywords(shape)
            Prepared(own, encode(own)).answer(replace(met, channel=record))

        return {Ask.SPOT: Handler(search, at_once=terms.together, orders=("frames",), steps=terms.steps)}


def knowledge(shape: SpotShape, numbers: int) -> int:
    """Queries that are answered, by what one tells of so many numbers."""
    return Knowledge.about(numbers, shape.keywords * shape.recordings * (shape.load + 1)).budget


@cache
def warm_up() -> None:
    """Compile before the first client comes, by tiny searches: every session's process inherits it."""
    ways: tuple[Way, ...] = WAYS
    for way in ways:
        passes = 1 if way == "average" else 0
        shape = SpotShape(8, 1, "linear", (1,), 4, 2, limit=30.0, radius=30.0, scores=(-40, 40), passes=passes)
        keyword = Keywords(shape, np.array([[[1.0, 0.0]]]), np.zeros(1), np.zeros(1))
        heard = Recordings(shape, [np.zeros((8, 1))], [np.zeros(8)])

        def asking(channel: Channel, keyword: Keywords = keyword) -> None:
            met = meet_as_client(channel)
            with met.session():
                ask(met, keyword)

        def answering(channel: Channel, heard: Recordings = heard) -> None:
            met = meet_as_server(channel)
            Prepared(heard, encode(heard)).answer(met)

        run_together(asking, answering)
