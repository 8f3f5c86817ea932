"""Identification on shares: the right name or nobody's, to whoever is named, and nothing about how many there are."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pytest
from scipy import stats

from ppspeech.crypto.message_kinds import Kind as CryptoKind
from ppspeech.crypto.shares import TEXT_RING, read_text, text_residues
from ppspeech.errors import ModelError, RangeError
from ppspeech.protocols import PROTOCOLS, run_in_memory
from ppspeech.protocols.meeting import Meeting
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.scores.linear import LinearColumns, LinearPlan
from ppspeech.protocols.speakers.identify import (
    Arranged,
    Identification,
    Identity,
    arrange_columns,
    client,
    identify_as_client,
    identify_as_server,
    server,
    third,
)
from tests.protocols.speaker_meeting import ask, unit

generator = np.random.default_rng(3)
MODELS = unit(generator.normal(size=(32, 9)))
NAMES = [f"speaker {number}" for number in range(9)]


@dataclass(frozen=True)
class Enrolled:
    """Speakers that are arranged anew for each query, and what is asked of them."""

    job: Identification
    columns: LinearColumns
    names: list[str]
    threshold: float = 0.5

    def arrange(self) -> Arranged:
        return arrange_columns(self.job, self.columns, self.names, self.threshold)


def enrolled(speakers: int, places: int, recipient: Literal["client", "server", "third"] = "client") -> Enrolled:
    job = Identification(LinearPlan(32, places, reach=2), recipient)
    return Enrolled(job, LinearColumns.of(MODELS[:, :speakers]), NAMES[:speakers])


def identify(
    who: Enrolled, embedding: np.ndarray
) -> tuple[Identity | None, Identity | None, list[tuple[str, int, int]]]:
    one, other, ours, _ = ask(
        lambda met: identify_as_client(met, who.job, embedding),
        lambda met: identify_as_server(met, who.job, who.arrange()),
    )
    return one, other, ours.shape()


@pytest.mark.parametrize(("speakers", "places"), [(1, 1), (1, 7), (9, 9), (9, 16), (5, 33)])
def test_the_best_name_or_nobody(speakers: int, places: int) -> None:
    who = enrolled(speakers, places)
    near = unit(MODELS[:, speakers - 1] + 0.05 * generator.normal(size=32))
    assert identify(who, near)[:2] == (Identity(NAMES[speakers - 1]), None)
    assert identify(who, -near)[:2] == (Identity(None), None)


def test_many_voices_against_plain_scores() -> None:
    who = enrolled(9, 12, "server")
    for _ in range(8):
        embedding = unit(MODELS @ generator.normal(size=9))
        scores = embedding @ MODELS
        wanted = NAMES[int(scores.argmax())] if scores.max() >= 0.5 else None
        assert identify(who, embedding)[:2] == (None, Identity(wanted))


@pytest.mark.parametrize(("places", "bits"), [(9, 4), (33, 6)])
def test_a_server_is_told_as_many_bits_as_name_a_place(places: int, bits: int) -> None:
    """Of all that a client sends these alone are not masked: of its voice, or of its key, whatever the server does."""
    who = enrolled(9, places, "server")
    _, _, ours, _ = ask(
        lambda met: identify_as_client(met, who.job, MODELS[:, 3]),
        lambda met: identify_as_server(met, who.job, who.arrange()),
    )
    opened = [each.payload for each in ours.entries if each.kind == CryptoKind.OPEN]
    assert who.job.told == bits
    assert [each is not None and len(each) == 1 and each[0] < 1 << bits for each in opened] == [True]
    assert enrolled(9, places).job.told == 0


def test_t_norm_rejects_as_in_the_clear() -> None:
    cohort = unit(generator.normal(size=(32, 12)))
    job = Identification(LinearPlan(32, 10, 12, reach=3), "server")
    who = Enrolled(job, LinearColumns.of(MODELS, cohort), NAMES, 2.0)
    answers = set()
    for trial in range(8):
        embedding = unit(generator.uniform(0, 0.7) * MODELS[:, trial] + 0.15 * generator.normal(size=32))
        scores, others = embedding @ MODELS, embedding @ cohort
        best = (scores.max() - others.mean()) / others.std(ddof=1)
        wanted = Identity(NAMES[int(scores.argmax())] if best >= 2.0 else None)
        assert identify(who, embedding)[1] == wanted
        answers.add(wanted)
    assert len(answers) > 2


def test_the_number_of_speakers_is_hidden_by_the_places() -> None:
    shapes = [identify(enrolled(speakers, 9), MODELS[:, 0])[2] for speakers in (1, 4, 9)]
    assert shapes[0] == shapes[1] == shapes[2]


def test_the_order_is_new_for_every_query_and_uniform() -> None:
    """Chi-square at 1e-4 on the place of the one speaker among four."""
    who = enrolled(1, 4)
    places = [int(np.flatnonzero(who.arrange().names.any(axis=1))[0]) for _ in range(400)]
    assert stats.chisquare(np.bincount(places, minlength=4)).pvalue > 1e-4


class Naming(Meeting):
    """A client that follows the protocol, except that it adds 1.5 to its share of the first place's score."""

    def multiply(self, plan, features):  # type: ignore[no-untyped-def]
        shares = super().multiply(plan, features)
        shares[0, 0] += plan.precision.result.encode(np.array([1.5])).view(np.uint64)[0]
        return plan.precision.result.ring.reduce(shares)


def test_an_active_client_reads_the_names_of_all_and_that_is_stated() -> None:
    """The stated limit: whoever is at the first place, in a new order every time, wins; a dummy is nobody."""
    who, found = enrolled(3, 4), set()
    stranger = unit(generator.normal(size=32))
    assert identify(who, stranger)[0] == Identity(None)
    for _ in range(40):  # one of three names is missed with probability 3 (3/4)^40, 3e-5
        one, *_ = ask(
            lambda met: identify_as_client(met, who.job, stranger),
            lambda met: identify_as_server(met, who.job, who.arrange()),
            wrap=lambda met: Naming(met.channel, met.setup, met.lattice),
        )
        assert one is not None
        found.add(one.name)
        if len(found) == 4:
            break
    assert found >= set(NAMES[:3])
    assert "reads the names" in PROTOCOLS["speaker_identification"].assumptions


def test_the_transcript_is_that_of_the_formula() -> None:
    who = enrolled(4, 9)
    shape = [(way, size) for way, kind, size in identify(who, MODELS[:, 0])[2] if kind != CryptoKind.RESUME]
    cost, product = who.job.cost, who.job.plan.product.job
    up, down = (sum(size for way, size in shape if way == which) for which in ("sent", "received"))
    assert up == cost.bytes_second + cost.offline_bytes_second + product.query_bytes
    assert down == cost.bytes_first + cost.offline_bytes_first + product.reply_bytes


def test_a_third_party_alone_learns_the_name() -> None:
    public = {"features": 3, "models": 4}
    models, names = [[1.0, 0, 0], [0, 1.0, 0]], ["Ada", "Grace"]
    for voice, wanted in (([0.1, 0.9, 0.0], "Grace"), ([0.0, 0.0, 1.0], "nobody")):
        said = run_in_memory(
            [
                ("client", lambda party, v=voice: client(party, v, **public)),
                ("server", lambda party: server(party, models, names, 0.5, **public)),
                ("third", lambda party: third(party, **public)),
            ]
        )
        assert said == ["the other party knows", "the other party knows", wanted]
    assert list(PROTOCOLS["speaker_identification_for_third"].parties) == ["client", "server", "third"]


def test_each_share_that_the_third_party_gets_is_uniform() -> None:
    """Chi-square at 1e-4 on the bytes of one party's shares of one and the same name; their sums spell it."""
    who = enrolled(3, 4, "third")
    shares: list[list[bytes]] = [[], []]

    class Post:
        def __init__(self, whose: int) -> None:
            self.whose = whose

        def send(self, kind: int, payload: bytes) -> None:
            assert kind == Kind.NAME_SHARE
            shares[self.whose].append(bytes(payload))

    for _ in range(40):
        ask(
            lambda met: identify_as_client(met, who.job, MODELS[:, 1], Post(0)),  # type: ignore[arg-type]
            lambda met: identify_as_server(met, who.job, who.arrange(), Post(1)),  # type: ignore[arg-type]
        )
    for mine in shares:
        counts = np.bincount(np.frombuffer(b"".join(mine), np.uint8) >> 4, minlength=16)
        assert stats.chisquare(counts).pvalue > 1e-4
    spelled = [
        np.frombuffer(b"".join(each[0][at : at + 7] + b"\0" for at in range(0, 21, 7)), "<u8") for each in shares
    ]
    assert read_text(TEXT_RING.join(*(each.astype(np.uint64) for each in spelled))) == NAMES[1]


@pytest.mark.parametrize(
    ("names", "places", "match"),
    [
        (["a"], 4, "as many names"),
        (["a", ""], 4, "1 to 21 bytes"),
        (["a", "b" * 22], 4, "1 to 21 bytes"),
        (["a", "b\0"], 4, "none of them zero"),
        (["a", "b"], 1, "do not fit"),
    ],
)
def test_speakers_that_cannot_be_enrolled_are_refused(names: list[str], places: int, match: str) -> None:
    job = Identification(LinearPlan(32, places))
    with pytest.raises(ModelError, match=match):
        arrange_columns(job, LinearColumns.of(MODELS[:, :2]), names, 0.5)


def test_bad_recipients_and_channels_are_refused() -> None:
    with pytest.raises(ModelError, match="third party"):
        Identification(LinearPlan(4, 2), "everybody")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="1 to 256"):
        Identification(LinearPlan(4, 2), longest_name=0)
    with pytest.raises(ModelError, match="only if"):
        identify_as_client(None, enrolled(2, 2, "third").job, MODELS[:, 0])  # type: ignore[arg-type]
    with pytest.raises(RangeError):
        identify_as_client(None, enrolled(2, 2).job, 2 * MODELS[:, 0])  # type: ignore[arg-type]
    arranged = enrolled(2, 3).arrange()
    with pytest.raises(ModelError, match="was made for"):
        identify_as_server(None, enrolled(2, 2).job, arranged)  # type: ignore[arg-type]


def test_a_name_that_is_no_text_is_shown_and_not_refused() -> None:
    """An error here would be a message to the server: whether this voice was the one with the bad name."""
    who = enrolled(1, 1)
    bad = replace(who.arrange(), names=text_residues(["ÿÿÿ"], 21) << np.uint64(4))
    one, other, *_ = ask(
        lambda met: identify_as_client(met, who.job, MODELS[:, 0]), lambda met: identify_as_server(met, who.job, bad)
    )
    assert other is None
    assert one is not None
    assert "\N{REPLACEMENT CHARACTER}" in str(one.name)


def test_it_runs_by_name_over_a_bare_channel() -> None:
    public = {"features": 2, "models": 3, "recipient": "server", "longest_name": 8}
    said = run_in_memory(
        [
            ("client", lambda party: client(party, [0.0, 1.0], **public)),
            ("server", lambda party: server(party, [[1.0, 0.0], [0.0, 1.0]], ["Ada", "Grace"], 0.5, **public)),
        ]
    )
    assert said == ["the other party knows", "Grace"]
