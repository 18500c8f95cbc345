"""NetCDF files of readings at points: profiles, trajectories and time series by the CF conventions.

Discrete sampling geometries are read in all their layouts: one value per sample, arrays of profiles by
depths, contiguous and indexed ragged arrays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Mask
from fieldbo.errors import InputError, counted
from fieldbo.tables.containers.cf_values import (
    Attributes,
    beyond_range,
    flags_of,
    is_time,
    micros_of,
    note_flags,
    numbers_of,
    text_of,
)
from fieldbo.tables.containers.filling import (
    LAYER_OPTION,
    Filled,
    choose,
    damage_named,
    describe,
    library,
    make_table,
    write_numbers,
    write_times,
)
from fieldbo.tables.table import Table

_KIND = "a NetCDF file"
_MOST_CELLS = 30_000_000
_NAMES = {
    "latitude": re.compile(r"lat(itude)?", re.IGNORECASE),
    "longitude": re.compile(r"lon(gitude)?", re.IGNORECASE),
    "time": re.compile(r"time|juld", re.IGNORECASE),
    "depth": re.compile(r"depth", re.IGNORECASE),
}
_UNITS = {"latitude": re.compile(r"degrees?_?(north|n)", re.IGNORECASE),
          "longitude": re.compile(r"degrees?_?(east|e)", re.IGNORECASE)}  # fmt: skip
_AXES = {"latitude": "Y", "longitude": "X", "time": "T", "depth": "Z"}
_FLAG = re.compile(r".*_(qc|flag|quality_flag|qartod_\w+)|qc_\w+|qartod_\w+", re.IGNORECASE)
_ADJUSTED = "_ADJUSTED"


class Variable(NamedTuple):
    """A variable of a file; letters are put together to texts."""

    dims: tuple[str, ...]
    raw: NDArray[Any]
    attributes: Attributes

    @property
    def is_text(self) -> bool:
        """Whether it holds texts."""
        return self.raw.dtype.kind in "SUO"


class Part(NamedTuple):
    """What relates instances, such as profiles, to samples: the dimension of these, and whose each is."""

    sample: str
    owner: NDArray[np.int64]


def read(path: Path, layer: str | None = None) -> Table:
    """Return the samples of a NetCDF file; those that their flags call bad count as missing.

    Parameters
    ----------
    path : Path
    layer : str, optional
        Dimensions of the samples, such as ``time``, or a group, if there are several that may be meant.

    Raises
    ------
    InputError
        The file is damaged, or holds a grid, or samples with several dimensions and none is named.
    """
    variables, notes = _read_variables(path, layer)
    parts = _find_parts(variables)
    tables = _find_tables(path, variables, parts)
    layer = layer if layer in tables else None
    sizes = {name: _count(dims, variables) for name, dims in tables.items()}
    about = {name: counted(size, "sample") for name, size in sizes.items()}
    chosen = choose(path, about, layer, "table of samples", "tables of samples")
    dims = tables[chosen]
    _check_no_grid(path, variables, dims)
    shape = tuple(_size(name, variables) for name in dims)
    found = {
        name: variable for name, variable in variables.items() if _can_expand(variable.dims, dims, parts)
    }
    roles = _find_roles(found, dims)
    flags = {name for name, variable in found.items() if _is_flag(name, variable)}
    columns: dict[str, Filled] = {}
    values: Mask = np.zeros(int(np.prod(shape)), dtype=bool)
    if len(found) * values.size > _MOST_CELLS:
        raise InputError(
            f"{path.name} holds {values.size:,} samples of {len(found)} variables",
            expected=f"at most {_MOST_CELLS:,} values",
            where=str(path),
            fix="choose a part of it, for example with ncks -v VARIABLES -d DIMENSION,FIRST,LAST",
        )
    for name, variable in _in_order(found, roles):
        role = roles.get(name, "")
        if _is_left_out(variable, dims) and not role:
            continue
        column, bad = _fill(path, name, variable, found, flags, notes)
        cells = _expand(np.array(column.cells, dtype=object).reshape(variable.raw.shape), variable.dims, dims,
                        shape, parts)  # fmt: skip
        column = Filled(
            cells.ravel().tolist(), column.unit, role or ("flag" if name in flags else column.role)
        )
        if not role and name not in flags and not variable.is_text:
            values |= np.array([cell != "" for cell in column.cells])
        columns[name] = column
        notes += bad
    return _finish(path, columns, values, notes, chosen, variables, found)


def _finish(
    path: Path,
    columns: dict[str, Filled],
    values: Mask,
    notes: list[str],
    chosen: str,
    variables: Mapping[str, Variable],
    found: Mapping[str, Variable],
) -> Table:
    """Return the table of the samples that hold any value."""
    depth = next((name for name, column in columns.items() if column.role == "depth"), None)
    if depth is not None and text_of(variables[depth].attributes, "positive").lower() == "up":
        column = columns[depth]
        turned = [cell[1:] if cell.startswith("-") else f"-{cell}" if cell else "" for cell in column.cells]
        columns[depth] = Filled(column.cells, column.unit, "text")
        columns["depth" if depth != "depth" else "depth downwards"] = Filled(turned, column.unit, "depth")
        notes.append(f"depth is {depth} with its sign turned, for that is positive upwards")
    padded = ", " in chosen  # profiles of different lengths in one array
    kept = np.flatnonzero(values if padded else np.full_like(values, values.any()))
    if not len(kept):
        raise InputError(f"{path.name} holds no values", expected="samples with values", where=str(path))
    if len(kept) < len(values):
        notes.append(f"{counted(len(values) - len(kept), 'sample')} without any value left out")
        columns = {
            name: Filled([column.cells[i] for i in kept.tolist()], column.unit, column.role)
            for name, column in columns.items()
        }
    others = [name for name in variables if name not in found and variables[name].dims]
    if others:
        notes.append(f"variables of other dimensions are left out: {', '.join(others)}")
    form = text_of(variables[""].attributes, "featureType") or "samples"
    return make_table(
        path, columns, form="NetCDF", row_word="sample", lines=kept + 1,
        notes=[f"NetCDF: {form}, {counted(len(kept), 'sample')} along {chosen}", *notes],
    )  # fmt: skip


def _read_variables(path: Path, layer: str | None) -> tuple[dict[str, Variable], list[str]]:
    """Return the variables of a file or of one of its groups, and notes; under "", the file's attributes."""
    import xarray

    classic = path.open("rb").read(3) == b"CDF"
    notes, group = list[str](), None
    if not classic:
        h5netcdf = library("h5netcdf", "geo", path, "NetCDF-4 files")
    with damage_named(
        path, _KIND, "download it again; if it is HDF5 of another program, export it as NetCDF or CSV"
    ):
        if not classic:
            with h5netcdf.File(path, "r") as file:
                groups = {} if file.variables else dict.fromkeys(file.groups, "")
            if groups:
                group = choose(path, groups, layer, "group")
                notes.append(f"group {group!r}")
        engine: Any = "scipy" if classic else "h5netcdf"
        options: dict[str, Any] = {} if classic else {"group": group, "phony_dims": "access"}
        with xarray.open_dataset(path, engine=engine, decode_cf=False, **options) as data:
            data.load()
    variables = {"": Variable((), np.array(0), dict(data.attrs))}
    if any(str(dim).startswith("phony_dim") for dim in data.dims):
        raise InputError(
            f"{path.name} is an HDF5 file without the dimensions that NetCDF has",
            expected="a NetCDF file of profiles, trajectories or points",
            where=str(path),
            fix="write its readings as CSV, for example with h5py and pandas",
        )
    numeric = {str(d) for v in data.variables.values() if v.dtype.kind not in "SU" for d in v.dims}
    for name, variable in data.variables.items():
        raw, dims = variable.values, tuple(map(str, variable.dims))
        if raw.dtype.kind == "S" and dims and dims[-1] not in numeric:
            raw, dims = _join(raw), dims[:-1]
        variables[str(name)] = Variable(dims, raw, dict(variable.attrs))
    return variables, notes


def _join(letters: NDArray[Any]) -> NDArray[Any]:
    """Return the texts along the last axis of letters."""
    rows = letters.reshape(-1, letters.shape[-1])
    texts = [b"".join(row.tolist()).decode(errors="replace").strip("\0 ") for row in rows]
    return np.array(texts, dtype=object).reshape(letters.shape[:-1])


def _size(dim: str, variables: Mapping[str, Variable]) -> int:
    return next(int(v.raw.shape[v.dims.index(dim)]) for v in variables.values() if dim in v.dims)


def _count(dims: tuple[str, ...], variables: Mapping[str, Variable]) -> int:
    return int(np.prod([_size(dim, variables) for dim in dims]))


def _find_parts(variables: Mapping[str, Variable]) -> dict[str, Part]:
    """Return for each dimension of instances which sample belongs to which of them."""
    parts = {}
    for variable in variables.values():
        sample = text_of(variable.attributes, "sample_dimension")
        instance = text_of(variable.attributes, "instance_dimension")
        if sample and len(variable.dims) == 1:
            counts = np.nan_to_num(numbers_of(variable.raw, variable.attributes)).astype(np.int64)
            parts[variable.dims[0]] = Part(sample, np.repeat(np.arange(len(counts)), counts))
        elif instance and len(variable.dims) == 1:
            parts[instance] = Part(variable.dims[0], variable.raw.astype(np.int64))
    return parts


def _can_expand(dims: tuple[str, ...], target: tuple[str, ...], parts: Mapping[str, Part]) -> bool:
    """Return whether each dimension is one of the target's, or one of instances that own its samples."""
    return all(_sample_of(dim, target, parts) is not None for dim in dims)


def _sample_of(dim: str, target: tuple[str, ...], parts: Mapping[str, Part]) -> str | None:
    """Return the dimension of the target that a dimension belongs to; None if it is another."""
    for _ in range(len(parts) + 1):
        if dim in target:
            return dim
        if dim not in parts:
            return None
        dim = parts[dim].sample
    return None


def _expand(
    cells: NDArray[Any], dims: tuple[str, ...], target: tuple[str, ...], shape: tuple[int, ...],
    parts: Mapping[str, Part],
) -> NDArray[Any]:  # fmt: skip
    """Return cells along the dimensions of the target: each sample with those of its instance."""
    names = list(dims)
    for axis, name in enumerate(names):
        dim = name
        while dim not in target:
            cells, dim = np.take(cells, parts[dim].owner, axis=axis), parts[dim].sample
        names[axis] = dim
    order = [names.index(dim) for dim in target if dim in names]
    cells = np.transpose(cells, order)
    full = tuple(size if dim in names else 1 for dim, size in zip(target, shape, strict=True))
    return np.broadcast_to(cells.reshape(full), shape)


def _find_tables(
    path: Path, variables: Mapping[str, Variable], parts: Mapping[str, Part]
) -> dict[str, tuple[str, ...]]:
    """Return the dimensions of samples, by their names: those that hold data and are not within others."""
    owners = set(parts)
    found: dict[tuple[str, ...], int] = {}
    for name, variable in variables.items():
        plain = not variable.is_text and not _is_flag(name, variable) and not _is_coordinate(name, variable)
        if plain and variable.dims and not set(variable.dims) & owners:
            found[variable.dims] = found.get(variable.dims, 0) + 1
    placed = [dims for dims in found if all(
        any(_can_expand(v.dims, dims, parts) and _is_role(n, v, role) for n, v in variables.items())
        for role in ("latitude", "longitude"))]  # fmt: skip
    candidates = placed or list(found)
    if not candidates:
        raise InputError(
            f"{path.name} holds no variables with samples",
            expected="profiles, trajectories or points with readings",
            where=str(path),
        )
    widest = [dims for dims in candidates if not any(set(dims) < set(other) for other in candidates)]
    return {", ".join(dims): dims for dims in widest}


def _is_role(name: str, variable: Variable, role: str) -> bool:
    """Return whether a variable holds latitudes, longitudes, times or depths."""
    attributes = variable.attributes
    if variable.is_text or _is_flag(name, variable):
        return False
    if role == "time":
        return is_time(attributes)
    standard = text_of(attributes, "standard_name").lower()
    if standard:
        upwards = role == "depth" and standard in ("height", "altitude") and _is_axis(variable, role)
        return standard == role or upwards
    units = text_of(attributes, "units")
    if role in _UNITS and _UNITS[role].fullmatch(units):
        return True
    in_metres = role != "depth" or units.lower() in ("", "m", "meter", "meters", "metre", "metres")
    return in_metres and _NAMES[role].fullmatch(name) is not None


def _is_axis(variable: Variable, role: str) -> bool:
    return text_of(variable.attributes, "axis").upper() == _AXES[role]


def _is_coordinate(name: str, variable: Variable) -> bool:
    return any(_is_role(name, variable, role) for role in _AXES)


def _is_flag(name: str, variable: Variable) -> bool:
    attributes = variable.attributes
    stated = {"flag_meanings", "flag_values", "flag_masks"} & set(attributes)
    return bool(stated) or _FLAG.fullmatch(name) is not None


def _is_left_out(variable: Variable, dims: tuple[str, ...]) -> bool:
    """Return whether a variable describes the file, not its samples: without dimensions, or of a layout."""
    attributes = variable.attributes
    layout = {"sample_dimension", "instance_dimension", "grid_mapping_name"} & set(attributes)
    return (
        bool(layout) or not variable.dims or (variable.is_text and "cf_role" in attributes and len(dims) == 0)
    )


def _find_roles(variables: Mapping[str, Variable], dims: tuple[str, ...]) -> dict[str, str]:
    """Return which variable is the latitude, longitude, time and depth of the samples.

    Of several, it is the one with most of their dimensions, then the axis, then the one of the shortest name.
    """
    roles = {}
    for role in _AXES:
        found = [name for name, variable in variables.items() if name and _is_role(name, variable, role)]
        if found:
            best = min(
                found,
                key=lambda name: (-len(variables[name].dims), not _is_axis(variables[name], role), len(name)),
            )
            roles[best] = role
    return roles


def _rank(name: str, variable: Variable, role: str) -> tuple[int, bool, int]:
    return -len(variable.dims), not _is_axis(variable, role), len(name)


def _in_order(found: Mapping[str, Variable], roles: Mapping[str, str]) -> Iterator[tuple[str, Variable]]:
    """Yield the variables, those of time and place first."""
    for role in ("time", "latitude", "longitude", "depth"):
        yield from ((name, found[name]) for name, its in roles.items() if its == role)
    yield from ((name, variable) for name, variable in found.items() if name and name not in roles)


def _fill(
    path: Path,
    name: str,
    variable: Variable,
    found: Mapping[str, Variable],
    flags: set[str],
    notes: list[str],
) -> tuple[Filled, list[str]]:
    """Return the cells of a variable along its own dimensions, and notes on what its flags call bad."""
    if variable.is_text:
        texts = [_text(value) for value in variable.raw.ravel().tolist()]
        return Filled(texts, role="" if name in flags else "text"), []
    numbers = numbers_of(variable.raw, variable.attributes)
    said: list[str] = []
    beyond = beyond_range(variable.raw, numbers, variable.attributes)
    if 2 * beyond.sum() > np.isfinite(numbers).sum():
        said.append(f"{name}: most values are beyond the valid range that it states, which is not used")
    elif beyond.any():
        numbers[beyond] = np.nan
        said.append(f"{name}: {counted(int(beyond.sum()), 'value')} beyond its valid range left out")
    for flag in [] if name in flags else _flags_for(name, variable, found, flags):
        meant = flags_of(found[flag].raw, found[flag].attributes)
        if meant is None:
            said.append(f"{flag} does not say what its values mean, and is not used")
        elif found[flag].raw.shape == numbers.shape:
            numbers[meant.bad] = np.nan
            said += note_flags(name, flag, meant)
    # fieldbo writes 1 for units that UDUNITS does not know, and these beside it.
    unit = text_of(variable.attributes, "unit_as_stated") or text_of(variable.attributes, "units")
    if is_time(variable.attributes):
        micros, known = micros_of(numbers.ravel(), variable.attributes, f"{path}, variable {name}")
        return Filled(write_times(micros, known), role="text"), said
    if "error" in text_of(variable.attributes, "standard_name"):
        return Filled(write_numbers(numbers.ravel()), unit, "noise"), said
    return Filled(write_numbers(numbers.ravel()), "" if unit == "1" else unit), said


def _text(value: Any) -> str:
    return " ".join((value.decode(errors="replace") if isinstance(value, bytes) else str(value)).split())


def _flags_for(name: str, variable: Variable, found: Mapping[str, Variable], flags: set[str]) -> list[str]:
    """Return the flags of a variable: those it names, or that are called like it, or a summary of them."""
    named = [each for each in text_of(variable.attributes, "ancillary_variables").split() if each in flags]
    like = [
        each for suffix in ("_qc", "_QC", "_quality_flag", "_flag") if (each := f"{name}{suffix}") in flags
    ]
    all_of_them = list(dict.fromkeys([*named, *like]))
    summaries = [
        each for each in all_of_them
        if "aggregate" in text_of(found[each].attributes, "standard_name")
    ]  # fmt: skip
    return summaries or all_of_them


def _check_no_grid(path: Path, variables: Mapping[str, Variable], dims: tuple[str, ...]) -> None:
    """Raise an `InputError` if the samples are the cells of a grid, in degrees or in a projection."""
    axes = {}
    for name, variable in variables.items():
        if len(variable.dims) == 1 and variable.dims[0] in dims:
            standard = text_of(variable.attributes, "standard_name").lower()
            for role, projected in (("latitude", "projection_y"), ("longitude", "projection_x")):
                if _is_role(name, variable, role) or standard.startswith(projected):
                    axes[role] = variable.dims[0]
    if len(set(axes.values())) == 2:
        sizes = describe({dim: str(_size(dim, variables)) for dim in axes.values()})
        raise InputError(
            f"{path.name} holds a grid, {sizes}, not readings at points",
            expected="profiles, trajectories or points with readings",
            where=str(path),
            fix=f"write its points as CSV, for example with xarray's to_dataframe(); {LAYER_OPTION} names "
            "dimensions of samples",
        )
