"""One session between two parties: frames, streams, hellos, transcripts, and channels in memory."""

from ppspeech.network.channel.frames import HELLO, NO_SESSION, pack_header
from ppspeech.network.channel.hello import NAME, NONCE_BYTES, Hello, Params, canonical
from ppspeech.network.channel.transcript import Transcript

__all__ = ["HELLO", "NAME", "NONCE_BYTES", "NO_SESSION", "Hello", "Params", "Transcript", "canonical", "pack_header"]
