"""When somebody speaks: Silero's detector, every 32 ms, each answer from all that was heard before."""

from typing import NamedTuple

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.audio.embeddings.front_end import RATE
from ppspeech.audio.embeddings.windows import open_network
from ppspeech.audio.sound import Samples

CHUNK, CONTEXT, STATE = 512, 64, 128
SPEECH, SILENCE = 0.5, 0.35  # probabilities from which speech begins, and below which it ends
SHORTEST_S, PAUSE_S, AROUND_S = 0.1, 0.1, 0.03


class Stretch(NamedTuple):
    """From one second to another."""

    start: float
    end: float


class SpeechDetector:
    """Feed it sound at 16 kHz as it comes; it keeps what it knows. Raises as `weights_of` without its weights."""

    def __init__(self) -> None:
        self._network = open_network("detection")
        self.forget()

    def forget(self) -> None:
        """Begin anew, with another recording."""
        self._state = np.zeros((2, 1, STATE), np.float32)
        self._context = np.zeros(CONTEXT, np.float32)
        self._rest: Samples = np.zeros(0, np.float32)

    def feed(self, samples: Samples) -> Reals:
        """Probabilities of speech, one for every 32 ms that are whole now."""
        heard = np.concatenate((self._rest, samples.astype(np.float32, copy=False)))
        whole = len(heard) // CHUNK
        found = np.empty(whole)
        for number in range(whole):
            chunk = np.concatenate((self._context, heard[number * CHUNK : (number + 1) * CHUNK]))
            given = {"input": chunk[None], "state": self._state, "sr": np.array(RATE, np.int64)}
            told, self._state = self._network.run(None, given)
            found[number] = told[0, 0]
            self._context = chunk[-CONTEXT:]
        self._rest = heard[whole * CHUNK :]
        return found

    def stretches(self, samples: Samples) -> list[Stretch]:
        """Where somebody speaks in a recording at 16 kHz. Pauses of less than a tenth of a second are none."""
        self.forget()
        spoken = self.feed(np.concatenate((samples, np.zeros(-len(samples) % CHUNK, np.float32))))
        step, found = CHUNK / RATE, list[Stretch]()
        start: float | None = None
        for number, probability in enumerate([*spoken.tolist(), 0.0]):
            if start is None and probability >= SPEECH:
                start = number * step
            elif start is not None and probability < SILENCE:
                if found and start - found[-1].end < PAUSE_S:
                    start = found.pop().start
                found.append(Stretch(start, number * step))
                start = None
        last = len(samples) / RATE
        long = (each for each in found if each.end - each.start >= SHORTEST_S)
        return [Stretch(max(0.0, each.start - AROUND_S), min(last, each.end + AROUND_S)) for each in long]
