"""`ppspeech encrypt-plan`: what serving a model encrypted will cost and leak, before it runs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.service import ServicePlan, WayToRun


def encrypt_plan(
    bundle: Annotated[Path, typer.Argument(help="A bundle.")],
    frames: Annotated[
        int | None, typer.Option(help="Utterances will be padded to this many; by default as `serve` does it.", min=1)
    ] = None,
    operation: Annotated[
        Literal["forward", "viterbi"], typer.Option(help="Add up all paths, or take the best, also in circuits.")
    ] = ("forward"),
    reject: Annotated[bool, typer.Option("--reject", help="With a garbage model.")] = False,
    words: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE,…", help="Further choices for words, as `serve` takes them: limit, bits, …"),
    ] = None,
    sentences: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE,…", help="Further choices for sentences: bits.")
    ] = None,
    places: Annotated[int, typer.Option(help="Speakers: room for so many.", min=1)] = 64,
    cohort: Annotated[int, typer.Option(help="Speakers: members of a cohort that norms scores.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say what `ppspeech serve` would cost, what would leak and how exact it would be. Nothing is served.

    Bytes and rounds are exact; seconds are estimates: on loopback, and over links of 10, 40 and 100 ms round trip.

    A bundle of sentences is planned for the longest that it takes, and the shortest; one of speakers for every scoring
    that `ppspeech serve` has.

    Examples: `ppspeech encrypt-plan words --operation viterbi`, `ppspeech encrypt-plan words --words limit=6,bits=24`,
    `ppspeech encrypt-plan sentences --frames 320`, `ppspeech encrypt-plan voices --places 16 --cohort 20`
    """
    from ppspeech.bundle import (
        CtcNetworkSettings,
        KeywordNetworkSettings,
        SentenceHmmSettings,
        SentenceNetworkSettings,
        load_bundle,
    )
    from ppspeech.cli.serve import choices
    from ppspeech.service import (
        Deployment,
        SentenceDeployment,
        SpeakerDeployment,
        plan_network,
        plan_sentences,
        plan_speakers,
        plan_words,
    )

    loaded = load_bundle(bundle)
    if "verify" in loaded.config.kind.uses:
        plan = plan_speakers(loaded, SpeakerDeployment(places=places, frames=frames), cohort)
        facts = _speaker_facts(plan)
    elif isinstance(loaded.config.settings, SentenceHmmSettings | SentenceNetworkSettings):
        plan = plan_sentences(loaded, choices(SentenceDeployment(frames=frames), sentences, "--sentences"))
        facts = _sentence_facts(plan)
    elif isinstance(loaded.config.settings, KeywordNetworkSettings | CtcNetworkSettings):
        plan = plan_network(loaded, choices(SentenceDeployment(frames=frames), sentences, "--sentences"))
        facts = _network_facts(plan)
    else:
        usual = Deployment(frames=frames, operation=operation, reject=reject)
        plan = plan_words(loaded, choices(usual, words, "--words"))
        facts = _facts(plan)
    if as_json:
        typer.echo(json.dumps(plan.to_json()))
    else:
        _show(bundle, plan, facts)


def _show(bundle: Path, plan: "ServicePlan", facts: Sequence[tuple[str, str]]) -> None:
    from ppspeech.service import BYTES_PER_SECOND, ROUND_TRIPS

    console = Console()
    costs = Table(title=f"{bundle!s}: one utterance", title_justify="left", box=box.SIMPLE_HEAD)
    first = "padded to" if "step" in plan.details else "way to run"
    trips = [f"at {1e3 * trip:.0f} ms" if trip else "loopback s" for trip in ROUND_TRIPS]
    for heading in (first, "MB up", "MB down", "rounds", "offline s", *trips):
        costs.add_column(heading, justify="left" if heading == first else "right")
    for each in plan.modes:
        sizes = (f"{size / 1e6:.2f}" for size in (each.cost.bytes_up, each.cost.bytes_down))
        seconds = (f"{value:.2f}" for value in (each.cost.offline_seconds, *each.seconds))
        costs.add_row(each.mode, *sizes, str(each.cost.rounds), *seconds)
    console.print(costs)
    basis = "seconds from the voice to the answer, estimates: work as measured on two shared cores, rounds x round trip"
    console.print(f"  {basis}, bytes at {8e-6 * BYTES_PER_SECOND:.0f} Mbit/s; {_once(plan)}", style="dim")
    table = Table(box=box.SIMPLE_HEAD, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, text in [*facts, *_statements(plan.modes)]:
        table.add_row(name, text)
    console.print(table)
    for warning in plan.warnings:
        console.print(Text.assemble(("note:", "yellow"), f" {warning}"))


def _once(plan: "ServicePlan") -> str:
    from ppspeech.service import MEETING_BYTES

    once = f"once a session: {MEETING_BYTES / 1e3:.0f} kB to meet"
    if models := plan.details.get("model_bytes"):
        once = f"streaming counts from the last frame; {once}, {models / 1e3:.0f} kB of encrypted models for streaming"
    if gallery := plan.details.get("gallery_bytes"):
        once += f"; once a private gallery: {gallery / 1e3:.0f} kB of encrypted templates"
    return once


def _facts(plan: "ServicePlan") -> list[tuple[str, str]]:
    shape, errors, told = plan.details["shape"], plan.details["errors"], plan.details["knowledge"]
    typical, certain = (
        {name: errors[name][how] for name in errors if name != "bits"} for how in ("typical", "certain")
    )
    return [
        ("model", f"{plan.details['type']}: {plan.task}"),
        ("trained with", plan.guarantee),
        ("clients will know", ", ".join(f"{name} {value}" for name, value in shape.items())),
        ("packing", plan.details["packing"]),
        (
            "an answer tells",
            f"{told['bits']} bits of the model at the most, whatever a client does; the model could be known after "
            f"{told['queries']:,} queries; usual budget of a client: {told['budget']:,} (docs/theory/asking.md)",
        ),
        (
            "error of a score",
            f"{typical['score']:.2g} nat typically, {certain['score']:.3g} at the very worst "
            f"({shape['frames']} frames of {typical['frame']:.2g} / {certain['frame']:.2g}, log-adds of "
            f"{typical['log_add']:.2g} / {certain['log_add']:.2g})",
        ),
        (
            "range of scores",
            f"{typical['range_nats']:,.0f} nats typically, {certain['range_nats']:,.0f} at the very worst, for any "
            f"voice: {certain['range_bits']:g} bits; shares have {errors['bits']}: no score can leave their range",
        ),
    ]


def _sentence_facts(plan: "ServicePlan") -> list[tuple[str, str]]:
    found, told = plan.details, plan.details["knowledge"]
    shape = found["shape"]
    heard = [word for word in shape["words"] if word]
    return [
        ("model", f"{found['type']}: {plan.task}"),
        ("trained with", plan.guarantee),
        (
            "clients will know",
            f"{len(heard)} words ({', '.join(heard[:12])}{', …' if len(heard) > 12 else ''}); a graph of "
            f"{shape['columns']} places and {shape['arcs']} ways, without what they weigh; frames of "
            f"{shape['dimensions']} numbers within {shape['radius']:.4g}{_scored_by(shape)}",
        ),
        ("the server knows", f"how long a recording is, in steps of {found['step']} frames, and nothing that was said"),
        (
            "a second of speech",
            f"{found['bytes_a_second'] / 1e6:.2f} MB and {found['rounds_a_second']:g} rounds of the longest",
        ),
        *(
            [
                (
                    "a client holds",
                    f"{found['held_bytes'] / 1e6:.1f} MB of garbled tables for the longest until it is spoken, "
                    f"{found['held_bytes'] / shape['frames'] / 1e3:.0f} kB a frame; nothing on shares",
                )
            ]
            if found["held_bytes"]
            else []
        ),
        (
            "an answer tells",
            f"{told['bits']} bits of the model at the most, whatever a client does; the model could be known after "
            f"{told['queries']:,} queries; usual budget of a client: {told['budget']:,}, each a query, however long "
            "(docs/theory/asking.md)",
        ),
        (
            "range of scores",
            f"{found['most_apart']:,.0f} nats at the very worst, for any voice; shares of {shape['bits']} bits with "
            f"{shape['fraction']} after the point hold {found['bound']:,.0f}: no score can leave their range",
        ),
    ]


def _scored_by(shape: dict[str, Any]) -> str:
    network = shape["network"]
    return f" and {shape['limit']:g}" if network is None else f"; a network of {_sizes(network)}, with its ranges"


def _sizes(network: dict[str, Any]) -> str:
    return "-".join(str(size) for size in (network["dimensions"], *(layer["outputs"] for layer in network["layers"])))


def _network_facts(plan: "ServicePlan") -> list[tuple[str, str]]:
    found, told = plan.details, plan.details["knowledge"]
    shape = found["shape"]
    ranges = ", ".join(f"2^{layer['range_bits'] - 1}" for layer in shape["layers"])
    return [
        ("model", f"{found['type']}: {plan.task}"),
        ("trained with", plan.guarantee),
        (
            "clients will know",
            f"layers of {_sizes(shape)} with their windows, activations and pools; {shape['frames']} frames within "
            f"{shape['radius']:g}; powers of two that hold the values of each: {ranges}",
        ),
        (
            "an answer tells",
            f"{told['bits']} bits of the network at the most, whatever a client does; it could be known after "
            f"{told['queries']:,} queries; usual budget of a client: {told['budget']:,} (docs/theory/asking.md)",
        ),
        (
            "range of values",
            f"shares of {', '.join(map(str, found['rings']))} bits with {shape['fraction']} after the point: none can "
            f"leave them; activations by lines are within {found['lines_error']:.3f}",
        ),
    ]


def _speaker_facts(plan: "ServicePlan") -> list[tuple[str, str]]:
    sizes = f"{plan.details['features']} numbers a template, {plan.details['places']} places"
    return [
        ("model", plan.task),
        ("trained with", plan.guarantee),
        ("clients will know", f"the bundle, {sizes}, taken or not"),
        (
            "the server knows",
            "templates of enrolled speakers; with a private gallery ciphertexts only, and a keeper knows the templates",
        ),
    ]


def _statements(modes: "Sequence[WayToRun]") -> list[tuple[str, str]]:
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
