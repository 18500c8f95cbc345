"""Compute the files of the world lake-places: an invented lake, its bathymetry, its bloom and a survey of it.

    python makers/lake_places.py

It takes a few seconds. The same seed gives the same files.
"""

from __future__ import annotations

import argparse
import csv
import tomllib
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import shapely
import xarray as xr
from pyproj import CRS
from scipy.interpolate import RegularGridInterpolator
from scipy.ndimage import distance_transform_edt, gaussian_filter
from scipy.sparse import coo_array
from scipy.sparse.linalg import spsolve

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import WGS84, Georeference, reprojected
from fieldbo.domain.lattice import lattice
from fieldbo.domain.obstacles import Region
from fieldbo.mission.files import write_whole
from fieldbo.mission.shapes import Shape, as_obstacles, as_outline, read_shapes, write_shapes

WORLD = Path(__file__).parents[1] / "worlds" / "lake-places"
UTM = "EPSG:32633"
MIDDLE = np.array(
    [371_000.0, 5_913_000.0]
)  # easting and northing; shapes below are relative to it, in metres

CELL_M = 10.0  # of the finite differences
EVERY = 2  # cells along a cell of the bathymetry
DEEPEST_M, SLOPE_M = 13.0, 130.0  # depth of the basins, and how far from the shore it takes to get there
MIXING_M2_S = 0.3  # horizontal eddy diffusivity
LOSS_PER_S = 1 / (4 * 86_400)  # of the bloom, by grazing and settling
SOURCES = (
    (-640.0, 330.0, 1.0),
    (730.0, -60.0, 0.3),
)  # inflow of the brook, outfall of the camp site: m, m, 1
BACKGROUND, PEAK = 2.5, 26.0  # chlorophyll, mg m-3

SPEED_M_S, EVERY_S = 1.8, 5.0
TRACK = (  # of the survey: from the jetty through the west bay, round the spit and the island, and back
    (-360, -470), (-700, -220), (-330, 0), (-780, 60), (-330, 170), (-700, 270), (-330, 330), (-560, 390),
    (-250, 60), (-40, -330), (150, 400), (330, -100), (430, 370), (560, -60), (700, 190), (820, -120),
    (640, -420), (180, -520), (150, -150), (-360, -470),
)  # fmt: skip


def blob(east: float, north: float, width: float, height: float, waves: Array) -> shapely.Polygon:
    """Return an ellipse with a wavy edge."""
    angle = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    orders = np.arange(2, 2 + len(waves))
    radius = 1 + sum(a * np.cos(k * angle + p) for k, (a, p) in zip(orders, waves, strict=True))
    return shapely.Polygon(
        np.column_stack([east + width * radius * np.cos(angle), north + height * radius * np.sin(angle)])
    )


def shapes(rng: np.random.Generator) -> tuple[Region, Region]:
    """Return the lake, with an island and a spit between two bays, and the swimmers' zone."""

    def waves(n: int, size: float) -> Array:
        amplitudes = size * rng.uniform(0.5, 1, n) / np.arange(1, n + 1)
        return np.column_stack([amplitudes, rng.uniform(0, 2 * np.pi, n)])

    basin = blob(0, 0, 1000, 600, waves(6, 0.11))
    island = blob(430, -250, 110, 70, waves(4, 0.12))
    ridge = [(-60, 900), (-110, 420), (-160, 180), (-120, 0), (-60, -110)]
    spit = shapely.union_all(
        [shapely.LineString(leg).buffer(w) for leg, w in zip(pairwise(ridge), (95, 70, 50, 32), strict=True)]
    )
    lake = shapely.difference(basin, shapely.union(spit, island)).simplify(4.0)
    beach = shapely.box(-720, -900, -470, -250).intersection(basin.buffer(30)).difference(basin.buffer(-110))
    assert isinstance(lake, shapely.Polygon)
    assert isinstance(beach, shapely.Polygon)
    move = lambda shape: shapely.transform(shape, lambda xy: np.round(xy + MIDDLE, 1))  # noqa: E731
    return move(lake), move(beach.simplify(4.0))


class Grid:
    """Square cells over the lake; arrays over them are (north, east)."""

    def __init__(self, lake: Region) -> None:
        cells = CELL_M * EVERY
        low, high = np.floor(np.array(lake.bounds).reshape(2, 2) / cells - 1) * cells + CELL_M / 2
        high += (3 * cells) - CELL_M
        self.x, self.y = (np.arange(a, b + CELL_M / 2, CELL_M) for a, b in zip(low, high, strict=True))
        self.water: Mask = shapely.contains_xy(lake, *np.meshgrid(self.x, self.y))

    def at(self, values: Array, points: Array) -> Array:
        """Return values of the water at points (n, 2), interpolated between cells."""
        nearest = distance_transform_edt(~self.water, return_distances=False, return_indices=True)
        filled = values[tuple(nearest)]  # land takes the value of the water beside it
        return np.asarray(RegularGridInterpolator((self.y, self.x), filled)(points[:, ::-1]))


def depth_of(grid: Grid, rng: np.random.Generator) -> Array:
    """Return the depth of each cell, in metres: two basins with a rough bottom, 0 on land."""
    shore_m = CELL_M * distance_transform_edt(grid.water)
    rough = gaussian_filter(rng.standard_normal(grid.water.shape), 120 / CELL_M)
    depth = DEEPEST_M * (1 - np.exp(-shore_m / SLOPE_M)) * (1 + 0.12 * rough / rough.std())
    return np.where(grid.water, np.maximum(depth, 0.3), 0.0)


def bloom(grid: Grid, depth: Array) -> Array:
    """Return chlorophyll in each cell, in mg m-3: what is released mixes through the water, and is lost.

    The concentration c solves ``div(K h grad c) - loss h c + release = 0`` by finite volumes, with the depth
    h and no flux through the shore.
    """
    number = np.full(grid.water.shape, -1)
    number[grid.water] = np.arange(grid.water.sum())
    rows, columns, entries = [], [], []
    for here, there in ((np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])):
        joined = grid.water[here] & grid.water[there]
        a, b = number[here][joined], number[there][joined]
        flux = MIXING_M2_S * (depth[here][joined] + depth[there][joined]) / 2
        rows += [a, b, a, b]
        columns += [a, b, b, a]
        entries += [flux, flux, -flux, -flux]
    volume = depth[grid.water] * CELL_M**2
    each = np.arange(len(volume))
    system = coo_array(
        (
            np.concatenate([*entries, LOSS_PER_S * volume]),
            (np.concatenate([*rows, each]), np.concatenate([*columns, each])),
        )
    )
    east, north = (g[grid.water] for g in np.meshgrid(grid.x - MIDDLE[0], grid.y - MIDDLE[1]))
    release = sum(
        share * volume * np.exp(-((east - x) ** 2 + (north - y) ** 2) / (2 * 60.0**2))
        for x, y, share in SOURCES
    )
    found = spsolve(system.tocsc(), release)
    values = np.zeros(grid.water.shape)
    values[grid.water] = BACKGROUND + (PEAK - BACKGROUND) * found / found.max()
    return values


def write_bathymetry(grid: Grid, depth: Array) -> None:
    """Write the depth as NetCDF-3, which xarray and SciPy read without further packages."""
    ny, nx = (n // EVERY for n in depth.shape)
    blocks = depth[: ny * EVERY, : nx * EVERY].reshape(ny, EVERY, nx, EVERY)
    x, y = (t[: n * EVERY].reshape(n, EVERY).mean(axis=1) for t, n in ((grid.x, nx), (grid.y, ny)))
    attributes = {"units": "m", "positive": "down", "long_name": "depth of the bottom", "grid_mapping": "crs"}
    data = xr.Dataset(
        {
            "depth": (("y", "x"), blocks.mean(axis=(1, 3)).round(2).astype("f4"), attributes),
            "crs": ((), np.int32(0), {"crs_wkt": CRS(UTM).to_wkt()}),
        },
        {
            name: ((name,), ticks, {"units": "m", "standard_name": f"projection_{name}_coordinate"})
            for name, ticks in (("x", x), ("y", y))
        },
        {"Conventions": "CF-1.8", "title": "Depth of an invented lake"},
    )
    data.to_netcdf(WORLD / "bathymetry.nc", engine="scipy", format="NETCDF3_CLASSIC")


def domain() -> Domain:
    """Return the domain as world.toml has it."""
    table = tomllib.loads((WORLD / "world.toml").read_text(encoding="utf-8"))["domain"]
    outline, avoid = (read_shapes(WORLD / table[key], table["crs"]) for key in ("outline", "avoid"))
    return lattice(
        as_outline(outline),
        table["spacing"],
        obstacles=as_obstacles(avoid),
        clearance=table["clearance"],
        crs=table["crs"],
    )


def write_bloom(grid: Grid, chlorophyll: Array, sites: Array) -> None:
    """Write the chlorophyll at the sites."""
    values = grid.at(chlorophyll, sites)
    rows = [f"{east:.0f},{north:.0f},{v:.3f}" for (east, north), v in zip(sites, values, strict=True)]
    text = "\n".join(["east,north,chlorophyll", *rows, ""])
    write_whole(WORLD / "chlorophyll.csv", text.encode())


def write_survey(
    grid: Grid, depth: Array, chlorophyll: Array, domain: Domain, rng: np.random.Generator
) -> None:
    """Write the log of a boat that crosses both bays, with the flaws of a logger."""
    boat = Euclidean().within(domain)
    stops = np.array(TRACK) + MIDDLE
    route = shapely.LineString(np.concatenate([boat.path(a, b) for a, b in pairwise(stops)]))
    along = np.arange(0, route.length, SPEED_M_S * EVERY_S)
    places = shapely.get_coordinates(shapely.line_interpolate_point(route, along))
    n = len(places)
    seen = Georeference(UTM).degrees(places + 1.2 * rng.standard_normal((n, 2)))
    begun = datetime(2026, 6, 17, 7, 30, tzinfo=UTC)
    warming = 17.4 + 1.1 * np.linspace(0, 1, n)
    bottom = grid.at(depth, places)
    temperature = warming + 0.8 * np.exp(-bottom / 3) + 0.05 * rng.standard_normal(n)
    read = grid.at(chlorophyll, places) * (1 + 0.03 * rng.standard_normal(n)) + 0.2 * rng.standard_normal(n)
    rows = [
        [
            f"{begun + timedelta(seconds=k * EVERY_S):%Y-%m-%dT%H:%M:%SZ}",
            *(f"{d:.6f}" for d in seen[k]),
            f"{bottom[k] + 0.05 * rng.standard_normal():.2f}",
            f"{temperature[k]:.2f}",
            f"{max(read[k], 0.0):.2f}",
        ]
        for k in range(n)
    ]
    for k in rng.choice(n, 9, replace=False):  # no fix
        rows[k][1:3] = ["", ""]
    for column, gap in ((3, ""), (4, "NaN"), (5, "")):
        for k in rng.choice(n, 6, replace=False):
            rows[k][column] = gap
    for k in sorted(rng.choice(n, 5, replace=False))[::-1]:  # written twice
        rows.insert(k, rows[k])
    head = [
        ["time", "latitude", "longitude", "depth", "temperature", "chlorophyll"],
        ["UTC", "deg", "deg", "m", "degC", "mg m-3"],
    ]
    with (WORLD / "survey.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(head + rows)


def write_kml(path: Path, name: str, area: shapely.Polygon) -> None:
    """Write a polygon as KML, as Google Earth saves it."""

    def ring(kind: str, edge: shapely.LinearRing) -> str:
        corners = reprojected(shapely.get_coordinates(edge), UTM, WGS84)
        text = " ".join(f"{x:.7f},{y:.7f},0" for x, y in corners)
        return f"<{kind}><LinearRing><coordinates>{text}</coordinates></LinearRing></{kind}>"

    rings = [ring("outerBoundaryIs", area.exterior), *(ring("innerBoundaryIs", i) for i in area.interiors)]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>',
        f"<Placemark><name>{name}</name><Polygon>",
        *rings,
        "</Polygon></Placemark>",
        "</Document></kml>",
        "",
    ]
    write_whole(path, "\n".join(lines).encode())


def main() -> None:
    """Write the files of the world."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=6)
    rng = np.random.default_rng(parser.parse_args().seed)
    lake, beach = shapes(rng)
    for stem, name, area in (("outline", "lake", lake), ("swimmers", "swimmers", beach)):
        write_shapes(WORLD / f"{stem}.geojson", [Shape(name, area)], UTM)
        write_kml(WORLD / f"{stem}.kml", name, area)
    grid = Grid(lake)
    depth = depth_of(grid, rng)
    chlorophyll = bloom(grid, depth)
    write_bathymetry(grid, depth)
    there = domain()
    write_bloom(grid, chlorophyll, there.sites)
    write_survey(grid, depth, chlorophyll, there, rng)
    print(f"{there.size} sites in {lake.area / 1e6:.2f} km2")


if __name__ == "__main__":
    main()
