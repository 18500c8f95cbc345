"""A table of settings and what came of them, before it becomes a cell: columns, modules, control sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.value_scale import Transform
from fieldbo.costs.chain import Modular, Module
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import Controls, ControlSet
from fieldbo.domain.distributions import Distribution, TruncatedNormal, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.world.fields.table import Readings, column_names, read_readings


@dataclass(frozen=True)
class CellTable:
    """What is known of a cell before it becomes a world.

    At most one of `modules` and `control_sets` is given; without either every sample costs the same.

    Parameters
    ----------
    csv : Path
        A row a sample: its settings, and what came of it.
    value : str
        Column of the outcome.
    axes : tuple of str
        Columns of the settings; empty: all others.
    units : tuple of str
        Their units; empty: none.
    modules : tuple of Module
        The stages of the cell, in the order in which they run, with their settings and costs.
    control_sets : tuple of (tuple of str, float)
        Settings that can be set together, and what that costs for one sample.
    sample_cost : float
        Of a sample where neither is given.
    noise_sd : str, optional
        Column of the outcomes' standard deviations of noise.
    transform : {"none", "log"}
    value_unit, cost_unit : str
    goal : {"minimise", "maximise"}
        Of the first mission.
    """

    csv: Path
    value: str
    axes: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    modules: tuple[Module, ...] = ()
    control_sets: tuple[tuple[tuple[str, ...], float], ...] = ()
    sample_cost: float = 1.0
    noise_sd: str | None = None
    transform: Transform = "none"
    value_unit: str = "1"
    cost_unit: str = "EUR"
    goal: Literal["minimise", "maximise"] = "minimise"


def module_of(text: str, where: str = "--module") -> Module:
    """Return a module from its text.

    Raises
    ------
    InputError
        It is not of the form ``name=setting,setting:cost``.

    Examples
    --------
    >>> module_of("denoise=strength,patch:40")
    Module(name='denoise', axes=('strength', 'patch'), cost=40.0)
    """
    name, equals, rest = text.partition("=")
    names, cost = _priced(rest, text, "name=setting,setting:cost, as in denoise=strength,patch:40", where)
    if not (equals and name.strip()):
        raise InputError(
            f"{text!r} names no module",
            expected="name=setting,setting:cost, as in denoise=strength,patch:40",
            where=where,
        )
    return Module(name.strip(), names, cost)


def control_set_of(text: str, where: str = "--control-set") -> tuple[tuple[str, ...], float]:
    """Return the names of a control set, and its cost, from its text.

    Raises
    ------
    InputError
        It is not of the form ``setting,setting:cost``.

    Examples
    --------
    >>> control_set_of("strength, patch: 0.1")
    (('strength', 'patch'), 0.1)
    """
    return _priced(text, text, "setting,setting:cost, as in strength,patch:0.1", where)


def _priced(part: str, text: str, form: str, where: str) -> tuple[tuple[str, ...], float]:
    """Return names and cost of ``name,name:cost``."""
    listed, colon, price = part.rpartition(":")
    names = tuple(name.strip() for name in listed.split(","))
    try:
        cost = float(price)
    except ValueError:
        cost = np.nan
    if not colon or not all(names) or not (np.isfinite(cost) and cost >= 0):
        raise InputError(
            f"{text!r}", expected=f"{form}; a cost is a finite number of at least 0", where=where
        )
    return names, cost


# -- the table ----- --------------------------------------------------------------------------------------


def read_table(cell: CellTable) -> tuple[list[Axis], Readings]:
    """Return the box of the settings, and the rows of the table.

    Raises
    ------
    InputError
        A column is missing or is two things, an entry is no number, or settings or outcomes don't differ.
    """
    columns = _columns(cell)
    readings = _read(cell, columns)
    return _axes(cell, columns, readings), readings


def _columns(cell: CellTable) -> tuple[str, ...]:
    """Return the columns of the settings."""
    taken = [cell.value, *([cell.noise_sd] if cell.noise_sd else [])]
    columns = cell.axes or tuple(c for c in column_names(cell.csv) if c not in taken and c)
    if not columns:
        raise InputError(
            "no column of settings", expected=f"columns besides {', '.join(taken)}", where=str(cell.csv)
        )
    for column in columns:
        if column in taken or columns.count(column) > 1:
            raise InputError(
                f"the column {column} {'is a setting twice' if column not in taken else 'is no setting'}",
                expected="each column for one thing",
                where="--axis",
            )
    return columns


def _read(cell: CellTable, columns: Sequence[str]) -> Readings:
    """Return the rows of the table, after checking that settings and outcomes differ."""
    try:
        readings = read_readings(cell.csv, columns, cell.value, cell.noise_sd)
    except UnknownNameError:
        raise
    except InputError as error:
        fix = error.fix if cell.axes else "correct the cell, or name the columns of settings with --axis"
        raise InputError(error.problem, expected=error.expected, where=error.where, fix=fix) from None
    for column, settings in zip(columns, readings.sites.T, strict=True):
        if np.ptp(settings) <= 0:
            raise InputError(
                f"{column} is {settings[0]:g} in all rows",
                expected="settings that differ",
                where=f"{cell.csv}, column {column}",
                fix="name the columns of the other settings with --axis",
            )
    if np.ptp(readings.values) <= 0:
        raise InputError(
            f"all outcomes are {readings.values[0]:g}",
            expected="values that differ",
            where=f"{cell.csv}, column {cell.value}",
        )
    return readings


def _axes(cell: CellTable, columns: Sequence[str], readings: Readings) -> list[Axis]:
    """Return the box of the settings."""
    units = cell.units or ("",) * len(columns)
    ends = zip(readings.sites.min(axis=0).tolist(), readings.sites.max(axis=0).tolist(), strict=True)
    return [Axis(c, u, low, high) for c, u, (low, high) in zip(columns, units, ends, strict=True)]


def check_costs(cell: CellTable, axes: Sequence[Axis]) -> None:
    """Raise an `InputError` unless modules, control sets or the cost of a sample fit, and have a unit."""
    if not cell.cost_unit.strip():
        raise InputError(
            "a cost unit without a name",
            expected="the unit of costs and of the battery, as in EUR or s",
            where="--cost-unit",
            fix="name it, or leave the option out: costs are then in EUR",
        )
    if cell.modules and cell.control_sets:
        raise InputError(
            "modules and control sets",
            expected="one of the two: costs by what changes, or by what is set",
            where="--module and --control-set",
        )
    if cell.modules:
        _check_modules(cell, axes)
    elif cell.control_sets:
        _check_sets(cell, axes)
    elif not (np.isfinite(cell.sample_cost) and cell.sample_cost > 0):
        raise InputError(
            f"a sample costs {cell.sample_cost:g}", expected="a finite number above 0", where="--sample-cost"
        )


def _check_modules(cell: CellTable, axes: Sequence[Axis]) -> None:
    if len(cell.modules) < 2:
        raise InputError(
            "a single module: nothing of it can be kept",
            expected="at least two",
            where="--module",
            fix="give --module once for each stage, or leave it out and give --sample-cost",
        )
    if cell.modules[-1].cost <= 0:
        raise InputError(
            f"the last module, {cell.modules[-1].name}, is free: so would be samples that change no other",
            expected="a cost above 0",
            where="--module",
        )
    _check_commas([str(name) for one in cell.modules for name in one.axes], axes, "--module")
    names = [one.name for one in cell.modules]
    if len(set(names)) < len(names):
        raise InputError(f"modules {', '.join(names)}", expected="different names", where="--module")
    try:
        Modular(modules=cell.modules).check(Domain.box(axes, 2))
    except InputError as error:
        fix = "name every setting in one --module, or leave it out of the --axis that are named"
        raise type(error)(error.problem, expected=error.expected, where="--module", fix=fix) from None


def _check_sets(cell: CellTable, axes: Sequence[Axis]) -> None:
    if cell.transform != "none":
        raise InputError(
            "control sets, and a model of the outcomes' log: averages over what is left free are not its own",
            expected="--transform none with --control-set",
            where="--transform",
        )
    _check_commas([name for names, _ in cell.control_sets for name in names], axes, "--control-set")
    sets = tuple(ControlSet.of(names, axes, "--control-set") for names, _ in cell.control_sets)
    everywhere = tuple(Uniform(a.low, a.high) for a in axes)
    try:
        Controls(sets, everywhere).check(axes)
    except InputError as error:
        raise InputError(error.problem, expected=error.expected, where="--control-set") from None
    if min(cost for _, cost in cell.control_sets) <= 0:
        raise InputError(
            "a control set that costs 0", expected="costs above 0: no one is free", where="--control-set"
        )


def _check_commas(names: Sequence[str], axes: Sequence[Axis], where: str) -> None:
    """Raise an `InputError` if a name is a part of that of a setting, which holds commas."""
    known = [a.name for a in axes]
    unknown = {name.strip(" \"'") for name in names if name not in known}
    for column in known:
        if "," in column and unknown & {part.strip() for part in column.split(",")}:
            raise InputError(
                f"{column!r} can't be named: it holds a comma",
                expected="names of settings, with commas between them",
                where=where,
                fix="rename the column",
            )


def fitted_law(values: Array, low: float, high: float) -> Distribution:
    """Return a law between two ends with the mean and the variance of values: truncated normal, or uniform.

    Parameters
    ----------
    values : (n,) array
    low, high : float

    Examples
    --------
    >>> fitted_law(np.array([0.3, 0.4, 0.5, 0.6, 0.7]), 0.0, 1.0)
    TruncatedNormal(mean=0.5, variance=0.02, low=0.0, high=1.0)
    >>> fitted_law(np.array([0.0, 0.0, 1.0, 1.0]), 0.0, 1.0)
    Uniform(low=0.0, high=1.0)
    """
    try:
        return TruncatedNormal(float(f"{values.mean():.10g}"), float(f"{values.var():.10g}"), low, high)
    except InputError:
        return Uniform(low, high)  # wider than any truncated normal law of that mean
