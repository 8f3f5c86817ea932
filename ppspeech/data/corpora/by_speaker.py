"""Clips in one folder a speaker: the layout in which people hand over the voices they know."""

from collections.abc import Mapping
from pathlib import Path

from ppspeech.errors import CorpusError

SUFFIXES = {".wav", ".flac", ".ogg"}


def clips_by_speaker(folder: Path) -> Mapping[str, list[Path]]:
    """The sound files in a folder of one folder for each speaker, by the speaker's name, both sorted; none is empty."""
    if not folder.is_dir():
        raise CorpusError(f"no folder {folder}: it holds one folder of clips for each speaker")
    found = {
        each.name: sorted(clip for clip in each.iterdir() if clip.suffix.lower() in SUFFIXES)
        for each in sorted(folder.iterdir())
        if each.is_dir()
    }
    if not found or not all(found.values()):
        raise CorpusError(f"{folder} needs one folder for each speaker with at least one sound file in each")
    return found
