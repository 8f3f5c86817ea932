"""Log-in by voice and four digits that are asked for: people of AudioMNIST, strangers, and replays of other digits.

20 of AudioMNIST's 60 people are the cohort that thresholds are set among (at the default rate of 0.01 for the voice of
a stranger who says the digits), 40 are tested. Everybody is enrolled with two takes of each digit, and says the digits
that are asked for by other takes, joined with pauses and cut again by the speech detector; where it does not hear four
words, the attempt has failed. Impostors are other tested people who say the right digits. A replay is the right person
with yesterday's digits, drawn like today's, but not all four the same. Some of each go through the encrypted service,
over TLS on this machine, where the server draws the digits; the rest is decided in the clear by the same codes and
thresholds, and the encrypted decisions are compared with that.

The space of digits is of the built-in voices, and its settings and threshold were chosen on FSDD. How thresholds of
voices are set (one margin for everybody, for as much speech as four digits have) was chosen on the 20 people of the
cohort, after a first run with a tail of its own for everybody, as other hardened claims have it, in which a quarter of
the 40 people's own attempts failed by the voice. A client may send a code of more speech than four digits: that of all
twenty clips that a stranger was enrolled with is tried too. Intervals of rates count attempts as independent, though
people have several.

`login.total_s` is from the last sample, with the front end; a microphone adds the pause by which it knows the end.

Needs the corpus audiomnist and the extra `embeddings`; --quick takes about 45 s.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray

from ppspeech.audio import Samples, samples_at
from ppspeech.data import Utterance, load_corpus
from ppspeech.errors import AudioError
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.figures import Figure
from ppspeech.network import fingerprint, in_background, own_tls
from ppspeech.protocols.speakers import LoginPerson
from ppspeech.service import Answer, Client, ServiceFiles, connect
from ppspeech.service.login import (
    RATE,
    LoginDeployment,
    LoginEar,
    LoginSpace,
    ServedLogin,
    Template,
    joined,
    learn_digits,
    new_key,
)
from ppspeech.service.server import listening, services_of
from ppspeech.training import learn_voices

COHORT, ENROLLED, ASKED = 20, 2, 4
KINDS = {
    "miss_rate": "people themselves who are not let in",
    "impostor_rate": "other people who say the right digits and are let in",
    "replay_rate": "people's own voice with yesterday's digits that is let in",
}

Clips = Mapping[int, Sequence[Path]]
"""A person's clips by digit."""


@dataclass(frozen=True)
class Attempt:
    """Who claims to be whom, and says what where these digits are asked for."""

    claimed: str
    speaker: str
    asked: tuple[int, ...]
    said: tuple[int, ...]


@EXPERIMENTS.register("login")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001
    """`quick`: 8 people and fewer attempts, built-in voices and encrypted log-ins."""
    people, each, encrypted, voices = (8, 2, 2, (10, 1)) if quick else (40, 12, 12, (40, 2))
    generator = np.random.default_rng(0)
    own = by_digit(load_corpus("audiomnist").utterances)
    names = [list(own)[place] for place in generator.permutation(len(own))]
    cohort, tested = names[:COHORT], names[COHORT : COHORT + people]
    with tempfile.TemporaryDirectory() as kept:
        bundle = learn_voices(_folder(own, cohort, Path(kept, "cohort")), Path(kept, "bundle"), public=True)
        digits = learn_digits(*voices)
        space = LoginSpace(np.zeros(256), *digits)  # the bundle's cohort gives the center
        served = ServedLogin.of("login", bundle, Path(kept), LoginDeployment(tries=1_000_000), space)
        ear = LoginEar(LoginSpace.load(served.offer.terms.space))
        known = {who: Template(*ear.template({d: own[who][d][:ENROLLED] for d in range(10)})) for who in tested}
        persons = {who: served.person(template) for who, template in known.items()}
        rates = []
        for kind, tries in attempts(tested, each, generator).items():
            held = [_in_the_clear(ear, persons[a.claimed], a.asked, _said(own, a, generator)) for a in tries]
            accepted = sum(parts is not None and bool(parts.all()) for parts in held)
            wrong = len(tries) - accepted if kind == "miss_rate" else accepted
            rates.append(Figure.share(f"login.{kind}", wrong, len(tries), "attempts", note=KINDS[kind]))
            rates += _parts(kind, tries, held)
        rates.append(_all_speech(served, known))
        with _served(served, Path(kept, "files")) as client:
            answers, same = _encrypted(client, ear, served, own, tested[:encrypted], generator)
    timed = [answer.seconds for answer in answers]
    one = answers[0]
    plain = f"{len(answers)} encrypted log-ins, of which {same} are decided as in the clear"
    return [
        Figure("login.total_s", median(timed), "s", note=f"median; {max(timed):.2f} at most, over TLS on this machine"),
        Figure("login.same_decision", same / len(answers), note=plain),
        *rates,
        Figure("login.bytes", one.bytes_up + one.bytes_down, "bytes", note="both ways, transfers included"),
        Figure("login.rounds", one.rounds, "rounds", note="transfers included"),
        Figure("login.prepared_s", median(a.offline_seconds for a in answers), "s", note="before the digits are said"),
    ]


def by_digit(utterances: Sequence[Utterance]) -> dict[str, dict[int, list[Path]]]:
    """People's clips by digit, in the order of takes."""
    words = list(dict.fromkeys(each.word for each in utterances))
    found: dict[str, dict[int, list[Path]]] = {}
    for each in utterances:
        found.setdefault(each.speaker, {}).setdefault(words.index(each.word), []).append(each.path)
    return found


def attempts(people: Sequence[str], each: int, generator: np.random.Generator) -> dict[str, list[Attempt]]:
    """So many true log-ins, impostors and replays of each person."""

    def drawn() -> tuple[int, ...]:
        return tuple(generator.integers(10, size=ASKED).tolist())

    found: dict[str, list[Attempt]] = {kind: [] for kind in KINDS}
    for who in people:
        others = [other for other in people if other != who]
        for _ in range(each):
            asked = drawn()
            found["miss_rate"].append(Attempt(who, who, asked, asked))
            found["impostor_rate"].append(Attempt(who, str(generator.choice(others)), asked, asked))
            yesterday = drawn()
            while yesterday == asked:
                yesterday = drawn()
            found["replay_rate"].append(Attempt(who, who, asked, yesterday))
    return found


def _parts(kind: str, tries: Sequence[Attempt], held: Sequence[NDArray[np.bool_] | None]) -> list[Figure]:
    """What each part of the check did, where four words were heard."""
    heard = [(a, parts) for a, parts in zip(tries, held, strict=True) if parts is not None]
    voice = sum(bool(parts[0]) for _, parts in heard)
    if kind == "impostor_rate":
        return [Figure.share("login.voice.impostor_rate", voice, len(heard), "attempts", note="by the voice alone")]
    digits = [(x == y, bool(ok)) for a, parts in heard for x, y, ok in zip(a.asked, a.said, parts[1:], strict=True)]
    if kind == "replay_rate":
        wrong = [passed for same, passed in digits if not same]
        return [Figure.share("login.digits.replay_rate", sum(wrong), len(wrong), "digits", note="a wrong one passes")]
    lost, missed = len(tries) - len(heard), sum(not passed for _, passed in digits)
    return [
        Figure.share("login.heard.miss_rate", lost, len(tries), "attempts", note="not four words are heard"),
        Figure.share("login.voice.miss_rate", len(heard) - voice, len(heard), "attempts", note="the voice fails"),
        Figure.share("login.digits.miss_rate", missed, len(digits), "digits", note="a right one fails"),
    ]


def _all_speech(served: ServedLogin, known: Mapping[str, Template]) -> Figure:
    """Strangers who send a code of all that they were enrolled with, and the right digits by whatever means."""
    pairs = [(a.voice, b.voice) for who, a in known.items() for other, b in known.items() if who != other]
    passed = sum(float(own @ stranger) >= served.rule.least(own) for own, stranger in pairs)
    note = "strangers who send a code of twenty digits; by the voice alone"
    return Figure.share("login.voice.all_speech_rate", passed, len(pairs), "pairs", note=note)


def _said(own: Mapping[str, Clips], attempt: Attempt, generator: np.random.Generator) -> Samples:
    """One recording, of takes that nobody was enrolled with."""
    clips = [own[attempt.speaker][digit][ENROLLED:] for digit in attempt.said]
    return joined([samples_at(takes[int(generator.integers(len(takes)))], None, RATE) for takes in clips])


def _in_the_clear(ear: LoginEar, person: LoginPerson, asked: Sequence[int], said: Samples) -> NDArray[np.bool_] | None:
    """Which parts hold, `(1 + digits,)`; None where not as many words are heard."""
    try:
        codes = person.terms.codes(*ear.answer(said, RATE, ASKED))
    except AudioError:
        return None
    theirs, least = person.asked(asked)
    held: NDArray[np.bool_] = np.add.reduceat(codes == theirs, person.terms.starts, dtype=np.int64) >= least
    return held


def _encrypted(
    client: Client,
    ear: LoginEar,
    served: ServedLogin,
    own: Mapping[str, Clips],
    people: Sequence[str],
    generator: np.random.Generator,
) -> tuple[list[Answer[bool]], int]:
    """True log-ins, impostors and replays of these people: answers, and how many are decided as in the clear."""
    answers, same, keys = [], 0, {who: new_key() for who in people}
    for who in people:
        client.join(who, keys[who], {digit: own[who][digit][:ENROLLED] for digit in range(10)})
        person = served.person(Template(*ear.template({d: own[who][d][:ENROLLED] for d in range(10)})))
        for kind in KINDS:
            speaker = people[people.index(who) - 1] if kind == "impostor_rate" else who
            heard: list[tuple[Attempt, Samples]] = []

            def say(asked: tuple[int, ...], speaker: str, shift: int, heard: list[tuple[Attempt, Samples]]) -> Samples:
                attempt = Attempt(speaker, speaker, asked, tuple((digit + shift) % 10 for digit in asked))
                heard.append((attempt, _said(own, attempt, generator)))
                return heard[-1][1]

            saying = partial(say, speaker=speaker, shift=3 if kind == "replay_rate" else 0, heard=heard)
            try:
                answers.append(client.log_in(who, keys[who], saying))
            except AudioError:  # not four words: nothing was decided
                continue
            parts = _in_the_clear(ear, person, heard[0][0].asked, heard[0][1])
            same += parts is not None and answers[-1].value == bool(parts.all())
    return answers, same


@contextmanager
def _served(served: ServedLogin, folder: Path) -> Iterator[Client]:
    """A client of a server in a process of its own, over TLS."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the server forks: threads would not survive it
    with own_tls(None, None, None, insecure=False) as tls:
        assert tls is not None
        server = listening("127.0.0.1:0", services_of([served], ServiceFiles.at(folder)), tls)
        with in_background(server) as running:
            torch.set_num_threads(threads)
            with connect(str(running.address), pin=fingerprint(tls.certificate), task="login") as client:
                yield client


def _folder(own: Mapping[str, Clips], people: Sequence[str], folder: Path) -> Path:
    """A folder of clips a person, as cohorts are given."""
    for who in people:
        (folder / who).mkdir(parents=True)
        for paths in own[who].values():
            for path in paths:
                (folder / who / path.name).symlink_to(path.resolve())
    return folder
