"""AudioMNIST: sixty people say the ten digits fifty times each; the first eight takes, at 16 kHz."""

import json
from pathlib import Path

from ppspeech.data.corpora.fsdd import DIGIT_WORDS
from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import Published, corpus_folder, gender_letter, read_rows, require_files
from ppspeech.data.registry import register_corpus
from ppspeech.errors import CorpusError

SPEAKERS = 60
TAKES = 8
PUBLISHED_TAKES = 50

PUBLISHED = Published(
    "https://github.com/soerenab/AudioMNIST",
    "AudioMNIST",
    "data/audioMNIST_meta.txt and data/{speaker}/{digit}_{speaker}_{take}.wav",
)


@register_corpus("audiomnist")
def load_audiomnist(folder: Path | str | None = None, takes: int = TAKES) -> Corpus:
    """Load AudioMNIST: 4,800 utterances of one digit by 48 men and 12 women. It has no official split.

    The recordings are quiet (median peak about 600 of 32,768): features should not depend on loudness. `folder` is the
    repository as published, at 48 kHz and used at 16, of whose 50 `takes` the first are taken; or holds `metadata.csv`
    and `{speaker}/{digit}_{speaker}_{take}.flac` with eight takes. By default `audiomnist` or `AudioMNIST` in the data
    folder. Raises CorpusError if a recording is missing or empty, or the metadata is damaged.
    """
    folder = corpus_folder("audiomnist", folder, PUBLISHED)
    published = folder / "data" / "audioMNIST_meta.txt"
    if published.is_file():
        genders, base, suffix, most = _published(published), "data/", "wav", PUBLISHED_TAKES
    else:
        rows = read_rows(folder / "metadata.csv", ("speaker", "gender"), rows=SPEAKERS)
        genders, base, suffix, most = {row["speaker"]: row["gender"] for row in rows}, "", "flac", TAKES
    if not 1 <= takes <= most:
        raise CorpusError(f"takes must lie in 1..{most}, got {takes}")
    utterances: dict[str, Utterance] = {}
    for speaker, told in genders.items():
        gender = gender_letter(told, f"{folder}, speaker {speaker}")
        for digit, word in enumerate(DIGIT_WORDS):
            for take in range(takes):
                name = f"{base}{speaker}/{digit}_{speaker}_{take}.{suffix}"
                utterances[name] = Utterance(folder / name, speaker, word=word, text=word, gender=gender, take=take)
    require_files("audiomnist", folder, utterances, total=SPEAKERS * len(DIGIT_WORDS) * takes)
    return Corpus("audiomnist", 16_000, tuple(utterances.values()))


def _published(metadata: Path) -> dict[str, str]:
    """The gender of every speaker."""
    try:
        return {speaker: str(about["gender"]) for speaker, about in json.loads(metadata.read_text("utf-8")).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as damaged:
        raise CorpusError(f"{metadata} is damaged: {damaged}; copy it again") from None
