"""Recordings that can be searched: features, what a garbage model scores them, what they score in units, and energies
of bands that patches are looked for in.

`index_recordings` makes one from sound files, and `Archive.write` a file of it, which loads in a moment: numbers in
float32 behind a header of JSON, as safetensors. It holds voices: keep it as you keep the recordings.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import safetensors.numpy
import torch
from safetensors import SafetensorError
from torch import nn

from ppspeech.arrays import Reals
from ppspeech.audio import LIMIT, Mfcc, MfccConfig, Sound, features_of, in_usual_range, samples_at, usual_radius
from ppspeech.bundle import (
    Bundle,
    BundleConfig,
    KeywordHmmSettings,
    SentenceHmmSettings,
    SentenceTranscriber,
    from_plain,
    to_plain,
)
from ppspeech.errors import BundleError, ModelError
from ppspeech.models import fit_mixture
from ppspeech.models.decoding import LAST_STAY, Segments, best_average, spot, unit_ratios
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel
from ppspeech.progress import track
from ppspeech.protocols.scores import within_ball
from ppspeech.protocols.search import Answers, Found, Keywords, Recordings, SpotShape
from ppspeech.service.offer import check_front_end
from ppspeech.service.patches import RATE as BAND_RATE
from ppspeech.service.patches import band_frames, pieces_of, safetensors_header
from ppspeech.service.tasks.spotting import BANDS, EXAMPLE_GARBAGE, FLOOR, PatchSize, Spotting
from ppspeech.storage import atomic_write

FORMAT = 2
OLDER = 1  # had no bands: no word by patches is found in it
SUFFIX = ".archive"
LARGEST = 1 << 31  # bytes of an archive
HOP_S = 0.03
LONGEST_SECONDS, PIECE_SECONDS = 1.5, 60.0
PAUSE = "sil"
"""The unit of pauses, of a bundle of sentences, where it has no name."""
COMPONENTS, FRAMES_EACH, FITTED = 32, 50, 20_000
"""Of the garbage model: fewer in short archives, fitted to so many frames of a long one."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What the numbers of an archive are of.

    Attributes:
        units: names, in order; the archive holds ratios of all their states, `states` each.
        lengths: of each recording, in frames.
        names: of the recordings.
        told: whether clients are told these names.
        bands: of each recording, in steps of patches; none in archives of the older format.
    """

    mfcc: MfccConfig
    units: tuple[str, ...]
    states: int
    longest: int
    piece: int
    lengths: tuple[int, ...]
    names: tuple[str, ...]
    told: bool
    bands: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_front_end(self.mfcc)
        if not self.lengths or min(self.lengths) < 1 or len(self.names) != len(self.lengths):
            raise BundleError("an archive has recordings of at least one frame, and a name for each")
        if self.bands and (len(self.bands) != len(self.lengths) or min(self.bands) < 0 or not sum(self.bands)):
            raise BundleError("an archive has bands of all of its recordings, or of none")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the arrays, by name."""
        total = sum(self.lengths)
        found: dict[str, tuple[int, ...]] = {"frames": (total, self.mfcc.features), "garbage": (total,)}
        if self.bands:
            found["bands"] = (sum(self.bands), BANDS)
        return found | ({"ratios": (total, len(self.units) * self.states)} if self.units else {})


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a recording: the first of its frames, among those of all recordings, and how many they are."""

    recording: int
    first: int
    frames: int


@dataclass(frozen=True, eq=False)
class Archive:
    """Recordings, ready to be searched: `frames` in their usual range, `garbage` a frame, `ratios` of units, and
    `bands` as `band_frames` has them.
    """

    contents: Contents
    frames: Reals
    garbage: Reals
    ratios: Reals | None
    bands: Reals | None = None

    def __post_init__(self) -> None:
        for name, shape in self.contents.shapes.items():
            given = getattr(self, name)
            if given is None or given.shape != shape or not np.isfinite(given).all():
                raise BundleError(f"{name} of an archive are finite numbers of shape {shape}")

    @property
    def pieces(self) -> list[Piece]:
        """In the order in which they are searched; each but the first begins `longest` frames before the last ended."""
        found: list[Piece] = []
        first = 0
        step = self.contents.piece - self.contents.longest
        for recording, length in enumerate(self.contents.lengths):
            found += [
                Piece(recording, first + before, min(self.contents.piece, length - before))
                for before in range(0, max(1, length - self.contents.longest), step)
            ]
            first += length
        return found

    @property
    def terms(self) -> Spotting:
        """What clients are told. Raises BundleError for more than can be searched at once."""
        each = [piece.recording for piece in self.pieces]
        return Spotting(
            type="archive",
            holder="server",
            mfcc=self.contents.mfcc,
            names=self.contents.units,
            states=self.contents.states,
            longest=self.contents.longest,
            frames=self.contents.piece,
            pieces=tuple(each.count(number) for number in range(len(self.contents.lengths))),
            recordings=self.contents.names if self.contents.told else (),
            bands=BANDS if self.contents.bands else 0,
        )

    def recordings(self, shape: SpotShape) -> Recordings:
        """The pieces as a search of this shape takes them."""
        cut = [slice(piece.first, piece.first + piece.frames) for piece in self.pieces]
        if shape.terms == "linear":
            assert self.ratios is not None
            middle, _ = self.terms.reach
            numbers = [self.ratios[part].astype(np.float64) - middle for part in cut]
            return Recordings(shape, numbers, [np.zeros(len(each)) for each in numbers])
        return Recordings(shape, [self.frames[part] for part in cut], [self.garbage[part] for part in cut])

    def patch_pieces(self, size: PatchSize) -> Reals:
        """The pieces on a page as a search for a word of this size takes them."""
        terms, contents = self.terms, self.contents
        shape, pieces = terms.patch_shape(size), self.pieces
        assert self.bands is not None
        recordings = np.split(self.bands, np.cumsum(contents.bands)[:-1])
        firsts = np.cumsum((0, *contents.lengths))
        cut = []
        for piece in (pieces[number] for number in terms.pieces_of(size)):
            start = terms.band_start(piece.first - int(firsts[piece.recording]))
            cut.append(recordings[piece.recording][start : start + terms.band_steps])
        return pieces_of(cut, shape, size.grid.span)

    def to_bytes(self) -> bytes:
        """As a file holds it."""
        arrays = {name: np.ascontiguousarray(getattr(self, name), np.float32) for name in self.contents.shapes}
        said = json.dumps({"format": FORMAT, **to_plain(self.contents)}, sort_keys=True)
        data: bytes = safetensors.numpy.save(arrays, {"archive": said})
        return data

    def write(self, path: Path) -> None:
        """A file that its owner alone can read; whole or not at all."""
        with atomic_write(path, private=True) as temporary:
            temporary.write_bytes(self.to_bytes())

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that it holds."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Archive":
        """Back from a file: sizes are compared before anything is allocated. Raises BundleError for anything else."""
        contents, described = _header(data)
        wanted = {name: ("F32", list(shape)) for name, shape in contents.shapes.items()}
        if described != wanted:
            raise BundleError(f"the arrays of this archive are {described}, and its contents need {wanted}")
        try:
            arrays = safetensors.numpy.load(data)
        except (SafetensorError, ValueError) as damaged:
            raise BundleError(f"the archive is damaged: {damaged}") from None
        return cls(contents, arrays["frames"], arrays["garbage"], arrays.get("ratios"), arrays.get("bands"))

    @classmethod
    def load(cls, path: str | Path) -> "Archive":
        """From a file. Raises BundleError if there is none, or it is no archive."""
        path = Path(path)
        if not path.is_file() or path.stat().st_size > LARGEST:
            raise BundleError(f"no archive of at most {LARGEST:,} bytes at {path}: make one with `ppspeech index`")
        try:
            return cls.from_bytes(path.read_bytes())
        except BundleError as refused:
            raise BundleError(f"{path}: {refused}") from None


def is_archive(path: str | Path) -> bool:
    """Whether a file is, or means to be, an archive."""
    if Path(path).suffix == SUFFIX:
        return True
    with Path(path).open("rb") as file:
        return b'{"__metadata__":{"archive"' in file.read(64)


def _header(data: bytes) -> tuple[Contents, dict[str, tuple[str, list[int]]]]:
    described, plain = safetensors_header(data, "archive", "no archive: make one with `ppspeech index`")
    version = plain.pop("format", None)
    if version == OLDER:
        plain.setdefault("bands", [])
    elif version != FORMAT:
        raise BundleError(f"archives have format {FORMAT}, or {OLDER}, got {version!r}")
    return from_plain(Contents, plain, "the contents"), described


def index_recordings(
    sounds: Mapping[str, Sound],
    bundle: Bundle | None = None,
    rate: int | None = None,
    *,
    longest_s: float = LONGEST_SECONDS,
    piece_s: float = PIECE_SECONDS,
    tell_names: bool = False,
) -> Archive:
    """An archive of sounds by name, files or waveforms of one rate in Hz.

    Keywords are spelled with the words, or sub-word units, of a bundle, whose front end it takes; without one, keywords
    come as examples.

    Args:
        longest_s: seconds of a word, at the most.
        piece_s: longer recordings are cut into pieces of so many seconds, and each is answered for.
        tell_names: tell clients what files are called; otherwise recordings are numbered.

    Raises AudioError for sound that cannot be used, ModelError for a bundle without chains of Gaussians.
    """
    if not sounds:
        raise BundleError("there is nothing to index: give a folder with sound files")
    mfcc = replace(MfccConfig.wideband(), hop_s=HOP_S, cmvn="none") if bundle is None else bundle.mfcc
    front_end = Mfcc(mfcc)
    heard = [features_of([sound], front_end, rate)[0] for sound in track(list(sounds.values()), "Indexing")]
    bands: list[Reals] = []
    if mfcc.sample_rate >= BAND_RATE:  # what was recorded for less has no upper bands
        bands = [band_frames(samples_at(sound, rate, BAND_RATE)) for sound in track(list(sounds.values()), "Bands")]
    frames = np.concatenate([in_usual_range(each, mfcc) for each in heard]).astype(np.float32)
    units = None if bundle is None else Units.of(bundle.model, bundle.config)
    longest, longest_heard = max(2, round(longest_s / mfcc.hop_s)), max(map(len, heard))
    contents = Contents(
        mfcc=mfcc,
        units=() if units is None else units.names,
        states=1 if units is None else units.bank.states,
        longest=longest,
        piece=max(2 * longest, min(round(piece_s / mfcc.hop_s), longest_heard)),
        lengths=tuple(map(len, heard)),
        names=tuple(sounds),
        told=tell_names,
        bands=tuple(map(len, bands)) if any(map(len, bands)) else (),
    )
    ratios = None if units is None else np.concatenate([units.ratios(each) for each in heard]).astype(np.float32)
    energies = np.concatenate(bands).astype(np.float32) if contents.bands else None
    return Archive(contents, frames, _garbage(frames, mfcc), ratios, energies)


@dataclass(frozen=True, eq=False)
class Units:
    """What keywords are spelled with: the models of a bundle, and how far from speech a frame may lie for them."""

    names: tuple[str, ...]
    bank: HiddenMarkovModel
    transcriber: SentenceTranscriber | None

    @classmethod
    def of(cls, bank: nn.Module, config: BundleConfig) -> "Units":
        """Of models of words or of sub-word units, with what a bundle says about them. Raises ModelError for others."""
        settings = config.settings
        if not isinstance(settings, KeywordHmmSettings | SentenceHmmSettings):
            raise ModelError(f"a {config.type} has no units: take a bundle of words, or of sub-word units")
        assert isinstance(bank, HiddenMarkovModel)
        if bank.topology.offsets not in {(0,), (0, 1)}:
            raise ModelError(f"units are chains without leaps, this bundle moves by {bank.topology.offsets}")
        if isinstance(settings, SentenceHmmSettings):
            return cls((*(settings.units or config.labels), PAUSE), bank, SentenceTranscriber.of(bank, config))
        return cls(config.labels, bank, None)

    @torch.no_grad()
    def ratios(self, features: torch.Tensor) -> Reals:
        """Of frames, in every state of every unit, `(frames, units * states)`."""
        assert isinstance(self.bank.emission, GaussianEmission)
        if self.transcriber is not None:
            scores = self.transcriber.scores(features)
        else:
            scores = self.bank.emission.log_likelihood(features.unsqueeze(0)).squeeze(0).flatten(1)
        stays = self.bank.log_transitions().diagonal(dim1=-2, dim2=-1).clone()
        stays[:, -1] = math.log(LAST_STAY)
        found: Reals = unit_ratios(scores.double(), stays.double().flatten(), FLOOR).numpy()
        return found


def _garbage(frames: Reals, mfcc: MfccConfig) -> Reals:
    """What a mixture of Gaussians, fitted to all of them, scores each."""
    near = torch.from_numpy(within_ball(np.clip(frames, -LIMIT, LIMIT), usual_radius(mfcc.features))).float()
    components = max(1, min(COMPONENTS, len(near) // FRAMES_EACH))
    mixture = fit_mixture(near[:: -(-len(near) // FITTED)], components, floor=1e-2)
    with torch.no_grad():
        scored = mixture.joint(near).logsumexp(-1)
    found: Reals = scored.clamp(*map(float, EXAMPLE_GARBAGE)).numpy()
    return found


def in_the_clear(keywords: Keywords, recordings: Recordings) -> Answers:
    """What a search would answer if one party had both; its twin, in real numbers."""
    answers: Answers = []
    for found, threshold in zip(clear_segments(keywords, recordings), keywords.thresholds.tolist(), strict=True):
        rows = zip(found.starts.tolist(), found.end.tolist(), (found.score >= threshold).tolist(), strict=True)
        answers.append([Found(tuple(starts), end) if said else None for starts, end, said in rows])
    return answers


def clear_segments(keywords: Keywords, recordings: Recordings) -> list[Segments]:
    """The best segment of each recording, by keyword, with what it scores, or averages: what no search tells."""
    shape = keywords.shape
    heard = torch.from_numpy(recordings.rows).view(shape.recordings, shape.frames, -1)
    taken = torch.from_numpy(shape.scale.decode(shape.scale.ring.to_signed(recordings.taken_off)))
    found = []
    for weights, constant in zip(keywords.weights, keywords.constants.tolist(), strict=True):
        ratios = heard @ torch.from_numpy(weights).mT - taken.unsqueeze(-1)
        if shape.passes:
            found.append(best_average(ratios, shape.block, shape.longest, constant, shape.passes))
        else:
            best = spot(ratios, shape.block, shape.longest, shape.states)
            found.append(replace(best, score=best.score + constant))
    return found
