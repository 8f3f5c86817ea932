"""`ppspeech simulate`: all parties of a protocol as processes of this machine, over TLS, for an experiment."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from ppspeech.cli.simulations import TAKES, Said, Simulation, prepare
from ppspeech.cli.transcripts import saw_plain, saw_table, telling
from ppspeech.errors import PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:  # torch is loaded when a simulation runs, not for `--help`
    from ppspeech.network.local import Outcome


def simulate(
    name: Annotated[str, typer.Argument(help=f"Which protocol: {', '.join(TAKES)}.")],
    parties: Annotated[int, typer.Option(help="How many parties hold data.", min=2, max=100)] = 5,
    table: Annotated[
        str | None, typer.Option(help="Whose rows they hold: a known table, or a CSV file with a header. [adult]")
    ] = None,
    label: Annotated[str | None, typer.Option(help="The column of a CSV file that is the class.")] = None,
    radius: Annotated[
        float | None,
        typer.Option(help="A public norm that no row exceeds; rows are divided by it, and cut. Known of known tables."),
    ] = None,
    corpus: Annotated[str | None, typer.Option(help="Whose speakers they are: mixtures and words. [fsdd]")] = None,
    model: Annotated[
        str | None, typer.Option(help="logistic, softmax, huber_svm or large_margin. [logistic, softmax for classes]")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Of the release. [1; eigen: exact without it]")] = None,
    delta: Annotated[float | None, typer.Option(help="Of the release; 0 for pure privacy. [1e-5; eigen: 1e-6]")] = None,
    penalty: Annotated[
        float | None,
        typer.Option(help="Lambda of the papers, beside an average loss. [by a rule in rows, epsilon and delta]"),
    ] = None,
    colluders: Annotated[int | None, typer.Option(help="How many may share what they know. [1]", min=1)] = None,
    param: Annotated[list[str] | None, typer.Option(help="NAME=VALUE; another public term. May be repeated.")] = None,
    kill: Annotated[str, typer.Option(help="A party that dies in the middle, to see what the others are told.")] = "",
    out: Annotated[Path | None, typer.Option(help="Write the released model here, as a bundle.")] = None,
    messages: Annotated[
        Path | None, typer.Option(help="Write who sent whom what kind and how much here, as it goes: a JSON line each.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Let parties who keep their data compute together, and show what each of them saw.

    The train_ ones release a private model and say how well it does beside simple answers; `eigen` finds the principal
    direction of all rows, exactly or with --epsilon. Options that a protocol has no use for are refused. Terms beside
    the options, such as rounds, clip, components or words, come as --param.

    Examples: `ppspeech simulate train_descent --parties 5 --table adult --epsilon 1 --out BUNDLE`,
    `ppspeech simulate train_average --table my.csv --label income --radius 3`,
    `ppspeech simulate train_words --corpus fsdd --parties 3 --epsilon 8 --param states=8`,
    `ppspeech simulate train_average --parties 20 --kill party3`,
    `ppspeech simulate eigen --parties 3 --table breast_cancer --epsilon 3`
    """
    options: dict[str, Any] = {"table": table, "label": label, "radius": radius, "corpus": corpus, "model": model}
    options |= {"epsilon": epsilon, "delta": delta, "penalty": penalty, "colluders": colluders, "out": out}
    options = {option: value for option, value in options.items() if value is not None}
    from ppspeech.cli.party import parse_param

    more = dict(parse_param(each) for each in param or ())
    if name in TAKES:
        import torch

        torch.set_num_threads(1)  # the parties are forks of this process, and thread pools do not survive a fork
    simulation = prepare(name, parties, options, more)
    if out is not None:
        from ppspeech.cli.party_group import check_out

        check_out(out, name, simulation.terms)
    if kill and kill not in (known := _names(simulation)):
        raise PpspeechError(f"no party {kill!r} to kill; there are {', '.join(known)}")
    if messages is not None:
        messages.write_text("")  # where it cannot be written is said before anybody begins
    console = Console()
    console.quiet = as_json
    console.print(f"{len(simulation.inputs)} parties{' and a curator' if simulation.hub else ''}, each a process; TLS")
    start = time.perf_counter()
    outcomes = _run(simulation, kill, messages)
    took = time.perf_counter() - start
    saw = {who: outcome.result["saw"] for who, outcome in outcomes.items() if outcome.result}
    if saw:
        console.print(saw_table(saw))
    console.print(_ends(outcomes))
    given = [outcome.result["result"] for who, outcome in outcomes.items() if who != "curator" and outcome.result]
    said, promise = [], ""
    if given:
        said = simulation.judge(given[0])
        promise = simulation.promise or _promise(given[0])
    if as_json:
        typer.echo(json.dumps(_plain(simulation, outcomes, took, said, promise) | {"saw": saw_plain(saw)}))
    if not given:
        raise PpspeechError("the round ended without a result: the table says what each party was told")
    _show(console, said, promise, took)
    if out is not None:
        from ppspeech.training.together import terms_of, write_plain

        write_plain(out, terms_of(name, simulation.terms), given[0])
        console.print(f"written to {out}; `ppspeech inspect {out}` shows it")


def _show(console: Console, said: list[Said], promise: str, took: float) -> None:
    for place, each in enumerate(said):
        lead = f"after {took:.1f} s" if place == 0 else "  beside it"
        console.print(f"{lead}: {each.value:.{each.digits}f} {each.words}")
    console.print(promise or "no guarantee: what is released is exact")


def _plain(
    simulation: Simulation, outcomes: Mapping[str, "Outcome"], took: float, said: list[Said], promise: str
) -> dict[str, Any]:
    ends = {
        who: {"end": each.error or "well", "bytes_sent": each.bytes_sent, "bytes_received": each.bytes_received}
        for who, each in outcomes.items()
    }
    named = {"columns", "labels", "sizes"}  # long, and known to whoever has the table
    return {
        "protocol": simulation.protocol,
        "parties": len(simulation.inputs),
        "terms": {name: value for name, value in simulation.terms.items() if name not in named},
        "seconds": took,
        "figures": {each.name: each.value for each in said},
        "guarantee": promise or None,
        "ends": ends,
    }


def _promise(result: Any) -> str:
    if not isinstance(result, dict):
        return ""
    from ppspeech.privacy import Guarantee

    return str(Guarantee.from_json(result["guarantee"]))


def _names(simulation: Simulation) -> list[str]:
    hub = [simulation.hub] if simulation.hub else []
    return [*hub, *(f"party{place}" for place in range(len(simulation.inputs)))]


def _run(simulation: Simulation, kill: str, messages: Path | None) -> Mapping[str, "Outcome"]:
    """Run every party as a process."""
    from ppspeech.network import Limits
    from ppspeech.network.local import Player, run_group
    from ppspeech.protocols import PROTOCOLS

    PROTOCOLS.look_in("ppspeech.training.together")
    protocol = PROTOCOLS[simulation.protocol]
    inputs = [((), simulation.hub)] if simulation.hub else []
    inputs += [(own, "party") for own in simulation.inputs]
    players = {
        name: Player(role, _program(protocol.bind(role, own, simulation.terms), name, messages, dies=kill == name))
        for name, (own, role) in zip(_names(simulation), inputs, strict=True)
    }
    limits = Limits(message_seconds=600.0)  # they train after they have met
    return run_group(simulation.protocol, players, hub=simulation.hub, limits=limits)


def _program(
    bound: Callable[[Any], Any], name: str, messages: Path | None, *, dies: bool
) -> Callable[..., dict[str, Any]]:
    """A party's process: its result as JSON can hold it, and what it received from whom."""

    def program(channels: Mapping[str, Any], group: Any, identity: Any) -> dict[str, Any]:
        from ppspeech.network import Transcript
        from ppspeech.protocols import Party

        if dies:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGKILL)
        records = {
            other: Transcript(channel, told=None if messages is None else telling(messages, other, name))
            for other, channel in channels.items()
        }
        result = bound(Party.met(records, group, identity))
        plain = result.tolist() if hasattr(result, "tolist") else result
        return {"result": plain, "saw": {other: record.received() for other, record in records.items()}}

    return program


def _ends(outcomes: Mapping[str, "Outcome"]) -> Table:
    table = Table(title="How each party ended", box=box.SIMPLE_HEAD)
    for heading in ("party", "end", "bytes sent", "bytes received"):
        table.add_column(heading, justify="left" if heading in {"party", "end"} else "right")
    for who, outcome in outcomes.items():
        sizes = f"{outcome.bytes_sent:,}", f"{outcome.bytes_received:,}"
        table.add_row(who, outcome.error or "well", *sizes)
    return table
