"""A new world from the log of a survey: in metres of its own, or on the Earth."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.value_scale import Transform
from fieldbo.domain.axes import is_depth
from fieldbo.domain.georeference import WGS84, check_degrees, crs_of, reprojected, same_crs
from fieldbo.domain.lattice import lattice
from fieldbo.errors import InputError
from fieldbo.mission.bathymetry import notes_on_depths
from fieldbo.mission.layers import Layer
from fieldbo.mission.new.mission import LevelSetMission, Threshold
from fieldbo.mission.new.place import OPTIONS, Extent, Place, outline_of, place_of
from fieldbo.mission.new.writer import (
    Draft,
    NewWorld,
    Source,
    check_columns_differ,
    check_values_differ,
    four_digits,
    new_places,
    shorten_names,
)
from fieldbo.mission.shapes import as_obstacles, as_outline
from fieldbo.tables.cleaning import Cleaning
from fieldbo.tables.coordinates import Bounds
from fieldbo.tables.readings import Readings
from fieldbo.tables.source import Opening
from fieldbo.tables.survey import SurveyPoints, survey_points
from fieldbo.tables.table import Table

_SITES = 2500
_CROSSINGS, _STOPS = 5, 40
_SAME_M = 0.5
_PAD = 1.0  # degrees
_LOWRANCE = ("PositionX", "PositionY")
_FEWEST_FOR_SKEW, _SKEWED, _SKEWED_LOG = 20, 3.0, 1.0
_DEGREES = {"lon", "long", "longitude", "lng", "lat", "latitude"}

Positions = Literal["degrees", "metres"]


@dataclass(frozen=True)
class Survey(Source):
    """A log of readings, and options for its world and mission.

    Parameters
    ----------
    csv : Path
        The log, in any format that `fieldbo.tables.opening.open_table` reads.
    columns : tuple of str
        Columns of the position: latitude and longitude; or x and y, or x alone, in metres. If the name of y
        contains "depth", the world is a transect.
    value : str
        Column that holds the value.
    positions : {"degrees", "metres"}
    extent : Extent, optional
        Of a place on the Earth. Without it, the world is a grid in metres of its own; positions in degrees
        need it, and those in metres then need its CRS.
    depth : str, optional
        Column of the depth, for a place with sites at depths.
    time : str, optional
        Column of the time, which sorts the log.
    missing : tuple of float
        Numbers that stand for no value, such as -9999.
    noise_sd : str, optional
        Column that holds the readings' standard deviations.
    channels : tuple of str
        Columns of other quantities.
    transform : {"none", "log"}, optional
        By default, the log of values that are heavy-tailed.
    value_unit : str
        By default, that of the log.
    mission : LevelSetMission
        Threshold, side and battery of the first mission.
    fitted_model : bool
        Whether the mission's model begins with the fit to the table.
    opening : Opening
        What the file needs to be read besides its path, such as a track.
    cleaning : {"ask", "clean", "keep"}
        What becomes of readings that look wrong: an error lists them, or they are left out, or taken.
    low, high : float, optional
        The least and the largest possible value.
    """

    csv: Path
    columns: tuple[str, ...]
    value: str
    positions: Positions = "metres"
    extent: Extent | None = None
    depth: str | None = None
    time: str | None = None
    missing: tuple[float, ...] = ()
    noise_sd: str | None = None
    channels: tuple[str, ...] = ()
    transform: Transform | None = None
    value_unit: str = ""
    mission: LevelSetMission = field(default_factory=LevelSetMission)
    fitted_model: bool = False
    opening: Opening = field(default_factory=Opening)
    cleaning: Cleaning = "ask"
    low: float | None = None
    high: float | None = None

    @property
    def is_transect(self) -> bool:
        """Whether the second position is a depth."""
        return self.extent is None and len(self.columns) == 2 and is_depth(self.columns[1])

    def read(self, bounds: Bounds | None = None) -> SurveyReadings:
        """Return the readings, pooled, and notes.

        Parameters
        ----------
        bounds : (west, south, east, north), optional
            Where the survey should lie, in degrees, to recognise exchanged columns.

        Raises
        ------
        InputError
            An option, a column or the readings are not valid or doubtful.
        """
        self._check_positions()
        log = self.opening.open(self.csv, self.time)
        named = [(option, log.column(column, option)) for option, column in self._options]
        check_columns_differ(named)
        points = self._points(log, [column for _, column in named[: len(self.columns)]], bounds)
        positions = points.positions
        if self.positions == "degrees":
            positions = np.where(positions > 180.0, positions - 360.0, positions)  # across the antimeridian
            check_degrees(
                positions[:, 0], positions[:, 1], f"{self.csv}, columns {' and '.join(self.columns)}"
            )
        sites = positions if points.depths is None else np.column_stack([positions, points.depths])
        noise = None if self.noise_sd is None or points.noise_sd is None else points.noise_sd**2
        *axes, value = shorten_names([column for _, column in named[: len(self.columns) + 1]])
        readings = Readings(sites, points.values, noise, points.channels, value, points.lines)
        unit = log.units.get(log.column(self.value), "1")
        taken = SurveyReadings(readings, axes, points.notes, unit, float(np.median(points.counts)))
        self._check_readings(taken)
        return taken

    def _points(self, log: Table, columns: Sequence[str], bounds: Bounds | None) -> SurveyPoints:
        axes = ("lat", "lon") if self.positions == "degrees" else ("x", "depth" if self.is_transect else "y")
        where: dict[str, Any] = {"depth": self.depth, **dict(zip(axes, columns, strict=False))}
        points = survey_points(
            log,
            **where,
            value=self.value,
            value_unit=self.value_unit,
            time=self.time,
            noise_sd=self.noise_sd,
            channels=self.channels,
            missing=self.missing,
            bounds=bounds,
            cleaning=self.cleaning,
            low=self.low,
            high=self.high,
            spacing_m=None if self.extent is None else self.extent.spacing,
        )
        if points.doubts:
            raise InputError(
                "; ".join(points.doubts),
                expected="a log without doubtful values",
                where=str(self.csv),
                fix="correct the options, the log or the outline; name numbers that stand for no "
                "value, as in --missing -9999",
            )
        return points

    @property
    def _options(self) -> list[tuple[str, str]]:
        """The options that name columns, those of the position and the value first."""
        axes = ("--lat", "--lon") if self.positions == "degrees" else ("--x", "--y")
        named = [*zip(axes, self.columns, strict=False), ("--value", self.value), ("--noise", self.noise_sd)]
        named += [("--time", self.time), ("--depth", self.depth)]
        named += [("--channel", channel) for channel in self.channels]
        return [(option, column) for option, column in named if column is not None]

    def _check_positions(self) -> None:
        """Raise an `InputError` if the positions are in degrees unexpectedly, or their CRS is missing."""
        if self.positions == "degrees":
            return
        for column in self.columns:
            if column.strip().lower() in _DEGREES:
                raise InputError(
                    f"the positions in {column!r} are in degrees",
                    expected="metres, in a projected coordinate system",
                    where=str(self.csv),
                    fix="name the columns with --lat and --lon instead; fieldbo projects them",
                )
        if self.extent is None:
            return
        if self.extent.crs is None or not crs_of(self.extent.crs, "--crs").is_projected:
            raise InputError(
                "the CRS of the positions is not given",
                expected="--crs with the projected CRS of --x and --y, for example --crs EPSG:28992",
                where="--crs",
                fix="add it, or leave out the options of a place on the Earth, such as --speed and --stop",
            )

    def _check_readings(self, taken: SurveyReadings) -> None:
        readings = taken.readings
        for column, positions in zip(taken.axes, readings.sites.T, strict=False):
            if self.extent is None and np.ptp(positions) <= 0:
                raise InputError(
                    f"all readings have the same {column}",
                    expected="positions that differ",
                    where=str(self.csv),
                )
        if self.is_transect and readings.sites[:, 1].min() < 0:
            raise InputError(
                f"a depth is negative: {readings.sites[:, 1].min():g}",
                expected="depths of at least 0, positive downwards",
                where=f"{self.csv}, column {self.columns[1]}",
            )
        self._check_places_differ(readings)
        check_values_differ(readings, "readings", self)

    def _check_places_differ(self, readings: Readings) -> None:
        """Raise an `InputError` if a world of a surface is to be made from readings at one place."""
        horizontal = readings.sites[:, :1] if self.is_transect else readings.sites[:, :2]
        if np.ptp(horizontal, axis=0).max() > 0:
            return
        raise InputError(
            "all rows of the log lie at one place",
            expected="readings at several places: a world is a map",
            where=f"{self.csv}, columns {' and '.join(self.columns)}",
            fix="if it is a cast, join several casts in one table, one below the other, with columns of "
            "their positions; --depth and --depths then make the world one of depths, too",
        )


class SurveyReadings(NamedTuple):
    """What a world takes from a log.

    Attributes
    ----------
    readings : Readings
        Their sites are latitudes and longitudes, or metres, as in the log; and depths.
    axes : sequence of str
        Names of the columns of the position.
    notes : tuple of str
    unit : str
        Unit of the value.
    pooled : float
        How many rows of the log a reading usually pools.
    """

    readings: Readings
    axes: Sequence[str]
    notes: tuple[str, ...]
    unit: str
    pooled: float


def make_world(name: str, survey: Survey, folder: Path | None = None, *, overwrite: bool = False) -> NewWorld:
    """Write ``worlds/NAME`` and ``missions/NAME.toml`` in a folder, by default the working directory.

    With `overwrite`, in place of a world and a mission of that name.

    Raises
    ------
    InputError
        The name, an option or a file is not valid, one of the two exists, or they can't be written.
    """
    places = new_places(name, folder, overwrite=overwrite)
    survey.mission.check(survey.transform or "none")
    outline = None if survey.extent is None else survey.extent.read_outline()
    taken = survey.read(None if outline is None else _bounds(outline))
    readings = taken.readings
    survey = replace(survey, value=readings.column, value_unit=survey.value_unit or taken.unit)
    about: dict[str, Any] = {"about_table": taken.notes, "pooled": taken.pooled}
    if survey.transform is None and (heavy := heavy_tail(readings.values)):
        survey = replace(survey, transform="log")
        about["about_table"] += (heavy,)
    if survey.extent is None:
        extent = np.ptp(readings.sites, axis=0)
        if survey.is_transect:
            extent[1] = readings.sites[:, 1].max()  # from the surface on, as the world's
        return SurveyDraft.fitted(survey, taken.axes, readings, extent, **about).write(*places)
    positions, depths = np.split(readings.sites, [2], axis=1)
    degrees = positions
    if survey.positions == "metres":
        assert survey.extent.crs is not None
        _check_order(positions, survey.extent.crs, survey)
        degrees = reprojected(positions, survey.extent.crs, WGS84)[:, ::-1]
    place = place_of(survey.extent, outline, degrees, local=survey.positions == "metres")
    if depths.shape[1] != len(survey.extent.depths[:1]):
        raise InputError(
            "a column of depths and the depths of the sites belong together",
            expected="--depth COLUMN and --depths NUMBERS, or neither",
            where="--depths" if survey.depth is None else "--depth",
        )
    readings = replace(readings, sites=np.column_stack([place.georeference.metres(degrees), depths]))
    names = [axis.name for axis in place.domain.axes]
    draft = PlaceDraft.fitted(
        survey, names, readings, place.domain.extent, **about, place=place, degrees=degrees
    )
    return draft.write(*places)


def heavy_tail(values: Array) -> str:
    """Return why values (n,) are modelled on a log scale; empty text for those that are not heavy-tailed.

    Examples
    --------
    >>> heavy_tail(np.exp(np.arange(40.0) / 3.0))[:42]
    'the largest value is 656 times the median,'
    >>> heavy_tail(np.arange(1.0, 41.0))
    ''
    """
    if len(values) < _FEWEST_FOR_SKEW or values.min() <= 0.0:
        return ""
    skew, skew_of_log = (
        abs(float(np.mean((y - y.mean()) ** 3)) / y.std() ** 3) for y in (values, np.log(values))
    )
    if skew < _SKEWED or skew_of_log > _SKEWED_LOG:
        return ""
    return (
        f"the largest value is {values.max() / np.median(values):.3g} times the median, and logarithms are "
        f"less skewed ({skew_of_log:.1f} instead of {skew:.1f}): modelled on a log scale; --transform none "
        "models the values themselves"
    )


def _check_order(positions: Array, crs: str, survey: Survey) -> None:
    """Raise an `InputError` if only the other order of eastings and northings (n, 2) is within their CRS."""
    from pyproj.exceptions import ProjError

    if survey.columns == _LOWRANCE and same_crs(crs, "EPSG:3857"):
        raise InputError(
            "PositionX and PositionY of a Lowrance log are not on the sphere of EPSG:3857",
            expected="the CRS of the log; EPSG:3857 would move the readings by kilometres",
            where="--crs",
            fix="--crs '+proj=merc +R=6356752.3142'",
        )
    area = crs_of(crs, "--crs").area_of_use
    if area is None:
        return
    middle = np.median(positions, axis=0)

    def is_within(point: Array) -> bool:
        try:
            longitude, latitude = reprojected(point, crs, WGS84)[0]
        except ProjError:
            return False
        across = (longitude - area.west + _PAD) % 360.0 <= (area.east - area.west) % 360.0 + 2 * _PAD
        return bool((across or area.east - area.west >= 360.0) and area.south <= latitude <= area.north)

    if not is_within(middle) and is_within(middle[::-1]):
        x, y = survey.columns
        raise InputError(
            f"easting and northing look exchanged: only so do the readings lie where {crs} is used",
            expected="--x with the column of the easting, --y with that of the northing",
            where="--x",
            fix=f"--x {shlex.quote(y)} --y {shlex.quote(x)}",
        )


def _bounds(outline: Layer) -> Bounds:
    """Return west, south, east and north of an outline, in degrees."""
    (west, south), (east, north) = outline.corners.min(axis=0), outline.corners.max(axis=0)
    return float(west), float(south), float(east), float(north)


class SurveyDraft(Draft):
    """The draft of a surveyed world, a grid or a transect in metres, and a level-set mission."""

    source: Survey
    comment = (
        "# The truth is drawn from the Gaussian process fitted to readings.csv. The costs are guesses:\n"
        "# replace them in [cost] by those of your vehicle. To check this file, run: fieldbo check\n"
    )
    rows = "readings"

    @property
    def heading(self) -> dict[str, Any]:
        title = f"{self.source.value} as surveyed in {self.source.csv.name}"
        return {"title": title, "cost_unit": "s", "start": self._start()}

    def _start(self) -> list[float]:
        """Return the reading nearest to the low corner; on a transect, the surface there."""
        x = self.readings.sites
        if self.source.is_transect:
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
        elif self.source.is_transect:
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
        if self.source.is_transect:
            return {"kind": "transect", "along_rate": 0.25, "depth_rate": 4.0}
        return {"kind": "euclidean", "rate": 1.0, "sampling": 60.0}

    def first_mission(self) -> dict[str, Any]:
        name, spread = self.source.value, float(np.ptp(self.readings.values))
        threshold = self._threshold.value
        return self.source.mission.tables(name, threshold, self._battery(), self._home(), spread)

    @cached_property
    def _threshold(self) -> Threshold:
        return self.source.mission.threshold_of(self.readings.values)

    @property
    def notes(self) -> tuple[str, ...]:
        return (*super().notes, *([self._threshold.note] if self._threshold.note else []))

    def _home(self) -> Any:
        return None

    def _battery(self) -> float:
        """Return enough for a few crossings and about forty samples."""
        extent = np.ptp(self.readings.sites, axis=0)
        if self.source.is_transect:
            return four_digits(4 * 0.25 * extent[0] + _STOPS * 4 * (0.5 * extent[1] + 1))
        return four_digits(_CROSSINGS * float(extent.sum()) + _STOPS * 60.0)


@dataclass(frozen=True, eq=False)
class PlaceDraft(SurveyDraft):
    """The draft of a world on the Earth: a lattice in an outline, and a level-set mission.

    Parameters
    ----------
    place : Place
    degrees : (n, 2) array
        Latitudes and longitudes of the readings.
    """

    source: Survey
    place: Place
    degrees: Array
    comment = (
        "# The truth is drawn from the Gaussian process fitted to readings.csv. outline.geojson and\n"
        "# avoid.geojson can be edited in a GIS. To check this file, run: fieldbo check\n"
    )

    @property
    def extent(self) -> Extent:
        """The options of the place."""
        extent = self.source.extent
        assert extent is not None
        return extent

    @property
    def notes(self) -> tuple[str, ...]:
        return (*super().notes, *self.place.notes, *self._of_bottom, *self._beyond_depths)

    @property
    def _of_bottom(self) -> tuple[str, ...]:
        """What the bathymetry says of the lake, with the sites that are too shallow."""
        place, extent = self.place, self.extent
        bottom = place.domain.bottom
        if bottom is None:
            return ()
        everywhere = lattice(
            as_outline(place.outline),
            float(place.domain.spacing[0]),
            extent.pattern,
            as_obstacles(place.avoid),
            extent.clearance,
            crs=place.crs,
        )
        return notes_on_depths(bottom.depth_at(everywhere.sites), extent.least_depth)

    @property
    def _beyond_depths(self) -> tuple[str, ...]:
        """A warning if sites lie at depths that the log does not cover."""
        depths = self.readings.sites[:, 2:]
        if not depths.size:
            return ()
        low, high = float(depths.min()), float(depths.max())
        beyond = [z for z in self.extent.depths if not low - _SAME_M <= z <= high + _SAME_M]
        if not beyond:
            return ()
        return (
            f"warning: the log covers depths of {low:.3g} to {high:.3g} m; the truth at "
            f"{', '.join(f'{z:g}' for z in beyond)} m is a guess",
        )

    @property
    def heading(self) -> dict[str, Any]:
        title = f"{self.source.value} from {self.source.csv.name}"
        return {"title": title, "cost_unit": "s", "start": self._home()}

    def domain(self) -> dict[str, Any]:
        return self.place.domain_toml(self.extent)

    def cost(self) -> dict[str, Any]:
        return {"kind": "boat", "speed": self.extent.speed, "stop_s": self.extent.stop_s}

    def _home(self) -> Any:
        return self.place.degrees_toml(self.place.start)

    def _battery(self) -> float:
        crossing = float(self.place.domain.extent.sum()) / self.extent.speed
        return four_digits(_CROSSINGS * crossing + _STOPS * self.extent.stop_s)

    def blamed(self, error: InputError) -> str:
        key = (error.where or "").rpartition(": ")[2]
        return OPTIONS.get(key, super().blamed(error))

    def write_data(self, folder: Path) -> None:
        super().write_data(folder)
        self.place.write(folder, self.extent)

    def table(self) -> dict[str, Array]:
        latitude, longitude = self.degrees.T
        sites = dict(zip(self.columns, self.readings.sites.T, strict=True))
        return {**sites, "latitude": latitude, "longitude": longitude, **super().table()}
