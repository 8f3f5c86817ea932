"""What a public voice embedding hears in samples: in sound as it is, and in cepstra turned back into what they are of.

Of cepstra the envelope of the spectrum comes back, as fine as their number allows, without the pitch. Steps, each the
inverse of one of `Mfcc`: normalization, cosine transform and lifter, logarithm, mel filters, pre-emphasis. What the
utterance's own mean and deviation were is lost where they were taken out: those of the built-in voices stand for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.arrays import Reals
from ppspeech.audio import Frames, GivenFeatures, Mfcc, MfccConfig, length_mask
from ppspeech.audio.embeddings import VoiceEmbedding, weights_of
from ppspeech.data import Samples, load_corpus, load_samples, public_scale
from ppspeech.errors import AudioError, MissingPackageError, ModelError

RATE = 16_000
STEP_S, FREQUENCIES, TOP_HZ = 0.010, 201, 8_000.0  # of the power spectra that a voice embedding takes
LOUDEST = 40.0  # nats above 1 that a band of guessed cepstra may have
NOTHING = -60.0  # nats, in frequencies that the cepstra did not hear
UNDONE = ("", "inverted", "reconstructed")  # views that may be cepstra again, where they have as many numbers
SILENCE = 30  # mel frames of zeros, for what is too short or too quiet to have a voice


class Hearing:
    """What a voice embedding hears of training and test samples, view by view, and why nothing where it hears nothing.

    `sizes` are the numbers a frame of each view. `views` are those in which it hears something: the sound, where there
    is any, or cepstra that are as they went into the filter. Computed when it is asked for, once.
    """

    def __init__(
        self,
        train: Tensor | Frames,
        test: Tensor | Frames,
        mfcc: MfccConfig | None,
        sounds: tuple[Frames, Frames] | None,
        sizes: Mapping[str, int],
    ) -> None:
        self._mfcc, self._sounds = mfcc, sounds
        self._found: dict[str, tuple[Frames, Frames]] = {} if sounds is None else {"": sounds}
        self.views: tuple[str, ...] = ()
        self.refusal = self._refusal(train, test)
        if self.refusal:
            return
        if sounds is not None:
            self.views = ("",)
            return
        assert mfcc is not None
        self.views = tuple(view for view, size in sizes.items() if view in UNDONE and size == mfcc.features)
        if not self.views:
            self.refusal = refusal(mfcc, sizes[""])

    def heard(self, view: str, shown: tuple[Tensor | Frames, Tensor | Frames]) -> tuple[Frames, Frames]:
        """Mel frames of both parts. Raises ModelError where a view is not as many numbers as cepstra."""
        if view not in self._found:
            train, test = shown
            assert self._mfcc is not None
            assert isinstance(train, Frames)
            assert isinstance(test, Frames)
            self._found[view] = heard_in_cepstra(train, self._mfcc), heard_in_cepstra(test, self._mfcc)
        return self._found[view]

    def _refusal(self, train: Tensor | Frames, test: Tensor | Frames) -> str:
        if self._sounds is not None and any(
            len(heard.lengths) != len(part.lengths if isinstance(part, Frames) else part)
            for heard, part in zip(self._sounds, (train, test), strict=True)
        ):
            raise ModelError("sounds are what is heard in each sample: there must be as many")
        try:
            weights_of("voice")
        except (MissingPackageError, AudioError) as error:
            return str(error)
        if self._sounds is None and (self._mfcc is None or not isinstance(train, Frames)):
            return "a voice embedding hears sound, or frames whose front end is known and whose filter is undone"
        if self._sounds is None and self._mfcc is not None and (wrong := refusal(self._mfcc, self._mfcc.features)):
            return wrong
        return ""


@cache
def embedding() -> VoiceEmbedding:
    """The public embedding, read once. Raises as `ppspeech.audio.embeddings.weights_of` without its weights."""
    return VoiceEmbedding()


@torch.no_grad()
def heard_in_sound(clips: Sequence[Tensor]) -> list[Tensor]:
    """Mel frames `(spoken, 40)` of waveforms `(samples,)` at 16 kHz, as the embedding takes them; of what has no voice,
    because it is too short or silent, those of nothing.
    """
    found = []
    for clip in clips:
        try:
            found.append(embedding().frames(clip.float()).features[0])
        except AudioError:
            found.append(torch.zeros(SILENCE, 40))
    return found


def sound_samples(source: str, keep: str = "word", hide: str = "speaker") -> Samples:
    """A corpus of sound as attackers look at it: cepstra of each recording, and where its weights are installed what a
    voice embedding hears. Raises as `load_samples`.
    """
    corpus = load_corpus(source).select(lambda u: None not in (getattr(u, keep, None), getattr(u, hide, None)))
    config = MfccConfig.at_rate(corpus.sample_rate)
    samples = load_samples(keep, hide, "frames", source, {}, config)
    try:
        weights_of("voice")
    except (MissingPackageError, AudioError):
        return samples
    return replace(samples, sounds=heard_in_sound([u.waveform(RATE) for u in corpus]))


@torch.no_grad()
def heard_in_cepstra(frames: Frames, config: MfccConfig) -> Frames:
    """The same of cepstra `(utterances, frames, features)` of a front end. Raises ModelError as `refusal` says."""
    wrong = refusal(config, frames.features.shape[-1])
    if wrong:
        raise ModelError(wrong)
    size = config.cepstra
    statics = frames.features[..., :size].detach().double()
    if config.cmvn != "none":
        mean, std = _normalization(config)
        statics = statics * std[:size] + mean[:size]
    bands = statics @ torch.linalg.pinv(Mfcc(config, torch.float64).cosine)
    matrix, shift = _to_frequencies(config)
    logs = bands.clamp(-LOUDEST, LOUDEST) @ torch.from_numpy(matrix) + torch.from_numpy(shift)
    inside = length_mask(frames.lengths, logs.shape[1])
    found = []
    for each, own in zip(logs, inside, strict=True):
        power = _every_10_ms(each[own].exp(), config.hop_s)
        try:
            found.append(embedding().of_power(power.float()))
        except AudioError:
            found.append(torch.zeros(SILENCE, 40))
    return Frames(pad_sequence(found, batch_first=True), torch.tensor([len(each) for each in found]))


def refusal(config: MfccConfig, features: int) -> str:
    """Why a voice embedding hears nothing in frames of so many numbers; empty where it does."""
    if isinstance(config, GivenFeatures) or config.encoder is not None:
        return "a voice embedding hears sound or cepstra: a public encoder's features are neither"
    if features != config.features:
        return (
            f"a voice embedding hears cepstra, {config.features} numbers a frame of this front end, got {features}: a "
            "filter that gives fewer must be undone first"
        )
    return ""


def _normalization(config: MfccConfig) -> tuple[Tensor, Tensor]:
    if config.cmvn == "public":
        return torch.tensor(config.public_mean, dtype=torch.float64), torch.tensor(config.public_std).double()
    typical = public_scale(replace(config, cmvn="none"))[0].double()
    size = config.features
    return typical[:size], typical[3 * size :]


@cache
def _to_frequencies(config: MfccConfig) -> tuple[Reals, Reals]:
    """Log energies of the filters to log power at 0 to 8 kHz: a matrix `(mel_filters, 201)` and what is added."""
    mel = Mfcc(config, torch.float64).mel.numpy()
    hz, wanted = np.linspace(0, config.sample_rate / 2, len(mel)), np.linspace(0, TOP_HZ, FREQUENCIES)
    areas = np.maximum(mel.sum(axis=0), 1e-12)
    centers = hz @ mel / areas
    matrix = np.stack([np.interp(wanted, centers, each) for each in np.eye(len(areas))])
    angles = 2 * np.pi * wanted / config.sample_rate
    emphasis = np.abs(1 - config.pre_emphasis * np.exp(-1j * angles)) ** 2
    shift = -np.log(areas) @ matrix - np.log(np.maximum(emphasis, 1e-3))
    return matrix, np.where(wanted <= config.top_hz, shift, NOTHING)


def _every_10_ms(power: Tensor, hop_s: float) -> Tensor:
    """Spectra `(frames, frequencies)` as often as the embedding takes them; the nearest where there are fewer."""
    count = max(1, round(len(power) * hop_s / STEP_S))
    at = (torch.arange(count) * STEP_S / hop_s).round().long().clamp_max(len(power) - 1)
    return power[at]
