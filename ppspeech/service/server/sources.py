"""What can be served, and how each becomes it: released models, archives of recordings, texts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ppspeech.bundle import (
    Bundle,
    CtcNetworkSettings,
    EmbeddingHeadSettings,
    KeywordNetworkSettings,
    SentenceHmmSettings,
    SentenceNetworkSettings,
    load_bundle,
)
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.service.archive import Archive, is_archive
from ppspeech.service.export import Deployment
from ppspeech.service.export_spotting import SpotDeployment
from ppspeech.service.server.cohort import cohort_of
from ppspeech.service.server.networks import ServedNetwork, ServedNetworkSentences
from ppspeech.service.server.sentences import ServedSentences
from ppspeech.service.server.session import Served
from ppspeech.service.server.speakers import ServedSpeakers, SpeakerDeployment, SpeakerFiles
from ppspeech.service.server.spotting import ServedArchive, ServedKeywords
from ppspeech.service.server.text import ServedText, TextDeployment, TextFile
from ppspeech.service.server.words import ServedHead, ServedWords
from ppspeech.service.store import PostgresStore
from ppspeech.service.tasks.sentences import SentenceDeployment

Source = Bundle | Archive | TextFile


@dataclass(frozen=True, slots=True)
class Choices:
    """What whoever serves chooses, by task. With `spotting`, words of bundles are looked for in recordings of clients,
    instead of recognized.
    """

    words: Deployment = field(default_factory=Deployment)
    sentences: SentenceDeployment = field(default_factory=SentenceDeployment)
    speakers: SpeakerDeployment = field(default_factory=SpeakerDeployment)
    spotting: SpotDeployment | None = None
    texts: TextDeployment = field(default_factory=TextDeployment)


def named(sources: Sequence[Source | str | Path]) -> dict[str, Source]:
    """Sources by the name that they are offered under: a folder's or archive's, a text's with its ending; of what is in
    hand, its kind. Raises PpspeechError for two of one name.
    """
    names = [_name(each) for each in sources]
    if len(set(names)) < len(names):
        raise PpspeechError(f"what is served goes by its folder's or file's name, which must differ, got {names}")
    return {name: _loaded(each) for name, each in zip(names, sources, strict=True)}


def served_as(name: str, source: Source, choices: Choices, folder: Path, store: PostgresStore | None = None) -> Served:
    """A source, ready for clients. `folder`: where sessions share files; `store`: where servers share the rest."""
    if isinstance(source, Archive):
        return ServedArchive.of(name, source)
    if isinstance(source, TextFile):
        try:
            return ServedText.of(name, source.lines, folder, choices.texts, store)
        except RangeError as refused:
            raise RangeError(f"{name}: {refused}") from None
    if "verify" in source.config.kind.uses:
        chosen = choices.speakers
        cohort = None if chosen.cohort is None else cohort_of(source, chosen.cohort)
        return ServedSpeakers.of(name, source, chosen, SpeakerFiles.at(folder, store), cohort)
    if choices.spotting is not None:
        return ServedKeywords.of(name, source, choices.spotting)
    if isinstance(source.config.settings, SentenceHmmSettings | SentenceNetworkSettings):
        return ServedSentences.of(name, source, choices.sentences)
    if isinstance(source.config.settings, KeywordNetworkSettings) and choices.words.outcome == "client":
        return ServedNetwork.of(name, source)
    if isinstance(source.config.settings, CtcNetworkSettings):
        return ServedNetworkSentences.of(name, source, choices.sentences)
    if isinstance(source.config.settings, EmbeddingHeadSettings):
        return ServedHead.of(name, source, choices.words, folder / "outcomes.jsonl")
    return ServedWords.of(name, source, choices.words)


def _name(source: Source | str | Path) -> str:
    if isinstance(source, Bundle):
        return source.config.type
    if isinstance(source, Archive):
        return "archive"
    if isinstance(source, TextFile):
        return "text"
    path = Path(source).resolve()
    return (path.stem if path.is_file() and is_archive(path) else path.name).lower()


def _loaded(source: Source | str | Path) -> Source:
    if isinstance(source, Source):
        return source
    if not Path(source).is_file():
        return load_bundle(source)
    return Archive.load(source) if is_archive(source) else TextFile.read(Path(source))
