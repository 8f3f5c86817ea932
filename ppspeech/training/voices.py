"""Voices by a public network: nothing is trained, and a bundle holds the cohort among whom thresholds are set."""

from pathlib import Path
from statistics import median

from torch import Tensor

from ppspeech.audio.embeddings import EmbeddingConfig
from ppspeech.bundle import Bundle, BundleConfig, CohortSettings, DataTouch, VoiceEmbeddingSettings, add_cohort_
from ppspeech.data import cohort_at
from ppspeech.errors import PpspeechError
from ppspeech.models import EmbeddedVoices, Impostors
from ppspeech.training.module import Trained
from ppspeech.training.release import release

BUILT_IN = "synthetic"
NOTHING = "a public network hears voices: nothing was trained or chosen on private speech"


def learn_voices(where: str | Path | None, folder: str | Path, *, public: bool = False) -> Bundle:
    """Write the bundle of a public network of voices, with a cohort; it has no guarantee, and says whose voices it has.

    Args:
        where: the cohort: a folder with one folder of clips a person, or a corpus by its name or folder; of more than
            64 people, 64 of them. Thresholds are for as much speech as everybody has said: up to a tenth of the people
            is left out, who said less than half of what is usual. None for none: whoever decides brings one.
        folder: of the bundle; must not exist.
        public: whether these people's speech is public. Otherwise they are told to be in the bundle: everyone who gets
            it holds the directions of their voices, by which they can be recognized.

    Raises CorpusError where there is no cohort; ModelError for fewer than 5 people, or somebody who said less than
    0.3 s; AudioError for a clip that cannot be used; MissingPackageError without the network's weights; BundleError for
    a folder that is there.
    """
    if Path(folder).exists():
        raise PpspeechError(f"{folder} is there already: give a folder that is not")
    embedding, settings = EmbeddingConfig("voice"), VoiceEmbeddingSettings()
    if where is None:
        model = settings.build((), embedding.features)
    else:
        voices = EmbeddedVoices(embedding)
        people = [voices.features([clip.path for clip in clips]) for clips in cohort_at(where)]
        found = Impostors.of(voices, _talkative(people))
        named = "the built-in voices, who are nobody" if str(where) == BUILT_IN else Path(where).resolve().name
        cohort = CohortSettings(
            source="public" if public or str(where) == BUILT_IN else "people",
            voices=named,
            frames=found.frames,
            owners=found.owners,
        )
        settings = VoiceEmbeddingSettings(cohort=cohort)
        model = settings.build((), embedding.features)
        add_cohort_(model, found)
    untouched: tuple[DataTouch, ...] = tuple(
        DataTouch(topic, "untouched", NOTHING)
        for topic in ("normalization", "early_stopping", "tuning", "initialization")
    )
    if settings.cohort is None or settings.cohort.source == "public":
        untouched += (DataTouch("counts", "untouched", NOTHING),)
    config = BundleConfig(settings, (), None, embedding=embedding)
    return release(Trained(model, config, untouched), folder, not_private=True, name="the cohort")


def _talkative(people: list[list[Tensor]]) -> list[list[Tensor]]:
    """All but those few who said little."""
    said = [sum(map(len, clips)) for clips in people]
    little = [place for place in sorted(range(len(said)), key=said.__getitem__) if said[place] < median(said) / 2]
    left_out = set(little[: len(people) // 10])
    return [clips for place, clips in enumerate(people) if place not in left_out]
