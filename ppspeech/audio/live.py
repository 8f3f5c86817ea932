"""Speech that is still being spoken: features as soon as they are final."""

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.audio.cepstra import Cepstra
from ppspeech.audio.mfcc_config import MfccConfig
from ppspeech.audio.sound import Samples
from ppspeech.errors import AudioError


class LiveFrames:
    """Features of speech that is still being spoken, each as soon as nothing to come can change it.

    Derivatives look `delta_reach` frames ahead, one order after the other, and an encoder its reach: a frame is final
    that much later. The features are those of the whole utterance, up to rounding, and each sample is transformed as
    often as frames hold it, however long the utterance gets. A front end that `waits_for_the_end` names is refused.
    """

    def __init__(self, config: MfccConfig) -> None:
        why = waits_for_the_end(config)
        if why is not None:
            raise AudioError(f"features of this model are not known before the end: {why}")
        self._cepstra = Cepstra(config)
        self._ahead = config.deltas * config.delta_reach + (0 if config.encoder is None else config.encoder.reach)
        self._rest = np.zeros(0)
        self._before = 0.0
        self._static: Reals = np.zeros((0, config.cepstra))
        self._given = 0

    def feed(self, samples: Samples) -> Reals:
        """The frames that have become final, `(frames, features)`, none or more; samples at the model's rate."""
        self._rest = np.concatenate((self._rest, samples))
        self._take(len(self._rest) // self._cepstra.config.hop_length)
        return self._frames(len(self._static) - self._ahead)

    def finish(self) -> Reals:
        """The rest."""
        self._take(len(self._rest))
        return self._frames(len(self._static))

    def _take(self, most: int) -> None:
        """Transform the frames that are whole, so many at the most, and forget what no later frame holds."""
        config = self._cepstra.config
        count = min(most, config.frame_count(len(self._rest)))
        if count < 1:
            return
        whole = (count - 1) * config.hop_length + config.window_length
        self._static = np.concatenate((self._static, self._cepstra.static(self._rest[:whole], self._before)))
        self._before = self._rest[min(count * config.hop_length, len(self._rest)) - 1]
        self._rest = self._rest[count * config.hop_length :]

    def _frames(self, until: int) -> Reals:
        config = self._cepstra.config
        if until <= self._given:
            return np.zeros((0, config.features))
        first = max(0, self._given - self._ahead)  # what is looked at, and no more
        found = self._cepstra.normalized(self._cepstra.derived(self._static[first:]))
        if config.encoder is not None:
            found = config.encoder.encoded(found)
        wanted = found[self._given - first : until - first]
        self._given = until
        return wanted


def waits_for_the_end(config: MfccConfig) -> str | None:
    """Why features cannot be known before an utterance ends; None where they can."""
    if config.cmvn == "utterance":
        return "cmvn='utterance' takes mean and variance over all of it (train with cmvn='public' to stream)"
    if config.level == "peak":
        return "level='peak' scales by its loudest sample (train with level='keep' to stream)"
    if config.vad_db is not None:
        return "vad_db compares each frame with its loudest"
    return None
