"""A new factory cell from a table of trials: the settings tried, and the outcome of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.belief.value_scale import Transform
from fieldbo.costs.cells import Modular, Module
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import Controls, ControlSet, Distribution, TruncatedNormal, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.default_policy import AUTO
from fieldbo.mission.new.writer import Draft, NewWorld, Source, check_values_differ, four_digits, new_places
from fieldbo.tables.opening import open_table
from fieldbo.tables.readings import Readings, read_readings
from fieldbo.world.survey_validation import Validation
from fieldbo.world.world import World

_MODULE = "name=setting,setting:cost, as in denoise=strength,patch:40"
_CONTROL_SET = "setting,setting:cost, as in strength,patch:0.1"


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
        Columns of the settings; by default all others.
    units : tuple of str
        Units of the settings; by default none.
    modules : tuple of Module
        Stages of the cell in the order in which they run, with their settings and costs.
    control_sets : tuple of (tuple of str, float)
        Settings that can be set together, and the cost of that for one sample.
    sample_cost : float
        Cost of a sample if there are neither modules nor control sets.
    noise_sd : str, optional
        Column of the outcomes' standard deviations.
    transform : {"none", "log"}
    value_unit, cost_unit : str
    goal : {"minimise", "maximise"}
        Goal of the first mission.
    fitted_model : bool
        Whether the mission's model begins with the fit to the table.
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
    fitted_model: bool = False

    def read(self) -> Readings:
        """Return the trials.

        Raises
        ------
        InputError
            If a column is missing or used twice, an entry is not a number, settings or outcomes don't differ,
            or a module, control set or cost is not valid.
        """
        readings = self._readings(self.columns())
        self._check_costs(self.setting_axes(readings))
        return readings

    def columns(self) -> tuple[str, ...]:
        """Return the columns of the settings."""
        taken = [self.value, *([self.noise_sd] if self.noise_sd else [])]
        columns = self.axes or tuple(c for c in open_table(self.csv).names if c not in taken)
        if not columns:
            raise InputError(
                "no column of settings", expected=f"columns besides {', '.join(taken)}", where=str(self.csv)
            )
        for column in columns:
            if column in taken or columns.count(column) > 1:
                problem = "is not a setting" if column in taken else "is a setting twice"
                raise InputError(
                    f"the column {column} {problem}", expected="each column for one thing", where="--axis"
                )
        return columns

    def setting_axes(self, readings: Readings) -> list[Axis]:
        """Return the axes of the settings, from the least to the largest setting in the trials."""
        columns = self.columns()
        units = self.units or ("",) * len(columns)
        low, high = readings.sites.min(axis=0).tolist(), readings.sites.max(axis=0).tolist()
        return [Axis(*each) for each in zip(columns, units, low, high, strict=True)]

    def _readings(self, columns: Sequence[str]) -> Readings:
        try:
            readings = read_readings(self.csv, columns, self.value, self.noise_sd)
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


# -- options as text -------------------------------------------------------------------------------------


def setting_of(text: str, header: Sequence[str]) -> tuple[str, str]:
    """Return the column and the unit of a setting from its text, ``heat:C`` or ``heat``.

    Examples
    --------
    >>> setting_of("heat:C", ["heat", "time"])
    ('heat', 'C')
    """
    if text.strip() in header:  # a column's name may contain a colon
        return text.strip(), ""
    column, _, unit = text.rpartition(":") if ":" in text else (text, "", "")
    return column.strip(), unit.strip()


def module_of(text: str) -> Module:
    """Return a module from its text, ``name=setting,setting:cost``.

    Examples
    --------
    >>> module_of("denoise=strength,patch:40")
    Module(name='denoise', axes=('strength', 'patch'), cost=40.0)
    """
    name, equals, rest = text.partition("=")
    axes, cost = _parse_priced(rest, text, _MODULE, "--module")
    if not (equals and name.strip()):
        raise InputError(f"{text!r} does not name a module", expected=_MODULE, where="--module")
    return Module(name.strip(), axes, cost)


def control_set_of(text: str) -> tuple[tuple[str, ...], float]:
    """Return the settings and the cost of a control set from its text, ``setting,setting:cost``.

    Examples
    --------
    >>> control_set_of("strength, patch: 0.1")
    (('strength', 'patch'), 0.1)
    """
    return _parse_priced(text, text, _CONTROL_SET, "--control-set")


def _parse_priced(part: str, text: str, form: str, where: str) -> tuple[tuple[str, ...], float]:
    """Return the names and the cost of ``name,name:cost``."""
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


_REPRESENTERS = 2048
_FIRST = 5  # readings before the policy takes over

_CHAINS, _ROUNDS, _SAMPLES = 25.0, 10.0, 60.0
"""Size of the first battery: runs of the whole chain, rounds of all control sets, or samples."""

_MOST_STEPS = 200  # if costs are unknown, a cheap control set may be played very often


def make_cell(
    name: str, table: CellTable, folder: Path | None = None, *, overwrite: bool = False
) -> NewWorld:
    """Write ``worlds/NAME`` and ``missions/NAME.toml`` in a folder, by default the working directory.

    With `overwrite`, in place of a world and a mission of that name.

    Raises
    ------
    InputError
        If the name or the table is not valid, one of the two exists already, or they can't be written.
    """
    places = new_places(name, folder, overwrite=overwrite)
    return CellDraft.fitted(table, table.columns(), table.read()).write(*places)


class CellDraft(Draft):
    """The draft of a cell: the box of its settings, and a mission for the best of them."""

    source: CellTable
    comment = (
        "# The truth is the mean of the Gaussian process fitted to readings.csv, over the box of settings.\n"
        "# Remove [field] to make the cell live. To check this file, run: fieldbo check\n"
    )
    rows = "trials"
    truth = "mean"

    @cached_property
    def _distributions(self) -> dict[str, Distribution]:
        """The distributions of settings that some control set leaves free, by name."""
        sets = [names for names, _ in self.source.control_sets]
        return {
            name: fitted_law(values, float(values.min()), float(values.max()))
            for name, values in zip(self.columns, self.readings.sites.T, strict=True)
            if any(name not in names for names in sets)
        }

    @property
    def notes(self) -> tuple[str, ...]:
        wide = [name for name, law in self._distributions.items() if isinstance(law, Uniform)]
        if not wide:
            return ()
        return (f"{', '.join(wide)} spread too wide for a normal distribution: uniform where left free",)

    @property
    def heading(self) -> dict[str, Any]:
        title = f"{self.source.value} by the settings in {self.source.csv.name}"
        return {"title": title, "cost_unit": self.source.cost_unit}

    def domain(self) -> dict[str, Any]:
        axes = []
        for axis in self.source.setting_axes(self.readings):
            table: dict[str, Any] = {"name": axis.name, "unit": axis.unit, "low": axis.low, "high": axis.high}
            law = self._distributions.get(axis.name)
            if isinstance(law, TruncatedNormal):
                table["free"] = {"kind": "truncated-normal", "mean": law.mean, "variance": law.variance}
            elif law is not None:
                table["free"] = {"kind": "uniform"}
            axes.append(table)
        sets = [list(names) for names, _ in self.source.control_sets]
        return {
            "kind": "box",
            "axes": axes,
            **({"control_sets": sets} if sets else {}),
            "representers": _REPRESENTERS,
        }

    def cost(self) -> dict[str, Any]:
        source = self.source
        if source.modules:
            chain = [{"name": m.name, "axes": list(m.axes), "cost": m.cost} for m in source.modules]
            return {"kind": "modular", "modules": chain, "charge_last": True}
        if source.control_sets:
            return {"kind": "subset", "costs": [cost for _, cost in source.control_sets]}
        return {"kind": "unit", "sampling": source.sample_cost}

    def first_mission(self) -> dict[str, Any]:
        source, unknown = self.source, bool(self.source.control_sets)
        side = "largest" if source.goal == "maximise" else "smallest"
        return {
            "title": f"Where is {source.value} {side}?",
            "question": {"kind": "optimum", "goal": source.goal},
            "agent": {
                "battery": self._battery(),
                **({"costs": "unknown", "max_steps": _MOST_STEPS} if unknown else {}),
            },
            "initial": {"count": _FIRST},
            "policy": {"kind": "subset-front", "worst": self._worst()} if unknown else {"kind": AUTO},
        }

    def _battery(self) -> float:
        source = self.source
        if source.modules:
            return four_digits(_CHAINS * sum(module.cost for module in source.modules))
        if source.control_sets:
            costs = [cost for _, cost in source.control_sets]
            return four_digits(_ROUNDS * sum(costs) + _FIRST * max(costs))
        return four_digits(_SAMPLES * source.sample_cost)

    def validation(self, world: World) -> Validation | None:
        return None  # trials lie neither along lines nor in blocks

    def prior_mean(self) -> float:
        return self._round(self.field.scale.to_user([0.0])[0])

    def _worst(self) -> float:
        """Return a value beyond all of the table and the fit, to count fractions of the best from."""
        values = self.readings.values
        sign, spread = (1.0 if self.source.goal == "minimise" else -1.0), float(np.ptp(values))
        return self._round(sign * (float(max(sign * values)) + 0.1 * spread))

    def _round(self, value: float) -> float:
        """Return a value to a thousandth of the outcomes' spread, for a file that people read."""
        return round(float(value), 3 - int(np.floor(np.log10(np.ptp(self.readings.values)))))


def fitted_law(values: Array, low: float, high: float) -> Distribution:
    """Return a distribution on [low, high] with the mean and variance of values.

    Truncated normal or, if the values spread wider than any truncated normal of that mean, uniform.

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
        return Uniform(low, high)
