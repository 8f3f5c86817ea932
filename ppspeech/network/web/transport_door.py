"""What a page that pins our certificate asks of the server: WebTransport, and nothing else."""

import logging
from dataclasses import dataclass
from http import HTTPStatus

from ppspeech.errors import WrongSessionError
from ppspeech.network.address import Address
from ppspeech.network.limits import Limits
from ppspeech.network.tls.short_lived import ShortLivedCertificates
from ppspeech.network.web.calls import Call, Switchboard
from ppspeech.network.web.door import check_origins, may_ask
from ppspeech.network.web.transport import Headers, TransportStream

logger = logging.getLogger(__name__)

TRANSPORT_PATH = "/wt"


@dataclass(frozen=True, slots=True)
class TransportDoor:
    """Where pages come in over WebTransport, who check the server themselves: they pin one of `certificates`, which is
    the only authentication, so that no authority need be trusted. `origins`: as of `WebDoor`.

    Raises ValueError for an origin that is not one, or that others could change on its way.
    """

    address: Address
    certificates: ShortLivedCertificates
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_origins(self.origins)

    def url(self, address: Address) -> str:
        """What a page asks that finds us at an address."""
        return f"https://{address}{TRANSPORT_PATH}"

    def switchboard(self) -> Switchboard:
        """Where they call. Raises `OSError` if the address cannot be had."""
        return Switchboard(self.address)

    def admit(self, call: Call, limits: Limits, deadline: float) -> TransportStream:
        """Shake hands and hear what is asked for. Raises `ProtocolError` for anything but a session, refused."""
        stream = TransportStream(call, self.certificates.current, limits.message_bytes)
        try:
            refused = self._refused(stream.asked(deadline))
            stream.answer(HTTPStatus.OK if refused is None else refused[0], deadline)
            if refused is not None:
                logger.warning("no session: %s", refused[1])
                raise WrongSessionError(refused[1])
        except BaseException:
            stream.close()
            raise
        return stream

    def _refused(self, asked: Headers) -> tuple[HTTPStatus, str] | None:
        """Why a request is refused, for the log, in words of ours; None if it is not."""
        first = {name: value.decode("latin-1") for name, value in reversed(asked)}
        if first.get(b":path") != TRANSPORT_PATH:
            return HTTPStatus.NOT_FOUND, "a request for something else"
        if first.get(b":method") != "CONNECT" or first.get(b":protocol") != "webtransport":
            return HTTPStatus.BAD_REQUEST, "not WebTransport"
        if sum(name == b"origin" for name, _ in asked) > 1:
            return HTTPStatus.BAD_REQUEST, "several headers Origin"
        if not may_ask(first.get(b"origin"), first[b":authority"], self.origins, secure=True):
            return HTTPStatus.FORBIDDEN, "a page of another host"
        return None
