"""A world of one's own, from the CSV of a survey: the folder, and its first mission."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import one_blas_thread
from fieldbo.belief.value_scale import Transform
from fieldbo.domain.axes import is_depth
from fieldbo.errors import InputError
from fieldbo.mission.catalogue import name_of
from fieldbo.mission.files import write_whole
from fieldbo.mission.load import load_mission
from fieldbo.mission.mission import Mission
from fieldbo.mission.toml import toml_text
from fieldbo.world.fields.table import Readings, TableField, fit_table, read_readings

_SITES = 2500
_DEGREES = {"lon", "long", "longitude", "lng", "lat", "latitude"}
_HULL_RATIO = 0.35  # between 0, the tightest outline, and 1, the convex hull


@dataclass(frozen=True)
class Survey:
    """What is known of a survey before it becomes a world.

    Parameters
    ----------
    csv : Path
        The readings, positions in metres.
    x : str
        Column of the first position.
    value : str
        Column of the value.
    y : str, optional
        Column of the second position; one that is called depth makes the world a transect.
    noise_sd : str, optional
        Column of the readings' standard deviations.
    channels : tuple of str
        Columns of other quantities.
    transform : {"none", "log"}
    value_unit : str
    quantile : float
        The first mission's threshold, as a quantile of the readings.
    threshold : float, optional
        The threshold itself, instead.
    """

    csv: Path
    x: str
    value: str
    y: str | None = None
    noise_sd: str | None = None
    channels: tuple[str, ...] = ()
    transform: Transform = "none"
    value_unit: str = "1"
    quantile: float = 0.7
    threshold: float | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of position."""
        return (self.x,) if self.y is None else (self.x, self.y)


@dataclass(frozen=True, eq=False)
class NewWorld:
    """What `make_world` made.

    Attributes
    ----------
    world, mission : Path
        The world's folder and the mission's file.
    field : TableField
        The fit, with its quality.
    threshold : float
    loaded : Mission
        The mission as it loads.
    """

    world: Path
    mission: Path
    field: TableField
    threshold: float
    loaded: Mission


def make_world(name: str, survey: Survey, folder: Path | None = None) -> NewWorld:
    """Write ``worlds/NAME`` and ``missions/NAME.toml`` below a folder.

    Both are written aside first and moved into place when they load, so that nothing is half-written.

    Parameters
    ----------
    name : str
    survey : Survey
    folder : Path, optional
        By default the working folder.

    Raises
    ------
    InputError
        The name or the file is wrong, or one of the two exists already.
    """
    base = Path() if folder is None else folder
    world, mission = new_places(name, base)
    _check(survey)
    readings = read_readings(survey.csv, survey.columns, survey.value, survey.noise_sd, survey.channels)
    extent = np.ptp(readings.sites, axis=0)
    if (extent <= 0).any():
        flat = survey.columns[int(np.argmin(extent))]
        raise InputError(
            f"all readings have the same {flat}", expected="positions that differ", where=str(survey.csv)
        )
    _check_readings(survey, readings)
    with one_blas_thread():  # factors of these sizes are fastest with one BLAS thread
        field = fit_table(readings, extent, "matern52", survey.transform, str(survey.csv))
    told = _World(survey, readings, field)
    texts = {"world.toml": told.world_toml(name), "README.md": told.readme(name)}
    loaded = written(name, base, survey.csv, texts, told.mission_toml(name))
    return NewWorld(world, mission, field, told.threshold, loaded)


def new_places(name: str, base: Path) -> tuple[Path, Path]:
    """Return where a new world's folder and its mission are to be: ``worlds/NAME``, ``missions/NAME.toml``.

    Raises
    ------
    InputError
        The name is wrong, or one of the two exists already.
    """
    name_of("world", name)
    world, mission = base / "worlds" / name, base / "missions" / f"{name}.toml"
    for path in (world, mission):
        if path.parent.exists() and not path.parent.is_dir():
            raise InputError(
                f"{path.parent} is no folder", expected="a folder, or nothing yet", fix="rename that file"
            )
        if path.exists():
            raise InputError(
                f"{path} exists", expected="a new name: nothing is written over", fix="choose another name"
            )
    return world, mission


def written(name: str, base: Path, csv: Path, texts: Mapping[str, bytes], mission: bytes) -> Mission:
    """Write a new world and its mission aside, load them, and move them into place.

    Parameters
    ----------
    name : str
        As for `new_places`.
    base : Path
    csv : Path
        Becomes the world's ``readings.csv``.
    texts : mapping of str to bytes
        The other files of the world's folder.
    mission : bytes
        Its first mission.

    Returns
    -------
    Mission
        As loaded.

    Raises
    ------
    InputError
        They don't load, or can't be written; nothing is left behind.
    """
    world, first = base / "worlds" / name, base / "missions" / f"{name}.toml"
    try:
        return _written(base, csv, texts, mission, world, first)
    except OSError as error:
        raise InputError(
            f"{world} and {first} can't be written: {error.strerror} ({error.filename})",
            expected="folders worlds and missions that can be written to",
        ) from None


def _check(survey: Survey) -> None:
    """Raise an `InputError` if what is asked for makes no world."""
    if not 0 < survey.quantile < 1:
        raise InputError(
            f"quantile {survey.quantile}", expected="a number between 0 and 1", where="--quantile"
        )
    if survey.x == survey.y:
        raise InputError(
            f"{survey.x!r} for both positions", expected="two different columns", where="--x and --y"
        )
    least = 0.0 if survey.transform == "log" else -np.inf
    if survey.threshold is not None and not least < survey.threshold < np.inf:
        raise InputError(
            f"threshold {survey.threshold}",
            expected="a finite number" + (" above 0, to have a log" if survey.transform == "log" else ""),
            where="--threshold",
        )


def _check_readings(survey: Survey, readings: Readings) -> None:
    """Raise an `InputError` if a table of readings makes no world."""
    for column, positions in zip(survey.columns, readings.sites.T, strict=True):
        if column.strip().lower() in _DEGREES:
            raise InputError(
                f"positions in degrees ({column})",
                expected="metres, in a projected coordinate system",
                where=str(survey.csv),
                fix="project them first, for example to the UTM zone of the place",
            )
        if is_depth(column) and positions.min() < 0:
            raise InputError(
                f"depths down to {positions.min():g}",
                expected="depths of at least 0, positive downwards",
                where=f"{survey.csv}, column {column}",
            )
    if np.ptp(readings.values) <= 0:
        raise InputError(
            f"all readings are {readings.values[0]:g}",
            expected="values that differ",
            where=f"{survey.csv}, column {survey.value}",
        )


def _written(
    base: Path, csv: Path, texts: Mapping[str, bytes], text: bytes, world: Path, mission: Path
) -> Mission:
    """Write both aside, load them, and move them into place; return the mission as loaded."""
    base.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=base) as aside:
        part = Path(aside) / world.name
        part.mkdir()
        shutil.copyfile(csv, part / "readings.csv")
        for file, content in texts.items():
            write_whole(part / file, content)
        write_whole(Path(aside) / mission.name, text)
        try:
            loaded = load_mission(Path(aside) / mission.name)
        except InputError as error:  # its place would be a file that is gone by then
            raise InputError(error.problem, expected=error.expected, where=str(csv), fix=error.fix) from None
        for path in (world, mission):
            path.parent.mkdir(parents=True, exist_ok=True)
        part.replace(world)
        (Path(aside) / mission.name).replace(mission)
    return loaded


@dataclass(frozen=True, eq=False)
class _World:
    """The texts of a new world's files."""

    survey: Survey
    readings: Readings
    field: TableField

    @property
    def threshold(self) -> float:
        given = self.survey.threshold
        at = np.quantile(self.readings.values, self.survey.quantile)
        return four_digits(at) if given is None else given

    @property
    def is_transect(self) -> bool:
        return self.survey.y is not None and is_depth(self.survey.y)

    def _grid(self) -> tuple[list[dict[str, Any]], list[list[float]] | None]:
        """Axes with about 2,500 nodes, equally spaced where both axes are places, and the outline."""
        x = self.readings.sites
        low, high = x.min(axis=0), x.max(axis=0)
        if len(low) == 1:
            counts = [201]
        elif self.is_transect:
            counts, low = [50, 50], np.array([low[0], 0.0])
        else:
            spacing = np.sqrt(np.prod(high - low) / _SITES)
            counts = [max(2, round(e / spacing) + 1) for e in high - low]
        axes = [
            {"name": column, "unit": "m", "low": float(a), "high": float(b), "count": n}
            for column, a, b, n in zip(self.survey.columns, low, high, counts, strict=True)
        ]
        if len(low) == 1 or self.is_transect:
            return axes, None
        return axes, outline_of(x)

    def _cost(self) -> dict[str, Any]:
        if self.is_transect:
            return {"kind": "transect", "along_rate": 0.25, "depth_rate": 4.0}
        return {"kind": "euclidean", "rate": 1.0, "sampling": 60.0}

    @property
    def battery(self) -> float:
        """Enough for a few crossings and some forty samples."""
        extent = np.ptp(self.readings.sites, axis=0)
        if self.is_transect:
            return four_digits(4 * 0.25 * extent[0] + 40 * 4 * (0.5 * extent[1] + 1))
        return four_digits(5 * float(extent.sum()) + 40 * 60.0)

    @property
    def noise_sd(self) -> float:
        """Fitted noise in the user's unit; under a log, at the smallest reading."""
        sd = self.field.noise_sd
        return four_digits(sd * float(self.readings.values.min()) if self.survey.transform == "log" else sd)

    def world_toml(self, name: str) -> bytes:
        survey = self.survey
        axes, outline = self._grid()
        field: dict[str, Any] = {
            "kind": "table",
            "file": "readings.csv",
            "axes": list(survey.columns),
            "value": survey.value,
            "transform": survey.transform,
        }
        if survey.noise_sd:
            field["noise_sd"] = survey.noise_sd
        if survey.channels:
            field["channels"] = list(survey.channels)
        told: dict[str, Any] = {
            "format": 1,
            "version": "1",
            "title": f"{survey.value} as surveyed in {survey.csv.name}",
            "cost_unit": "s",
            "start": self.start,
            "value": {"name": survey.value, "unit": survey.value_unit},
            "domain": {"kind": "grid", "axes": axes, **({"outline": outline} if outline else {})},
            "field": field,
            "cost": self._cost(),
            "sensor": {"noise_sd": self.noise_sd},
        }
        head = (
            "# The truth is the mean of the Gaussian process fitted to readings.csv. The costs are guesses:\n"
            "# put your vehicle's own in [cost]. To check: fieldbo check on this file.\n\n"
        )
        return (head + toml_text(told)).encode()

    @property
    def start(self) -> list[float]:
        """The reading nearest to the low corner; on a transect the surface there."""
        x = self.readings.sites
        if self.is_transect:
            return [float(x[:, 0].min()), 0.0]
        first: list[float] = x[np.argmin(((x - x.min(axis=0)) / np.ptp(x, axis=0)).sum(axis=1))].tolist()
        return first

    def mission_toml(self, name: str) -> bytes:
        kernel, scale = self.field.belief.kernel, self.field.scale
        theta = np.exp(kernel.theta)
        told = {
            "format": 1,
            "title": f"Where is {self.survey.value} at or above {self.threshold:g}?",
            "world": name,
            "seed": 0,
            "question": {"kind": "level-set", "threshold": self.threshold},
            "agent": {"battery": self.battery},
            "policy": {"kind": "truvar"},
            "model": {
                "kernel": "matern52",
                "transform": self.survey.transform,
                "length_scales": [four_digits(v) for v in theta[:-1]],
                "variance": four_digits(theta[-1] * scale.scale**2),
                "mean": four_digits(scale.to_user([0.0])[0]),
            },
        }
        return toml_text(told).encode()

    def readme(self, name: str) -> bytes:
        field = self.field
        return (
            f"# {name}\n\n"
            f"{self.survey.value} from {len(self.readings.values)} readings in `readings.csv` "
            f"(columns {', '.join(self.survey.columns)}).\n"
            "The truth is the mean of a Gaussian process (Matern-5/2) fitted to them"
            f"{' on a log scale' if self.survey.transform == 'log' else ''}.\n\n"
            f"Leave-one-out error {field.loo_rmse:.4g} {self.survey.value_unit}; its 90% intervals hold "
            f"{field.loo_coverage:.0%} of the readings.\n"
        ).encode()


def outline_of(sites: Array) -> list[list[float]]:
    """Return the corners of a polygon around scattered sites (n, 2), a little wider than their hull."""
    points = shapely.MultiPoint(sites)
    hull = shapely.concave_hull(points, ratio=_HULL_RATIO)
    wide = 0.02 * float(np.ptp(sites, axis=0).max())
    outline = hull.buffer(wide).simplify(0.25 * wide)
    box = shapely.box(*points.bounds)
    corners = np.round(np.array(_polygon(outline.intersection(box)).exterior.coords)[:-1], 3)
    out: list[list[float]] = corners.tolist()
    return out


def _polygon(shape: BaseGeometry) -> shapely.Polygon:
    """Return the largest polygon of a shape."""
    parts = [p for p in getattr(shape, "geoms", [shape]) if isinstance(p, shapely.Polygon)]
    return max(parts, key=lambda p: float(p.area))


def four_digits(number: float) -> float:
    """Return a number to four significant digits, for a file that a person reads."""
    return float(f"{float(number):.4g}")
