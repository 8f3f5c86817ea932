"""EmoDB, the Berlin Database of Emotional Speech: ten actors, ten German sentences, seven emotions, 16 kHz."""

import re
from pathlib import Path

from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import Published, corpus_folder, gender_letter, read_rows, require_files
from ppspeech.data.registry import register_corpus
from ppspeech.errors import CorpusError

UTTERANCES = 535
# The letter in the file name is the first one of the German word.
EMOTIONS = {"W": "anger", "L": "boredom", "E": "disgust", "A": "fear", "F": "happiness", "N": "neutral", "T": "sadness"}
WOMEN = ("08", "09", "13", "14", "16")
NAME = re.compile(r"(?P<speaker>\d\d)(?P<text>[ab]\d\d)(?P<emotion>[WLEAFNT])(?P<version>[a-z])")

PUBLISHED = Published("http://emodb.bilderbar.info", "EmoDB", "wav/{speaker}{sentence}{emotion}{version}.wav")


@register_corpus("emodb")
def load_emodb(folder: Path | str | None = None) -> Corpus:
    """Load EmoDB: 535 sentences by five women and five men, emotions named in English. No official split.

    The field `text` holds the sentence's code (`a01` to `b10`), so that a split can keep sentences apart; `take` is the
    version, 0 for `a`. `folder` holds `wav/SStttEv.wav` (speaker, sentence, emotion, version) as published, or the same
    as `flac/SStttEv.flac` with a `metadata.csv`; by default `emodb` or `EmoDB` in the data folder. Raises CorpusError
    if a recording is missing or empty, or the metadata disagrees with a file's name.
    """
    folder = corpus_folder("emodb", folder, PUBLISHED)
    if (folder / "metadata.csv").is_file():
        utterances = _described(folder)
    else:
        stems = sorted(path.stem for path in (folder / "wav").glob("*.wav"))
        utterances = {f"wav/{stem}.wav": _named(folder / "wav" / f"{stem}.wav") for stem in stems}
    require_files("emodb", folder, utterances, total=UTTERANCES)
    return Corpus("emodb", 16_000, tuple(utterances.values()))


def _named(path: Path) -> Utterance:
    """What the name of a published file tells."""
    told = NAME.fullmatch(path.stem)
    if told is None:
        raise CorpusError(f"{path} is not named as the files of EmoDB, such as 03a01Fa.wav")
    return Utterance(
        path=path,
        speaker=told["speaker"],
        text=told["text"],
        emotion=EMOTIONS[told["emotion"]],
        gender="f" if told["speaker"] in WOMEN else "m",
        take=ord(told["version"]) - ord("a"),
    )


def _described(folder: Path) -> dict[str, Utterance]:
    metadata = folder / "metadata.csv"
    columns = ("file", "speaker", "gender", "text_code", "emotion", "version")
    utterances: dict[str, Utterance] = {}
    for row in read_rows(metadata, columns, rows=UTTERANCES):
        file = row["file"]
        letter, version = _letter(row["emotion"], metadata), row["version"]
        if file != f"{row['speaker']}{row['text_code']}{letter}{version}.flac" or len(version) != 1:
            raise CorpusError(f"{metadata}: the row of {file!r} disagrees with the name of the file; copy it again")
        utterances[f"flac/{file}"] = Utterance(
            path=folder / "flac" / file,
            speaker=row["speaker"],
            text=row["text_code"],
            emotion=row["emotion"],
            gender=gender_letter(row["gender"], f"{metadata}, file {file}"),
            take=ord(version) - ord("a"),
        )
    return utterances


def _letter(emotion: str, metadata: Path) -> str:
    for letter, name in EMOTIONS.items():
        if name == emotion:
            return letter
    raise CorpusError(f"{metadata}: emotion must be one of {', '.join(EMOTIONS.values())}, got {emotion!r}")
