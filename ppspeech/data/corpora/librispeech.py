"""LibriSpeech, read English at 16 kHz: as published, or a small selection of 130 people."""

from collections.abc import Iterator
from pathlib import Path

from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import Published, corpus_folder, gender_letter, inner_path, read_rows, require_files
from ppspeech.data.registry import register_corpus
from ppspeech.errors import CorpusError

UTTERANCES = 220
# Folder of the selection -> the part of the official split that its recordings come from.
PARTS = {"background": "train", "test_other": "test"}
SAME = {"background": "train-clean-100", "test_other": "test-other"}  # and the published folder
SUBSETS = {"train": "train", "dev": "validation", "test": "test"}

PUBLISHED = Published(
    "https://www.openslr.org/12",
    "LibriSpeech",
    "SPEAKERS.TXT and folders such as test-clean/{speaker}/{chapter}/*.flac with their *.trans.txt",
)


@register_corpus("librispeech")
def load_librispeech(folder: Path | str | None = None, part: str = "all") -> Corpus:
    """Load LibriSpeech as published, or a selection of it.

    As published, `folder` holds `SPEAKERS.TXT` and one or more of the parts, such as `test-clean`, and `part` is `all`
    or one of them; `dev` parts are the validation subset. The selection is 220 utterances in `metadata.csv`,
    `background/` (4.5 s of each of 120 speakers, without transcripts; subset `train`) and `test_other/` (ten utterances
    of each of ten other speakers; subset `test`). By default `librispeech` or `LibriSpeech` in the data folder. Raises
    CorpusError if `part` is another word, a recording or transcript is missing or empty, or the metadata is damaged.
    """
    folder = corpus_folder("librispeech", folder, PUBLISHED)
    if not (folder / "metadata.csv").is_file():
        return _published(folder, SAME.get(part, part))
    if part != "all" and part not in PARTS:
        raise CorpusError(f"part must be all, {' or '.join(PARTS)}, got {part!r}")
    metadata = folder / "metadata.csv"
    utterances: dict[str, Utterance] = {}
    for row in read_rows(metadata, ("file", "speaker", "gender", "transcript"), rows=UTTERANCES):
        file = inner_path(row["file"], str(metadata))
        place = file.partition("/")[0]
        named = file.startswith(f"{place}/{row['speaker']}-")
        if place not in PARTS or not named or (place == "test_other") != bool(row["transcript"]):
            raise CorpusError(
                f"{metadata}: the row of {file!r} is damaged: files are in {' or '.join(PARTS)}, their names "
                "start with the speaker, and those of test_other alone have a transcript"
            )
        utterances[file] = Utterance(
            path=folder / file,
            speaker=row["speaker"],
            text=row["transcript"] or None,
            gender=gender_letter(row["gender"], f"{metadata}, file {file}"),
            subset=PARTS[place],
        )
    require_files("librispeech", folder, utterances, total=UTTERANCES)
    corpus = Corpus("librispeech", 16_000, tuple(utterances.values()))
    return corpus if part == "all" else corpus.select(lambda utterance: utterance.subset == PARTS[part])


def _published(folder: Path, part: str) -> Corpus:
    parts = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and entry.name.split("-")[0] in SUBSETS)
    if part != "all" and part not in parts:
        raise CorpusError(f"part must be all or one of {', '.join(parts) or 'those to be copied'}, got {part!r}")
    genders = dict(_genders(folder / "SPEAKERS.TXT"))
    utterances: dict[str, Utterance] = {}
    for name in parts if part == "all" else [part]:
        for transcripts in sorted((folder / name).glob("*/*/*.trans.txt")):
            for line in transcripts.read_text(encoding="utf-8").splitlines():
                key, _, text = line.partition(" ")
                speaker = key.partition("-")[0]
                path = transcripts.parent / f"{key}.flac"
                utterances[path.relative_to(folder).as_posix()] = Utterance(
                    path, speaker, text=text.lower(), gender=genders.get(speaker), subset=SUBSETS[name.split("-")[0]]
                )
    if not utterances:
        raise CorpusError(f"{folder} has no transcripts of LibriSpeech: it holds {PUBLISHED.holds}; copy it again")
    require_files("librispeech", folder, utterances)
    return Corpus("librispeech", 16_000, tuple(utterances.values()))


def _genders(table: Path) -> Iterator[tuple[str, str | None]]:
    """Speakers and their genders, as in `14 | F | train-clean-360 | 25.03 | Kristin`; `;` begins a comment."""
    if not table.is_file():
        return
    for line in table.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith(";"):
            speaker, gender = (value.strip() for value in line.split("|")[:2])
            yield speaker, gender_letter(gender, str(table))
