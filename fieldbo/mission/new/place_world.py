"""Write a new world on the Earth, and its first mission."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import one_blas_thread
from fieldbo.belief.value_scale import Transform
from fieldbo.domain.georeference import WGS84, check_degrees, crs_of, reprojected
from fieldbo.errors import InputError
from fieldbo.mission.files import write_whole
from fieldbo.mission.new.mission import LevelSetMission
from fieldbo.mission.new.place import NAMES, Extent, Place, place_of
from fieldbo.mission.new.writer import Draft, NewWorld, Source, check_values_differ, four_digits, new_places
from fieldbo.world.fields.table import fit_table
from fieldbo.world.readings import Readings, read_readings

_CROSSINGS, _STOPS = 5, 40


@dataclass(frozen=True)
class Log(Source):
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
    noise_sd : str, optional
        Column that holds the readings' standard deviations.
    channels : tuple of str
        Columns of other quantities.
    transform : {"none", "log"}
    value_unit : str
    mission : LevelSetMission
        Threshold, side and battery of the first mission.
    """

    csv: Path
    columns: tuple[str, str]
    value: str
    extent: Extent
    in_degrees: bool = True
    noise_sd: str | None = None
    channels: tuple[str, ...] = ()
    transform: Transform = "none"
    value_unit: str = "1"
    mission: LevelSetMission = field(default_factory=LevelSetMission)

    def read(self) -> tuple[Readings, Array]:
        """Return the readings, and their latitudes and longitudes (n, 2).

        Raises
        ------
        InputError
            A column or the readings are not valid.
        """
        readings = read_readings(self.csv, self.columns, self.value, self.noise_sd, self.channels)
        check_values_differ(readings, "readings", self)
        if self.in_degrees:
            check_degrees(*readings.sites.T, f"{self.csv}, columns {' and '.join(self.columns)}")
            return readings, readings.sites
        if self.extent.crs is None or not crs_of(self.extent.crs, "--crs").is_projected:
            raise InputError(
                "the CRS of the positions is not given",
                expected="--crs with the projected CRS of --x and --y, for example --crs EPSG:28992",
                where="--crs",
            )
        return readings, reprojected(readings.sites, self.extent.crs, WGS84)[:, ::-1]


def make_place_world(name: str, log: Log, folder: Path | None = None) -> tuple[NewWorld, Place]:
    """Write ``worlds/NAME`` and ``missions/NAME.toml`` in a folder, by default the working directory.

    Raises
    ------
    InputError
        The name, an option or a file is not valid, one of the two exists, or they can't be written.
    """
    places = new_places(name, folder)
    readings, degrees = log.read()
    place = place_of(log.extent, degrees)
    sites = place.georeference.metres(degrees)
    moved = Readings(
        sites, readings.values, readings.noise_variances, readings.channels, readings.column, readings.lines
    )
    with one_blas_thread():
        fitted = fit_table(moved, place.domain.extent, "matern52", log.transform, str(log.csv))
    draft = PlaceDraft(log, NAMES, moved, fitted, place, degrees)
    return draft.write(*places), place


@dataclass(frozen=True, eq=False)
class PlaceDraft(Draft):
    """The draft of a world on the Earth: a lattice in an outline, and a level-set mission.

    Parameters
    ----------
    place : Place
    degrees : (n, 2) array
        Latitude and longitude of the readings.
    """

    source: Log
    place: Place
    degrees: Array
    comment = (
        "# The truth is the mean of the Gaussian process fitted to readings.csv. outline.geojson and\n"
        "# avoid.geojson can be edited in a GIS. To check this file, run: fieldbo check\n"
    )
    rows = "readings"

    @property
    def channels(self) -> tuple[str, ...]:
        return self.source.channels

    @property
    def notes(self) -> tuple[str, ...]:
        return self.place.notes

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
        return {"kind": "euclidean", "rate": four_digits(1.0 / extent.speed), "sampling": extent.stop_s}

    def first_mission(self) -> dict[str, Any]:
        asked, extent = self.source.mission, self.source.extent
        crossing = float(self.place.domain.extent.sum()) / extent.speed
        battery = four_digits(_CROSSINGS * crossing + _STOPS * extent.stop_s)
        home = self.place.degrees_toml(self.place.start)
        return asked.tables(self.source.value, asked.threshold_of(self.readings.values), battery, home)

    def write_data(self, folder: Path) -> None:
        self.place.write(folder)
        write_whole(folder / "readings.csv", self._readings_csv())

    def _readings_csv(self) -> bytes:
        """Return the readings in metres and degrees."""
        readings, source = self.readings, self.source
        noise: Sequence[Array] = ()
        if source.noise_sd is not None and readings.noise_variances is not None:
            noise = (np.sqrt(readings.noise_variances),)
        header = [*NAMES, "latitude", "longitude", source.value]
        header += [source.noise_sd] if source.noise_sd is not None else []
        columns = [*np.round(readings.sites, 3).T, *np.round(self.degrees, 8).T, readings.values, *noise]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*header, *readings.channels])
        for row in zip(*(c.tolist() for c in [*columns, *readings.channels.values()]), strict=True):
            writer.writerow(["" if math.isnan(cell) else f"{cell:.12g}" for cell in row])
        return text.getvalue().encode()
