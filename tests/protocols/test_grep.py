"""A secret pattern in a text: found as Python's `re` finds it, and nothing else is seen.

Chi-square tests are at 1e-6 each.
"""

import importlib
import random
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ppspeech.channel import Channel
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto.transfer import GREETING_BYTES, PairSetup, Side
from ppspeech.errors import BadLengthError, PpspeechError, ProtocolError, RangeError
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import Party
from ppspeech.protocols.text import (
    ALPHABETS,
    PatternError,
    Sought,
    Tells,
    TextShape,
    Way,
    alphabet_of,
    find_in_clear,
    read_found,
    search,
    search_costs,
)
from ppspeech.protocols.text import grep as protocol
from ppspeech.protocols.text import shape as shapes
from tests.crypto.pairs import lasting_setup
from tests.protocols.text_reference import expected, random_lines, random_pattern

LETTERS = ALPHABETS["letters"]
ALARM = 1e-6


def ask(
    pattern: str, text: list[str], tells: Tells = "lines", way: Way | None = None, **more: Any
) -> tuple[Any, TextShape, Transcript]:
    """What the receiver is told, and the keeper's transcript."""
    letters = alphabet_of(more.pop("alphabet", "letters"))
    sought = Sought.of(pattern, letters, tells, way)
    width = max(len(letters.fold(line)) for line in text) + 1
    shape = replace(sought.shape(len(text), max(2, width), letters.bits, tells, way=way), **more)
    rows = letters.rows(text, shape.width, shape.lines)
    told, record = searched(shape, sought, rows)
    return read_found(shape, told), shape, record


def searched(shape: TextShape, sought: Sought, rows: np.ndarray) -> tuple[np.ndarray, Transcript]:
    halves, ends = lasting_setup(), memory_pair()
    record = Transcript(ends[1], keep_payloads=True)

    def party(channel: Channel, half: PairSetup, own: Any) -> Any:
        with half.session(channel):
            return search(channel, half, shape, own)

    told = run_together(
        lambda c: party(c, halves[Side.FIRST], sought), lambda _: party(record, halves[Side.SECOND], rows), ends
    )
    receiver = told[0] if shape.to == "seeker" else told[1]
    assert told[1 if shape.to == "seeker" else 0] is None
    return receiver, record


# Patterns and automata in the clear.


def check_random_pairs(patterns: int, lines: int, seed: int) -> int:
    draw, pairs = random.Random(seed), 0
    while patterns:
        pattern = random_pattern(draw)
        text = random_lines(draw, lines, 14)
        for tells in ("lines", "places"):
            try:
                found = find_in_clear(pattern, text, LETTERS, tells)
            except PatternError:  # it matches nothing at all, somewhere in every line
                assert re.search(pattern, "") or re.compile(pattern).search("x") or re.search(pattern, "zzz")
                continue
            assert found == expected(pattern, text, LETTERS, tells), (pattern, text)
            pairs += lines
        patterns -= 1
    return pairs


def test_automata_find_what_re_finds() -> None:
    assert check_random_pairs(150, 20, seed=1) >= 3_000


@pytest.mark.parametrize(
    ("pattern", "alphabet", "lines", "found"),
    [
        ("zoe", "letters", ["Zoë", "ZOE!", "zo e"], [0, 1]),
        ("strasse", "letters", ["Straße", "strase"], [0]),
        ("straße", "letters", ["STRASSE"], [0]),
        ("ﬁn", "letters", ["fin", "fn"], [0]),
        (r"\d\d", "letters", ["7", "42"], [1]),
        ("[0-4]x", "text", ["4x", "5x"], [0]),
        (r"a\.b\*", "text", ["a.b*", "axb*"], [0]),
        ("[]a]b", "text", ["]b", "ab", "cb"], [0, 1]),
        ("[a-]b", "text", ["-b", "ab", "bb"], [0, 1]),
        ("[^a]b", "letters", ["€b", "ab"], [0]),
        ("g[ag]tt?aca", "dna", ["ccGATACAcc", "gguuaca", "gctaca"], [0, 1]),
        ("HH (AH|EH) L OW", "phones", ["HH AH0 L OW1", "W ER L D", "SIL HH EH L OW SIL"], [0, 2]),
        ("[P B] . T$", "phones", ["B AE T", "P AE T S", "B AE T AE T"], [0]),
        ("^$", "letters", ["", " ", "a"], [0]),
        ("^a{2,3}$", "letters", ["a", "aa", "aaa", "aaaa"], [1, 2]),
    ],
)
def test_texts_are_folded_to_their_alphabet(pattern: str, alphabet: str, lines: list[str], found: list[int]) -> None:
    assert find_in_clear(pattern, lines, alphabet_of(alphabet), "lines") == found
    assert ask(pattern, lines, alphabet=alphabet)[0] == found


def test_every_alphabet_fits_its_bits() -> None:
    for alphabet in ALPHABETS.values():
        assert len(alphabet.symbols) < 1 << alphabet.bits <= 64
        assert len(set(alphabet.symbols)) == len(alphabet.symbols)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(a", "without its )"),
        ("a)", "without its ("),
        ("[a", "without its ]"),
        ("*a", "nothing before"),
        ("a**", "repeat of a repeat"),
        ("a+?", "lazy"),
        ("a{3,2}", "from few to more"),
        ("a{256}", "at most 255"),
        ("a{x}", r"write \\{"),
        ("(?=a)", "no part of this dialect"),
        (r"a\b", "no part of this dialect"),
        (r"\1", "no part of this dialect"),
        ("^*", "not repeated"),
        ("€", "is not in the alphabet"),
        ("[ß]", "2 symbols"),
        ("[z-a]", "no range"),
        ("a*", "every line has"),
        ("^", "every line has"),
        ("b?$", "every line has"),
        ("(" * 60 + "a" + ")" * 60, "within each other"),
        ("a" * 1001, "up to 1,000"),
        ("((a{200}){200}){200}", "too large"),
        ("a.{20}b+.{20}", "states"),
    ],
)
def test_patterns_that_cannot_be_are_refused_with_the_reason(pattern: str, said: str) -> None:
    with pytest.raises(RangeError, match=said.replace("(", r"\(").replace(")", r"\)") if "its" in said else said):
        Sought.of(pattern, LETTERS, "lines", None)


# Between two parties.


@pytest.mark.parametrize("tells", ["found", "count", "lines", "places"])
@pytest.mark.parametrize(
    ("pattern", "way"),
    [("c.t", None), ("c.t", "automaton"), ("^(the )?c[ao]t", None), ("c.t", "garbled"), ("(cat|sat)s?$", "garbled")],
)
def test_the_seeker_is_told_what_re_finds(pattern: str, way: Way | None, tells: Tells) -> None:
    lines = ["the cat sat", "", "cot", "a cats", "Cät", "c"]
    for to in ("seeker", "keeper"):
        found, shape, _ = ask(pattern, lines, tells, way, to=to)
        assert found == expected(pattern, lines, LETTERS, tells)
        assert way in (None, shape.way)


def check_pairs_encrypted(patterns: int, lines: int, seed: int) -> int:
    draw, pairs = random.Random(seed), 0
    while patterns:
        pattern, text = random_pattern(draw), random_lines(draw, lines, 10)
        text[0] = "a" * 10  # all of one width: costs are known from before
        tells: Tells = draw.choice(["lines", "places"])
        try:
            found, _, _ = ask(pattern, text, tells, draw.choice([None, "garbled"]) if patterns % 10 == 0 else None)
        except PatternError:
            continue
        assert found == expected(pattern, text, LETTERS, tells), (pattern, text)
        pairs, patterns = pairs + lines, patterns - 1
    return pairs


def test_random_pairs_are_found_as_re_finds_them() -> None:
    assert check_pairs_encrypted(25, 20, seed=2) == 500


@pytest.mark.slow
def test_ten_thousand_random_pairs_are_found_as_re_finds_them() -> None:
    assert check_pairs_encrypted(500, 20, seed=3) == 10_000


def test_rows_without_a_line_match_nothing() -> None:
    for pattern in ("^$", "^.?$", "^[^a]*$"):
        for tells, found in (("count", 1), ("lines", [0])):
            assert ask(pattern, ["", "aa"], tells, lines=6, width=5)[0] == found  # type: ignore[arg-type]
            assert ask(pattern, ["", "aa"], tells, "garbled", lines=6, width=5)[0] == found  # type: ignore[arg-type]


def test_sizes_of_patterns_are_rounded_up() -> None:
    for pattern, size in (
        ("a", 7),
        ("a{7}", 7),
        ("a{8}", 14),
        ("a+b", 16),
        ("(ab|cd)+e", 16),
        ("(abcdefg|hijklmnop)r", 32),
    ):
        assert Sought.of(pattern, LETTERS, "lines").size == size


def test_long_texts_go_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = random_lines(random.Random(5), 30, 12)
    for pattern, tells in (("ab", "places"), ("a.*b", "count"), ("(a|b)+c", "places")):
        whole, shape, _ = ask(pattern, lines, tells, width=16, lines=30)
        assert len(shape.portions) == 1
        with monkeypatch.context() as patch:
            patch.setattr(shapes, "MOST_PREPARED", 1 << 17)
            search_costs.cache_clear()
            parts, shape, record = ask(pattern, lines, tells, width=16, lines=30)
            assert len(shape.portions) > 1
            assert record.bytes_up + record.bytes_down == total_bytes(shape)
        search_costs.cache_clear()
        assert parts == whole == expected(pattern, lines, LETTERS, tells)


def total_bytes(shape: TextShape) -> int:
    return sum(cost.total_bytes for cost in search_costs(shape)) + 2 * GREETING_BYTES


CASES: list[tuple[str, str, Way | None, Tells]] = [
    ("c.t", "x[^a-z]", None, "lines"),
    ("c.t", "x[^a-z]", None, "places"),
    ("(c|t)a+", "^the [xyz]{3}$", "automaton", "count"),
    ("(c|t)a+", "[xyz]{3}q", "automaton", "places"),
    ("(c|t)a+", "[xyz]{3}q", "garbled", "found"),
    ("(c|t)a+", "[xyz]{3}q", "garbled", "places"),
]


@pytest.mark.parametrize(("one", "other", "way", "tells"), CASES)
def test_messages_depend_on_public_sizes_alone(one: str, other: str, way: Way | None, tells: Tells) -> None:
    texts = ["the cat", "", "a cot", "ta"], ["zzzzzz", "q0q0", "xyz", "?"]
    runs = [
        ask(pattern, lines, tells, way, width=9, lines=5) for pattern, lines in zip((one, other), texts, strict=True)
    ]
    assert runs[0][1] == runs[1][1]
    assert runs[0][2].shape() == runs[1][2].shape()
    assert sum(size for _, _, size in runs[0][2].shape()) == total_bytes(runs[0][1])


def bytes_of(record: Transcript, kind: CryptoKind, direction: str) -> np.ndarray:
    joined = b"".join(e.payload or b"" for e in record.entries if e.kind == kind and e.direction == direction)
    return np.frombuffer(joined, np.uint8)


@pytest.mark.parametrize("way", ["classes", "automaton", "garbled"])
def test_what_each_receives_is_uniform_but_for_what_is_told(way: Way) -> None:
    """The same line many times: choices, tables, cells and shares are spread over all bytes."""
    lines = ["cat cat"] * 512
    sizes = {"classes": CryptoKind.TABLES, "automaton": CryptoKind.TABLES, "garbled": CryptoKind.GARBLED}
    *_, record = ask("cat", lines, "lines", way)
    for kind, direction in ((sizes[way], "received"), (CryptoKind.ASK, "sent")):
        seen = bytes_of(record, kind, direction)
        assert len(seen) > 2_000
        assert stats.chisquare(np.bincount(seen, minlength=256)).pvalue > ALARM
    (share,) = [e.payload for e in record.entries if e.kind == CryptoKind.OPEN and e.direction == "sent"]
    ones = int(np.unpackbits(np.frombuffer(share or b"", np.uint8)).sum())
    assert stats.binomtest(ones, 512).pvalue > ALARM  # all lines match, and our shares of that are noise


def test_states_are_shared_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper's share of the state of 2,048 lines that are the same is uniform after every symbol."""
    room = importlib.import_module("ppspeech.protocols.text.search")  # its door offers the function
    shares: dict[Side, list[np.ndarray]] = {side: [] for side in Side}
    look_up = room.look_up_secret

    def watched(engine: Any, *given: Any) -> Any:
        shares[engine.party].append(look_up(engine, *given))
        return shares[engine.party][-1]

    shape = Sought.of("c[ao]t|dog", LETTERS, "lines").shape(2048, 6, 5, "lines")
    search_costs(shape)
    monkeypatch.setattr(room, "look_up_secret", watched)
    searched(shape, Sought.of("c[ao]t|dog", LETTERS, "lines"), LETTERS.rows(["a cat"] * 2048, 6, 2048))
    for side in Side:
        for share in shares[side][:-1]:
            assert stats.chisquare(np.bincount(share.astype(np.int64), minlength=16)).pvalue > ALARM
    states = [set((a ^ b).tolist()) for a, b in zip(shares[Side.FIRST], shares[Side.SECOND], strict=True)]
    assert all(len(each) == 1 for each in states)
    assert states[-1] == {1}


def test_an_active_keeper_that_asks_anything_learns_nothing_and_cannot_be_caught_out() -> None:
    """Symbols that no alphabet has, states that are not: whatever is asked, messages stay the same."""
    sought = Sought.of("c.t|dog", LETTERS, "lines")
    shape = sought.shape(4, 8, LETTERS.bits, "lines")
    honest = searched(shape, sought, LETTERS.rows(["cat", "dog"], 8, 4))[1]
    for seed in range(3):
        wild = np.random.default_rng(seed).integers(0, 32, (4, 8))
        assert searched(shape, sought, wild)[1].shape() == honest.shape()


def test_a_peer_that_sends_too_little_is_noticed() -> None:
    sought = Sought.of("c.t|dog", LETTERS, "lines")
    shape = sought.shape(4, 8, LETTERS.bits, "lines")
    for kind, error in ((CryptoKind.ASK, "seeker"), (CryptoKind.TABLES, "keeper")):
        halves, ends = lasting_setup(), memory_pair()

        class Short:
            """A channel that drops the last byte of one kind of message."""

            def __init__(self, channel: Channel, kind: int) -> None:
                self._channel, self._kind = channel, kind

            def send(self, kind: int, payload: bytes) -> None:
                self._channel.send(kind, payload[:-1] if kind == self._kind else payload)

            def receive(self, *given: Any, **more: Any) -> bytes:
                return self._channel.receive(*given, **more)

        def party(channel: Channel, half: PairSetup, own: Any, kind: int = kind) -> Any:
            short: Any = Short(channel, kind)
            with half.session(channel):
                return search(short, half, shape, own)

        with pytest.raises((BadLengthError, ProtocolError)):
            run_together(
                lambda c: party(c, halves[Side.FIRST], sought),  # noqa: B023
                lambda c: party(c, halves[Side.SECOND], LETTERS.rows(["cat"], 8, 4)),  # noqa: B023
                ends,
            )
        assert not all(half.usable for half in halves), error


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lines": 0}, "lines must lie in"),
        ({"width": 1}, "width must lie in"),
        ({"width": True}, "width must lie in"),
        ({"bits": 9}, "bits must lie in"),
        ({"lines": 1 << 20, "width": 4096}, "symbols"),
        ({"way": "other"}, "a search goes by"),
        ({"tells": "all"}, "a search goes by"),
        ({"to": "me"}, "a search goes by"),
        ({"size": 20}, "padded to"),
        ({"size": 128}, "padded to"),
        ({"size": 0}, "whole number"),
        ({"way": "classes", "size": 16}, "padded to 7"),
        ({"way": "classes", "size": 70}, "padded to 7"),
        ({"way": "garbled", "size": 2048}, "padded to"),
        ({"way": "garbled", "size": 1024, "lines": 4000}, "a garbled automaton of"),
        ({"more": 1}, "not the shape"),
    ],
    ids=str,
)
def test_shapes_that_cannot_be_are_refused(changed: dict[str, Any], said: str) -> None:
    sizes = {"lines": 4, "width": 8, "bits": 5, "way": "automaton", "size": 16}
    assert TextShape.from_params(TextShape(**sizes).to_params()) == TextShape(**sizes)  # type: ignore[arg-type]
    with pytest.raises(RangeError, match=said):
        TextShape.from_params(sizes | changed)


def test_what_is_not_of_the_shape_is_refused_before_anything_is_sent() -> None:
    nobody = memory_pair()[0]
    seeker, keeper = Party("seeker", {"keeper": nobody}), Party("keeper", {"seeker": nobody})
    shape = {"lines": 2, "width": 4, "way": "automaton", "size": 16}
    with pytest.raises(RangeError, match="2 lines were agreed on"):
        protocol.keep(keeper, ["a", "b", "c"], shape=shape)
    with pytest.raises(RangeError, match="wrap the text"):
        protocol.keep(keeper, ["abcd"], shape=shape)
    with pytest.raises(RangeError, match="alphabets are"):
        protocol.keep(keeper, ["a"], shape=shape, alphabet="greek")
    with pytest.raises(RangeError, match="list of lines"):
        protocol.keep(keeper, [1], shape=shape)  # type: ignore[list-item]
    with pytest.raises(RangeError, match="has 5 bits"):
        protocol.seek(seeker, "a", shape=shape | {"bits": 6})
    with pytest.raises(PatternError, match="needs an automaton"):
        protocol.seek(seeker, "a+", shape=shape | {"way": "classes", "size": 7})
    halves = lasting_setup()
    with halves[0].session(Resumed()), pytest.raises(RangeError, match="agree on more"):
        search(
            nobody,
            halves[0],
            TextShape(2, 4, 5, "automaton", 16),
            Sought.of("refund(s|ed) never comes", LETTERS, "lines"),
        )
    with halves[1].session(Resumed()), pytest.raises(RangeError, match="symbols was agreed on"):
        search(nobody, halves[1], TextShape(2, 4, 5, "automaton", 16), np.full((2, 4), 32))
    with halves[1].session(Resumed()), pytest.raises(PpspeechError, match="the first party seeks"):
        search(nobody, halves[1], TextShape(2, 4, 5, "classes", 7), Sought.of("ab", LETTERS, "lines"))


class Resumed:
    """A channel that says back what a greeting was."""

    def send(self, _: int, payload: bytes) -> None:
        self._said = payload

    def receive(self, *_: Any, **__: Any) -> bytes:
        return self._said


# Walks on a secret graph: the same automaton, made from edges.


MENU = {
    "edges": [
        ["start", "account", "account"],
        ["start", "help", "agent"],
        ["account", "balance", "told"],
        ["account", "close", "sure"],
        ["sure", "yes", "closed"],
        ["sure", "no", "account"],
        ["told", "back", "start"],
    ],
    "start": "start",
    "goals": ["closed", "agent"],
}
"""What a telephone answers to: which words lead where is the company's secret, what was said the caller's."""
WORDS = ["account", "help", "balance", "close", "yes", "no", "back"]


@pytest.mark.parametrize("way", ["automaton", "garbled"])
def test_walks_are_told_by_where_they_end(way: Way) -> None:
    taken = [
        ["account", "close", "yes"],
        ["account", "close", "no", "balance", "back", "help"],
        ["account", "balance"],
        ["help", "help"],
        ["balance"],
        [],
    ]
    shape = {"lines": 8, "width": 7, "way": way, "size": 16}
    terms = {"letters": WORDS, "shape": shape}
    told = run_together(
        lambda c: protocol.own_graph(
            Party("owner", {"walker": c}),
            MENU["edges"],
            MENU["start"],
            MENU["goals"],
            **terms,  # type: ignore[arg-type]
        ),
        lambda c: protocol.take_walks(Party("walker", {"owner": c}), taken, **terms),  # type: ignore[arg-type]
    )
    assert told == ([0, 1], None)


def test_graphs_and_walks_that_cannot_be_are_refused() -> None:
    nobody = memory_pair()[0]
    owner, walker = Party("owner", {"walker": nobody}), Party("walker", {"owner": nobody})
    terms: dict[str, Any] = {"letters": ["a", "b"], "shape": {"lines": 1, "width": 3, "size": 16}}
    for edges, said in (
        ([["x", "a", "y"], ["x", "a", "z"]], "leads from node"),
        ([["x", "c", "y"]], "the letters are"),
        ([["x", "a"]], "an edge is"),
    ):
        with pytest.raises(RangeError, match=said):
            protocol.own_graph(owner, edges, "x", ["y"], **terms)
    with pytest.raises(RangeError, match="1 walks were agreed"):
        protocol.take_walks(walker, [["a"], ["b"]], **terms)
    with pytest.raises(RangeError, match="up to 2 letters"):
        protocol.take_walks(walker, [["a", "a", "a"]], **terms)
    with pytest.raises(RangeError, match="told of as a whole"):
        protocol.take_walks(walker, [["a"]], letters=["a"], shape=terms["shape"] | {"tells": "places"})
    with pytest.raises(RangeError, match="different letters"):
        protocol.take_walks(walker, [["a"]], letters=["a", "a"], shape=terms["shape"])
