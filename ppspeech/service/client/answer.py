"""What a client gets back: the word, and what it took."""

from dataclasses import dataclass, field
from typing import Literal

from ppspeech.network import Transcript

How = Literal["frames", "scan", "stream"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One recognized utterance.

    Utterances that ran in lock step share their cost: seconds, bytes, rounds and transcript are those of all of them.

    Attributes:
        word: None where the server's garbage model won: none of its words was said.
        how: the way it ran.
        seconds: from the features to the word; in a stream, from the end of the utterance.
        offline_seconds: of what was prepared before, which a client can do while its user speaks.
        bytes_up: payload to the server.
        bytes_down: payload from it.
        rounds: round trips, offline ones too.
        together: utterances in lock step.
        transcript: every message, as the client saw it.
    """

    word: str | None
    how: How
    seconds: float
    offline_seconds: float
    bytes_up: int
    bytes_down: int
    rounds: int
    together: int = 1
    transcript: Transcript | None = field(default=None, repr=False, compare=False)


@dataclass(slots=True)
class Clock:
    """When a recognition began, was prepared, and was asked for its word."""

    began: float
    prepared: float = 0.0
    asked: float = 0.0

    def answer(self, word: str | None, how: How, now: float, record: Transcript, together: int = 1) -> Answer:
        """The answer that came `now`."""
        return Answer(
            word,
            how,
            seconds=now - self.asked,
            offline_seconds=self.prepared - self.began,
            bytes_up=record.bytes_up,
            bytes_down=record.bytes_down,
            rounds=record.rounds,
            together=together,
            transcript=record,
        )
