"""A new factory cell from a table of trials: the settings tried, and the outcome of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.costs.cells import Module
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import Distribution, TruncatedNormal, Uniform
from fieldbo.errors import InputError
from fieldbo.mission.default_policy import AUTO
from fieldbo.mission.new.trials import CellTable
from fieldbo.mission.new.writer import (
    Draft,
    NewWorld,
    four_digits,
    new_places,
    to_spread,
)
from fieldbo.tables.units import bare
from fieldbo.world.survey_validation import Validation
from fieldbo.world.world import World

_MODULE = "name=setting,setting:cost, as in denoise=strength,patch:40"
_CONTROL_SET = "setting,setting:cost, as in strength,patch:0.1"


# -- options as text -------------------------------------------------------------------------------------


def setting_of(text: str, header: Sequence[str]) -> tuple[str, str]:
    """Return the column and the unit of a setting from its text, ``heat:C`` or ``heat``.

    Examples
    --------
    >>> setting_of("heat:C", ["heat", "time"]), setting_of("A:heat", ["A:heat [C]", "time"])
    (('heat', 'C'), ('A:heat', ''))
    """
    if text.strip() in (*header, *map(bare, header)):  # a column's name may contain a colon
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
    source, readings, axes, notes = table.read()
    names = [axis.name for axis in axes]
    return CellDraft.fitted(source, names, readings, about_table=notes, axes=axes).write(*places)


@dataclass(frozen=True, eq=False)
class CellDraft(Draft):
    """The draft of a cell: the box of its settings, and a mission for the best of them.

    Parameters
    ----------
    axes : tuple of Axis
        The settings.
    """

    source: CellTable
    axes: tuple[Axis, ...]
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
            return super().notes
        too_wide = f"{', '.join(wide)} spread too wide for a normal distribution: uniform where left free"
        return (*super().notes, too_wide)

    @property
    def heading(self) -> dict[str, Any]:
        title = f"{self.source.value} by the settings in {self.source.csv.name}"
        return {"title": title, "cost_unit": self.source.cost_unit}

    def domain(self) -> dict[str, Any]:
        axes = []
        for axis in self.axes:
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

    def _worst(self) -> float:
        """Return a value beyond all of the table and the fit, to count fractions of the best from."""
        values = self.readings.values
        sign, spread = (1.0 if self.source.goal == "minimise" else -1.0), float(np.ptp(values))
        return to_spread(sign * (float(max(sign * values)) + 0.1 * spread), values)


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
