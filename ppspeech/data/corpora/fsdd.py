"""FSDD, the Free Spoken Digit Dataset: six men say the ten digits fifty times each, at 8 kHz."""

from pathlib import Path

from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import corpus_folder, gender_letter, read_rows, require_files
from ppspeech.data.registry import register_corpus

# Words, not numerals, in every digit corpus: a model trained on one of them can be tried on another.
DIGIT_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SPEAKERS = 6
TAKES = 50
TEST_TAKES = 5


@register_corpus("fsdd")
def load_fsdd(folder: Path | str | None = None) -> Corpus:
    """Load FSDD: 3,000 utterances of one digit, with the official split (takes 0-4 test, 5-49 train).

    `folder` holds `metadata.csv` and `recordings/{digit}_{speaker}_{take}.wav`; by default `fsdd` in the data folder.
    Raises CorpusError if a recording is missing or empty, or the metadata is damaged.
    """
    folder = corpus_folder("fsdd", folder)
    people = read_rows(folder / "metadata.csv", ("speaker", "gender"), rows=SPEAKERS)
    utterances = {
        f"recordings/{digit}_{person['speaker']}_{take}.wav": Utterance(
            path=folder / "recordings" / f"{digit}_{person['speaker']}_{take}.wav",
            speaker=person["speaker"],
            word=word,
            text=word,
            gender=gender_letter(person["gender"], f"{folder / 'metadata.csv'}, speaker {person['speaker']}"),
            take=take,
            subset="test" if take < TEST_TAKES else "train",
        )
        for person in people
        for digit, word in enumerate(DIGIT_WORDS)
        for take in range(TAKES)
    }
    require_files("fsdd", folder, utterances, total=SPEAKERS * len(DIGIT_WORDS) * TAKES)
    return Corpus("fsdd", 8_000, tuple(utterances.values()))
