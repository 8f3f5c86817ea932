"""A small selection of LibriSpeech: read English by 130 people at 16 kHz."""

from pathlib import Path

from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import corpus_folder, gender_letter, inner_path, read_rows, require_files
from ppspeech.data.registry import register_corpus
from ppspeech.errors import CorpusError

UTTERANCES = 220
# Folder -> the part of the official split that its recordings come from (train-clean-100, test-other).
PARTS = {"background": "train", "test_other": "test"}


@register_corpus("librispeech")
def load_librispeech(folder: Path | str | None = None, part: str = "all") -> Corpus:
    """Load the selection: 220 utterances, of which 100 have a transcript.

    `test_other` is ten utterances of each of ten speakers, with transcripts (subset `test`). `background` is 4.5 s of
    each of 120 other speakers, without, meant for background models (subset `train`). `folder` holds `metadata.csv`,
    `background/` and `test_other/`; by default `librispeech` in the data folder. `part` is `all` or one of the two.
    Raises CorpusError if `part` is another word, a recording is missing or empty, or the metadata is damaged.
    """
    if part != "all" and part not in PARTS:
        raise CorpusError(f"part must be all, {' or '.join(PARTS)}, got {part!r}")
    folder = corpus_folder("librispeech", folder)
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
