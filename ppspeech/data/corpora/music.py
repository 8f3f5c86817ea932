"""Twenty-second excerpts of free game music at 16 kHz: what a speech detector must not take for speech."""

from pathlib import Path

from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import corpus_folder, inner_path, read_rows, require_files
from ppspeech.data.registry import register_corpus
from ppspeech.errors import CorpusError

EXCERPTS = 27


@register_corpus("music")
def load_music(folder: Path | str | None = None) -> Corpus:
    """Load the 27 excerpts; the speaker is the author (or the team) and the text is the title.

    Some pairs by one author are similar pieces (`battle` and `battle2`): split by speaker. `folder` holds
    `metadata.csv` and the FLAC files it lists; by default `music` in the data folder. Raises CorpusError if an excerpt
    is missing or empty, or the metadata is damaged.
    """
    folder = corpus_folder("music", folder)
    metadata = folder / "metadata.csv"
    utterances: dict[str, Utterance] = {}
    for row in read_rows(metadata, ("file", "title", "author"), rows=EXCERPTS):
        file = inner_path(row["file"], str(metadata))
        if not row["author"]:
            raise CorpusError(f"{metadata}: the author of {file!r} is empty; copy it again")
        utterances[file] = Utterance(folder / file, speaker=row["author"], text=row["title"])
    require_files("music", folder, utterances, total=EXCERPTS)
    return Corpus("music", 16_000, tuple(utterances.values()))
