"""The last map of a run as a picture, for a browser or a viewer of e-mail that runs no scripts."""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import dataclass

import numpy as np
import shapely

from fieldbo._numerics.arrays import Array
from fieldbo.domain.obstacles import Region
from fieldbo.pages.course import Course
from fieldbo.pages.field_map import VALUES
from fieldbo.pages.plane import Plane
from fieldbo.pages.raster import Raster

WIDTH = 1000
"""Of the picture, in its own units."""


@dataclass(frozen=True)
class Still:
    """A picture in SVG.

    Attributes
    ----------
    height : float
        For a `WIDTH` of 1000.
    image : str
        The posterior mean as a data URL; empty if there is none.
    low, high : float
        Values at the ends of its colours.
    ground, obstacles : str
        Outline and obstacles, as paths.
    routes : tuple of str
        Points of each vehicle's route.
    readings, earlier : tuple of (float, float)
        Those of the run, and those with which it began.
    """

    height: float
    image: str
    low: float
    high: float
    ground: str
    obstacles: str
    routes: tuple[str, ...]
    readings: tuple[tuple[float, float], ...]
    earlier: tuple[tuple[float, float], ...]


def still_of(course: Course, plane: Plane, raster: Raster | None, routes: list[Array]) -> Still:
    """Return the last map of a run.

    Parameters
    ----------
    course : Course
    plane : Plane
    raster : Raster or None
    routes : list of (k, d) array
        Of each vehicle.
    """
    height = round(WIDTH * plane.ratio, 1)
    size = np.array([WIDTH, height])

    def placed(points: Array) -> list[list[float]]:
        return (plane.on_screen(points) * size).round(1).tolist() if len(points) else []

    def path(region: Region) -> str:
        rings = (r for part in shapely.get_parts(region) for r in (part.exterior, *part.interiors))
        lines = (placed(plane.whole(shapely.get_coordinates(ring)[:, :2])) for ring in rings)
        return "".join("M" + "L".join(f"{x},{y}" for x, y in line) + "Z" for line in lines)

    image, low, high = ("", 0.0, 0.0) if raster is None else _image(course.frames[-1].layers["mean"], raster)
    return Still(
        height=height,
        image=image,
        low=low,
        high=high,
        ground=path(plane.ground),
        obstacles="".join(
            path(obstacle.polygon) for obstacle in (*plane.obstacles, *course.result.mission.world.no_go)
        ),
        routes=tuple(" ".join(f"{x},{y}" for x, y in placed(route)) for route in routes),
        readings=tuple((x, y) for x, y in placed(course.result.sites)),
        earlier=tuple((x, y) for x, y in placed(course.result.mission.earlier.sites)),
    )


def _image(values: Array, raster: Raster) -> tuple[str, float, float]:
    """Return values (N,) as a PNG, and the values at the ends of its colours."""
    from matplotlib import colormaps
    from matplotlib.image import imsave

    shown = values[raster.shown]
    finite = shown[np.isfinite(shown)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    share = (shown - low) / (high - low) if high > low else np.zeros(len(shown))
    colours = colormaps[VALUES](np.append(share, np.nan), bytes=True)  # the last one is transparent
    file = io.BytesIO()
    imsave(file, colours[raster.pixels], format="png", metadata={"Software": "fieldbo"})
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}", low, high
