"""The console by other names: through a tunnel, and below a path of a reverse proxy."""

import asyncio
import http.client
import json
import re
from contextlib import closing
from urllib.parse import urljoin

import pytest
from console_process import TOKEN, Console, rows_of
from reverse_proxy import reverse_proxy
from starlette.responses import PlainTextResponse
from waiting import SLOW_S, until

from fieldbo.console.guard import Guard, HostName
from fieldbo.errors import InputError
from fieldbo.messages import Command
from fieldbo.runs.steer import append, commands_file


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("localhost:9000", "http://localhost:9000"),
        ("Lab.example.org", "http://lab.example.org"),
        ("lab:80", "http://lab"),
        ("https://lab.example.org:443", "https://lab.example.org"),
        ("https://lab.example.org:8443", "https://lab.example.org:8443"),
        ("[::1]:9000", "http://[::1]:9000"),
    ],
)
def test_a_name_is_what_browsers_send(text, origin):
    assert HostName.of(text, "http").origin == origin


@pytest.mark.parametrize(
    "text", ["", "*", "*.example.org", "a b", "lab/", "ftp://lab", "lab:0", "lab:65536", "user@lab", "lab:"]
)
def test_what_is_no_name_is_an_error(text):
    with pytest.raises(InputError, match="--host-name"):
        HostName.of(text, "http")


def guarded(*names):
    """Return the guard of a console with one own name and others."""
    named = frozenset([HostName("http", "127.0.0.1:8642"), *(HostName.of(name, "http") for name in names)])
    return Guard(PlainTextResponse("in"), TOKEN, named)


def asked(guard, host, method="POST", query="", **headers):
    """Return status, text and headers of the answer to a request."""
    given = {"Host": host, "Authorization": f"Bearer {TOKEN}", **headers}
    raw = [(name.lower().encode(), value.encode()) for name, value in given.items()]
    scope = {"type": "http", "method": method, "path": "/", "query_string": query.encode(), "headers": raw}
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(guard(scope, None, send))
    answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], sent[1]["body"].decode(), answered


def test_a_stated_name_is_known_and_no_other():
    guard = guarded("localhost:9000", "https://lab.example.org")
    for host in ("127.0.0.1:8642", "localhost:9000", "lab.example.org"):
        assert asked(guard, host)[0] == 200
    for host in ("localhost:8642", "localhost", "lab.example.org:8642", "x.lab.example.org", "evil.example"):
        assert asked(guard, host)[0] == 421


def test_an_origin_is_that_of_the_name_by_which_the_request_came():
    guard = guarded("localhost:9000", "https://lab.example.org")
    assert asked(guard, "lab.example.org", Origin="https://lab.example.org")[0] == 200
    assert asked(guard, "localhost:9000", Origin="http://localhost:9000")[0] == 200
    status, said, _ = asked(guard, "lab.example.org", Origin="http://lab.example.org")
    assert (status, "opened with http," in said) == (403, True)
    assert asked(guard, "localhost:9000", Origin="https://lab.example.org")[0] == 403
    assert asked(guard, "127.0.0.1:8642", Origin="http://localhost:9000")[0] == 403
    assert asked(guard, "lab.example.org", **{"Sec-Fetch-Site": "cross-site"})[0] == 403


def test_cookies_of_consoles_under_one_host_differ_and_are_safe_where_a_proxy_adds_tls():
    guard = guarded("localhost:9000", "https://lab.example.org")

    def cookie(host):
        return asked(guard, host, "GET", f"token={TOKEN}")[2]["set-cookie"]

    assert cookie("127.0.0.1:8642").startswith("fieldbo_8642=")
    assert cookie("localhost:9000").startswith("fieldbo_9000=")
    assert cookie("lab.example.org").startswith("fieldbo=")
    assert ("Secure" in cookie("lab.example.org"), "Secure" in cookie("localhost:9000")) == (True, False)
    assert "path" not in cookie("lab.example.org").lower()  # the browser's: below the proxy's path


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    """A console that is reached as lab.example.org, for a mission that waits for answers."""
    started = Console(
        tmp_path_factory.mktemp("named"),
        *("lake-level-set", "--by-hand", "--out", "runs/lake-1", "--host-name", "lab.example.org"),
        *("--set", "agent.battery=600", "--set", "model.learn=false"),
    )
    until(lambda: any(row.kind == "query" for row in rows_of(started.run)), "the first order")
    yield started
    append(commands_file(started.run / "run.sqlite"), Command("end", "stop"))
    started.close()


def test_the_console_prints_the_address_of_each_name(console):
    assert f"or http://lab.example.org/?token={TOKEN}\n" in "".join(console.lines)


def test_below_a_path_of_a_proxy_page_files_stream_and_commands_work(console):
    base = "/boats/lake/"
    with reverse_proxy(console.port, base) as port:

        def request(method, path, body=None, **headers):
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SLOW_S)) as connection:
                connection.request(method, path, body, {"Host": "lab.example.org", **headers})
                answer = connection.getresponse()
                text = (answer.readline() if path.endswith("events") else answer.read()).decode()
                return answer.status, text, dict(answer.getheaders())

        status, _, headers = request("GET", f"{base}?token={TOKEN}")
        assert (status, urljoin(base, headers["location"])) == (303, base)
        known = {"Cookie": headers["set-cookie"].split(";")[0], "Origin": "http://lab.example.org"}
        status, page, _ = request("GET", base, **known)
        assert status == 200
        links = re.findall(r'(?:href|src)="([^"#][^"]*)"', page)
        links = [urljoin(base, link) for link in links if not link.startswith("data:")]
        assert len(links) == 8
        assert all(request("GET", link, **known)[0] == 200 for link in links)
        script = request("GET", f"{base}static/console.js", **known)[1]
        asked = re.findall(r'(?:EventSource|post|fetch)\("([^"]*)"', script)
        assert sorted(asked) == ["answer", "command", "events", "map"]
        assert request("GET", urljoin(base, "map"), **known)[0] == 200
        status, first, headers = request("GET", urljoin(base, "events"), **known)
        assert (status, first.strip(), headers["x-accel-buffering"]) == (200, "event: state", "no")
        status, said, _ = request("POST", urljoin(base, "command"), json.dumps({"action": "pause"}), **known)
        assert (status, "id" in said) == (202, True)
    until(lambda: any(row.kind == "command" for row in rows_of(console.run)), "the command in the record")
