"""Where a party listens, and which addresses may be used without TLS."""

import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import Self

from ppspeech.errors import PpspeechError


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a TCP port.

    >>> Address.parse("127.0.0.1:7000"), str(Address.parse("[::1]:7000"))
    (Address(host='127.0.0.1', port=7000), '[::1]:7000')
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `HOST:PORT`, with an IPv6 address in square brackets. Raises `PpspeechError` for anything else."""
        host, colon, port = text.rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        if not colon or not bare or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65535:
            raise PpspeechError(f"an address is HOST:PORT, such as 127.0.0.1:7000, got {text!r:.80}")
        return cls(bare, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can be meant. A name is not enough: who answers for it may change."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def reachable(self) -> "Address":
        """Where others find a party that listens here: at this machine's own address, where it listens at all of them.

        Nothing is sent: the route to an address that nobody has is looked up.
        """
        try:
            everywhere = ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            everywhere = False
        if not everywhere:
            return self
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect(("192.0.2.1", 9))
                return Address(probe.getsockname()[0], self.port)
        except OSError:
            return Address(socket.gethostname(), self.port)

    def check_security(self, has_tls: bool, insecure: bool) -> None:
        """Refuse what others could hear: no TLS without `insecure`, which is for plain TCP on loopback addresses."""
        if has_tls and insecure:
            raise ValueError("insecure=True is for plain TCP; with TLS leave it out")
        if not has_tls and not insecure:
            raise ValueError("a session needs TLS; insecure=True allows plain TCP on a loopback address, for tests")
        if not has_tls and not self.is_loopback:
            raise ValueError(f"plain TCP is for loopback addresses such as 127.0.0.1 alone, got {self}")


def neighborhood(host: str) -> str:
    """What one subscriber has: an IPv4 address, or the 2^64 addresses of an IPv6 network.

    >>> neighborhood("192.0.2.7"), neighborhood("2001:db8:0:1::7"), neighborhood("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8:0:1::/64', '192.0.2.7')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is None:
            return str(ipaddress.ip_network((address, 64), strict=False))
        address = address.ipv4_mapped
    return str(address)
