"""One party of a group of any number: `ppspeech party NAME --role WHO --config parties.yaml`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ppspeech.cli.transcripts import saw_table
from ppspeech.errors import PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:  # the network is loaded when a party runs, not for `--help`
    from ppspeech.network import Limits
    from ppspeech.network.group import Group
    from ppspeech.protocols import RegisteredProtocol


def run_in_group(
    console: Console,
    protocol: "RegisteredProtocol",
    name: str,
    group: "Group",
    files: tuple[Path | None, Path | None],
    inputs: Sequence[Any],
    limits: "Limits",
    out: Path | None,
    as_json: bool = False,
) -> None:
    """Meet the others, run our part, show what came of it and what we saw, and keep the result at `out`."""
    from ppspeech.network import Transcript
    from ppspeech.network.group import Identity, join
    from ppspeech.protocols import NOBODY, Party, rehearse

    member = group.member(name)
    if group.protocol != protocol.name:
        raise PpspeechError(f"the group's file is for {group.protocol!r}, not for {protocol.name!r}")
    certificate, key = files
    if certificate is None or key is None:
        raise PpspeechError("a party of a group proves who it is: give --certificate and --key")
    identity = Identity(certificate, key)
    program = protocol.bind(member.role, inputs, group.params)
    check_out(out, protocol.name, group.params)
    group.check_identity(name, identity)
    rehearse(program, Party.met(dict.fromkeys(group.others(name), NOBODY), group, identity))
    with join(group, name, identity, limits=limits, say=lambda word: console.print(word)) as channels:
        records = {other: Transcript(channel) for other, channel in channels.items()}
        result = program(Party.met(records, group, identity))
    console.print(saw_table({name: {other: record.received() for other, record in records.items()}}))
    show_result(console, name, result, out, protocol.name, group.params, as_json=as_json)


def check_out(out: Path | None, protocol: str, terms: Any) -> None:
    """Refuse a place for a model that is taken, or a model without a guarantee, before anyone has worked for it."""
    if out is None:
        return
    from ppspeech.training.together import METHODS

    if protocol in METHODS and terms.get("epsilon") is None:
        raise PpspeechError("--out writes a bundle, which states a guarantee: agree on an epsilon, or leave --out away")
    if protocol in METHODS and out.exists():
        raise PpspeechError(f"{out} exists already: a bundle is never replaced; choose another name")


def show_result(
    console: Console,
    who: str,
    result: Any,
    out: Path | None,
    protocol: str = "",
    terms: Any = None,
    *,
    as_json: bool = False,
) -> None:
    """Keep a result where it was asked for, or print it; models become bundles, anything else JSON."""
    plain = result.tolist() if hasattr(result, "tolist") else result
    released = isinstance(plain, dict) and "tensors" in plain
    if as_json:
        shown = {key: plain[key] for key in ("model", "guarantee")} if released else plain
        typer.echo(json.dumps({"party": who, "result": shown}))
    if released:
        from ppspeech.privacy import Guarantee

        promise = Guarantee.from_json(plain["guarantee"])
        console.print(f"{who}: trained {plain['model']}: {promise}")
    if out is not None and plain is not None:
        if released:
            from ppspeech.training.together import terms_of, write_plain

            write_plain(out, terms_of(protocol, terms), plain)
        else:
            _write_json(out, plain)
        console.print(f"{who}: written to {out}")
        if released and "own" in plain:
            own = out.with_name(f"{out.name}.own.json")
            _write_json(own, plain["own"])
            console.print(f"{who}: our own weights, which nothing protects, are in {own}")
    elif not released:
        console.print(f"{who}: {'done' if plain is None else plain}")
    else:
        console.print(f"{who}: --out BUNDLE keeps it")


def _write_json(path: Path, plain: Any) -> None:
    from ppspeech.storage import atomic_write

    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(plain), encoding="utf-8")
