"""A mission over MQTT that is steered: broker, robot, mission and commands are processes of their own."""

from __future__ import annotations

import csv
import time

import numpy as np
import pytest
import shapely
from peers.pond import area_beside, long_pond
from peers.processes import Broker, fieldbo, until
from working_folder import write

from fieldbo.errors import RecordError
from fieldbo.record.record import Record


@pytest.fixture
def under_way(tmp_path):
    """Run a mission of a slow robot; yield the run folder and the program of the mission."""
    mission = long_pond(tmp_path)
    with Broker(tmp_path) as broker:
        link = f'kind = "mqtt"\nport = {broker.port}\ntopic = "tests/steered"'
        write(tmp_path / "boat.toml", f"format = 1\n[link]\n{link}\n")
        world = tmp_path / "pond" / "world.toml"
        more = ["--world", world, "--speedup", 10, "--battery", 4000, "--track", tmp_path / "track.csv"]
        with fieldbo("robot", tmp_path / "boat.toml", *more) as robot:
            robot.wait_for("ready")
            with fieldbo(
                "run", mission, "--vehicle", tmp_path / "boat.toml", "--out", tmp_path / "run", cwd=tmp_path
            ) as run:
                until(lambda: count(tmp_path / "run", "observation") >= 1)
                yield tmp_path / "run", run, robot


def rows_of(folder):
    try:
        with Record(folder / "run.sqlite") as record:
            return record.rows()
    except RecordError:
        return []


def count(folder, kind):
    return sum(row.kind == kind for row in rows_of(folder))


def steer(folder, *what):
    with fieldbo("steer", folder, *what, cwd=folder.parent) as command:
        code = command.wait()
        return code, "".join(f"{line}\n" for line in command.lines)


def positions(rows):
    return [row.message.position for row in rows if row.kind in ("observation", "telemetry")]


def test_a_live_mission_obeys_commands_and_its_ledger_shows_them(under_way):
    folder, run, robot = under_way
    assert steer(folder, "pause") == (0, "confirmed: pause\n")
    until(lambda: not outstanding(folder))
    paused = rows_of(folder)
    until(lambda: sum(row.kind == "telemetry" for row in rows_of(folder)[len(paused) :]) >= 2)
    waited = rows_of(folder)[len(paused) :]
    assert not any(row.kind == "query" for row in waited)
    still = positions(waited)
    assert still
    assert all(np.linalg.norm(place - still[0]) < 0.5 for place in still)

    reeds = area_beside(still[0])
    code, said = steer(folder, "no-go", "; ".join(f"{x:g},{y:g}" for x, y in reeds.exterior.coords[:-1]))
    assert (code, said) == (0, "confirmed: no-go: closed area\n")
    assert steer(folder, "next", f"{reeds.centroid.x:g},{reeds.centroid.y:g}")[0] == 1
    assert steer(folder, "next", "50,30") == (0, "confirmed: next at [50.0, 30.0]\n")
    assert steer(folder, "continue")[0] == 0
    until(lambda: any(row.kind == "query" for row in rows_of(folder)[len(paused) :]))
    wanted = next(row.message for row in rows_of(folder)[len(paused) :] if row.kind == "query")
    assert wanted.site.tolist() == [50.0, 30.0]
    until(lambda: steer(folder, "skip")[0] == 0)  # on a slow machine, the robot may be there already
    until(lambda: count(folder, "query") >= 6)
    assert steer(folder, "home")[0] == 0
    assert run.wait() == 0, run.output

    rows = rows_of(folder)
    given = [row.message for row in rows if row.kind == "command"]
    obeyed = [command.action for command in given if not command.refused]
    assert obeyed == ["pause", "no-go", "next", "continue", "skip", "home"]
    assert [command.action for command in given if command.refused and command.action != "skip"] == ["next"]
    robot.interrupt()
    robot.wait()
    track = np.loadtxt(folder.parent / "track.csv", delimiter=",", skiprows=1)[:, :2]
    closed = int(np.flatnonzero(np.linalg.norm(track - still[0], axis=1) < 0.5)[-1])
    assert len(track) - closed > 10
    assert not shapely.LineString(track[closed:]).intersects(reeds.buffer(-0.01))
    assert np.abs(track[-1]).max() < 0.01
    with Record(folder / "run.sqlite") as record:
        assert record.end_reason == "stopped by operator"
    with (folder / "ledger.csv").open() as file:
        ledger = list(csv.DictReader(file))
    commands = [line["kind"] for line in ledger if line["kind"] not in ("query", "go-home")]
    assert commands == ["pause", "no-go", "next", "continue", "skip", "home"]
    pause = next(line for line in ledger if line["kind"] == "pause")
    assert float(pause["spent_s"]) > 2.0


def outstanding(folder):
    rows = rows_of(folder)
    done = {row.order for row in rows if row.kind in ("observation", "rejected", "lost")}
    return [row.order for row in rows if row.kind == "query" and row.order not in done]


def test_a_paused_run_whose_process_dies_is_still_paused_when_it_is_resumed(under_way):
    folder, run, _ = under_way
    assert steer(folder, "pause")[0] == 0
    until(lambda: not outstanding(folder))
    run.kill()
    code, said = steer(folder, "continue")
    assert code == 2
    assert "fieldbo resume" in said
    before = count(folder, "query")
    with fieldbo("resume", folder, cwd=folder.parent) as resumed:
        resumed.wait_for("Resuming")
        time.sleep(3.0)
        assert count(folder, "query") == before
        until(lambda: steer(folder, "continue")[0] == 0)
        until(lambda: count(folder, "query") > before)
        assert steer(folder, "stop")[0] == 0
        assert resumed.wait() == 130
    assert "fieldbo resume" in resumed.output
