"""Logs that programs read: one JSON object a line, of public facts alone."""

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

FIELDS = "fields"
"""The attribute of a record that holds facts beside its message."""


class JsonFormatter(logging.Formatter):
    """A record as one line: time, level, where it comes from, what happened, and the record's `fields`.

    No traceback is ever written: the values in it may be someone's speech.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One JSON object."""
        said: dict[str, Any] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "from": record.name,
            "event": record.getMessage(),
        }
        return json.dumps(said | getattr(record, FIELDS, {}))


@contextmanager
def log_as_json(stream: TextIO | None = None, level: int = logging.INFO) -> Iterator[None]:
    """While it lasts, everything that ppspeech logs goes to `stream` (standard error by default) as JSON lines."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("ppspeech")
    before = logger.handlers, logger.level, logger.propagate
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.handlers, _, logger.propagate = before
        logger.setLevel(before[1])
