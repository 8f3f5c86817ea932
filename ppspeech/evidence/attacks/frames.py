"""Clients that replay what was said in another session, cut messages short, or send bytes that are none."""

from collections.abc import Callable

from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto.lattice import LatticeParameters, key_length
from ppspeech.crypto.transfer import ANSWER_BYTES, PairSetup, Side
from ppspeech.errors import ProtocolError
from ppspeech.evidence.attacks import Gain, Target, attack
from ppspeech.evidence.attacks.keys import BASE_TRANSFERS
from ppspeech.evidence.attacks.target import Victim, is_answered
from ppspeech.network import StreamChannel, Transcript
from ppspeech.protocols import Kind, meet
from ppspeech.service import Ask, Request, receive_ready, send_request


@attack(
    "replayed_frames",
    "a session with another's frames, by sending again what was recorded",
    tasks=("words", "sentences"),
)
def replayed_frames(target: Target) -> Gain:
    """The first frame of a session that went well, in a new session, under the name of the old one."""
    tries, taken = (1 if target.quick else 3), 0
    victim = target.usual
    for _ in range(tries):
        with victim.session() as channel:
            record = Transcript(channel, keep_payloads=True)
            meet(record, Side.SECOND)
            send_request(channel, Request(Ask.PING))
            first = next(entry for entry in record.entries if entry.direction == "sent")
            recorded = channel.session
        with victim.session() as channel:
            own, channel.session = channel.session, recorded
            channel.send(first.kind, first.payload or b"")
            channel.session = own
            taken += is_answered(channel, CryptoKind.BASE_REPLY, ANSWER_BYTES * BASE_TRANSFERS)
    return Gain(taken, "frames", tries, taken > 0, f"{taken} of {tries} replayed frames were taken")


def _point(channel: StreamChannel, payload: bytes) -> bool:
    channel.send(CryptoKind.BASE_POINT, payload)
    return is_answered(channel, CryptoKind.BASE_REPLY, ANSWER_BYTES * BASE_TRANSFERS)


def _key(channel: StreamChannel, payload: bytes) -> bool:
    PairSetup.agree(channel, Side.SECOND)
    channel.send(Kind.LATTICE_KEY, payload)
    channel.send(Kind.REQUEST, Request(Ask.PING).encode())
    return _is_ready(channel)


def _request(channel: StreamChannel, payload: bytes) -> bool:
    meet(channel, Side.SECOND)
    channel.send(Kind.REQUEST, payload)
    return _is_ready(channel)


def _is_ready(channel: StreamChannel) -> bool:
    try:
        return receive_ready(channel)[0]
    except ProtocolError:
        return False


def _forged(victim: Victim) -> list[tuple[str, Callable[[StreamChannel, bytes], bool], bytes]]:
    """What is sent where, none of which a client that follows the protocol sends."""
    size = key_length(LatticeParameters())
    asked = victim.request.encode()
    return [
        ("a point cut short", _point, b"\x58" + b"\x66" * 30),
        ("a point and a byte", _point, b"\x58" + b"\x66" * 32),
        ("no point", _point, b""),
        ("a key cut short", _key, bytes(size - 1)),
        ("a key and a byte", _key, bytes(size + 1)),
        ("residues above the prime", _key, b"\xff" * size),
        ("a request cut short", _request, asked[:-1]),
        ("a request and a byte", _request, asked + b"\0"),
        ("a request that is none", _request, b"\xff" * len(asked)),
        ("no utterance", _request, asked[:2] + b"\0\0" + asked[4:]),
        ("more utterances than may be", _request, asked[:2] + b"\xff\xff" + asked[4:]),
        ("longer than anything that is heard", _request, asked[:-2] + b"\xff\xff"),
    ]


@attack(
    "forged_messages",
    "a server that goes on, or is gone, after messages that are cut short or no messages at all",
    tasks=("words", "sentences"),
)
def forged_messages(target: Target) -> Gain:
    """Each in a session of its own; afterwards the server must still be there for others."""
    victim = target.usual
    tried = [(what, _taken(victim, send, payload)) for what, send, payload in _forged(victim)]
    try:
        victim.client().close()
        gone = False
    except ProtocolError:
        gone = True
    taken = [what for what, went_on in tried if went_on]
    note = f"taken: {', '.join(taken)}" if taken else f"none of {len(tried)} was taken"
    return Gain(
        len(taken), "messages", len(tried), bool(taken) or gone, note + ("; the server is gone" if gone else "")
    )


def _taken(victim: Victim, send: Callable[[StreamChannel, bytes], bool], payload: bytes) -> bool:
    try:
        with victim.session() as channel:
            return send(channel, payload)
    except ProtocolError:
        return False
