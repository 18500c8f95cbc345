"""A pond, 42 sites of it, in which all kinds of robots are tried out; and a mission there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import shapely
from working_folder import write

from fieldbo.messages import Observation
from fieldbo.mission.load import load_mission
from fieldbo.mission.mission import Mission

NOISE_SD = 0.01
BATTERY_S = 400.0
SPEEDUP = 200.0
"""Three minutes of a robot's day take about a second."""

WORLD = f"""format = 1
version = "1"
title = "a pond"
cost_unit = "s"
start = [0, 0]
[value]
name = "turbidity"
unit = "1"
[domain]
kind = "grid"
axes = [{{ name = "x", unit = "m", low = 0, high = 60, count = 7 }},
        {{ name = "y", unit = "m", low = 0, high = 50, count = 6 }}]
[field]
kind = "gp-draw"
kernel = "matern52"
length_scales = [15, 15]
variance = 1.0
[cost]
kind = "euclidean"
rate = 1.0        # a metre a second
sampling = 2.0
[sensor]
noise_sd = {NOISE_SD}
"""

MISSION = f"""format = 1
title = "where the pond is turbid"
world = "pond"
seed = 3
[question]
kind = "level-set"
threshold = 0.3
[agent]
battery = {BATTERY_S:g}
start = [0, 0]
home = [0, 0]
max_steps = 8
[policy]
kind = "random"
[model]
kernel = "matern52"
length_scales = [15, 15]
learn = false
"""


PIER = shapely.box(25, -1, 35, 28)
REEDS = shapely.Polygon([(8, 33), (22, 36), (20, 44), (9, 45)])
CLEARANCE_M = 2.0
AREAS = [shapely.box(18, 18, 42, 32), shapely.box(2, 35, 12, 45), shapely.box(45, 5, 55, 15)]
"""Areas to close while a boat is about."""

OBSTACLES = f"""clearance = {CLEARANCE_M}
obstacles = [{{ name = "pier", low = [25, -1], high = [35, 28] }},
             {{ name = "reeds", corners = [[8, 33], [22, 36], [20, 44], [9, 45]] }}]
"""


def pond(folder: Path, obstacles: str = "") -> Path:
    """Write the pond and its mission; return the mission's file."""
    write(folder / "pond" / "world.toml", WORLD.replace("[field]", f"{obstacles}[field]"))
    write(folder / "pond.toml", MISSION)
    return folder / "pond.toml"


def long_pond(folder: Path) -> Path:
    """Write the pond and a mission that nothing ends in time, however slow the machine; return its file."""
    mission = pond(folder)
    for old, new in (("max_steps = 8", "max_steps = 600"), (f"{BATTERY_S:g}", f"{10 * BATTERY_S:g}")):
        write(mission, mission.read_text().replace(old, new))
    return mission


def area_beside(*places: np.ndarray) -> shapely.Polygon:
    """Return the first of `AREAS` beside the straight way past some places (d,): a boat is about there."""
    way = shapely.LineString([*places, *places[-1:]]).buffer(3.0)
    return next(area for area in AREAS if not way.intersects(area))


def logged_pond(folder: Path, spacing_m: float = 2.0, sites: int = 3) -> Path:
    """Write a pond whose sensor also reads on the way, and a mission to a few sites; return its file."""
    mission = pond(folder)
    for file, old, new in (
        (folder / "pond" / "world.toml", "[sensor]", f"[sensor]\nalong = {{ every_m = {spacing_m:g} }}"),
        (mission, "max_steps = 8", f"max_steps = {sites}"),
    ):
        write(file, file.read_text().replace(old, new))
    return mission


def check_logged(mission: Mission, observations: Sequence[Observation], least: float = 0.5) -> None:
    """Check that readings on the way lie where they were taken, for at least a share of what is declared."""
    position, driven, number = mission.vehicles[0].start, 0.0, 0
    gaps = list[float]()
    for seen in observations:
        sites = seen.sites[: -1 if seen.last and len(seen.sites) else None]
        number += len(sites)
        gaps += np.abs(seen.values[: len(sites)] - mission.world.truth(sites)).tolist() if len(sites) else []
        driven, position = driven + float(np.linalg.norm(seen.position - position)), seen.position
    spacing = mission.world.sensor.along.every_m
    assert least * driven / spacing < number <= driven / spacing + 1
    assert np.median(gaps) < 5 * NOISE_SD
    assert max(gaps) < 0.4  # the field changes by about 0.1 per metre


def still_lake(folder: Path) -> Path:
    """Write the lake of the catalogue, with readings that repeat, and its mission; return the file.

    A robot that streams may read twice at a site, or between sites, if a message is late.
    """
    root = Path(__file__).parents[2]
    world = (root / "worlds" / "lake-transect" / "world.toml").read_text()
    write(folder / "lake" / "world.toml", world.replace("noise_sd = 0.05", "noise_sd = 1e-6"))
    mission = (root / "missions" / "lake-level-set.toml").read_text()
    write(folder / "lake.toml", mission.replace("lake-transect", "lake"))
    return folder / "lake.toml"


def pond_mission(folder: Path) -> Mission:
    """Write the pond and its mission; return the mission."""
    return load_mission(str(pond(folder)))
