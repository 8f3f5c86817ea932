"""A word by patches of its spectrogram: learned from clips of it, kept in a file, looked for in archives.

What patches are cut from are log energies of bands every 30 ms, of a recording about its own mean and in units of its
own spread, whatever front end an archive has: a word that was learned once can be looked for in any.

A word is learned beside recordings without it, some of which are kept aside with some of the clips: they say how often
it would be found where it is not, and set β to as many false alarms a minute as are wanted.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from ppspeech.arrays import Reals
from ppspeech.audio import Cepstra, Samples, Sound, samples_at, spoken_part
from ppspeech.bundle import from_plain, read_json, to_plain
from ppspeech.errors import AudioError, BundleError, ModelError
from ppspeech.models import PatchDetector, PatchGrid, learn_word, regions
from ppspeech.progress import track
from ppspeech.protocols.search import Patches, PatchShape, Rule
from ppspeech.service.tasks.spotting import BAND_FRONT_END, BANDS, EVERY, STEP_S, PatchSize
from ppspeech.storage import atomic_write

FORMAT = 1
SUFFIX = ".patches"
LARGEST = 1 << 24  # bytes of a word
ALARMS = 0.5
"""Places a minute, of recordings kept aside, where the word may be found and is not."""
ASIDE = 4
"""Every fourth clip and recording is kept aside."""
SHIFTS = (-2, 0, 2)
"""Steps by which a word stands beside the middle of its window, in training."""
FEWEST_CLIPS, LEAST_BACKGROUND = 4, 60.0
"""Seconds of speech without the word, at the least."""
RATE = BAND_FRONT_END.sample_rate


@cache
def _front_end() -> Cepstra:
    return Cepstra(BAND_FRONT_END)


def band_frames(waveform: Samples) -> Reals:
    """Log energies of bands of a waveform at `RATE`, `(steps, BANDS)`, about their mean, in units of their spread."""
    whole = BAND_FRONT_END.frame_count(len(waveform)) // EVERY * EVERY
    if not whole:
        return np.zeros((0, BANDS))
    mel = _front_end().log_energies(np.asarray(waveform, np.float64))
    steps = mel[:whole].reshape(-1, EVERY, BANDS).mean(axis=1)
    found: Reals = (steps - steps.mean(axis=0)) / np.maximum(steps.std(axis=0), 1e-2)
    return found


@dataclass(frozen=True, slots=True)
class Learned:
    """How a word was learned, and what it does with what was kept aside.

    Attributes:
        clips: of the word, those kept aside with them.
        minutes: of speech without it.
        aside, found: clips kept aside, and those of them that are found.
        aside_minutes, alarms: minutes kept aside, and places in them where it would be found.
    """

    clips: int
    minutes: float
    aside: int
    found: int
    aside_minutes: float
    alarms: int


@dataclass(frozen=True, slots=True)
class _Facts:
    """What stands in the JSON of a file."""

    format: int
    rule: Rule
    bins: int
    per_bin: int
    bias: float
    learned: Learned


@dataclass(frozen=True, eq=False)
class PatchWord:
    """A word to look for. It was cut from voices: keep it as you keep the clips."""

    detector: PatchDetector
    learned: Learned

    def size(self, page: int = 0) -> PatchSize:
        """What a server sees of it."""
        grid = self.detector.grid
        return PatchSize(self.detector.rule, grid.bins, grid.per_bin, page)

    def sought(self, shape: PatchShape) -> Patches:
        """As a search of this shape looks for it."""
        own = self.detector
        return Patches(shape, own.patches, own.thresholds, own.gains, own.bias)

    def to_bytes(self) -> bytes:
        """As a file holds it."""
        own = self.detector
        arrays = {name: np.ascontiguousarray(getattr(own, name), np.float64) for name in _shapes(self.size())}
        facts = _Facts(FORMAT, own.rule, own.grid.bins, own.grid.per_bin, own.bias, self.learned)
        data: bytes = safetensors.numpy.save(arrays, {"patches": json.dumps(to_plain(facts), sort_keys=True)})
        return data

    def write(self, path: Path) -> None:
        """A file that its owner alone can read; whole or not at all."""
        with atomic_write(path, private=True) as temporary:
            temporary.write_bytes(self.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> "PatchWord":
        """Back from a file: sizes are compared before anything is allocated. Raises BundleError for anything else."""
        facts, described = _header(data)
        try:
            size = PatchSize(facts.rule, facts.bins, facts.per_bin, 0)
            wanted = {name: ("F64", list(shape)) for name, shape in _shapes(size).items()}
            if described != wanted:
                raise BundleError(f"the arrays of this word are {described}, and its sizes need {wanted}")
            arrays = safetensors.numpy.load(data)
            if not all(np.isfinite(each).all() for each in arrays.values()):
                raise BundleError("a word by patches has finite numbers")
            return cls(PatchDetector(size.grid, **arrays, bias=facts.bias, rule=facts.rule), facts.learned)
        except (SafetensorError, ValueError) as damaged:
            raise BundleError(f"the word is damaged: {damaged}") from None

    @classmethod
    def load(cls, path: str | Path) -> "PatchWord":
        """From a file. Raises BundleError if there is none, or it is no word by patches."""
        path = Path(path)
        if not path.is_file() or path.stat().st_size > LARGEST:
            raise BundleError(f"no word of at most {LARGEST:,} bytes at {path}: make one with `ppspeech patches`")
        try:
            return cls.from_bytes(path.read_bytes())
        except BundleError as refused:
            raise BundleError(f"{path}: {refused}") from None


def _shapes(size: PatchSize) -> dict[str, tuple[int, ...]]:
    count = size.grid.patches
    return {"patches": (count, BANDS * size.grid.span), "thresholds": (count,), "gains": (count,)}


def _header(data: bytes) -> tuple[_Facts, dict[str, tuple[str, list[int]]]]:
    header, said = safetensors_header(data, "patches", "no word by patches: make one with `ppspeech patches`")
    if said.get("format") != FORMAT:
        raise BundleError(f"words by patches have format {FORMAT}, got {said.get('format')!r}")
    return from_plain(_Facts, said, "the word"), header


def safetensors_header(data: bytes, key: str, refusal: str) -> tuple[dict[str, tuple[str, list[int]]], dict[str, Any]]:
    """What arrays a file in the format of safetensors says that it has, and the JSON under one key of its metadata,
    nothing allocated. Raises BundleError, with the refusal, for another file.
    """
    length = int.from_bytes(data[:8], "little") if len(data) >= 8 else 0
    if not 2 <= length <= len(data) - 8:
        raise BundleError(f"this is {refusal}")
    header = read_json(data[8 : 8 + length], "the header")
    said = header.pop("__metadata__", None)
    if not isinstance(said, dict) or list(said) != [key] or not isinstance(said[key], str):
        raise BundleError(f"this is {refusal}")
    try:
        described = {name: (str(each["dtype"]), list(each["shape"])) for name, each in header.items()}
    except (TypeError, KeyError):
        raise BundleError("the header does not describe its arrays") from None
    return described, read_json(said[key].encode(), "the contents")


def learn_patch_word(
    clips: Sequence[Sound],
    background: Sequence[Sound],
    rate: int | None = None,
    *,
    rule: Rule = "linear",
    bins: int = 6,
    per_bin: int = 6,
    alarms: float = ALARMS,
    candidates: int = 60,
    seed: int = 0,
) -> PatchWord:
    """A word from clips of it and recordings without it, files or waveforms of one rate in Hz.

    Clips are heard inside the recordings, where words are said. Raises AudioError for sound that cannot be used,
    ModelError for too little of it, or sizes that nobody can ask for.
    """
    grid = PatchSize(rule, bins, per_bin, 0).grid
    if len(clips) < FEWEST_CLIPS:
        raise ModelError(f"a word is learned from {FEWEST_CLIPS} clips of it or more, got {len(clips)}")
    spoken = [spoken_part(_heard(each, rate), RATE) for each in track(list(clips), "Clips")]
    talk = [_heard(each, rate) for each in track(list(background), "Background")]
    minutes = sum(map(len, talk)) / RATE / 60
    if minutes * 60 < LEAST_BACKGROUND or len(talk) < 2:
        raise ModelError(
            f"a word is told from at least two recordings of {LEAST_BACKGROUND:.0f} s together without it, got "
            f"{len(talk)} of {60 * minutes:.0f} s: give --background more speech"
        )
    aside_talk, rest_talk = _split(talk)
    aside_clips, rest_clips = _split(spoken)
    rng = np.random.default_rng(seed)
    quiet = [band_frames(each) for each in rest_talk]
    words = [each for clip in rest_clips for each in heard_inside(clip, rest_talk, grid, rng)]
    detector = learn_word(words, quiet, grid, candidates=candidates, seed=seed)[rule]
    false = [detector.scores(each) for each in map(band_frames, aside_talk) if len(each) >= grid.frames]
    aside_minutes = sum(map(len, false)) * STEP_S / 60
    allowed = int(alarms * aside_minutes)
    peaks = sorted((peak for each in false for peak in _peaks(each, allowed + 1, grid)), reverse=True)
    silence = float(detector.sums(np.zeros((1, grid.patches)))[0])  # what a padded recording ends in
    level = max(silence, *peaks[allowed : allowed + 1]) + 1e-3 * float(np.abs(detector.gains).sum())
    detector = replace(detector, bias=detector.bias - level)
    inside = [heard_inside(clip, aside_talk, grid, rng) for clip in aside_clips]
    learned = Learned(
        clips=len(spoken),
        minutes=round(minutes, 2),
        aside=len(inside),
        found=sum(max(float(detector.scores(each)[0]) for each in shifted) >= 0 for shifted in inside),
        aside_minutes=round(aside_minutes, 2),
        alarms=sum(peak >= level for peak in peaks),
    )
    return PatchWord(detector, learned)


def heard_inside(
    clip: Samples, background: Sequence[Samples], grid: PatchGrid, rng: np.random.Generator
) -> list[Reals]:
    """Windows with a clip about in their middle, `(grid.frames, BANDS)` each: it is put into a recording that is cut
    open for it.
    """
    room = round(grid.frames * STEP_S * RATE)
    around = background[int(rng.integers(len(background)))]
    around = np.pad(around, (0, max(0, 2 * room - len(around))))
    cut = int(rng.integers(room, len(around) - room + 1))
    steps = band_frames(np.concatenate((around[:cut], clip, around[cut:])))
    first = round((cut + len(clip) / 2) / RATE / STEP_S - grid.frames / 2)
    starts = [min(max(0, first + shift), len(steps) - grid.frames) for shift in SHIFTS]
    return [steps[start : start + grid.frames] for start in starts]


def pieces_of(bands: Sequence[Reals], shape: PatchShape, span: int) -> Reals:
    """Recordings, or parts of them, as a search takes them, padded with nothing: `(recordings, pieces, numbers)`."""
    found = np.zeros((shape.recordings, shape.pieces, shape.numbers))
    for row, each in zip(found, bands, strict=True):
        if len(each) >= span:
            cut = regions(each, span)[: shape.pieces]
            row[: len(cut)] = cut
    return found


def clear_places(word: PatchWord, pieces: Reals) -> list[int | None]:
    """What a search would answer if one party had both; its twin, in real numbers."""
    own = word.detector
    scores = (own.sums(own.fits(each)) for each in pieces)
    return [int(each.argmax()) if each.max() >= 0 else None for each in scores]


def _heard(sound: Sound, rate: int | None) -> Samples:
    waveform = samples_at(sound, rate, RATE)
    if not np.isfinite(waveform).all() or not waveform.any():
        name = sound if isinstance(sound, str | Path) else "a waveform"
        raise AudioError(f"{name} is silent, or holds what is no number: record it again")
    return waveform


def _split(sounds: list[Samples]) -> tuple[list[Samples], list[Samples]]:
    """Those kept aside, and the others."""
    aside = sounds[ASIDE - 1 :: ASIDE] or sounds[-1:]
    kept = set(map(id, aside))
    return aside, [each for each in sounds if id(each) not in kept]


def _peaks(scores: Reals, most: int, grid: PatchGrid) -> list[float]:
    """The highest scores of a recording, a window apart from each other."""
    left = scores.copy()
    found: list[float] = []
    while len(found) < most and left.max() > -np.inf:
        at = int(left.argmax())
        found.append(float(left[at]))
        left[max(0, at - grid.frames + 1) : at + grid.frames] = -np.inf
    return found
