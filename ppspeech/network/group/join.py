"""Meet the others of a group: whoever is late is waited for, and whoever starts again may come back.

Until everyone is there a party may leave and return, from a crash too; its new connection takes the place of the old
one. Then all are told to begin. If somebody is still missing when the time is over, everyone who came is told who.
"""

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace

from ppspeech.errors import PeerGoneError, PeerTimeoutError, PpspeechError, ProtocolError, WrongKeyError
from ppspeech.network.channel.session import StreamChannel
from ppspeech.network.group.file import Group
from ppspeech.network.group.identity import LARGEST, Identity, verify
from ppspeech.network.limits import Limits
from ppspeech.network.tls.connect import connect
from ppspeech.network.tls.context import ClientTls, ServerTls
from ppspeech.network.tls.listener import Listener

INTRODUCTION = 80
BEGIN = 81
LONGEST_WORD = 1000
RETRY_SECONDS = 0.1
PATIENCE = 3  # how much longer than the hub the others wait for one message: it waits for all of them meanwhile

Say = Callable[[str], None]


@contextlib.contextmanager
def join(
    group: Group,
    name: str,
    identity: Identity,
    *,
    limits: Limits | None = None,
    say: Say = lambda _: None,
    listener: Listener | None = None,
) -> Iterator[Mapping[str, StreamChannel]]:
    """Channels to everyone `name` talks to, once all of the group are there; closed at the end of the block.

    An error inside aborts every channel, so that no other party waits in vain. `say` is told in words what happens; a
    `listener` may have been bound before. Raises `ProtocolError` with the names of those who did not come in time.
    """
    member, chosen = group.member(name), limits or Limits()
    group.check_identity(name, identity)
    deadline = time.monotonic() + group.wait_seconds
    guests = [other for other in group.others(name) if group.listens(name, other)]
    channels: dict[str, StreamChannel] = {}
    with ExitStack() as stack:
        if guests and listener is None:
            assert member.address is not None
            try:
                tls = ServerTls(identity.certificate, identity.key)
                listener = stack.enter_context(Listener(member.address, tls=tls, limits=chosen))
            except OSError as error:
                raise PpspeechError(f"cannot listen at {member.address}: {error}") from None
        try:
            for host in (other for other in group.others(name) if other not in guests):
                channels[host] = _visit(group, name, host, identity, chosen, deadline, say)
            if guests:
                assert listener is not None
                _receive_guests(group, name, guests, listener, channels, deadline, say)
            _begin_together(group, name, channels, guests)
            say("everyone is there")
            yield {other: channels[other] for other in group.others(name)}  # in the group's order, not as they came
        except BaseException as error:
            for channel in channels.values():
                channel.fail(error)
            raise
        for channel in channels.values():
            channel.close()


def _visit(
    group: Group, name: str, host: str, identity: Identity, limits: Limits, deadline: float, say: Say
) -> StreamChannel:
    """Connect to one who listens, as often as it takes."""
    member = group.member(host)
    assert member.address is not None
    patient = replace(
        limits,
        message_seconds=max(PATIENCE * limits.message_seconds, group.wait_seconds + limits.handshake_seconds),
        session_seconds=max(limits.session_seconds, 2 * group.wait_seconds),
    )
    say(f"looking for {host} at {member.address}")
    while True:
        left = max(RETRY_SECONDS, deadline - time.monotonic())
        hurried = replace(patient, handshake_seconds=min(limits.handshake_seconds, left))
        try:
            channel = connect(
                member.address, group.protocol, {"group": group.digest}, tls=ClientTls(pin=member.pin), limits=hurried
            )
            channel.send(INTRODUCTION, identity.sign(_statement(channel.session, name, member.pin)))
        except (PeerGoneError, PeerTimeoutError) as error:
            if time.monotonic() > deadline:
                raise PeerTimeoutError(f"{host} was not there within {group.wait_seconds:g} seconds: {error}") from None
            time.sleep(RETRY_SECONDS)
        else:
            say(f"{host} is there")
            return channel


def _receive_guests(
    group: Group,
    name: str,
    guests: list[str],
    listener: Listener,
    channels: dict[str, StreamChannel],
    deadline: float,
    say: Say,
) -> None:
    """Wait for those who connect; one who comes again takes the place it had."""
    refused = ""
    own_pin = group.member(name).pin

    def admit(channel: StreamChannel) -> str:
        return _recognize(channel, group, guests, own_pin)

    with listener.reception(group.protocol, {"group": group.digest}, admit) as reception:
        while missing := [guest for guest in guests if guest not in channels]:
            came = reception.next(deadline - time.monotonic())
            if came is None:
                names = missing[0] if len(missing) == 1 else f"{', '.join(missing[:-1])} and {missing[-1]}"
                word = f"{names} did not come within {group.wait_seconds:g} seconds"
                _tell_all(channels, guests, word)
                raise PeerTimeoutError(word + (f"; someone was refused: {refused}" if refused else ""))
            if isinstance(came, ProtocolError):
                refused = str(came)
                continue
            channel, guest = came
            if guest in channels:
                channels[guest].abort()
                say(f"{guest} came again")
            channels[guest] = channel
            say(f"{guest} is there ({len([g for g in guests if g in channels])} of {len(guests)})")


def _recognize(channel: StreamChannel, group: Group, guests: list[str], own_pin: str) -> str:
    """Which guest is calling."""
    channel.expect_within(channel.limits.handshake_seconds, lambda: None)
    signed = channel.receive(INTRODUCTION, at_most=LARGEST)
    pin = hashlib.sha256(signed[2 : 2 + int.from_bytes(signed[:2], "big")]).hexdigest()
    for guest in guests:
        if group.member(guest).pin == pin:
            verify(signed, _statement(channel.session, guest, own_pin), pin)
            return guest
    raise WrongKeyError("someone with a certificate that is not in the group called")


def _statement(session: bytes, name: str, host_pin: str) -> bytes:
    """What a caller signs."""
    return b"ppspeech group\x00" + session + bytes.fromhex(host_pin) + name.encode("ascii")


def _begin_together(group: Group, name: str, channels: Mapping[str, StreamChannel], guests: list[str]) -> None:
    """Those who listen tell those who connected that everyone is there, or who is not."""
    for guest in guests:
        try:
            channels[guest].send(BEGIN, b"")
        except ProtocolError:
            word = f"{guest} left again before {name} could begin"
            _tell_all(channels, guests, word)
            raise PeerGoneError(word) from None
    for host in group.others(name):
        if host not in guests:
            said = channels[host].receive(BEGIN, at_most=LONGEST_WORD)
            if said:
                raise PeerGoneError(f"{host} says: {said.decode(errors='replace')}")


def _tell_all(channels: Mapping[str, StreamChannel], guests: list[str], word: str) -> None:
    for guest in guests:
        if guest in channels:
            with contextlib.suppress(ProtocolError):
                channels[guest].send(BEGIN, word.encode()[:LONGEST_WORD])
