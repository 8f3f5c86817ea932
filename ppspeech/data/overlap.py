"""Whether public speech is public: no recording of it may be in the private corpus too."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from ppspeech.data.corpus import Corpus
from ppspeech.errors import CorpusError

BUILT_IN = "synthetic"
"""The corpus that is nobody's: two draws of it may stand side by side, as long as they share no recording."""


def check_disjoint(private: Corpus, public: Iterable[Corpus]) -> None:
    """Refuse public corpora that are the private one, or hold one of its files.

    Files are compared by their bytes (SHA-256): the same recording in another format is not noticed. Raises CorpusError
    with the first recording found in both.
    """
    for corpus in public:
        if corpus.name == private.name != BUILT_IN:
            raise CorpusError(
                f"{corpus.name} is the private corpus: what is learned from it as if it were public, no guarantee "
                "covers; name public corpora that nobody's secret is in"
            )
        both = shared_files(private, corpus)
        if both:
            other = "leave it out"
            if corpus.name == BUILT_IN:
                other = (
                    "take other takes of the built-in voices, by `ppspeech synth --seed 1` or `--data.options.seed 1`"
                )
            raise CorpusError(
                f"{len(both)} recordings of the private corpus, {both[0].name} for one, are in the public corpus "
                f"{corpus.name} too: no guarantee would cover them; {other}"
            )


def shared_files(ours: Corpus, others: Corpus) -> list[Path]:
    """Files of our corpus whose bytes are those of a file of the other. Only files of equal size are read."""
    sizes: dict[int, list[Path]] = defaultdict(list)
    for utterance in others:
        sizes[utterance.path.stat().st_size].append(utterance.path)
    known: dict[int, set[bytes]] = {}
    found = []
    for path in dict.fromkeys(utterance.path for utterance in ours):
        size = path.stat().st_size
        if size not in sizes:
            continue
        if size not in known:
            known[size] = {_digest(other) for other in sizes[size]}
        if _digest(path) in known[size]:
            found.append(path)
    return found


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()
