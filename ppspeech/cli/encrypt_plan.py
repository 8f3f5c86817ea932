"""`ppspeech encrypt-plan`: what serving a model encrypted will cost and leak, before it runs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from ppspeech.service import ModePlan, ServicePlan, SpeakerPlan


def encrypt_plan(
    bundle: Annotated[Path, typer.Argument(help="A bundle.")],
    frames: Annotated[int, typer.Option(help="Utterances will be padded to this many.")] = 100,
    operation: Annotated[Literal["forward", "viterbi"], typer.Option(help="Add up all paths, or take the best.")] = (
        "forward"
    ),
    reject: Annotated[bool, typer.Option("--reject", help="With a garbage model.")] = False,
    places: Annotated[int, typer.Option("--places", "--most-speakers", help="Speakers: room for so many.", min=1)] = 64,
    cohort: Annotated[int, typer.Option(help="Speakers: members of a cohort that norms scores.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say what `ppspeech serve` would cost, what would leak and how exact it would be. Nothing is served.

    Bytes and rounds are exact; seconds are estimates for one machine with two cores.

    A bundle of speakers is planned for every scoring that `ppspeech serve` has.

    Examples: `ppspeech encrypt-plan words --operation viterbi`, `ppspeech encrypt-plan voices --places 16 --cohort 20`
    """
    from ppspeech.bundle import SpeakerUbmSettings, load_bundle
    from ppspeech.service import Deployment, plan_service, plan_speakers
    from ppspeech.service.server import SpeakerDeployment

    loaded = load_bundle(bundle)
    plan: ServicePlan | SpeakerPlan
    if isinstance(loaded.config.settings, SpeakerUbmSettings):
        plan = plan_speakers(loaded, SpeakerDeployment(places=places, frames=frames), cohort)
        once, facts = _once_for_speakers(plan), _speaker_facts(plan)
    else:
        plan = plan_service(loaded, Deployment(frames=frames, operation=operation, reject=reject))
        once, facts = _once(plan), _facts(plan)
    if as_json:
        typer.echo(json.dumps(plan.to_json()))
    else:
        _show(bundle, plan.modes, once, facts, plan.warnings)


def _show(
    bundle: Path,
    modes: "Sequence[ModePlan]",
    once: str,
    facts: Sequence[tuple[str, str]],
    warnings: Sequence[str],
) -> None:
    console = Console(highlight=False)
    costs = Table(title=f"{bundle}: one utterance", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("way to run", "MB up", "MB down", "rounds", "offline s", "loopback s", "at 10 ms", "at 40 ms"):
        costs.add_column(heading, justify="left" if heading == "way to run" else "right")
    for each in modes:
        sizes = (f"{size / 1e6:.2f}" for size in (each.cost.bytes_up, each.cost.bytes_down))
        seconds = (f"{value:.2f}" for value in (each.cost.offline_seconds, *each.seconds))
        costs.add_row(each.mode, *sizes, str(each.cost.rounds), *seconds)
    console.print(costs)
    console.print(f"  [dim]seconds are estimates; {once}[/]")
    table = Table(box=box.SIMPLE_HEAD, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, text in [*facts, *_statements(modes)]:
        table.add_row(name, escape(text))
    console.print(table)
    for warning in warnings:
        console.print(f"[yellow]note:[/] {escape(warning)}", soft_wrap=True)


def _once(plan: "ServicePlan") -> str:
    from ppspeech.service import MEETING_BYTES

    once = f"streaming counts from the last frame; once a session: {MEETING_BYTES / 1e3:.0f} kB to meet"
    if plan.model_bytes:
        once += f", {plan.model_bytes / 1e3:.0f} kB of encrypted models for streaming"
    return once


def _once_for_speakers(plan: "SpeakerPlan") -> str:
    from ppspeech.service import MEETING_BYTES

    once = f"once a session: {MEETING_BYTES / 1e3:.0f} kB to meet"
    if plan.gallery_bytes:
        once += f"; once a private gallery: {plan.gallery_bytes / 1e3:.0f} kB of encrypted templates"
    return once


def _facts(plan: "ServicePlan") -> list[tuple[str, str]]:
    errors, shape = plan.errors, plan.shape
    return [
        ("model", f"{plan.type}: {plan.task}"),
        ("trained with", plan.guarantee),
        ("clients will know", ", ".join(f"{name} {value}" for name, value in shape.to_params().items())),
        ("packing", plan.packing),
        (
            "error of a score",
            f"{errors.score.typical:.2g} nat typically, {errors.score.certain:.3g} at the very worst "
            f"({shape.frames} frames of {errors.frame.typical:.2g} / {errors.frame.certain:.2g}, log-adds of "
            f"{errors.log_add.typical:.2g} / {errors.log_add.certain:.2g})",
        ),
        (
            "range of scores",
            f"{errors.range_nats.typical:,.0f} nats typically ({errors.range_bits.typical:g} bits), "
            f"{errors.range_nats.certain:,.0f} at the very worst ({errors.range_bits.certain:g}); shares have "
            f"{errors.bits}",
        ),
    ]


def _speaker_facts(plan: "SpeakerPlan") -> list[tuple[str, str]]:
    return [
        ("model", plan.task),
        ("trained with", plan.guarantee),
        ("clients will know", f"the bundle, {plan.features} numbers a template, {plan.places} places, taken or not"),
        (
            "the server knows",
            "templates of enrolled speakers; with a private gallery ciphertexts only, and a keeper knows the templates",
        ),
    ]


def _statements(modes: "Sequence[ModePlan]") -> list[tuple[str, str]]:
    facts = []
    for statement in {each.statement.name: each.statement for each in modes}.values():
        facts += [
            (f"{statement.name} computes", statement.functionality),
            ("  leaks", statement.leakage),
            ("  assumes", statement.assumptions),
        ]
    facts.append(
        (
            "not covered",
            "a party that cheats, unless it says so; what many answers together tell about the model (see --budget)",
        )
    )
    return facts
