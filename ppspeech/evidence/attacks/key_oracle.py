"""Clients that have a server, or a keeper, decrypt something else than scores: every answer tells about its key.

c1 = (q / 4) X^l makes the share that the key holder decrypts a coefficient of its key. What answers tell of one key is
bounded: it is replaced before that is worth anything (`LatticeParameters.leakable_bits`).
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.lattice import COIN_BYTES, Job, dump_reply, key_identity, key_length
from ppspeech.crypto.shares import ShareEngine
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import ProtocolError
from ppspeech.evidence.attacks import Gain, NotHereError, Target, attack
from ppspeech.evidence.attacks.target import Victim, made_frames
from ppspeech.network import fingerprint, in_background, own_tls
from ppspeech.protocols import Kind, Meeting, meet
from ppspeech.protocols.speakers import decide
from ppspeech.protocols.words import Hearing, TakenModels, model_bytes, stream_plan
from ppspeech.service import (
    Ask,
    BudgetSpentError,
    Deployment,
    Request,
    ServiceFiles,
    connect_through,
    open_door,
    send_request,
)
from ppspeech.service.server import PublishedGallery, Rule, listening, own_gallery, services_of

SHORT = 12  # frames of an utterance, where the server is ours: many are asked
QUARTER = np.uint64(1 << 30)  # of the modulus, as a reply carries it


def about_the_key(job: Job, identity: bytes, shift: int) -> bytes:
    """A "reply" that opens to coefficients of the key, turned by `shift`."""
    second = np.zeros((job.groups * job.outputs, job.parameters.degree), np.uint64)
    second[:, shift % job.parameters.degree] = QUARTER
    return dump_reply(job.identity, identity, np.zeros((len(second), len(job.kept)), np.uint64), second)


class Questions(TakenModels):
    """Takes the server's models once, and asks about their key ever after, in place of a frame sender."""

    shift = 0
    identity = b""

    def take(self, met: Meeting) -> "Questions":  # type: ignore[override]
        """The first time, what the server sends; later nothing is expected."""
        if not self.identity:
            message = met.channel.receive(Kind.MODEL, model_bytes(self.shape))
            key = message[: key_length(stream_plan(self.shape).precision.parameters)]
            self.identity = key_identity(key, met.setup.id + b"models" + bytes(8))
        return self

    def prepare(self, steps: int) -> None:
        """Nothing is encrypted."""

    def send(self, _: Reals) -> tuple[bytes, Residues]:
        """A question in place of a frame's scores."""
        self.shift += 1
        reply = about_the_key(stream_plan(self.shape).job, self.identity, self.shift)
        return reply, np.zeros((1, self.shape.columns), np.uint64)


@attack("key_by_streams", "a streaming server's key, by utterances that have it decrypted")
def key_by_streams(target: Target) -> Gain:
    """Utterances in one session, all under the first key, until one is refused or the key has told too much."""
    # Without a budget, where the server is ours: it is the key that must hold.
    own: dict[str, Any] = {} if target.door else {"words": Deployment(frames=SHORT), "budget": None}
    with target.served(**own) as victim:
        shape = victim.offer.terms.shape
        if "stream" not in victim.offer.terms.modes:
            raise NotHereError("it does not stream")
        bits, most = shape.answer_bits, stream_plan(shape).precision.parameters.leakable_bits
        answers = 0
        with victim.session() as channel:
            met, asked = meet(channel, Side.SECOND), Questions(shape)
            try:
                while answers * bits <= most:
                    send_request(channel, Request(Ask.STREAM))
                    with met.session():
                        hearing = Hearing(met, asked)
                        for frame in made_frames(victim):
                            hearing.hear(frame)
                        hearing.finish()
                    answers += 1
            except (ProtocolError, BudgetSpentError):
                pass
    told = answers * bits
    return Gain(told, "bits", answers, told > most, f"{answers} answers under one key, which may tell {most} bits")


@attack("key_by_probes", "a keeper's key, by probes that have it decrypted", tasks=("speakers",))
def key_by_probes(target: Target) -> Gain:
    """As many clients as there are addresses, until the key answers no more or has told too much."""
    with keeper(target) as (victim, key):
        plan = victim.offer.terms.plan
        job, most = plan.product.job, plan.product.precision.parameters.leakable_bits
        answers = 0
        for host in range(1, 6):
            try:
                with victim.session(source=f"127.0.0.{host}") as channel:
                    setup = PairSetup.agree(channel, Side.SECOND)
                    while answers <= most:
                        send_request(channel, Request(Ask.VERIFY))
                        with setup.session(channel):
                            engine = ShareEngine(channel, setup, plan.cost)
                            channel.send(Kind.REPLY, about_the_key(job, key, answers))
                            shares = np.zeros((1, plan.places), np.uint64)
                            decide(engine, plan.verification, shares, 0)
                        answers += 1
            except (ProtocolError, BudgetSpentError):
                continue
    return Gain(answers, "bits", answers, answers > most, f"{answers} answers of one key, which may tell {most} bits")


@contextmanager
def keeper(target: Target) -> Iterator[tuple[Victim, bytes]]:
    """A keeper of one template, with the name of its key; it publishes at a store of its own."""
    assert target.bundle is not None
    with ExitStack() as stack:
        store = stack.enter_context(target.speakers(places=4, stores=True))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with connect_through(store.door, bundle=target.bundle) as client:
            own = own_gallery(client, folder)
            own.enroll("someone", np.eye(client.offer.terms.features)[0])
            published = PublishedGallery.of(client, "attacked", own, Rule(0.5))
            sealed = client.fetch("attacked")
        tls = stack.enter_context(own_tls(None, None))
        assert tls is not None
        server = listening("127.0.0.1:0", services_of([published], ServiceFiles.at(folder, "usual")), tls)
        running = stack.enter_context(in_background(server))
        coins, key = sealed.public_key[:COIN_BYTES], sealed.public_key[COIN_BYTES:]
        door = open_door(str(running.address), pin=fingerprint(tls.certificate))
        yield Victim(door, published.offer), key_identity(key, coins)
