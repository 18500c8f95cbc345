"""A small lake on the Earth for tests: outline with an island, a swimmers' zone, and a log in degrees."""

import json

import numpy as np
import shapely
from pyproj import Transformer

UTM = "EPSG:32632"
MIDDLE = np.array([463_000.0, 5_239_500.0])
TO_DEGREES = Transformer.from_crs(UTM, "EPSG:4326", always_xy=True)


def at(east, north):
    """Return a point in UTM, given in metres from the middle of the lake."""
    return MIDDLE + np.array([east, north])


SHORE = shapely.Polygon(
    MIDDLE + np.array([[-200, -150], [0, -190], [190, -140], [210, 120], [20, 60], [-60, 180], [-210, 130]])
)
ISLAND = shapely.Point(at(60, -60)).buffer(30, quad_segs=4)
LAKE = shapely.difference(SHORE, ISLAND)
SWIMMERS = shapely.box(*at(-190, -100), *at(-120, -40))
START = (47.30657, 8.51051)
"""Latitude and longitude of a place in the water, near the southern shore."""


def degrees(shape):
    """Return a shape in UTM in longitude and latitude."""
    return shapely.transform(shape, lambda xy: np.column_stack(TO_DEGREES.transform(*xy.T)))


def geojson(*shapes, names=()):
    """Return shapes in longitude and latitude as the text of a GeoJSON file."""
    features = [
        {"type": "Feature", "properties": {"name": name}, "geometry": json.loads(shapely.to_geojson(shape))}
        for shape, name in zip(shapes, [*names, *[None] * len(shapes)], strict=False)
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


def value_at(points):
    """Return the true quantity at points (n, 2) in UTM."""
    x, y = (points - MIDDLE).T
    return 8.0 + 6.0 * np.exp(-((x - 90.0) ** 2 + (y - 20.0) ** 2) / (2 * 70.0**2)) + np.sin(x / 60.0)


def log_rows(step=20.0):
    """Return rows (latitude, longitude, value) of a log along west-east lines."""
    rng, water = np.random.default_rng(0), shapely.buffer(LAKE, -6.0).difference(SWIMMERS)
    rows = []
    for line, y in enumerate(np.arange(-180.0, 181.0, 45.0)):
        for x in np.arange(-210.0, 211.0, step)[:: (-1) ** line]:
            point = at(x, y)
            if water.contains(shapely.Point(point)):
                longitude, latitude = TO_DEGREES.transform(*point)
                value = value_at(point[None])[0] + 0.1 * rng.standard_normal()
                rows.append((latitude, longitude, value))
    return rows


def write_lake(folder):
    """Write lake.geojson, swimmers.geojson and sonde.csv to a folder."""
    (folder / "lake.geojson").write_text(geojson(degrees(LAKE)))
    (folder / "swimmers.geojson").write_text(geojson(degrees(SWIMMERS), names=["swimmers"]))
    lines = [f"{lat:.7f},{lon:.7f},{value:.3f}" for lat, lon, value in log_rows()]
    (folder / "sonde.csv").write_text("\n".join(["lat,lon,chl", *lines]) + "\n")
