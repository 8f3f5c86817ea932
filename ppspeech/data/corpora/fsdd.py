"""FSDD, the Free Spoken Digit Dataset: six men say the ten digits fifty times each, at 8 kHz."""

from pathlib import Path

from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import Published, corpus_folder, gender_letter, read_rows, require_files
from ppspeech.data.registry import register_corpus

# Words, not numerals, in every digit corpus: a model trained on one of them can be tried on another.
DIGIT_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SPEAKERS = 6
TAKES = 50
TEST_TAKES = 5
MEN = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")

PUBLISHED = Published(
    "https://github.com/Jakobovski/free-spoken-digit-dataset",
    "free-spoken-digit-dataset",
    "recordings/{digit}_{speaker}_{take}.wav",
)


@register_corpus("fsdd")
def load_fsdd(folder: Path | str | None = None) -> Corpus:
    """Load FSDD: 3,000 utterances of one digit, with the official split (takes 0-4 test, 5-49 train).

    `folder` is the repository as published, with `recordings/{digit}_{speaker}_{take}.wav`; a `metadata.csv` with
    speaker and gender is read where there is one. By default `fsdd` or `free-spoken-digit-dataset` in the data folder.
    Raises CorpusError if a recording is missing or empty, or the metadata is damaged.
    """
    folder = corpus_folder("fsdd", folder, PUBLISHED)
    metadata = folder / "metadata.csv"
    if metadata.is_file():
        people = {
            row["speaker"]: gender_letter(row["gender"], f"{metadata}, speaker {row['speaker']}")
            for row in read_rows(metadata, ("speaker", "gender"), rows=SPEAKERS)
        }
    else:  # the published tables are Python, which is not run
        named = {path.name.split("_")[1] for path in (folder / "recordings").glob("[0-9]_*_*.wav")}
        people = {name: "m" if name in MEN else None for name in sorted(named or MEN)}
    utterances = {
        f"recordings/{digit}_{speaker}_{take}.wav": Utterance(
            path=folder / "recordings" / f"{digit}_{speaker}_{take}.wav",
            speaker=speaker,
            word=word,
            text=word,
            gender=gender,
            take=take,
            subset="test" if take < TEST_TAKES else "train",
        )
        for speaker, gender in people.items()
        for digit, word in enumerate(DIGIT_WORDS)
        for take in range(TAKES)
    }
    total = SPEAKERS * len(DIGIT_WORDS) * TAKES if metadata.is_file() else None
    require_files("fsdd", folder, utterances, total=total)
    return Corpus("fsdd", 8_000, tuple(utterances.values()))
