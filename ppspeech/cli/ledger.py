"""`ppspeech ledger`: the releases made from data sets, and what they come to together."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.bundle import Ledger, Total

LedgerFile = Annotated[Path, typer.Argument(help="The ledger, a file of JSON lines.")]
Delta = Annotated[float | None, typer.Option(help="State totals at this delta; else at the largest of the releases.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object.")]


def add(
    ledger: LedgerFile,
    bundle: Annotated[Path, typer.Argument(help="The bundle that was released.")],
    data: Annotated[str, typer.Option(help="What the data set is called: releases of one name are composed.")],
    by: Annotated[str, typer.Option(help="Who released it.")],
    as_json: AsJson = False,
) -> None:
    """Enter a release. A ledger that is not there is begun; several may add at the same time.

    What is entered is public: the names given here, the guarantee, the events, and the bundle's fingerprint.

    Example: `ppspeech ledger add releases.jsonl words --data "ward 7" --by ann`
    """
    from ppspeech.bundle import add_release, load_bundle, read_ledger

    entry = add_release(ledger, load_bundle(bundle), data=data, by=by)
    now = read_ledger(ledger)
    if as_json:
        typer.echo(json.dumps({**asdict(entry), "head": now.head, "totals": _plain(now.totals(data))}))
        return
    console = Console()
    console.print(f"entry {entry.number} of {ledger}: {bundle}, from {data}, by {by}")
    for total in now.totals(data):
        console.print(f"  {total}")
    console.print(f"head {now.head}")


def show(
    ledger: LedgerFile,
    data: Annotated[str, typer.Option(help="Only the releases of this data set.")] = "",
    delta: Delta = None,
    as_json: AsJson = False,
) -> None:
    """List the releases, and what those of each data set come to together, by the accountant from all their events.

    Examples: `ppspeech ledger show releases.jsonl`, `ppspeech ledger show releases.jsonl --data "ward 7" --delta 1e-6`
    """
    from ppspeech.bundle import read_ledger
    from ppspeech.errors import BundleError

    found = read_ledger(ledger)
    if data and data not in found.data:
        raise BundleError(f"nothing in {ledger} is from {data}: there are {', '.join(found.data) or 'no releases'}")
    chosen = [data] if data else list(found.data)
    entries = [each for each in found.booked if each.entry.data in chosen]
    totals = [total for name in chosen for total in found.totals(name, delta)]
    if as_json:
        listed = [asdict(each.entry) | {"account": each.account.to_json()} for each in entries]
        typer.echo(json.dumps({"entries": listed, "totals": _plain(totals), "head": found.head}))
        return
    table = Table("", "when", "data", "by", "what", "guarantee", "bundle", box=box.SIMPLE_HEAD)
    for each in entries:
        entry, relation = each.entry, each.account.relation
        pair = "none" if entry.epsilon is None else f"({entry.epsilon:.4g}, {entry.delta:.3g})-DP, {relation}"
        names = (entry.data, entry.by, entry.what, pair, entry.bundle[:12])
        table.add_row(str(entry.number), entry.time[:10], *names)
    console = Console()
    console.print(table)
    _say(totals, console)
    console.print(f"head {found.head}")


def verify(
    ledger: LedgerFile,
    bundles: Annotated[list[Path] | None, typer.Argument(help="Bundles that must be in it.")] = None,
    head: Annotated[str, typer.Option(help="A head, NUMBER:HASH, that the ledger must go through.")] = "",
    key: Annotated[Path | None, typer.Option(help="Public key with which its head was signed.")] = None,
    most: Annotated[float | None, typer.Option(help="Refuse it if a data set's total epsilon is above this.")] = None,
    delta: Delta = None,
    as_json: AsJson = False,
) -> None:
    """Check a ledger: its chain, that every epsilon follows from its events, and the bundles that are given.

    What is cut off at the end only a head shows that you know: give the last one you saw, or the signer's key.

    Examples: `ppspeech ledger verify releases.jsonl words`, `ppspeech ledger verify releases.jsonl --head 3:9f…`,
    `ppspeech ledger verify releases.jsonl --key signing.pub`
    """
    from ppspeech.bundle import check_signed_head, load_bundle, read_ledger
    from ppspeech.errors import PrivacyError

    found = read_ledger(ledger)
    if head:
        found.check_head(head)
    signed = check_signed_head(ledger, found, key) if key is not None else None
    for each in found.booked:
        each.check()
    for path in bundles or []:
        found.check_bundle(load_bundle(path))
    totals = [total for name in found.data for total in found.totals(name, delta)]
    for total in totals:
        if most is not None and not total.epsilon <= most:
            raise PrivacyError(f"{total}, and the most that was stated is {most:g}")
    if as_json:
        facts: dict[str, Any] = {"entries": len(found.booked), "bundles": len(bundles or [])}
        typer.echo(json.dumps(facts | {"totals": _plain(totals), "head": found.head, "signed_head": signed}))
        return
    console = Console()
    console.print(f"{ledger}: {len(found.booked)} releases; the chain holds, every epsilon follows from its events")
    if bundles:
        console.print(f"  {len(bundles)} of them compared with their bundles")
    _say(totals, console)
    known = "that is signed" if signed else "that is known" if head else ""
    console.print(f"goes through the head {known}" if known else _unknown(found), style="dim")


def sign(
    ledger: LedgerFile,
    key: Annotated[Path, typer.Option(help="Your private key, as `ppspeech keys signing` makes one.")],
    as_json: AsJson = False,
) -> None:
    """Vouch for a ledger up to its head, so that others see if it is cut off later. Needs the extra `sign`.

    Example: `ppspeech ledger sign releases.jsonl --key my_keys/signing.pem`
    """
    from ppspeech.bundle import read_ledger, sign_head

    head = sign_head(ledger, read_ledger(ledger), key)
    typer.echo(json.dumps({"ledger": str(ledger), "head": head}) if as_json else f"signed: head {head}")


LEDGER_COMMANDS: dict[str, Callable[..., None]] = {"add": add, "show": show, "verify": verify, "sign": sign}


def _unknown(ledger: "Ledger") -> str:
    return f"whether anything was cut off after it, no ledger shows itself: keep its head, {ledger.head}"


def _say(totals: "list[Total]", console: Console) -> None:
    for total in totals:
        console.print(str(total))
    for data in dict.fromkeys(total.data for total in totals):
        if sum(total.data == data for total in totals) > 1:
            console.print(f"  the totals of {data} are for different units: they neither add nor compare")


def _plain(totals: "tuple[Total, ...] | list[Total]") -> list[dict[str, Any]]:
    return [
        {
            "data": total.data,
            "unit": total.relation.unit,
            "adjacency": total.relation.adjacency,
            "releases": total.releases,
            "epsilon": None if math.isinf(total.epsilon) else total.epsilon,
            "delta": total.delta,
        }
        for total in totals
    ]
