"""The errors ppspeech raises on purpose.

Each message says what was wrong, with the value, and what to do about it. The command line prints the
message alone and exits with status 2; anything else is a defect and shows its traceback.
"""


class PpspeechError(Exception):
    """Base of every error that a user can act on."""


class AudioError(PpspeechError, ValueError):
    """A waveform or sound file that cannot be used: missing, empty, too short, not finite, silent."""


class CorpusError(PpspeechError, ValueError):
    """A corpus or table that is unknown, damaged or incomplete, or a split that would leak."""


class ModelError(PpspeechError, ValueError):
    """A model that cannot be built, trained or loaded as asked."""
