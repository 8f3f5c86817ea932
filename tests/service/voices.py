"""Small released models, and sounds that they can be asked about."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ppspeech.audio import Mfcc, MfccConfig, usual_range
from ppspeech.bundle import (
    Bundle,
    BundleConfig,
    KeywordHmmSettings,
    LargeMarginClassifierSettings,
    LargeMarginKeywordSettings,
    ModelSettings,
    SentenceHmmSettings,
    SentenceTranscriber,
    SpeakerUbmSettings,
    Spoken,
    write_bundle,
)
from ppspeech.models import HiddenMarkovModel
from ppspeech.models.decoding import decode
from tests.bundle.conftest import gaussian_account, statement_of

RATE = 16_000
LABELS = ("aardvark", "bumblebee", "caterpillar")

WHOLE = MfccConfig(cepstra=4, deltas=0)
"""Features that need the whole utterance."""
LIVE = MfccConfig(
    cepstra=3, deltas=1, cmvn="public", level="keep", public_mean=(-20.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    public_std=(8.0, 4.0, 4.0, 2.0, 2.0, 2.0),
)  # fmt: skip
"""Features that are known as they are spoken."""

FAR = MfccConfig(cepstra=4, deltas=1, cmvn="none", level="keep")
"""Features that are not normalized: they reach to 50 and more."""

HMM = KeywordHmmSettings(states=3, components=1, covariance="diagonal", floor=0.01, skips=0, must_finish=True)
MIXTURES = KeywordHmmSettings(states=2, components=2, covariance="diagonal", floor=0.01, skips=0, must_finish=True)
FULL = KeywordHmmSettings(states=2, components=1, covariance="full", floor=0.01, skips=1, must_finish=False)
MARGIN = LargeMarginKeywordSettings(states=2, margin=1.0, width=0.5)
CLASSES = LargeMarginClassifierSettings(label="emotion", width=0.5, radius=1.0)

SENTENCES = SentenceHmmSettings(
    states=2, covariance="diagonal", floor=0.1, grammar=None, word_penalty=2.0, leave=0.2
)  # fmt: skip

SPEAKERS = SpeakerUbmSettings(components=6, covariance="diagonal", floor=0.05, relevance=4.0)


def released(folder: Path, settings: ModelSettings = HMM, mfcc: MfccConfig = WHOLE, seed: int = 0) -> Bundle:
    """A bundle whose weights come from a seed; its words lie where speech does."""
    config = BundleConfig(settings, () if isinstance(settings, SpeakerUbmSettings) else LABELS, mfcc)
    torch.manual_seed(seed)
    model = config.build()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    if mfcc.cmvn == "none" and isinstance(model, HiddenMarkovModel):
        center, spread = map(torch.from_numpy, usual_range(mfcc))
        gaussians: Any = model.emission.gaussians
        gaussians.set_moments_(center + spread * gaussians.mean, gaussians.variances() * spread.square())
    account = gaussian_account()
    return write_bundle(folder, model=model, config=config, statement=statement_of(account), account=account)


def voice(seed: int, seconds: float = 0.3) -> Tensor:
    """A sound `(samples,)`: noise whose color and loudness drift, so that its frames differ."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(round(RATE * seconds), generator=generator)
    pieces = [
        torch.randn((), generator=generator) * piece.cumsum(0) / 30 + piece * torch.rand((), generator=generator)
        for piece in noise.split(800)
    ]
    sound = torch.cat(pieces)
    return 0.5 * sound / sound.abs().max()


def plain_answer(bundle: Bundle, sound: Tensor) -> tuple[str, float]:
    """The word in the clear, and how far it is above the next, in nats."""
    heard = bundle.recognize(sound, RATE)
    return heard.value, heard.margin


def seconds_of(mfcc: MfccConfig, frames: int) -> float:
    """What a sound of so many frames lasts."""
    return mfcc.window_s + (frames - 1) * mfcc.hop_s + 1e-4


def below_best(bundle: Bundle, sound: Tensor, heard: Sequence[Spoken]) -> float:
    """How far in nats the best path with these words at these times lies below the best of all, in the clear.

    Errors of scores turn near ties: what is as good as the best within them is a right answer too.
    """
    transcriber, hop = bundle.transcriber, bundle.mfcc.hop_s
    assert isinstance(transcriber, SentenceTranscriber)
    scores = transcriber.scores(Mfcc(bundle.mfcc)(sound).features[0])
    states = transcriber.bank.states
    silence = len(transcriber.names)
    said = [silence] * len(scores)
    for word in heard:
        for frame in range(round(word.start / hop), round(word.end / hop)):
            said[frame] = transcriber.names.index(word.value)
    other = torch.tensor(said).unsqueeze(1) != torch.arange(scores.shape[1]) // states
    within = decode(transcriber.graph, scores.masked_fill(other, -1e4))
    return decode(transcriber.graph, scores).score - within.score


def sure(bundle: Bundle, frames: int, seed: int = 0) -> Tensor:
    """A sound of so many frames in which small errors of scores change no word of a model of sentences."""
    transcriber, drawn = bundle.transcriber, torch.Generator().manual_seed(1)
    assert isinstance(transcriber, SentenceTranscriber)
    for each in range(100 * seed, 100 * seed + 100):
        sound = voice(each, seconds_of(bundle.mfcc, frames))
        scores = transcriber.scores(Mfcc(bundle.mfcc)(sound).features[0])
        errors = (0.2 * torch.randn(scores.shape, generator=drawn).to(scores) for _ in range(8))
        found = (decode(transcriber.graph, scores + error).words for error in errors)
        if len({tuple((word.word, word.start, word.end) for word in words) for words in found}) == 1:
            return sound
    raise AssertionError("every sound is a matter of opinion")
