"""`ppspeech keys`: certificates by which client and server know each other, keys that sign bundles or seal stores."""

import json
import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from ppspeech.errors import PpspeechError
from ppspeech.screen import Console


def keys(
    what: Annotated[
        Literal["new", "signing", "store"],
        typer.Argument(
            help="`new` makes a certificate and its key, `signing` a key that signs bundles, `store` one under which "
            "servers seal what a database keeps."
        ),
    ],
    folder: Annotated[Path, typer.Argument(help="Where they go; made if it is not there.")],
    name: Annotated[
        list[str] | None, typer.Option(help="Host name or address it is for; several times. The first is its own.")
    ] = None,
    days: Annotated[float, typer.Option(help="How long it is valid.", min=1)] = 365,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Make a self-signed certificate for a server or a client, and a key that only its owner can read.

    A server shows it with `ppspeech serve --certificate … --key …`, and lets in a client's with `--client-ca`. A
    signing key vouches for bundles: `ppspeech sign words --key my_keys/signing.pem`.

    Examples: `ppspeech keys new my_keys --name speech.example.org`, `ppspeech keys signing my_keys`,
    `ppspeech keys store my_keys`
    """
    from ppspeech.network import make_certificate

    if what == "signing":
        _make_signing_key(folder, as_json)
        return
    if what == "store":
        _make_store_key(folder, as_json)
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    if certificate.exists() or key.exists():
        raise PpspeechError(f"{folder} holds a certificate or key already: choose another folder")
    # OpenSSL finds a trusted certificate by its subject, the first name: two clients must not share one.
    own = folder.resolve().name
    if not name and not re.fullmatch("[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", own):
        raise PpspeechError(f"a certificate is named after its folder, and {own!r} is no host name: give --name")
    names = tuple(name or (own, "localhost", "127.0.0.1"))
    fingerprint = make_certificate(certificate, key, names, days)
    if as_json:
        made = {"certificate": str(certificate), "key": str(key), "fingerprint": fingerprint, "names": names}
        typer.echo(json.dumps(made))
        return
    console = Console()
    console.print(f"certificate: {certificate} (may be given to anyone)")
    console.print(f"key:         {key} (keep it to yourself)")
    console.print(f"fingerprint: {fingerprint} (clients pin it: --pin)")


def _make_signing_key(folder: Path, as_json: bool) -> None:
    from ppspeech.bundle import make_signing_key, signer_of

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = folder / "signing.pem"
    public = make_signing_key(key)
    if as_json:
        typer.echo(json.dumps({"key": str(key), "public_key": str(public), "signer": signer_of(public)}))
        return
    console = Console()
    console.print(f"key:        {key} (keep it to yourself)")
    console.print(f"public key: {public} (whoever gets a bundle needs it: `ppspeech verify-release … --key`)")


def _make_store_key(folder: Path, as_json: bool) -> None:
    from ppspeech.service.store import write_store_key

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = folder / "store.key"
    write_store_key(key)
    if as_json:
        typer.echo(json.dumps({"key": str(key)}))
        return
    console = Console()
    console.print(f"key: {key} (every server of the store needs it, and the database must not have it)")
    console.print("what it seals is lost with it: keep a copy where the database's copies are not", style="dim")
