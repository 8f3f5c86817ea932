"""Where clips of words come from: folders of one's own, the built-in voices, or both."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ppspeech.data import SyntheticCorpus
from ppspeech.errors import CorpusError, ModelError
from ppspeech.training.own_words.background import Background

SUFFIXES = frozenset({".wav", ".flac", ".ogg", ".mp3"})
TAKES = 2  # of every built-in voice


@dataclass
class WordClips:
    """Sound files by word, and who speaks in each: None where nobody said."""

    clips: dict[str, list[Path]] = field(default_factory=dict)
    speakers: dict[str, list[str | None]] = field(default_factory=dict)

    def add(self, word: str, clip: Path, speaker: str | None) -> None:
        """One clip more."""
        self.clips.setdefault(word, []).append(clip)
        self.speakers.setdefault(word, []).append(speaker)

    def add_folder(self, folder: Path) -> None:
        """A folder with one folder a word: clips, or one folder of clips a speaker. Raises CorpusError for another."""
        if not folder.is_dir():
            raise CorpusError(f"no folder {folder}: it holds one folder of clips for each word")
        words = sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
        if not words:
            raise CorpusError(f"{folder} holds no folder: make one for each word, with clips of it")
        for word in words:
            found = _sounds(word)
            if not found:
                raise CorpusError(f"{word} holds no sound file ({', '.join(sorted(SUFFIXES))}): record the word")
            for clip in found:
                self.add(word.name, clip, None if clip.parent == word else clip.relative_to(word).parts[0])

    def add_voices(self, words: Sequence[str], count: int) -> None:
        """So many built-in voices, each saying every word twice."""
        spoken = SyntheticCorpus(tuple(words), speakers=count, takes=TAKES, seed=7).build()
        for utterance in spoken:
            assert utterance.word is not None
            self.add(utterance.word, utterance.path, utterance.speaker)

    @property
    def people(self) -> dict[str, list[str]] | None:
        """Who speaks in each clip, where that is known of all."""
        known = {word: [each for each in said if each is not None] for word, said in self.speakers.items()}
        return known if all(len(known[word]) == len(self.clips[word]) for word in known) else None


def background_at(folder: Path) -> Background:
    """A folder of other speech: half of the people in it train and half calibrate, by the folders in it; of files that
    lie side by side, every second. Raises CorpusError where there are not two.
    """
    if not folder.is_dir():
        raise CorpusError(f"no folder {folder}: a background holds recordings of other speech")
    sounds = _sounds(folder)
    people = sorted({clip.relative_to(folder).parts[0] for clip in sounds})
    chosen = set(people[::2])
    training = [clip for clip in sounds if clip.relative_to(folder).parts[0] in chosen]
    calibrating = [clip for clip in sounds if clip.relative_to(folder).parts[0] not in chosen]
    if not training or not calibrating:
        raise CorpusError(
            f"{folder} holds {len(sounds)} recordings of {len(people)} people: one part trains and another calibrates, "
            "so there are two at the least; a folder for each person keeps them apart"
        )
    try:
        return Background.of(training, calibrating, f"recordings of {len(people)} people or files")
    except ModelError as refused:
        raise CorpusError(f"{folder}: {refused}") from None


def _sounds(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.suffix.lower() in SUFFIXES and each.is_file())
