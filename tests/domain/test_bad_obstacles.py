"""Wrong obstacles, outlines, starts and homes: each is rejected with its place and how to fix it."""

import tomllib
from pathlib import Path

import pytest

import fieldbo
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError

AXES = '{ name = "x", unit = "m", low = 0, high = 10, count = 11 }, '
AXES += '{ name = "y", unit = "m", low = 0, high = 6, count = 7 }'
THIRD = ', { name = "z", unit = "m", low = 0, high = 3, count = 4 }'
GATE = '{ name = "gate", low = [4, 1], high = [6, 3] }'
WALL = '{ name = "wall", low = [4.5, -1], high = [5.5, 7] }'
WORLD = """format = 1
version = "1"
title = "a yard"
cost_unit = "s"
{start}
[domain]
kind = "{kind}"
axes = [{axes}]
obstacles = [{obstacles}]
{more}
[sensor]
noise_sd = 0
[cost]
kind = "euclidean"
sampling = 1
"""
MISSION = """format = 1
world = "yard"
[question]
kind = "level-set"
threshold = 1
[agent]
battery = 60
{agent}
[policy]
kind = "straddle"
[model]
learn = false
length_scales = [3, 3]
mean = 0
"""


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(obstacles, *, start="", kind="grid", axes=AXES, more=""):
    """Write a live world."""
    if kind == "box":
        axes = axes.replace(", count = 11", "").replace(", count = 7", "")
    text = WORLD.format(start=start, kind=kind, axes=axes, obstacles=obstacles, more=more)
    file = Path("worlds/yard/world.toml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def polygon(corners, name="scaffold"):
    return f'{{ name = "{name}", corners = {corners} }}'


def box(low, high, name="hut"):
    return f'{{ name = "{name}", low = {low}, high = {high} }}'


def rejection(load, *parts):
    """Check that loading fails with all of these parts in its message; return the error."""
    with pytest.raises(InputError) as caught:
        load()
    text = " ".join(str(caught.value).split())
    for part in parts:
        assert part in text, text
    return caught.value


WRONG = {
    "crossing": (
        polygon([[0, 0], [2, 2], [2, 0], [0, 2]]),
        (
            "obstacle 'scaffold' is not a simple polygon",
            "crosses or touches itself at [1, 1]",
            ".corners",
            "corners = [[0, 0], [2, 0], [2, 2], [0, 2]]",
        ),
    ),
    "touching": (
        polygon([[0, 0], [4, 0], [2, 2], [4, 4], [0, 4], [2, 2]]),
        ("'scaffold'", "itself at [2, 2]", "or as separate parts", "[[0, 0], [4, 0], [2, 2]]"),
    ),
    "line": (polygon([[0, 0], [1, 1], [2, 2]]), ("'scaffold'", "lie on one line", "that enclose an area")),
    "two corners": (
        polygon([[0, 0], [1, 1]]),
        ("'scaffold' has 2 different corners", "at least 3", ".corners"),
    ),
    "twice the same": (
        polygon([[0, 0], [1, 1], [0, 0]]),
        ("'scaffold' has 2 different corners", "at least 3"),
    ),
    "no number": (
        polygon("[[0, 0], [nan, 1], [2, 0]]"),
        ("corners[1][0] = nan", "a finite number", ".corners[1][0]"),
    ),
    "too far away": (polygon("[[0, 0], [1e30, 1], [2, 0]]"), ("or too far away", "up to 1e+15")),
    "three coordinates": (
        polygon([[0, 0, 1], [1, 1, 1], [2, 0, 1]]),
        ("has 3 coordinates", "two, one per axis"),
    ),
    "low above high": (
        box([3, 1], [2, 2]),
        ("'hut' runs from [3.0, 1.0] to [2.0, 2.0]", "with low below high", ".low"),
    ),
    "flat": (box([3, 1], [4, 1]), ("'hut' runs from", "with low below high", ".low")),
    "infinite": (box("[3, 1]", "[inf, 2]"), ("high[0] = inf", "a finite number", ".high[0]")),
    "short end": (box([3, 1], [4]), ("'hut' has 2 coordinates in low and 1 in high", ".high")),
    "one axis": (box([3], [4]), ("'hut' has 1 coordinate", "expected: 2, one per axis", "domain.obstacles")),
    "three axes": (box([3, 1, 0], [4, 2, 1]), ("'hut' has 3 coordinates", "expected: 2, one per axis")),
    "neither": ('{ name = "ghost" }', ("'ghost' has no corners", "either low and high (a box)", ".corners")),
    "both": (
        '{ name = "both", low = [1, 1], high = [2, 2], corners = [[0, 0], [1, 0], [0, 1]] }',
        ("'both' has both corners and a box", "either low and high (a box)"),
    ),
    "nameless": ("{ low = [1, 1], high = [2, 2] }", ("name is missing", "domain.obstacles[1].name")),
    "blank name": (box([1, 1], [2, 2], " "), ("an obstacle has no name", "domain.obstacles[1].name")),
    "wrong key": ('{ name = "a", lo = [1, 1], high = [2, 2] }', ("unknown key 'lo'", "did you mean 'low'?")),
    "outside": (
        box([20, 1], [21, 2]),
        ("'hut' lies entirely outside the domain", "correct its coordinates, or delete it"),
    ),
    "at the edge": (box([10, 1], [12, 2]), ("'hut' lies entirely outside the domain",)),
    "same name": (box([7, 1], [8, 2], "gate"), ("two obstacles are named 'gate'", "different names")),
    "everything": (box([-1, -1], [11, 7]), ("cover the whole domain", "lower the clearance")),
    "all sites": (
        ", ".join(box([x - 0.3, -1], [x + 0.3, 7], f"slat {x}") for x in range(11)),
        ("the domain has no sites", "make obstacles smaller"),
    ),
}


@pytest.mark.parametrize(
    ("name", "kind"),  # points in a box lie between the slats that stand on all sites of the grid
    [*((name, "grid") for name in WRONG), *((name, "box") for name in WRONG if name != "all sites")],
)
def test_a_wrong_obstacle_is_rejected_with_its_file_its_key_and_a_fix(name, kind):
    obstacle, parts = WRONG[name]
    write(f"{GATE}, {obstacle}", kind=kind)
    where = () if name == "all sites" else ("where: worlds/yard/world.toml: domain.obstacles",)
    rejection(lambda: fieldbo.load_world("yard"), *parts, *where)


def test_the_commands_reject_a_wrong_obstacle_with_the_same_message(command):
    write(f"{GATE}, {WRONG['crossing'][0]}")
    code, out, err = command("check", "worlds/yard")
    assert (code, out) == (2, "")
    assert "crosses or touches itself at [1, 1]" in " ".join(err.split())
    assert "worlds/yard/world.toml: domain.obstacles[1].corners" in " ".join(err.split())


@pytest.mark.parametrize(
    ("obstacle", "area"),
    [
        ([[0, 0], [2, 2], [2, 0], [0, 2]], 4.0),
        ([[0, 0], [4, 0], [4, 4], [2, -1], [0, 4]], None),
        ([[0, 0], [4, 0], [2, 2], [4, 4], [0, 4], [2, 2]], None),
    ],
)
def test_the_suggested_corners_are_valid_when_pasted_into_the_file(obstacle, area):
    write(polygon(obstacle))
    error = rejection(lambda: fieldbo.load_world("yard"), "not a simple polygon")
    parts = error.fix.removeprefix("corners = ").split(", or as separate parts ")
    write(", ".join(polygon(corners, f"part {k}") for k, corners in enumerate(parts)))
    areas = [o.polygon.area for o in fieldbo.load_world("yard").domain.obstacles]
    assert sum(areas) > 0
    assert area is None or areas == [area]


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        ("clearance = -1", ("clearance = -1", "at least 0", "domain.clearance")),
        ("clearance = nan", ("clearance = nan", "a finite number", "domain.clearance")),
        ("clearance = 9", ("cover the whole domain", "lower the clearance")),
        (
            "outline = [[0, 0], [10, 6], [10, 0], [0, 6]]",
            (
                "the outline is not a simple polygon",
                "at [5, 3]",
                "outline = [[0, 0], [10, 0], [10, 6], [0, 6]]",
            ),
        ),
        ("holes = [[[1, 1], [2, 1], [2, 2]]]", ("holes without an outline", "make each hole an obstacle")),
        (
            "outline = [[0, 0], [10, 0], [10, 6], [0, 6]]\n"
            "holes = [[[1, 1], [2, 1], [2, 2]], [[9, 1], [11, 1], [9, 2]]]",
            ("hole 1 reaches out of the outline", "domain.holes[1]"),
        ),
        (
            "outline = [[0, 0], [10, 0], [10, 6], [0, 6]]\nholes = [[1, 1], [2, 1], [2, 2]]",
            ("holes = [[1, 1], [2, 1], [2, 2]]", "expected: a list of outlines: [[[x, y], ...], ...]"),
        ),
        ("outline = [[7, 0], [10, 0], [10, 6], [7, 6]]", ("'gate' lies entirely outside the domain",)),
    ],
)
def test_a_wrong_clearance_or_outline_is_rejected(more, parts):
    write(GATE, more=more)
    rejection(lambda: fieldbo.load_world("yard"), *parts, "where: worlds/yard/world.toml: domain.")


def test_an_obstacle_whose_clearance_reaches_into_the_domain_is_valid():
    write(box([10.2, 1], [11, 2]), more="clearance = 0.5")
    assert not fieldbo.load_world("yard").domain.contains([9.9, 1.5])[0]


def test_a_clearance_across_units_is_rejected():
    axes = Axis("x", "m", 0, 1), Axis("T", "K", 0, 1)
    hut = Obstacle("hut", (0.2, 0.2), (0.4, 0.4))
    assert Domain.grid(axes, (6, 6), obstacles=[hut]).size == 36
    with pytest.raises(InputError, match="the axes are in K and m"):
        Domain.grid(axes, (6, 6), obstacles=[hut], clearance=0.1)


def test_a_polygon_in_three_axes_and_an_obstacle_on_one_axis_are_rejected():
    write(polygon([[0, 0], [2, 0], [0, 2]]), axes=AXES + THIRD)
    rejection(
        lambda: fieldbo.load_world("yard"),
        "'scaffold' is a polygon in a domain with 3 axes",
        "replace corners by low and high",
    )
    write(box([3], [4]), axes=AXES.split("}, ", maxsplit=1)[0] + "}")
    rejection(lambda: fieldbo.load_world("yard"), "'hut' needs at least two axes", "at least two axes")


def test_a_start_inside_an_obstacle_is_rejected_with_the_nearest_free_site():
    near = "the nearest site is [5.0, 3.0]"
    write(GATE, start="start = [5, 2.9]")
    rejection(
        lambda: fieldbo.load_world("yard"),
        "start [5.0, 2.9] lies inside the obstacle 'gate'",
        near,
        "where: worlds/yard/world.toml: start",
    )
    write(GATE)
    for name in ("start", "home"):
        Path("m.toml").write_text(MISSION.format(agent=f"{name} = [5, 2.9]"))
        rejection(
            lambda: fieldbo.load_mission("m.toml"),
            f"{name} [5.0, 2.9] lies inside the obstacle 'gate'",
            near,
            f"where: m.toml: agent.{name}",
        )
    Path("m.toml").write_text(MISSION.format(agent="start = [5, 3]"))
    assert fieldbo.load_mission("m.toml").vehicles[0].start.tolist() == [5, 3]


def test_a_home_behind_a_wall_is_rejected_as_unreachable():
    write(WALL)
    Path("m.toml").write_text(MISSION.format(agent="start = [1, 1]\nhome = [9, 1]"))
    rejection(
        lambda: fieldbo.load_mission("m.toml"),
        "home [9.0, 1.0] can't be reached from the start [1.0, 1.0]: obstacles lie between them",
        "where: m.toml: agent.home",
    )


@pytest.mark.parametrize("name", ["start", "home"])
def test_a_start_or_home_between_obstacles_that_touch_is_rejected(name):
    write(", ".join([box([3, 1], [5, 3], "low"), box([5, 3], [7, 5], "high")]))
    Path("m.toml").write_text(MISSION.format(agent=f"{name} = [5, 3]"))
    rejection(
        lambda: fieldbo.load_mission("m.toml"),
        f"{name} [5.0, 3.0] lies where obstacles touch each other",
        "a place that a vehicle can leave",
        f"where: m.toml: agent.{name}",
    )


def test_a_start_in_a_pocket_without_sites_is_rejected():
    ring = [box([2, 2], [8, 2.2], "south"), box([2, 3.8], [8, 4], "north"), box([2, 2], [4.2, 4], "west")]
    write(", ".join([*ring, box([4.8, 2], [8, 4], "east")]))
    Path("m.toml").write_text(MISSION.format(agent="start = [4.5, 3.2]"))
    rejection(
        lambda: fieldbo.load_mission("m.toml"),
        "no site can be reached from the start [4.5, 3.2]: obstacles lie between",
        "where: m.toml: agent.start",
    )


def test_the_json_schema_checks_obstacles(said):
    import json

    from jsonschema import Draft202012Validator

    schema = Draft202012Validator(json.loads(said("schema", "world")))
    write(f"{GATE}, {polygon([[0, 0], [2, 0], [0, 2]])}", more="clearance = 0.2")
    content = tomllib.loads(Path("worlds/yard/world.toml").read_text())
    assert schema.is_valid(content)
    content["domain"]["obstacles"][0]["colour"] = "red"
    assert not schema.is_valid(content)
