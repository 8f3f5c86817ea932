"""Every protocol that `ppspeech party` lists runs from the command line: real processes, TLS, one file a group."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from ppspeech.network import Address, make_certificate
from ppspeech.network.group.file import Group, Member
from ppspeech.protocols import PROTOCOLS
from tests.cli.protocol_table import Row, rows
from tests.ports import free_port

TABLE = Path(__file__).parents[2] / "docs" / "reference" / "who_sees_what.md"

# One interpreter loads the package; every party is a fork of it that runs the command, as a terminal would.
RUNNER = """
import json, os, sys
import torch
torch.set_num_threads(1)
from ppspeech.cli.app import app
from ppspeech.protocols import PROTOCOLS
for room in ("ppspeech.training.together", "ppspeech.evidence.published.protocols"):
    PROTOCOLS.look_in(room)
PROTOCOLS.names()
for commands in json.load(open(sys.argv[1])):
    children = []
    for words, screen in commands:
        child = os.fork()
        if child == 0:
            shown = os.open(screen, os.O_WRONLY | os.O_CREAT)
            os.dup2(shown, 1), os.dup2(shown, 2)
            code = 1
            try:
                app(words)
            except SystemExit as end:
                code = end.code or 0
            finally:
                sys.stdout.flush()
                os._exit(code)
        children.append(child)
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]), flush=True)
"""


for each in ("ppspeech.training.together", "ppspeech.evidence.published.protocols"):
    PROTOCOLS.look_in(each)


def test_every_listed_protocol_has_a_row() -> None:
    listed = {name for name in PROTOCOLS.names() if not name.startswith(("toy_", "doc_"))}
    assert listed == set(rows())
    for name in listed:
        assert {role for role, _, _ in rows()[name].members} == set(PROTOCOLS[name].parties)


def commands_of(name: str, row: Row, folder: Path) -> list[tuple[list[str], str]]:
    """What to type on each terminal, and where it shows."""
    folder.mkdir()
    members, commands = [], []
    for place, (role, inputs, _) in enumerate(row.members):
        who = f"{role}{place}"
        pin = make_certificate(folder / f"{who}.pem", folder / f"{who}.key", days=1)
        members.append(Member(who, role, pin, Address("127.0.0.1", free_port())))
        words = ["party", name, "--role", who, "--config", str(folder / "parties.yaml")]
        words += ["--certificate", str(folder / f"{who}.pem"), "--key", str(folder / f"{who}.key")]
        for number, given in enumerate(inputs):
            path = folder / f"{who}.{number}.json"
            path.write_text(json.dumps(given))
            words += ["--input", f"@{path}"]
        commands.append((words, str(folder / f"{who}.txt")))
    hub = next((member.name for member in members if member.role == row.hub), None)
    (folder / "parties.yaml").write_text(Group(name, tuple(members), hub, row.terms, 30.0).to_yaml())
    return commands


def on_two_terminals(row: Row, folder: Path) -> list[str]:
    """The same protocol without a file: one party listens, the other connects to what it prints."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "300"}
    shown: list[str] = []

    def start(words: list[str]) -> "subprocess.Popen[str]":
        command = [sys.executable, "-u", "-m", "ppspeech", "party", *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    (first, own, _), (_, others, _) = row.members
    terms = [word for name, value in row.terms.items() for word in ("--param", f"{name}={json.dumps(value)}")]
    listening = start(
        ["millionaires", "--role", first, "--listen", "127.0.0.1:0", "--input", json.dumps(own[0]), *terms]
    )
    assert listening.stdout is not None
    listening.stdout.readline()
    words = listening.stdout.readline().split()[2:]
    connecting = start(
        [*words[: words.index("--input")], "--input", json.dumps(others[0]), "--out", str(folder / "out")]
    )
    for process in (listening, connecting):
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, out + errors
        shown.append(out)
    return shown


BY_LOT = ("published_aggregation",)
"""Parties that a drawn order leaves in their own places send each other nothing: a run shows some of the messages."""

KIND = re.compile(r"\(`(\w+)`\)")


def who_sees_what(folders: dict[str, Path]) -> str:
    """From what every terminal showed: by protocol and role, which messages it received and what they are."""
    lines = [
        "# Who sees what",
        "",
        "What each party of a protocol receives, recorded by a run of every one that `ppspeech party` lists (made by",
        "`tests/cli/test_every_protocol.py`), and what its statement says it learns beside the result.",
    ]
    for name in sorted(folders):
        protocol = PROTOCOLS[name]
        lines += ["", f"## {name}", "", f"Computes {protocol.functionality}. Leaks: {protocol.leakage}.", ""]
        lines += ["| party | receives |", "|---|---|"]
        seen: dict[str, dict[str, str]] = {}
        for screen in sorted(folders[name].glob("*.txt")):
            for line in screen.read_text().splitlines():
                cells = [cell.strip() for cell in line.split("│")]
                if len(cells) == 8:
                    seen.setdefault(cells[1].rstrip("0123456789"), {})[cells[3]] = cells[4]
        for role in protocol.parties:
            told = [f"{what} (`{message}`)" for message, what in sorted(seen.get(role, {}).items())]
            lines.append(f"| {role} | {', '.join(told) or 'nothing'} |")
    return "\n".join(lines) + "\n"


def test_every_listed_protocol_runs(tmp_path: Path) -> None:
    plan: list[Any] = [commands_of(name, row, tmp_path / name) for name, row in rows().items()]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "300", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", RUNNER, str(tmp_path / "plan.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    wrong = []
    for (name, row), codes in zip(rows().items(), map(json.loads, done.stdout.splitlines()), strict=True):
        for place, (role, _, end) in enumerate(row.members):
            shown = (tmp_path / name / f"{role}{place}.txt").read_text()
            if codes[place] != 0 or end not in shown or "What each party saw" not in shown:
                wrong.append(f"{name} {role}, exit code {codes[place]}:\n{shown[-1500:]}")
    assert not wrong, "\n\n".join(wrong)
    found = who_sees_what({name: tmp_path / name for name in rows()})
    if "PPSPEECH_WRITE_DOCS" in os.environ:
        TABLE.write_text(found)
    stated, seen = TABLE.read_text(), found
    for name in BY_LOT:
        assert set(KIND.findall(_section(found, name))) <= set(KIND.findall(_section(stated, name))), name
        stated, seen = (text.replace(_section(text, name), "") for text in (stated, seen))
    assert stated == seen, "run this test with PPSPEECH_WRITE_DOCS=1 to write docs/reference/who_sees_what.md anew"


def _section(text: str, name: str) -> str:
    return text[text.index(f"## {name}\n") :].partition("\n## ")[0]


def test_two_parties_need_no_file(tmp_path: Path) -> None:
    listening, connecting = on_two_terminals(rows()["millionaires"], tmp_path)
    assert "alice: alice is richer" in listening
    assert "written to" in connecting
    assert json.loads((tmp_path / "out").read_text()) == "alice is richer"
