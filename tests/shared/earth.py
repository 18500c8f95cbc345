"""Worlds on the Earth, in folders of their own: sites at a spacing inside an outline in degrees."""

import json
from dataclasses import dataclass

import numpy as np
from working_folder import write

from fieldbo.domain.georeference import WGS84, reprojected


@dataclass(frozen=True)
class Spot:
    """The middle of a world, in a CRS."""

    crs: str
    latitude: float
    longitude: float


SPOTS = {
    "lake": Spot("EPSG:32632", 47.3079, 8.5105),
    "south": Spot("EPSG:32734", -33.9, 18.4),
    "dateline": Spot("EPSG:32660", 51.9, 180.0),
    "fiji": Spot("EPSG:32701", -17.0, -180.0),
    "arctic": Spot("EPSG:32632", 79.9, 6.1),  # at the edge of its zone: grid north is 3° off
    "pole": Spot("EPSG:5041", 86.0, 100.0),
    "antarctica": Spot("EPSG:5042", -88.0, -45.0),
    "delft": Spot("EPSG:28992", 52.0, 4.37),
}

OUTLINE = [(-150, -100), (150, -100), (150, 40), (60, 100), (-150, 100)]
"""Corners in metres of a CRS around the middle."""

ISLAND = [(-90, -20), (-40, -20), (-40, 30), (-90, 30)]
REEF = [(20, -60), (60, -60), (60, 20), (20, 20)]

WORLD = """format = 1
version = "1"
title = "a bay"
cost_unit = "s"
start = {{ latitude = {start[0]!r}, longitude = {start[1]!r} }}
[value]
name = "turbidity"
[domain]
kind = "lattice"
crs = "{crs}"
outline = "outline.geojson"
avoid = "avoid.geojson"
spacing = {spacing}
pattern = "{pattern}"
clearance = 4
{field}
[cost]
kind = "euclidean"
rate = 1.0
sampling = 2.0
[sensor]
noise_sd = 0.05
"""
FIELD = """[field]
kind = "gp-draw"
length_scales = [60, 60]"""

MISSION = """format = 1
title = "a sweep of the bay"
world = "{name}"
[question]
kind = "{question}"{threshold}
[agent]
battery = 8000
home = {{ latitude = {home[0]!r}, longitude = {home[1]!r} }}
max_steps = 6
[policy]
kind = "{policy}"
[model]
learn = false
length_scales = [60, 60]
"""


def degrees_at(spot, east, north):
    """Return latitude and longitude of a point in metres of the CRS from a spot's middle."""
    middle = reprojected([[spot.longitude, spot.latitude]], WGS84, spot.crs)[0]
    longitude, latitude = reprojected([middle + np.array([east, north])], spot.crs, WGS84)[0].tolist()
    return latitude, longitude


def world_on_earth(
    folder,
    name="lake",
    *,
    spacing=20,
    pattern="square",
    field=FIELD,
    start=(-120, -80),
    home=(-120, -80),
    question="level-set",
    policy="lawnmower",
):
    """Write a world and its mission into a folder; return the mission's file."""
    spot = SPOTS[name]

    def ring(corners):
        places = [degrees_at(spot, *corner)[::-1] for corner in [*corners, corners[0]]]
        return np.round(places, 9).tolist()

    def collection(kind, coordinates, **properties):
        geometry = {"type": kind, "coordinates": coordinates}
        feature = {"type": "Feature", "properties": properties, "geometry": geometry}
        return json.dumps({"type": "FeatureCollection", "features": [feature]})

    worlds = folder / "worlds" / name
    write(worlds / "outline.geojson", collection("Polygon", [ring(OUTLINE), ring(ISLAND[::-1])]))
    write(worlds / "avoid.geojson", collection("Polygon", [ring(REEF)], name="reef"))
    start, home_at = degrees_at(spot, *start), degrees_at(spot, *home)
    write(
        worlds / "world.toml",
        WORLD.format(crs=spot.crs, spacing=spacing, pattern=pattern, field=field, start=start),
    )
    threshold = "\nthreshold = 0.3" if question == "level-set" else ""
    text = MISSION.format(name=name, question=question, threshold=threshold, home=home_at, policy=policy)
    write(folder / "missions" / f"{name}.toml", text)
    return folder / "missions" / f"{name}.toml"
