"""Heads on embeddings of the built-in voices, made in a moment, and sounds to ask them about."""

from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from ppspeech.arrays import Reals
from ppspeech.audio import Samples
from ppspeech.audio.embeddings import EmbeddingConfig, Pooling, WordVectors
from ppspeech.audio.voices import VOICES, Espeak
from ppspeech.bundle import Bundle, BundleConfig, EmbeddingHeadSettings, write_bundle
from ppspeech.models import EmbeddingHead
from tests.bundle.conftest import gaussian_account, statement_of

RATE = 16_000
WORDS = ("yes", "no", "stop")
OTHERS = ("window", "seven", "paper", "orange")
UTTERANCE = EmbeddingConfig("speech", pooling=Pooling(parts=2))
WINDOW = EmbeddingConfig("speech", pooling=Pooling.of_window())


@cache
def said() -> dict[tuple[str, int], Samples]:
    """Words and others, by four voices, at 16 kHz."""
    drawn = np.random.default_rng(0)
    with Espeak() as espeak:
        return {
            (word, number): voice.say(word, espeak, drawn, sample_rate=RATE)
            for word in (*WORDS, *OTHERS)
            for number, voice in enumerate(VOICES[:4])
        }


def scene(*words: str, voice: int = 3, pause: float = 2.1) -> Samples:
    """Words with quiet before, between and after them."""
    quiet = 1e-3 * np.random.default_rng(1).standard_normal(round(pause * RATE)).astype(np.float32)
    return np.concatenate([quiet, *(part for word in words for part in (said()[word, voice], quiet))])


@cache
def known(embedding: EmbeddingConfig) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors of what was said, and their classes; the background, and quiet where it listens, is class 0."""
    hear, vectors, classes = WordVectors(embedding), list[Reals](), list[int]()
    for (word, voice), samples in said().items():
        vectors.append(hear.of(samples, RATE))
        classes.append(1 + WORDS.index(word) if word in WORDS else 0)
        if embedding.pooling.over == "window" and voice > 1 and word in (*WORDS, "paper"):
            windows = hear.all(scene(word, voice=voice, pause=2.1))
            ends = hear.seconds + 0.08 * np.arange(len(windows)) - 2.1 - len(samples) / RATE  # after the word's end
            some = np.flatnonzero((ends < -0.3) | ((ends > 0.1) & (ends < 0.5)))
            vectors += list(windows[some])
            classes += [classes[-1] if each > 0 else 0 for each in ends[some]]
    return torch.from_numpy(np.stack(vectors)).float(), torch.tensor(classes)


def head(
    kind: Literal["logistic", "margin"] = "logistic",
    embedding: EmbeddingConfig = UTTERANCE,
    background: bool = True,
    reject: float = 0.5,
) -> EmbeddingHead:
    """A head that knows the words; a `margin` one has opinions of its own."""
    vectors, classes = known(embedding)
    if not background:
        vectors, classes = vectors[classes > 0], classes[classes > 0] - 1
    model = EmbeddingHead(len(WORDS) + background, vectors.shape[1], kind)
    model.scale_(vectors)
    if kind == "logistic":
        model.head.fit(model.embed(vectors), classes, quadratic=0.05)
    else:  # training takes seconds: any will do
        with torch.random.fork_rng():
            torch.manual_seed(5)
            for parameter in model.head.parameters():
                torch.nn.init.normal_(parameter, std=0.7)
    model.reject.fill_(reject if background else 0.0)
    return model


def released(folder: Path, model: EmbeddingHead, embedding: EmbeddingConfig = UTTERANCE) -> Bundle:
    """A head as a bundle."""
    settings = EmbeddingHeadSettings(
        label="word", head=model.kind, radius=model.radius, width=0.5,
        background=model.head.classes > len(WORDS), alarms_an_hour=0.0,
    )  # fmt: skip
    config, account = BundleConfig(settings, WORDS, None, embedding=embedding), gaussian_account()
    return write_bundle(folder, model=model, config=config, statement=statement_of(account), account=account)
