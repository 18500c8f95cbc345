"""Maps, and the readings as a trajectory, as netCDF with CF names and units.

``map.nc`` is the one of the run folder. ``trajectory.nc`` holds the readings in the order of arrival, as a
CF discrete sampling geometry: variables along ``obs``, with time and place as coordinates, also in degrees if
the origin of the domain is known.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import UTC
from typing import Any

import numpy as np
import xarray
from numpy.typing import NDArray

from fieldbo.domain.domain import Domain
from fieldbo.results import maps
from fieldbo.results.maps import DEGREES, GRID_MAPPING, attributes_of, grid_mapping, names_of, taken_by
from fieldbo.results.tables import degree_columns
from fieldbo.runs.export.recorded import Recorded

_FIXED = {"order": "order", "value": "value", "noise_sd": "noise_sd", "time_s": "time", "cost": "cost"}
"""Columns of the table of readings, and the variables that hold them."""

_GEODETIC: dict[str, dict[str, Any]] = DEGREES | {
    "altitude": {"standard_name": "altitude", "units": "m", "positive": "up"}
}


def files(run: Recorded) -> dict[str, bytes]:
    """Return the files by name."""
    readings = bytes(trajectory(run).to_netcdf(engine="scipy"))
    return {"map.nc": maps.labelled(run.result).file(), "trajectory.nc": readings}


def trajectory(run: Recorded) -> xarray.Dataset:
    """Return the readings along the path, with CF names and units."""
    world = run.mission.world
    header, rows = run.result.readings()
    domain = world.domain
    behind = header.index("value") - len(degree_columns(domain))
    axes = header[behind - domain.dimension : behind]
    given = set(range(behind, header.index("value")))  # again below, with all their digits
    header, rows = _without(given, header), [_without(given, row) for row in rows]
    names, attributes = _names(header, domain), _attributes(run, axes)
    variables: dict[str, Any] = {
        names[name]: ("obs", _column([row[j] for row in rows]), attributes.get(name, {"long_name": name}))
        for j, name in enumerate(header)
    }
    variables["trajectory"] = (), run.name, {"cf_role": "trajectory_id", "long_name": "name of the run"}
    places = [names[axis] for axis in axes]
    if run.ground is not None and run.ground.origin is not None:
        degrees = run.ground.geodetic(run.result.sites)
        for j, (name, cf) in enumerate(_GEODETIC.items()):
            variables[name] = "obs", degrees[:, j], cf
            places.append(name)
    data = xarray.Dataset(
        variables,
        attrs={
            "Conventions": "CF-1.11",
            "featureType": "trajectory",
            "title": f"{world.title}: {run.name}",
            "source": "fieldbo",
        },
    ).set_coords(["time", *places])
    if world.domain.crs is not None:
        data = data.assign_coords({GRID_MAPPING: ((), np.int32(0), grid_mapping(world.domain.crs))})
        for name in ("value", "noise_sd"):
            data[name].encoding["grid_mapping"] = GRID_MAPPING
    for name in ("time", *places):
        data[name].encoding["_FillValue"] = None  # CF: coordinates have no gaps
    return data


def _without(columns: Container[int], row: Sequence[Any]) -> list[Any]:
    """Return a row without some columns."""
    return [cell for j, cell in enumerate(row) if j not in columns]


def _names(header: list[str], domain: Domain) -> dict[str, str]:
    """Return the variable of each column, with names that CF allows."""
    fixed = [*_FIXED.values(), "trajectory", *_GEODETIC]
    others = [name for name in header if name not in _FIXED]
    taken = [*fixed, *taken_by(domain)]
    return _FIXED | dict(zip(others, names_of(others, taken), strict=True))


def _attributes(run: Recorded, axes: list[str]) -> dict[str, dict[str, Any]]:
    """Return the CF attributes of the columns, among them `axes`."""
    world = run.mission.world
    quantity, unit = world.quantity, {"units": world.quantity.unit}
    named = quantity.standard_name
    began = run.began.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
    return {name: attributes_of(world.domain, j) for j, name in enumerate(axes)} | {
        "order": {"long_name": "order that the reading belongs to"},
        "vehicle": {"long_name": "number of the vehicle that took the reading"},
        "value": {"long_name": quantity.name, **unit, "ancillary_variables": "noise_sd"}
        | ({"standard_name": named} if named else {}),
        "noise_sd": {"long_name": f"{quantity.name}, standard deviation of the noise", **unit}
        | ({"standard_name": f"{named} standard_error"} if named else {}),
        "time_s": {
            "standard_name": "time",
            "long_name": "time of the reading",
            "units": f"seconds since {began}",
            "calendar": "standard",
            "axis": "T",
        },
        # No units attribute: CF has none for costs such as EUR.
        "cost": {"long_name": f"cost of the order in {world.cost_unit}, given with its last reading"},
    }


def _column(cells: list[Any]) -> NDArray[Any]:
    """Return a column as numbers or, if it holds text, as text."""
    if any(isinstance(cell, str) for cell in cells):
        return np.array([cell if isinstance(cell, str) else "" for cell in cells])
    return np.array(cells, dtype=float)
