"""A text that is served over TLS: clients learn what they ask for, the server sizes alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import BundleError, ModelError, PpspeechError, ProtocolError, RangeError, WrongSessionError
from ppspeech.network import run_together
from ppspeech.protocols import Kind
from ppspeech.protocols.text import TextShape
from ppspeech.service import BudgetSpentError, Serving, TextDeployment, connect, serve
from ppspeech.service.client import text as client_module
from ppspeech.service.client.session import ClientSession
from ppspeech.service.requests import Ask, Request
from ppspeech.service.server.sources import Choices, named, served_as
from ppspeech.service.server.text import ServedText
from ppspeech.service.tasks.text import Texts, receive_wanted, send_wanted

CALLS = ["Hello, this is Zoë.", "I want my MONEY back!", "", "no refund, no money", "12 May"]
SECRET = "kangaroo court"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("texts")
    (folder / "calls.txt").write_text("\n".join([*CALLS, SECRET]), encoding="utf-8")
    (folder / "genome").write_text("gattaca\ncccc\nuuaca")
    with serve(
        folder / "calls.txt",
        folder / "genome",
        texts=TextDeployment("text", "places"),
        budget=40,
        state=folder / "state",
    ) as running:
        yield running


def test_a_client_learns_what_it_asks_for(served: Serving) -> None:
    with connect(served.address, pin=served.pin, model="calls.txt", keep_payloads=True) as client:
        assert client.search("money").value == [(1, 10), (3, 14)]
        assert client.search("mon(ey|th)", "lines").value == [1, 3]
        assert client.search("mon(ey|th)", "count", "garbled").value == 2
        answer = client.search("zoe|12", "found")
        assert answer.value is True
        assert answer.how == "automaton"
        assert answer.rounds > 24
        assert client.offer.terms.lines == 64  # how many lines there are is rounded up, and so is their width
        assert client.offer.terms.width == 24
        said = b"".join(entry.payload or b"" for entry in answer.transcript.entries)
        assert SECRET.encode() not in said


def test_two_patterns_of_one_size_look_alike_to_the_server(served: Serving) -> None:
    with connect(served.address, pin=served.pin, model="calls.txt") as client:
        runs = [client.search(pattern, "lines") for pattern in ("m[oa]+n", "^(1|2)+ ma")]
    assert runs[0].value == [1, 3]
    assert runs[0].transcript.shape() == runs[1].transcript.shape()


def test_slow_links_get_a_garbled_automaton(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "SLOW", 0.0)
    with connect(served.address, pin=served.pin, model="genome") as client:
        answer = client.search("ga?tt+", "lines")
        assert (answer.value, answer.how) == ([0], "garbled")
        assert answer.rounds < 8
        monkeypatch.setattr(client_module, "MOST_BYTES", 1 << 16)
        with pytest.raises(WrongSessionError, match="would exchange"):
            client.search("ga?tt+", "lines")


def test_what_cannot_be_asked_is_refused_before_a_query_is_spent(served: Serving) -> None:
    with pytest.raises(PpspeechError, match=r"several models, choose one of calls\.txt, genome"):
        connect(served.address, pin=served.pin)
    with pytest.raises(PpspeechError, match="ask it with `ppspeech grep`"):
        connect(served.address, pin=served.pin, task="words")
    with connect(served.address, pin=served.pin, model="genome") as client:
        before = client.queries_left
        with pytest.raises(RangeError, match="cannot be read"):
            client.search("(a")
        with pytest.raises(ModelError, match="does not recognize_all"):
            client.recognize("clip.wav")
        assert client.queries_left == before


def test_a_budget_ends(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("one\ntwo")
    with serve(tmp_path / "note", budget=2) as running, connect(running.address, pin=running.pin) as client:
        assert client.search("two").value == [1]
        with pytest.raises(RangeError, match="tells found, count, lines, not places"):
            client.search("two", "places")
        client.search("one")
        with pytest.raises(BudgetSpentError):
            client.search("one")


def insist(session: ClientSession, wanted: bytes) -> None:
    with session.asking(Request(Ask.SEARCH)) as record:
        record.send(Kind.REQUEST, wanted)
        with session.met.session(record):
            record.receive(Kind.READY, 1)


def test_an_active_client_is_let_go_and_others_are_served(served: Serving) -> None:
    """Searches that are not offered, or too large, and bytes that are none: the session ends, nothing else does."""
    for wanted in (b"\x09\x00\x00\x07", b"\x00\x09\x00\x07", b"\x01\x02\x00\x07", b"\x02\x02\x08\x00", b"\x00"):
        with connect(served.address, pin=served.pin, model="genome") as client:
            session = client.session(lambda channel: PairSetup.agree(channel, Side.FIRST))
            with pytest.raises(ProtocolError):
                insist(session, wanted)
    with connect(served.address, pin=served.pin, model="genome") as client:
        assert client.search("cc", "count").value == 1


def test_what_is_wanted_is_read_as_it_was_written() -> None:
    terms = Texts("letters", 64, 16, "lines")
    for way, size, tells in (("classes", 7, "found"), ("automaton", 64, "count"), ("garbled", 1024, "lines")):
        shape = terms.shape(way, size, tells)
        told = run_together(lambda c, s=shape: send_wanted(c, s), lambda c: receive_wanted(c, terms))  # type: ignore[misc]
        assert told[1] == shape


def test_terms_and_texts_that_cannot_be_are_refused(tmp_path: Path) -> None:
    for given, said in ((("greek", 64, 16, "lines"), "alphabets are"), (("dna", 64, 1, "lines"), "width must lie")):
        with pytest.raises(BundleError, match=said):
            Texts(*given)  # type: ignore[arg-type]
    with pytest.raises(BundleError, match="tells found"):
        TextDeployment(tells="all")  # type: ignore[arg-type]
    with pytest.raises(PpspeechError, match="no text"):
        ServedText.of("empty", ["", ""], tmp_path)
    (tmp_path / "long").write_text("a" * 5_000)
    with pytest.raises(PpspeechError, match="width must lie in"):
        served_as("long", named([tmp_path / "long"])["long"], Choices(), tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PpspeechError, match="cannot read the text"):
        named([tmp_path / "binary"])


def test_a_text_keeps_its_name_where_its_key_is_kept_and_nobody_can_guess_it(tmp_path: Path) -> None:
    names = [ServedText.of("t", ["a text"], folder).offer.fingerprint for folder in (tmp_path, tmp_path)]
    (tmp_path / "other").mkdir()
    assert names[0] == names[1] != ServedText.of("t", ["a text"], tmp_path / "other").offer.fingerprint
    assert names[0] != ServedText.of("t", ["a test"], tmp_path).offer.fingerprint
    assert (tmp_path / "text.key").stat().st_mode & 0o077 == 0
    assert (tmp_path / "text.key").stat().st_size == 32


def test_usual_budgets_follow_from_what_is_told(tmp_path: Path) -> None:
    lines = ["a line of forty-four letters or a few more.."] * 1_000
    budgets = [
        ServedText.of("t", lines, tmp_path, TextDeployment(tells=tells)).usual_budget  # type: ignore[arg-type]
        for tells in ("found", "count", "lines", "places")
    ]
    assert budgets == [44 * 1_000 * 5 // 10, 44 * 1_000 * 5 // 100, 22, 10]
    assert TextShape(1_000, 48, 5, "classes", 7, "places").answer_bits == 48_000
