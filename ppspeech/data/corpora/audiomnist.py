"""AudioMNIST: sixty people say the ten digits, at 16 kHz (the first eight of fifty takes)."""

from pathlib import Path

from ppspeech.data.corpora.fsdd import DIGIT_WORDS
from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import corpus_folder, gender_letter, read_rows, require_files
from ppspeech.data.registry import register_corpus

SPEAKERS = 60
TAKES = 8


@register_corpus("audiomnist")
def load_audiomnist(folder: Path | str | None = None) -> Corpus:
    """Load AudioMNIST: 4,800 utterances of one digit by 48 men and 12 women. It has no official split.

    The recordings are quiet (median peak about 600 of 32,768): features should not depend on loudness. `folder` holds
    `metadata.csv` and `{speaker}/{digit}_{speaker}_{take}.flac`; by default `audiomnist` in the data folder. Raises
    CorpusError if a recording is missing or empty, or the metadata is damaged.
    """
    folder = corpus_folder("audiomnist", folder)
    utterances: dict[str, Utterance] = {}
    for person in read_rows(folder / "metadata.csv", ("speaker", "gender"), rows=SPEAKERS):
        speaker = person["speaker"]
        gender = gender_letter(person["gender"], f"{folder / 'metadata.csv'}, speaker {speaker}")
        own = folder / speaker
        for digit, word in enumerate(DIGIT_WORDS):
            for take in range(TAKES):
                file = f"{digit}_{speaker}_{take}.flac"
                utterances[f"{speaker}/{file}"] = Utterance(
                    own / file, speaker, word=word, text=word, gender=gender, take=take
                )
    require_files("audiomnist", folder, utterances, total=SPEAKERS * len(DIGIT_WORDS) * TAKES)
    return Corpus("audiomnist", 16_000, tuple(utterances.values()))
