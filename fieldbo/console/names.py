"""Other names under which the console may be reached: through a tunnel, or behind a proxy."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fieldbo.errors import InputError

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
