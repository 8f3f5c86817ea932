"""Who may ask the studio anything: the page that was given its token, for this host, from its own address."""

import hmac
import json
from collections.abc import Callable, Container, Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ppspeech.network import Address

BEARER = "Bearer "
MOST_BODY = 2**14  # bytes of a request
MOST_SENT = 2**12  # bytes of a token that are looked at

ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every answer, beside the policy."""


def policy(sockets: tuple[str, ...]) -> str:
    """What a page may load: its own files, and WebSockets of the servers that were started for it. Nothing inline."""
    speaks_to = " ".join(("'self'", *sockets))
    return (
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; "
        f"connect-src {speaks_to}; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class Guard:
    """In front of the application: refuses whoever does not show the token, or asks in another's name.

    `address`: where the studio listens; another `Host` is a name that a stranger lets point here (DNS rebinding).
    `token`: in the address that is printed, behind a #, which browsers send to nobody; the page keeps it for its tab
    and its port, and shows it in a header of what it asks. It is no cookie: those go to every server of a host,
    whatever its port. `public`: paths of pages and scripts, the same for everybody, which are given without it.
    What changes anything must come from a page of the studio's own (`Origin`), as JSON of at most `MOST_BODY` bytes.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        address: Address,
        token: str,
        public: Container[str] = (),
        sockets: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._app, self._token, self._public, self._sockets = app, token.encode(), public, sockets
        self.hosts = {str(address), f"localhost:{address.port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hear one request; see `ASGIApp`."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a WebSocket: the studio has none of its own
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = _with_headers(send, {**ALWAYS, "Content-Security-Policy": policy(self._sockets())})
        refused = self._refusal(scope)
        if refused is not None:
            await _say(answer, *refused)
            return
        body = await _body(receive)
        if body is None:
            await _say(answer, 413, f"a request has at most {MOST_BODY} bytes")
            return
        await self._app(scope, _again(body, receive), answer)

    def is_token(self, given: str | None) -> bool:
        """Whether it is the token; how long that takes tells nothing of it."""
        return given is not None and hmac.compare_digest(given[:MOST_SENT].encode(errors="replace"), self._token)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = _headers(scope)
        if headers is None or headers.get("host") not in self.hosts:
            return 421, "this is the studio of another address: open the one that it printed"
        origin, method = headers.get("origin"), scope["method"]
        if origin not in (None, f"http://{headers['host']}"):
            return 403, "a page of another address may not use the studio"
        if scope["path"] in self._public:  # wherever the link to it was
            return None if method in {"GET", "HEAD"} else (405, "pages are asked for by GET")
        if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
            return 403, "another site may not use the studio"
        shown = headers.get("authorization", "")
        if not self.is_token(shown.removeprefix(BEARER) if shown.startswith(BEARER) else None):
            return 401, "open the studio by the address that `ppspeech studio` printed: it has the token"
        if method not in {"GET", "HEAD", "POST"}:
            return 405, "the studio is asked by GET and POST"
        is_ours = origin is not None and headers.get("content-type", "").partition(";")[0] == "application/json"
        return None if method != "POST" or is_ours else (403, "what changes anything comes from the studio's own pages")


def _headers(scope: Scope) -> dict[str, str] | None:
    """By name in lower case; None if one that matters comes twice, and two readers might take another each."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        known = name.decode("latin-1").lower()
        if known in found and known in {"host", "origin", "authorization", "content-type", "sec-fetch-site"}:
            return None
        found[known] = value.decode("latin-1")
    return found


async def _body(receive: Receive) -> bytes | None:
    """All of a request's body; None for one that is too long."""
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return body
        body += bytes(message.get("body", b""))
        if len(body) > MOST_BODY:
            return None
        if not message.get("more_body", False):
            return body


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once more, for the application; then what comes after it, which is that the page has gone."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


def _with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
            message = {**message, "headers": [*message.get("headers", ()), *own]}
        await send(message)

    return sending


async def _say(send: Send, status: int, words: str) -> None:
    body = json.dumps({"error": words}).encode()
    head: list[Any] = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
