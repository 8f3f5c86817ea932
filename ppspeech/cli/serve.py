"""`ppspeech serve`: answer clients whose voices stay with them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from ppspeech.errors import PpspeechError

if TYPE_CHECKING:
    from ppspeech.bundle import Bundle
    from ppspeech.network import Server, ServerTls


def serve(
    bundles: Annotated[list[Path], typer.Argument(help="Bundles; each is offered under its folder's name.")],
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen at; port 0 takes a free one.")] = "127.0.0.1:7000",
    frames: Annotated[
        int, typer.Option(help="Utterances are padded to this many; longer words are refused, longer trials thinned.")
    ] = 100,
    operation: Annotated[
        Literal["forward", "viterbi"], typer.Option(help="Add up all paths, or take the best, which is quicker.")
    ] = "forward",
    reject: Annotated[bool, typer.Option("--reject", help="Let a garbage model say that it was none of them.")] = False,
    garbage: Annotated[float, typer.Option(help="With --reject: nats a frame on top for it.")] = 0.0,
    budget: Annotated[
        int | None, typer.Option(help="Queries of one client to one model; without, they are only counted.", min=0)
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="Folder that keeps budgets and speakers; one that passes by default.")
    ] = None,
    places: Annotated[
        int,
        typer.Option(
            "--places", "--most-speakers", help="Speakers: room for so many; clients see it, not how many there are."
        ),
    ] = 64,
    scoring: Annotated[
        Literal["linear", "gmm"], typer.Option(help="Speakers: cosines of supervectors, or likelihoods of mixtures.")
    ] = "linear",
    hardened: Annotated[
        bool, typer.Option("--hardened", help="Speakers: withstand clients that cheat; few places, verification only.")
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(help="Speakers: accept at or above; 0.5 for linear, the bundle's for gmm, none with --cohort."),
    ] = None,
    cohort: Annotated[
        str | None,
        typer.Option(help="Speakers: a folder with one folder of clips a person, or `synthetic`, to norm scores by."),
    ] = None,
    norm: Annotated[Literal["z", "t", "zt"], typer.Option(help="With --cohort: per model, per trial, or both.")] = "zt",
    decision: Annotated[
        Literal["client", "server"], typer.Option(help="Speakers: who learns whether a claim holds.")
    ] = "client",
    names: Annotated[
        Literal["client", "server"],
        typer.Option(help="Speakers: who learns a name; ours go to identified.jsonl in --state."),
    ] = "client",
    enroll: Annotated[bool, typer.Option("--enroll", help="Speakers: let clients enroll; keep --state safe.")] = False,
    store: Annotated[
        bool,
        typer.Option("--store", help="Speakers: keep encrypted galleries of others (`enroll --private`)."),
    ] = False,
    certificate: Annotated[Path | None, typer.Option(help="Our certificate, PEM; one is made by default.")] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key, PEM.")] = None,
    client_ca: Annotated[
        Path | None, typer.Option(help="Let in only clients whose certificate is, or is signed by, one of these.")
    ] = None,
    metrics: Annotated[Path | None, typer.Option(help="Keep sums here, in Prometheus' text format.")] = None,
    sessions: Annotated[int, typer.Option(help="Clients at a time, a process each.", min=1)] = 64,
    insecure: Annotated[bool, typer.Option("--insecure", help="Plain TCP, on a loopback address, to try out.")] = False,
) -> None:
    """Serve released models encrypted: clients learn the word or name, we learn nothing. JSON logs on standard error.

    Ends in order on Ctrl-C or SIGTERM.

    Examples: `ppspeech serve words`, `ppspeech serve words --listen 0.0.0.0:7000 --certificate c.pem --key k.pem
    --budget 1000 --state /var/lib/ppspeech`, `ppspeech serve voices --enroll --state people --scoring gmm`
    """
    import torch

    from ppspeech.network import own_tls
    from ppspeech.service import Deployment, ServiceFiles, SpeakerDeployment, build_services
    from ppspeech.service.server import kept_folder, listening, log_as_json, named

    torch.set_num_threads(1)  # the server forks: threads would not survive it
    deployment = Deployment(frames=frames, operation=operation, reject=reject, garbage=garbage)
    if names == "server" and state is None:
        raise PpspeechError("names that are ours to learn need a --state folder to be written in")
    if hardened and (scoring, decision) != ("linear", "server"):
        raise PpspeechError("--hardened goes with --scoring linear and --decision server")
    speakers = SpeakerDeployment(
        places=places,
        scoring="hardened" if hardened else scoring,
        threshold=threshold,
        cohort=cohort,
        norm=norm,
        frames=frames,
        decision=decision,
        names=names,
        enrolls=enroll,
        stores=store,
    )
    loaded = named(bundles)
    with log_as_json(), kept_folder(state) as folder, own_tls(certificate, key, client_ca, insecure=insecure) as tls:
        services = build_services(loaded, ServiceFiles.at(folder, budget, metrics), deployment, speakers)
        server = listening(listen, services, tls, insecure=insecure, sessions=sessions)
        _show(server, tls, loaded)
        counters = server.run()
    Console(highlight=False).print(f"stopped: {counters}", soft_wrap=True)


def _show(server: "Server", tls: "ServerTls | None", bundles: "dict[str, Bundle]") -> None:
    """Say how clients come in; what is printed is what they need to type."""
    from ppspeech.network import fingerprint

    console = Console(highlight=False, soft_wrap=True)
    trust = "--insecure" if tls is None else f"--pin {fingerprint(tls.certificate)}"
    if tls is not None and tls.client_ca is not None:
        trust += " --certificate … --key …"
    which = f" --model {next(iter(bundles))}" if len(bundles) > 1 else ""
    first = next(iter(bundles.values()))
    asking = f"recognize {server.address} clip.wav"
    if not first.labels:
        asking = f"verify BUNDLE clip.wav --claim PLACE --server {server.address}"
    console.print(f"serving {', '.join(bundles)} at {server.address}; a client asks with", markup=False)
    console.print(f"  ppspeech {asking} {trust}{which}", markup=False)
