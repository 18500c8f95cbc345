"""A place on an MQTT bus, kept up in a thread of its own whatever becomes of the broker.

What is published while the broker is out of reach is dropped: both sides of a conversation say again what
matters when they meet again, and nothing old arrives by surprise. For the same reason the broker keeps no
session.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fieldbo.errors import InputError, VehicleError

if TYPE_CHECKING:
    import aiomqtt

_log = logging.getLogger(__name__)

_KEEPALIVE_S = 10
"""The broker publishes a last will after one and a half of these without a sign of life."""

_RETRY_S = (0.1, 2.0)
"""A broker that is gone is tried again so soon at first, and so seldom at last."""

_FAREWELL_S = 1.0
"""How long what was published last may take to leave."""


@dataclass(frozen=True)
class Broker:
    """Where an MQTT broker listens, and who one is there.

    Parameters
    ----------
    host : str
    port : int
        Often 1883, and 8883 with TLS.
    user_from, password_from : str, optional
        The environment variables that hold user name and password: no password stands in a file.
    tls : bool
        Whether the link is encrypted, and the broker's certificate checked against the machine's authorities,
    ca_file : str, optional
        or against the one in this PEM file.

    Examples
    --------
    >>> Broker("10.0.0.7", 8883, tls=True).url
    'mqtts://10.0.0.7:8883'
    """

    host: str = "localhost"
    port: int = 1883
    user_from: str | None = None
    password_from: str | None = None
    tls: bool = False
    ca_file: str | None = None

    def __post_init__(self) -> None:
        if not self.host:
            raise InputError("host is empty", expected="the broker's name or address", where="link.host")
        if not 0 < self.port < 65536:
            raise InputError(f"port = {self.port}", expected="1 to 65535", where="link.port")
        if self.password_from is not None and self.user_from is None:
            raise InputError(
                "a password without a user", expected="user_from beside password_from", where="link.user_from"
            )
        if self.ca_file is not None and not self.tls:
            raise InputError(
                "a ca_file without TLS", expected="tls = true beside ca_file", where="link.ca_file"
            )

    @property
    def url(self) -> str:
        """Where it is."""
        return f"{'mqtts' if self.tls else 'mqtt'}://{self.host}:{self.port}"

    def access(self) -> dict[str, Any]:
        """Return user, password and TLS as the client takes them.

        Raises
        ------
        InputError
            An environment variable is not set, or the certificate can't be read.
        """
        found: dict[str, Any] = {}
        for name, variable in (("username", self.user_from), ("password", self.password_from)):
            if variable is None:
                continue
            if variable not in os.environ:
                raise InputError(
                    f"the environment variable {variable} is not set",
                    expected=f"the {name} for {self.url} in it",
                    where=f"link.{'user' if name == 'username' else name}_from",
                    fix=f"export {variable}=... before you start",
                )
            found[name] = os.environ[variable]
        if self.tls:
            try:
                found["tls_context"] = ssl.create_default_context(cafile=self.ca_file)
            except OSError as error:
                raise InputError(
                    f"{self.ca_file} can't be read: {error}",
                    expected="a file of certificates (PEM)",
                    where="link.ca_file",
                ) from None
        return found


class MqttClient:
    """Publishes and hears JSON objects on topics below one's own.

    Parameters
    ----------
    broker : Broker
    topic : str
        What all topics begin with.
    hears : sequence of str
        Names of topics below it that are listened to.
    heard : Callable
        ``heard(name, payload, retained)``, with what came on one of them. Anyone may publish anything there:
        a message at which it raises an error is passed over, with a warning at the first of each kind.
    up : Callable
        ``up()`` each time that the broker is reached.
    down : Callable
        ``down(why)`` while it never was: something about it is wrong. Later it may come back any moment, and
        whoever waits for it knows best how long.
    present : str, optional
        The topic below that says whether one is online: retained, and the broker's to change if one falls
        silent. Only one can be present there at a time.

    Raises
    ------
    VehicleError
        aiomqtt is not installed.
    InputError
        The access to the broker can't be made up.
    """

    def __init__(
        self,
        broker: Broker,
        topic: str,
        hears: Sequence[str],
        heard: Callable[[str, bytes, bool], object],
        up: Callable[[], object],
        down: Callable[[str], object],
        present: str | None = None,
    ) -> None:
        if find_spec("aiomqtt") is None:
            raise VehicleError("MQTT needs aiomqtt, which is not installed: pip install 'fieldbo[mqtt]'")
        self._broker, self._topic, self._hears, self._present = broker, topic, tuple(hears), present
        self._heard, self._up, self._down = heard, up, down
        self._access = broker.access()
        self._outgoing: asyncio.Queue[_Message | None] | None = None  # while the broker is reached
        self._was_up = False
        self._warned: set[tuple[str, object]] = set()
        self._closing = False
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name=f"bus {topic}", daemon=True)
        self._thread.start()

    def publish(self, name: str, body: Any, *, qos: int = 1) -> None:
        """Publish plain data on a topic below, if the broker is reached; from any thread."""
        message = _Message(name, json.dumps(body, allow_nan=False).encode(), qos)
        self._soon(lambda: self._put(message))

    def close(self) -> None:
        """Send what was published, take leave, and let go of the broker; from any thread but its own."""
        self._closing = True
        self._soon(self._leave)
        self._thread.join(_FAREWELL_S)
        self._soon(self._cancel)
        self._thread.join(_FAREWELL_S)

    def _soon(self, call: Callable[[], object]) -> None:
        """Call something in the bus' own thread; nothing once it is closed."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)

    def _run(self) -> None:
        """Live for as long as the bus does."""
        self._loop.set_exception_handler(_without_closed_sockets)
        with (
            contextlib.suppress(asyncio.CancelledError),
            asyncio.Runner(loop_factory=lambda: self._loop) as one,
        ):
            one.run(self._keep_up())

    def _put(self, message: _Message) -> None:
        if self._outgoing is not None:
            self._outgoing.put_nowait(message)

    def _leave(self) -> None:
        """End the conversation when all is said; do not wait for one."""
        if self._outgoing is None:
            self._cancel()
            return
        if self._present is not None:
            self._outgoing.put_nowait(_Message(self._present, _OFFLINE, 1, retain=True))
        self._outgoing.put_nowait(None)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _keep_up(self) -> None:
        """Reach the broker, and reach it again whenever it is lost, until the bus is closed."""
        from aiomqtt import MqttError

        self._task = asyncio.current_task()
        wait_s = _RETRY_S[0]
        while not self._closing:
            try:
                async with self._client() as client:
                    await self._greet(client)
                    wait_s = _RETRY_S[0]
                    await self._converse(client)
            except MqttError as error:
                if not self._was_up:
                    self._down(f"the broker at {self._broker.url} can't be reached: {error}")
            finally:
                self._outgoing = None
            if not self._closing:
                await asyncio.sleep(wait_s)
                wait_s = min(2.0 * wait_s, _RETRY_S[1])

    def _client(self) -> aiomqtt.Client:
        from aiomqtt import Client, ProtocolVersion, Will

        will = None if self._present is None else Will(self._below(self._present), _OFFLINE, 1, retain=True)
        return Client(
            self._broker.host,
            self._broker.port,
            identifier=None if self._present is None else self._topic,  # its will ends with its connection
            protocol=ProtocolVersion.V5,
            clean_start=True,
            keepalive=_KEEPALIVE_S,
            timeout=_KEEPALIVE_S,
            will=will,
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],  # small messages leave at once
            **self._access,
        )

    def _below(self, name: str) -> str:
        return f"{self._topic}/{name}"

    async def _greet(self, client: aiomqtt.Client) -> None:
        """Listen, then say that one is there."""
        for name in self._hears:
            await client.subscribe(self._below(name), qos=1)
        if self._present is not None:
            await client.publish(self._below(self._present), _ONLINE, 1, retain=True)
        self._outgoing, self._was_up = asyncio.Queue(), True
        self._up()

    async def _converse(self, client: aiomqtt.Client) -> None:
        """Hear and publish until the broker is lost, or the bus is closed."""
        both = [asyncio.create_task(self._listen(client)), asyncio.create_task(self._speak(client))]
        try:
            ended, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)
        for task in ended:
            task.result()

    async def _listen(self, client: aiomqtt.Client) -> None:
        async for message in client.messages:
            name = str(message.topic).removeprefix(f"{self._topic}/")
            payload = message.payload if isinstance(message.payload, bytes) else b""
            try:
                self._heard(name, payload, bool(message.retain))
            except Exception as error:
                self._pass_over(name, error)

    def _pass_over(self, name: str, error: Exception) -> None:
        """Warn of a message that can't be understood, once of each kind: it may come again and again."""
        kind: object = type(error)
        why = repr(error)
        if isinstance(error, InputError):
            kind, why = error.expected, f"{error.problem}; expected: {error.expected}"
        if (name, kind) not in self._warned:
            self._warned.add((name, kind))
            _log.warning("a message on %s is passed over: %s", self._below(name), why)

    async def _speak(self, client: aiomqtt.Client) -> None:
        assert self._outgoing is not None
        while (message := await self._outgoing.get()) is not None:
            await client.publish(self._below(message.name), message.payload, message.qos, message.retain)


@dataclass(frozen=True)
class _Message:
    """What is to be published."""

    name: str
    payload: bytes
    qos: int
    retain: bool = False


_ONLINE, _OFFLINE = b'{"online": true}', b'{"online": false}'


def _without_closed_sockets(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Pass over that a socket was closed before it was looked at; the client finds out by itself."""
    if not isinstance(context.get("exception"), OSError):
        loop.default_exception_handler(context)
