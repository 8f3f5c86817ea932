"""`ppspeech party` on two terminals: real processes, TLS, and clear words when something does not fit."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ppspeech.cli.app import guarded
from ppspeech.cli.party import _parse_input, party
from ppspeech.network import Address, make_certificate
from ppspeech.network.tls.listener import listen
from ppspeech.protocols import Party
from tests import fresh

PROGRAM = """
import typer
from ppspeech.cli.app import guarded
from ppspeech.cli.party import party
from ppspeech.protocols import register_protocol

adding = register_protocol("adding", functionality="the sum, to both", leakage="both inputs", assumptions="a toy")

def add(party, number, *, scale=1):
    party.channel.send(1, int(number).to_bytes(8, "big"))
    return scale * (number + int.from_bytes(party.channel.receive(1, size=8), "big"))

adding.party("ann")(add)
adding.party("bob")(add)
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(guarded(party))
app()
"""


def start(*words: str | Path) -> "subprocess.Popen[str]":
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "200"}
    command = [sys.executable, "-u", "-c", PROGRAM, *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True, env=environment
    )


def joining_words(listening: "subprocess.Popen[str]") -> list[str]:
    """What the party that listens tells the other to type, without the command's name and the input."""
    assert listening.stdout is not None
    assert "waiting at 127.0.0.1:" in listening.stdout.readline()
    line = listening.stdout.readline().split()
    assert line[:2] == ["ppspeech", "party"]
    return line[2 : line.index("--input")]


def end(process: "subprocess.Popen[str]", code: int = 0) -> str:
    out, errors = process.communicate(timeout=60)
    assert process.returncode == code, out + errors
    assert "Traceback" not in errors
    return out + errors


def test_two_terminals(tmp_path: Path) -> None:
    (tmp_path / "number").write_text("40\n")
    ann = start("adding", "--role", "ann", "--listen", "127.0.0.1:0", "--input", "2", "--param", "scale=10")
    words = joining_words(ann)
    assert re.fullmatch("[0-9a-f]{64}", words[words.index("--pin") + 1])
    bob = start(*words, "--input", f"@{tmp_path / 'number'}", "--transcript")
    shown = end(bob)
    assert "bob: 420" in shown
    assert "8 up" in shown
    assert "ann: 420" in end(ann)


def said_next(listening: "subprocess.Popen[str]") -> str:
    assert listening.stdout is not None
    return listening.stdout.readline()


def test_two_terminals_that_disagree_or_do_not_trust_each_other(tmp_path: Path) -> None:
    ann = start("adding", "--role", "ann", "--listen", "127.0.0.1:0", "--input", "2")
    words = joining_words(ann)
    refused = end(start(*words, "--input", "3", "--param", "scale=2"), code=2)
    assert "aborted" in refused
    assert "'scale': 2" in refused
    said = said_next(ann)
    assert "someone was refused" in said
    assert "'terms': {}" in said
    assert said.count("'terms': {'scale': 2}") == 1
    wrong = words.copy()
    wrong[wrong.index("--pin") + 1] = "ab" * 32
    assert "not the pinned one" in end(start(*wrong, "--input", "3"), code=2)
    assert "bob: 5" in end(start(*words, "--input", "3"))  # the right one is waited for
    assert "ann: 5" in end(ann)


@pytest.mark.parametrize("shown", [[], ["--ticket", "00" * 16]])
def test_whoever_comes_first_is_not_the_other_party(shown: list[str]) -> None:
    """One who knows the address and the certificate, which are public, and not the ticket."""
    ann = start("adding", "--role", "ann", "--listen", "127.0.0.1:0", "--input", "2")
    words = joining_words(ann)
    at = words.index("--ticket")
    assert re.fullmatch("[0-9a-f]{32}", words[at + 1])
    stranger = end(start(*words[:at], *words[at + 2 :], *shown, "--input", "3"), code=2)
    assert "5" not in stranger
    assert "someone was refused" in said_next(ann)
    assert "bob: 5" in end(start(*words, "--input", "3"))
    assert "ann: 5" in end(ann)


def test_two_of_one_role_are_told_at_once() -> None:
    ann = start("adding", "--role", "ann", "--listen", "127.0.0.1:0", "--input", "2")
    words = joining_words(ann)
    words[words.index("--role") + 1] = "ann"
    assert "aborted" in end(start(*words, "--input", "3"), code=2)
    assert "{'ann': 'connects', 'bob': 'listens'}" in said_next(ann)
    ann.kill()
    ann.communicate()


def test_ones_own_input_is_refused_before_anyone_comes(tmp_path: Path) -> None:
    """Nobody ever comes, and the party that would wait ends by itself."""
    words = "ppspeech party millionaires --role alice --listen 127.0.0.1:0 --param bits=8 --input five"
    alice = fresh.start(words, tmp_path)
    assert alice.end() == 2
    assert "numbers of 8 bits are whole" in alice.stderr
    assert alice.stderr.count("\n") == 1
    assert alice.stdout == ""


def test_a_silent_peer_is_given_no_longer_than_was_said() -> None:
    """The handshake has the same end: with its own of 10 s this would not be over when the peer goes after 5."""
    with listen(Address("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        bob = start(*f"adding --role bob --connect 127.0.0.1:{port} --insecure --input 3 --seconds 0.3".split())
        said = end(bob, code=2)
    assert "did not answer in time" in said
    assert len(said.splitlines()) == 1


def test_certificates_of_ones_own(tmp_path: Path) -> None:
    for name in ("server", "client"):
        make_certificate(tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
    server = [
        "--certificate",
        tmp_path / "server.pem",
        "--key",
        tmp_path / "server.key",
        "--ca",
        tmp_path / "client.pem",
    ]
    client = [
        "--certificate",
        tmp_path / "client.pem",
        "--key",
        tmp_path / "client.key",
        "--ca",
        tmp_path / "server.pem",
    ]
    ann = start("adding", "--role", "ann", "--listen", "127.0.0.1:0", "--input", "2", *server)
    words = joining_words(ann)
    address = words[words.index("--connect") + 1]
    assert "bob: 5" in end(start("adding", "--role", "bob", "--connect", address, "--input", "3", *client))
    assert "ann: 5" in end(ann)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonesuch"], "no protocol called"),
        (["adding", "--role", "eve"], "roles ann, bob"),
        (["adding", "--role", "ann"], "either --connect or --listen"),
        (
            ["adding", "--role", "ann", "--listen", "x", "--connect", "y", "--input", "1"],
            "either --connect or --listen",
        ),
        (["adding", "--role", "ann", "--connect", "127.0.0.1:1"], "ann of adding brings number: got 0 inputs"),
        (["adding", "--role", "ann", "--connect", "127.0.0.1:1", "--input", "1", "--param", "x=1"], "no term x"),
        (["adding", "--role", "ann", "--connect", "127.0.0.1:1", "--input", "1", "--param", "x"], "NAME=VALUE"),
        (["adding", "--role", "ann", "--connect", "127.0.0.1", "--input", "1", "--insecure"], "HOST:PORT"),
        (["adding", "--role", "ann", "--connect", "127.0.0.1:1", "--input", "1"], "fingerprint"),
        (["adding", "--role", "ann", "--connect", "10.0.0.1:1", "--input", "1", "--insecure"], "loopback"),
        (["adding", "--role", "ann", "--connect", "127.0.0.1:1", "--input", "1", "--insecure"], "nobody listens"),
        (["adding", "--role", "ann", "--connect", "127.0.0.1:1", "--input", "@absent"], "cannot read the input"),
    ],
)
def test_what_does_not_fit_is_a_word_and_exit_code_2(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = typer.Typer()
    app.command()(guarded(party))
    from ppspeech.protocols import party as registry

    adding = registry.RegisteredProtocol("adding", functionality="x", leakage="x", assumptions="x")

    def add(party: Party, number: int, *, scale: int = 1) -> int:
        party.channel.send(1, b"")
        return number * scale

    adding.party("ann")(add)
    adding.party("bob")(add)
    monkeypatch.setitem(registry.PROTOCOLS._entries, "adding", adding)
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2, result.output
    assert said in result.output
    described = CliRunner().invoke(app, ["adding"])
    assert described.exit_code == 0
    assert "adding, between ann and bob" in described.output


def test_private_inputs_need_not_stand_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "list").write_text("[1, 2.5]\n")
    monkeypatch.setattr(typer, "prompt", lambda text, hide_input: "7" if hide_input else "shown")
    read = [_parse_input(text) for text in ("-", f"@{tmp_path / 'list'}", "true", "open sesame")]
    assert read == [7, [1, 2.5], True, "open sesame"]


def test_a_transcript_calls_messages_by_name(tmp_path: Path) -> None:
    party = "ppspeech party millionaires --param bits=8 --role"
    alice = fresh.start(f"{party} alice --listen 127.0.0.1:0 --input 7 --transcript", tmp_path)
    while not (found := re.search(r"--connect \S+ --pin \w{64} --ticket \w{32}", alice.stdout)):
        assert alice.process.is_alive(), alice.stderr
        time.sleep(0.01)
    bob = fresh.start(f"{party} bob {found[0]} --input 5", tmp_path)
    assert (bob.end(), alice.end()) == (0, 0)
    assert "alice is richer" in bob.stdout
    assert "base_point" in alice.stdout
