"""The table of a cell's trials: which columns are settings, which trials failed, and what settings cost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.belief.value_scale import Transform
from fieldbo.costs.cells import Modular, Module
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import Controls, ControlSet, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, UnknownNameError, counted
from fieldbo.mission.new.writer import Source, check_values_differ, shorten_names
from fieldbo.tables.marks import sentinel_doubts
from fieldbo.tables.readings import Readings, read_readings
from fieldbo.tables.source import Opening
from fieldbo.tables.table import Table, fix_of_limit
from fieldbo.tables.units import bare

_ORDER = {
    *("std", "stdorder", "standardorder", "run", "runorder", "runno", "runnumber", "order", "pttype"),
    *("pointtype", "centerpt", "centerpoint", "centrepoint", "block", "blocks", "replicate", "replication"),
    *("trial", "trialno", "trialnumber", "experiment", "experimentno", "exp", "expno", "pattern", ""),
    *("no", "nr", "index", "id", "sample", "sampleno", "sampleid", "date", "datetime", "timestamp"),
    *("operator", "comment", "comments", "notes", "remark", "remarks"),
}  # fmt: skip
"""Names, in lower case and letters only, of columns that programs for experiments add to the settings."""

_EXPLAINED = 0.9
"""Adjusted R2 from which a column that the others predict may be an outcome, not a setting."""

_EXAMPLES = 3


@dataclass(frozen=True)
class CellTable(Source):
    """A table of trials, and options for its cell and mission.

    Give at most one of `modules` and `control_sets`; without either, every sample costs the same.

    Parameters
    ----------
    csv : Path
        One row per trial: its settings and its outcome.
    value : str
        Column of the outcome.
    axes : tuple of str
        Columns of the settings; by default all others but those that number or order the trials.
    units : tuple of str
        Units of the settings; by default those in the table.
    modules : tuple of Module
        Stages of the cell in the order in which they run, with their settings and costs.
    control_sets : tuple of (tuple of str, float)
        Settings that can be set together, and the cost of that for one sample.
    sample_cost : float
        Cost of a sample if there are neither modules nor control sets.
    noise_sd : str, optional
        Column of the outcomes' standard deviations.
    transform : {"none", "log"}
    value_unit : str
        By default, that in the table.
    cost_unit : str
    goal : {"minimise", "maximise"}
        Goal of the first mission.
    missing : tuple of float
        Numbers that stand for no value, such as -9999.
    fitted_model : bool
        Whether the mission's model begins with the fit to the table.
    opening : Opening
        What the file needs to be read besides its path, such as a sheet.
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
    value_unit: str = ""
    cost_unit: str = "EUR"
    goal: Literal["minimise", "maximise"] = "minimise"
    missing: tuple[float, ...] = ()
    fitted_model: bool = False
    opening: Opening = field(default_factory=Opening)

    def read(self) -> Trials:
        """Return the trials.

        Raises
        ------
        InputError
            A column is missing, used twice or may be another outcome, a setting is not a number, settings or
            outcomes don't differ, or a module, control set or cost is not valid.
        """
        log = self.opening.open(self.csv)
        log = replace(log, missing=(*log.missing, *self.missing))
        value = log.column(self.value, "--value")
        noise_sd = None if self.noise_sd is None else log.column(self.noise_sd, "--noise")
        columns, notes = self._choose_settings(log, value, noise_sd)
        _ask_about_marks(log, [*columns, value])
        kept, failures = _find_failures(log, value)
        readings = self._readings(log.rows(kept), columns, value, noise_sd)
        *names, value_name = shorten_names([*columns, value])
        units = [self.units[i] if i < len(self.units) else "" for i in range(len(columns))]
        low, high = readings.sites.min(axis=0).tolist(), readings.sites.max(axis=0).tolist()
        axes = tuple(
            Axis(name, unit or log.units.get(column, ""), a, b)
            for name, column, unit, a, b in zip(names, columns, units, low, high, strict=True)
        )
        source = self._named_as(dict(zip(columns, names, strict=True)))
        source._check_costs(axes)
        unit = self.value_unit or log.units.get(value, "1")
        source = replace(source, value=value_name, noise_sd=noise_sd, value_unit=unit)
        return Trials(source, replace(readings, column=value_name), axes, (*log.notes, *notes, *failures))

    def _choose_settings(
        self, log: Table, value: str, noise_sd: str | None
    ) -> tuple[tuple[str, ...], list[str]]:
        """Return the columns of the settings, and a note on those that are none."""
        taken = [value, *([noise_sd] if noise_sd else [])]
        if self.axes:
            columns = tuple(log.column(axis, "--axis") for axis in self.axes)
            for column in columns:
                if column in taken or columns.count(column) > 1:
                    problem = "is not a setting" if column in taken else "is a setting twice"
                    raise InputError(
                        f"the column {column} {problem}", expected="each column for one thing", where="--axis"
                    )
            return columns, []
        others = [column for column in log.names if column not in taken]
        ordering = [column for column in others if _is_order(column) or log.is_missing(column).all()]
        columns = tuple(column for column in others if column not in ordering)
        if not columns:
            raise InputError(
                "no column of settings", expected=f"columns besides {', '.join(taken)}", where=str(self.csv)
            )
        self._ask_for_outcomes(log, columns, value)
        if not ordering:
            return columns, []
        are = "is no setting and" if len(ordering) == 1 else "are no settings and"
        note = f"{', '.join(ordering)} {are} left out; --axis names the settings if that is wrong"
        return columns, [note]

    def _ask_for_outcomes(self, log: Table, columns: Sequence[str], value: str) -> None:
        """Raise an `InputError` if a column may be another outcome."""
        behind = [column for column in columns if log.names.index(column) > log.names.index(value)]
        doubtful = behind or [column for column in columns if _is_explained(log, column, columns)]
        if not doubtful:
            return
        settings = [column for column in columns if column not in doubtful] or list(columns)
        why = (
            f"stand{'s' if len(doubtful) == 1 else ''} behind the outcome {value}"
            if behind
            else f"follow{'s' if len(doubtful) == 1 else ''} from the other columns"
        )
        raise InputError(
            f"{' and '.join(doubtful)} {why}: another outcome, or a setting?",
            expected="the settings by name, where it is not clear which columns they are",
            where=f"{self.csv}, column {doubtful[0]}",
            fix=" ".join(f"--axis {quoted(column)}" for column in settings)
            + "; add those that are settings, too",
        )

    def _readings(self, log: Table, columns: Sequence[str], value: str, noise_sd: str | None) -> Readings:
        try:
            readings = read_readings(log, columns, value, noise_sd)
        except UnknownNameError:
            raise
        except InputError as error:
            fix = error.fix if self.axes else "correct the entry, or name the columns of settings with --axis"
            raise InputError(error.problem, expected=error.expected, where=error.where, fix=fix) from None
        for column, values in zip(columns, readings.sites.T, strict=True):
            if np.ptp(values) <= 0:
                raise InputError(
                    f"{column} is {values[0]:g} in all rows",
                    expected="settings that differ",
                    where=f"{self.csv}, column {column}",
                    fix="name the columns of the other settings with --axis",
                )
        check_values_differ(readings, "outcomes", self)
        return readings

    def _named_as(self, names: dict[str, str]) -> CellTable:
        """Return the table with the settings in modules and control sets by the names that they get."""
        modules = tuple(
            replace(module, axes=tuple(names.get(str(axis), axis) for axis in module.axes))
            for module in self.modules
        )
        sets = tuple(
            (tuple(names.get(each, each) for each in axes), cost) for axes, cost in self.control_sets
        )
        return replace(self, modules=modules, control_sets=sets)

    # -- costs -------------------------------------------------------------------------------------------

    def _check_costs(self, axes: Sequence[Axis]) -> None:
        """Raise an `InputError` unless modules, control sets or the cost of a sample are valid."""
        if not self.cost_unit.strip():
            raise InputError(
                "the cost unit is empty",
                expected="the unit of costs and of the battery, for example EUR or s",
                where="--cost-unit",
                fix="name it, or leave the option out: costs are then in EUR",
            )
        if self.modules and self.control_sets:
            raise InputError(
                "--module and --control-set were both given",
                expected="one of the two: costs by what changes, or by what is set",
                where="--module and --control-set",
            )
        if self.modules:
            self._check_modules(axes)
        elif self.control_sets:
            self._check_sets(axes)
        elif not (np.isfinite(self.sample_cost) and self.sample_cost > 0):
            raise InputError(
                f"a sample costs {self.sample_cost:g}",
                expected="a finite number above 0",
                where="--sample-cost",
            )

    def _check_modules(self, axes: Sequence[Axis]) -> None:
        *early, last = self.modules
        if not early:
            raise InputError(
                "there is a single module, which no sample can keep unchanged",
                expected="at least two",
                where="--module",
                fix="give --module once for each stage, or leave it out and give --sample-cost",
            )
        if last.cost <= 0:
            raise InputError(
                f"the last module, {last.name}, is free: samples that change no other module would be, too",
                expected="a cost above 0",
                where="--module",
            )
        _check_commas([name for module in self.modules for name in module.axes], axes, "--module")
        names = [module.name for module in self.modules]
        if len(set(names)) < len(names):
            raise InputError(
                f"two modules have the same name: {', '.join(names)}",
                expected="different names",
                where="--module",
            )
        try:
            Modular(modules=self.modules).check(Domain.box(axes, 2))
        except InputError as error:
            fix = "name every setting in one --module, or name fewer settings with --axis"
            raise type(error)(error.problem, expected=error.expected, where="--module", fix=fix) from None

    def _check_sets(self, axes: Sequence[Axis]) -> None:
        if self.transform != "none":
            raise InputError(
                "a model of the outcomes' log can't average over the settings that control sets leave free",
                expected="--transform none with --control-set",
                where="--transform",
            )
        _check_commas([name for names, _ in self.control_sets for name in names], axes, "--control-set")
        sets = tuple(ControlSet.of(names, axes, "--control-set") for names, _ in self.control_sets)
        everywhere = tuple(Uniform(a.low, a.high) for a in axes)
        try:
            Controls(sets, everywhere).check(axes)
        except InputError as error:
            raise InputError(error.problem, expected=error.expected, where="--control-set") from None
        if min(cost for _, cost in self.control_sets) <= 0:
            raise InputError("a control set is free", expected="costs above 0", where="--control-set")


def _check_commas(names: Sequence[object], axes: Sequence[Axis], where: str) -> None:
    """Raise an `InputError` if a name is only part of a setting's name, which contains a comma."""
    known = [a.name for a in axes]
    unknown = {str(name).strip(" \"'") for name in names if name not in known}
    for column in known:
        if "," in column and unknown & {part.strip() for part in column.split(",")}:
            raise InputError(
                f"{column!r} can't be named because it contains a comma",
                expected="names of settings, separated by commas",
                where=where,
                fix="rename the column",
            )


class Trials(NamedTuple):
    """What a cell takes from a table.

    Attributes
    ----------
    source : CellTable
        With the names and units as in the world.
    readings : Readings
    axes : tuple of Axis
        The settings, from the least to the largest in the trials.
    notes : tuple of str
    """

    source: CellTable
    readings: Readings
    axes: tuple[Axis, ...]
    notes: tuple[str, ...]


def quoted(column: str) -> str:
    """Return the name of a column as a shell takes it."""
    return column if re.fullmatch(r"[\w.-]+", column) else f'"{column}"'


def _is_order(column: str) -> bool:
    """Return whether a column's name says that it numbers, orders or comments the trials."""
    return re.sub(r"[^a-z]", "", bare(column).lower()) in _ORDER


def _ask_about_marks(log: Table, columns: Sequence[str]) -> None:
    """Raise an `InputError` for numbers that may stand for no value."""
    doubts = [each for name in columns for each in sentinel_doubts(log.numbers(name), name, log.missing)]
    if doubts:
        raise InputError(
            "; ".join(doubts),
            expected="a table without doubtful values",
            where=str(log.path),
            fix="name numbers that stand for no value, as in --missing -9999, or correct the table",
        )


def _find_failures(log: Table, value: str) -> tuple[NDArray[np.bool_], list[str]]:
    """Return which trials (n,) have an outcome, and a note on those that failed.

    Raises
    ------
    InputError
        An outcome is a limit of detection, or more than half of the trials failed.
    """
    kept = np.isfinite(log.numbers(value))
    failed = np.flatnonzero(~kept)
    if not len(failed):
        return kept, []
    first = log.cells[value][failed[0]]
    for row in failed:
        if fix := fix_of_limit(log.cells[value][row]):
            raise InputError(
                f"{log.cells[value][row]!r} is a limit of detection",
                expected="a number",
                where=log.place(int(row), value),
                fix=fix,
            )
    if len(failed) > 0.5 * len(log):
        raise InputError(
            f"{first!r} is not a finite number, as in {len(failed)} of {counted(len(log), 'trial')}"
            if first
            else f"{len(failed)} of {counted(len(log), 'trial')} have no outcome",
            expected="a column of outcomes, a number each; a few trials may have failed",
            where=log.place(int(failed[0]), value),
        )
    texts = sorted({log.cells[value][row] for row in failed} - {""})
    words = f" ({', '.join(map(repr, texts[:_EXAMPLES]))})" if texts else ""
    lines = ", ".join(str(line) for line in log.lines[failed])
    where = f"{log.row_word}{'s' if len(failed) > 1 else ''} {lines}"
    return kept, [f"{counted(len(failed), 'trial')} without an outcome{words} left out: {where}"]


def _is_explained(log: Table, column: str, columns: Sequence[str]) -> bool:
    """Return whether a quadratic function of the other columns predicts a column almost exactly."""
    numbers = {each: log.numbers(each) for each in columns}
    y = numbers.pop(column)
    rows = np.isfinite(np.array([y, *numbers.values()])).all(axis=0)
    if len(columns) < 2 or not rows.any() or len(np.unique(y[rows])) <= 0.5 * rows.sum():
        return False
    x = np.array([each[rows] for each in numbers.values()])
    x = (x - x.mean(axis=1, keepdims=True)) / np.maximum(x.std(axis=1, keepdims=True), 1e-300)
    products = [x[i] * x[j] for i in range(len(x)) for j in range(i + 1)]
    terms: Array = np.column_stack([np.ones(x.shape[1]), *x, *products])
    n, p = terms.shape
    if n < 2 * p or np.ptp(y[rows]) == 0:
        return False
    left = y[rows] - terms @ np.linalg.lstsq(terms, y[rows], rcond=None)[0]
    return bool(1.0 - left.var() / y[rows].var() * (n - 1) / (n - p) > _EXPLAINED)
