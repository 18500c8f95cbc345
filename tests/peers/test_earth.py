"""Simulated robots in a world with a CRS, each in its own process: they end at the right degrees."""

from __future__ import annotations

import csv
import json
import socket

import numpy as np
import paho.mqtt.client as paho
import pytest
from earth import world_on_earth
from peers.processes import Broker, fieldbo, free_port
from pyproj import Geod
from working_folder import edit

from fieldbo.mission.load import load_mission
from fieldbo.vehicles.file import proposed, template

SPEEDUP = 60
ACCURACY_M = 0.05


def degrees_in(file):
    """Return latitudes and longitudes (k, 2) in a table."""
    with file.open(newline="") as text:
        return np.array([[float(row["latitude"]), float(row["longitude"])] for row in csv.DictReader(text)])


def nearest_m(places, others):
    """Return how far each of the places (k, 2) is from the nearest of the others (n, 2), in metres."""
    a, b = np.repeat(places, len(others), axis=0), np.tile(others, (len(places), 1))
    lengths = Geod(ellps="WGS84").inv(a[:, 1], a[:, 0], b[:, 1], b[:, 0])[2]
    return np.reshape(lengths, (len(places), len(others))).min(axis=1)


def boat(folder, name, kind, **link):
    """Write a world, its mission and a vehicle file; return the world's degrees."""
    mission = load_mission(world_on_earth(folder, name))
    text = template(kind, mission.world.domain, "boat", proposed(kind, mission.world))
    for key, value in link.items():
        (line,) = (row for row in text.splitlines() if row.lstrip("# ").startswith(f"{key} ="))
        text = text.replace(line, f"{key} = {json.dumps(value)}")
    (folder / "boat.toml").write_text(text)
    edit(folder / "boat.toml", "# full =", "full = 9000.0")
    return mission.world.domain.georeference.degrees(mission.world.domain.sites)


def carried_out(folder, name):
    """Run the mission with the simulated robot; return what each of the two has printed."""
    more = ["--speedup", SPEEDUP, "--battery", 9000, "--track", "track.csv"]
    with fieldbo("robot", "boat.toml", "--world", name, *more, cwd=folder) as program:
        program.wait_for("ready")
        with fieldbo("run", name, "--vehicle", "boat.toml", "--out", "r", cwd=folder) as run:
            assert run.wait() == 0, f"{run.output}\n{program.output}"
        program.interrupt()
        program.wait()
        return program.output, run.output


@pytest.mark.parametrize("name", ["lake", "dateline", "pole"])
def test_a_robot_over_mqtt_is_sent_to_the_degrees_of_its_sites(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    told = []
    with Broker(tmp_path) as broker:
        sites = boat(tmp_path, name, "mqtt", port=broker.port)
        client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        client.on_message = lambda client, data, message: told.append(json.loads(message.payload))
        client.connect("127.0.0.1", broker.port)
        client.subscribe("+/+/goal")
        client.loop_start()
        carried_out(tmp_path, name)
        client.loop_stop()
    goals = np.array([[goal["place"]["latitude"], goal["place"]["longitude"]] for goal in told])
    readings, track = degrees_in(tmp_path / "r" / "observations.csv"), degrees_in(tmp_path / "track.csv")
    assert len(readings) == 6
    assert nearest_m(readings, goals).max() < 0.02
    assert nearest_m(readings[1:], sites).max() < 0.02
    assert nearest_m(readings, track).max() < 0.02


@pytest.mark.parametrize("name", ["lake", "dateline", "pole"])
def test_a_robot_over_mavlink_samples_at_the_degrees_of_its_sites(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    link = {"connection": f"udpin:127.0.0.1:{free_port(socket.SOCK_DGRAM)}", "upload_fence": True}
    sites = boat(tmp_path, name, "mavlink", **link)
    robot, _ = carried_out(tmp_path, name)
    assert "items of kind 1" in robot  # the fence
    readings, track = degrees_in(tmp_path / "r" / "observations.csv"), degrees_in(tmp_path / "track.csv")
    assert len(readings) == 6
    assert nearest_m(readings[1:], sites).max() < 0.02
    assert nearest_m(readings, track).max() < ACCURACY_M
