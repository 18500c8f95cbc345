"""The console without a browser: who is let in, what is refused, and what goes on meanwhile."""

import http.client
import json
import shutil
import signal
import socket
import sqlite3
from contextlib import closing, suppress

import pytest
from console_process import TOKEN, Console, rows_of
from waiting import SLOW_S, until

import fieldbo
from fieldbo.cli.run import _find_or_start
from fieldbo.console.follower import Follower
from fieldbo.console.server import start
from fieldbo.console.view import View
from fieldbo.errors import InputError
from fieldbo.messages import Command
from fieldbo.runs.folder import begin
from fieldbo.runs.steer import append, commands_file

FEW = {"agent": {"max_steps": 3}, "model": {"learn": False}}


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    folder = tmp_path_factory.mktemp("console")
    started = Console(
        folder,
        *("lake-level-set", "--by-hand", "--out", "runs/lake-1"),
        *("--set", "agent.battery=600", "--set", "model.learn=false"),
    )
    until(lambda: any(row.kind == "query" for row in rows_of(started.run)), "the first order")
    yield started
    append(commands_file(started.run / "run.sqlite"), Command("end", "stop"))
    started.close()


def goes_on(console):
    """Answer the present order; return whether the mission took it and ordered the next one."""
    before = rows_of(console.run)
    order = [row.order for row in before if row.kind in ("query", "go-home")][-1]
    status, _, _ = console.post("/answer", {"order": order, "value": "5", "confirmed": True})
    assert status == 202
    count = sum(row.kind == "query" for row in before)
    until(lambda: sum(row.kind == "query" for row in rows_of(console.run)) > count, "the next order")
    return True


# -- who is let in -------------------------------------------------------------------------------------------

PATHS = ["/", "/events", "/map", "/static/console.js", "/nothing"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x"])
def test_nothing_is_served_without_the_token(console, path, token):
    status, text, _ = console.request("GET", path, token=token)

    assert status == 401
    assert "token" in text
    assert "lake" not in text


def test_the_printed_address_sets_a_cookie_that_no_script_reads_and_hides_the_token(console):
    status, _, headers = console.request("GET", f"/?token={TOKEN}", token=None)
    cookie = headers["set-cookie"]

    assert (status, headers["location"]) == (303, "./")
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    status, _, _ = console.request("GET", "/", token=None, Cookie=cookie.split(";")[0])
    assert status == 200
    assert console.request("GET", "/?token=wrong", token=None)[0] == 401
    assert console.request("GET", "/", token=None, Cookie="fieldbo_1=; ;;==\x01")[0] == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost:1", "evil.example:{port}", "[::1]:{port}"]
)
def test_another_host_is_refused_even_with_the_token(console, host):
    assert console.request("GET", "/", host=host.format(port=console.port))[0] == 421


def test_an_unknown_name_is_told_what_to_do(console):
    status, said, _ = console.request("GET", "/", host="localhost:9000")
    assert status == 421
    assert "called 'localhost:9000'" in said
    assert "--host-name NAME:PORT" in said
    status, said, _ = console.post("/command", {}, Origin=f"https://127.0.0.1:{console.port}")
    assert status == 403
    assert f"--host-name https://127.0.0.1:{console.port}" in said


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"]
)
@pytest.mark.parametrize(("method", "path"), [("POST", "/command"), ("GET", "/events"), ("POST", "/answer")])
def test_another_origin_is_refused_even_with_the_token(console, origin, method, path):
    before = len(rows_of(console.run))
    status, _, headers = console.request(
        method,
        path,
        '{"action": "stop"}' if method == "POST" else None,
        Origin=origin.format(port=console.port),
    )

    assert status == 403
    assert "access-control-allow-origin" not in {name.lower() for name in headers}
    assert len(rows_of(console.run)) == before


def test_a_request_that_another_site_makes_is_refused(console):
    status, _, _ = console.post("/command", {"action": "pause"}, **{"Sec-Fetch-Site": "cross-site"})

    assert status == 403


def test_pages_may_do_no_more_than_the_console_needs(console):
    for path in ("/", "/static/console.js", "/nothing"):
        _, _, headers = console.request("GET", path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in {name.lower() for name in headers}


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../../../etc/passwd",
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/static/..%2f..%2fetc%2fpasswd",
        "/static//etc/passwd",
        "//etc/passwd",
        "/static/console.js/../../server.py",
        "/static/..\\..\\server.py",
        "/static/server.py",
        "/static/%00",
        "/run.sqlite",
        "/static/" + "a" * 5000,
    ],
)
def test_no_path_of_a_request_reaches_a_file(console, path):
    status, text, _ = console.request("GET", path)

    assert status in (400, 404)
    assert "root:" not in text
    assert "import" not in text


@pytest.mark.parametrize("path", ["/command", "/answer"])
def test_large_bodies_are_refused_and_the_mission_goes_on(console, path):
    body = b"x" * 10_000_000
    with suppress(ConnectionError, http.client.HTTPException):  # it may be cut off before all is sent
        assert console.request("POST", path, body)[0] == 413
    pieces = (b"x" * 10_000 for _ in range(1000))
    with suppress(ConnectionError, http.client.HTTPException):
        status, _, _ = console.request("POST", path, pieces, **{"Transfer-Encoding": "chunked"})
        assert status == 413
    assert goes_on(console)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/command", b"", 400),
        ("/command", b"[" * 60_000, 400),
        ("/command", b"\xff\xfe", 400),
        ("/command", b"[]", 422),
        ("/command", b'{"action": "explode"}', 422),
        ("/command", b'{"action": 7}', 422),
        ("/command", b'{"action": "pause", "vehicle": "x"}', 422),
        ("/command", b'{"action": "pause", "vehicle": -1}', 422),
        ("/command", b'{"action": "next"}', 422),
        ("/command", b'{"action": "next", "at": [NaN, 1]}', 422),
        ("/command", b'{"action": "next", "at": [1e300, 1]}', 422),
        ("/command", b'{"action": "next", "place": "x"}', 422),
        ("/command", b'{"action": "battery", "left": "much"}', 422),
        ("/command", b'{"action": "battery", "left": "-1"}', 422),
        ("/command", b'{"action": "battery", "left": 3}', 422),
        ("/command", b'{"action": "no-go", "corners": [[0, 0], [1, 1]]}', 422),
        ("/command", b'{"action": "no-go", "corners": [[0, 0], [9, 9], [0, 9], [9, 0]]}', 422),
        ("/answer", b'{"order": "lake-1/0", "value": "much"}', 422),
        ("/answer", b'{"order": "lake-1/0", "value": 3}', 422),
        ("/answer", b'{"order": "lake-1/0", "value": "3", "position": ["1"]}', 422),
        ("/answer", b'{"order": "lake-1/0", "value": "3", "cost": "-1"}', 422),
        ("/answer", b'{"order": "lake-1/0", "value": "1e999"}', 422),
    ],
)
def test_requests_that_make_no_sense_are_refused_with_a_reason(console, path, body, status):
    got, text, _ = console.request("POST", path, body)

    assert got == status
    assert json.loads(text)["problem"]


def test_only_the_methods_that_exist_are_answered(console):
    assert console.request("DELETE", "/")[0] == 405
    assert console.request("GET", "/command")[0] == 405
    assert console.request("PUT", "/answer", "{}")[0] == 405


def open_streams(console, number, token):
    """Ask for streams; return the connections."""
    opened = []
    head = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{console.port}\r\nAuthorization: Bearer {token}\r\n\r\n"
    for _ in range(number):
        with suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", console.port), timeout=SLOW_S)
            opened.append(connection)
            connection.sendall(head.encode())
    return opened


def accepted_of(opened):
    """Return how many streams were accepted."""
    accepted = 0
    for connection in opened:
        with suppress(OSError):
            accepted += connection.recv(200).startswith(b"HTTP/1.1 200")
    return accepted


@pytest.mark.parametrize("token", [TOKEN, "wrong"])
def test_many_open_streams_are_survived_and_the_mission_goes_on(console, token):
    opened = open_streams(console, 900, token)
    try:
        fewest, most = (1, 32) if token == TOKEN else (0, 0)
        assert fewest <= accepted_of(opened) <= most
        assert goes_on(console)
    finally:
        for connection in opened:
            connection.close()
    until(lambda: streams_now(console) == 200, "a free stream")


def test_more_connections_at_once_than_the_console_takes_are_refused_and_later_ones_served(console):
    console.process.send_signal(signal.SIGSTOP)  # it finds all of them when it comes to look
    try:
        opened = open_streams(console, 1100, TOKEN)
    finally:
        console.process.send_signal(signal.SIGCONT)
    accepted = accepted_of(opened)
    for connection in opened:
        connection.close()
    assert accepted == 0
    until(lambda: streams_now(console) == 200, "a free stream")
    assert goes_on(console)


def streams_now(console):
    """Open one stream and close it; return its status."""
    with closing(http.client.HTTPConnection("127.0.0.1", console.port, timeout=SLOW_S)) as connection:
        headers = {"Host": f"127.0.0.1:{console.port}", "Authorization": f"Bearer {TOKEN}"}
        connection.request("GET", "/events", headers=headers)
        return connection.getresponse().status


# -- what it does --------------------------------------------------------------------------------------------


def test_a_stream_begins_with_the_present_state_and_continues_with_each_change(console):
    with closing(http.client.HTTPConnection("127.0.0.1", console.port, timeout=SLOW_S)) as connection:
        headers = {"Host": f"127.0.0.1:{console.port}", "Authorization": f"Bearer {TOKEN}"}
        connection.request("GET", "/events", headers=headers)
        answer = connection.getresponse()
        first = next_state(answer)
        while first["form"]["order"] is None:
            first = next_state(answer)
        assert first["alive"]
        assert first["form"]["order"] == first["vehicles"][0]["order"]["id"]
        assert goes_on(console)
        second = next_state(answer)
        while second["form"]["order"] in (None, first["form"]["order"]):
            second = next_state(answer)
        assert second["row"] > first["row"]


def next_state(answer):
    while True:
        line = answer.readline().decode()
        if line.startswith("event: state"):
            return json.loads(answer.readline().decode().removeprefix("data: "))


def test_commands_and_answers_reach_the_record(console):
    status, text, _ = console.post("/command", {"action": "pause"})
    assert status == 202
    given = json.loads(text)["id"]
    until(
        lambda: given in [row.body["message"]["id"] for row in rows_of(console.run) if row.kind == "command"],
        "it",
    )
    status, text, _ = console.post("/command", {"action": "continue"})
    until(lambda: rows_of(console.run)[-1].kind == "query", "the next order")
    area = {
        "action": "no-go",
        "corners": [[-500, 300], [-500, 400], [-700, 400], [-700, 300]],
        "name": "nets <b>",
    }
    status, text, _ = console.post("/command", area)
    assert status == 202
    given = json.loads(text)["id"]
    found = until(lambda: recorded(console, given), "the refusal")
    assert "cost can't route around" in found[0]["refused"]
    assert goes_on(console)


def recorded(console, given):
    """Return the command with this id, as the record has it."""
    found = [row.body["message"] for row in rows_of(console.run) if row.kind == "command"]
    return [message for message in found if message["id"] == given]


def test_the_page_says_when_it_is_not_up_to_date(tmp_path):
    mission = fieldbo.load_mission("lake-level-set", FEW)
    folder, record = begin(mission, tmp_path / "lake-1")
    with record:
        fieldbo.run(mission, record=record)
    view = View(folder / "run.sqlite")
    try:
        assert view.state["status"]["kind"] == "ended"
        (folder / "run.sqlite").rename(folder / "moved.sqlite")
        until(
            lambda: view.state["status"]["text"].startswith("Not up to date: the record can't be read"), "it"
        )
        (folder / "moved.sqlite").rename(folder / "run.sqlite")
        until(lambda: view.state["status"]["kind"] == "ended", "the end")
    finally:
        view.close()


def test_a_follower_that_fails_says_so_and_stops(tmp_path):
    mission = fieldbo.load_mission("lake-level-set", FEW)
    folder, record = begin(mission, tmp_path / "lake-1")

    def fail(state, row):
        raise ZeroDivisionError("a fault in the console")

    told = list[str | None]()
    with record:
        follower = Follower(folder / "run.sqlite", fail, lambda: None, lambda: told.append(follower.problem))
        assert follower.look()
        fieldbo.run(mission, record=record)
    assert not follower.look()
    assert len(told) == 1
    assert "stopped following the run" in told[0]
    assert "a fault in the console" in told[0]


def test_a_console_does_not_mix_two_runs_of_one_folder(tmp_path):
    mission = fieldbo.load_mission("lake-level-set", FEW)

    def recorded_run():
        folder, record = begin(mission, tmp_path / "lake-1")
        with record:
            fieldbo.run(mission, record=record)
        return folder

    view = View(recorded_run() / "run.sqlite")
    try:
        rows = view.state["row"]
        shutil.rmtree(tmp_path / "lake-1")
        recorded_run()
        until(lambda: "another run is in its place" in view.state["status"]["text"], "the notice")
        assert view.state["row"] == rows
        assert not view.alive
    finally:
        view.close()


def test_a_mission_is_not_started_into_a_folder_that_exists_and_no_log_is_lost(tmp_path):
    (tmp_path / "lake-1").mkdir()
    (tmp_path / "lake-1.log").write_text("precious")
    with pytest.raises(InputError, match="exists"):
        start("lake-level-set", tmp_path / "lake-1", [])
    assert (tmp_path / "lake-1.log").read_text() == "precious"


def test_the_token_is_in_no_file(console):
    goes_on(console)
    for file in console.folder.rglob("*"):
        if file.is_file():
            assert TOKEN.encode() not in file.read_bytes(), file


# -- how it starts -------------------------------------------------------------------------------------------


@pytest.fixture
def started(command, monkeypatch):
    """Start a console that can't be served; return exit code and output."""

    def start(folder, *arguments, **environment):
        monkeypatch.chdir(folder)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        code, out, err = command("console", *arguments)
        return code, out + err

    return start


def test_a_port_in_use_is_an_error_that_names_it(console, started):
    code, said = started(console.folder, "runs/lake-1", "--port", console.port)

    assert code == 2
    assert f"port {console.port} of 127.0.0.1 is in use" in said
    assert "--port 0" in said


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        (["runs/lake-9"], {}, "there is no run runs/lake-9"),
        (["runs/lake-1", "--port", "99999"], {}, "0 to 65535"),
        (["runs/lake-1", "--network", "0.0.0.0"], {}, "the one address"),
        (["runs/lake-1", "--network", "203.0.113.7", "--port", "0"], {}, "an address of this machine"),
        (["runs/lake-1", "--cert", "nothing.pem"], {}, "both"),
        (["runs/lake-1", "--host-name", "lab.example.org/boat"], {}, "without a path"),
        (["runs/lake-1", "--host-name", "lab:99999"], {}, "NAME or NAME:PORT"),
        (["runs/lake-1", "--host-name", "*"], {}, "NAME or NAME:PORT"),
        (["runs/lake-1", "--cert", "nothing.pem", "--key", "nothing.pem"], {}, "certificate can't be used"),
        (["runs/lake-1"], {"FIELDBO_CONSOLE_TOKEN": "short"}, "at least 16"),
        pytest.param(
            ["lake-level-set", "--by-hand", "--set", "agent.battery=-1"],
            {},
            "agent.battery",
            marks=pytest.mark.slow,  # a mission is started in a process of its own
        ),
        pytest.param(
            ["lake-level-set", "--battery", "12 parsecs", "--port", "0"],
            {},
            "is in parsecs",
            marks=pytest.mark.slow,
        ),
        (["lake-level-set", "--by-hand", "--vehicle", "boat.toml"], {}, "at most one"),
    ],
)
def test_what_cannot_be_served_is_an_error_before_anything_starts(
    console, started, arguments, environment, said
):
    code, text = started(console.folder, *arguments, **environment)

    assert code == 2
    assert said in text
    assert "Traceback" not in text


def test_a_run_of_a_newer_format_is_an_error(console, started, tmp_path):
    shutil.copytree(console.run, tmp_path / "lake-1", ignore=shutil.ignore_patterns("*.lock"))
    with closing(sqlite3.connect(tmp_path / "lake-1" / "run.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.commit()
    code, said = started(tmp_path, "lake-1", "--port", "0")

    assert code == 2
    assert "record format 99" in said


def test_a_place_refuses_a_token_that_could_be_guessed():
    from fieldbo.console.server import Place

    with pytest.raises(InputError, match="at least 16"):
        Place(8642, token="secret")
    assert "secret-enough-0123456789" not in repr(Place(8642, token="secret-enough-0123456789"))


@pytest.mark.slow  # a mission is started in a process of its own
def test_a_mission_starts_with_the_battery_and_the_earlier_readings_that_are_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "before.csv").write_text("along,depth,value\n100,5,1.2\n200,10,0.4\n", encoding="utf-8")
    said = []
    arguments = ["--policy", "straddle", "--battery", "90", "--prior", "before.csv"]
    file = _find_or_start("gp-lake", arguments, None, said.append)
    assert said == ["starting gp-lake; what it prints goes to runs/gp-lake-1.log"]
    mission = fieldbo.load_mission(file.parent / "mission.toml")
    assert mission.policy_kind == "straddle"
    assert mission.vehicles[0].battery == 90.0
    assert len(mission.earlier.values) == 2
