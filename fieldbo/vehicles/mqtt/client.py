"""An MQTT client that stays connected: paho-mqtt's network loop in a thread, with automatic reconnection.

It speaks MQTT 5, or 3.1.1 to a broker that does not know version 5: nothing here needs more. Messages
published while the broker is out of reach are dropped, and the broker keeps no session: both sides of the
conversation repeat what matters when they meet again, so nothing stale arrives by surprise.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from fieldbo.errors import InputError, VehicleError
from fieldbo.validation import settings

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage, MQTTMessageInfo
    from paho.mqtt.reasoncodes import ReasonCode

_log = logging.getLogger(__name__)

_KEEPALIVE_S = 10
"""The broker publishes the last will after one and a half of these without a sign of life."""

_RETRY_S = (1, 2)
"""Shortest and longest wait between attempts to reach the broker."""

_LOGIN_REJECTED = {0x86, 0x87, 0x8A, 0x8C}
"""Bad user name or password, not authorized, banned, bad authentication method: trying again is no use."""

_WRONG_VERSION = 0x84
"""Unsupported protocol version."""

_FAREWELL_S = 1.0
"""How long the last messages may take to be sent when the client closes."""


@dataclass(frozen=True)
class Presence:
    """A retained message that a program is online; the last will withdraws it if the program dies.

    Attributes
    ----------
    name : str
        Name of the topic.
    client : str
        Client id. If it is fixed, the will of an old connection cannot arrive after a new one is made.
    online, offline : mapping
        The message, and the one that withdraws it.
    at_once : bool
        Whether to send it after each connection; if not, `MqttClient.announce` does.
    """

    name: str
    client: str
    online: Mapping[str, Any] = field(default_factory=lambda: {"online": True})
    offline: Mapping[str, Any] = field(default_factory=lambda: {"online": False})
    at_once: bool = True


@settings("link")
class Broker:
    """The address of an MQTT broker, and how to log in.

    Examples
    --------
    >>> Broker("10.0.0.7", 8883, tls=True).url
    'mqtts://10.0.0.7:8883'
    """

    host: Annotated[str, Field(min_length=1)] = "localhost"
    """Name or address of the broker."""
    port: Annotated[int, Field(ge=1, le=65535)] = 1883
    """Port of the broker: usually 1883, or 8883 with TLS."""
    user_from: str | None = None
    """Environment variable that holds the user name."""
    password_from: str | None = None
    """Environment variable that holds the password; never write a password into a file."""
    tls: bool = False
    """Whether to encrypt the link and check the broker's certificate."""
    ca_file: str | None = None
    """PEM file of the authority that signed the broker's certificate; by default the system's authorities."""
    cert_file: str | None = None
    """PEM file of the certificate with which fieldbo identifies itself to the broker, if it asks for one."""
    key_file: str | None = None
    """PEM file of that certificate's private key, without a passphrase; by default in `cert_file`."""

    def __post_init__(self) -> None:
        scheme, marked, rest = self.host.rpartition("://")
        if marked:
            host = re.split("[:/]", rest)[0]
            tls = " and tls = true" if scheme in ("mqtts", "ssl", "wss") else ""
            raise InputError(
                f"host = {self.host!r}",
                expected="the name or the address of the broker alone",
                where="link.host",
                fix=f'leave out the scheme {scheme}://: write host = "{host}"{tls}; the port has its own key',
            )
        if self.password_from is not None and self.user_from is None:
            raise InputError(
                "password_from is given without user_from", expected="both", where="link.user_from"
            )
        for name in ("ca_file", "cert_file"):
            if getattr(self, name) is not None and not self.tls:
                raise InputError(
                    f"{name} is given without TLS", expected=f"tls = true with {name}", where=f"link.{name}"
                )
        if self.key_file is not None and self.cert_file is None:
            raise InputError("key_file is given without cert_file", expected="both", where="link.cert_file")

    @property
    def url(self) -> str:
        """The broker's address as a URL."""
        return f"{'mqtts' if self.tls else 'mqtt'}://{self.host}:{self.port}"

    def credentials(self) -> tuple[str | None, str | None]:
        """Return user name and password from the environment; None where none is needed.

        Raises
        ------
        InputError
            An environment variable is not set.
        """
        return self._variable("user", self.user_from), self._variable("password", self.password_from)

    def _variable(self, what: str, name: str | None) -> str | None:
        if name is None:
            return None
        if name not in os.environ:
            raise InputError(
                f"the environment variable {name} is not set",
                expected=f"the {what} for {self.url}",
                where=f"link.{what}_from",
                fix=f"set it first: export {name}=...",
            )
        return os.environ[name]

    def tls_context(self) -> ssl.SSLContext | None:
        """Return the TLS context; None without TLS.

        Raises
        ------
        InputError
            The certificate cannot be read.
        """
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:
            raise InputError(
                f"{self.ca_file} cannot be read: {error}",
                expected="a PEM file of certificates",
                where="link.ca_file",
            ) from None
        if self.cert_file is not None:
            try:
                context.load_cert_chain(self.cert_file, self.key_file, password=_no_passphrase)
            except OSError as error:
                files = " and ".join(file for file in (self.cert_file, self.key_file) if file is not None)
                raise InputError(
                    f"{files} cannot be used: {error}",
                    expected="PEM files of a certificate and its private key",
                    where="link.cert_file",
                ) from None
        return context

    @property
    def warnings(self) -> list[str]:
        """What makes the link unsafe, one sentence each; empty for a broker on this machine."""
        if self.host in {"localhost", "::1"} or self.host.startswith("127."):
            return []
        if self.user_from is None and self.cert_file is None:
            return [
                f"anyone who can reach the broker at {self.url} can command the robot: protect it with a "
                "password (user_from, password_from) or client certificates (cert_file, key_file)"
            ]
        if not self.tls:
            return [f"the password crosses the network to {self.url} in plain text: set tls = true"]
        return []


def _no_passphrase() -> str:
    """Fail instead of asking at the terminal, where nobody may be."""
    raise InputError(
        "the private key has a passphrase",
        expected="a PEM file without one, readable by you alone",
        where="link.key_file",
        fix="openssl pkey -in KEY -out KEY-WITHOUT-PASSPHRASE",
    )


class MqttClient:
    """Publishes and receives JSON messages on the topics below one topic.

    The callbacks run in the client's own thread and must not block.

    Parameters
    ----------
    broker : Broker
    topic : str
        Prefix of all topics.
    subscribe : sequence of str
        Names of the topics below `topic` to subscribe to; at QoS 1, again after each reconnection.
    on_message : Callable
        ``on_message(name, payload, retained)``. If it raises an error, the message is ignored, with a warning
        for the first of each kind: anyone may publish anything.
    on_ready : Callable
        ``on_ready()``, called after each connection once all subscriptions stand.
    on_failure : Callable
        ``on_failure(why)``, called when an attempt to connect fails before the first success: the settings
        are probably wrong. Later, a warning says that the broker has gone, and another that it is back.
    presence : Presence, optional
        Announces that this program is online.
    on_rejected : Callable, optional
        ``on_rejected(why)``, called instead of `on_failure` if the broker rejects the login.
    others : sequence of str
        Other topics of the broker, in full, to subscribe to.
    on_other : Callable, optional
        ``on_other(topic, payload, retained)``, like `on_message`, for those.

    Raises
    ------
    VehicleError
        paho-mqtt is not installed.
    InputError
        The credentials or the certificate cannot be read.
    """

    def __init__(
        self,
        broker: Broker,
        topic: str,
        subscribe: Sequence[str],
        on_message: Callable[[str, bytes, bool], object],
        on_ready: Callable[[], object],
        on_failure: Callable[[str], object],
        presence: Presence | None = None,
        on_rejected: Callable[[str], object] | None = None,
        others: Sequence[str] = (),
        on_other: Callable[[str, bytes, bool], object] | None = None,
    ) -> None:
        self._broker, self._topic, self._subscribe, self._presence = broker, topic, subscribe, presence
        self._on_message, self._on_ready, self._on_failure = on_message, on_ready, on_failure
        self._on_rejected = on_failure if on_rejected is None else on_rejected
        self._others, self._on_other = tuple(others), on_other
        self._ready, self._closing, self._disconnected = (threading.Event() for _ in range(3))
        self._was_ready = self._announced = self._answered = self._is_3 = False
        self._refused = set[bool]()  # versions, as `_is_3`
        self._warned: set[tuple[str, object]] = set()
        self._client = self._new_client()
        self._connect()

    def _connect(self) -> None:
        clean: dict[str, Any] = {} if self._is_3 else {"clean_start": True}  # 3.1.1 always starts clean
        self._client.connect_async(self._broker.host, self._broker.port, keepalive=_KEEPALIVE_S, **clean)
        self._client.loop_start()

    def _new_client(self) -> Client:
        try:
            from paho.mqtt.client import Client
            from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
        except ImportError:
            raise VehicleError(
                "paho-mqtt is not installed\n  fix:      pip install 'fieldbo[mqtt]'"
            ) from None
        presence = self._presence
        name = "" if presence is None else presence.client
        version = MQTTProtocolVersion.MQTTv311 if self._is_3 else MQTTProtocolVersion.MQTTv5
        client = Client(CallbackAPIVersion.VERSION2, name, protocol=version)
        user, password = self._broker.credentials()
        client.username_pw_set(user, password)
        if (context := self._broker.tls_context()) is not None:
            client.tls_set_context(context)
        if presence is not None:
            client.will_set(self._below(presence.name), _payload(presence.offline), qos=1, retain=True)
        client.reconnect_delay_set(*_RETRY_S)
        client.on_socket_open = _send_at_once
        client.on_connect, client.on_connect_fail = self._on_connect, self._on_connect_fail
        client.on_subscribe, client.on_disconnect = self._on_subscribe, self._lost
        client.on_message = self._received
        return client

    def _below(self, name: str) -> str:
        return f"{self._topic}/{name}"

    @property
    def ready(self) -> bool:
        """Whether the broker is within reach and all subscriptions stand."""
        return self._ready.is_set()

    def publish(self, name: str, body: Any, *, qos: int = 1, retain: bool = False) -> MQTTMessageInfo | None:
        """Publish plain data as JSON on a topic below; from any thread.

        Returns
        -------
        MQTTMessageInfo or None
            Whether the broker has confirmed it; None if the broker is out of reach.
        """
        payload = _payload(body)
        if not self._ready.is_set():
            return None
        info = self._client.publish(self._below(name), payload, qos, retain)
        return None if info.rc else info  # the connection may have broken just now

    def announce(self, online: Mapping[str, Any]) -> None:
        """Announce presence with this message."""
        assert self._presence is not None
        self._announced = self.publish(self._presence.name, online, retain=True) is not None

    def close(self) -> None:
        """Send what was published, announce the departure, and disconnect; not from a callback."""
        self._closing.set()
        if self._presence is not None and self._announced:
            offline = self.publish(self._presence.name, self._presence.offline, retain=True)
            with suppress(RuntimeError, ValueError):  # the connection broke meanwhile
                if offline is not None:
                    offline.wait_for_publish(_FAREWELL_S)
        if self._client.disconnect() == 0:
            self._disconnected.wait(_FAREWELL_S)  # not loop_stop(), which could wait for a connection attempt

    # -- callbacks, in paho's thread -------------------------------------------------------------------

    def _on_connect(
        self, client: Client, userdata: object, flags: object, reason: ReasonCode, properties: object
    ) -> None:
        self._answered = True
        if self._closing.is_set():
            client.disconnect()
        elif reason.is_failure and reason.value == _WRONG_VERSION and (not self._is_3) not in self._refused:
            self._refused.add(self._is_3)
            self._change_version(client)
        elif reason.is_failure:
            rejected = reason.value in _LOGIN_REJECTED
            self._report(
                f"the broker at {self._broker.url} rejected the {'login' if rejected else 'connection'}: "
                f"{reason}",
                self._on_rejected if rejected else self._on_failure,
            )
        else:
            self._disconnected.clear()
            topics = dict.fromkeys([*map(self._below, self._subscribe), *self._others])
            client.subscribe([(topic, 1) for topic in topics])

    def _change_version(self, client: Client) -> None:
        """Connect with the other version of MQTT from now on."""
        client.on_connect = client.on_disconnect = client.on_connect_fail = None
        client.disconnect()
        self._is_3, self._answered = not self._is_3, False
        _log.info("using MQTT %s with the broker at %s", "3.1.1" if self._is_3 else "5", self._broker.url)
        self._client = self._new_client()
        self._connect()

    def _on_subscribe(self, client: Client, *_: object) -> None:
        """Announce presence once the subscriptions stand; by now paho has repeated what was in flight."""
        if self._was_ready and not self._ready.is_set():
            _log.warning("the broker at %s is back", self._broker.url)
        self._was_ready = True
        self._ready.set()
        if self._presence is not None and self._presence.at_once:
            self.announce(self._presence.online)
        self._on_ready()

    def _on_connect_fail(self, client: Client, userdata: object) -> None:
        if self._closing.is_set():
            client.disconnect()
        # paho calls this while it handles the error, and passes it on in no other form.
        self._report(
            f"the broker at {self._broker.url} cannot be reached: {sys.exc_info()[1]}", self._on_failure
        )

    def _report(self, why: str, to: Callable[[str], object]) -> None:
        if not self._was_ready:
            to(why)

    def _lost(self, client: Client, userdata: object, *_: object) -> None:
        if self._ready.is_set() and not self._closing.is_set():
            _log.warning("the broker at %s cannot be reached; fieldbo keeps trying", self._broker.url)
        silent = not (self._answered or self._was_ready or self._closing.is_set())
        self._ready.clear()
        self._announced = self._answered = False
        self._disconnected.set()
        if silent and not self._is_3:  # a broker may not even understand that this is version 5
            self._change_version(client)
        elif silent:
            tls = "" if self._broker.tls else ", or expects TLS (tls = true)"
            self._report(
                f"what listens at {self._broker.url} closed the connection without an answer: perhaps it is "
                f"no MQTT broker{tls}",
                self._on_failure,
            )

    def _received(self, client: Client, userdata: object, message: MQTTMessage) -> None:
        topic, payload, retained = message.topic, bytes(message.payload), bool(message.retain)
        name = topic.removeprefix(f"{self._topic}/")
        if name in self._subscribe and name != topic:
            self._pass_on(self._on_message, name, topic, payload, retained)
        if topic in self._others and self._on_other is not None:
            self._pass_on(self._on_other, topic, topic, payload, retained)

    def _pass_on(
        self,
        take: Callable[[str, bytes, bool], object],
        name: str,
        topic: str,
        payload: bytes,
        retained: bool,
    ) -> None:
        try:
            take(name, payload, retained)
        except Exception as error:
            self._ignore(topic, error)

    def _ignore(self, topic: str, error: Exception) -> None:
        """Warn about a message that cannot be understood, once per kind: it may come again and again."""
        kind: object = type(error)
        why = repr(error)
        if isinstance(error, InputError):
            kind, why = error.expected, f"{error.problem}; expected: {error.expected}"
        if (topic, kind) not in self._warned:
            self._warned.add((topic, kind))
            _log.warning("ignored a message on %s: %s", topic, why)


def _payload(body: Any) -> bytes:
    return json.dumps(body, allow_nan=False).encode()


def _send_at_once(client: Client, userdata: object, sock: Any) -> None:
    """Switch off the delay that TCP adds to small messages."""
    with suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
