#!/usr/bin/env bash
# uvicorn 0.54.0 (h11 0.16.0): over `limit_concurrency`, a server may refuse everybody, not only those too many.
#
# The limit is documented as the number of concurrent connections beyond which requests get 503. One expects
# that of 20 connections that come at once, with a limit of 10, about 10 are served. But each request is judged
# by the number of connections that are open when it is read, and a server that was busy for a moment, or was
# suspended, accepts all of them before it reads the first request: then all 20 get 503, even though no request
# is being worked on. One after the other, the first 9 are served: the limit itself is never reached.
#
# Seen on Linux x86_64, CPython 3.11:
#
#     20 connections one after the other: 9 served, 11 refused
#     20 connections while the server is suspended: 0 served, 20 refused
#
# Fails if the suspended server serves any of the 20, or more or fewer than 9 are served one after the other.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check uvicorn==0.54.0 h11==0.16.0

cat > served.py <<'PYTHON'
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
PYTHON

cat > ask.py <<'PYTHON'
import signal
import socket
import subprocess
import sys
import time

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
command = [sys.executable, "-m", "uvicorn", "served:app", "--port", str(port), "--http", "h11"]
server = subprocess.Popen([*command, "--limit-concurrency", "10", "--log-level", "error"])


def ask():
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return connection


def status(connection):
    return connection.recv(100).split()[1].decode()


def told(how, statuses):
    print(f"20 connections {how}: {statuses.count('200')} served, {statuses.count('503')} refused")
    return statuses.count("200")


try:
    for _ in range(100):
        try:
            status(ask())
            break
        except OSError:
            time.sleep(0.1)
    time.sleep(1.0)
    kept, statuses = [], []
    for _ in range(20):
        kept.append(ask())
        statuses.append(status(kept[-1]))
    in_turn = told("one after the other", statuses)
    for connection in kept:
        connection.close()
    time.sleep(1.0)
    server.send_signal(signal.SIGSTOP)
    kept = [ask() for _ in range(20)]
    server.send_signal(signal.SIGCONT)
    at_once = told("while the server is suspended", [status(connection) for connection in kept])
finally:
    server.send_signal(signal.SIGCONT)
    server.terminate()
    server.wait()
sys.exit("it behaves otherwise by now" if (in_turn, at_once) != (9, 0) else 0)
PYTHON
venv/bin/python ask.py
