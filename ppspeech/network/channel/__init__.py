"""One session between two parties: frames, streams, hellos, transcripts, and channels in memory."""

from ppspeech.network.channel.hello import NAME, canonical
from ppspeech.network.channel.transcript import Transcript

__all__ = ["NAME", "Transcript", "canonical"]
