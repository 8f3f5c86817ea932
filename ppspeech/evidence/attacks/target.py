"""What is attacked: a bundle, served here as often and in whichever way an attack needs it, or a server that runs.

Of a server that runs nothing is chosen, and what it does not offer is not attacked. To measure what was gained, an
attack compares with the bundle: the judge knows it, the attacker does not.
"""

import contextlib
import json
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch

from ppspeech.arrays import Reals, Residues
from ppspeech.audio.voices import VOICES, Espeak
from ppspeech.bundle import (
    Bundle,
    CtcNetworkSettings,
    KeywordNetworkSettings,
    SentenceHmmSettings,
    SentenceNetworkSettings,
)
from ppspeech.channel import Channel
from ppspeech.errors import ModelError, PpspeechError
from ppspeech.network import ClientTls, StreamChannel
from ppspeech.network import connect as connect_channel
from ppspeech.protocols import Meeting
from ppspeech.protocols.scores import WordArrays
from ppspeech.protocols.sentences import SentenceArrays, prepare, product_plan
from ppspeech.protocols.words import KeywordJob
from ppspeech.service import (
    DESCRIBE,
    Ask,
    Client,
    Deployment,
    Door,
    Offer,
    Request,
    SentenceDeployment,
    SpeakerDeployment,
    connect_through,
    export_bundle,
    export_words,
    offered_names,
    open_door,
    serve,
)
from ppspeech.service.server import log_as_json

RATE = 16_000


class NotHereError(PpspeechError):
    """What an attack is aimed at is not offered by this target."""


@dataclass(frozen=True)
class Victim:
    """One model of a server: how to reach it, what it offers, and, where it is our own, the log of its sessions."""

    door: Door
    offer: Offer[Any]
    bundle: Bundle | None = None
    log: Path | None = None

    @contextmanager
    def session(self, tls: ClientTls | None = None, source: str = "") -> Iterator[StreamChannel]:
        """A session that is left by hanging up, whatever was said."""
        door = self.door
        channel = connect_channel(
            door.address,
            self.offer.name,
            self.offer.agreement,
            tls=tls or door.tls,
            insecure=door.insecure,
            limits=door.limits,
            source=source,
        )
        try:
            yield channel
        finally:
            channel.close()

    def client(self) -> Client:
        """A client as it should be."""
        return connect_through(self.door, model=self.offer.name, bundle=self.bundle if self.of_speakers else None)

    @property
    def request(self) -> Request:
        """A question as it should be: of one word, or of the shortest sentence."""
        terms = self.offer.terms
        return Request(Ask.SENTENCE, steps=terms.steps[0]) if terms.TASK == "sentences" else Request(Ask.WORDS)

    @property
    def shape(self) -> Any:
        """What that question is of."""
        terms = self.offer.terms
        return terms.shape_of(terms.steps[0]) if terms.TASK == "sentences" else terms.shape

    @property
    def of_speakers(self) -> bool:
        """Whether it tells speakers."""
        return bool(self.offer.terms.TASK == "speakers")

    def decisions(self) -> list[bool]:
        """What our own server has decided so far, in order: clients are not told."""
        assert self.log is not None
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line["accepted"] for line in lines if line["event"] == "claim decided"]


@dataclass
class Target:
    """A bundle to be served here, or the door to a server that runs, with its bundle where we have it.

    `quick`: fewer tries. Use it in a `with` statement: it ends what it has started.
    """

    bundle: Bundle | None = None
    door: Door | None = None
    model: str | None = None
    quick: bool = False
    _started: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "Target":
        torch.set_num_threads(1)  # servers fork: threads would not survive it
        return self

    def __exit__(self, *_: object) -> None:
        self._started.close()

    @cached_property
    def task(self) -> Literal["words", "sentences", "speakers", "networks"]:
        """What the model is asked for."""
        if self.bundle is None:  # whoever asks about speakers has their bundle
            assert self.door is not None
            named = offered_names(self.door.hear(DESCRIBE))
            chosen = named.get("words", []) if self.model is None else [self.model]
            return "words" if set(chosen) & set(named.get("words", [])) or "sentences" not in named else "sentences"
        if isinstance(self.bundle.config.settings, SentenceHmmSettings):
            return "sentences"
        if isinstance(self.bundle.config.settings, KeywordNetworkSettings):
            return "networks"
        if isinstance(self.bundle.config.settings, CtcNetworkSettings | SentenceNetworkSettings):
            raise ModelError(
                f"no attack here is aimed at a {self.bundle.config.type}: attack a keyword_network, which runs the "
                "same layers, and a sentence_hmm, which runs the same best path"
            )
        return "speakers" if "verify" in self.bundle.config.kind.uses else "words"

    @cached_property
    def usual(self) -> Victim:
        """The server as it is by default, the same one for all attacks that need no other."""
        return self._started.enter_context(self.served())

    @contextmanager
    def served(self, shown: tuple[Path, Path] | None = None, **choices: Any) -> Iterator[Victim]:
        """A server of the bundle with choices of `ppspeech.serve`, or the one that runs, which has made its own.

        `shown`: certificate and key that we show to a server that asks. Raises NotHereError where choices are needed
        and cannot be made.
        """
        if self.door is not None:
            if choices:
                raise NotHereError(f"it needs a server of its own, with {', '.join(choices)}: give the bundle")
            yield self._victim(self.door, None)
            return
        assert self.bundle is not None
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "log.jsonl")
            with log.open("a") as stream, log_as_json(stream), serve(self.bundle, **choices) as running:
                certificate, key = shown or (None, None)
                yield self._victim(open_door(running.address, pin=running.pin, certificate=certificate, key=key), log)

    def _victim(self, door: Door, log: Path | None) -> Victim:
        asking = self.bundle if self.task == "speakers" else None
        task: Literal["words", "sentences"] | None = None
        if self.task != "speakers":
            task = "sentences" if self.task == "sentences" else "words"
        with contextlib.closing(connect_through(door, model=self.model, task=task, bundle=asking)) as client:
            return Victim(door, client.offer, self.bundle, log)

    @contextmanager
    def speakers(self, **choices: Any) -> Iterator[Victim]:
        """A server of speakers, of a bundle with these choices of `SpeakerDeployment`.

        Where the bundle has no cohort, everyone's threshold is a cosine of 0.5.
        """
        assert self.bundle is not None
        if self.bundle.verifier.impostors is None:
            choices = {"threshold": 0.5} | choices
        with self.served(speakers=SpeakerDeployment(**choices)) as victim:
            yield victim

    def sentences_of(self, victim: Victim) -> SentenceArrays:
        """The same of a model of sentences."""
        if self.bundle is None:
            raise NotHereError("what was gained is measured against the bundle: give it with --bundle")
        shape = victim.offer.terms.shape
        models = export_bundle(self.bundle, SentenceDeployment(shape.frames, shape.bits))
        if victim.offer.fingerprint != self.bundle.fingerprint or models.shape != shape:
            raise NotHereError(f"{victim.offer.name} is another model than the bundle, or served with other choices")
        return models

    def models_of(self, victim: Victim) -> WordArrays:
        """What the server keeps to itself, for the judge. Raises NotHereError unless the bundle is the served one."""
        if self.bundle is None:
            raise NotHereError("what was gained is measured against the bundle: give it with --bundle")
        shape, config = victim.offer.terms.shape, self.bundle.config
        usual = Deployment(shape.frames, shape.operation, shape.reject)
        for chosen in (usual, replace(usual, limit=shape.limit, bits=shape.bits)):
            models = export_words(config.type, self.bundle.model, self.bundle.labels, chosen, config.mfcc)
            if victim.offer.fingerprint == self.bundle.fingerprint and models.shape == shape:
                return models
        raise NotHereError(f"{victim.offer.name} is another model than the bundle, or served with other choices")

    def spoken(self, text: str, voice: int) -> Reals:
        """A text as one of the built-in speakers says it, `(samples,)` at `RATE`."""
        with Espeak() as espeak:
            said = VOICES[voice % len(VOICES)].say(text, espeak, np.random.default_rng(voice), sample_rate=RATE)
        return cast("Reals", 0.5 * said / np.abs(said).max())


def made_frames(victim: Victim) -> Reals:
    """An utterance of the shortest length that its model takes, of no voice."""
    shape = victim.shape
    return np.random.default_rng(secrets.randbits(32)).normal(size=(shape.shortest, shape.dimensions))


def half_asked(victim: Victim, met: Meeting) -> Residues:
    """A question up to the encrypted scores, in a session of the meeting: our share of them."""
    shape, frames = victim.shape, made_frames(victim)
    if victim.offer.terms.TASK == "sentences":
        prepare(met, shape)
        return met.multiply(product_plan(shape), shape.padded_monomials(frames))
    job = KeywordJob(shape)
    job.prepare(met)
    return met.multiply(job.plan, shape.padded_monomials(frames))


def is_answered(channel: Channel, kind: int, size: int) -> bool:
    """Whether the server goes on with a message of this kind and size, or ends the session."""
    try:
        channel.receive(kind, size)
    except PpspeechError:
        return False
    return True
