"""One folder a word: as Google's Speech Commands, with the speaker in the file name, or just recordings."""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from ppspeech.data.corpora.folder import SUFFIXES, most_common_rate
from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import Published, corpus_folder, first_few, require_files
from ppspeech.data.registry import register_corpus
from ppspeech.errors import CorpusError

FILE_NAME = re.compile(r"(?P<speaker>[^_]+)_nohash_(?P<take>\d+)\.wav")
RATE = 16_000  # of the published recordings
LISTS = {"validation": "validation_list.txt", "test": "testing_list.txt"}

PUBLISHED = Published(
    "http://download.tensorflow.org/data/speech_commands_v0.02.tar.gz",
    "speech_commands_v0.02",
    "{word}/{speaker}_nohash_{take}.wav, validation_list.txt and testing_list.txt",
)


def has_word_folders(folder: Path) -> bool:
    """Whether a folder holds folders with sound files, as Speech Commands does."""
    return any(path.suffix.lower() in SUFFIXES for word in _word_folders(folder) for path in word.iterdir())


@register_corpus("speech_commands")
def load_speech_commands(
    folder: Path | str | None = None, words: Collection[str] | None = None, sample_rate: int | None = None
) -> Corpus:
    """Load a folder of one folder a word: Speech Commands, with its official split, or any recordings.

    Speech Commands has files `{word}/{speaker}_nohash_{take}.wav`; those in `validation_list.txt` and
    `testing_list.txt` are the validation and test subsets, all others the train subset; without the lists there is no
    official split. Where no file is named so, nobody knows who speaks: **every recording counts as a speaker of its
    own**. Folders whose name starts with `_` (`_background_noise_`) are left out, and so are files that are no sound.
    `folder` is by default `speech_commands` or `speech_commands_v0.02` in the data folder, `words` every word folder,
    and `sample_rate` that of the published recordings, or else the most common one. Raises CorpusError if one list is
    there and the other is not, a list names a file that is not there or shares one with the other list, if there is no
    folder for a word, or if some files name their speaker and others do not.
    """
    folder = corpus_folder("speech_commands", folder, PUBLISHED)
    subsets = _read_lists(folder)
    chosen = _choose_words(folder, words)
    files = {word: _sounds(folder / word) for word in chosen}
    named = any(FILE_NAME.fullmatch(file) for each in files.values() for file in each)
    utterances: dict[str, Utterance] = {}
    for word, each in files.items():
        for take, file in enumerate(each):
            name, parts = f"{word}/{file}", FILE_NAME.fullmatch(file)
            if named and parts is None:
                raise CorpusError(f"{folder / name} does not name its speaker as in {{speaker}}_nohash_{{take}}.wav")
            utterances[name] = Utterance(
                path=folder / name,
                speaker=parts["speaker"] if parts else name,
                word=word,
                text=word,
                take=int(parts["take"]) if parts else take,
                subset=subsets.get(name, "train") if subsets else None,
            )
    # The lists tell what an unfinished copy lacks, as far as anything in the layout can.
    listed = [name for name in subsets if words is None or name.partition("/")[0] in chosen]
    require_files("speech_commands", folder, list(dict.fromkeys([*listed, *utterances])))
    if not utterances:
        raise CorpusError(f"{folder} has no recording of {first_few(chosen)}")
    rate = sample_rate or (RATE if named else most_common_rate([u.path for u in utterances.values()]))
    name = "speech_commands" if named else folder.resolve().name
    return Corpus(name, rate, tuple(utterances.values()), speakers_known=named)


def _word_folders(folder: Path) -> Iterator[Path]:
    return (entry for entry in sorted(folder.iterdir()) if entry.is_dir() and entry.name[0] not in "_.")


def _sounds(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if Path(entry.name).suffix.lower() in SUFFIXES)


def _choose_words(folder: Path, words: Collection[str] | None) -> list[str]:
    there = [entry.name for entry in _word_folders(folder)]
    if isinstance(words, str):
        raise CorpusError(f"words must be a list of words, got the single string {words!r}")
    absent = sorted(set(words or ()) - set(there))
    if absent or not there:
        raise CorpusError(f"{folder} has no folder for {first_few(absent) or 'any word'}; it has {there}")
    return there if words is None else sorted(set(words))


def _read_lists(folder: Path) -> Mapping[str, str]:
    """The subset of every file that a list names, as `word/file`; nothing where there are no lists."""
    subsets: dict[str, str] = {}
    if not any((folder / file).exists() for file in LISTS.values()):
        return subsets
    for subset, file in LISTS.items():
        try:
            lines = (folder / file).read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            raise CorpusError(
                f"{folder / file} cannot be read, and the official split needs both lists: {error}; copy it again, or "
                "remove both to split otherwise"
            ) from error
        both = sorted(set(lines) & set(subsets))
        if both:
            raise CorpusError(f"{len(both)} files are in both lists of {folder} ({first_few(both)})")
        subsets.update(dict.fromkeys(lines, subset))
    return subsets
