"""The built-in corpus: any words or sentences, said by the built-in voices; needs no download."""

import hashlib
import inspect
import json
import re
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppspeech.audio.voices import STYLES, VOICES, Espeak, Prompt, Room, UnsayableError, Voice
from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import whole_folder, write_rows
from ppspeech.data.registry import register_corpus
from ppspeech.errors import AudioError, CorpusError
from ppspeech.progress import track
from ppspeech.storage import cache_folder

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

FORMAT = 1  # to be raised whenever the same specification gives other samples, so that no old cache is taken for it

MANIFEST_COLUMNS = ("path", "speaker", "word", "text", "emotion", "gender", "take", "subset")
_MANIFEST = "manifest.csv"
_SPECIFICATION = "synthetic.json"


@dataclass(frozen=True)
class SyntheticCorpus:
    """What a synthetic corpus holds: every speaker says every word and sentence, in every style, `takes` times.

    Each recording follows from the seed, its speaker, text, style and take alone: a corpus of fewer words, speakers or
    takes has the same recordings, to the byte. Raises CorpusError if it would be empty, asks for more speakers than
    there are, for a style that is not there, for a text twice, or for a text that cannot be said.
    """

    words: tuple[str, ...] = DIGITS
    speakers: int = 40  # how many of `ppspeech.audio.voices.speakers.VOICES`, from the first; women and men in turn
    takes: int = 5  # repetitions, each at a pace and pitch of its own and in a room of its own
    sentences: tuple[str, ...] = ()  # longer texts; they have a transcript and no word label
    styles: tuple[str, ...] = ("calm",)  # `calm`, `excited` or both; the emotion label
    sample_rate: int = 16000
    seed: int = 0  # other seeds give other takes by the same speakers

    def __post_init__(self) -> None:
        for name in ("words", "sentences", "styles"):
            if isinstance(getattr(self, name), str):
                raise CorpusError(f"{name} must be a list, got the string {getattr(self, name)!r}")
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.texts:
            raise CorpusError("a synthetic corpus needs at least one word or sentence")
        for text in self.texts:
            if not isinstance(text, str):
                raise CorpusError(f"a text must be a string, got {text!r}: in YAML, quote yes, no and numbers")
            try:
                Prompt(text)
            except AudioError as unsayable:
                raise CorpusError(str(unsayable)) from None
            if text != text.strip():
                raise CorpusError(f"a text must not begin or end with a space, got {text!r}")
        for name, values in (("text", self.texts), ("style", self.styles)):
            if twice := [value for value in dict.fromkeys(values) if values.count(value) > 1]:
                raise CorpusError(f"the {name} {twice[0]!r} is given twice")
        if not 1 <= self.speakers <= len(VOICES):
            raise CorpusError(f"speakers must lie in 1..{len(VOICES)}, the number of voices; got {self.speakers}")
        if self.takes < 1:
            raise CorpusError(f"takes must be >= 1, got {self.takes}")
        if not self.styles or set(self.styles) - set(STYLES):
            raise CorpusError(f"styles must be some of {', '.join(STYLES)}; got {', '.join(self.styles) or 'none'}")
        if not 4000 <= self.sample_rate <= 48000:
            raise CorpusError(f"sample_rate must lie in 4000..48000 Hz, got {self.sample_rate}")

    @property
    def texts(self) -> tuple[str, ...]:
        """All that is said: words, then sentences."""
        return self.words + self.sentences

    def build(self, folder: Path | None = None, progress: bool = True) -> Corpus:
        """Speak and write the corpus, or only list it where it has been built before.

        It is made in a temporary folder beside `folder` and moved into place when it is whole: a run that was
        interrupted leaves nothing, and of two runs at the same time the first to end stays. `folder` is by default one
        of the cache that is named after this specification. Raises CorpusError if the folder holds something else, or
        less than it should, or eSpeak has no sound for one of the texts; AudioError if eSpeak cannot be run.
        """
        folder = Path(folder) if folder is not None else cache_folder() / f"synthetic-{self.digest()}"
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            with whole_folder(folder, first_stays=True) as unfinished:
                self._write(unfinished, progress)
        return self._listed(folder)

    def digest(self) -> str:
        """Names this specification: equal specifications, and only those, have equal digests."""
        return hashlib.sha256(self._specification().encode()).hexdigest()[:16]

    def utterances(self, folder: Path) -> tuple[Utterance, ...]:
        """What the corpus holds, in order, with the paths it has below `folder`."""
        return tuple(
            Utterance(
                path=folder / voice.name / f"{_file_stem(text)}-{style}-{take}.wav",
                speaker=voice.name,
                word=text if position < len(self.words) else None,
                text=text,
                emotion=style,
                gender=voice.gender,
                take=take,
            )
            for voice in VOICES[: self.speakers]
            for position, text in enumerate(self.texts)
            for style in self.styles
            for take in range(self.takes)
        )

    def _specification(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"

    def _write(self, folder: Path, progress: bool) -> None:
        utterances = self.utterances(folder)
        voices = {voice.name: voice for voice in VOICES}
        with Espeak() as espeak:
            for utterance in track(utterances, "speaking") if progress else utterances:
                utterance.path.parent.mkdir(exist_ok=True)
                _write_wav(utterance.path, self._record(utterance, voices[utterance.speaker], espeak), self.sample_rate)
        (folder / _SPECIFICATION).write_text(self._specification())
        rows = (
            [u.path.relative_to(folder).as_posix(), *(getattr(u, name) for name in MANIFEST_COLUMNS[1:])]
            for u in utterances
        )
        write_rows(folder / _MANIFEST, MANIFEST_COLUMNS, rows)

    def _record(self, utterance: Utterance, voice: Voice, espeak: Espeak) -> NDArray[np.float64]:
        assert utterance.text is not None
        assert utterance.emotion is not None
        generator = _generator(self.seed, voice.name, utterance.text, utterance.emotion, utterance.take)
        try:
            speech = voice.say(utterance.text, espeak, generator, style=utterance.emotion, sample_rate=self.sample_rate)
        except UnsayableError as unsayable:
            raise CorpusError(str(unsayable)) from None
        return Room.draw(generator).record(speech, self.sample_rate, generator)

    def _listed(self, folder: Path) -> Corpus:
        """The corpus in a folder that holds it."""
        specification = folder / _SPECIFICATION
        if not specification.is_file():
            raise CorpusError(f"{folder} holds something that is not a synthetic corpus: choose another folder")
        if specification.read_text() != self._specification():
            raise CorpusError(f"{folder} holds another synthetic corpus (see {specification}): choose another folder")
        utterances = self.utterances(folder)
        present = {path for path in folder.rglob("*.*") if path.stat().st_size}  # a power cut may leave empty files
        needed = {folder / _MANIFEST, *(utterance.path for utterance in utterances)}
        if missing := sorted(needed - present):
            raise CorpusError(
                f"the synthetic corpus in {folder} is damaged: {len(missing)} files are missing or empty, the first "
                f"{missing[0].relative_to(folder)}; delete the folder and build it again"
            )
        return Corpus("synthetic", self.sample_rate, utterances)


def _write_wav(path: Path, recording: NDArray[np.float64], sample_rate: int) -> None:
    """Write 16-bit WAV without the care of `write_audio`, which the folder as a whole takes, at a tenth of its cost."""
    samples = np.round(recording * 32767).astype("<i2").tobytes()
    sizes = (b"fmt ", 16, 1, 1, sample_rate, 2 * sample_rate, 2, 16, b"data", len(samples))
    header = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(samples), b"WAVE", *sizes)
    path.write_bytes(header + samples)  # by hand: Ctrl-C inside `wave` complains of files that were never opened


def _generator(seed: int, *item: object) -> np.random.Generator:
    """Randomness that belongs to one recording, whatever else is in the corpus."""
    digest = hashlib.sha256(json.dumps([seed, *item]).encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))


def _file_stem(text: str) -> str:
    """A file name for a text: itself if it is a plain word, else its letters and a digest.

    >>> _file_stem("seven"), _file_stem("Où est-il ?")
    ('seven', 'o_est_il_9e6ac699')
    """
    if re.fullmatch(r"[a-z0-9]{1,32}", text):
        return text
    letters = re.sub(r"[^a-z0-9]+", "_", text.lower())[:24].strip("_")
    return f"{letters}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@register_corpus("synthetic")
def load_synthetic(**fields: Any) -> Corpus:
    """Make the corpus of built-in voices; `fields` are those of `SyntheticCorpus`."""
    try:
        inspect.signature(SyntheticCorpus).bind(**fields)
    except TypeError as error:
        raise CorpusError(f"corpus 'synthetic' cannot be made with these options: {error}") from None
    return SyntheticCorpus(**fields).build()
