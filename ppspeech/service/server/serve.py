"""Released models as a server: describe, health, and one service a bundle. `with serve("words") as running: …`."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from ppspeech import __version__
from ppspeech.channel import Channel
from ppspeech.errors import BundleError, MissingPackageError, PpspeechError
from ppspeech.network import (
    Address,
    Board,
    Capacity,
    Server,
    ServerTls,
    Service,
    ShortLivedCertificates,
    WebDoor,
    fingerprint,
    in_background,
    own_tls,
)
from ppspeech.protocols import Kind
from ppspeech.service.export import Deployment
from ppspeech.service.export_spotting import SpotDeployment
from ppspeech.service.offer import DESCRIBE, HEALTH, NOT_NOW, check_name, describe
from ppspeech.service.page import page_files
from ppspeech.service.server.book import Program, SessionBook, Tally, Visitor
from ppspeech.service.server.session import Refreshed, Served, run_session
from ppspeech.service.server.sources import Choices, Source, named, served_as
from ppspeech.service.server.speakers import SpeakerDeployment
from ppspeech.service.server.stores import QueryBudget
from ppspeech.service.server.text import TextDeployment
from ppspeech.service.server.words import warm_up
from ppspeech.service.store import Place, PostgresStore, StoreLostError, open_store
from ppspeech.service.tasks.sentences import SentenceDeployment
from ppspeech.storage import private_folder

if TYPE_CHECKING:
    from ppspeech.network import TransportDoor


@dataclass(frozen=True, slots=True)
class ServiceFiles:
    """What sessions share: budgets of queries, the book that counts sessions, a folder for the rest, and the database
    that servers share, where there is one.
    """

    budget: QueryBudget
    book: SessionBook
    folder: Path
    store: PostgresStore | None = None

    @classmethod
    def at(
        cls,
        folder: Path,
        limit: int | Literal["usual"] | None = None,
        metrics: Path | None = None,
        store: PostgresStore | None = None,
    ) -> "ServiceFiles":
        """All of them in one folder, to be kept like a password file, or in `store` what servers share of them; without
        a limit queries are only counted.
        """
        return cls(
            QueryBudget(folder / "budget.sqlite" if store is None else store, limit),
            SessionBook(folder / "sessions.sqlite", metrics, store),
            folder,
            store,
        )

    def place(self, name: str) -> Place:
        """Where what servers share is kept: a file of this name, or the database."""
        return self.folder / f"{name}.sqlite" if self.store is None else self.store


def build_services(
    sources: Mapping[str, Source], files: ServiceFiles, choices: Choices | None = None
) -> dict[str, Service]:
    """What `network.Server` is given: what clients call by these names, a description of all, and health.

    Raises BundleError for a name that cannot be used; ModelError for a model that cannot be served.
    """
    return services_of(open_all(sources, files, choices), files)


def open_all(sources: Mapping[str, Source], files: ServiceFiles, choices: Choices | None = None) -> list[Served]:
    """All that sessions share, made before the server forks.

    The server's process holds weights, and for streaming a key of its own under which they are encrypted; a client's
    secret key never leaves the client, and its public key is in the process of its session alone.
    """
    if {DESCRIBE, HEALTH} & set(sources) or not sources:
        raise BundleError(f"serve something, none of it named {DESCRIBE} or {HEALTH}, got {[*sources]}")
    for name in sources:
        check_name(name)
    return [served_as(name, each, choices or Choices(), files.folder, files.store) for name, each in sources.items()]


def services_of(served: Sequence[Served], files: ServiceFiles) -> dict[str, Service]:
    """A service for each that is served, a description of all, and health."""
    warm_up()
    describe(each.offer for each in served)  # or else no client could read it
    for each in served:
        files.budget.expect(each.offer.fingerprint, each.usual_budget)

    def session(each: Served) -> Program:
        return lambda channel, tally: run_session(each, channel, tally, files.budget)

    def say_offers(channel: Channel, tally: Tally) -> None:
        client = Visitor.of(channel).client
        try:
            left = [files.budget.left(each.offer.fingerprint, client) for each in served]
        except StoreLostError:
            tally.unable += 1
            channel.send(Kind.READY, NOT_NOW)
            return
        channel.send(Kind.READY, describe(each.offer.left(own) for each, own in zip(served, left, strict=True)))

    def say_health(channel: Channel, _: Tally) -> None:
        said: dict[str, Any] = {"status": "ok", "version": __version__, **files.book.totals()}
        with suppress(StoreLostError):
            said |= {"all_servers": files.book.shared_totals()} if files.store is not None else {}
        channel.send(Kind.READY, json.dumps(said, sort_keys=True).encode())

    programs = {each.offer.name: (session(each), each.offer.agreement) for each in served}
    programs |= {DESCRIBE: (say_offers, {}), HEALTH: (say_health, {})}
    growing = {each.offer.name: each.refresh for each in served if isinstance(each, Refreshed)}
    return {
        name: Service(files.book.observed(name, program), params, growing.get(name))
        for name, (program, params) in programs.items()
    }


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that runs, at `host:port`; clients pin its certificate's SHA-256 fingerprint, None without TLS. `web`:
    the address of its page, None where there is no door for pages. `webtransport`: what pages that pin ask, and
    `webtransport_pins`: the certificate that they meet there now, and the next.
    """

    address: str
    pin: str | None
    web: str | None = None
    webtransport: str | None = None
    webtransport_pins: tuple[str, ...] = ()


@contextmanager
def serve(
    *sources: Source | str | Path,
    listen: str = "127.0.0.1:0",
    words: Deployment | None = None,
    sentences: SentenceDeployment | None = None,
    speakers: SpeakerDeployment | None = None,
    spotting: SpotDeployment | None = None,
    texts: TextDeployment | None = None,
    budget: int | Literal["usual"] | None = "usual",
    state: str | Path | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    client_ca: str | Path | None = None,
    insecure: bool = False,
    web: str | None = None,
    web_origins: Sequence[str] = (),
    webtransport: str | None = None,
    store: str | None = None,
    store_key: str | Path | None = None,
) -> Iterator[Serving]:
    """Serve released models encrypted, in a process of its own, while the `with` block lasts.

    Args:
        *sources: released models and archives of recordings; a folder or archive is offered under its name, a bundle in
            hand under its type. Another file is a text that clients search.
        listen: HOST:PORT; port 0 takes a free one.
        spotting: look for the words of bundles in recordings of clients, instead of recognizing them.
        budget: queries of one client to one model; the usual is what follows from the bits that an answer tells, None
            counts without limit.
        state: folder that keeps budgets and speakers; one that passes by default.
        certificate: PEM, with its private `key`; one is made by default.
        client_ca: let in only clients whose certificate is, or is signed by, one of these.
        insecure: plain TCP, on a loopback address, to try out.
        web: HOST:PORT of a second door, for browsers: our page, and WebSockets with the same services and limits.
        web_origins: pages of other hosts that may use it, such as `https://pages.example`.
        webtransport: HOST:PORT of another, over UDP, for pages that pin; its certificates are made here, in `state`.
            Needs the extra `webtransport`.
        store: `postgresql://USER@HOST:PORT/DATABASE`, where servers on several machines keep budgets, galleries and
            accounts together; `@FILE` for a file that holds it.
        store_key: file of the key under which they keep it from reading them, as `ppspeech keys store` makes one.

    Raises PpspeechError for a model that cannot be served, or an address that cannot be listened at.
    """
    if state is None and words is not None and words.outcome == "server":
        raise PpspeechError("words that are ours to learn need a folder, `state`, to be written in")
    paths = [None if path is None else Path(path) for path in (certificate, key, client_ca)]
    threads = torch.get_num_threads()
    with kept_folder(state) as folder, own_tls(*paths, insecure=insecure) as tls:
        torch.set_num_threads(1)  # the server forks: threads would not survive it
        try:
            given = {"words": words, "sentences": sentences, "speakers": speakers, "texts": texts}
            chosen = Choices(spotting=spotting, **{task: each for task, each in given.items() if each is not None})  # type: ignore[arg-type]
            files = ServiceFiles.at(folder, budget, store=open_store(store, store_key))
            services = build_services(named(sources), files, chosen)
            doors = Doors(web, webtransport, tuple(web_origins), folder)
            server = listening(listen, services, tls, insecure=insecure, doors=doors)
            with in_background(server) as running:
                torch.set_num_threads(threads)
                pin = None if tls is None else fingerprint(tls.certificate)
                yield Serving(str(running.address), pin, page_address(server, tls), *pinned_address(server))
        finally:
            torch.set_num_threads(threads)


def listening(
    listen: str,
    services: Mapping[str, Service],
    tls: ServerTls | None,
    *,
    insecure: bool = False,
    sessions: int = 64,
    doors: "Doors | None" = None,
    board: Board | None = None,
    drain_seconds: float = 10.0,
) -> Server:
    """A server that is ready to run; sessions get `drain_seconds` to end when it is asked to.

    Raises PpspeechError if it cannot listen there, or not without TLS.
    """
    address, doors = Address.parse(listen), doors or Doors()
    try:
        web, transport = doors.over_tcp(tls), doors.over_udp()
        capacity = Capacity(sessions=sessions, grace_seconds=drain_seconds)
        return Server(
            address,
            services,
            tls=tls,
            insecure=insecure,
            capacity=capacity,
            web=web,
            transport=transport,
            board=board,
        )
    except ValueError as error:
        raise PpspeechError(str(error)) from None
    except OSError as error:
        where = " and ".join(filter(None, (str(address), doors.web, doors.webtransport)))
        raise PpspeechError(f"cannot listen at {where}: {error.strerror}") from None


def page_address(server: Server, tls: ServerTls | None) -> str | None:
    """What to type into a browser, where the server has a door for pages."""
    if server.web_address is None:
        return None
    return f"{'http' if tls is None else 'https'}://{server.web_address.reachable()}/"


def pinned_address(server: Server) -> tuple[str | None, tuple[str, ...]]:
    """What pages that pin ask, and the pins of the certificates they meet there; nothing where they have no door."""
    if server.transport is None or server.transport_address is None:
        return None, ()
    return server.transport.url(server.transport_address.reachable()), tuple(server.transport.certificates.pins)


@dataclass(frozen=True, slots=True)
class Doors:
    """Where pages come in: `web` for WebSockets, `webtransport` for those that pin, whose certificates are kept in
    `folder`; and pages of which other hosts may.
    """

    web: str | None = None
    webtransport: str | None = None
    origins: tuple[str, ...] = ()
    folder: Path = Path()

    def __post_init__(self) -> None:
        if self.origins and self.web is None and self.webtransport is None:
            raise PpspeechError(
                f"pages of {', '.join(self.origins)} need a door to come in by: say where with --web HOST:PORT or "
                "--webtransport HOST:PORT"
            )

    def over_tcp(self, tls: ServerTls | None) -> WebDoor | None:
        """The door for WebSockets, with our page. Raises ValueError for an origin that is not one."""
        if self.web is None:
            return None
        files = page_files(None if tls is None else fingerprint(tls.certificate))
        return WebDoor(Address.parse(self.web), files, self.origins)

    def over_udp(self) -> "TransportDoor | None":
        """The door for pages that pin. Raises MissingPackageError without the extra; ValueError as above."""
        if self.webtransport is None:
            return None
        try:
            from ppspeech.network import TransportDoor
        except MissingPackageError:
            install = "pip install 'ppspeech[webtransport]'"
            raise MissingPackageError("serving over WebTransport", "aioquic", install) from None
        certificates = ShortLivedCertificates(self.folder / "webtransport")
        return TransportDoor(Address.parse(self.webtransport), certificates, self.origins)


@contextmanager
def kept_folder(state: str | Path | None) -> Iterator[Path]:
    """The folder that was given, closed to other users, or one that lasts as long as the server."""
    with tempfile.TemporaryDirectory() if state is None else nullcontext(private_folder(Path(state))) as folder:
        yield Path(folder)
