"""The errors ppspeech raises on purpose.

Each message says what was wrong, with the value, and what to do about it. The command line prints the
message alone and exits with status 2; anything else is a defect and shows its traceback.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class PpspeechError(Exception):
    """Base of every error that a user can act on."""


class MissingPackageError(PpspeechError, ImportError):
    """Something that needs a package which is not installed: a light installation has what clients need."""

    def __init__(self, what: str, package: str | None, install: str = "pip install 'ppspeech[full]'") -> None:
        super().__init__(f"{what} needs {package}, which is not installed: {install}")


class AudioError(PpspeechError, ValueError):
    """A waveform or sound file that cannot be used: missing, empty, too short, not finite, silent."""


class SpeechWarning(UserWarning):
    """Speech that is used, but that a model hears less well, or that tells less, than one might think."""


class OpenClusterWarning(SpeechWarning):
    """Speech that is sent to machines where others may read it, or run what they like."""


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show every SpeechWarning on standard error as a person would say it, without file and line."""
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, SpeechWarning):
            sys.stderr.write(f"warning: {message}\n")
        else:
            before(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", SpeechWarning)
        warnings.showwarning = show
        yield


class ClusterError(PpspeechError):
    """A cluster that cannot be had, or that lost what it was given too often."""


class CorpusError(PpspeechError, ValueError):
    """A corpus or table that is unknown, damaged or incomplete, or a split that would leak."""


class ModelError(PpspeechError, ValueError):
    """A model that cannot be built, trained or loaded as asked."""


class PrivacyError(PpspeechError, ValueError):
    """A privacy parameter, budget or guarantee that cannot hold as asked."""


class BundleError(PpspeechError, ValueError):
    """A released model that cannot be written or must not be trusted: incomplete, changed, or untrue."""


class ProtocolError(PpspeechError):
    """Base of what ends a session between parties. Detail stays here: the peer only ever sees a constant byte."""


class FrameTooLargeError(ProtocolError):
    """A frame announces more bytes than may come at this step."""


class BadLengthError(ProtocolError):
    """A message is not of the exact length this step requires, or the stream ended inside it."""


class BadTypeError(ProtocolError):
    """A message of another kind than the step requires, or bytes that are no frame at all."""


class BadSequenceError(ProtocolError):
    """A frame out of order: replayed, dropped or doubled."""


class WrongSessionError(ProtocolError):
    """A frame of another session, or parties that do not agree on protocol and parameters."""


class WrongKeyError(ProtocolError):
    """Something encrypted under another key than the one agreed on."""


class NotInGroupError(ProtocolError):
    """A received point or number that is not in its group."""


class BadCiphertextError(ProtocolError):
    """A received ciphertext that is malformed or out of range."""


class CheatError(ProtocolError):
    """A peer whose messages contradict each other: no party that follows the protocol sends them."""


class RangeError(ProtocolError, ValueError):
    """A value too large for its fixed-point form; raised before anything is sent."""


class PeerTimeoutError(ProtocolError):
    """The peer did not answer in time."""


class PeerGoneError(ProtocolError):
    """The peer closed the connection or aborted."""
