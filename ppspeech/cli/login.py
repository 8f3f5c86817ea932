"""`ppspeech login`: let people in by their voice and by digits that are asked for."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ppspeech.cli.door import Authority, Certificate, Insecure, Model, Pin, ShowTranscript, door_to
from ppspeech.cli.serve import Drain, Metrics, Running, StoreKey, run_server, service_files, store_address
from ppspeech.errors import AudioError, PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.audio import Samples
    from ppspeech.service import Answer
    from ppspeech.service.store import Place

RECORDED_S = 12.0

Address = Annotated[str, typer.Argument(metavar="HOST:PORT", help="Where a `ppspeech login serve` listens.")]
Name = Annotated[str, typer.Argument(help="Who it is.")]
OwnKey = Annotated[
    Path, typer.Option("--key", help="The file of the person's own key, which seals the template at the server.")
]
Accounts = Annotated[str, typer.Option(metavar="FOLDER|ADDRESS", help="The --store of `ppspeech login serve`.")]
ONE = "One JSON object."
TlsKey = Annotated[Path | None, typer.Option("--tls-key", help="The private key of --certificate, PEM.")]


def serve(
    bundle: Annotated[Path, typer.Argument(help="What `ppspeech voices learn` has made, with a cohort.")],
    store: Annotated[
        str,
        typer.Option(
            metavar="FOLDER|ADDRESS",
            help="Folder that keeps accounts, sealed, budgets, and who has come; or a database that servers share, "
            "postgresql://USER@HOST:PORT/DATABASE or @FILE, with --state and --store-key.",
        ),
    ],
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen at; port 0 takes a free one.")] = "127.0.0.1:7000",
    false_accept: Annotated[float, typer.Option(help="Let a stranger's voice pass at this rate, 0 to 1.")] = 0.01,
    digits: Annotated[int, typer.Option(help="So many are asked for.", min=1, max=8)] = 4,
    seconds: Annotated[float, typer.Option(help="From the question to the answer.", min=1, max=50)] = 30.0,
    tries: Annotated[int, typer.Option(help="Failures in a row until a name is locked.", min=1)] = 5,
    locked: Annotated[float, typer.Option(help="For how many seconds a name is locked.", min=1)] = 900.0,
    enroll: Annotated[bool, typer.Option("--enroll/--no-enroll", help="Whether clients may enroll.")] = True,
    budget: Annotated[int | None, typer.Option(help="Attempts of one client; 10,000 by default.", min=0)] = None,
    certificate: Annotated[Path | None, typer.Option(help="Our certificate, PEM; one is made by default.")] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key, PEM.")] = None,
    client_ca: Annotated[
        Path | None, typer.Option(help="Let in only clients whose certificate is, or is signed by, one of these.")
    ] = None,
    state: Annotated[Path | None, typer.Option(help="With a database: folder that keeps who has come here.")] = None,
    store_key: StoreKey = None,
    metrics: Metrics = "",
    sessions: Annotated[int, typer.Option(help="Clients at a time, a process each.", min=1)] = 64,
    drain: Drain = 10.0,
    insecure: Annotated[bool, typer.Option("--insecure", help="Plain TCP, on a loopback address, to try out.")] = False,
) -> None:
    """Let people in by their voice and by digits that we ask for. We hear nothing, and learn one bit an attempt.

    Templates are sealed under people's own keys: whoever steals the store has none of them. A client that does anything
    cannot bend the decision, nor learn a template. A recording of all digits, or speech that is made in time, does
    pass. Who came is written to logins.jsonl in the store. The first start listens to the built-in voices for a while.
    Ends in order on Ctrl-C or SIGTERM.

    Examples: `ppspeech login serve voices --store people`, `ppspeech login serve voices --store people --listen
    0.0.0.0:7000 --false-accept 0.001 --no-enroll`
    """
    import torch

    from ppspeech.bundle import load_bundle
    from ppspeech.network import own_tls
    from ppspeech.service.login import LoginDeployment, ServedLogin
    from ppspeech.service.server import kept_folder, log_as_json
    from ppspeech.service.store import is_address

    torch.set_num_threads(1)  # the server forks: threads would not survive it
    chosen = LoginDeployment(false_accept, digits, seconds, tries, locked, enroll)
    shared = store_address(store) if is_address(store) else ""
    if shared and state is None:
        raise PpspeechError("who has come is written down here, not in the database: give --state FOLDER too")
    held = load_bundle(bundle)
    kept = state if shared else Path(store)
    with log_as_json(), kept_folder(kept) as folder, own_tls(certificate, key, client_ca, insecure=insecure) as tls:
        files = service_files(folder, budget, metrics, shared, store_key)
        served = ServedLogin.of("login", held, folder, chosen, store=files.store)
        run_server([served], files, Running(listen, tls, insecure, sessions, drain, metrics))


def enroll(
    server: Address,
    name: Name,
    clips: Annotated[
        list[Path], typer.Argument(help="Clips of all ten digits, named 0.wav, 1.wav, 7_again.wav, …, or their folder.")
    ],
    key: OwnKey,
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    tls_key: TlsKey = None,
    insecure: Insecure = False,
    model: Model = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Enroll for log-ins, by clips of the ten digits in any language; two of each or more are better than one.

    The template is computed here and sealed under a new key, which is written to --key and goes nowhere but to the
    server when the person logs in. The server gets the name and what it cannot open. Lose the key, and it is to be done
    again, under another name.

    Examples: `ppspeech login enroll 127.0.0.1:7000 ann my_digits --key ann.key --pin …`,
    `ppspeech login enroll 127.0.0.1:7000 ann 0.wav 1.wav … 9.wav --key ann.key --pin …`
    """
    from ppspeech.service import connect_through
    from ppspeech.service.login import digit_clips, new_key, read_key, write_key

    heard = digit_clips(clips)
    door = door_to(server, pin, ca, certificate, tls_key, insecure)
    with connect_through(door, model=model or None, task="login") as client:
        write_key(key, new_key())
        try:
            client.join(name, read_key(key), heard)
        except BaseException:
            key.unlink(missing_ok=True)
            raise
    if as_json:
        typer.echo(json.dumps({"name": name, "key": str(key), "clips": sum(map(len, heard.values()))}))
        return
    Console().print(f"{name} may log in with the key {key}: `ppspeech login check {server} {name} --key {key} …`")


def check(
    server: Address,
    name: Name,
    key: OwnKey,
    digits_from: Annotated[
        Path | None,
        typer.Option(help="Instead of the microphone: clips of digits, named as for `enroll`, which are said for you."),
    ] = None,
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    tls_key: TlsKey = None,
    insecure: Insecure = False,
    model: Model = "",
    show_transcript: ShowTranscript = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Log in: say the digits that the server asks for, with short pauses. The voice stays here, encrypted.

    Exits with 0 whether we are let in or not. The server learns the name and one bit; not what failed.

    Examples: `ppspeech login check 127.0.0.1:7000 ann --key ann.key --pin …`,
    `ppspeech login check 127.0.0.1:7000 ann --key ann.key --digits-from my_digits --pin … --json`
    """
    from ppspeech.service import connect_through
    from ppspeech.service.login import read_key

    own = read_key(key)
    say = _microphone() if digits_from is None else _clips(digits_from)
    door = door_to(server, pin, ca, certificate, tls_key, insecure)
    with connect_through(door, model=model or None, task="login", keep_payloads=show_transcript) as client:
        answer = client.log_in(name, own, say)
    if show_transcript:
        from ppspeech.cli.transcripts import show_transcript as show

        show(answer.transcript)
    _say(name, answer, as_json)


def _accounts(store: str, key: Path | None) -> "Place":
    """The folder, or the database, that keeps accounts. Raises PpspeechError for what cannot be opened."""
    from ppspeech.service.store import is_address, open_store

    shared = open_store(store_address(store) if is_address(store) else None, key)
    return Path(store) if shared is None else shared


def remove(
    name: Name,
    store: Accounts,
    store_key: StoreKey = None,
    as_json: Annotated[bool, typer.Option("--json", help=ONE)] = False,
) -> None:
    """Forget somebody who could log in: the name and the sealed template. For whoever keeps the store.

    It holds at once, also for a server that is running, and leaves no byte of the template in the folder. That somebody
    of this name came before is still written in its logins.jsonl. The name may be enrolled again.

    Example: `ppspeech login remove ann --store people`
    """
    from ppspeech.service.login import remove_account

    remove_account(_accounts(store, store_key), name)
    _done({"name": name, "removed": True}, f"{name} is forgotten, and may be enrolled again", as_json)


def unlock(
    name: Name,
    store: Accounts,
    store_key: StoreKey = None,
    as_json: Annotated[bool, typer.Option("--json", help=ONE)] = False,
) -> None:
    """Let somebody try again who failed too often: their failures are forgiven. For whoever keeps the store.

    It holds at once, also for a server that is running. Ask who it is by another way first: only who has the person's
    key can lock a name.

    Example: `ppspeech login unlock ann --store people`
    """
    from ppspeech.service.login import unlock_account

    unlock_account(_accounts(store, store_key), name)
    _done({"name": name, "unlocked": True}, f"{name} may try again", as_json)


LOGIN_COMMANDS: dict[str, Callable[..., None]] = {
    "serve": serve,
    "enroll": enroll,
    "check": check,
    "remove": remove,
    "unlock": unlock,
}


def _done(facts: dict[str, object], told: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(facts))
    else:
        Console().print(told)


def _microphone() -> "Callable[[Sequence[int]], Samples]":
    from ppspeech.audio import find_recorder

    find_recorder()  # before an attempt is spent

    def say(asked: Sequence[int]) -> "Samples":
        import numpy as np

        from ppspeech.audio import record
        from ppspeech.service.login import RATE, until_said

        Console(stderr=True).print(f"say, with short pauses: [bold]{'  '.join(map(str, asked))}[/bold]")
        return np.concatenate(list(until_said(record(RECORDED_S, RATE), len(asked))))

    return say


def _clips(folder: Path) -> "Callable[[Sequence[int]], Samples]":
    from ppspeech.audio import samples_at
    from ppspeech.service.login import RATE, digit_clips, joined

    if not folder.is_dir():
        raise PpspeechError(f"no folder {folder}: clips of digits are in one, named 0.wav, 1.wav, …")
    held = digit_clips([folder])

    def say(asked: Sequence[int]) -> "Samples":
        said = []
        for place, digit in enumerate(asked):
            own = held.get(digit)
            if not own:
                raise AudioError(f"{folder} has no clip of {digit}, which is asked for: name one {digit}.wav")
            said.append(samples_at(own[list(asked[:place]).count(digit) % len(own)], None, RATE))
        return joined(said)

    return say


def _say(name: str, answer: "Answer[bool]", as_json: bool) -> None:
    facts = {
        "name": name,
        "accepted": answer.value,
        "seconds": round(answer.seconds, 3),
        "offline_seconds": round(answer.offline_seconds, 3),
        "bytes": answer.bytes_up + answer.bytes_down,
        "rounds": answer.rounds,
    }
    if as_json:
        typer.echo(json.dumps(facts))
        return
    console = Console()
    console.print(f"{name}: {'welcome' if answer.value else 'not let in'}")
    took = f"{facts['seconds']} s after the last digit, {facts['offline_seconds']} s before"
    console.print(f"  {took}, {answer.bytes_up + answer.bytes_down:,} bytes, {answer.rounds} round trips", style="dim")
