"""`ppspeech party --config` with several parties: results, tables, and clear words."""

import io
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
import yaml  # type: ignore[import-untyped]
from rich.console import Console
from typer.testing import CliRunner

from ppspeech.bundle import load_bundle
from ppspeech.cli.app import guarded
from ppspeech.cli.party import _parse_input, _read_own, party
from ppspeech.cli.party_example import example_file
from ppspeech.cli.party_group import check_out, run_in_group
from ppspeech.errors import PpspeechError
from ppspeech.network import Address, Limits, make_certificate
from ppspeech.network.group.file import Group, Member
from ppspeech.network.group.identity import Identity
from ppspeech.protocols import NOBODY, PROTOCOLS, Party, rehearse
from ppspeech.protocols import party as registry
from ppspeech.training.together import terms_of
from tests.ports import free_port

PROTOCOLS.look_in("ppspeech.training.together")
LIMITS = Limits(message_seconds=20.0)


def write_group(folder: Path, protocol: str, params: Mapping[str, Any], hub: str | None = "charlie") -> Path:
    members = []
    for name in ("charlie", "alice", "bob"):
        pin = make_certificate(folder / f"{name}.pem", folder / f"{name}.key", days=1)
        address = Address("127.0.0.1", free_port()) if name == "charlie" or hub is None else None
        role = "curator" if name == "charlie" and hub else "party"
        members.append(Member(name, role, pin, address))
    path = folder / "parties.yaml"
    path.write_text(Group(protocol, tuple(members), hub, dict(params), 20.0).to_yaml())
    return path


def run_all(
    config: Path,
    protocol: str,
    inputs: Mapping[str, list[Any]],
    out: Path | None = None,
    names: Sequence[str] = ("charlie", "alice", "bob"),
) -> dict[str, str]:
    """What every party's terminal shows."""
    shown: dict[str, str] = {}

    def run(name: str) -> None:
        screen = io.StringIO()
        files = config.parent / f"{name}.pem", config.parent / f"{name}.key"
        console = Console(file=screen, width=160, highlight=False)
        try:
            where = out if name == "alice" else None
            given = [_parse_input(each) if isinstance(each, str) else each for each in inputs.get(name, [])]
            run_in_group(console, PROTOCOLS[protocol], name, Group.load(config), files, given, LIMITS, where)
        except PpspeechError as error:
            screen.write(f"error: {error}")
        shown[name] = screen.getvalue()

    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    return shown


def test_vectors_on_three_terminals(tmp_path: Path) -> None:
    terms = {"dimension": 2, "sensitivity": 0.001, "epsilon": 1.0}
    config = write_group(tmp_path, "aggregate", terms)
    shown = run_all(config, "aggregate", {"alice": ["[1, 2]"], "bob": ["[3, 4]"]}, tmp_path / "sum.json")
    released = json.loads((tmp_path / "sum.json").read_text())
    assert released == pytest.approx([4, 6], abs=0.2)
    assert released != [4, 6]
    assert f"bob: {released}" in shown["bob"]
    assert "alice is there" in shown["charlie"]
    assert "uniform residues" in shown["charlie"]
    assert "the released sum" in shown["bob"]
    assert "the released sum" not in shown["charlie"].replace("as released", "")


ROWS = {"model": "logistic", "features": 2, "classes": 2, "radius": 1.0, "epsilon": 2.0, "labels": ["no", "yes"]}
DESCENT = {"rounds": 3, "step": 0.02, "clip": 1.0, "regularization": 1.0, "personal": 1.0}


@pytest.mark.parametrize(
    ("protocol", "terms"),
    [("train_average", ROWS | {"penalty": 0.05, "sizes": [40, 60]}), ("train_descent", ROWS | DESCENT)],
)
def test_training_on_three_terminals_ends_in_a_bundle(protocol: str, terms: dict[str, Any], tmp_path: Path) -> None:
    config = write_group(tmp_path, protocol, terms)
    chance = np.random.default_rng(0)
    for name, size in (("alice", 40), ("bob", 60)):
        x = chance.normal(size=(size, 2))
        np.savetxt(tmp_path / f"{name}.csv", np.column_stack([x, x[:, 0] > 0]), delimiter=",")
    inputs = {name: [str(tmp_path / f"{name}.csv")] for name in ("alice", "bob")}
    shown = run_all(config, protocol, inputs, tmp_path / "model")
    assert re.search(r"trained linear_table: \((2|1\.99\d), 1e-05\)-DP for one record", shown["bob"])
    bundle = load_bundle(tmp_path / "model")
    assert bundle.statement.guarantee.epsilon <= 2.0
    assert bundle.config.labels == ("no", "yes")
    assert bundle.model(torch.tensor([[1.0, 2.0]])).shape == (1, 2)
    if protocol == "train_descent":
        assert np.shape(json.loads((tmp_path / "model.own.json").read_text())) == (1, 3)
    with pytest.raises(PpspeechError, match="exists already"):
        check_out(tmp_path / "model", protocol, terms)


@pytest.mark.parametrize("protocol", ["train_descent", "train_average"])
def test_the_example_works_as_it_is_printed(protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From nothing to a bundle: certificates, the file, a CSV file of each, training, and new rows."""
    monkeypatch.chdir(tmp_path)
    names = ("curator", "alice", "bob", "carol")
    for name in names:
        make_certificate(tmp_path / f"{name}.pem", tmp_path / f"{name}.key", days=1)
    app = typer.Typer()
    app.command()(guarded(party))
    printed = CliRunner().invoke(app, [protocol, "--example"])
    assert printed.exit_code == 0
    text = printed.output.replace("127.0.0.1:7000", f"127.0.0.1:{free_port()}")
    (tmp_path / "parties.yaml").write_text(text)
    group = Group.load(tmp_path / "parties.yaml")
    chance = np.random.default_rng(0)
    for name, size in (("alice", 40), ("bob", 60), ("carol", 50)):
        x = chance.uniform(20, 70, size=(size, 2))
        lines = [f"{a:.2f},{name},{b:.2f},{'yes' if a > b else 'no'}" for a, b in x]
        (tmp_path / f"{name}.csv").write_text("\n".join(["height,who,weight,ill", *lines]) + "\n")
    inputs = {name: _read_own(tmp_path / f"{name}.csv", "ill", group.params) for name in names[1:]}
    shown = run_all(tmp_path / "parties.yaml", protocol, inputs, tmp_path / "model", names)
    assert "(1, 1e-05)-DP" in shown["alice"] or "(0.99" in shown["alice"], shown["alice"]
    assert load_bundle(tmp_path / "model").config.columns == ("height", "weight")
    for name in names[1:]:
        assert f"ppspeech party {protocol} --role {name} --config parties.yaml" in text


@pytest.mark.parametrize("protocol", PROTOCOLS.names())
def test_every_protocol_has_an_example(protocol: str) -> None:
    """A file that can be read, but for the pins that are not known yet."""
    plain = yaml.safe_load(example_file(PROTOCOLS[protocol]))
    assert plain["protocol"] == protocol
    assert {entry["role"] for entry in plain["parties"].values()} == set(PROTOCOLS[protocol].parties)
    with pytest.raises(PpspeechError, match="what `ppspeech party --make` prints"):
        Group.from_yaml(example_file(PROTOCOLS[protocol]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda plain: plain["params"].pop("clip"), "train_descent needs the term clip"),
        (lambda plain: plain["params"].update(clap=1), "train_descent has no term clap: its terms are"),
        (lambda plain: plain["params"].update(epsilon="one"), "the terms of train_descent|epsilon"),
        (lambda plain: plain["parties"]["bob"].pop("pin"), "party 'bob' of the group's file lacks pin"),
        (lambda plain: plain["parties"]["bob"].update(adress="x:1"), "unknown key 'adress'.*address"),
        (lambda plain: plain.pop("parties"), "the group's file lacks parties"),
        (lambda plain: plain.update(parameters={}), "unknown key 'parameters'.*params"),
    ],
)
def test_errors_name_the_key(change: Callable[[dict[str, Any]], Any], said: str, tmp_path: Path) -> None:
    path = write_group(tmp_path, "train_descent", ROWS | DESCENT)
    plain = yaml.safe_load(path.read_text())
    change(plain)
    with pytest.raises(PpspeechError, match=said) as caught:
        terms_of("train_descent", Group.from_yaml(yaml.safe_dump(plain)).params)
    assert "__init__" not in str(caught.value)


def test_rows_that_are_too_few_end_nobody_elses_round(tmp_path: Path) -> None:
    """A party's own mistake is found before the others have come."""
    config = write_group(tmp_path, "train_average", ROWS | {"sizes": [3, 2]})
    program = PROTOCOLS["train_average"].bind("party", [[[1.0, 2.0, 1]]], Group.load(config).params)
    files = Identity(tmp_path / "alice.pem", tmp_path / "alice.key")
    with pytest.raises(PpspeechError, match="the terms say 3 units for party 0, but there are 1"):
        rehearse(program, Party.met({"charlie": NOBODY}, Group.load(config), files))


def test_exact_sums_have_no_guarantee_and_no_bundle(tmp_path: Path) -> None:
    terms = {"components": 2, "rounds": 1, "sample_rate": 8000}
    with pytest.raises(PpspeechError, match="agree on an epsilon"):
        check_out(tmp_path / "model", "train_mixture", terms)
    config = write_group(tmp_path, "train_mixture", terms)
    speech = json.dumps(np.random.default_rng(0).normal(size=(2, 5, 39)).tolist())
    inputs = {"alice": [speech], "bob": [speech]}
    shown = run_all(config, "train_mixture", inputs)
    assert "trained speaker_ubm: no guarantee" in shown["bob"]


def test_numbered_parties_of_a_mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adding = registry.RegisteredProtocol("mesh-adding", functionality="x", leakage="x", assumptions="x")

    def add(party: Party, number: int, *, scale: int) -> list[int]:
        for channel in party.channels.values():
            channel.send(1, bytes([number]))
        heard = {other: channel.receive(1, 1)[0] for other, channel in party.channels.items()}
        return [party.place, len(party.seats("party")), scale * sum(heard.values())]

    adding.party("party")(add)
    monkeypatch.setitem(registry.PROTOCOLS._entries, "mesh-adding", adding)
    config = write_group(tmp_path, "mesh-adding", {"scale": 10}, hub=None)
    shown = run_all(config, "mesh-adding", {"charlie": ["1"], "alice": ["2"], "bob": ["3"]})
    assert "charlie: [0, 3, 50]" in shown["charlie"]
    assert "bob: [2, 3, 30]" in shown["bob"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["aggregate", "--role", "eve", "--certificate", "alice.pem", "--key", "alice.key"], "no party 'eve'"),
        (["aggregate", "--role", "bob"], "give --certificate and --key"),
        (["millionaires", "--role", "bob"], "is for 'aggregate', not for 'millionaires'"),
        (
            ["aggregate", "--role", "bob", "--certificate", "bob.pem", "--key", "bob.key"],
            "party of aggregate brings value: got 0 inputs",
        ),
        (
            ["aggregate", "--role", "bob", "--certificate", "bob.pem", "--key", "bob.key", "--input", "[1]"],
            "all parties agreed on 2 numbers, got 1",
        ),
        (["aggregate", "--role", "bob", "--param", "epsilon=9"], "leave --param away"),
        (["aggregate", "--role", "bob", "--table", "absent.csv"], "there is no file absent.csv"),
        (["aggregate", "--role", "bob", "--label", "ill"], "given as --table"),
        (
            ["aggregate", "--role", "bob", "--certificate", "alice.pem", "--key", "alice.key", "--input", "[1, 2]"],
            "not the one pinned for bob",
        ),
        (["--make"], "--make needs the files"),
        (["--make", "--certificate", "new.pem", "--key", "bob.key"], "a key is never replaced"),
    ],
)
def test_what_does_not_fit_is_a_word_and_exit_code_2(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write_group(tmp_path, "aggregate", {"dimension": 2, "sensitivity": 0.001, "epsilon": 1.0})
    app = typer.Typer()
    app.command()(guarded(party))
    result = CliRunner().invoke(app, [*words, *([] if "--make" in words else ["--config", "parties.yaml"])])
    assert result.exit_code == 2, result.output
    assert said in result.output


def test_certificates_are_made(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(guarded(party))
    words = ["--make", "--certificate", str(tmp_path / "a.pem"), "--key", str(tmp_path / "a.key")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0
    assert "the others pin" in result.output
    assert (tmp_path / "a.key").stat().st_mode & 0o077 == 0


def test_rows_are_read_or_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", x=np.ones((3, 2)), y=np.array([0, 1, 1]))
    assert _parse_input(f"@{tmp_path / 'rows.npz'}") == [[1, 1, 0], [1, 1, 1], [1, 1, 1]]
    np.savez(tmp_path / "clips.npz", a=np.ones((3, 2)), b=np.zeros((1, 2)))
    assert _parse_input(f"@{tmp_path / 'clips.npz'}") == [np.ones((3, 2)).tolist(), [[0, 0]]]
    (tmp_path / "words.csv").write_text("one,two,3\n")
    for name in ("words.csv", "absent.csv"):
        with pytest.raises(PpspeechError, match=f"cannot read the input.*{name}"):
            _parse_input(str(tmp_path / name))
