"""`ppspeech serve`: answer clients whose voices stay with them."""

import json
import os
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from ppspeech.errors import PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.network import Server, ServerTls
    from ppspeech.service import Offer, ServiceFiles
    from ppspeech.service.server import Doors, Served


Chosen = TypeVar("Chosen")

Metrics = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT|FILE",
        help="Sums for Prometheus: at a port of its own, with /healthz and /readyz, or in a file that is kept up.",
    ),
]
Store = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="A database that servers share, postgresql://USER@HOST:PORT/DATABASE, or @FILE for a file that holds it: "
        "budgets, galleries and accounts. By default that of PPSPEECH_STORE, if it is set. Its password is in "
        "PGPASSFILE, PGPASSWORD, that file or PPSPEECH_STORE.",
    ),
]
StoreKey = Annotated[
    Path | None,
    typer.Option(help="File of the key under which the servers seal what the database keeps (`ppspeech keys store`)."),
]
Drain = Annotated[float, typer.Option(help="Seconds that sessions get to end after SIGTERM.", min=0, max=3600)]


def serve(
    bundles: Annotated[
        list[Path],
        typer.Argument(
            help="Bundles, archives of `ppspeech index`, and files of text that clients `grep`; each is offered under "
            "its name."
        ),
    ],
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen at; port 0 takes a free one.")] = "127.0.0.1:7000",
    frames: Annotated[
        int | None,
        typer.Option(
            help="Utterances are padded to this many, by default to what words usually take; longer words are refused, "
            "longer trials thinned. Sentences are padded to steps of 32, and may have this many, by default 10 s.",
            min=1,
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,…",
            help="Choices for words: operation=viterbi takes the best path, quicker than forward and, in a circuit, "
            "over slow links; reject=true lets a garbage model say that it was none of them, garbage=… gives it nats a "
            "frame; limit, bits. outcome=server, of heads on embeddings: we alone learn the words, of clients that "
            "agree, in outcomes.jsonl of --state.",
        ),
    ] = None,
    sentences: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE,…", help="Choices for sentences: bits of the shares."),
    ] = None,
    spotting: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,…",
            help="Look for the words of bundles in recordings of clients (`ppspeech spot --in`), instead of "
            "recognizing them: threshold=40 nats, longest=1.5 seconds of a word, seconds=60 of a recording.",
        ),
    ] = None,
    speakers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,…",
            help="Choices for speakers: places=64; decision and names=client or server, who learns them; "
            "scoring=linear or gmm, for clients that keep to the protocol, or hardened, for any, which is the default "
            "where decision=server, or crowd, for up to a million places, the default beyond 10,000, held by shards=2 "
            "actors of a Ray cluster with ray=local or ray=HOST:PORT; "
            "false_accept=0.01, among people of cohort=FOLDER, or those in the bundle; instead "
            "threshold, with norm=z, t or zt where there is a cohort.",
        ),
    ] = None,
    scoring: Annotated[
        Literal["linear", "gmm", "hardened", "crowd"] | None,
        typer.Option(help="Speakers: the same as --speakers scoring=…; gmm needs a cohort or a threshold."),
    ] = None,
    cohort: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Speakers: the same as --speakers cohort=…: other people recorded like those who will try, a folder "
            "of clips each, or a corpus, such as synthetic, the built-in voices, to try out.",
        ),
    ] = "",
    texts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,…",
            help="Choices for texts: tells=found, count, lines or places, the most that a client may ask for; "
            "alphabet=letters, text, dna or phones, to which they are folded.",
        ),
    ] = None,
    enroll: Annotated[bool, typer.Option("--enroll", help="Speakers: let clients enroll; keep --state safe.")] = False,
    galleries: Annotated[
        bool, typer.Option("--galleries", help="Speakers: keep encrypted galleries of others (`enroll --private`).")
    ] = False,
    budget: Annotated[
        int | None,
        typer.Option(help="Queries of one client to one model; by default as many as `encrypt-plan` says.", min=0),
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="Folder that keeps budgets and speakers; one that passes by default.")
    ] = None,
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
    web: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Let browsers in here too: a page that recognizes words and sentences, and WebSockets, under the same "
            "certificate and limits.",
        ),
    ] = None,
    web_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="Pages of another host that may use --web and --webtransport too, such as https://pages.example; "
            "repeat it."
        ),
    ] = None,
    webtransport: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Let pages in here over UDP that trust no authority, but pin a certificate, made here for at most two "
            "weeks: the pins of this one and the next are printed, and kept in --state (extra webtransport).",
        ),
    ] = None,
) -> None:
    """Serve released models encrypted: clients learn words or names, we learn nothing. JSON logs on standard error.

    A file is a text: clients learn where patterns of theirs are in it, and we do not learn the patterns.

    Ends in order on Ctrl-C or SIGTERM. `ppspeech.serve` does the same from Python.

    Examples: `ppspeech serve words`, `ppspeech serve sentences --frames 640`, `ppspeech serve words --listen
    0.0.0.0:7000 --certificate c.pem --key k.pem --budget 1000 --state /var/lib/ppspeech`, `ppspeech serve voices
    --enroll --state people --scoring gmm --cohort others`, `ppspeech serve meetings.archive`, `ppspeech serve
    sentences --spotting threshold=40`, `ppspeech serve calls.txt --texts tells=count`, `ppspeech serve words --web
    127.0.0.1:7443`, `ppspeech serve words --webtransport 127.0.0.1:7444 --web-origin https://pages.example --state
    words-state`, `ppspeech serve words --store postgresql://ppspeech@db.example/ppspeech --store-key store.key
    --metrics 127.0.0.1:9464`
    """
    import torch

    from ppspeech.network import own_tls
    from ppspeech.service import (
        Deployment,
        SentenceDeployment,
        SpeakerDeployment,
        SpotDeployment,
        TextDeployment,
    )
    from ppspeech.service.server import Choices, Doors, kept_folder, log_as_json, named, open_all

    torch.set_num_threads(1)  # the server forks: threads would not survive it
    chosen = Choices(
        words=choices(Deployment(frames=frames), words, "--words"),
        sentences=choices(SentenceDeployment(frames=frames), sentences, "--sentences"),
        speakers=choices(
            SpeakerDeployment(frames=frames, enrolls=enroll, stores=galleries, scoring=scoring, cohort=cohort or None),
            speakers,
            "--speakers",
        ),
        spotting=None if spotting is None else choices(SpotDeployment(), spotting, "--spotting"),
        texts=choices(TextDeployment(), texts, "--texts"),
    )
    if "server" in (chosen.speakers.names, chosen.words.outcome) and state is None:
        raise PpspeechError("names and words that are ours to learn need a --state folder to be written in")
    sources = named(bundles)
    with log_as_json(), kept_folder(state) as folder, own_tls(certificate, key, client_ca, insecure=insecure) as tls:
        files = service_files(folder, budget, metrics, store_address(store), store_key)
        served = open_all(sources, files, chosen)
        doors = Doors(web, webtransport, tuple(web_origin or ()), folder)
        how = Running(listen, tls, insecure, sessions, drain, metrics, doors)
        run_server(served, files, how)


@dataclass(frozen=True)
class Running:
    """How a server runs, as the command line says it."""

    listen: str
    tls: "ServerTls | None"
    insecure: bool
    sessions: int
    drain: float = 10.0
    metrics: str = ""
    doors: "Doors | None" = None

    @property
    def watched_at(self) -> str | None:
        """HOST:PORT for whoever watches; None where metrics are a file, or there are none."""
        return self.metrics if is_port(self.metrics) else None


def is_port(metrics: str) -> bool:
    """Whether HOST:PORT is meant, and not a file."""
    return re.fullmatch(r"[^/]+:[0-9]{1,5}", metrics) is not None


def store_address(option: str) -> str:
    """Where what servers share is: as the command line says, without a password, or PPSPEECH_STORE; else nothing.

    Raises PpspeechError for a password that everybody on this machine can read.
    """
    from ppspeech.service.store import refuse_password

    return refuse_password(option) or os.environ.get("PPSPEECH_STORE", "")


def service_files(folder: Path, budget: int | None, metrics: str, store: str, store_key: Path | None) -> "ServiceFiles":
    """What sessions share, in a folder and, where one is given, a database. Raises PpspeechError for what cannot be."""
    from ppspeech.service import ServiceFiles
    from ppspeech.service.store import open_store

    path = Path(metrics) if metrics and not is_port(metrics) else None
    shared = open_store(store or None, store_key)
    return ServiceFiles.at(folder, "usual" if budget is None else budget, path, shared)


def run_server(served: "Sequence[Served]", files: "ServiceFiles", how: Running) -> None:
    """Listen, say how clients come in, and answer them until stopped; who watches may look until the last session ends.

    Their port is opened first, by a process of its own: one that came later would hold those of the clients open.
    """
    from ppspeech.network import Board
    from ppspeech.service.metrics import Exposition, watched
    from ppspeech.service.server import listening, services_of

    services, board = services_of(served, files), Board()
    models = [(each.offer.name, each.offer.fingerprint) for each in served]
    seen = None
    with ExitStack() as stack:
        if how.watched_at is not None:
            is_up = (lambda: True) if files.store is None else files.store.is_up
            exposition = Exposition(board, files.book, files.budget, models, is_up)
            seen = stack.enter_context(watched(how.watched_at, exposition))
        server = listening(
            how.listen,
            services,
            how.tls,
            insecure=how.insecure,
            sessions=how.sessions,
            doors=how.doors,
            board=board,
            drain_seconds=how.drain,
        )
        _show(server, how.tls, [each.offer.left(files.budget.left(each.offer.fingerprint, "")) for each in served])
        if files.store is not None:
            Console().print(f"budgets are shared at {files.store.address}")
        if seen is not None:
            Console().print(f"metrics at http://{seen}/metrics, with /healthz and /readyz")
        counters = server.run()
    Console().print(f"stopped: {counters}")


def choices(usual: Chosen, given: Sequence[str] | None, option: str) -> Chosen:
    """What was chosen as NAME=VALUE, several by commas, over what is usual. Raises PpspeechError for what cannot be."""
    from ppspeech.bundle import from_plain, to_plain

    chosen = to_plain(usual)
    for each in ",".join(given or ()).split(",") if given else ():
        name, equals, text = each.partition("=")
        if not equals or name not in chosen:
            raise PpspeechError(f"{option} takes NAME=VALUE for {', '.join(chosen)}, got {each!r}")
        try:
            chosen[name] = json.loads(text)
        except ValueError:
            chosen[name] = text
    return from_plain(type(usual), chosen, option)


def _show(server: "Server", tls: "ServerTls | None", offers: "Sequence[Offer[Any]]") -> None:
    """Say how clients come in, and what they may ask about; what is printed is what they need to type."""
    from ppspeech.network import fingerprint
    from ppspeech.service.server import page_address, pinned_address

    console = Console()
    trust = "--insecure" if tls is None else f"--pin {fingerprint(tls.certificate)}"
    if tls is not None and tls.client_ca is not None:
        trust += " --certificate … --key …"
    which = f" --model {offers[0].name}" if len(offers) > 1 else ""
    asking = offers[0].terms.asked.format(server.address.reachable())
    console.print(f"serving {', '.join(each.name for each in offers)} at {server.address}; a client asks with")
    console.print(f"  ppspeech {asking} {trust}{which}")
    if (page := page_address(server, tls)) is not None:
        console.print(f"a browser asks at {page}")
    address, pins = pinned_address(server)
    if address is not None:
        console.print("a page that pins asks with")
        console.print(f"  connect({{ url: {json.dumps(address)}, pin: {json.dumps(pins)} }})")
    for each in offers:
        if each.terms.takes:
            console.print(f"  {each.name} takes {each.terms.takes}")
    told = ", ".join(f"{each.queries_left:,} of {each.name}" for each in offers if each.queries_left is not None)
    console.print(f"a client may ask {told}; --budget chooses otherwise")
