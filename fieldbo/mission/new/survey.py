"""A new world from the CSV of a survey."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fieldbo._numerics.arrays import Array
from fieldbo.belief.question import Side
from fieldbo.belief.value_scale import Transform
from fieldbo.domain.axes import is_depth
from fieldbo.errors import InputError
from fieldbo.mission.new.mission import LevelSetMission
from fieldbo.mission.new.writer import (
    Draft,
    NewWorld,
    Source,
    check_columns_differ,
    check_values_differ,
    four_digits,
    new_places,
)
from fieldbo.world.readings import Readings, read_readings
from fieldbo.world.survey_validation import Validation
from fieldbo.world.world import World

_SITES = 2500
_DEGREES = {"lon", "long", "longitude", "lng", "lat", "latitude"}
_HULL_RATIO = 0.35  # between 0, the tightest outline, and 1, the convex hull


@dataclass(frozen=True)
class Survey(Source):
    """The CSV of a survey, and options for its world and mission.

    Parameters
    ----------
    csv : Path
        The readings, with positions in metres.
    x : str
        Column of the first position.
    value : str
        Column that holds the value.
    y : str, optional
        Column of the second position. If its name contains "depth", the world is a transect.
    noise_sd : str, optional
        Column that holds the readings' standard deviations.
    channels : tuple of str
        Columns of other quantities.
    transform : {"none", "log"}
    value_unit : str
    quantile : float, optional
        Threshold of the first mission, as a quantile of the readings. By default 0.7, or 0.3 if the mission
        asks for the set below.
    threshold : float, optional
        The threshold itself, instead.
    side : {"above", "below"}
        The side of the threshold that the mission maps.
    battery : str or float, optional
        Battery of the mission, in seconds or with a unit; by default, enough for about 40 stops.
    fitted_model : bool
        Whether the mission's model begins with the fit to the table.
    """

    csv: Path
    x: str
    value: str
    y: str | None = None
    noise_sd: str | None = None
    channels: tuple[str, ...] = ()
    transform: Transform = "none"
    value_unit: str = "1"
    quantile: float | None = None
    threshold: float | None = None
    side: Side = "above"
    battery: str | float | None = None
    fitted_model: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of position."""
        return (self.x,) if self.y is None else (self.x, self.y)

    @property
    def mission(self) -> LevelSetMission:
        """What the first mission asks."""
        return LevelSetMission(self.threshold, self.side, self.quantile, self.battery)

    def read(self) -> Readings:
        """Return the readings.

        Raises
        ------
        InputError
            If an option, a column or the readings are not valid.
        """
        self._check_options()
        for column in self.columns:
            if column.strip().lower() in _DEGREES:
                raise InputError(
                    f"the positions in {column!r} are in degrees",
                    expected="metres, in a projected coordinate system",
                    where=str(self.csv),
                    fix="name the columns with --lat and --lon instead; fieldbo projects them",
                )
        readings = read_readings(self.csv, self.columns, self.value, self.noise_sd, self.channels)
        self._check_readings(readings)
        return readings

    def _check_options(self) -> None:
        self.mission.check(self.transform)
        if self.x == self.y:
            raise InputError(
                f"both positions are in column {self.x!r}",
                expected="two different columns",
                where="--x and --y",
            )
        channels = [("--channel", channel) for channel in self.channels]
        named = [("--x", self.x), ("--y", self.y), ("--value", self.value), ("--noise", self.noise_sd)]
        check_columns_differ([*named, *channels])

    def _check_readings(self, readings: Readings) -> None:
        for column, positions in zip(self.columns, readings.sites.T, strict=True):
            if np.ptp(positions) <= 0:
                raise InputError(
                    f"all readings have the same {column}",
                    expected="positions that differ",
                    where=str(self.csv),
                )
            if is_depth(column) and positions.min() < 0:
                raise InputError(
                    f"a depth is negative: {positions.min():g}",
                    expected="depths of at least 0, positive downwards",
                    where=f"{self.csv}, column {column}",
                )
        check_values_differ(readings, "readings", self)


def make_world(name: str, survey: Survey, folder: Path | None = None, *, overwrite: bool = False) -> NewWorld:
    """Write ``worlds/NAME`` and ``missions/NAME.toml`` in a folder, by default the working directory.

    With `overwrite`, in place of a world and a mission of that name.

    Raises
    ------
    InputError
        If the name or the survey is not valid, one of the two exists already, or they can't be written.
    """
    places = new_places(name, folder, overwrite=overwrite)
    return SurveyDraft.fitted(survey, survey.columns, survey.read()).write(*places)


class SurveyDraft(Draft):
    """The draft of a surveyed world: a grid or a transect, and a level-set mission."""

    source: Survey
    comment = (
        "# The truth is drawn from the Gaussian process fitted to readings.csv. The costs are guesses:\n"
        "# replace them in [cost] by those of your vehicle. To check this file, run: fieldbo check\n"
    )
    rows = "readings"

    @property
    def is_transect(self) -> bool:
        """Whether the second position is a depth."""
        return self.source.y is not None and is_depth(self.source.y)

    @property
    def heading(self) -> dict[str, Any]:
        title = f"{self.source.value} as surveyed in {self.source.csv.name}"
        return {"title": title, "cost_unit": "s", "start": self._start()}

    def _start(self) -> list[float]:
        """Return the reading nearest to the low corner; on a transect, the surface there."""
        x = self.readings.sites
        if self.is_transect:
            return [float(x[:, 0].min()), 0.0]
        first: list[float] = x[np.argmin(((x - x.min(axis=0)) / np.ptp(x, axis=0)).sum(axis=1))].tolist()
        return first

    def domain(self) -> dict[str, Any]:
        """Return a grid of about 2,500 sites; an equally spaced one has the outline of the readings."""
        x = self.readings.sites
        low, high = x.min(axis=0), x.max(axis=0)
        outline = None
        if len(low) == 1:
            counts = [201]
        elif self.is_transect:
            counts, low = [50, 50], np.array([low[0], 0.0])
        else:
            spacing = np.sqrt(np.prod(high - low) / _SITES)
            counts = [max(2, round(e / spacing) + 1) for e in high - low]
            outline = outline_of(x)
        axes = [
            {"name": column, "unit": "m", "low": float(a), "high": float(b), "count": n}
            for column, a, b, n in zip(self.columns, low, high, counts, strict=True)
        ]
        return {"kind": "grid", "axes": axes, **({"outline": outline} if outline else {})}

    def cost(self) -> dict[str, Any]:
        if self.is_transect:
            return {"kind": "transect", "along_rate": 0.25, "depth_rate": 4.0}
        return {"kind": "euclidean", "rate": 1.0, "sampling": 60.0}

    def first_mission(self) -> dict[str, Any]:
        asked = self.source.mission
        return asked.tables(self.source.value, asked.threshold_of(self.readings.values), self._battery())

    def validation(self, world: World) -> Validation | None:
        return self.field.validation(world.domain.sites)

    def _battery(self) -> float:
        """Return enough for a few crossings and about forty samples."""
        extent = np.ptp(self.readings.sites, axis=0)
        if self.is_transect:
            return four_digits(4 * 0.25 * extent[0] + 40 * 4 * (0.5 * extent[1] + 1))
        return four_digits(5 * float(extent.sum()) + 40 * 60.0)


def outline_of(sites: Array) -> list[list[float]]:
    """Return the corners of a polygon around scattered sites (n, 2), slightly larger than their hull."""
    points = shapely.MultiPoint(sites)
    hull = shapely.concave_hull(points, ratio=_HULL_RATIO)
    buffer = 0.02 * float(np.ptp(sites, axis=0).max())
    outline = hull.buffer(buffer).simplify(0.25 * buffer)
    box = shapely.box(*points.bounds)
    corners = np.round(np.array(_largest(outline.intersection(box)).exterior.coords)[:-1], 3)
    return [[float(x), float(y)] for x, y in corners]


def _largest(shape: BaseGeometry) -> shapely.Polygon:
    """Return the largest polygon of a shape."""
    parts = [p for p in getattr(shape, "geoms", [shape]) if isinstance(p, shapely.Polygon)]
    return max(parts, key=lambda p: float(p.area))
