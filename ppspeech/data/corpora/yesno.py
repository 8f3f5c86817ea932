"""The Kaldi yesno corpus: one man says eight words a file, each `yes` or `no` in Hebrew, at 8 kHz."""

from pathlib import Path

from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import Published, corpus_folder, require_files
from ppspeech.data.registry import register_corpus

# A file's name is its transcript (1 yes, 0 no), so the 60 files are 60 bytes.
FILES = bytes.fromhex(
    "0f111622262728292b3134363738393c3e44464a4b505a5c66677072757a7f"
    "8081838997a9b7babdc1c7cacbced4d6d9dbdee1e5e7eaebf2f4f8fcff"
)

PUBLISHED = Published("https://www.openslr.org/1", "waves_yesno", "files such as 0_1_1_0_0_1_1_1.wav")


@register_corpus("yesno")
def load_yesno(folder: Path | str | None = None) -> Corpus:
    """Load yesno: 60 utterances of eight words by a single speaker, whom the corpus does not name.

    There is one speaker and no official split; `take` numbers the files from 0 in the order of their names, so that
    `split_by_take` can divide them. `folder` holds files such as `0_1_1_0_0_1_1_1.wav`, as published, or the same as
    FLAC; by default `yesno` or `waves_yesno` in the data folder. Raises CorpusError if a recording is missing or empty.
    """
    folder = corpus_folder("yesno", folder, PUBLISHED)
    suffix = "wav" if any(folder.glob("*.wav")) else "flac"
    utterances: dict[str, Utterance] = {}
    for take, byte in enumerate(FILES):
        bits = f"{byte:08b}"
        file = f"{'_'.join(bits)}.{suffix}"
        text = " ".join("yes" if bit == "1" else "no" for bit in bits)
        utterances[file] = Utterance(folder / file, speaker="yesno", text=text, gender="m", take=take)
    require_files("yesno", folder, utterances)
    return Corpus("yesno", 8_000, tuple(utterances.values()))
