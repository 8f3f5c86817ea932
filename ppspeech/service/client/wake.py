"""A second opinion on wake words: the device's own first stage fires, and the last two seconds are checked by a server
with a better, secret model, which learns neither the sound nor the outcome.

When it is asked depends on the first stage alone: one question for each time that it fires, a fixed while after it,
and none for a fixed while after that, whatever the answers were. So the server learns when the device's own stage
fired, and nothing else. The first stage runs here, in the clear: a public head with a low threshold, or speech
detection.

A server of voices may be asked as well who spoke. It is asked each time, whatever the word was, so that it does not
learn the outcome either; what was said must be enough for a voice, or it is not asked.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from ppspeech.audio import Samples, one_channel
from ppspeech.audio.embeddings import SpeechDetector
from ppspeech.errors import AudioError, ModelError, PeerGoneError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import Tensor

    from ppspeech.bundle import EmbeddedRecognizer
    from ppspeech.service.client.connect import Client

WAKE_RATE = 16_000
STEP = 512
"""Samples that are heard at a time: whoever feeds more, or less, hears the same."""
CHECKED_S = 2.0
"""What the server is asked about, of what was heard last."""
SETTLE_S = 0.25
"""From firing to the question: the end of a word, and a bit of quiet, are heard by then."""
REST_S = 1.0
"""From one question to the next firing that counts."""
SLACK = 2.0
"""Nats below the background at which a word counts for a first stage that is a head."""
QUIET = 1e-4
"""What stands for a room before anything is heard, of full scale."""
SPEECH, SILENCE = 0.5, 0.35
LEAST_S, MOST_S = 0.15, 1.5

Told = TypeVar("Told")


class FirstStage(Protocol):
    """What runs on the device: sound at 16 kHz in, whether it fired."""

    def hears(self, samples: Samples) -> bool:
        """Whether it fires with the next samples, `(samples,)`."""
        ...

    def ends(self) -> bool:
        """Whether it fires because the sound is over."""
        ...

    def forget(self) -> None:
        """Begin anew, with other sound."""
        ...


class SpeechStage:
    """Fires where speech ends, and every second and a half while it goes on. Raises MissingPackageError without the
    detector's weights.
    """

    def __init__(self) -> None:
        self._detector = SpeechDetector()
        self._spoken = 0

    def hears(self, samples: Samples) -> bool:
        """As `FirstStage.hears`."""
        fires = False
        for probability in self._detector.feed(samples).tolist():
            if probability >= (SILENCE if self._spoken else SPEECH):
                self._spoken += STEP
                ends = self._spoken >= MOST_S * WAKE_RATE
            else:
                ends = self._spoken >= LEAST_S * WAKE_RATE
                self._spoken = 0
            if ends:
                fires, self._spoken = True, 0
        return fires

    def ends(self) -> bool:
        """As `FirstStage.ends`."""
        return self._spoken >= LEAST_S * WAKE_RATE

    def forget(self) -> None:
        """As `FirstStage.forget`."""
        self._detector.forget()
        self._spoken = 0


class HeadStage:
    """A head on windows, in the clear: fires where a word's score is not more than `slack` nats below the background's.

    Raises ModelError for a model without a background, or of whole utterances.
    """

    def __init__(self, recognizer: "EmbeddedRecognizer", slack: float = SLACK) -> None:
        if not recognizer.has_background or recognizer.embedding.pooling.over != "window":
            raise ModelError("a first stage is a head on windows (over: window) that knows a background")
        self._recognizer, self._slack = recognizer, slack
        self.forget()

    def hears(self, samples: Samples) -> bool:
        """As `FirstStage.hears`."""
        vectors = self._live.feed(samples)
        if not len(vectors):
            return False
        scores = self._recognizer.scores(vectors)
        return bool((scores[:, 1:].amax(1) + self._slack >= scores[:, 0]).any())

    def ends(self) -> bool:
        """As `FirstStage.ends`."""
        return False

    def forget(self) -> None:
        """As `FirstStage.forget`; what is heard next begins in a quiet room."""
        self._live = self._recognizer.live()
        before = round(self._recognizer.vectors.seconds * WAKE_RATE)
        self._live.feed(np.float32(QUIET) * np.random.default_rng(0).standard_normal(before).astype(np.float32))


@dataclass(frozen=True, slots=True)
class Checked:
    """What the server was asked, and said.

    Attributes:
        at: when, in seconds since listening began.
        word: None where the second stage says that it was none, and where the server alone is told.
        seconds: from asking to the answer.
        bytes: of the question and the answer, both ways.
        speaker: who spoke, where that is asked; None for a stranger, and where too little was said for a voice.
    """

    at: float
    word: str | None
    seconds: float
    bytes: int
    speaker: str | None = None


class Wake:
    """Feed it sound at 16 kHz as it comes; what the server was asked about comes back, with its word.

    `who`: a client of enrolled voices, which is asked each time who spoke. Raises ModelError if it is not told names.
    """

    def __init__(self, client: "Client", first: FirstStage | None = None, who: "Client | None" = None) -> None:
        if who is not None and not (who.offer.terms.identifies and who.offer.terms.names == "client"):
            raise ModelError(f"{who.offer.name} does not tell its clients who speaks: serve it with names=client")
        self._client, self._who = client, who
        self._first = first or SpeechStage()
        self.forget()

    def forget(self) -> None:
        """Begin anew, with other sound."""
        self._first.forget()
        self._rest: Samples = np.zeros(0, np.float32)
        self._heard: Samples = np.zeros(0, np.float32)
        self._now = 0  # samples since listening began
        self._asks: int | None = None  # when, if it has fired
        self._rests = 0  # until when it does not count

    def feed(self, samples: "Tensor | ArrayLike") -> list[Checked]:
        """What was asked meanwhile. Raises BudgetSpentError where the server answers no more; ProtocolError if it is
        gone or does not keep to the protocol.
        """
        return list(self.over([samples]))

    def over(self, sound: Iterable["Tensor | ArrayLike"]) -> Iterator[Checked]:
        """As `feed`, of sound that comes in pieces; each as soon as it is known."""
        for piece in sound:
            self._rest = np.concatenate((self._rest, one_channel(piece)))
            while len(self._rest) >= STEP:
                step, self._rest = self._rest[:STEP], self._rest[STEP:]
                if self._is_time(step):
                    yield self._check()

    def end(self) -> list[Checked]:
        """The sound is over: what fired and was not asked about yet."""
        fires = self._first.ends() and self._now >= self._rests
        if not self._heard.any() or (self._asks is None and not fires):
            return []
        self._asks, self._rests = None, self._now + round(REST_S * WAKE_RATE)
        return [self._check()]

    def _is_time(self, step: Samples) -> bool:
        """Whether to ask: by what the first stage says, and never by what was answered."""
        self._now += len(step)
        self._heard = np.concatenate((self._heard, step))[-round(CHECKED_S * WAKE_RATE) :]
        fires = self._first.hears(step) and bool(self._heard.any())
        if fires and self._asks is None and self._now >= self._rests:
            self._asks = self._now + round(SETTLE_S * WAKE_RATE)
        if self._asks is None or self._now < self._asks:
            return False
        self._asks, self._rests = None, self._now + round(REST_S * WAKE_RATE)
        return True

    def _check(self) -> Checked:
        answer = _or_again(lambda: self._client.recognize(self._heard, WAKE_RATE))
        spent, speaker = answer.seconds + answer.offline_seconds, self._speaker()
        sent = answer.bytes_up + answer.bytes_down
        return Checked(round(self._now / WAKE_RATE, 3), answer.value, spent, sent, speaker)

    def _speaker(self) -> str | None:
        who = self._who
        if who is None:
            return None
        try:
            return _or_again(lambda: who.identify([self._heard], WAKE_RATE)).value
        except AudioError:  # too little was said
            return None


def _or_again(ask: Callable[[], Told]) -> Told:
    """Sessions end after a while: another one is begun, once."""
    try:
        return ask()
    except PeerGoneError:
        return ask()
