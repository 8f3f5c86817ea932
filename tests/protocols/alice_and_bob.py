"""Two parties over channels that a test holds in its hand."""

from ppspeech.channel import Channel
from ppspeech.protocols import Party


def as_alice(channel: Channel) -> Party:
    return Party("alice", {"bob": channel})


def as_bob(channel: Channel) -> Party:
    return Party("bob", {"alice": channel})
