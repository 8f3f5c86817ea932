"""Where patches of a spectrogram stand in a word."""

from dataclasses import dataclass

from ppspeech.errors import ModelError


@dataclass(frozen=True, slots=True)
class PatchGrid:
    """Where patches stand: nothing here depends on the word.

    Attributes:
        bands: of the spectrogram.
        span: b, frames of a patch.
        bins: how many places in a word.
        step: s, frames from one to the next.
        window: w, frames that a patch may be late.
        per_bin: patches of each bin.
    """

    bands: int
    span: int = 5
    bins: int = 6
    step: int = 4
    window: int = 8
    per_bin: int = 8

    def __post_init__(self) -> None:
        if min(self.bands, self.span, self.bins, self.step, self.window, self.per_bin) < 1:
            raise ModelError(f"sizes of patches are at least 1, got {self}")

    @property
    def patches(self) -> int:
        """In all."""
        return self.bins * self.per_bin

    @property
    def frames(self) -> int:
        """That one place looks at."""
        return (self.bins - 1) * self.step + self.window + self.span - 1

    def places(self, frames: int) -> int:
        """Of a recording of so many frames. Raises ModelError for fewer than one place looks at."""
        if frames < self.frames:
            raise ModelError(f"a recording has {self.frames} frames or more, got {frames}")
        return frames - self.frames + 1
