"""Six wake words as a crowd recorded them, at 16 kHz: part of the Picovoice wake word benchmark."""

from pathlib import Path

from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import Published, corpus_folder, require_files
from ppspeech.data.registry import register_corpus

WORDS = ("alexa", "computer", "jarvis", "smart_mirror", "snowboy", "view_glass")
RECORDINGS = 40

PUBLISHED = Published(
    "https://github.com/Picovoice/wake-word-benchmark", "wakewords", "40 files of each word, {word}/{word}_{nn}.flac"
)


@register_corpus("wakewords")
def load_wakewords(folder: Path | str | None = None) -> Corpus:
    """Load the wake words: 240 utterances, 40 of each word, with silence around the word.

    The corpus has no speaker labels, so **every file counts as a speaker of its own**. Some people did record more than
    one file: a split by speaker may still share voices, and a privacy guarantee per speaker is in truth one per
    recording. `folder` holds `{word}/{word}_{nn}.flac`; by default `wakewords` in the data folder. Raises CorpusError
    if a recording is missing or empty.
    """
    folder = corpus_folder("wakewords", folder, PUBLISHED)
    utterances = {
        f"{word}/{word}_{number:02d}.flac": Utterance(
            path=folder / word / f"{word}_{number:02d}.flac",
            speaker=f"{word}_{number:02d}",
            word=word,
            text=word.replace("_", " "),
        )
        for word in WORDS
        for number in range(RECORDINGS)
    }
    require_files("wakewords", folder, utterances)
    return Corpus("wakewords", 16_000, tuple(utterances.values()), speakers_known=False)
