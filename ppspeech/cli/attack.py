"""`ppspeech attack`: people who cheat, against a server that is one's own."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from ppspeech.cli.door import Authority, Certificate, Insecure, Key, Model, Pin, door_to, is_server
from ppspeech.cli.lists import show_list
from ppspeech.cli.ray import Ray
from ppspeech.errors import PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.evidence.attacks import Outcome, Target
    from ppspeech.figures import Figure
    from ppspeech.service import Door


def attack(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A bundle, which is served here, or HOST:PORT; without, list them.")
    ] = "",
    only: Annotated[list[str] | None, typer.Option(metavar="ATTACK", help="This one; may be repeated.")] = None,
    bundle: Annotated[
        Path | None, typer.Option(help="With HOST:PORT: what it serves, to measure what was gained.")
    ] = None,
    mine: Annotated[
        bool, typer.Option("--mine", help="The server is mine, or I may attack it: for other machines than this one.")
    ] = False,
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    model: Model = "",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer tries.")] = False,
    ray: Ray = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a figure.")] = False,
) -> None:
    """Attack a server as strangers would: hostile clients, and hostile servers of our own client, over TLS.

    Every attack says what it wants and measures what it got. `failed` is what one hopes for; `stated` is a leak that
    the protocols state; exit code 1 if one has `WON`. A bundle is served by this command, on this machine; with --ray
    each attack has a server of its own, beside the worker that attacks.

    Examples: `ppspeech attack words`, `ppspeech attack sentences`, `ppspeech attack voices --quick --json`,
    `ppspeech attack words --only chosen_key`, `ppspeech attack 127.0.0.1:7000 --pin … --bundle words`
    """
    from ppspeech.registry import listed

    known = listed("ppspeech.evidence.attacks", by="attack")
    if not target:
        show_list(known, as_json=as_json)
        return
    if unknown := [name for name in only or () if name not in known]:
        raise PpspeechError(f"no attack called {unknown[0]!r}: known are {', '.join(known)}")
    from ppspeech.bundle import load_bundle
    from ppspeech.cluster import in_order, pool
    from ppspeech.evidence.attacks import Target, attack_bundle, run_attack
    from ppspeech.figures import show_figures

    door = None
    if is_server(target):
        door = _own_door(target, mine, pin, ca, certificate, key, insecure)
    elif bundle is not None or pin or ca or certificate or key or insecure or mine:
        raise PpspeechError("--bundle, --mine, --pin, --ca, --certificate, --key and --insecure go with HOST:PORT")
    if door is not None and ray is not None:
        raise PpspeechError("--ray goes with a bundle: attacks on one server, at the same time, disturb each other")
    path, names = bundle if door is not None else Path(target), list(only or known)
    with Target(None if path is None else load_bundle(path), door, model or None, quick) as attacked:
        if ray is None:
            outcomes = [run_attack(name, attacked) for name in names]
        else:
            _ = attacked.task  # refuses before anything starts
            with pool(ray) as workers:
                task = partial(attack_bundle, Path(target).absolute(), model or None, quick)
                outcomes = in_order(workers, task, names, "Attacking")
        bits = _bits_a_query(attacked)
    if as_json:
        show_figures([*_figures(outcomes), *bits], as_json=True)
        for outcome in outcomes:
            if outcome.gain is None:
                typer.echo(json.dumps({"attack": outcome.attack.name, "verdict": "not tried", "why": outcome.why}))
    else:
        _show(target, outcomes, bits)
    if any(outcome.verdict == "WON" for outcome in outcomes):
        raise typer.Exit(1)


def _own_door(
    server: str, mine: bool, pin: str, ca: Path | None, certificate: Path | None, key: Path | None, insecure: bool
) -> "Door":
    """The door to a server on this machine, or to one of which the user says that it is theirs."""
    door = door_to(server, pin, ca, certificate, key, insecure)
    if not door.address.is_loopback and not mine:
        raise PpspeechError(
            f"{server} is not on this machine: attack only what is yours. If the server is yours, or its owner lets "
            "you, say so with --mine"
        )
    return door


def _figures(outcomes: "Sequence[Outcome]") -> "list[Figure]":
    from ppspeech.figures import Figure

    return [
        Figure(
            f"active.attack.{each.attack.name}.gained",
            each.gain.gained,
            each.gain.unit,
            note=f"{each.verdict}: {each.gain.note}; {each.gain.tries} tries",
        )
        for each in outcomes
        if each.gain is not None
    ]


def _bits_a_query(attacked: "Target") -> "list[Figure]":
    """What an answer tells of a model of words, or of sentences, at the most, whatever a client does."""
    from ppspeech.figures import Figure
    from ppspeech.service import Knowledge, sentence_knowledge

    if attacked.task in ("speakers", "networks"):
        return []
    shape = attacked.usual.offer.terms.shape
    known = sentence_knowledge(shape) if attacked.task == "sentences" else Knowledge.of(shape)
    left = attacked.usual.offer.queries_left
    budget = "no budget" if left is None else f"{left:,} queries left of this client's budget"
    note = f"docs/theory/asking.md; the model could be known after {known.queries:,} queries; {budget}"
    return [Figure("active.bits_per_query", known.bits, "bits", note=note)]


def _show(target: str, outcomes: "Sequence[Outcome]", bits: "Sequence[Figure]") -> None:
    table = Table(title=f"attacks on {target}", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("attack", "wants", "got", ""):
        table.add_column(heading, overflow="fold")
    for each in outcomes:
        got = Text(each.why if each.gain is None else f"{each.gain.gained:.3g} {each.gain.unit}: {each.gain.note}")
        style = {"WON": "bold red", "failed": "green"}.get(each.verdict, "")
        table.add_row(Text(each.attack.name, "bold"), each.attack.wants, got, Text(each.verdict, style, no_wrap=True))
    console = Console()
    console.print(table)
    for figure in bits:
        console.print(f"  an answer tells {figure.value} bits at the most ({figure.note})", style="dim")
