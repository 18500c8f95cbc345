"""Load worlds from their files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.blas import one_blas_thread
from fieldbo.domain.axes import Axis, is_depth
from fieldbo.domain.controls import Controls, ControlSet, Distribution, TruncatedNormal, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.domain.free_space import Bottom
from fieldbo.domain.georeference import check_metric
from fieldbo.domain.lattice import lattice
from fieldbo.domain.obstacles import Obstacle, Region, simple_polygon
from fieldbo.domain.places import check_place, extent_text, is_swapped
from fieldbo.errors import InputError, at, counted
from fieldbo.mission.bathymetry import read_bottom
from fieldbo.mission.files import find, is_path, list_worlds, made, read_toml, short_path
from fieldbo.mission.kinds import COSTS, FIELDS
from fieldbo.mission.schema import (
    MOST,
    BathymetryFile,
    BoxFile,
    DegreesFile,
    FreeFile,
    GridFile,
    LatticeFile,
    ObstacleFile,
    UniformFile,
    WorldFile,
)
from fieldbo.mission.shapes import as_obstacles, as_outline, read_shapes
from fieldbo.validation import placed, validated
from fieldbo.world.fields.base import Field, inside
from fieldbo.world.world import Quantity, World

_RESERVED_NAMES = frozenset(
    ("order", "value", "noise_sd", "level", "believed", "time_s", "cost", "mean", "sd", "exceedance", "class")
) | {"site"}
"""Columns and variables of a run's tables and maps, which no axis may be called."""


def load_world(name_or_path: str | Path, draw: int = 0) -> World:
    """Load a world.

    Parameters
    ----------
    name_or_path : str or Path
        A name, a world's folder, or its ``world.toml``.
    draw : int
        Which random field to use, counted from 0, if the world draws its field at random.

    Raises
    ------
    InputError
        There is no such world, or its file is wrong.

    Examples
    --------
    >>> load_world("lake-transect").domain.size
    2500
    """
    if is_path(name_or_path):
        file = Path(name_or_path)
        file = file / "world.toml" if file.is_dir() else file
    else:
        file = find("world", str(name_or_path), list_worlds())
    return world_from(file, draw)


def world_from(file: Path, draw: int) -> World:
    """Load a world from its file, or return it again while no file in its folder has changed."""
    try:
        stamp = tuple(sorted((p.name, p.stat().st_mtime_ns) for p in file.parent.iterdir()))
    except OSError:
        stamp = ()
    return _world_as_of(file.resolve(), draw, stamp)


@lru_cache(maxsize=4)  # a comparison runs many missions in one field
def _world_as_of(file: Path, draw: int, stamp: tuple[tuple[str, int], ...]) -> World:
    where = short_path(file)
    raw = read_toml(file)
    _check_grid(raw.get("domain"), where)
    content = validated(WorldFile, raw, where)
    if draw < 0:
        raise InputError(f"draw = {draw}", expected="a whole number of at least 0", where="draw")
    try:
        domain = _build_domain(content.domain, file.parent)
    except InputError as error:
        raise placed(error, f"{where}: domain") from None
    start = None if content.start is None else place_in(domain, content.start, f"{where}: start")
    if start is not None:
        check_place(domain, "start", start, f"{where}: start")
    field = None if content.field is None else _build_field(content.field, domain, draw, file.parent, where)
    try:
        return World(
            name=file.parent.name,
            title=content.title,
            domain=domain,
            cost=made(COSTS, content.cost, f"{where}: cost"),
            cost_unit=content.cost_unit,
            sensor=content.sensor,
            quantity=Quantity(content.value.name, content.value.unit, content.value.standard_name),
            field=field,
            start=start,
            draw=draw,
            disturbances=content.conditions,
            unreadable=tuple(
                _build_obstacle(area, f"unreadable[{k}]") for k, area in enumerate(content.unreadable)
            ),
        )
    except InputError as error:
        raise error if error.where and where in error.where else error.at(where) from None


def _check_grid(domain: object, where: str) -> None:
    """Raise an `InputError` if a grid has what only a box may have: control sets and free variables."""
    if not isinstance(domain, dict) or domain.get("kind") != "grid":
        return
    axes = domain.get("axes")
    left_free = isinstance(axes, list) and any(isinstance(axis, dict) and "free" in axis for axis in axes)
    if left_free or "control_sets" in domain:
        what = "control_sets" if "control_sets" in domain else "an axis that can be left free"
        raise InputError(
            f"a domain of kind grid can't have {what}",
            expected='kind = "box", where a variable left free takes any value on its axis',
            where=f"{where}: domain.kind",
            fix='set kind = "box", and remove the counts of the axes',
        )


def _build_field(settings: Mapping[str, Any], domain: Domain, draw: int, folder: Path, where: str) -> Field:
    kind = made(FIELDS, settings, f"{where}: field")
    try:
        with one_blas_thread():  # factors of these sizes are fastest with one BLAS thread
            field: Field = kind.make(domain, draw, folder)
    except InputError as error:
        if error.where is not None:
            error.where = error.where.replace(f"{Path.cwd()}/", "")
        raise placed(error, f"{where}: field") from None
    except MemoryError:
        raise InputError(
            f"a field over {domain.size} sites needs more memory than there is",
            expected="fewer sites",
            where=f"{where}: domain.axes",
        ) from None
    return field


def place_in(domain: Domain, place: list[float] | DegreesFile, where: str) -> Array:
    """Return a place (d,) of a file in the domain's coordinates.

    Raises
    ------
    InputError
        It is in degrees, but the domain has no CRS; or latitude and longitude are swapped.
    """
    if not isinstance(place, DegreesFile):
        return np.array(place, dtype=float)
    if domain.georeference is None:
        raise InputError(
            "a place in degrees, but the world has no CRS",
            expected=f"coordinates: {', '.join(axis.label for axis in domain.axes)}",
            where=where,
            fix="add crs to [domain] of the world, if its axes are eastings and northings",
        )
    others = np.clip(0.0, domain.low, domain.high)  # at the surface
    degrees = (place.latitude, place.longitude)
    if is_swapped(domain, degrees):
        raise InputError(
            f"latitude = {degrees[0]:g}, longitude = {degrees[1]:g} lies far outside the domain",
            expected=extent_text(domain),
            where=where,
            fix=f"they look swapped: write latitude = {degrees[1]:g}, longitude = {degrees[0]:g}",
        )
    with at(where):
        return domain.georeference.site(degrees, others)


def _build_lattice(content: LatticeFile, folder: Path) -> Domain:
    check_metric(content.crs, "domain.crs")
    shores = read_shapes(inside(folder, content.outline, where="domain.outline"), content.crs)
    source, avoid = f"{counted(len(shores), 'area')} of {content.outline}", list[Obstacle]()
    if content.avoid is not None:
        file = inside(folder, content.avoid, where="domain.avoid")
        zones = read_shapes(
            file, content.crs, content.avoid_margin, "add avoid_margin to [domain], in metres"
        )
        source += f", {counted(len(zones), 'zone')} of {content.avoid}"
        if closed := sum(int(shapely.get_num_interior_rings(shapely.get_parts(z.area)).sum()) for z in zones):
            source += f" with {counted(closed, 'hole')} closed"
        avoid = as_obstacles(zones)
    elif content.avoid_margin is not None:
        raise InputError(
            "avoid_margin without zones",
            expected="the file of the zones",
            where="domain.avoid",
            fix='add it to the world\'s folder: avoid = "avoid.geojson"',
        )
    bottom = None if content.bathymetry is None else _build_bottom(content, content.bathymetry, folder)
    if bottom is None and (content.least_depth is not None or content.bottom_clearance):
        raise InputError(
            f"{'bottom_clearance' if content.least_depth is None else 'least_depth'} without a bathymetry",
            expected="the file of the depth of the bottom",
            where="domain.bathymetry",
            fix='add it to the world\'s folder: bathymetry = "bathymetry.nc"',
        )
    domain = lattice(
        as_outline(shores),
        content.spacing,
        content.pattern,
        avoid,
        content.clearance,
        crs=content.crs,
        depths=content.depths or (),
        bottom=bottom,
        least_depth=content.least_depth or 0.0,
    )
    return replace(domain, source=source)


def _build_bottom(content: LatticeFile, given: str | BathymetryFile, folder: Path) -> Bottom:
    if content.depths is None and content.bottom_clearance:
        raise InputError(
            "bottom_clearance without depths: all sites are at the surface",
            expected="depths in metres, for example [1, 4, 8]",
            where="domain.depths",
            fix="add them, or use least_depth to keep off shallow water",
        )
    asked = BathymetryFile(file=given) if isinstance(given, str) else given
    path = inside(folder, asked.file, where="domain.bathymetry")
    bottom = read_bottom(path, content.crs, asked.value, asked.positive, asked.crs)
    return replace(bottom, clearance=content.bottom_clearance)


def _build_domain(content: GridFile | LatticeFile | BoxFile, folder: Path) -> Domain:
    if isinstance(content, LatticeFile):
        return _build_lattice(content, folder)
    axes = [
        Axis(a.name, a.unit, a.low, a.high, a.positive or ("down" if is_depth(a.name) else "up"))
        for a in content.axes
    ]
    _check_names([axis.name for axis in axes])
    obstacles = [
        _build_obstacle(obstacle, f"domain.obstacles[{k}]") for k, obstacle in enumerate(content.obstacles)
    ]
    if isinstance(content, BoxFile):
        controls = _build_controls(content, axes)
        return Domain.box(axes, content.representers, obstacles, content.clearance, controls)
    counts = [axis.count for axis in content.axes]
    if (sites := math.prod(counts)) > MOST:
        megabytes = 8e-6 * sites * len(axes)
        size = f"{megabytes / 1000:,.0f} GB" if megabytes >= 1000 else f"{megabytes:.0f} MB"
        raise InputError(
            f"a grid of {sites:,} sites needs {size} for their coordinates alone",
            expected=f"at most {MOST:,} sites",
            where="domain.axes",
            fix="lower the counts of the axes",
        )
    return Domain.grid(axes, counts, _build_outline(content), obstacles, content.clearance, content.crs)


def _build_outline(content: GridFile) -> Region | None:
    """Return the outline with its holes; None if there is none."""
    if content.outline is None:
        if content.holes:
            raise InputError(
                "holes without an outline",
                expected="an outline around the holes",
                where="domain.holes",
                fix="add the outline, or make each hole an obstacle",
            )
        return None
    outline: Region = simple_polygon(content.outline, "the outline", "domain.outline")
    holes = [
        simple_polygon(corners, f"hole {k}", f"domain.holes[{k}]") for k, corners in enumerate(content.holes)
    ]
    for k, hole in enumerate(holes):
        if not outline.covers(hole):
            raise InputError(
                f"hole {k} reaches out of the outline",
                expected="a hole that lies inside the outline",
                where=f"domain.holes[{k}]",
                fix="move its corners, or draw the outline around it",
            )
    left = shapely.difference(outline, shapely.union_all(holes)) if holes else outline
    if not isinstance(left, Region) or left.area <= 0:
        raise InputError(
            "the holes leave nothing of the outline", expected="smaller holes", where="domain.holes"
        )
    return left


def _check_names(names: Sequence[str]) -> None:
    """Raise an `InputError` if an axis has no name, a reserved one, or that of another axis."""
    if len(set(names)) < len(names):
        raise InputError(
            f"two axes have the same name: {', '.join(names)}",
            expected="a different name for each axis",
            where="domain.axes",
        )
    for name in names:
        if not name.strip() or name in _RESERVED_NAMES:
            raise InputError(
                f"axis name {name!r} is reserved" if name.strip() else f"axis name {name!r} is empty",
                expected=f"a name that is not empty and not one of {', '.join(sorted(_RESERVED_NAMES))}",
                where="domain.axes",
                fix="rename the axis, and its column if it comes from a table",
            )


def _build_obstacle(content: ObstacleFile, where: str) -> Obstacle:
    corners = tuple(tuple(c) for c in content.corners)
    try:
        return Obstacle(content.name, tuple(content.low), tuple(content.high), corners)
    except InputError as error:
        raise placed(error, where) from None


def _build_controls(content: BoxFile, axes: Sequence[Axis]) -> Controls | None:
    """Return which variables can be set together, and how the others are distributed."""
    free = [(number, axis.free) for number, axis in enumerate(content.axes) if axis.free is not None]
    if content.control_sets is None:
        if free:
            raise InputError(
                f"axis {axes[free[0][0]].name!r} has a distribution, but it is never left free",
                expected="control_sets in [domain], or no distribution",
                where=f"domain.axes[{free[0][0]}].free",
            )
        return None
    if not content.control_sets:
        raise InputError(
            "control_sets = []",
            expected="at least one set of axes, for example " + json.dumps([[a.name for a in axes]]),
            where="domain.control_sets",
            fix="list the sets, or remove the key so that all axes are always set",
        )
    sets = [
        ControlSet.of(names, axes, f"domain.control_sets[{k}]")
        for k, names in enumerate(content.control_sets)
    ]
    distributions: list[Distribution | None] = [None] * len(axes)
    for number, shape in free:
        distributions[number] = _build_distribution(shape, axes[number], f"domain.axes[{number}].free")
    return Controls(tuple(sets), tuple(distributions))


def _build_distribution(content: FreeFile, axis: Axis, where: str) -> Distribution:
    if isinstance(content, UniformFile):
        return Uniform(axis.low, axis.high)
    try:
        return TruncatedNormal(content.mean, content.variance, axis.low, axis.high)
    except InputError as error:
        raise placed(error, where) from None
