"""`ppspeech simulate`: all parties of a protocol as processes of this machine, over TLS, for an experiment."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ppspeech.cli.simulate_eigen import find_direction
from ppspeech.errors import PpspeechError

if TYPE_CHECKING:  # torch is loaded when a simulation runs, not for `--help`
    from torch import Tensor

    from ppspeech.data.tables import Table as Rows
    from ppspeech.network.group import Group, Identity
    from ppspeech.training.together import JointTraining

RADII = {"adult": 14**0.5}
"""Norms that no row of a table exceeds by its coding; other tables are clipped to --radius."""


def simulate(
    name: Annotated[str, typer.Argument(help="Which protocol: aggregate or eigen.")],
    parties: Annotated[int, typer.Option(help="How many parties hold rows.", min=2, max=100)] = 5,
    table: Annotated[str, typer.Option(help="The table they hold, such as adult.")] = "adult",
    model: Annotated[str, typer.Option(help="logistic, softmax, huber_svm or large_margin.")] = "softmax",
    epsilon: Annotated[float, typer.Option(help="Of the release.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Of the release; 0 for pure privacy.")] = 1e-5,
    penalty: Annotated[float, typer.Option(help="Lambda of the papers, beside an average loss.")] = 0.01,
    radius: Annotated[float, typer.Option(help="Rows are divided by it and clipped to norm 1.")] = 0.0,
    colluders: Annotated[int, typer.Option(help="How many parties may share what they know.", min=1)] = 1,
    kill: Annotated[str, typer.Option(help="A party that dies in the middle, to see what the others are told.")] = "",
    out: Annotated[Path | None, typer.Option(help="Write the released model here, as JSON.")] = None,
) -> None:
    """Let parties who keep their rows compute together, and show what each of them saw.

    `aggregate` trains one private classifier, `eigen` finds the principal direction of all rows (it takes --parties and
    --table alone).

    Examples: `ppspeech simulate aggregate --parties 5 --table adult --model logistic --epsilon 1`,
    `ppspeech simulate aggregate --parties 20 --kill party3`,
    `ppspeech simulate eigen --parties 3 --table breast_cancer`
    """
    if name not in {"aggregate", "eigen"}:
        raise PpspeechError(f"aggregate and eigen can be simulated, got {name!r}; others run with `ppspeech party`")
    import torch

    from ppspeech.data import load_table
    from ppspeech.network import Limits
    from ppspeech.network.local import run_group
    from ppspeech.training.together import JointTraining

    torch.set_num_threads(1)  # the parties are forks of this process, and thread pools do not survive a fork
    console = Console(highlight=False, soft_wrap=True)
    rows = load_table(table)
    if name == "eigen":
        console.print(_table(find_direction(console, rows.features.double().numpy(), parties, table)))
        return
    train, test = rows.split_by_row(0.25) if rows.is_test is None else rows.train_test()
    scale = radius or RADII.get(table, 1.0)
    sizes = [len(train) // parties + (place < len(train) % parties) for place in range(parties)]
    terms: dict[str, Any] = {
        "model": model,
        "features": train.features.shape[1],
        "classes": len(train.label_names),
        "radius": 1.0,
        "penalty": penalty,
        "sizes": sizes,
        "epsilon": epsilon,
        "delta": delta,
        "colluders": colluders,
    }
    training = JointTraining(**terms)
    players = _players(train, sizes, scale, kill)
    if kill and kill not in players:
        raise PpspeechError(f"no party {kill!r} to kill; there are {', '.join(players)}")
    console.print(f"{parties} parties with {min(sizes):,} rows or more and a curator, each a process; TLS on loopback")
    start = time.perf_counter()
    limits = Limits(message_seconds=600.0)  # the parties train after they have met here
    outcomes = run_group("aggregate", players, hub="curator", params={"training": terms}, limits=limits)
    took = time.perf_counter() - start
    console.print(_table(outcomes))
    given = [outcome.result["fit"] for outcome in outcomes.values() if outcome.result and "fit" in outcome.result]
    if not given:
        raise PpspeechError("the round ended without a result: the table says what each party was told")
    _report(console, training, given[0], test, scale, took, out)


def _players(train: "Rows", sizes: list[int], scale: float, kill: str) -> dict[str, Any]:
    """The curator, and parties who hold parts of the rows in a random order."""
    import torch

    from ppspeech.network.local import Player

    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
    parts = torch.split(order, sizes)
    parties = {
        f"party{place}": Player(
            "party",
            _party(
                f"party{place}", train.features[part].double() / scale, train.labels[part], dies=kill == f"party{place}"
            ),
        )
        for place, part in enumerate(parts)
    }
    return {"curator": Player("curator", _curator(dies=kill == "curator")), **parties}


def _party(name: str, x: "Tensor", y: "Tensor", *, dies: bool) -> Callable[..., dict[str, Any]]:
    def program(channels: Mapping[str, Any], group: "Group", identity: "Identity") -> dict[str, Any]:
        from ppspeech.network import Transcript
        from ppspeech.training.together import as_plain, take_part, train_alone

        records = {other: Transcript(channel) for other, channel in channels.items()}
        local = train_alone(group, name, x, y)
        _die_if(dies)
        return {"fit": as_plain(take_part(records, group, identity, name, local)), "saw": seen_by(records)}

    return program


def _curator(*, dies: bool) -> Callable[..., dict[str, Any]]:
    def program(channels: Mapping[str, Any], group: "Group", _: "Identity") -> dict[str, Any]:
        from ppspeech.network import Transcript
        from ppspeech.training.together import curate

        records = {other: Transcript(channel) for other, channel in channels.items()}
        _die_if(dies)
        curate(records, group)
        return {"saw": seen_by(records)}

    return program


def _die_if(dies: bool) -> None:
    if dies:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)


def seen_by(records: Mapping[Any, Any]) -> list[tuple[int, int, int]]:
    """Kinds of the messages received, with their number and bytes, over all peers."""
    seen: dict[int, tuple[int, int]] = {}
    for record in records.values():
        for kind, (count, size) in record.received().items():
            before = seen.get(kind, (0, 0))
            seen[kind] = (before[0] + count, before[1] + size)
    return [(kind, *sums) for kind, sums in seen.items()]


def _table(outcomes: Mapping[str, Any]) -> Table:
    from ppspeech.protocols import kind_of

    table = Table(title="What each party saw")
    for heading in ("party", "message", "what it is", "messages", "bytes", "sent in all"):
        table.add_column(heading, justify="right" if heading in {"messages", "bytes", "sent in all"} else "left")
    for party, outcome in outcomes.items():
        if outcome.error:
            table.add_row(party, "-", outcome.error, "", "", f"{outcome.bytes_sent:,}")
            continue
        for row, (number, count, size) in enumerate(outcome.result["saw"]):
            sent = f"{outcome.bytes_sent:,}" if row == 0 else ""
            who = party if row == 0 else ""
            kind = kind_of(number)
            name, what = (kind.name.lower(), kind.meaning) if kind else (str(number), "")
            table.add_row(who, name, what, f"{count:,}", f"{size:,}", sent)
    return table


def _report(
    console: Console,
    training: "JointTraining",
    fit: dict[str, Any],
    test: "Rows",
    scale: float,
    took: float,
    out: Path | None,
) -> None:
    import json

    import torch

    from ppspeech.privacy import Guarantee
    from ppspeech.storage import atomic_write
    from ppspeech.training.together import model_of

    module = model_of(training, torch.tensor(fit["theta"], dtype=torch.double))
    right = module.predict(test.features.double() / scale) == test.labels
    console.print(
        f"released in {took:.1f} s: {100 * float(right.double().mean()):.1f} % of {len(test):,} test rows right"
    )
    console.print(str(Guarantee.from_json(fit["guarantee"])), markup=False)
    if out is not None:
        with atomic_write(out) as temporary:
            temporary.write_text(json.dumps(fit), encoding="utf-8")
        console.print(f"written to {out}", markup=False)
