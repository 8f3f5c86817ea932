"""Clients of speakers: voices longer than a voice can be, and people enrolled to count the others."""

import secrets
import time
from typing import Any, cast

import numpy as np
from scipy import stats

from ppspeech.arrays import Reals
from ppspeech.bundle import FALSE_ACCEPT, Bundle
from ppspeech.crypto.transfer import Side
from ppspeech.errors import ProtocolError
from ppspeech.evidence.attacks import Gain, Target, attack
from ppspeech.evidence.attacks.target import RATE, Victim
from ppspeech.network import StreamChannel
from ppspeech.protocols import meet
from ppspeech.service import Ask, Client, Request, receive_ready, send_request, send_template

SAID = "one two three four five six seven"
SCORING = "hardened"  # what must hold
STRETCHES = (2.0, 4.0, 8.0)
"""Times the length of a unit vector."""
BEYOND = 0.05  # of a cosine, which codes of signs know to about this
BY_CHANCE = 1e-4  # an attack that got no more than chance gives it is not said to have won, but so rarely


class Puppet:
    """In place of a client's background model: whatever is heard, its direction is what it was told."""

    def __init__(self, bundle: Bundle) -> None:
        self.vector: Reals = np.zeros(bundle.verifier.size)
        self._real = bundle.verifier

    @property
    def verifier(self) -> "Puppet":
        """Itself, where a client looks for one."""
        return self

    def direction(self, clips: Any) -> Reals:  # noqa: ARG002
        """As told."""
        return self.vector

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@attack("long_vectors", "to be accepted as somebody else, by vectors that are no voice's", tasks=("speakers",))
def long_vectors(target: Target) -> Gain:
    """Impostors claim every place: as they are, stretched, by the signs of their numbers at greater lengths, and by
    random signs. A claim is won where what they made of a voice is accepted and the voice itself is not.
    """
    assert target.bundle is not None
    verifier, people = target.bundle.verifier, 2
    impostors = 2 if target.quick else 4
    sounds = [target.spoken(SAID, voice) for voice in range(people + impostors)]
    voices = np.stack([verifier.direction(verifier.features([sound], RATE)) for sound in sounds])
    choices: dict[str, Any] = {"places": people, "scoring": SCORING, "decision": "server", "enrolls": True}
    if verifier.impostors is None:  # no cohort to set thresholds by: what none of these strangers comes up to
        choices["threshold"] = min(0.99, float((voices[people:] @ voices[:people].T).max()) + BEYOND)
    with target.speakers(**choices) as victim:
        with victim.client() as client:
            places = [client.enroll(f"person {n}", [sounds[n]], RATE) for n in range(people)]
        puppet = Puppet(target.bundle)
        won = claims = honest = 0
        with Client(victim.door, victim.offer, bundle=cast("Bundle", puppet)) as client:

            def accepted(vector: Reals, place: int) -> bool:
                before, puppet.vector = len(victim.decisions()), vector
                client.verify(place, [sounds[0]], RATE)
                while len(decided := victim.decisions()) == before:  # the server writes it down after the last message
                    time.sleep(0.005)
                return decided[-1]

            for own in voices[people:]:
                for place in places:
                    is_alike = accepted(own, place)
                    honest += is_alike
                    vectors = _stretched(own)
                    claims += len(vectors)
                    won += sum(accepted(vector, place) for vector in vectors) if not is_alike else 0
    rate = max(FALSE_ACCEPT, honest / (impostors * people))
    chance = float(stats.binom.sf(won - 1, claims, rate)) if won else 1.0
    note = f"{won} of {claims} stretched claims accepted, {honest} of {impostors * people} honest ones of strangers"
    return Gain(won / claims, "of the claims", claims, chance < BY_CHANCE, note)


def _stretched(voice: Reals) -> list[Reals]:
    size = 1 / np.sqrt(len(voice))
    signs = np.where(voice >= 0, size, -size)
    random = np.where(np.random.default_rng(secrets.randbits(32)).random(len(voice)) < 0.5, size, -size)
    return [times * each for times in STRETCHES for each in (voice, signs, random)] + [signs, random]


@attack("counting_people", "how many are enrolled, by enrolling", tasks=("speakers",))
def counting_people(target: Target) -> Gain:
    """Between two guesses someone enrolls a few others; the place that one is given is the guess."""
    tries, room = (4 if target.quick else 8), 128
    enrolled = right = 0
    with target.speakers(places=room, enrolls=True) as victim, victim.session() as channel:
        meet(channel, Side.SECOND)
        for _ in range(tries):
            for _ in range(secrets.randbelow(8)):
                _enroll(victim, channel)
                enrolled += 1
            right += _enroll(victim, channel) == enrolled
            enrolled += 1
    chance = float(stats.binom.sf(right - 1, tries, 1 / (room - enrolled))) if right else 1.0
    return Gain(right / tries, "of the guesses", tries, chance < BY_CHANCE, f"{right} of {tries} guesses were right")


def _enroll(victim: Victim, channel: StreamChannel) -> int | None:
    """Somebody nobody has heard."""
    drawn = np.random.default_rng(secrets.randbits(64)).normal(size=victim.offer.terms.features)
    send_request(channel, Request(Ask.ENROLL))
    send_template(channel, secrets.token_hex(8), drawn / np.linalg.norm(drawn))
    done, place = receive_ready(channel)
    if not done:
        raise ProtocolError("the server has no room for a stranger")
    return place
