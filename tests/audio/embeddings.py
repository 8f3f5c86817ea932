"""Which public networks are installed here: tests that need one are skipped, with the reason, where it is not."""

import pytest

from ppspeech.audio.embeddings import weights_of
from ppspeech.audio.embeddings.wheels import WheelName
from ppspeech.errors import MissingPackageError


def _missing(name: WheelName) -> str:
    try:
        weights_of(name)
    except MissingPackageError as missing:
        return str(missing)
    return ""


def needs(name: WheelName) -> pytest.MarkDecorator:
    """A mark for tests that need these weights."""
    missing = _missing(name)
    return pytest.mark.skipif(bool(missing), reason=missing or "there")
