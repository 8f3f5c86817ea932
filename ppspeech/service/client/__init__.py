"""The client people call: the voice stays with it."""

from ppspeech.service.client.connect import Door, connect_through, open_door
from ppspeech.service.client.gallery import connect_keeper
from ppspeech.service.client.speakers import SpeakerAnswer

__all__ = ["Door", "SpeakerAnswer", "connect_keeper", "connect_through", "open_door"]
