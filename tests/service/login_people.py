"""People who log in: made-up directions, a cohort of them as a bundle, and an ear that hears what it is told."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ppspeech.audio.embeddings import EmbeddingConfig
from ppspeech.bundle import Bundle, BundleConfig, CohortSettings, DataTouch, VoiceEmbeddingSettings, add_cohort_
from ppspeech.errors import AudioError
from ppspeech.models import Impostors
from ppspeech.service.login import LoginSpace
from ppspeech.training.module import Trained
from ppspeech.training.release import release
from tests.protocols.speaker_meeting import unit

PEOPLE, TRIALS = 12, 4


def cohort_bundle(folder: Path, seed: int = 0) -> Bundle:
    """A bundle whose cohort is made up."""
    generator = np.random.default_rng(seed)
    owners = tuple(np.repeat(np.arange(PEOPLE), TRIALS).tolist())
    centers = unit(generator.normal(size=(PEOPLE, 256)), axis=1)
    voices = unit(centers[list(owners)] + 0.02 * generator.normal(size=(len(owners), 256)), axis=1)
    directions = torch.from_numpy(voices).float()[None]
    found = Impostors((270,), owners, directions, torch.zeros(1, len(owners)))
    settings = VoiceEmbeddingSettings(
        cohort=CohortSettings(source="public", voices="nobody", frames=found.frames, owners=owners)
    )
    embedding = EmbeddingConfig("voice")
    model = settings.build((), embedding.features)
    add_cohort_(model, found)
    touches = tuple(
        DataTouch(topic, "untouched", "made up")
        for topic in ("normalization", "early_stopping", "tuning", "initialization", "counts")
    )
    trained = Trained(model, BundleConfig(settings, (), None, embedding=embedding), touches)
    return release(trained, folder, not_private=True, name="the cohort")


def made_up_space() -> LoginSpace:
    """Digits that nobody learned."""
    generator = np.random.default_rng(1)
    return LoginSpace(np.zeros(256), generator.normal(size=192), generator.normal(size=(192, 9)))


class Person:
    """A voice and ten digits."""

    def __init__(self, seed: int) -> None:
        generator = np.random.default_rng([7, seed])
        self.voice = unit(generator.normal(size=256))
        apart = np.eye(10) - 0.1  # ten directions in nine dimensions, as far apart as they can be
        turned = np.linalg.qr(generator.normal(size=(9, 9)))[0]
        self.digits = unit(apart @ np.linalg.svd(apart)[2][:9].T @ turned, axis=1)


class ToldEar:
    """In the place of `LoginEar`: what is said is a number a sample, the digit, in a voice that it is told."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.space: Any = None

    def warm(self) -> None:
        """It has nothing to load."""

    def template(self, clips: Mapping[int, Sequence[Any]], rate: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        assert rate is None
        assert sorted(clips) == list(range(10))
        return self.person.voice, self.person.digits

    def answer(self, sound: np.ndarray, rate: int | None, count: int) -> tuple[np.ndarray, np.ndarray]:
        assert rate == 16_000
        if len(sound) != count:
            raise AudioError(f"{len(sound)} words were heard where {count} digits were asked for")
        return self.person.voice, self.person.digits[np.asarray(sound, int)]
