"""The studio: pages over bundles, training, filters and parties, for one person at one machine. Faces of commands."""

from ppspeech.studio.app import Studio
from ppspeech.studio.run import run_studio

__all__ = ["Studio", "run_studio"]
