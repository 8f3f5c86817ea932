"""eSpeak NG as a Python object: text in, waveform out, the same for the same request whatever was said before."""

import importlib
import json
import struct
import subprocess
import sys
import tempfile
import unicodedata
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ppspeech.audio.voices import espeak_process
from ppspeech.errors import AudioError

SAMPLE_RATE = espeak_process.SAMPLE_RATE  # the rate at which eSpeak speaks, in Hz

LONGEST_TEXT = 4000

# eSpeak copies its data folder's path, and names below it, into buffers of 160 bytes without a word.
_LONGEST_DATA_PATH = 100


class UnsayableError(AudioError):
    """A text for which eSpeak has no sound, such as punctuation alone."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What to say and how. Raises AudioError for a text or a number outside these limits."""

    text: str  # plain text, of one line; marks such as `<b>` or `[[` have no meaning in it
    voice: str = "en"  # language and variant as eSpeak names them: `en`, `en-us+f2`
    rate: int = 170  # words a minute, 80 to 450
    pitch: int = 50  # 0 to 99; 50 is the variant's own
    pitch_range: int = 50  # 0 (monotone) to 99; 50 is the variant's own

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise AudioError("a text to say must not be empty")
        if len(self.text) > LONGEST_TEXT:
            raise AudioError(f"a text to say has at most {LONGEST_TEXT} characters, got {len(self.text)}")
        # Control characters would be commands to eSpeak, a NUL would cut the text, surrogates are no text.
        for position, character in enumerate(self.text):
            if unicodedata.category(character) in {"Cc", "Cs"}:
                raise AudioError(
                    f"a text to say has no control characters, got {character!r} at position {position} of "
                    f"{self.text!r}: replace line ends and tabs by spaces"
                )
        for name, low, high in (("rate", 80, 450), ("pitch", 0, 99), ("pitch_range", 0, 99)):
            if not low <= getattr(self, name) <= high:
                raise AudioError(f"{name} must lie in {low}..{high}, got {getattr(self, name)}")


class Espeak:
    """A running eSpeak, to be used in a `with` block.

    It lives in a process of its own (see `espeak_process`), so that each answer depends on its prompt alone
    and a crash of the library costs an error, not the program.

    >>> with Espeak() as espeak:
    ...     again = espeak.say(Prompt("seven")), espeak.say(Prompt("one")), espeak.say(Prompt("seven"))
    >>> bool((again[0] == again[2]).all())
    True
    """

    def __init__(self) -> None:
        try:
            loader = importlib.import_module("espeakng_loader")
            data_path = Path(loader.get_data_path())
        except (ImportError, RuntimeError) as missing:
            raise AudioError(f"the built-in voices need the package espeakng-loader: {missing}") from missing
        self._variants = {path.name for path in data_path.glob("voices/!v/*")}
        with ExitStack() as opened:
            data = _short_path(data_path, opened)
            self._complaints = opened.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(  # noqa: S603 - our own program and the loader's own paths
                [sys.executable, "-I", "-S", espeak_process.__file__, loader.get_library_path(), str(data)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                start_new_session=True,  # Ctrl-C is for the program, which then closes this
            )
            self._opened = opened.pop_all()

    def say(self, prompt: Prompt) -> NDArray[np.float32]:
        """Speak; the samples in [-1, 1] at `SAMPLE_RATE`, `(samples,)`. Raises UnsayableError if eSpeak has no sound
        for the text; AudioError if eSpeak does not know the voice, or is not running any more.
        """
        _, plus, variant = prompt.voice.partition("+")
        if plus and variant not in self._variants:  # eSpeak itself would leave it out without a word
            raise AudioError(f"eSpeak has no voice {prompt.voice!r}: there is no variant {variant!r}")
        data = self._asked(asdict(prompt))
        samples = np.frombuffer(data, dtype=np.int16)
        if not samples.any():
            raise UnsayableError(f"eSpeak voice {prompt.voice!r} has no sound for the text {prompt.text!r}")
        return samples.astype(np.float32) / np.float32(32768)

    def phones(self, text: str, voice: str = "en-us") -> list[list[str]]:
        """The phones of every word of a text, by eSpeak's names, without stress. Raises AudioError as `say` does."""
        said = self._asked({"phones": Prompt(text).text, "voice": voice}).decode()
        words = [[phone.strip("',%=|;-") for phone in word.split("_")] for word in said.split()]
        return [[phone for phone in word if phone] for word in words]

    def _asked(self, request: dict[str, object]) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise self._failure() from None
        header = self._process.stdout.read(4)
        if len(header) < 4:
            raise self._failure()
        (size,) = struct.unpack("<I", header)
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise self._failure()
        return data

    def close(self) -> None:
        """End the process. What is said afterwards is refused."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _failure(self) -> AudioError:
        """The process is gone: say why, as far as it is known."""
        if self._complaints.closed:
            return AudioError("this Espeak is closed: use it inside its `with` block")
        status = self._process.wait()
        self._complaints.seek(0)
        complaint = self._complaints.read().decode(errors="replace").strip()
        return AudioError(complaint or f"eSpeak's process ended with status {status} before it had answered")


def phones_of(text: str, espeak: Espeak) -> tuple[str, ...]:
    """The phones of a word, or words, one after another. Raises UnsayableError if there are none.

    >>> with Espeak() as espeak:
    ...     phones_of("seven", espeak)
    ('s', 'E', 'v', '@', 'n')
    """
    found = tuple(phone for word in espeak.phones(text) for phone in word)
    if not found:
        raise UnsayableError(f"eSpeak has no sound for the text {text!r}")
    return found


def _short_path(folder: Path, opened: ExitStack) -> Path:
    """A path to eSpeak's data folder that fits eSpeak's buffers; a link in a private folder if need be."""
    if len(bytes(folder)) <= _LONGEST_DATA_PATH:
        return folder
    link = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="espeak-"))) / "data"
    if len(bytes(link)) > _LONGEST_DATA_PATH:
        raise AudioError(
            f"eSpeak cannot use paths of more than {_LONGEST_DATA_PATH} bytes, and both its data folder {folder} "
            f"and a link at {link} are longer: set TMPDIR to a folder with a short path"
        )
    link.symlink_to(folder, target_is_directory=True)
    return link
