"""Recognition while the user speaks: chunks of sound go in as they come, the word comes out at the end.

Where a model's features are known as soon as they are spoken, each frame is scored at once, and the answer is there a
few milliseconds after the last one; the server then sees when frames come and how many there are. Where features need
the whole utterance (its mean, its loudest sample), the sound is kept here until it ends, and only what depends on no
sound is done meanwhile; the server sees no more than from a recorded clip.
"""

import time
from typing import Protocol

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ppspeech.audio import LiveFrames
from ppspeech.errors import AudioError, PpspeechError
from ppspeech.network import Transcript
from ppspeech.protocols import Meeting
from ppspeech.protocols.scores import WordShape
from ppspeech.protocols.words import Hearing, KeywordJob, recognize
from ppspeech.service.client.answer import Answer, Clock
from ppspeech.service.client.front_end import FrontEnd
from ppspeech.service.client.session import ClientSession


class Listening(Protocol):
    """One utterance as it is spoken.

    Attributes:
        is_live: whether frames are scored as they come.
    """

    is_live: bool

    def feed(self, samples: Tensor | ArrayLike) -> None:
        """The next samples, `(samples,)`, any number of them."""
        ...

    def finish(self) -> Answer:
        """The utterance is over: the word."""
        ...


class LiveListening:
    """Frames are scored as they come.

    Args:
        session: with the server.
        met: inside the protocol.
        record: of its messages.
        shape: of the models.
        front_end: of the model.
        rate: of the samples, in Hz; the model's own.
    """

    is_live = True

    def __init__(
        self,
        session: ClientSession,
        met: Meeting,
        record: Transcript,
        shape: WordShape,
        front_end: FrontEnd,
        rate: int,
    ) -> None:
        if rate != front_end.config.sample_rate:
            raise AudioError(f"this model listens at {front_end.config.sample_rate} Hz, got {rate}: record at its rate")
        self._clock = Clock(time.perf_counter())
        self._record = record
        self._frames = LiveFrames(front_end.config)
        self._hearing = Hearing(met, shape, session.streaming_model(met, shape))
        self._clock.prepared = time.perf_counter()

    def feed(self, samples: Tensor | ArrayLike) -> None:
        """The next samples, `(samples,)`, any number of them."""
        for frame in self._frames.feed(_one_channel(samples)):
            self._hearing.hear(frame)

    def finish(self) -> Answer:
        """The utterance is over: the word."""
        self._clock.asked = time.perf_counter()
        for frame in self._frames.finish():
            self._hearing.hear(frame)
        word = self._hearing.finish()
        return self._clock.answer(word, "stream", time.perf_counter(), self._record)


class BufferedListening:
    """The sound is kept until it ends; what depends on none is done at once.

    Args:
        met: inside the protocol.
        record: of its messages.
        job: agreed on, for one utterance.
        front_end: of the model.
        rate: of the samples, in Hz.
    """

    is_live = False

    def __init__(self, met: Meeting, record: Transcript, job: KeywordJob, front_end: FrontEnd, rate: int) -> None:
        self._clock = Clock(time.perf_counter())
        self._record = record
        self._job = job
        self._front_end = front_end
        self._rate = rate
        self._heard: list[Tensor] = []
        self._met = met
        self._engine = job.prepare(met)
        self._clock.prepared = time.perf_counter()

    def feed(self, samples: Tensor | ArrayLike) -> None:
        """The next samples, `(samples,)`, any number of them."""
        self._heard.append(_one_channel(samples))

    def finish(self) -> Answer:
        """The utterance is over: the word."""
        if not self._heard:
            raise PpspeechError("nothing was heard: feed the listening before it finishes")
        self._clock.asked = time.perf_counter()
        frames = self._front_end.frames(torch.cat(self._heard), self._rate)
        word = recognize(self._met, self._job, [frames], self._engine)[0]
        return self._clock.answer(word, self._job.order, time.perf_counter(), self._record)


def _one_channel(samples: Tensor | ArrayLike) -> Tensor:
    given = torch.as_tensor(samples)
    if given.ndim != 1 or not given.is_floating_point() or not bool(torch.isfinite(given).all()):
        raise AudioError(f"samples are finite, real and of shape (samples,), got {given.dtype} of {tuple(given.shape)}")
    return given.detach().to(torch.float32)
