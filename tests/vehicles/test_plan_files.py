"""Plans as text: pymavlink's loaders, which MAVProxy uses, read them."""

import math
from pathlib import Path

import pytest
from mavlink_boat import BOAT, FRAME
from small_files import mission_text, world_text
from working_folder import write

from fieldbo.mission.load import load_mission
from fieldbo.vehicles.mavlink import flight_plan
from fieldbo.vehicles.mavlink.geofence import geofence
from fieldbo.vehicles.mavlink.settings import MavlinkSettings
from fieldbo.vehicles.mavlink.wire import fence_items, mavutil, zones_of


@pytest.fixture
def pond(tmp_path, monkeypatch):
    """A sweep of a pond with two islands."""
    monkeypatch.chdir(tmp_path)
    obstacles = [
        {"name": "island", "corners": [[60, 40], [90, 30], [110, 60], [70, 70]]},
        {"name": "pier", "low": [150, 0], "high": [154, 60]},
    ]
    axes = ("east", 0, 200, 21), ("north", 0, 100, 11)
    domain = {"obstacles": obstacles, "clearance": 4}
    write(tmp_path / "pond/world.toml", world_text(*axes, domain=domain, start=[20, 20]))
    text = mission_text(
        "pond",
        threshold=0,
        battery=2000,
        agent={"start": [20, 20], "home": [190, 20]},
        policy={"kind": "lawnmower", "lines": 2, "samples": 3},
        model={"learn": False, "length_scales": [30, 30]},
    )
    write(tmp_path / "sweep.toml", text)
    boat("")
    return load_mission("sweep.toml")


def boat(link):
    write(Path("boat.toml"), BOAT.format(link=link))


def loaded(file, *, fence=False):
    """Return the items of a file as pymavlink reads them."""
    mavutil(MavlinkSettings())  # sets MAVLink 2 before pymavlink is imported
    from pymavlink import mavwp

    loader = mavwp.MissionItemProtocol_Fence() if fence else mavwp.MAVWPLoader()
    assert loader.load(str(file)) == loader.count()
    return loader.wpoints


def planned(command, *words):
    return command("plan", "sweep.toml", "--vehicle", "boat.toml", "--format", "wpl", *words)


@pytest.mark.parametrize(
    ("link", "heading"),
    [("", math.nan), ('firmware = "ardupilot"', 0.0), ('firmware = "ardupilot"\nyaw = 40', 40.0)],
)
def test_mavproxy_loads_the_mission_with_the_home_as_row_0(pond, command, monkeypatch, link, heading):
    boat(f"{link}\nspeed = 1.0\ncamera = true")
    sent = []
    monkeypatch.setattr(flight_plan, "upload", lambda *words: sent.append(words) or [])
    code, out, _ = planned(command, "--upload")
    assert code == 0
    assert " of them at sites, to sweep.waypoints\n" in out

    home, *rows = loaded("sweep.waypoints")
    ((route, _, settings, _),) = sent
    ground = FRAME.over(pond.world.domain.axes)
    latitude, longitude, altitude = ground.geodetic(pond.vehicles[0].home)[0].tolist()
    assert (home.command, home.frame, home.current, home.seq) == (16, 0, 1, 0)
    assert (home.x, home.y, home.z) == pytest.approx((latitude, longitude, altitude), abs=1e-8)
    items = flight_plan.items(route, settings)
    assert [row.command for row in rows] == [item.command for item in items]
    assert [row.current for row in rows] == [0] * len(items)
    for row, item in zip(rows, items, strict=True):
        assert (row.x, row.y, row.z) == pytest.approx((item.x, item.y, item.z), abs=1e-8)
        assert row.param1 == pytest.approx(item.params[0])
        assert row.frame == {5: 0}.get(item.frame, item.frame)
    headings = [row.param4 for row in rows if row.command == 16]
    assert headings == pytest.approx([heading] * len(headings), nan_ok=True)


def test_relative_heights_use_their_frame_and_the_home_has_none(pond, command):
    boat('altitude = "relative"\nfirmware = "ardupilot"')
    path = Path("boat.toml")
    path.write_text(path.read_text().replace("altitude = 406", "altitude = 20"))
    planned(command)
    home, *rows = loaded("sweep.waypoints")
    assert (home.frame, home.z) == (0, 0.0)
    assert {(row.frame, row.z) for row in rows} == {(3, 20.0)}


def test_mavproxy_loads_the_fence_without_a_home_and_mission_planner_drops_no_corner(pond, command):
    """MAVProxy sends each row as an item of the fence; Mission Planner removes a row 0 from it."""
    _, out, _ = planned(command)
    assert "wrote the fence, with 3 zones, to sweep-fence.waypoints\n" in out
    rows = loaded("sweep-fence.waypoints", fence=True)
    whole = geofence(pond, FRAME.over(pond.world.domain.axes), None)
    assert [row.command for row in rows] == [item.command for item in fence_items(whole.zones)]
    assert {row.command for row in rows} == {5001, 5002}
    assert {row.mission_type for row in rows} == {1}
    items = [flight_plan.Item(row.command, 0, (row.param1, 0, 0, 0), row.x, row.y) for row in rows]
    assert whole.difference(zones_of(items)) is None
    lines = Path("sweep-fence.waypoints").read_text().splitlines()
    assert lines[0] == "QGC WPL 110"
    assert [line.split("\t")[0] for line in lines[2:]] == [str(k + 1) for k in range(len(rows))]


def planned_on_the_lake(command, link):
    """Plan a sweep of a vertical world, which no fence on the ground expresses; return what is printed."""
    text = BOAT.format(link=link).replace('"east"', '"along"').replace('left = "north"', 'depth = "depth"')
    write(Path("boat.toml"), text)
    words = ("--vehicle", "boat.toml", "--format", "wpl", "--set", "model.learn=false")
    code, out, _ = command("plan", "lake-lawnmower", *words)
    assert code == 0
    return out


def test_a_circle_is_a_row_with_its_radius(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    planned_on_the_lake(command, "fence = { radius = 2000 }")
    (row,) = loaded("lake-lawnmower-fence.waypoints", fence=True)
    assert (row.command, row.param1, row.x, row.y) == (5003, 2000.0, 47.31, 8.58)


def test_without_a_fence_there_is_only_the_mission(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    assert "there is no fence to write\n" in planned_on_the_lake(command, "")
    assert sorted(path.name for path in tmp_path.glob("*.waypoints")) == ["lake-lawnmower.waypoints"]


def test_a_file_is_replaced_only_if_fieldbo_wrote_it(pond, command):
    assert planned(command)[0] == 0
    assert planned(command)[0] == 0
    other = Path("sweep-fence.waypoints")
    other.write_text("QGC WPL 110\n0\t1\t0\t16\t0\t0\t0\t0\t47\t8\t0\t1\n")
    code, _, err = planned(command)
    assert code == 2
    assert "sweep-fence.waypoints exists, and is not a plan that fieldbo wrote" in " ".join(err.split())


def test_a_format_that_misleads_is_named(pond, command):
    code, _, err = planned(command, "--out", "sweep.plan")
    assert code == 2
    assert "a name such as sweep.waypoints" in err
    boat('firmware = "px4"')
    code, _, err = planned(command)
    assert code == 0
    assert "PX4 would go there first" in " ".join(err.split())
