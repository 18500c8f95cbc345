"""Who may use the console: whoever has the token, from a page that the console itself served.

The checks come before any other code sees a request:

- The ``Host`` must be an address under which the console is served: a page of somebody else's that got its
  own name to point here (DNS rebinding) sends another one.
- The token comes once, in the address that is printed, and then as a cookie that no script can read.
- An ``Origin`` must be the console's own: a browser sends the origin of the page that makes a request.
- A request has a small body, and takes one of a few streams that stay open.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 64 * 1024
"""Bytes of a request; an area drawn by hand takes a few thousand."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_WEEK_S = 7 * 24 * 3600

_NO_TOKEN = (
    "This console needs its token: open the whole address that fieldbo console has printed, with ?token=...\n"
)


@dataclass(frozen=True)
class Guard:
    """Refuses requests without the token, under another host, from another origin, or too large.

    Parameters
    ----------
    app : ASGI application
    token : str
    hosts : frozenset of str
        Hosts with ports under which the console is served: ``127.0.0.1:8642``.
    secure : bool
        Whether it is served over TLS.
    """

    app: ASGIApp
    token: str = field(repr=False)
    hosts: frozenset[str]
    secure: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # websockets are closed without an answer
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, _with_headers(send))
            return
        await self.app(scope, _limited(receive), _with_headers(send))

    @property
    def cookie(self) -> str:
        """Name of the cookie; other ports of this machine see it, too, but have another name for theirs."""
        return f"fieldbo_{min(self.hosts).rpartition(':')[2]}"

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is not passed on; None for one that is."""
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if host not in self.hosts:
            return PlainTextResponse(f"This console is not {host[:200]!r}.\n", 421)
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        own = f"{'https' if self.secure else 'http'}://{host}"
        if (origin is not None and origin.lower() != own) or (
            scope["method"] not in ("GET", "HEAD") and site not in ("none", "same-origin")
        ):
            return PlainTextResponse("Another page sent this request.\n", 403)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 12 or int(length) > LARGEST_BODY:
            return PlainTextResponse(f"At most {LARGEST_BODY} bytes, please.\n", 413)
        try:
            query = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=20)
        except ValueError:
            return PlainTextResponse("The address has too many parts.\n", 400)
        if scope["path"] == "/" and "token" in query:
            return self._admitted(query)
        given = headers.get("authorization", "").removeprefix("Bearer ") or self._from_cookie(headers)
        return None if self._is_token(given) else PlainTextResponse(_NO_TOKEN, 401)

    def _admitted(self, query: dict[str, list[str]]) -> Response:
        """Return the page without the token in its address, and with the cookie, if the token is right."""
        if not self._is_token(query.pop("token")[0]):
            return PlainTextResponse(f"The token is wrong. {_NO_TOKEN}", 401)
        rest = urlencode(query, doseq=True)
        response = RedirectResponse(f"/?{rest}" if rest else "/", 303)
        response.set_cookie(
            self.cookie,
            self.token,
            httponly=True,
            samesite="strict",
            secure=self.secure,
            max_age=_WEEK_S,
        )
        return response

    def _from_cookie(self, headers: Headers) -> str:
        pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        return next((value for name, _, value in pairs if name == self.cookie), "")

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


def _with_headers(send: Send) -> Send:
    """Add the headers that keep a browser from doing more than the console needs."""

    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
        await send(message)

    return sender


class TooLargeError(Exception):
    """A body without a stated length has grown too large."""


def _limited(receive: Receive) -> Receive:
    """Stop reading a body that grows beyond the limit."""
    size = 0

    async def receiver() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > LARGEST_BODY:
            raise TooLargeError
        return message

    return receiver
