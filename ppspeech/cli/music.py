"""`ppspeech music`: an index of songs, a server of it, and which song a clip is of."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ppspeech.cli.door import Authority, Certificate, Insecure, Key, Model, Pin, Server, ShowTranscript, door_to
from ppspeech.cli.serve import Drain, Metrics, Running, Store, StoreKey, run_server, service_files, store_address
from ppspeech.errors import AudioError, PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.audio import Sound
    from ppspeech.service import Answer, FindBy

By = Annotated[
    str,
    typer.Option(
        help="By `fingerprints`, signs of energy differences; by `landmarks`, pairs of peaks, one round trip however "
        "many songs; or by `shapes` of spectra."
    ),
]


def index(
    folder: Annotated[Path, typer.Argument(help="Sound files; a song is called as its file is.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The index, a file for its owner alone.")],
    as_json: Annotated[bool, typer.Option("--json", help="What it holds, as JSON.")] = False,
) -> None:
    """Make an index of the songs in a folder, and set from where on one is named.

    A clip is named only where it fits better, by a margin, than excerpts of any song fit the others.

    Examples: `ppspeech music index songs -o songs.index`, `ppspeech music index songs -o songs.index --json`
    """
    from ppspeech.service import index_folder

    made = index_folder(folder)
    made.write(output)
    facts = {
        "index": str(output),
        "songs": len(made.names),
        "landmarks": made.map_shape.entries,
        "bytes": output.stat().st_size,
        "fingerprints_from": made.thresholds["fingerprints"],
        "shapes_from": made.thresholds["shapes"],
        "landmarks_from": made.map_shape.votes,
        "alike": [[each.song, each.other] for each in made.alike],
    }
    if as_json:
        typer.echo(json.dumps(facts))
        return
    console = Console()
    console.print(f"{output}: {facts['songs']} songs, {output.stat().st_size / 1e6:.1f} MB, for its owner alone")
    console.print(
        f"  a song is named from {facts['fingerprints_from']} of 100 by fingerprints, from {facts['shapes_from']} by "
        f"shapes, and from {facts['landmarks_from']} landmarks that agree"
    )
    for each in made.alike:
        console.print(f"  {each.song} and {each.other} sound the same: either may be named")


def serve(
    path: Annotated[Path, typer.Argument(metavar="INDEX", help="What `ppspeech music index` has made.")],
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen at; port 0 takes a free one.")] = "127.0.0.1:7000",
    by: Annotated[
        list[str] | None, typer.Option(help="What may be asked: fingerprints, landmarks, shapes; all by default.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Clips of one client; by default what an answer tells sets it.", min=0)
    ] = None,
    state: Annotated[Path | None, typer.Option(help="Folder that keeps budgets; one that passes by default.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="Our certificate, PEM; one is made by default.")] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key, PEM.")] = None,
    client_ca: Annotated[
        Path | None, typer.Option(help="Let in only clients whose certificate is, or is signed by, one of these.")
    ] = None,
    store: Store = "",
    store_key: StoreKey = None,
    metrics: Metrics = "",
    sessions: Annotated[int, typer.Option(help="Clients at a time, a process each.", min=1)] = 64,
    drain: Drain = 10.0,
    insecure: Annotated[bool, typer.Option("--insecure", help="Plain TCP, on a loopback address, to try out.")] = False,
) -> None:
    """Tell clients which of our songs they hear, and learn nothing: neither the clip nor the song. JSON logs on
    standard error; ends in order on Ctrl-C or SIGTERM.

    Examples: `ppspeech music serve songs.index`, `ppspeech music serve songs.index --listen 0.0.0.0:7000 --by
    fingerprints --budget 1000 --state /var/lib/ppspeech`
    """
    import torch

    from ppspeech.network import own_tls
    from ppspeech.service import WAYS, read_index
    from ppspeech.service.server import ServedMusic, kept_folder, log_as_json

    torch.set_num_threads(1)  # the server forks: threads would not survive it
    held = read_index(path)
    with log_as_json(), kept_folder(state) as folder, own_tls(certificate, key, client_ca, insecure=insecure) as tls:
        served = ServedMusic.of("music", held, cast("tuple[FindBy, ...]", tuple(by or WAYS)))
        files = service_files(folder, budget, metrics, store_address(store), store_key)
        run_server([served], files, Running(listen, tls, insecure, sessions, drain, metrics))


def find(
    clips: Annotated[list[Path] | None, typer.Argument(help="Sound files with five seconds of music or more.")] = None,
    server: Server = "",
    path: Annotated[
        Path | None, typer.Option("--index", help="Instead of a server, an index of our own: in the clear.")
    ] = None,
    by: By = "",
    mic: Annotated[bool, typer.Option("--mic", help="Listen to the microphone instead.")] = False,
    seconds: Annotated[float, typer.Option(help="How long to listen.", min=5.5, max=60.0)] = 6.0,
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    model: Model = "",
    show_transcript: ShowTranscript = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a clip.")] = False,
) -> None:
    """Which song is it? A server that hears nothing, and learns nothing, has us find its name, or that it has none.

    Of a clip that is longer, the first five seconds are looked for.

    Examples: `ppspeech music find clip.wav --server 127.0.0.1:7000 --pin …`, `ppspeech music find --mic --server
    127.0.0.1:7000 --pin … --by landmarks`, `ppspeech music find clip.wav --index songs.index --json`
    """
    given = list(clips or ())
    if bool(given) == mic or bool(server) == (path is not None):
        raise PpspeechError("give sound files or --mic, and --server HOST:PORT or --index FILE")
    chosen = _way(by)
    if path is not None:
        if pin or ca or certificate or key or insecure or model or show_transcript:
            raise PpspeechError(
                "--pin, --ca, --certificate, --key, --insecure, --model, --show-transcript need a server"
            )

        from ppspeech.service import read_index

        held = read_index(path)
        _each(given, seconds, lambda sound, rate: {"song": held.find(sound, rate, chosen or "fingerprints")}, as_json)
        return
    if mic:
        from ppspeech.audio import find_recorder

        find_recorder()  # before a query is spent
    from ppspeech.service import connect_through

    door = door_to(server, pin, ca, certificate, key, insecure)
    with connect_through(door, model=model or None, task="music", keep_payloads=show_transcript) as client:

        def ask(sound: "Sound", rate: int | None) -> dict[str, Any]:
            answer = client.find(sound, rate, chosen)
            if show_transcript:
                from ppspeech.cli.transcripts import show_transcript as show

                show(answer.transcript)
            return _answered(answer)

        _each(given, seconds, ask, as_json)


MUSIC_COMMANDS: dict[str, Callable[..., None]] = {"index": index, "serve": serve, "find": find}


def _way(by: str) -> "FindBy | None":
    from ppspeech.service import WAYS

    if by and by not in WAYS:
        raise PpspeechError(f"songs are found by {', '.join(WAYS)}, got {by!r}")
    return next((way for way in WAYS if way == by), None)


def _each(
    clips: Sequence[Path], seconds: float, ask: "Callable[[Sound, int | None], dict[str, Any]]", as_json: bool
) -> None:
    """Ask about every clip, or the microphone where there is none. A clip that cannot be used is told, and the others
    are asked about; exit code 1 then.
    """
    if not clips:
        import numpy as np

        from ppspeech.audio import record
        from ppspeech.audio.music import MUSIC_RATE

        _say("the microphone", ask(np.concatenate(list(record(seconds, MUSIC_RATE))), MUSIC_RATE), as_json)
        return
    bad = 0
    for clip in clips:
        try:
            _say(str(clip), ask(clip, None), as_json)
        except AudioError as error:
            if len(clips) == 1:
                raise
            bad += 1
            _refused(clip, str(error), as_json)
    if bad:
        raise typer.Exit(1)


def _answered(answer: "Answer[str | None]") -> dict[str, Any]:
    return {
        "song": answer.value,
        "by": answer.how,
        "seconds": round(answer.seconds, 3),
        "offline_seconds": round(answer.offline_seconds, 3),
        "bytes": answer.bytes_up + answer.bytes_down,
        "rounds": answer.rounds,
    }


def _say(clip: str, found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"clip": clip, **found}))
        return
    console = Console()
    console.print(f"{clip}: {found['song'] or 'none of these songs'}")
    if "rounds" in found:
        took = f"{found['seconds']} s and {found['offline_seconds']} s before, by {found['by']}"
        console.print(f"  {took}, {found['bytes'] / 1e6:.2f} MB, {found['rounds']} round trips", style="dim")


def _refused(clip: Path, why: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"clip": str(clip), "error": why}))
    else:
        Console(stderr=True).print(f"not used: {why}")
