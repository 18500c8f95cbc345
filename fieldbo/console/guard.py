"""Who may use the console: whoever has the token, from a page that the console itself served.

The checks come before any other code sees a request:

- The ``Host`` must be an address under which the console is served, or a name that its operator has stated: a
  page of somebody else's that got its own name to point here (DNS rebinding) sends another one.
- The token comes once, in the address that is printed, and then as a cookie that no script can read.
- An ``Origin`` must be the console's own: a browser sends the origin of the page that makes a request.
- A request has a small body, and takes one of a few streams that stay open.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fieldbo.errors import InputError

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


_OTHER_PAGE = "Another page sent this request.\n"


@dataclass(frozen=True)
class Guard:
    """Refuses requests without the token, under another host, from another origin, or too large.

    Parameters
    ----------
    app : ASGI application
    token : str
    names : frozenset of HostName
        Under which the console is served: ``http://127.0.0.1:8642``.
    """

    app: ASGIApp
    token: str = field(repr=False)
    names: frozenset[HostName]

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
        await self.app(scope, _limit(receive), _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is not passed on; None for one that is."""
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        names = [name for name in self.names if name.host == host]
        if not names:
            return PlainTextResponse(_misdirect(host), 421)
        if foreign := _foreign(scope["method"], headers, names):
            return PlainTextResponse(foreign, 403)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 12 or int(length) > LARGEST_BODY:
            return PlainTextResponse(f"At most {LARGEST_BODY} bytes, please.\n", 413)
        try:
            query = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=20)
        except ValueError:
            return PlainTextResponse("The address has too many parts.\n", 400)
        if scope["path"] == "/" and "token" in query:
            return self._admitted(query, names)
        given = headers.get("authorization", "").removeprefix("Bearer ") or _in_cookie(headers, host)
        return None if self._is_token(given) else PlainTextResponse(_NO_TOKEN, 401)

    def _admitted(self, query: dict[str, list[str]], names: Sequence[HostName]) -> Response:
        """Return the page without the token in its address, and with the cookie, if the token is right.

        The address is relative, and the cookie is for where it is set: a proxy may serve the console below a
        path of its own, next to others.
        """
        if not self._is_token(query.pop("token")[0]):
            return PlainTextResponse(f"The token is wrong. {_NO_TOKEN}", 401)
        rest = urlencode(query, doseq=True)
        response = RedirectResponse(f"./?{rest}" if rest else "./", 303)
        response.set_cookie(
            _cookie(names[0].host),
            self.token,
            path=None,
            httponly=True,
            samesite="strict",
            secure=all(name.scheme == "https" for name in names),
            max_age=_WEEK_S,
        )
        return response

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


def _cookie(host: str) -> str:
    """Return the name of the cookie; other ports of a host see it, too, but have another name for theirs."""
    port = host.rpartition(":")[2]
    return f"fieldbo_{port}" if port.isdecimal() else "fieldbo"


def _in_cookie(headers: Headers, host: str) -> str:
    pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return next((value for name, _, value in pairs if name == _cookie(host)), "")


def _misdirect(host: str) -> str:
    """Return what a browser shows that came by a name which nobody has stated."""
    return (
        f"This console does not know that it is called {host[:200]!r}.\n"
        "If you came by a tunnel or a proxy of your own, end the console with Ctrl-C, and start it with\n"
        "  --host-name NAME:PORT\n"
        "NAME:PORT as in your browser's address, or https://NAME if the address begins with https.\n"
    )


def _foreign(method: str, headers: Headers, names: Sequence[HostName]) -> str:
    """Return why a request is refused that another page sent, or this one by another scheme; else nothing."""
    if "origin" in headers and (origin := headers["origin"].lower()) not in [name.origin for name in names]:
        scheme, _, host = origin.partition("://")
        if host != names[0].host or scheme not in ("http", "https"):
            return _OTHER_PAGE
        return (
            f"The page was opened with {scheme}, which this console does not expect.\n"
            f"If a proxy of yours adds that, start the console with --host-name {scheme}://{host}\n"
        )
    site = headers.get("sec-fetch-site", "none")
    return _OTHER_PAGE if method not in ("GET", "HEAD") and site not in ("none", "same-origin") else ""


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


def _limit(receive: Receive) -> Receive:
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


_NAME = re.compile(
    r"(?:(?P<scheme>https?)://)?"
    r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"
    r"(?::(?P<port>\d{1,5}))?"
)
_USUAL = {"http": 80, "https": 443}
"""Ports that an address need not name, and that browsers leave out."""


@dataclass(frozen=True)
class HostName:
    """An address under which a browser may reach the console.

    Attributes
    ----------
    scheme : str
        ``http`` or ``https``, as the browser sees it: a proxy may add TLS.
    host : str
        As browsers send it in ``Host``: with the port unless it is the usual one.
    """

    scheme: str
    host: str

    @classmethod
    def of(cls, text: str, scheme: str) -> HostName:
        """Return the name that somebody typed: ``lab.example.org``, ``localhost:9000``, ``https://lab``.

        Parameters
        ----------
        text : str
        scheme : str
            The scheme if it names none.

        Raises
        ------
        InputError
            It is not a host name, with a port or without one.

        Examples
        --------
        >>> HostName.of("localhost:9000", "http").origin
        'http://localhost:9000'
        >>> HostName.of("https://Lab.example.org:443", "http").host
        'lab.example.org'
        """
        found = _NAME.fullmatch(text)
        port = int(found["port"]) if found is not None and found["port"] else None
        if found is None or (port is not None and not 1 <= port <= 65535):
            raise InputError(
                f"--host-name {text}",
                expected="NAME or NAME:PORT, as in the browser's address, with https:// before it if a proxy "
                "adds TLS; without a path",
                where="--host-name",
                fix="for example --host-name localhost:9000, or --host-name https://lab.example.org",
            )
        scheme = found["scheme"] or scheme
        shown = "" if port in (None, _USUAL[scheme]) else f":{port}"
        return cls(scheme, found["name"].lower() + shown)

    @property
    def origin(self) -> str:
        """What browsers send in ``Origin`` from a page at this address."""
        return f"{self.scheme}://{self.host}"
