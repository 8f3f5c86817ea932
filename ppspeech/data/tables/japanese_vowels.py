"""Japanese vowels: nine men say /ae/; cepstra of each utterance, a sequence rather than a row."""

from dataclasses import dataclass, fields
from pathlib import Path

import torch

from ppspeech.data.tables.files import read_arrays
from ppspeech.errors import CorpusError
from ppspeech.storage import data_folder

UTTERANCES = 640
TEST_UTTERANCES = 370
FRAMES = 9_961
LONGEST = 29
CEPSTRA = 12
SPEAKERS = 9


@dataclass(frozen=True, eq=False)
class JapaneseVowels:
    """Utterances as padded sequences."""

    frames: torch.Tensor  # float32 `(utterances, 29, 12)`, LPC cepstra, 0 after the end of an utterance
    lengths: torch.Tensor  # int64 `(utterances,)`, 7 to 29
    speaker: torch.Tensor  # int64 `(utterances,)`, 0 to 8
    is_test: torch.Tensor  # bool `(utterances,)`, the official split

    def __len__(self) -> int:
        return len(self.lengths)

    def select(self, utterances: torch.Tensor) -> "JapaneseVowels":
        """The utterances of a bool mask or of int64 indices, in order."""
        return JapaneseVowels(*(getattr(self, entry.name)[utterances] for entry in fields(self)))

    def train_test(self) -> tuple["JapaneseVowels", "JapaneseVowels"]:
        """The official split: 270 utterances to train on and 370 to test on, by the same speakers."""
        return self.select(~self.is_test), self.select(self.is_test)


def load_japanese_vowels(folder: Path | str | None = None) -> JapaneseVowels:
    """Load the 640 utterances of `japanese_vowels.npz` in `folder`, by default the data folder."""
    path = (Path(folder) if folder is not None else data_folder()) / "japanese_vowels.npz"
    arrays = read_arrays(
        path,
        {
            "frames": ("f", (FRAMES, CEPSTRA)),
            "lengths": ("u", (UTTERANCES,)),
            "speaker": ("u", (UTTERANCES,)),
            "is_test": ("b", (UTTERANCES,)),
        },
    )
    lengths = torch.from_numpy(arrays["lengths"]).long()
    speaker = torch.from_numpy(arrays["speaker"]).long() - 1
    is_test = torch.from_numpy(arrays["is_test"])
    if int(lengths.sum()) != FRAMES or int(lengths.max()) > LONGEST:
        raise CorpusError(f"{path}: the lengths do not fit the {FRAMES} frames; copy it again")
    if set(speaker.tolist()) != set(range(SPEAKERS)) or int(is_test.sum()) != TEST_UTTERANCES:
        raise CorpusError(f"{path}: speakers or split are not as published; copy it again")
    frames = torch.zeros(UTTERANCES, LONGEST, CEPSTRA)
    frames[torch.arange(LONGEST) < lengths[:, None]] = torch.from_numpy(arrays["frames"])
    return JapaneseVowels(frames, lengths, speaker, is_test)
