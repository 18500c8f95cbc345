"""A new world from the CSV of a survey: in metres of its own, or on the Earth."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import one_blas_thread
from fieldbo.belief.question import Side
from fieldbo.belief.value_scale import Transform
from fieldbo.domain.axes import is_depth
from fieldbo.domain.georeference import WGS84, check_degrees, crs_of, reprojected
from fieldbo.domain.lattice import lattice
from fieldbo.errors import InputError
from fieldbo.mission.bathymetry import notes_on_depths
from fieldbo.mission.files import write_whole
from fieldbo.mission.layers import Layer
from fieldbo.mission.new.mission import LevelSetMission
from fieldbo.mission.new.place import OPTIONS, Extent, Place, outline_of, place_of
from fieldbo.mission.new.writer import (
    Draft,
    NewWorld,
    Source,
    check_columns_differ,
    check_values_differ,
    four_digits,
    new_places,
)
from fieldbo.mission.shapes import as_obstacles, as_outline
from fieldbo.tables.opening import open_table
from fieldbo.tables.readings import Readings, read_readings
from fieldbo.tables.survey import survey_points
from fieldbo.tables.table import Table
from fieldbo.tables.text import bare
from fieldbo.world.fields.table import fit_table

_SITES = 2500
_DEGREES = {"lon", "long", "longitude", "lng", "lat", "latitude"}


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

    def _battery(self) -> float:
        """Return enough for a few crossings and about forty samples."""
        extent = np.ptp(self.readings.sites, axis=0)
        if self.is_transect:
            return four_digits(4 * 0.25 * extent[0] + 40 * 4 * (0.5 * extent[1] + 1))
        return four_digits(5 * float(extent.sum()) + 40 * 60.0)


_CROSSINGS, _STOPS = 5, 40
_SAME_M = 0.5


@dataclass(frozen=True)
class PlaceSurvey(Source):
    """A log of readings at a place, and options for its world and mission.

    Parameters
    ----------
    csv : Path
        The log.
    columns : (str, str)
        Columns of latitude and longitude, or of easting and northing in the extent's CRS.
    value : str
        Column that holds the value.
    extent : Extent
    in_degrees : bool
        Whether the columns are latitude and longitude.
    depth : str, optional
        Column of the depth, for a world with sites at depths.
    time : str, optional
        Column of the time, which sorts the log.
    missing : tuple of float
        Numbers that stand for no value, such as -9999.
    noise_sd : str, optional
        Column that holds the readings' standard deviations.
    channels : tuple of str
        Columns of other quantities.
    transform : {"none", "log"}
    value_unit : str
        By default, that of the log.
    mission : LevelSetMission
        Threshold, side and battery of the first mission.
    fitted_model : bool
        Whether the mission's model begins with the fit to the table.
    """

    csv: Path
    columns: tuple[str, str]
    value: str
    extent: Extent
    in_degrees: bool = True
    depth: str | None = None
    time: str | None = None
    missing: tuple[float, ...] = ()
    noise_sd: str | None = None
    channels: tuple[str, ...] = ()
    transform: Transform = "none"
    value_unit: str = ""
    mission: LevelSetMission = field(default_factory=LevelSetMission)
    fitted_model: bool = False

    def read(self, outline: Layer | None) -> _LogReadings:
        """Return the readings, their latitudes and longitudes, and notes.

        Raises
        ------
        InputError
            A column or the readings are not valid or doubtful.
        """
        log = open_table(self.csv) if self.in_degrees else None
        self._check_columns(log)
        taken = self._from_metres() if log is None else self._from_degrees(log, outline)
        check_values_differ(taken.readings, "readings", self)
        return taken

    def _check_columns(self, log: Table | None) -> None:
        """Raise an `InputError` if two options name the same column, in the log's own words for it."""
        first, second = ("--lat", "--lon") if self.in_degrees else ("--x", "--y")
        given = [(first, self.columns[0]), (second, self.columns[1]), ("--value", self.value)]
        given += [(option, column) for option, column in self._others if column is not None]
        check_columns_differ([(o, column if log is None else log.column(column, o)) for o, column in given])

    @property
    def _others(self) -> list[tuple[str, str | None]]:
        named = [("--noise", self.noise_sd), ("--time", self.time), ("--depth", self.depth)]
        return [*named, *(("--channel", channel) for channel in self.channels)]

    def _from_degrees(self, log: Table, outline: Layer | None) -> _LogReadings:
        bounds = None if outline is None else _bounds(outline)
        latitude, longitude = self.columns
        points = survey_points(
            log,
            lat=latitude,
            lon=longitude,
            value=self.value,
            time=self.time,
            depth=self.depth,
            noise_sd=self.noise_sd,
            channels=self.channels,
            missing=self.missing,
            bounds=bounds,
            spacing_m=self.extent.spacing,
        )
        if points.doubts:
            raise InputError(
                "; ".join(points.doubts),
                expected="a log without doubtful values",
                where=str(self.csv),
                fix="correct the options, the log or the outline; name numbers that stand for no "
                "value, as in --missing -9999",
            )
        longitudes = np.where(points.lon > 180.0, points.lon - 360.0, points.lon)  # across the antimeridian
        degrees = np.column_stack([points.lat, longitudes])
        check_degrees(points.lat, longitudes, f"{self.csv}, columns {' and '.join(self.columns)}")
        noise = None if self.noise_sd is None or points.noise_sd is None else points.noise_sd**2
        sites = degrees if points.depths is None else np.column_stack([degrees, points.depths])
        readings = Readings(sites, points.values, noise, points.channels, self.value, points.lines)
        column = log.column(self.value, "--value")
        unit = log.units.get(column, "1")
        return _LogReadings(
            readings, degrees, points.notes, bare(column), unit, float(np.median(points.counts))
        )

    def _from_metres(self) -> _LogReadings:
        if self.extent.crs is None or not crs_of(self.extent.crs, "--crs").is_projected:
            raise InputError(
                "the CRS of the positions is not given",
                expected="--crs with the projected CRS of --x and --y, for example --crs EPSG:28992",
                where="--crs",
                fix="add it, or leave out the options of a place on the Earth, such as --speed and --stop",
            )
        readings = read_readings(self.csv, self.columns, self.value, self.noise_sd, self.channels)
        return _LogReadings(
            readings, reprojected(readings.sites, self.extent.crs, WGS84)[:, ::-1], (), self.value
        )


class _LogReadings(NamedTuple):
    """What a world takes from a log.

    Attributes
    ----------
    readings : Readings
    degrees : (n, 2) array
        Latitudes and longitudes.
    notes : tuple of str
    value, unit : str
        Name and unit of the value.
    pooled : float
        How many rows of the log a reading usually pools.
    """

    readings: Readings
    degrees: Array
    notes: tuple[str, ...]
    value: str
    unit: str = "1"
    pooled: float = 1.0


def _bounds(outline: Layer) -> tuple[float, float, float, float]:
    """Return west, south, east and north of an outline, in degrees."""
    (west, south), (east, north) = outline.corners.min(axis=0), outline.corners.max(axis=0)
    return float(west), float(south), float(east), float(north)


def make_place_world(
    name: str, survey: PlaceSurvey, folder: Path | None = None, *, overwrite: bool = False
) -> tuple[NewWorld, Place]:
    """Write ``worlds/NAME`` and ``missions/NAME.toml`` in a folder, by default the working directory.

    With `overwrite`, in place of a world and a mission of that name.

    Raises
    ------
    InputError
        The name, an option or a file is not valid, one of the two exists, or they can't be written.
    """
    places = new_places(name, folder, overwrite=overwrite)
    survey.mission.check(survey.transform)
    outline = survey.extent.read_outline()
    taken = survey.read(outline)
    survey = replace(survey, value=taken.value, value_unit=survey.value_unit or taken.unit)
    place = place_of(survey.extent, outline, taken.degrees)
    depths = taken.readings.sites[:, 2:]
    if depths.shape[1] != len(survey.extent.depths[:1]):
        raise InputError(
            "a column of depths and the depths of the sites belong together",
            expected="--depth COLUMN and --depths NUMBERS, or neither",
            where="--depths" if survey.depth is None else "--depth",
        )
    readings = replace(
        taken.readings, sites=np.column_stack([place.georeference.metres(taken.degrees), depths])
    )
    with one_blas_thread():
        fitted = fit_table(readings, place.domain.extent, "matern52", survey.transform, str(survey.csv))
    names = [axis.name for axis in place.domain.axes]
    draft = PlaceDraft(survey, names, readings, fitted, place, taken)
    return draft.write(*places), place


@dataclass(frozen=True, eq=False)
class PlaceDraft(Draft):
    """The draft of a world on the Earth: a lattice in an outline, and a level-set mission.

    Parameters
    ----------
    place : Place
    taken : _LogReadings
    """

    source: PlaceSurvey
    place: Place
    taken: _LogReadings
    comment = (
        "# The truth is drawn from the Gaussian process fitted to readings.csv. outline.geojson and\n"
        "# avoid.geojson can be edited in a GIS. To check this file, run: fieldbo check\n"
    )
    rows = "readings"

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.taken.notes, *self.place.notes, *self._of_bottom, *self._beyond_depths)

    @property
    def pooled(self) -> float:
        return self.taken.pooled

    @property
    def _of_bottom(self) -> tuple[str, ...]:
        """What the bathymetry says of the lake, with the sites that are too shallow."""
        place, extent = self.place, self.source.extent
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
        beyond = [z for z in self.source.extent.depths if not low - _SAME_M <= z <= high + _SAME_M]
        if not beyond:
            return ()
        return (
            f"warning: the log covers depths of {low:.3g} to {high:.3g} m; the truth at "
            f"{', '.join(f'{z:g}' for z in beyond)} m is a guess",
        )

    @property
    def noise_sd(self) -> float:
        """Noise of one reading: that of pooled ones is smaller."""
        return four_digits(super().noise_sd * math.sqrt(self.pooled))

    @property
    def heading(self) -> dict[str, Any]:
        return {
            "title": f"{self.source.value} from {self.source.csv.name}",
            "cost_unit": "s",
            "start": self.place.degrees_toml(self.place.start),
        }

    def domain(self) -> dict[str, Any]:
        return self.place.domain_toml(self.source.extent)

    def cost(self) -> dict[str, Any]:
        extent = self.source.extent
        return {"kind": "boat", "speed": extent.speed, "stop_s": extent.stop_s}

    def first_mission(self) -> dict[str, Any]:
        asked, extent = self.source.mission, self.source.extent
        crossing = float(self.place.domain.extent.sum()) / extent.speed
        battery = four_digits(_CROSSINGS * crossing + _STOPS * extent.stop_s)
        home = self.place.degrees_toml(self.place.start)
        return asked.tables(self.source.value, asked.threshold_of(self.readings.values), battery, home)

    def blamed(self, error: InputError) -> str:
        key = (error.where or "").rpartition(": ")[2]
        return OPTIONS.get(key, super().blamed(error))

    def write_data(self, folder: Path) -> None:
        self.place.write(folder, self.source.extent)
        write_whole(folder / "readings.csv", self._readings_csv())

    def _readings_csv(self) -> bytes:
        """Return the readings in metres and degrees."""
        readings, source = self.readings, self.source
        noise: Sequence[Array] = ()
        if source.noise_sd is not None and readings.noise_variances is not None:
            noise = (np.sqrt(readings.noise_variances),)
        header = [*self.columns, "latitude", "longitude", source.value]
        header += [source.noise_sd] if source.noise_sd is not None else []
        columns = [
            *np.round(readings.sites, 3).T,
            *np.round(self.taken.degrees, 8).T,
            readings.values,
            *noise,
        ]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*header, *readings.channels])
        for row in zip(*(c.tolist() for c in [*columns, *readings.channels.values()]), strict=True):
            writer.writerow(["" if math.isnan(cell) else f"{cell:.12g}" for cell in row])
        return text.getvalue().encode()
