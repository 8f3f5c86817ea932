"""Labels and names as residues: what a winner is called, spelled out on shares.

A text is its UTF-8 bytes, filled up with zero bytes to an agreed length, 7 to a residue and the first the lowest, as
everywhere on the wire. A residue of a score fits beside them: shares of both are chosen in one batch.
"""

from collections.abc import Sequence

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.numbers import Ring
from ppspeech.errors import ModelError

LETTERS = 7
"""Bytes of a text in one residue."""

TEXT_RING = Ring(8 * LETTERS)


def text_size(length: int) -> int:
    """Residues of a text of up to `length` bytes.

    >>> text_size(7), text_size(8)
    (1, 2)
    """
    return -(-length // LETTERS)


def text_residues(texts: Sequence[str], length: int) -> Residues:
    """Texts of up to `length` bytes as residues, `(texts, text_size(length))`. Raises ModelError for a text that is
    empty, too long, or has a zero byte in it.

    >>> read_text(text_residues(["Zoë"], 14)[0])
    'Zoë'
    """
    size, spelled = text_size(length), [text.encode() for text in texts]
    for text, letters in zip(texts, spelled, strict=True):
        if not 0 < len(letters) <= length or 0 in letters:
            raise ModelError(f"a label or name has 1 to {length} bytes, none of them zero, got {text!r}")
    padded = b"".join(letters.ljust(LETTERS * size, b"\0") for letters in spelled)
    digits = np.zeros((len(texts) * size, 8), np.uint8)
    digits[:, :LETTERS] = np.frombuffer(padded, np.uint8).reshape(-1, LETTERS)
    return digits.view("<u8").astype(np.uint64).reshape(len(texts), size)


def read_text(residues: Residues) -> str | None:
    """The text that residues `(residues,)` spell, as `show_text` shows it; None where all are zero, which is nobody's
    label.
    """
    return show_text(b"".join(int(residue).to_bytes(LETTERS, "little") for residue in residues))


def show_text(letters: bytes) -> str | None:
    """What another party's bytes spell, zeros at their end left out; None where nothing is left.

    Bytes that are no text, and what cannot be printed, are shown as such, and never refused: an error here would be
    seen by the party that sent them, and tell it which of its texts was opened.

    >>> show_text(bytes.fromhex("61ff07"))
    'a\ufffd\ufffd'
    """
    shown = letters.rstrip(b"\0").decode(errors="replace")
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in shown) or None
