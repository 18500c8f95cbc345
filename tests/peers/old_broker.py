"""A broker without MQTT 5: it refuses that version as the standard of 3.1.1 asks, and passes on the rest."""

import socket
import threading
from contextlib import contextmanager, suppress

REFUSED = b"\x20\x02\x00\x01"
"""CONNACK: unacceptable protocol version."""


@contextmanager
def old_broker(port):
    """Listen in front of the broker at `port`; yield the port, and the list of versions that came."""
    versions, ending = [], []

    def serve(client):
        with client, suppress(OSError):
            first = client.recv(4096)
            versions.append(first[first.index(b"MQTT") + 4])
            if versions[-1] > 4:
                client.sendall(REFUSED)
                return
            with socket.create_connection(("127.0.0.1", port)) as broker:
                broker.sendall(first)
                back = threading.Thread(target=passed_on, args=(broker, client), daemon=True)
                back.start()
                passed_on(client, broker)

    def passed_on(one, other):
        with suppress(OSError):
            while data := one.recv(65_536):
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)

    def accept():
        while not ending:
            with suppress(OSError):
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listener.getsockname()[1], versions
        finally:
            ending.append(True)
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
