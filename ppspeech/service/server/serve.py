"""Released models as a server: describe, health, and one service a bundle. `with serve("words") as running: …`."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from ppspeech import __version__
from ppspeech.bundle import Bundle, KeywordNetworkSettings, SentenceHmmSettings, load_bundle
from ppspeech.channel import Channel
from ppspeech.errors import BundleError, PpspeechError
from ppspeech.network import Address, Capacity, Server, ServerTls, Service, fingerprint, in_background, own_tls
from ppspeech.protocols import Kind
from ppspeech.service.archive import Archive, is_archive
from ppspeech.service.export import Deployment
from ppspeech.service.export_sentences import SentenceDeployment
from ppspeech.service.export_spotting import SpotDeployment
from ppspeech.service.offer import DESCRIBE, HEALTH, check_name, describe
from ppspeech.service.server.book import Program, SessionBook, Tally, Visitor
from ppspeech.service.server.cohort import cohort_of
from ppspeech.service.server.networks import ServedNetwork
from ppspeech.service.server.sentences import ServedSentences
from ppspeech.service.server.session import Served, run_session
from ppspeech.service.server.speakers import ServedSpeakers, SpeakerDeployment, SpeakerFiles
from ppspeech.service.server.spotting import ServedArchive, ServedKeywords
from ppspeech.service.server.stores import QueryBudget
from ppspeech.service.server.text import ServedText, TextDeployment, texts_at
from ppspeech.service.server.words import ServedWords, warm_up
from ppspeech.storage import private_folder


@dataclass(frozen=True, slots=True)
class ServiceFiles:
    """What sessions share on disk: budgets of queries, the book that counts sessions, and files of speakers."""

    budget: QueryBudget
    book: SessionBook
    speakers: SpeakerFiles

    @classmethod
    def at(
        cls, folder: Path, limit: int | Literal["usual"] | None = None, metrics: Path | None = None
    ) -> "ServiceFiles":
        """All of them in one folder, to be kept like a password file; without a limit queries are only counted."""
        return cls(
            QueryBudget(folder / "budget.sqlite", limit),
            SessionBook(folder / "sessions.sqlite", metrics),
            SpeakerFiles(folder / "gallery.sqlite", folder / "sealed.sqlite", folder / "identified.jsonl"),
        )


def build_services(
    bundles: Mapping[str, Bundle | Archive],
    files: ServiceFiles,
    deployment: Deployment | None = None,
    speakers: SpeakerDeployment | None = None,
    sentences: SentenceDeployment | None = None,
    texts: Sequence[ServedText] = (),
    spotting: SpotDeployment | None = None,
) -> dict[str, Service]:
    """What `network.Server` is given. All that sessions share is made here, before the server forks.

    The server's process holds weights, and for streaming a key of its own under which they are encrypted; a client's
    secret key never leaves the client, and its public key is in the process of its session alone. Clients call bundles
    by their names here; `texts` have their own. With `spotting`, words of bundles are looked for in recordings of
    clients.

    Raises BundleError for a name that cannot be used; ModelError for a model that cannot be served.
    """
    names = [*bundles, *(each.offer.name for each in texts)]
    if {DESCRIBE, HEALTH} & set(names) or not names:
        raise BundleError(f"serve a bundle or a text, none of them named {DESCRIBE} or {HEALTH}, got {names}")
    chosen = speakers or SpeakerDeployment()
    served: list[Served] = [*texts]
    for name, bundle in bundles.items():
        check_name(name)
        if isinstance(bundle, Archive):
            served.append(ServedArchive.of(name, bundle))
        elif "verify" in bundle.config.kind.uses:
            cohort = None if chosen.cohort is None else cohort_of(bundle, chosen.cohort)
            served.append(ServedSpeakers.of(name, bundle, chosen, files.speakers, cohort))
        elif spotting is not None:
            served.append(ServedKeywords.of(name, bundle, spotting))
        elif isinstance(bundle.config.settings, SentenceHmmSettings):
            served.append(ServedSentences.of(name, bundle, sentences))
        elif isinstance(bundle.config.settings, KeywordNetworkSettings):
            served.append(ServedNetwork.of(name, bundle))
        else:
            served.append(ServedWords.of(name, bundle, deployment or Deployment()))
    return services_of(served, files)


def services_of(served: Sequence[Served], files: ServiceFiles) -> dict[str, Service]:
    """A service for each that is served, a description of all, and health."""
    warm_up()
    describe(each.offer for each in served)  # or else no client could read it
    for each in served:
        files.budget.expect(each.offer.fingerprint, each.usual_budget)

    def session(each: Served) -> Program:
        return lambda channel, tally: run_session(each, channel, tally, files.budget)

    def say_offers(channel: Channel, _: Tally) -> None:
        client = Visitor.of(channel).client
        offers = (each.offer.left(files.budget.left(each.offer.fingerprint, client)) for each in served)
        channel.send(Kind.READY, describe(offers))

    def say_health(channel: Channel, _: Tally) -> None:
        said = {"status": "ok", "version": __version__, **files.book.totals()}
        channel.send(Kind.READY, json.dumps(said, sort_keys=True).encode())

    programs = {each.offer.name: (session(each), each.offer.agreement) for each in served}
    programs |= {DESCRIBE: (say_offers, {}), HEALTH: (say_health, {})}
    return {name: Service(files.book.observed(name, program), params) for name, (program, params) in programs.items()}


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that runs, at `host:port`; clients pin its certificate's SHA-256 fingerprint, None without TLS."""

    address: str
    pin: str | None


@contextmanager
def serve(
    *bundles: Bundle | Archive | str | Path,
    listen: str = "127.0.0.1:0",
    words: Deployment | None = None,
    speakers: SpeakerDeployment | None = None,
    sentences: SentenceDeployment | None = None,
    spotting: SpotDeployment | None = None,
    texts: TextDeployment | None = None,
    budget: int | Literal["usual"] | None = "usual",
    state: str | Path | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    client_ca: str | Path | None = None,
    insecure: bool = False,
) -> Iterator[Serving]:
    """Serve released models encrypted, in a process of its own, while the `with` block lasts.

    Args:
        *bundles: released models and archives of recordings; a folder or archive is offered under its name, a bundle in
            hand under its type. Another file is a text that clients search.
        listen: HOST:PORT; port 0 takes a free one.
        spotting: look for the words of bundles in recordings of clients, instead of recognizing them.
        budget: queries of one client to one model; the usual is what follows from the bits that an answer tells, None
            counts without limit.
        state: folder that keeps budgets and speakers; one that passes by default.
        certificate: PEM, with its private `key`; one is made by default.
        client_ca: let in only clients whose certificate is, or is signed by, one of these.
        insecure: plain TCP, on a loopback address, to try out.

    Raises PpspeechError for a model that cannot be served, or an address that cannot be listened at.
    """
    paths = [None if path is None else Path(path) for path in (certificate, key, client_ca)]
    threads = torch.get_num_threads()
    with kept_folder(state) as folder, own_tls(*paths, insecure=insecure) as tls:
        torch.set_num_threads(1)  # the server forks: threads would not survive it
        try:
            models, files = apart(bundles)
            own, kept = texts_at(files, folder, texts), ServiceFiles.at(folder, budget)
            services = build_services(named(models), kept, words, speakers, sentences, own, spotting)
            server = listening(listen, services, tls, insecure=insecure)
            with in_background(server) as running:
                torch.set_num_threads(threads)
                yield Serving(str(running.address), None if tls is None else fingerprint(tls.certificate))
        finally:
            torch.set_num_threads(threads)


def apart(served: Sequence[Bundle | Archive | str | Path]) -> tuple[list[Bundle | Archive | str | Path], list[Path]]:
    """Bundles and archives, and the other files among them: texts."""
    texts = [
        Path(each)
        for each in served
        if not isinstance(each, Bundle | Archive) and Path(each).is_file() and not is_archive(each)
    ]
    return [each for each in served if isinstance(each, Bundle | Archive) or Path(each) not in texts], texts


def named(bundles: Sequence[Bundle | Archive | str | Path]) -> dict[str, Bundle | Archive]:
    """Bundles and archives by the name that they are offered under. Raises PpspeechError for two of one name."""
    names = [_name(each) for each in bundles]
    if len(set(names)) < len(names):
        raise PpspeechError(f"bundles are offered under their folders' names, which must differ, got {names}")
    return {name: _loaded(each) for name, each in zip(names, bundles, strict=True)}


def _name(source: Bundle | Archive | str | Path) -> str:
    if isinstance(source, Bundle):
        return source.config.type
    if isinstance(source, Archive):
        return "archive"
    path = Path(source).resolve()
    return (path.stem if path.is_file() else path.name).lower()


def _loaded(source: Bundle | Archive | str | Path) -> Bundle | Archive:
    if isinstance(source, Bundle | Archive):
        return source
    return Archive.load(source) if Path(source).is_file() else load_bundle(source)


def listening(
    listen: str, services: Mapping[str, Service], tls: ServerTls | None, *, insecure: bool = False, sessions: int = 64
) -> Server:
    """A server that is ready to run. Raises PpspeechError if it cannot listen there, or not without TLS."""
    address = Address.parse(listen)
    try:
        return Server(address, services, tls=tls, insecure=insecure, capacity=Capacity(sessions=sessions))
    except ValueError as error:
        raise PpspeechError(str(error)) from None
    except OSError as error:
        raise PpspeechError(f"cannot listen at {address}: {error.strerror}") from None


@contextmanager
def kept_folder(state: str | Path | None) -> Iterator[Path]:
    """The folder that was given, closed to other users, or one that lasts as long as the server."""
    with tempfile.TemporaryDirectory() if state is None else nullcontext(private_folder(Path(state))) as folder:
        yield Path(folder)
