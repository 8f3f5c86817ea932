"""EmoDB, the Berlin Database of Emotional Speech: ten actors, ten German sentences, seven emotions, 16 kHz."""

from pathlib import Path

from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import corpus_folder, gender_letter, read_rows, require_files
from ppspeech.data.registry import register_corpus
from ppspeech.errors import CorpusError

UTTERANCES = 535
# The letter in the file name is the first one of the German word.
EMOTIONS = {"W": "anger", "L": "boredom", "E": "disgust", "A": "fear", "F": "happiness", "N": "neutral", "T": "sadness"}


@register_corpus("emodb")
def load_emodb(folder: Path | str | None = None) -> Corpus:
    """Load EmoDB: 535 sentences by five women and five men, emotions named in English. No official split.

    The field `text` holds the sentence's code (`a01` to `b10`), so that a split can keep sentences apart; `take` is the
    version, 0 for `a`. `folder` holds `metadata.csv` and `flac/SStttEv.flac` (speaker, sentence, emotion, version); by
    default `emodb` in the data folder. Raises CorpusError if a recording is missing or empty, or the metadata disagrees
    with a file's name.
    """
    folder = corpus_folder("emodb", folder)
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
    require_files("emodb", folder, utterances, total=UTTERANCES)
    return Corpus("emodb", 16_000, tuple(utterances.values()))


def _letter(emotion: str, metadata: Path) -> str:
    for letter, name in EMOTIONS.items():
        if name == emotion:
            return letter
    raise CorpusError(f"{metadata}: emotion must be one of {', '.join(EMOTIONS.values())}, got {emotion!r}")
