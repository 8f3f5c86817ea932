"""A server in a process of its own, over TLS, for the tests that need one."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ppspeech.bundle import Bundle
from ppspeech.network import (
    Address,
    Capacity,
    Limits,
    RunningServer,
    Server,
    ServerTls,
    in_background,
    make_certificate,
)
from ppspeech.service import (
    Archive,
    Client,
    Deployment,
    Door,
    SentenceDeployment,
    ServiceFiles,
    SpeakerDeployment,
    SpotDeployment,
    build_services,
    connect,
    open_door,
)
from ppspeech.service.server import Choices
from ppspeech.service.server.book import JsonFormatter
from tests.service.voices import FAR, LIVE, released

QUICK = Limits(handshake_seconds=60, message_seconds=60, session_seconds=300)


@dataclass
class Running:
    """A server that runs, and what its files are."""

    process: RunningServer
    pin: str
    bundles: Mapping[str, Bundle | Archive]
    log: Path
    metrics: Path
    trust: dict[str, Any]

    @property
    def address(self) -> str:
        return str(self.process.address)

    def connect(self, model: str = "whole", **options: Any) -> Client:
        return connect(self.address, **({"pin": self.pin} | self.trust | {"model": model, "limits": QUICK} | options))

    def door(self) -> Door:
        return open_door(self.address, pin=self.pin, limits=QUICK, **self.trust)


@contextmanager
def serving(
    folder: Path,
    bundles: Mapping[str, Bundle | Archive],
    *,
    limit: int | None = None,
    capacity: Capacity | None = None,
    client_ca: Path | None = None,
    trust: dict[str, Any] | None = None,
    speakers: SpeakerDeployment | None = None,
    sentences: SentenceDeployment | None = None,
    spotting: SpotDeployment | None = None,
    limits: Limits = QUICK,
    **choices: Any,
) -> Iterator[Running]:
    folder.mkdir(parents=True, exist_ok=True)
    log, metrics = folder / "log.jsonl", folder / "metrics.prom"
    handler = logging.FileHandler(log)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("ppspeech")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        pin = make_certificate(folder / "certificate.pem", folder / "key.pem")
        files = ServiceFiles.at(folder, limit, metrics)
        words = Deployment(**({"frames": 40} | choices))
        given = {"speakers": speakers, "sentences": sentences}
        chosen = Choices(words, spotting=spotting, **{task: each for task, each in given.items() if each is not None})  # type: ignore[arg-type]
        services = build_services(bundles, files, chosen)
        tls = ServerTls(folder / "certificate.pem", folder / "key.pem", client_ca)
        server = Server(
            Address("127.0.0.1", 0),
            services,
            tls=tls,
            limits=limits,
            capacity=capacity or Capacity(grace_seconds=1.0),
        )
        with in_background(server) as process:
            yield Running(process, pin, bundles, log, metrics, trust or {})
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        handler.close()


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    folder = tmp_path_factory.mktemp("bundles")
    return {
        "whole": released(folder / "whole"),
        "live": released(folder / "live", mfcc=LIVE, seed=1),
        "far": released(folder / "far", mfcc=FAR, seed=10),
    }


@pytest.fixture(scope="session")
def heads(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    """Heads on embeddings: with and without a background, by matrices, and on windows."""
    from tests.service.heads import WINDOW, head
    from tests.service.heads import released as released_head

    folder = tmp_path_factory.mktemp("heads")
    return {
        "words": released_head(folder / "words", head()),
        "margin": released_head(folder / "margin", head("margin")),
        "sure": released_head(folder / "sure", head(background=False)),
        "live": released_head(folder / "live", head(embedding=WINDOW), WINDOW),
    }


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory, bundles: dict[str, Bundle]) -> Iterator[Running]:
    """One server for all tests that leave it as they found it."""
    with serving(tmp_path_factory.mktemp("server"), bundles) as found:
        yield found


@pytest.fixture
def serve(tmp_path: Path) -> Callable[..., AbstractContextManager[Running]]:
    """Servers of a test's own."""
    return lambda bundles, **options: serving(tmp_path / "server", bundles, **options)
