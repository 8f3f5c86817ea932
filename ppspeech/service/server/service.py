"""Released models as services for `network.Server`: describe, health, and one service a bundle."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ppspeech import __version__
from ppspeech.bundle import Bundle, SpeakerUbmSettings
from ppspeech.channel import Channel
from ppspeech.errors import BundleError
from ppspeech.network import Service
from ppspeech.protocols import Kind
from ppspeech.service.description import Description, describe
from ppspeech.service.export import Deployment
from ppspeech.service.names import DESCRIBE, HEALTH, check_name
from ppspeech.service.server.cohort import cohort_at
from ppspeech.service.server.peer import peer_name
from ppspeech.service.server.sessions import Program, SessionBook, Tally
from ppspeech.service.server.speakers import ServedSpeakers, SpeakerDeployment, SpeakerFiles
from ppspeech.service.server.stores import QueryBudget
from ppspeech.service.server.warm_up import warm_up
from ppspeech.service.server.words import ServedWords


@dataclass(frozen=True, slots=True)
class ServiceFiles:
    """What sessions share on disk.

    Attributes:
        budget: of queries, by client and model.
        book: where sessions are counted.
        speakers: the files of speaker services.
    """

    budget: QueryBudget
    book: SessionBook
    speakers: SpeakerFiles

    @classmethod
    def at(cls, folder: Path, limit: int | None = None, metrics: Path | None = None) -> "ServiceFiles":
        """All of them in one folder, which is to be kept like a password file.

        Args:
            folder: made if it is not there.
            limit: queries of one client to one model; None counts without limit.
            metrics: rewritten after each session, in Prometheus' text format; None for none.
        """
        return cls(
            QueryBudget(folder / "budget.sqlite", limit),
            SessionBook(folder / "sessions.sqlite", metrics),
            SpeakerFiles(folder / "gallery.sqlite", folder / "sealed.sqlite", folder / "identified.jsonl"),
        )


def build_services(
    bundles: Mapping[str, Bundle],
    files: ServiceFiles,
    deployment: Deployment | None = None,
    speakers: SpeakerDeployment | None = None,
) -> dict[str, Service]:
    """What `network.Server` is given. All that sessions share is made here, before the server forks.

    The server's process holds weights, and for streaming a key of its own under which they are encrypted; a client's
    secret key never leaves the client, and its public key is in the process of its session alone.

    Args:
        bundles: by the name that clients call them.
        files: what sessions share on disk.
        deployment: public choices for models of words.
        speakers: choices for models of speakers.

    Raises:
        BundleError: for a name that cannot be used.
        ModelError: for a model that cannot be served.
    """
    if {DESCRIBE, HEALTH} & set(bundles) or not bundles:
        raise BundleError(f"serve at least one bundle, none of them named {DESCRIBE} or {HEALTH}, got {list(bundles)}")
    served = [_served(check_name(name), bundle, files, deployment, speakers) for name, bundle in bundles.items()]
    services = {
        each.offer.name: Service(
            files.book.observed(each.offer.name, _session(each, files.budget)), each.offer.agreement
        )
        for each in served
    }
    warm_up()
    return services | {
        DESCRIBE: Service(files.book.observed(DESCRIBE, _describe(served, files.budget)), {}),
        HEALTH: Service(files.book.observed(HEALTH, _health(files.book)), {}),
    }


def _served(
    name: str,
    bundle: Bundle,
    files: ServiceFiles,
    deployment: Deployment | None,
    speakers: SpeakerDeployment | None,
) -> ServedWords | ServedSpeakers:
    if isinstance(bundle.config.settings, SpeakerUbmSettings):
        chosen = speakers or SpeakerDeployment()
        cohort = None if chosen.cohort is None else cohort_at(bundle, chosen.cohort)
        return ServedSpeakers.of(name, bundle, chosen, files.speakers, cohort)
    return ServedWords.of(name, bundle, deployment or Deployment())


def _session(served: ServedWords | ServedSpeakers, budget: QueryBudget) -> Program:
    return lambda channel, tally: served.session(channel, tally, budget)


def _describe(served: list[ServedWords | ServedSpeakers], budget: QueryBudget) -> Program:
    def program(channel: Channel, _: Tally) -> None:
        client = peer_name(channel)
        left = {each.offer.fingerprint: budget.left(each.offer.fingerprint, client) for each in served}
        words = [each.offer for each in served if isinstance(each, ServedWords)]
        speakers = [each.offer for each in served if isinstance(each, ServedSpeakers)]
        offered = Description(
            tuple(replace(offer, queries_left=left[offer.fingerprint]) for offer in words),
            tuple(replace(offer, queries_left=left[offer.fingerprint]) for offer in speakers),
        )
        channel.send(Kind.READY, describe(offered))

    return program


def _health(book: SessionBook) -> Program:
    def program(channel: Channel, _: Tally) -> None:
        said = {"status": "ok", "version": __version__, **book.totals()}
        channel.send(Kind.READY, json.dumps(said, sort_keys=True).encode())

    return program
