"""`ppspeech sign` and `ppspeech verify-release`: who vouches for a bundle, and whether they did."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ppspeech.screen import Console


def sign(
    folder: Annotated[Path, typer.Argument(help="A bundle.")],
    key: Annotated[Path, typer.Option(help="Your private key, as `ppspeech keys signing` makes one.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Vouch for a bundle: its weights, statement, events, card and figures, by OpenSSF Model Signing.

    The signature is one more file, `model.sig`, and other tools can check it too (`model_signing verify key`). Nothing
    leaves this machine. Needs the extra `sign`.

    Example: `ppspeech sign words --key my_keys/signing.pem`
    """
    from ppspeech.bundle import sign_release

    bundle = sign_release(folder, key)
    if as_json:
        typer.echo(json.dumps({"bundle": str(folder), "fingerprint": bundle.fingerprint}))
        return
    console = Console()
    console.print(f"{folder} is signed: {bundle.fingerprint}")
    console.print("whoever has your public key checks it by `ppspeech verify-release … --key signing.pub`")


def verify_release(
    folder: Annotated[Path, typer.Argument(help="A bundle.")],
    key: Annotated[Path, typer.Option(help="The signer's public key, which you have from them.")],
    ledger: Annotated[Path | None, typer.Option(help="Refuse it too unless it is in this ledger.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Refuse a bundle unless it is whole, says what follows from its events, and was signed with this key.

    Epsilon is computed again from the events, all digests are compared, and what a signature does not prove is said.
    Needs the extra `sign`.

    Examples: `ppspeech verify-release words --key signing.pub`,
    `ppspeech verify-release words --key signing.pub --ledger releases.jsonl`
    """
    from ppspeech.bundle import NOT_PROVEN, read_ledger, signer_of
    from ppspeech.bundle import verify_release as verified

    bundle = verified(folder, key)
    entry = read_ledger(ledger).check_bundle(bundle) if ledger is not None else None
    if as_json:
        facts = {"bundle": str(folder), "fingerprint": bundle.fingerprint, "signer": signer_of(key)}
        told = {"privacy": bundle.statement.to_json(), "entry": entry.number if entry else None}
        typer.echo(json.dumps(facts | told | {"not_proven": list(NOT_PROVEN)}))
        return
    console = Console()
    console.print(f"{folder} is as it was signed by {signer_of(key)}")
    console.print(f"  {bundle.statement.guarantee}; computed again from its events")
    if entry is not None:
        console.print(f"  entry {entry.number} of the ledger: from {entry.data}, by {entry.by}, {entry.time}")
    console.print("The signature does not prove:")
    for line in NOT_PROVEN:
        console.print(f"  - {line}")
