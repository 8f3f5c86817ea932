"""The `ppspeech` command: one file a command, each a thin door to the room that does the work."""

from ppspeech.cli.app import app, main

__all__ = ["app", "main"]
