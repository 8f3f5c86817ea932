"""`ppspeech enroll`: let a server know a voice, without showing it the voice."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ppspeech.cli.door import Authority, Certificate, Insecure, Key, Model, Pin, Server, door_to
from ppspeech.errors import PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.models import Impostors
    from ppspeech.network import Server as RunningServer
    from ppspeech.network import ServerTls
    from ppspeech.service import Client
    from ppspeech.service.server import Gallery, PublishedGallery


def enroll(
    bundle: Annotated[Path, typer.Argument(help="The speaker bundle, the same as the server's.")],
    clips: Annotated[list[Path] | None, typer.Argument(help="Sound files of the speaker.")] = None,
    name: Annotated[str, typer.Option(help="What the speaker is to be called.")] = "",
    private: Annotated[
        str, typer.Option(help="Hide templates from the server: name of an encrypted gallery; stay as its keeper.")
    ] = "",
    listen: Annotated[str, typer.Option(help="With --private: HOST:PORT where probers find us.")] = "127.0.0.1:7001",
    state: Annotated[
        Path | None, typer.Option(help="With --private: folder that keeps our speakers; one that passes by default.")
    ] = None,
    false_accept: Annotated[float, typer.Option(help="With --private: accept a stranger at this rate.")] = 0.01,
    cohort: Annotated[
        str, typer.Option(metavar="FOLDER", help="With --private: other people recorded alike; see `verify --help`.")
    ] = "",
    frames: Annotated[
        int | None, typer.Option(help="With --private: as much of a trial is used, by default what is usual.", min=1)
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="With --private: a cosine of your own instead of a rate.")
    ] = None,
    decision: Annotated[
        Literal["prober", "keeper"], typer.Option(help="With --private: who learns whether a claim holds.")
    ] = "prober",
    budget: Annotated[int, typer.Option(help="With --private: probes of one client.", min=0)] = 100,
    server: Server = "",
    pin: Pin = "",
    ca: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    model: Model = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Enroll a speaker at a server. The template is computed here; the server gets the template and no sound.

    With --private it gets ciphertexts only. Their key stays in this process, which goes on to answer probes until
    Ctrl-C or SIGTERM, and makes a new key when one has answered enough; with --state it keeps its speakers, and may be
    started again without clips.

    Examples: `ppspeech enroll voices ann1.wav ann2.wav --name ann --server 127.0.0.1:7000 --pin …`,
    `ppspeech enroll voices ann.wav --name ann --private family --state mine --server 127.0.0.1:7000 --pin …`
    """
    import torch

    from ppspeech.service import connect_through

    if bool(clips) != bool(name) or (not clips and not private):
        raise PpspeechError("give sound files of a speaker, and --name what the speaker is called")
    torch.set_num_threads(1)  # a keeper forks: threads would not survive it
    door = door_to(server, pin, ca, certificate, key, insecure)
    if not private:
        with connect_through(door, bundle=bundle, model=model or None) as client:
            _say(name, client.enroll(name, clips or []), as_json)
        return
    from ppspeech.network import own_tls
    from ppspeech.service import ServiceFiles, SpeakerDeployment
    from ppspeech.service.server import (
        PublishedGallery,
        kept_folder,
        listening,
        log_as_json,
        own_gallery,
        rule_for_cosines,
        services_of,
    )

    with log_as_json(), kept_folder(state) as folder, own_tls(certificate, key, insecure=insecure) as tls:
        with connect_through(door, bundle=bundle, model=model or None) as client:
            own = own_gallery(client, folder)
            if clips:
                _say(name, _enroll_here(client, own, name, clips), as_json)
            assert client.bundle is not None
            impostors = _impostors(client, cohort)
            used = SpeakerDeployment(frames=frames).used(client.bundle, impostors)
            rule = rule_for_cosines(threshold, false_accept, used, impostors)
        files, used = ServiceFiles.at(folder, budget), used if threshold is None else 0
        while True:  # once a key
            with connect_through(door, bundle=bundle, model=model or None) as client:
                published = PublishedGallery.of(client, private, own, rule, decision, used)
            running = listening(listen, services_of([published], files), tls, insecure=insecure)
            _show(running, tls, published, server)
            running.run(until=published.is_spent)
            if not published.is_spent():
                return
            listen = str(running.address)


def _enroll_here(store: "Client", own: "Gallery", name: str, clips: list[Path]) -> int:
    """Put a speaker among our own."""
    assert store.bundle is not None
    verifier = store.bundle.verifier
    place = own.enroll(name, verifier.direction(verifier.features(clips)))
    if place is None:
        raise PpspeechError(f"{name!r} was not enrolled: the name is taken, or there is no room")
    return place


def _impostors(store: "Client", cohort: str) -> "Impostors | None":
    """The people among whom thresholds are set: those who are named, or the bundle's."""
    assert store.bundle is not None
    verifier = store.bundle.verifier
    if not cohort:
        return verifier.impostors
    from ppspeech.data import cohort_at

    return verifier.among([clip.path for clip in own] for own in cohort_at(cohort)).impostors


def _show(running: "RunningServer", tls: "ServerTls | None", published: "PublishedGallery", store: str) -> None:
    """Say how probers come in; what is printed is what they need to type."""
    from ppspeech.network import fingerprint

    console = Console()
    trust = "" if tls is None else f" --keeper-pin {fingerprint(tls.certificate)}"
    console.print(f"keeping {published.offer.terms.gallery} at {running.address}; a client claims a place with")
    asking = f"verify BUNDLE clip.wav --claim PLACE --server {store} …"
    console.print(f"  ppspeech {asking} --keeper {running.address}{trust}")


def _say(name: str, place: int, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"name": name, "place": place}))
        return
    console = Console()
    console.print(f"{name} has place {place}: `ppspeech verify --claim {place}` claims it")
