"""Who calls over UDP: a caller is asked once whether it is where it says it is, and then gets a socket of its own."""

import contextlib
import logging
import os
import socket
import time
from dataclasses import dataclass, field

from aioquic.buffer import Buffer
from aioquic.quic.configuration import SMALLEST_MAX_DATAGRAM_SIZE
from aioquic.quic.packet import QuicPacketType, QuicProtocolVersion, encode_quic_retry, pull_quic_header
from aioquic.quic.retry import QuicRetryTokenHandler

from ppspeech.network.address import Address

logger = logging.getLogger(__name__)

DATAGRAM_BYTES = 2**16
ID_BYTES = 8
WAITING_BYTES = 2**18
DRAINED = 1024
"""More datagrams than can wait here: none of a caller's is left when it gets a socket of its own."""

Source = tuple[str, int] | tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class Call:
    """A caller who has shown that it receives where it sends from. `connection`: a socket for it alone; `datagrams`:
    what has come of it by the other; `first_id`, `retry_id`: the names of a connection that QUIC binds its keys to.
    """

    connection: socket.socket
    source: Source
    first_id: bytes
    retry_id: bytes
    datagrams: list[bytes] = field(default_factory=list, repr=False)


class Switchboard:
    """The socket where connections of QUIC begin (RFC 9000, version 1).

    Anybody can write any address on a datagram. So the first one of a connection is answered with a token, smaller
    than the datagram was, and forgotten (section 8.1.2); who comes back with the token, within half a minute and from
    the same address, has received it there. Whatever else comes is dropped without an answer. Of a datagram the head
    alone is read here: what is inside, also of the first, is read where the session is.

    Raises `OSError` if the address cannot be had.
    """

    def __init__(self, address: Address) -> None:
        with _udp(address) as alone:  # or else who shares the port with us would share our callers
            port = alone.getsockname()[1]
        self._address = Address(address.host, port)
        self.socket = _udp(self._address, shared=True)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WAITING_BYTES)
        self._tokens = QuicRetryTokenHandler()

    def calls(self) -> list[Call]:
        """Those who call now."""
        found: dict[Source, Call] = {}
        for _ in range(DRAINED):
            try:
                data, source = self.socket.recvfrom(DATAGRAM_BYTES)
            except BlockingIOError:
                break
            if source in found:
                found[source].datagrams.append(data)
            elif (ids := self._admitted(data, source)) is not None:
                try:  # from here on all that this caller sends comes by a socket of its own
                    own = _udp(self._address, shared=True, peer=source)
                except OSError as error:  # we are out of descriptors; it sends all of this again
                    logger.warning("cannot take a call: %s", error)
                else:
                    found[source] = Call(own, source, *ids, [data])
        return list(found.values())

    def _admitted(self, data: bytes, source: Source) -> tuple[bytes, bytes] | None:
        """The connection's first two names, if this begins one and has a token of ours; else it may get one."""
        try:
            head = pull_quic_header(Buffer(data=data), host_cid_length=ID_BYTES)
        except ValueError:
            return None
        is_first = head.packet_type == QuicPacketType.INITIAL and head.version == QuicProtocolVersion.VERSION_1
        if not is_first or len(data) < SMALLEST_MAX_DATAGRAM_SIZE or len(head.destination_cid) < ID_BYTES:
            return None
        now, name = time.monotonic(), head.destination_cid
        if head.token:
            try:
                first = self._tokens.validate_token(address=source, destination_cid=name, token=head.token, now=now)
            except ValueError:
                return None
            return first, name
        ours = os.urandom(ID_BYTES)
        token = self._tokens.create_token(
            address=source, original_destination_connection_id=name, retry_source_connection_id=ours, now=now
        )
        answer = encode_quic_retry(
            version=QuicProtocolVersion.VERSION_1,
            source_cid=ours,
            destination_cid=head.source_cid,
            original_destination_cid=name,
            retry_token=token,
        )
        with contextlib.suppress(OSError):  # nobody can be at that address, or too many ask at once: they ask again
            self.socket.sendto(answer, source)
        return None


def _udp(address: Address, *, shared: bool = False, peer: Source | None = None) -> socket.socket:
    """A socket bound at an address, `shared` with others of this process; of one `peer` alone, where there is one."""
    family, _, _, _, where = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM)[0]
    made = socket.socket(family, socket.SOCK_DGRAM)
    try:
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(where)
        if peer is not None:
            made.connect(peer)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made
