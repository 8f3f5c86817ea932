"""Who is at the other end of a session, as far as it has proved it."""

from ppspeech.channel import Channel
from ppspeech.network import StreamChannel


def peer_name(channel: Channel) -> str:
    """A name that stays the same from session to session, to count queries by.

    The fingerprint of the client's certificate where it has shown one (`--client-ca`), which it cannot change without
    a new certificate; else its address, which many may share and anyone may change; `local` without a network.
    """
    if not isinstance(channel, StreamChannel):
        return "local"
    peer = channel.peer
    if peer.certificate is not None:
        return f"certificate:{peer.certificate}"
    return "local" if peer.address is None else f"address:{peer.address}"


def session_name(channel: Channel) -> str:
    """What the logs call this session: public, and of no use to anyone."""
    return channel.session.hex()[:8] if isinstance(channel, StreamChannel) else "local"
