"""What can be chosen about MFCC features, typed and checked."""

from dataclasses import dataclass
from typing import Literal

from ppspeech.audio.public_encoder import PublicEncoder
from ppspeech.errors import AudioError


@dataclass(frozen=True)
class MfccConfig:
    """The choices of the MFCC front end (Pathak 2010 section 2.1.1).

    Every field is public: nothing here may be estimated from private speech. `cmvn="utterance"` uses each utterance's
    own mean and variance; `cmvn="public"` uses `public_mean` and `public_std`, which must come from public speech.
    There is deliberately no data-set normalization.

    Attributes:
        sample_rate: of the waveforms, in Hz.
        window_s: length of a frame, in seconds.
        hop_s: from one frame to the next, in seconds.
        window: what a frame is multiplied with.
        pre_emphasis: a of y(t) = x(t) - a x(t - 1); 0 for none.
        mel_filters: triangular filters on the mel scale.
        mel_scale: which mel formula; `htk` is 2595 log10(1 + f / 700).
        low_hz: lower edge of the lowest filter.
        high_hz: upper edge of the highest filter; None for half the sample rate.
        cepstra: coefficients kept, the zeroth included.
        lifter: L of the sinusoidal lifter 1 + L/2 sin(pi n / L); 0 for none.
        deltas: how many orders of time derivatives are appended: 0, 1 or 2.
        delta_reach: frames on each side that a derivative looks at.
        level: `peak` scales each utterance to a peak of 1 first; `keep` leaves it.
        floor: smallest filter energy before the logarithm.
        cmvn: cepstral mean and variance normalization: `utterance`, `public` or `none`.
        public_mean: for `cmvn="public"`, one value a feature.
        public_std: for `cmvn="public"`, one positive value a feature.
        vad_db: drop frames more than this many dB below the utterance's loudest; None keeps all.
        vad_hangover: frames kept on each side of a loud one.
        encoder: a public network that takes the features, normalized, and gives others in their place; None for none.
    """

    sample_rate: int = 16_000
    window_s: float = 0.025
    hop_s: float = 0.010
    window: Literal["hamming", "hann", "rectangular"] = "hamming"
    pre_emphasis: float = 0.97
    mel_filters: int = 26
    mel_scale: Literal["htk", "slaney"] = "htk"
    low_hz: float = 20.0
    high_hz: float | None = None
    cepstra: int = 13
    lifter: int = 22
    deltas: Literal[0, 1, 2] = 2
    delta_reach: int = 2
    level: Literal["peak", "keep"] = "peak"
    floor: float = 1e-10
    cmvn: Literal["utterance", "public", "none"] = "utterance"
    public_mean: tuple[float, ...] = ()
    public_std: tuple[float, ...] = ()
    vad_db: float | None = None
    vad_hangover: int = 5
    encoder: PublicEncoder | None = None

    def __post_init__(self) -> None:
        cepstra_fit = 1 <= self.cepstra <= self.mel_filters
        band_fits = 0 <= self.low_hz < self.top_hz <= self.sample_rate / 2
        checks = {
            f"sample_rate must be > 0, got {self.sample_rate}": self.sample_rate > 0,
            f"the hop ({self.hop_s} s) must hold at least one sample": self.hop_length >= 1,
            f"the window ({self.window_s} s) must hold at least two samples": self.window_length >= 2,
            f"pre_emphasis must lie in [0, 1), got {self.pre_emphasis}": 0 <= self.pre_emphasis < 1,
            f"cepstra must lie in 1..mel_filters ({self.mel_filters}), got {self.cepstra}": cepstra_fit,
            f"the mel band {self.low_hz}..{self.top_hz} Hz must lie in 0..{self.sample_rate / 2} Hz": band_fits,
            f"lifter must be >= 0, got {self.lifter}": self.lifter >= 0,
            f"deltas must be 0, 1 or 2, got {self.deltas}": self.deltas in (0, 1, 2),
            f"delta_reach must be >= 1, got {self.delta_reach}": self.delta_reach >= 1,
            f"floor must be > 0, got {self.floor}": self.floor > 0,
            f"vad_db must be > 0, got {self.vad_db}": self.vad_db is None or self.vad_db > 0,
            f"vad_hangover must be >= 0, got {self.vad_hangover}": self.vad_hangover >= 0,
        }
        for message, holds in checks.items():
            if not holds:
                raise AudioError(message)
        if self.cmvn == "public":
            sizes = len(self.public_mean), len(self.public_std)
            if sizes != (self.computed, self.computed) or min(self.public_std) <= 0:
                raise AudioError(
                    f"cmvn='public' needs public_mean and public_std of {self.computed} values, the latter > 0; "
                    f"got {sizes[0]} and {sizes[1]}"
                )
        if self.encoder is not None and self.encoder.widths[0] != self.computed:
            raise AudioError(
                f"the encoder takes {self.encoder.widths[0]} numbers a frame, and there are {self.computed}"
            )

    @classmethod
    def wideband(cls) -> "MfccConfig":
        """16 kHz: 25 ms every 10 ms, 26 filters, 39 features; one second gives 98 frames."""
        return cls()

    @classmethod
    def narrowband(cls) -> "MfccConfig":
        """8 kHz, telephone band: as wideband with 23 filters."""
        return cls(sample_rate=8_000, mel_filters=23)

    @classmethod
    def hamm2015(cls, sample_rate: int = 16_000) -> "MfccConfig":
        """The front end of Hamm 2015 section 5.2: 20 ms with 50 % overlap, 13 bands, no derivatives."""
        return cls(sample_rate=sample_rate, window_s=0.020, mel_filters=13, lifter=0, deltas=0, cmvn="none")

    @classmethod
    def at_rate(cls, sample_rate: int) -> "MfccConfig":
        """The preset for speech recorded at a rate, which has all that the preset listens to: wideband from 16 kHz."""
        return cls.narrowband() if sample_rate < 16_000 else cls.wideband()

    @property
    def shortest_s(self) -> float:
        """Of the waveforms, in seconds: a frame, or two that have a mean."""
        return self.window_s + (self.hop_s if self.cmvn == "utterance" else 0.0)

    @property
    def window_length(self) -> int:
        """Samples in a frame."""
        return round(self.window_s * self.sample_rate)

    @property
    def hop_length(self) -> int:
        """Samples from one frame to the next."""
        return round(self.hop_s * self.sample_rate)

    @property
    def fft_length(self) -> int:
        """The power of two at or above the window length."""
        return 1 << (self.window_length - 1).bit_length()

    @property
    def top_hz(self) -> float:
        """Upper edge of the mel band."""
        return self.sample_rate / 2 if self.high_hz is None else self.high_hz

    @property
    def computed(self) -> int:
        """Cepstra a frame, and their derivatives."""
        return self.cepstra * (1 + self.deltas)

    @property
    def features(self) -> int:
        """Values a frame: cepstra and their derivatives, or what an encoder makes of them."""
        return self.computed if self.encoder is None else self.encoder.outputs

    def frame_count(self, samples: int) -> int:
        """Whole frames in a waveform of that many samples.

        >>> MfccConfig.wideband().frame_count(16_000)
        98
        """
        return max(0, 1 + (samples - self.window_length) // self.hop_length)


@dataclass(frozen=True)
class GivenFeatures(MfccConfig):
    """In place of a front end where features are given, as those of a filtered corpus: only their number counts. A
    model of such features takes no sound: `Mfcc` refuses this config. `given` is the values a frame.
    """

    cmvn: Literal["utterance", "public", "none"] = "none"
    given: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.given < 1:
            raise AudioError(f"given features are at least 1 a frame, got {self.given}")

    @property
    def features(self) -> int:
        """Values a frame."""
        return self.given
