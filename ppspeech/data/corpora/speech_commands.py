"""The layout of Google's Speech Commands: one folder a word, the speaker in the file name, two split lists."""

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import corpus_folder, first_few, require_files
from ppspeech.data.registry import register_corpus
from ppspeech.errors import CorpusError

FILE_NAME = re.compile(r"(?P<speaker>[^_]+)_nohash_(?P<take>\d+)\.wav")
LISTS = {"validation": "validation_list.txt", "test": "testing_list.txt"}


def has_speech_commands_layout(folder: Path) -> bool:
    """Whether a folder looks like Speech Commands: its test list, or a word folder with `_nohash_` files."""
    return (folder / LISTS["test"]).is_file() or any(
        next(word.glob("*_nohash_*.wav"), None) is not None for word in _word_folders(folder)
    )


@register_corpus("speech_commands")
def load_speech_commands(
    folder: Path | str | None = None, words: Collection[str] | None = None, sample_rate: int = 16_000
) -> Corpus:
    """Load a folder laid out as Speech Commands, with its official split (train, validation, test).

    Files are `{word}/{speaker}_nohash_{take}.wav`; those in `validation_list.txt` and `testing_list.txt` are the
    validation and test subsets, all others the train subset. Folders whose name starts with `_` (`_background_noise_`)
    are left out, and so are files that are not WAV. `folder` is by default `speech_commands` in the data folder,
    `words` every word folder, and `sample_rate` that of the published recordings. Raises CorpusError if a list is
    missing, names a file that is not there or shares one with the other list, if there is no folder for a word, or if a
    WAV file's name does not give its speaker.
    """
    folder = corpus_folder("speech_commands", folder)
    subsets = _read_lists(folder)
    chosen = _choose_words(folder, words)
    utterances: dict[str, Utterance] = {}
    for word in chosen:
        with os.scandir(folder / word) as entries:
            files = sorted(entry.name for entry in entries if entry.name.endswith(".wav"))
        for file in files:
            name = f"{word}/{file}"
            parts = FILE_NAME.fullmatch(file)
            if parts is None:
                raise CorpusError(f"{folder / name} does not name its speaker as in {{speaker}}_nohash_{{take}}.wav")
            utterances[name] = Utterance(
                path=folder / name,
                speaker=parts["speaker"],
                word=word,
                text=word,
                take=int(parts["take"]),
                subset=subsets.get(name, "train"),
            )
    # The lists tell what an unfinished copy lacks, as far as anything in the layout can.
    listed = [name for name in subsets if words is None or name.partition("/")[0] in chosen]
    require_files("speech_commands", folder, list(dict.fromkeys([*listed, *utterances])))
    if not utterances:
        raise CorpusError(f"{folder} has no recording of {first_few(chosen)}")
    return Corpus("speech_commands", sample_rate, tuple(utterances.values()))


def _word_folders(folder: Path) -> Iterator[Path]:
    return (entry for entry in sorted(folder.iterdir()) if entry.is_dir() and entry.name[0] not in "_.")


def _choose_words(folder: Path, words: Collection[str] | None) -> list[str]:
    there = [entry.name for entry in _word_folders(folder)]
    if isinstance(words, str):
        raise CorpusError(f"words must be a list of words, got the single string {words!r}")
    absent = sorted(set(words or ()) - set(there))
    if absent or not there:
        raise CorpusError(f"{folder} has no folder for {first_few(absent) or 'any word'}; it has {there}")
    return there if words is None else sorted(set(words))


def _read_lists(folder: Path) -> dict[str, str]:
    """The subset of every file that a list names, as `word/file`."""
    subsets: dict[str, str] = {}
    for subset, file in LISTS.items():
        try:
            lines = (folder / file).read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            raise CorpusError(f"{folder / file} cannot be read, and the official split needs it: {error}") from error
        both = sorted(set(lines) & set(subsets))
        if both:
            raise CorpusError(f"{len(both)} files are in both lists of {folder} ({first_few(both)})")
        subsets.update(dict.fromkeys(lines, subset))
    return subsets
