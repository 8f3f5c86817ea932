"""Any folder of sound files with a `manifest.csv` that says who speaks in each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path

from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.file_index import FileIndex
from ppspeech.data.filtered import FILTERING, read_filtering
from ppspeech.data.layout import corpus_folder, gender_letter, inner_path, read_rows, require_files
from ppspeech.data.registry import corpus_names, load_corpus, register_corpus
from ppspeech.errors import CorpusError

MANIFEST = "manifest.csv"
REQUIRED = ("path", "speaker")
SUBSETS = ("train", "validation", "test")


@register_corpus("folder")
def load_folder(folder: Path | str, sample_rate: int | None = None) -> Corpus:
    """Load a folder of sound files, or of filtered features, by its `manifest.csv`.

    The manifest is UTF-8 with a header. Columns `path` (inside the folder, with `/`) and `speaker` must be filled;
    `word`, `text`, `emotion`, `gender` (`f`, `m`, `female`, `male`), `take` (a whole number from 0) and `subset`
    (`train`, `validation`, `test`) may be left empty or out. Without a column `take`, the first recording of a word by
    a speaker is take 0, the next take 1. Other columns are not read. The folder's name becomes the corpus's.
    `sample_rate` is by default the most common one, by the headers of all files; filtered features have their own.
    Raises CorpusError naming the line, for a missing column or speaker, a path that is given twice or leads out of the
    folder, a value that is not one of those above; and for files that are absent or empty, or of which none is sound.
    """
    folder = corpus_folder("folder", folder)
    manifest = folder / MANIFEST
    if sample_rate is not None and sample_rate < 1:
        raise CorpusError(f"sample_rate must be a positive number of Hz, got {sample_rate}")
    rows = read_rows(manifest, REQUIRED)
    _refuse_misspelled(manifest, rows[0])
    utterances: dict[str, Utterance] = {}
    for number, row in enumerate(rows, start=1):
        where = f"{manifest}, row {number}"
        name = inner_path(row["path"], where)
        if name in utterances:
            raise CorpusError(f"{where}: path {row['path']!r} is there already; list every file once")
        utterances[name] = _utterance(folder / name, row, where)
    if "take" not in rows[0]:
        utterances = _numbered(utterances)
    require_files(folder.name, folder, utterances)
    if (folder / FILTERING).is_file():
        told = read_filtering(folder)
        known = told.label == "speaker"
        return Corpus(folder.resolve().name, told.sample_rate, tuple(utterances.values()), told.features, known)
    rate = sample_rate or most_common_rate([utterance.path for utterance in utterances.values()])
    return Corpus(folder.resolve().name, rate, tuple(utterances.values()))


def _utterance(path: Path, row: dict[str, str], where: str) -> Utterance:
    if not row["speaker"]:
        raise CorpusError(
            f"{where}: the speaker of {row['path']!r} is empty; where it is unknown, give every file a name of its own"
        )
    take, subset = row.get("take") or "0", row.get("subset") or None
    if not (take.isascii() and take.isdigit()):
        raise CorpusError(f"{where}: take must be a whole number from 0, got {take!r}")
    if subset is not None and subset not in SUBSETS:
        raise CorpusError(f"{where}: subset must be one of {', '.join(SUBSETS)} or empty, got {subset!r}")
    return Utterance(
        path=path,
        speaker=row["speaker"],
        word=row.get("word") or None,
        text=row.get("text") or None,
        emotion=row.get("emotion") or None,
        gender=gender_letter(row.get("gender", ""), where),
        take=int(take),
        subset=subset,
    )


def _refuse_misspelled(manifest: Path, row: dict[str, str]) -> None:
    """A column called `gendre` would otherwise be dropped without a word."""
    unread = [field.name for field in fields(Utterance) if field.name not in row]
    for column in row:
        close = get_close_matches(column.lower(), unread, n=1, cutoff=0.8)
        if close:
            raise CorpusError(f"{manifest} has a column {column!r}: rename it to {close[0]!r}")


def _numbered(utterances: Mapping[str, Utterance]) -> dict[str, Utterance]:
    """Number what each speaker says of each word, in the order given."""
    said: Counter[tuple[str, str | None]] = Counter()
    found = {}
    for name, utterance in utterances.items():
        who = utterance.speaker, utterance.word
        found[name] = replace(utterance, take=said[who])
        said[who] += 1
    return found


def most_common_rate(files: Sequence[Path]) -> int:
    """The rate that most files have; files that are no sound count nothing, and only such files are refused."""
    rates = Counter(header.sample_rate for header in FileIndex.in_cache().headers(files) if header.sample_rate)
    if not rates:
        raise CorpusError(f"{files[0]} is not a sound file that can be read, nor is any other of {len(files)}")
    return rates.most_common(1)[0][0]


SUFFIXES = {".wav", ".flac", ".ogg", ".mp3"}


def clips_by_speaker(folder: Path) -> Mapping[str, list[Path]]:
    """The sound files in a folder of one folder for each speaker, by the speaker's name, both sorted; none is empty."""
    if not folder.is_dir():
        raise CorpusError(f"no folder {folder}: it holds one folder of clips for each speaker")
    found = {
        each.name: sorted(clip for clip in each.iterdir() if clip.suffix.lower() in SUFFIXES)
        for each in sorted(folder.iterdir())
        if each.is_dir()
    }
    if not found or not all(found.values()):
        raise CorpusError(f"{folder} needs one folder for each speaker with at least one sound file in each")
    return found


def cohort_at(where: str | Path, most_people: int = 64, most_clips: int = 24) -> list[list[Utterance]]:
    """Some people's recordings: a folder with one folder of clips a person, or a corpus by its name or folder.

    There are at most so many people and clips of each, evenly spread. Raises CorpusError where it is neither.
    """
    folder = Path(where)
    if not folder.is_dir() and str(where) not in corpus_names():
        raise CorpusError(f"no folder {where}, nor a corpus of that name: a cohort has one folder of clips a person")
    found: dict[str, list[Utterance]] = {}
    if folder.is_dir() and not (folder / MANIFEST).is_file() and str(where) not in corpus_names():
        found = {who: [Utterance(clip, who) for clip in clips] for who, clips in clips_by_speaker(folder).items()}
    else:
        for utterance in load_corpus(where):
            found.setdefault(utterance.speaker, []).append(utterance)
    people = list(found.values())[:: -(-len(found) // most_people)]
    return [clips[:: -(-len(clips) // most_clips)] for clips in people]
