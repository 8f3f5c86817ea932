"""Word error rate: how far a hypothesis is from what was said."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ppspeech.errors import ModelError


@dataclass(frozen=True, slots=True)
class WordErrors:
    """The fewest edits that turn references into hypotheses, counted by kind.

    Attributes:
        substitutions: words heard as others.
        deletions: words missed.
        insertions: words heard that were not said.
        words: words in the references.
    """

    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0
    words: int = 0

    def __add__(self, other: "WordErrors") -> "WordErrors":
        return WordErrors(
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
            self.words + other.words,
        )

    @property
    def errors(self) -> int:
        """All edits."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float:
        """Edits by reference words; may exceed 1.

        Raises:
            ModelError: if there are no reference words to divide by.
        """
        if not self.words:
            raise ModelError("the word error rate of references without words is not defined")
        return self.errors / self.words


def word_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> WordErrors:
    """Levenshtein alignment of two word sequences. Of equal alignments, the one with most substitutions.

    >>> word_errors("the cat sat".split(), "the bat sat down".split())
    WordErrors(substitutions=1, deletions=0, insertions=1, words=3)
    """
    for words in (reference, hypothesis):
        if isinstance(words, str):
            raise ModelError(f"word_errors takes sequences of words, got the string {words!r}: split it first")
    # (edits, -substitutions, deletions, insertions) for the prefixes seen so far, one row a reference word.
    row = [(j, 0, 0, j) for j in range(len(hypothesis) + 1)]
    for i, said in enumerate(reference, start=1):
        above, row = row, [(i, 0, i, 0)]
        for j, heard in enumerate(hypothesis, start=1):
            edits, subs, dels, ins = above[j - 1]
            differs = int(said != heard)
            diagonal = (edits + differs, subs - differs, dels, ins)
            edits, subs, dels, ins = above[j]
            down = (edits + 1, subs, dels + 1, ins)
            edits, subs, dels, ins = row[j - 1]
            right = (edits + 1, subs, dels, ins + 1)
            row.append(min(diagonal, down, right))
    _, subs, dels, ins = row[-1]
    return WordErrors(-subs, dels, ins, len(reference))


def total_word_errors(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> WordErrors:
    """Errors over many (reference, hypothesis) pairs, pooled."""
    return sum((word_errors(reference, hypothesis) for reference, hypothesis in pairs), WordErrors())
