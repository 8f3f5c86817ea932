"""The studio: pages over bundles, training, filters and parties, for one person at one machine. Faces of commands."""

from ppspeech.studio.app import Studio
from ppspeech.studio.choices import Places
from ppspeech.studio.run import entrance_file, run_studio

__all__ = ["Places", "Studio", "entrance_file", "run_studio"]
