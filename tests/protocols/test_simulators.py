"""Views of every party of every protocol, beside views that were drawn without anybody's input.

Of each party: some runs on one input (from which the simulator takes the format), some on a very different one. Order,
kinds and sizes are the same, exactly; bits that do not vary are the same for both inputs, by a binomial test a message;
the bytes of each kind are spread as the simulated ones are, by chi-square tests a kind and party. All are at 1e-8, and
there are some ten thousand of them: a false alarm is expected once in ten thousand runs. What they would notice is
shown by leaving masks out.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto.shares.correlations import Asked, Correlations, Offered
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import PpspeechError, ProtocolError
from ppspeech.network import Transcript, run_together
from ppspeech.protocols import PROTOCOLS, Party, run_in_memory
from ppspeech.protocols.message_kinds import kind_of
from ppspeech.protocols.search import SpotShape
from ppspeech.protocols.simulator import RELEASED, SHOWN, Format, simulate
from tests.cli.protocol_table import Row, draw, rows
from tests.protocols.spotting_reference import made_keywords, plain_keywords
from tests.protocols.test_discrete_keyword import made_tables, plain_tables
from tests.protocols.word_reference import made_models, plain_models

FALSE_ALARM = 1e-8
RUNS = 4

for room in ("ppspeech.training.together", "ppspeech.evidence.published.protocols"):
    PROTOCOLS.look_in(room)

TELLS = {"personal_filters", *(name for name in rows() if name.startswith("published_"))}
"""Protocols of which there is no simulator: their statements say what is told."""
LONG = {"train_words"}
"""Others of its family are quick."""

Views = dict[str, list[list[tuple[int, bytes]]]]
"""By party and whom it hears: the messages of each run."""


# Inputs that have nothing in common with the table's but their sizes.


def turned(value: Any) -> Any:
    """Other numbers of the same length: vectors of a length keep it, indices of two are the other one."""
    match value:
        case float():
            return -value
        case int():
            return 1 - value
        case list():
            return [turned(each) for each in value]
        case dict():
            return {name: turned(each) if name == "means" else each for name, each in value.items()}
    return value


def other_inputs(name: str, row: Row) -> list[list[Any]]:
    """Very different ones, in the order of the members."""
    own = [inputs for _, inputs, _ in row.members]
    far = [[2.5 * x + 1 for x in frame] for frame in draw(5, 2, seed=9)]
    words = made_models(seed=77, words=2, states=2, frames=6, dimensions=2)
    tables = made_tables(4, 77, words=2, states=2, frames=6)
    vectors = made_models(
        seed=77, words=2, states=1, frames=1, dimensions=2, terms="linear", moves=(0,), operation="viterbi"
    )

    def sought(holder: str) -> Any:
        shape = SpotShape.from_params(rows()["spotting" if holder == "server" else "spotting_own"].terms["shape"])
        return made_keywords(shape, seed=9, threshold=50.0)

    def far_recordings(holder: str) -> dict[str, Any]:
        shape = sought(holder).shape
        return {"frames": [(3 * np.ones((5, shape.dimensions))).tolist()], "garbage": [[7.0] * 5]}

    def labeled() -> list[list[Any]]:
        return [[], *([[[7 * row[1], -row[0], 1 - row[2]] for row in data]] for (data,) in own[1:])]

    chosen: dict[str, Callable[[], list[list[Any]]]] = {
        "millionaires": lambda: [[250], [1]],
        "eigen": lambda: [[far] for _ in own],
        "eigenvector": lambda: [[far], [far]],
        "eigenvector_vertical": lambda: [[[row[:1] for row in far]], [far]],
        "keyword": lambda: [[(3 * np.ones((5, 2))).tolist()], [plain_models(words)]],
        "keyword_stream": lambda: [[(3 * np.ones((5, 2))).tolist()], [plain_models(words)]],
        "keyword_outcome": lambda: [[[[3.0, 3.0], [3.0, -3.0]]], [plain_models(vectors)]],
        "keyword_watch": lambda: [[[[3.0, 3.0], [3.0, -3.0]]], [plain_models(vectors)]],
        "discrete_keyword": lambda: [[[3, 3, 3, 3, 3]], [plain_tables(tables)]],
        "spotting": lambda: [[plain_keywords(sought("server"))], [far_recordings("server")]],
        "spotting_own": lambda: [[far_recordings("client")], [plain_keywords(sought("client"))]],
        "templates": lambda: [[turned(own[0][0])], [[turned(each) for each in own[1][0]], ["other", "names"]]],
        "network": lambda: [[turned(own[0][0])], [{**own[1][0], "matrices": turned(own[1][0]["matrices"])}]],
        "network_training": lambda: [[turned(own[0][0])], [turned(own[1][0])]],
        "alignment": lambda: [[turned(own[0][0])], [own[1][0], -100.0]],
        "patches": lambda: [[[[-0.5, 0.5]] * 2, [-0.9, 0.3], [-2.0, 7.0], 3.0], [[[[0.6, -0.6]] * 4] * 2]],
        "music": lambda: [[[[1] * 32] * 4], [[[[-1] * 32] * 12], ["other"], 0.0]],
        "landmarks": lambda: [[[]], [[[[4_000_000, 3]]], ["other"]]],
        "beliefs": lambda: [[], [], [[-4.0]], [[4.0, 0.0]]],
        "beliefs_peers": lambda: [[-4.0], [4.0], [-1.0]],
        "grep": lambda: [["x+[^a-m]"], [["x marks", "", "a spot", "xxz"]]],
        "walk": lambda: [[[["hall", "back", "hall"]], "hall", ["vault"]], [[[], ["back"] * 3]]],
        "speaker_verification_hardened": lambda: [[turned(own[0][0]), own[0][1]], turned(own[1])],
        "speaker_identification_crowd": lambda: [
            [turned(own[0][0])],
            [turned(own[1][0]), ["other", "names"], 0.9],
        ],
        "train_average": labeled,
        "train_descent": labeled,
        "train_words": lambda: [[], *([{**each[0], "utterances": turned(each[0]["utterances"])}] for each in own[1:])],
    }
    return chosen[name]() if name in chosen else turned(own)


# Real views.


class OnePair:
    """Transfers that two parties keep from run to run: agreeing on them is the same in all protocols, and slow."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._agree = PairSetup.agree
        self.renew()
        monkeypatch.setattr(PairSetup, "agree", classmethod(lambda _, channel, party: self._halves[party]))

    def renew(self) -> None:
        self._halves = run_together(lambda c: self._agree(c, Side.FIRST), lambda c: self._agree(c, Side.SECOND))


@pytest.fixture
def one_pair(monkeypatch: pytest.MonkeyPatch) -> OnePair:
    return OnePair(monkeypatch)


def views_of(name: str, row: Row, inputs: list[list[Any]], runs: int) -> Views:
    """What every party received from every other in some runs; greetings, which repeat its own, left out."""
    found: Views = {}

    def watched(role: str, own: list[Any]) -> tuple[str, Callable[[Party], object]]:
        program = PROTOCOLS[name].bind(role, own, row.terms)

        def run(party: Party) -> object:
            records = {seat: Transcript(channel, keep_payloads=True) for seat, channel in party.channels.items()}
            result = program(replace(party, channels=records))
            for seat, record in records.items():
                received = [
                    (entry.kind, entry.payload or b"")
                    for entry in record.entries
                    if entry.direction == "received" and entry.kind != CryptoKind.RESUME
                ]
                found.setdefault(f"{party.seat} from {seat}", []).append(received)
            return result

        return role, run

    for _ in range(runs):
        members = zip((role for role, _, _ in row.members), inputs, strict=True)
        run_in_memory([watched(role, own) for role, own in members], row.hub)
    return found


def by_kind(views: list[list[tuple[int, bytes]]]) -> dict[int, np.ndarray]:
    """All bytes of each kind."""
    joined: dict[int, bytes] = {}
    for kind, payload in (message for view in views for message in view):
        joined[kind] = joined.get(kind, b"") + payload
    return {kind: np.frombuffer(data, np.uint8) for kind, data in joined.items()}


# Beside simulated ones.


def check_view(real: list[list[tuple[int, bytes]]], other: list[list[tuple[int, bytes]]]) -> None:
    """A party's real views on two inputs beside simulated ones. Raises AssertionError where they can be told apart."""
    form, again = Format.of(real), Format.of(other)
    assert form.kinds == again.kinds
    assert [len(each) for each in form.fixed] == [len(each) for each in again.fixed]
    for kind, *parts in zip(form.kinds, form.fixed, again.fixed, form.varies, again.varies, strict=True):
        if kind not in RELEASED:
            check_format(kind, *parts)
    output = {kind: [data for each, data in real[0] if each == kind] for kind in RELEASED}
    simulated = by_kind([simulate(form, output) for _ in real])
    for kind, drawn in simulated.items():
        if kind in RELEASED:
            continue
        for view in (real, other):
            assert looks_alike(by_kind(view)[kind], drawn), f"{kind_of(kind)!r} is not as it is simulated"


def check_format(kind: int, fixed: np.ndarray, other: np.ndarray, varies: np.ndarray, moving: np.ndarray) -> None:
    """Bits that vary for neither input are the same for both, but for those that did not vary by chance."""
    still = ~(varies | moving)
    differ = int(np.bitwise_count((fixed ^ other) & still).sum())
    bits = int(np.bitwise_count(varies | moving | (fixed ^ other)).sum())
    assert stats.binom.sf(differ - 1, bits, 2.0 ** (1 - 2 * RUNS)) > FALSE_ALARM or not differ, kind_of(kind)


def looks_alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two samples of bytes may be spread alike; values that are rare in both are counted as one."""
    counts = np.array([np.bincount(each, minlength=256) for each in (one, other)])
    often = counts.sum(axis=0) >= 20
    table = np.column_stack([counts[:, often], counts[:, ~often].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2:
        return True
    return bool(stats.chi2_contingency(table).pvalue > FALSE_ALARM)


def simulated_protocols() -> list[Any]:
    listed = [name for name in rows() if name not in TELLS]
    return [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in listed]


@pytest.mark.parametrize("name", simulated_protocols())
def test_what_every_party_receives_can_be_drawn_without_inputs(name: str, request: pytest.FixtureRequest) -> None:
    row = rows()[name]
    if name not in {"eigen", "beliefs_peers"}:  # where three agree, each pair has its own
        request.getfixturevalue("one_pair")
    real = views_of(name, row, [inputs for _, inputs, _ in row.members], RUNS)
    other = views_of(name, row, other_inputs(name, row), RUNS)
    assert real.keys() == other.keys()
    assert sum(len(view[0]) for view in real.values()) >= 2
    for party, views in real.items():
        if views[0] or other[party][0]:
            check_view(views, other[party])


def test_agreeing_on_transfers_can_be_drawn() -> None:
    """What the others leave out: points, and columns."""
    row = rows()["millionaires"]
    real, other = (views_of("millionaires", row, inputs, RUNS) for inputs in ([[7], [5]], [[255], [0]]))
    for party, views in real.items():
        check_view(views, other[party])


@pytest.mark.parametrize("name", sorted(TELLS))
def test_protocols_without_a_simulator_say_so(name: str) -> None:
    """And there is none: one of their messages cannot be drawn."""
    assert "no simulator" in PROTOCOLS[name].leakage
    row = rows()[name]
    views = views_of(name, row, [inputs for _, inputs, _ in row.members], 1)
    assert {kind for each in views.values() for kind, _ in each[0]} & SHOWN


def test_every_listed_protocol_is_simulated_or_says_that_it_cannot_be() -> None:
    listed = {name for name in PROTOCOLS.names() if not name.startswith(("toy_", "doc_"))}
    assert listed == set(rows())
    assert {name for name in listed if "no simulator" in PROTOCOLS[name].leakage} == TELLS


# What it notices.


def without_choice(self: Correlations, shape: object, count: int) -> Asked:
    own = _asked(self, shape, count)  # type: ignore[arg-type]
    return Asked(np.zeros_like(own.choices), own.pads)


def without_pads(self: Correlations, shape: object, count: int) -> Offered:
    own = _offered(self, shape, count)  # type: ignore[arg-type]
    return Offered(np.zeros_like(own.pads), np.zeros_like(own.masks))


_asked, _offered = Correlations.take_asked, Correlations.take_offered


@pytest.mark.parametrize(("door", "leaky"), [("take_asked", without_choice), ("take_offered", without_pads)])
def test_a_mask_left_out_is_noticed(
    door: str, leaky: Callable[..., object], one_pair: OnePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Correlations, door, leaky)
    row = rows()["discrete_keyword"]
    real = views_of("discrete_keyword", row, [inputs for _, inputs, _ in row.members], RUNS)
    other = views_of("discrete_keyword", row, other_inputs("discrete_keyword", row), RUNS)
    seen = []
    for party, views in real.items():
        try:
            check_view(views, other[party])
        except AssertionError:
            seen.append(party)
    assert seen == [{"take_asked": "server from client", "take_offered": "client from server"}[door]]


def test_a_byte_that_is_told_is_noticed() -> None:
    """In the clear, at a fixed place of a message that is uniform elsewhere."""

    def view(told: int) -> list[tuple[int, bytes]]:
        return [(CryptoKind.TABLES, np.random.default_rng().bytes(200) + bytes([told] * 8))]

    check_view([view(5) for _ in range(RUNS)], [view(5) for _ in range(RUNS)])
    with pytest.raises(AssertionError):
        check_view([view(0) for _ in range(RUNS)], [view(255) for _ in range(RUNS)])


def test_messages_that_differ_in_kind_or_size_have_no_format() -> None:
    one, two, three = [(1, b"ab")], [(1, b"abc")], [(2, b"ab")]
    for other in (two, three, one + one):
        with pytest.raises(ProtocolError, match="differ in kinds, sizes or order"):
            Format.of([one, other])
    filtered = min(SHOWN)
    with pytest.raises(PpspeechError, match="cannot be drawn without an input"):
        simulate(Format.of([[(filtered, b"a")], [(filtered, b"b")]]))
