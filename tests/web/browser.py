"""A real browser for tests, with a microphone that hears a file: that of `ppspeech bench browser`."""

import pytest

from ppspeech.evidence.bench.browser import ASK, browser, new_page, what_is_missing, write_wave

__all__ = ["ASK", "browser", "needs_browser", "new_page", "write_wave"]

needs_browser = pytest.mark.skipif(what_is_missing() is not None, reason=f"there is no {what_is_missing()}")
