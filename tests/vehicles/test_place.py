"""Where a vehicle file places a mission: shown in words and degrees, and questioned if it looks wrong."""

import pytest
from small_files import mission_text, world_text
from working_folder import edit, write

from fieldbo.domain.axes import Axis
from fieldbo.domain.frame import Frame
from fieldbo.vehicles.file import frame_doubts

WORLD = world_text(
    ("east", 0, 200, 21),
    ("north", 0, 100, 11),
    title="a bay",
    field={"kind": "gp-draw", "length_scales": [30, 30]},
    cost={"kind": "euclidean", "sampling": 3},
    sensor={"noise_sd": 0.05},
    start=[20, 10],
)
MISSION = mission_text(
    "bay",
    title="a sweep of the bay",
    threshold=0,
    battery=4000,
    agent={"home": [0, 0]},
    policy={"kind": "lawnmower", "lines": 3, "samples": 4},
    model={"learn": False, "length_scales": [30, 30]},
)
BOAT = """format = 1
[link]
kind = "mavlink"
[frame]
origin = { latitude = 47.31, longitude = 8.58 }
bearing = 90
along = "east"
left = "north"
[battery]
full = "6000 s"
[arrival]
within = 2
"""


@pytest.fixture
def bay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("bay/world.toml", WORLD)
    write("bay.toml", MISSION)
    write("boat.toml", BOAT)


def in_one_line(text):
    return " ".join(text.split())


def test_check_shows_where_the_axes_lead_and_where_start_and_home_are(bay, said):
    out = in_one_line(said("check", "bay.toml", "--vehicle", "boat.toml"))
    assert "domain east leads 90° (east), north leads 0° (north)" in out
    assert "place start at 47.310090, 8.580264; home at 47.310000, 8.580000 (latitude, longitude)" in out
    assert "warning: the axis" not in out


@pytest.mark.parametrize(
    ("old", "new", "warning"),
    [
        ("bearing = 90", "bearing = 0", "warning: the axis east leads 0° (north), not east"),
        ("left", "right", "warning: the axis north leads 180° (south), not north"),
        ("bearing = 90", "bearing = 1.5708", "bearing = 1.5708 in [frame] looks like radians"),
    ],
)
def test_check_questions_a_frame_that_contradicts_the_axes_names_once(old, new, warning, bay, said):
    edit("boat.toml", old, new)
    for arguments in (["bay.toml", "--vehicle", "boat.toml"], ["boat.toml"]):
        assert in_one_line(said("check", *arguments)).count(warning) == 1


def test_check_questions_a_domain_far_from_its_origin(bay, said):
    edit("bay/world.toml", "low = 0, high = 200", "low = 450000, high = 450200")
    edit("bay/world.toml", "start = [20, 10]", "start = [450020, 10]")
    edit("bay.toml", "home = [0, 0]", "home = [450000, 0]")
    out = in_one_line(said("check", "bay.toml", "--vehicle", "boat.toml"))
    assert "the domain's nearest point is 450 km from its origin: check zero in [frame]" in out
    edit("boat.toml", 'left = "north"', 'left = "north"\nzero = { east = 450000 }')
    assert "from its origin" not in said("check", "bay.toml", "--vehicle", "boat.toml")


def test_a_run_shows_the_place_and_its_warnings_before_it_waits_for_the_robot(bay, command):
    edit("boat.toml", "bearing = 90", "bearing = 0")
    edit("boat.toml", "[battery]", "[watch]\nconnect_s = 0.1\n[battery]")
    _, out, err = command("run", "bay.toml", "--vehicle", "boat.toml")
    text = in_one_line(out + err)
    assert "warning: the axis east leads 0° (north), not east" in text
    assert "place start at 47.31" in text


def test_a_plan_shows_the_place_and_its_warnings(bay, command):
    edit("boat.toml", "bearing = 90", "bearing = 0")
    code, out, err = command("plan", "bay.toml", "--vehicle", "boat.toml")
    assert code == 0
    assert "axes      east leads 0° (north), north leads 270° (west)" in out
    assert "home at 47.310000, 8.580000" in out
    assert "warning: the axis east leads 0° (north), not east" in in_one_line(err)


@pytest.mark.parametrize(
    ("bearing", "warns"),
    [
        *((0.785, True), (1.5708, True), (3.1416, True), (4.7124, True), (-1.5708, True)),
        *((0, False), (1.5, False), (3, False), (6.0, False), (45.5, False), (90.0, False)),
    ],
)
def test_a_bearing_in_radians_is_questioned(bearing, warns):
    assert bool(frame_doubts(Frame(bearing=bearing, along="x", left="y"))) == warns


@pytest.mark.parametrize(
    ("name", "bearing", "warns"),
    [
        ("East_m", 90, False),
        ("x_e", 90, False),
        ("easting", 134, False),
        ("easting", 136, True),
        ("x_n", 90, True),
        ("south", 180, False),
        ("west", 90, True),
        ("seastern", 0, False),
        ("along", 0, False),
    ],
)
def test_an_axis_named_after_a_direction_that_leads_elsewhere_is_questioned(name, bearing, warns):
    assert bool(frame_doubts(Frame(bearing=bearing, along=name))) == warns


def test_a_vertical_axis_named_after_a_direction_is_questioned():
    assert frame_doubts(Frame(along="east", height="north")) == [
        "the axis north leads up, not north: check bearing and the directions of the axes in [frame]"
    ]
    assert frame_doubts(Frame.usual([Axis("north", "m", 0, 9), Axis("east", "m", 0, 9)]))
