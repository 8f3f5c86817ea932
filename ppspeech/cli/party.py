"""`ppspeech party`: be one party of a protocol, with the other on another terminal or machine."""

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ppspeech.cli.lists import show_list
from ppspeech.cli.party_example import example_file
from ppspeech.cli.party_group import check_out, run_in_group, show_result
from ppspeech.cli.transcripts import kind_name
from ppspeech.errors import PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:  # the network is loaded when a party runs, not for `--help`
    from ppspeech.network import Address, StreamChannel
    from ppspeech.protocols import RegisteredProtocol
    from ppspeech.registry import Listed


TICKET_BYTES = 16
MOST_REFUSALS = 10  # that are told of: whoever calls must not fill the screen
ROOMS = ("ppspeech.protocols", "ppspeech.training.together", "ppspeech.evidence.published.protocols")
"""Where there are protocols; the command line alone may know all of them."""


def protocols() -> "dict[str, Listed]":
    """Every protocol with what it computes, without importing any."""
    from ppspeech.registry import listed

    calls = ("register_protocol", "_register")  # `_register` is that of the ways to train together
    return dict(
        sorted({name: entry for room in ROOMS for by in calls for name, entry in listed(room, by).items()}.items())
    )


def party(
    name: Annotated[
        str, typer.Argument(help="Which protocol; without a role it is described, without a name all are listed.")
    ] = "",
    role: Annotated[str, typer.Option(help="Which of its parties to be.")] = "",
    connect: Annotated[str, typer.Option(help="HOST:PORT where the other party listens.")] = "",
    listen: Annotated[str, typer.Option(help="HOST:PORT to wait for the other party at.")] = "",
    param: Annotated[list[str] | None, typer.Option(help="NAME=VALUE; public, the same on both sides.")] = None,
    private: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            help="Our private input; @FILE reads a file (.csv and .npz as rows), - asks for it. May be repeated.",
        ),
    ] = None,
    table: Annotated[
        Path | None, typer.Option(help="Our private input as a CSV file with a header; terms name its columns.")
    ] = None,
    label: Annotated[str, typer.Option(help="With --table: the column that is the class of each row.")] = "",
    pin: Annotated[str, typer.Option(help="Fingerprint of the certificate of the party that listens.")] = "",
    ticket: Annotated[str, typer.Option(help="What the party that listens knows us by: it prints one.")] = "",
    ca: Annotated[
        Path | None, typer.Option(help="Authorities to trust instead: for the server's, or the client's, certificate.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="Our certificate, PEM.")] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key, PEM.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Plain TCP, on a loopback address, to try out.")] = False,
    seconds: Annotated[float, typer.Option(help="How long to wait for a message, or a handshake.", min=0.1)] = 60.0,
    transcript: Annotated[bool, typer.Option("--transcript", help="Show what went over the wire.")] = False,
    config: Annotated[
        Path | None, typer.Option(help="A group's parties.yaml, the same for all; --role is then a name in it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Keep the result here: a bundle of a model, else JSON.")] = None,
    make: Annotated[
        bool, typer.Option("--make", help="Make the files --certificate and --key, print the fingerprint and stop.")
    ] = False,
    example: Annotated[bool, typer.Option("--example", help="Print a parties.yaml to start from, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Run one party of a protocol over TLS 1.3.

    The party that listens makes a certificate for the occasion, unless it is given one, and prints the fingerprint
    that the other pins and a ticket that the other shows: tell nobody else. With --ca, the other's certificate, it
    needs no ticket. A group of any number finds itself by a file that says who takes part, where they listen and
    which certificate each has: `docs/guides/together.md` goes through it.

    Examples: `ppspeech party millionaires --role alice --listen 127.0.0.1:7000 --input 5`, and on another terminal
    `ppspeech party millionaires --role bob --connect 127.0.0.1:7000 --pin … --ticket … --input 7`;
    `ppspeech party train_descent --example > parties.yaml`,
    `ppspeech party train_descent --role bob --config parties.yaml --certificate bob.pem --key bob.key --table bob.csv
    --label ill`
    """
    console = Console(stderr=as_json)
    if make:
        _make_certificate(console, certificate, key)
        return
    if not name:
        show_list(protocols(), as_json=as_json)
        return
    from ppspeech.network import Address, ClientTls, Limits, Transcript, own_tls
    from ppspeech.network import connect as call
    from ppspeech.network.group import Group
    from ppspeech.protocols import NOBODY, PROTOCOLS, Party, rehearse

    for room in ROOMS[1:]:
        PROTOCOLS.look_in(room)
    protocol = PROTOCOLS[name]
    if example:
        typer.echo(example_file(protocol), nl=False)
        return
    limits = Limits(message_seconds=seconds, handshake_seconds=min(seconds, Limits().handshake_seconds))
    inputs = [_parse_input(each) for each in private or ()]
    if config is not None:
        unused = {"--connect": connect, "--listen": listen, "--param": param, "--pin": pin, "--ca": ca}
        _refuse_unused(unused | {"--ticket": ticket})
        group = Group.load(config)
        inputs += _read_own(table, label, group.params)
        run_in_group(console, protocol, role, group, (certificate, key), inputs, limits, out, as_json)
        return
    if not role and not connect and not listen:
        _describe(protocol, as_json)
        return
    if len(protocol.parties) != 2:
        roles = ", ".join(protocol.parties)
        raise PpspeechError(f"{name} is between {roles}; without --config this command runs protocols between two")
    protocol.program(role)
    if bool(connect) == bool(listen):
        raise PpspeechError("give either --connect or --listen")
    params = dict(parse_param(each) for each in param or ())
    program = protocol.bind(role, [*inputs, *_read_own(table, label, params)], params)
    other = next(each for each in protocol.parties if each != role)
    check_out(out, name, params)
    rehearse(program, Party(role, {other: NOBODY}))
    # Both say who is who, so that two of one role do not wait for each other.
    agreed = {"roles": {role: "listens", other: "connects"} if listen else {role: "connects", other: "listens"}}
    agreed |= {"terms": params}
    try:
        if connect:
            trusted = None if insecure else ClientTls(pin=pin or None, ca=ca, certificate=certificate, key=key)
            where, shown = Address.parse(connect), ticket.encode()
            channel = call(where, name, agreed, tls=trusted, insecure=insecure, limits=limits, ticket=shown)
        else:
            with own_tls(certificate, key, ca, insecure=insecure) as tls:
                options = {"tls": tls, "insecure": insecure, "limits": limits}
                known = insecure or ca is not None
                channel = _wait(console, other, Address.parse(listen), name, agreed, known, **options)
    except ValueError as error:
        raise PpspeechError(str(error)) from None
    with channel:
        record = Transcript(channel)
        result = program(Party(role, {other: record}))
    if transcript:
        console.print(record.table({entry.kind: kind_name(entry.kind) for entry in record.entries}))
    show_result(console, role, result, out, as_json=as_json)


def _describe(protocol: "RegisteredProtocol", as_json: bool) -> None:
    """What it computes, leaks and assumes, and what its parties bring."""
    said = {"protocol": protocol.name, "parties": list(protocol.parties), "terms": list(protocol.all_terms)}
    said |= {"computes": protocol.functionality, "leaks": protocol.leakage, "assumes": protocol.assumptions}
    words = f"{protocol.describe()}\n{protocol.describe_programs()}"
    typer.echo(json.dumps(said) if as_json else words)


def _refuse_unused(options: Mapping[str, Any]) -> None:
    if unused := [name for name, value in options.items() if value]:
        raise PpspeechError(f"with --config the group's file says all of that: leave {', '.join(unused)} away")


def _read_own(table: Path | None, label: str, terms: Mapping[str, Any]) -> list[Any]:
    """Rows of our own CSV file as an input, the number of the class last; `terms` say which columns and classes."""
    if table is None:
        if label:
            raise PpspeechError("--label names a column of the file given as --table")
        return []
    from ppspeech.data.tables import read_table

    columns, labels = terms.get("columns") or (), terms.get("labels") or ()
    if label and not labels:
        raise PpspeechError("which class has which number must be agreed on: put `labels` into the terms")
    rows = read_table(table, label, columns, labels)
    values = rows.features.tolist()
    places = rows.labels.tolist()
    return [[[*row, place] for row, place in zip(values, places, strict=True)] if label else values]


def _make_certificate(console: Console, certificate: Path | None, key: Path | None) -> None:
    from ppspeech.network import make_certificate

    if certificate is None or key is None:
        raise PpspeechError("--make needs the files to make: --certificate and --key")
    try:
        pin = make_certificate(certificate, key)
    except FileExistsError:
        raise PpspeechError(f"{key} exists already: a key is never replaced; choose another name") from None
    console.print(f"made {certificate} and {key}; the others pin {pin}")


def _wait(
    console: Console, other: str, address: "Address", name: str, agreed: dict[str, Any], known: bool, **options: Any
) -> "StreamChannel":
    """The other party, once it is there; where nothing else says who that is, it is the one with the ticket."""
    from ppspeech.network import Listener, fingerprint

    try:
        listener = Listener(address, **options)
    except OSError as error:
        raise PpspeechError(f"cannot listen at {address}: {error}") from None
    ticket = "" if known else secrets.token_hex(TICKET_BYTES)
    refused: set[str] = set()

    def tell(error: Exception) -> None:
        if len(refused) < MOST_REFUSALS and str(error) not in refused:
            refused.add(str(error))
            console.print(f"someone was refused, waiting on: {error}")

    with listener:
        trust = f"--pin {fingerprint(options['tls'].certificate)}" if options["tls"] else "--insecure"
        trust += f" --ticket {ticket}" if ticket else ""
        shared = "".join(f" --param {key}={json.dumps(value)}" for key, value in agreed["terms"].items())
        console.print(f"waiting at {listener.address}; the other party joins with")
        command = f"ppspeech party {name} --role {other} --connect {listener.address} {trust}{shared} --input …"
        console.print(f"  {command}")
        return listener.wait(name, agreed, ticket=ticket.encode(), tell=tell)


def parse_param(text: str) -> tuple[str, Any]:
    """A public term from NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise PpspeechError(f"a parameter is NAME=VALUE, got {text!r}")
    return name, _parse_value(value)


def _parse_input(text: str) -> Any:
    """A private input: what is on the command line is seen in the list of processes, so it may come another way."""
    if text == "-":
        return _parse_value(typer.prompt("input", hide_input=True))
    if text.startswith("@") or text.endswith((".csv", ".npz")):
        return _read_file(Path(text.removeprefix("@")))
    return _parse_value(text)


def _read_file(path: Path) -> Any:
    """Rows of a `.csv` without a header; of an `.npz`, rows `x` with their classes `y` last, or a list of arrays."""
    import numpy as np

    try:
        if path.suffix == ".csv":
            return _read_numbers(path)
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                if {"x", "y"} <= set(arrays):
                    return np.column_stack([arrays["x"], arrays["y"]]).tolist()
                return [arrays[name].tolist() for name in arrays]
        return _parse_value(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PpspeechError(f"cannot read the input {path}: {error}") from None


def _read_numbers(path: Path) -> list[list[float]]:
    import numpy as np

    try:
        return np.loadtxt(path, delimiter=",", ndmin=2).tolist()  # type: ignore[no-any-return]
    except ValueError as error:
        raise ValueError(f"{error}; a file with a header is given as --table") from None


def _parse_value(text: str) -> Any:
    """A number, a list, true or false as JSON writes them; anything else is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()
