"""Which song is it? By frames at every offset, or by landmarks in a sealed map."""

from ppspeech.protocols.music.landmarks import (
    BLOCK,
    LandmarkMap,
    LandmarkShape,
    ask_landmarks,
    give_map,
    look_up_landmarks,
    seal_landmarks,
    take_map,
    votes,
)
from ppspeech.protocols.music.matching import find_song, music_cost, prepare_music, serve_songs
from ppspeech.protocols.music.shape import METHODS, Method, MusicShape, Songs

__all__ = [
    "BLOCK",
    "METHODS",
    "LandmarkMap",
    "LandmarkShape",
    "Method",
    "MusicShape",
    "Songs",
    "ask_landmarks",
    "find_song",
    "give_map",
    "look_up_landmarks",
    "music_cost",
    "prepare_music",
    "seal_landmarks",
    "serve_songs",
    "take_map",
    "votes",
]
