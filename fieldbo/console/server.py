"""Serve the console of a run on an address of this machine."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from fieldbo.console.app import app_of
from fieldbo.console.guard import Guard, HostName
from fieldbo.console.view import View
from fieldbo.errors import FieldboError, InputError
from fieldbo.record.store import RECORD
from fieldbo.runs.folder import folder_exists

TOKEN = "FIELDBO_CONSOLE_TOKEN"
"""Variable of the environment that holds the token; without it, each console has a new one."""

_LOCAL = "127.0.0.1"
_LEAST_TOKEN = 16
_MOST_CONNECTIONS = 1000
_PATIENCE_S = 5.0
_KEEP_ALIVE_S = 5
_WAITING = 2048
_LARGEST_HEAD = 16 * 1024


@dataclass(frozen=True)
class Place:
    """Where a console is served.

    Parameters
    ----------
    port : int
        0 for any that is free.
    network : str, optional
        Address or name of this machine under which others reach the console; None serves this machine alone.
    cert, key : Path, optional
        Certificate and private key, in PEM, for TLS.
    host_names : sequence of str, optional
        Other names under which a browser may reach it, by a tunnel or a proxy: ``localhost:9000``,
        ``https://lab.example.org``.
    token : str
        By default that of the environment, or a new one.
    """

    port: int
    network: str | None = None
    cert: Path | None = None
    key: Path | None = None
    host_names: Sequence[str] = ()
    token: str = field(default_factory=lambda: os.environ.get(TOKEN) or secrets.token_urlsafe(24), repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise InputError(f"port = {self.port}", expected="0 to 65535", where="--port")
        if len(self.token) < _LEAST_TOKEN or not self.token.isascii() or not self.token.isprintable():
            raise InputError(
                f"the token is too short, or not plain ASCII: {len(self.token)} characters",
                expected=f"at least {_LEAST_TOKEN} printable ASCII characters that nobody can guess",
                where=TOKEN,
                fix="leave the variable empty; then each console makes a token of its own",
            )
        if (self.cert is None) != (self.key is None):
            raise InputError(
                "only one of --cert and --key was given", expected="both", where="--cert and --key"
            )
        self.names(self.port)  # raises an error for a name that is none

    @property
    def scheme(self) -> str:
        """``http``, or ``https`` with a certificate."""
        return "http" if self.cert is None else "https"

    def bound(self) -> socket.socket:
        """Return a socket that is bound to the address.

        Raises
        ------
        InputError
            The port is in use, or the address is none of this machine's.
        """
        host = self.network or _LOCAL
        if host in ("0.0.0.0", "::"):
            raise InputError(
                f"--network {host}",
                expected="the one address, or name, under which the others reach this machine",
                where="--network",
                fix="look it up with: ip addr",
            )
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, self.port, type=socket.SOCK_STREAM)[
                0
            ]
            bound = socket.socket(family, kind, protocol)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise InputError(
                    f"port {self.port} of {host} is in use",
                    expected="a port that no other program, or console, uses",
                    where="--port",
                    fix="close that console, or choose another port: --port 0 takes any that is free",
                ) from None
            raise InputError(
                f"{host}:{self.port} can't be served: {error.strerror or error}",
                expected="an address of this machine, and a port that you may use",
                where="--network" if self.network else "--port",
            ) from None
        return bound

    @property
    def _others(self) -> list[HostName]:
        return [HostName.of(name, self.scheme) for name in self.host_names]

    def names(self, port: int) -> frozenset[HostName]:
        """Return the names by which a browser may come."""
        hosts = [self.network.lower()] if self.network else [_LOCAL, "localhost"]
        usual = 443 if self.cert is not None else 80
        own = [f"{_bracketed(host)}:{port}" for host in hosts]
        own += [_bracketed(host) for host in hosts if port == usual]
        return frozenset([*(HostName(self.scheme, host) for host in own), *self._others])

    def addresses(self, port: int) -> list[str]:
        """Return the addresses to open, with the token: that of this machine, and those of other names."""
        own = f"{self.scheme}://{_bracketed(self.network or _LOCAL)}:{port}"
        return [f"{base}/?token={self.token}" for base in [own, *(name.origin for name in self._others)]]

    def check_certificate(self) -> None:
        """Raise an `InputError` unless certificate and key can be used."""
        if self.cert is None or self.key is None:
            return
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.cert, self.key)
        except (OSError, ssl.SSLError) as error:
            raise InputError(
                f"the certificate can't be used: {error.strerror or error}",
                expected="a certificate and its private key, each in a PEM file, without a password",
                where="--cert and --key",
            ) from None


class _Impatient(H11Protocol):
    """Closes connections that ask for nothing: they would count as connections for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(_PATIENCE_S, self._close_if_silent)

    def _close_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def serve(file: Path, place: Place, on_ready: Callable[[list[str]], object]) -> None:
    """Serve the console of a run until Ctrl-C.

    Parameters
    ----------
    file : Path
        The record.
    place : Place
    on_ready : Callable
        Called with the addresses to open, this machine's own first.

    Raises
    ------
    InputError
        The port is in use, or the certificate can't be used.
    RecordError
        The record is damaged, or of a newer version of fieldbo.
    """
    place.check_certificate()
    bound = place.bound()
    try:
        port = bound.getsockname()[1]
        view = View(file)
        guard = Guard(app_of(view), place.token, place.names(port))
        config = uvicorn.Config(
            guard,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            limit_concurrency=_MOST_CONNECTIONS,
            backlog=_WAITING,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=_LARGEST_HEAD,
            http=_Impatient,
            ssl_certfile=place.cert,
            ssl_keyfile=place.key,
        )
        bound.listen(_WAITING)  # from now on, a request waits until the server is ready
        on_ready(place.addresses(port))
        uvicorn.Server(config).run(sockets=[bound])
    finally:
        bound.close()


_STARTED_WITHIN_S = 120.0
_LOOK_EVERY_S = 0.1


class NotStartedError(FieldboError):
    """The process of a mission ended before it made a record; the message is its own."""


def start(mission: str, out: Path, arguments: Sequence[str]) -> Path:
    """Start ``fieldbo run`` and wait for its record; return the record.

    The process writes to a log next to the run folder. It is in a session of its own: Ctrl-C at the console
    does not reach it.

    Parameters
    ----------
    mission : str
        Name or file.
    out : Path
        The run folder to make.
    arguments : sequence of str
        Further arguments of ``fieldbo run``.

    Raises
    ------
    InputError
        The run folder exists.
    NotStartedError
        It ended without a record, or made none in time.
    """
    if out.exists():
        raise folder_exists(out)
    log = out.with_name(f"{out.name}.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as writing:
        process = subprocess.Popen(
            [sys.executable, "-m", "fieldbo", "run", mission, "--out", str(out), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    end_s = time.monotonic() + _STARTED_WITHIN_S
    while not (out / RECORD).exists():
        if process.poll() is not None or time.monotonic() > end_s:
            output = log.read_text(encoding="utf-8", errors="replace").strip()
            if process.poll() is not None:
                log.unlink(missing_ok=True)
            raise NotStartedError(output.removeprefix("fieldbo: ") or f"{mission} was not started")
        time.sleep(_LOOK_EVERY_S)
    return out / RECORD
