"""A streaming server that sends a "key" of its own choice, and reads the frames that its client multiplies into it."""

import secrets
from typing import cast

import numpy as np
import torch

from ppspeech.arrays import Reals, Residues
from ppspeech.audio import LiveFrames, MfccConfig, in_usual_range, one_channel, waits_for_the_end
from ppspeech.crypto.lattice import (
    Job,
    KeyHolder,
    dump_query,
    key_identity,
    key_length,
    load_reply,
    weight_polynomials,
)
from ppspeech.errors import PpspeechError
from ppspeech.evidence.attacks import Gain, NotHereError, Target, attack
from ppspeech.evidence.attacks.hostile_server import pretending
from ppspeech.evidence.attacks.keys import SEED_BYTES
from ppspeech.evidence.attacks.reading import find_numbers, unknown_places
from ppspeech.evidence.attacks.target import RATE
from ppspeech.protocols import Kind, Meeting
from ppspeech.protocols.scores import WordArrays
from ppspeech.protocols.words import StreamModels, follow, stream_plan
from ppspeech.service import Request, connect_through


class Ear:
    """In place of the server's key: it keeps every reply, and opens it to nothing."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def open(self, job: Job, reply: bytes, workers: int = 1) -> Residues:  # noqa: ARG002
        """A reply, kept."""
        self.heard.append(reply)
        return np.zeros((job.groups, job.outputs, len(job.kept)), np.uint64)


class HostileModels(StreamModels):
    """So-called models of which only the seeds matter, under a public key of zeros."""

    def __init__(self, models: WordArrays) -> None:
        super().__init__(models)
        self.ear = Ear()
        self.key = cast("KeyHolder", self.ear)  # of which only `open` is asked
        self.seeds: list[bytes] = []

    def give(self, met: Meeting) -> None:
        """Send them once."""
        if not self.seeds:
            plan = stream_plan(self.models.shape)
            ring, job = plan.precision.parameters, plan.job
            self.seeds = [secrets.token_bytes(SEED_BYTES) for _ in range(job.groups * job.terms)]
            key = bytes(key_length(ring))
            self.identity = key_identity(key, met.setup.id + b"models" + bytes(8))
            nothing = np.zeros((len(self.seeds), ring.degree), np.uint64)
            met.channel.send(Kind.MODEL, key + dump_query(ring, job.identity, self.identity, self.seeds, nothing))


@attack("stream_key", "the voice, by a streaming server that chooses its key")
def stream_key(target: Target) -> Gain:
    """Of every frame the server lacks four numbers, and is given the others: what it finds is compared with them."""
    victim = target.usual
    terms = victim.offer.terms
    if "stream" not in terms.modes or waits_for_the_end(terms.mfcc) is not None:
        raise NotHereError("it does not stream: its features wait for the end of an utterance")
    models = target.models_of(victim)
    plan, ring = stream_plan(models.shape), stream_plan(models.shape).precision.parameters
    found: list[int] = []
    true: list[int] = []
    utterances = 1 if target.quick else 2
    for voice in range(utterances):
        hostile = HostileModels(models)

        def help_client(met: Meeting, _: Request, hostile: HostileModels = hostile) -> None:
            follow(met, hostile)

        sound = torch.from_numpy(target.spoken("one", voice)[: models.shape.frames // 2 * RATE // 100])
        with pretending(victim, help_client, lambda *_: None) as door:
            try:
                with connect_through(door) as client, client.stream(RATE) as listening:
                    listening.feed(sound)
                    listening.finish()
            except PpspeechError:
                pass  # the word is wrong, or none: the server did not care to compute it
        heard = hostile.ear.heard[: 6 if target.quick else None]
        for reply, frame in zip(heard, _frames(terms.mfcc, sound), strict=False):
            numbers = weight_polynomials(plan, models.shape.frame_monomials(frame[None]).T)[0]
            places = unknown_places(numbers)
            _, second = load_reply(
                reply, ring, plan.job.identity, hostile.identity, plan.job.groups, len(plan.job.kept)
            )
            found += find_numbers(ring, hostile.seeds, second[0], numbers, places)
            true += [int(numbers[place]) for place in places]
    if len(true) < 8:
        raise NotHereError(f"only {len(true)} numbers were said: the client left early")
    right = sum(guess == number for guess, number in zip(found, true, strict=True))
    alike = _correlation(np.array(found, float), np.array(true, float))
    note = f"{right} of {len(true)} numbers of frames right"
    return Gain(alike, "correlation", len(true), right > len(true) / 100, note)


def _frames(mfcc: MfccConfig, sound: torch.Tensor) -> Reals:
    """What the client heard, for the judge."""
    live = LiveFrames(mfcc)
    return in_usual_range(np.concatenate([live.feed(one_channel(sound)), live.finish()]), mfcc)


def _correlation(found: Reals, true: Reals) -> float:
    if not found.std() or not true.std():
        return 0.0
    return abs(float(np.corrcoef(found, true)[0, 1]))
