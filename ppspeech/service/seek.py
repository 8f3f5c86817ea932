"""What a client looks for in an archive: a keyword from examples of it, or spelled with the archive's units.

A key phrase is several words with anything between them, written `...`: `"seven ... nine"`, or examples likewise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.audio import Cepstra, Sound, in_usual_range, samples_at, spoken_part
from ppspeech.errors import AudioError, ModelError, RangeError
from ppspeech.protocols.search import Keywords, SpotShape, composed_rows
from ppspeech.service.requests import Ask, Way
from ppspeech.service.tasks.spotting import EXAMPLE_FLOOR, EXAMPLE_STATES, Spotting, packed

Keyword = str | Sound | Sequence[str | Sound]
"""Examples, files or waveforms, or a text of names of units; of a phrase, with `GAPS` between its words."""

GAPS = frozenset({"...", "…"})
SOUNDS = frozenset({".wav", ".flac", ".ogg", ".mp3", ".aiff", ".aif"})
SPELLED_THRESHOLD, EXAMPLE_THRESHOLD = 12.0, 25.0
"""Nats above everything else, from which a keyword counts as said (`reproduce spotting` chooses on other data)."""
SPELLED_AVERAGE, EXAMPLE_AVERAGE = 0.8, 1.0
"""The same as an average of frames."""
SHIFTS = 3
"""Examples are also heard so many parts of a frame later: recordings do not begin with the keyword."""


@dataclass(frozen=True, eq=False)
class Sought:
    """A question: of which kind, of which public size, and the keyword, which stays here."""

    what: Ask
    sizes: tuple[int, ...]
    way: Way
    keywords: Keywords

    @property
    def code(self) -> int:
        """The size, as a request has it."""
        return packed(self.sizes)


def sought(
    terms: Spotting, keyword: Keyword, rate: int | None = None, threshold: float | None = None, *, average: bool = False
) -> Sought:
    """A keyword as an archive on these terms is asked for it. Raises RangeError or ModelError for one that cannot be,
    AudioError for an example that cannot be used.
    """
    way: Way = "average" if average else "frames"
    words = _words(keyword)
    if isinstance(words[0][0], str) and not _is_file(words[0][0]):
        spelled = cast("list[list[str]]", words)
        found = tuple(map(len, spelled))
        packed(found)
        usual = SPELLED_AVERAGE if average else SPELLED_THRESHOLD
        shape = terms.spelled_shape(found, way)
        return Sought(Ask.SPOT, found, way, _spelled(terms, shape, spelled, usual if threshold is None else threshold))
    packed((1,) * len(words))
    usual = EXAMPLE_AVERAGE if average else EXAMPLE_THRESHOLD
    shape = terms.example_shape(len(words), way)
    examples = _by_example(terms, shape, words, rate, usual if threshold is None else threshold)
    return Sought(Ask.SPOT_EXAMPLE, (1,) * len(words), way, examples)


def _words(keyword: Keyword) -> list[list[str | Sound]]:
    """Takes, or units, of each word. Raises RangeError for none, or names beside files."""
    given = list(keyword) if isinstance(keyword, list | tuple) else [cast("str | Sound", keyword)]
    parts: list[str | Sound] = []
    for each in given:
        parts += each.split() if isinstance(each, str) and not _is_file(each) else [each]
    words: list[list[str | Sound]] = [[]]
    for part in parts:
        if isinstance(part, str) and part in GAPS:
            words.append([])
        else:
            words[-1].append(part)
    if not all(words):
        raise RangeError(f"a keyword has names of units or examples, and ... between its words, got {keyword!r:.80}")
    kinds = {isinstance(part, str) and not _is_file(part) for word in words for part in word}
    if len(kinds) > 1:
        raise RangeError(f"a keyword is spelled, or comes from examples, not both, got {keyword!r:.80}")
    return words


def _is_file(text: str) -> bool:
    return Path(text).suffix.lower() in SOUNDS or Path(text).is_file()


def _spelled(terms: Spotting, shape: SpotShape, words: list[list[str]], threshold: float) -> Keywords:
    units = [unit for word in words for unit in word]
    try:
        rows = composed_rows(terms.names, units, terms.states)
    except ModelError as unknown:
        raise ModelError(f"{unknown}; an example of the keyword, a sound file, does as well") from None
    middle, _ = terms.reach
    return Keywords.of_units(shape, rows[None], np.full((1, len(rows)), middle), np.zeros(1), np.array([threshold]))


def _by_example(
    terms: Spotting, shape: SpotShape, words: list[list[str | Sound]], rate: int | None, threshold: float
) -> Keywords:
    import torch

    from ppspeech.models.decoding import keyword_of_takes

    models = []
    for takes in words:
        heard = [torch.from_numpy(frames) for take in takes for frames in _heard(terms, shape, take, rate)]
        models.append(keyword_of_takes(heard, EXAMPLE_STATES, EXAMPLE_FLOOR, len(takes)))
    means, variances, stays = (
        np.concatenate([part.numpy() for part in parts])[None]
        for parts in zip(*((each.mean, each.variances, each.chain.stays) for each in models), strict=True)
    )
    constant = sum(each.chain.constant for each in models)
    return Keywords.of_gaussians(shape, means, variances, stays, np.array([constant]), np.array([threshold]))


def _heard(terms: Spotting, shape: SpotShape, take: str | Sound, rate: int | None) -> list[Reals]:
    """Frames of what is spoken in an example, from the beginning and a part of a frame later."""
    mfcc = terms.mfcc
    waveform = spoken_part(samples_at(take, rate, mfcc.sample_rate), mfcc.sample_rate)
    least, most = EXAMPLE_STATES + 2, terms.block
    frames = mfcc.frame_count(len(waveform))
    if not least <= frames <= most:
        name = take if isinstance(take, str | Path) else "an example"
        raise RangeError(
            f"{name}: a word lasts {least * mfcc.hop_s:.2f} to {most * mfcc.hop_s:.2f} s here, without the silence "
            f"around it, got {frames * mfcc.hop_s:.2f} s: "
            + ("record it longer, or take a longer keyword" if frames < least else "cut it, or join words by `...`")
        )
    parts = np.linspace(0, mfcc.hop_length, SHIFTS, endpoint=False).astype(int).tolist()
    if not waveform.any():
        raise AudioError("an example is silent: record the keyword again")
    cepstra = Cepstra(mfcc)
    return [shape.clipped(in_usual_range(cepstra(waveform[at:]), mfcc)) for at in parts]
