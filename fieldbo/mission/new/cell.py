"""A cell of one's own, from a table of settings and what came of them: the folder, and its first mission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.blas import one_blas_thread
from fieldbo.domain.axes import Axis
from fieldbo.domain.distributions import Distribution, TruncatedNormal, Uniform
from fieldbo.mission.mission import Mission
from fieldbo.mission.new.cell_table import CellTable, check_costs, fitted_law, read_table
from fieldbo.mission.new.survey import four_digits, new_places, written
from fieldbo.mission.toml import toml_text
from fieldbo.world.fields.table import Readings, TableField, fit_table

_REPRESENTERS = 2048
_FIRST = 5  # readings before the rule takes over

_CHAINS, _ROUNDS, _SAMPLES = 25.0, 10.0, 60.0
"""What a first battery pays for: runs of the whole chain, rounds of all control sets, or samples."""

_MOST_STEPS = 200  # where costs are not known, a cheap control set may be played very often


@dataclass(frozen=True, eq=False)
class NewCell:
    """What `make_cell` made.

    Attributes
    ----------
    world, mission : Path
        The world's folder and the mission's file.
    field : TableField
        The fit, with its quality.
    loaded : Mission
        The mission as it loads.
    notes : tuple of str
        What was decided by the table.
    """

    world: Path
    mission: Path
    field: TableField
    loaded: Mission
    notes: tuple[str, ...] = ()

    @property
    def little_known(self) -> float:
        """Share of the settings of which the table says little: the fit's sd is above half the prior's."""
        belief, sites = self.field.belief, self.loaded.world.domain.sites
        prior = belief.kernel.diagonal(sites)
        return float(np.mean(belief.variance(sites) > 0.25 * prior))


def make_cell(name: str, cell: CellTable, folder: Path | None = None) -> NewCell:
    """Write ``worlds/NAME`` and ``missions/NAME.toml`` below a folder, as `make_world` does.

    The truth is the mean of the Gaussian process fitted to the table, over the box of its settings.

    Parameters
    ----------
    name : str
    cell : CellTable
    folder : Path, optional
        By default the working folder.

    Raises
    ------
    InputError
        The name, the table, or a module or control set is wrong, or one of the two files exists already.
    """
    base = Path() if folder is None else folder
    world, mission = new_places(name, base)
    axes, readings = read_table(cell)
    check_costs(cell, axes)
    with one_blas_thread():  # factors of these sizes are fastest with one BLAS thread
        extent = np.array([a.extent for a in axes])
        field = fit_table(readings, extent, "matern52", cell.transform, str(cell.csv))
    told = _Cell(cell, axes, readings, field)
    texts = {"world.toml": told.world_toml(), "README.md": told.readme(name)}
    loaded = written(name, base, cell.csv, texts, told.mission_toml(name))
    return NewCell(world, mission, field, loaded, tuple(told.notes))


# -- the texts -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Cell:
    """The texts of a new cell's files."""

    cell: CellTable
    axes: Sequence[Axis]
    readings: Readings
    field: TableField

    @property
    def rule(self) -> str:
        """The first mission's policy."""
        return "lambo" if self.cell.modules else "subset-front" if self.cell.control_sets else "ei"

    @property
    def _ever_free(self) -> NDArray[np.bool_]:
        """Which settings (d,) some control set leaves free."""
        sets = [names for names, _ in self.cell.control_sets]
        return np.array([any(a.name not in names for names in sets) for a in self.axes])

    @property
    def _laws(self) -> dict[str, Distribution]:
        """The distributions of settings that are ever left free, by name."""
        columns = zip(self.axes, self.readings.sites.T, self._ever_free, strict=True)
        return {a.name: fitted_law(column, a.low, a.high) for a, column, free in columns if free}

    @property
    def notes(self) -> list[str]:
        """What the table says of distributions."""
        wide = [name for name, law in self._laws.items() if isinstance(law, Uniform)]
        if not wide:
            return []
        return [f"{', '.join(wide)} spread too wide for a normal law: uniform where left free"]

    @property
    def battery(self) -> float:
        cell = self.cell
        if cell.modules:
            return four_digits(_CHAINS * sum(one.cost for one in cell.modules))
        if cell.control_sets:
            costs = [cost for _, cost in cell.control_sets]
            return four_digits(_ROUNDS * sum(costs) + _FIRST * max(costs))
        return four_digits(_SAMPLES * cell.sample_cost)

    def _domain(self) -> dict[str, Any]:
        axes = []
        laws = self._laws
        for axis in self.axes:
            told: dict[str, Any] = {
                "name": axis.name,
                "unit": axis.unit,
                "low": axis.low,
                "high": axis.high,
            }
            law = laws.get(axis.name)
            if isinstance(law, TruncatedNormal):
                told["free"] = {"kind": "truncated-normal", "mean": law.mean, "variance": law.variance}
            elif law is not None:
                told["free"] = {"kind": "uniform"}
            axes.append(told)
        sets = [list(names) for names, _ in self.cell.control_sets]
        return {
            "kind": "box",
            "axes": axes,
            **({"control_sets": sets} if sets else {}),
            "representers": _REPRESENTERS,
        }

    def _cost(self) -> dict[str, Any]:
        cell = self.cell
        if cell.modules:
            chain = [{"name": m.name, "axes": list(m.axes), "cost": m.cost} for m in cell.modules]
            return {"kind": "modular", "modules": chain, "charge_last": True}
        if cell.control_sets:
            return {"kind": "subset", "costs": [cost for _, cost in cell.control_sets]}
        return {"kind": "unit", "sampling": cell.sample_cost}

    @property
    def noise_sd(self) -> float:
        """Fitted noise in the user's unit; under a log, at the smallest outcome."""
        log = self.cell.transform == "log"
        return four_digits(self.field.noise_sd * (float(self.readings.values.min()) if log else 1.0))

    def world_toml(self) -> bytes:
        cell = self.cell
        field: dict[str, Any] = {
            "kind": "table",
            "file": "readings.csv",
            "axes": [a.name for a in self.axes],
            "value": cell.value,
            "transform": cell.transform,
        }
        if cell.noise_sd:
            field["noise_sd"] = cell.noise_sd
        told = {
            "format": 1,
            "version": "1",
            "title": f"{cell.value} by the settings in {cell.csv.name}",
            "cost_unit": cell.cost_unit,
            "value": {"name": cell.value, "unit": cell.value_unit},
            "domain": self._domain(),
            "field": field,
            "cost": self._cost(),
            "sensor": {"noise_sd": self.noise_sd},
        }
        head = (
            "# The truth is the mean of the Gaussian process fitted to readings.csv, over the box of its\n"
            "# settings. Without [field] the cell is live. To check: fieldbo check on this file.\n\n"
        )
        return (head + toml_text(told)).encode()

    def mission_toml(self, name: str) -> bytes:
        cell, kernel, scale = self.cell, self.field.belief.kernel, self.field.scale
        theta, unknown = np.exp(kernel.theta), bool(cell.control_sets)
        policy: dict[str, Any] = {"kind": self.rule}
        if unknown:
            policy["worst"] = self._worst()
        side = "largest" if cell.goal == "maximise" else "smallest"
        told = {
            "format": 1,
            "title": f"Where is {cell.value} {side}?",
            "world": name,
            "seed": 0,
            "question": {"kind": "optimum", "goal": cell.goal},
            "agent": {
                "battery": self.battery,
                **({"costs": "unknown", "max_steps": _MOST_STEPS} if unknown else {}),
            },
            "initial": {"count": _FIRST},
            "policy": policy,
            "model": {
                "kernel": "matern52",
                "transform": cell.transform,
                "length_scales": [four_digits(v) for v in theta[:-1]],
                "variance": four_digits(theta[-1] * scale.scale**2),
                "mean": self._near(scale.to_user([0.0])[0]),
            },
        }
        return toml_text(told).encode()

    def _worst(self) -> float:
        """Return a value beyond all of the table and of the fit: shares of the best are counted from it."""
        values = self.readings.values
        sign, spread = (1.0 if self.cell.goal == "minimise" else -1.0), float(np.ptp(values))
        return self._near(sign * (float(max(sign * values)) + 0.1 * spread))

    def _near(self, value: float) -> float:
        """Return a value to a thousandth of the outcomes' spread, for a file that a person reads."""
        return round(float(value), 3 - int(np.floor(np.log10(np.ptp(self.readings.values)))))

    def readme(self, name: str) -> bytes:
        field, cell = self.field, self.cell
        return (
            f"# {name}\n\n"
            f"{cell.value} from {len(self.readings.values)} rows of settings in `readings.csv` "
            f"(columns {', '.join(a.name for a in self.axes)}).\n"
            "The truth is the mean of a Gaussian process (Matern-5/2) fitted to them"
            f"{' on a log scale' if cell.transform == 'log' else ''}, over the box of the settings.\n\n"
            f"Leave-one-out error {field.loo_rmse:.4g} {cell.value_unit}; its 90% intervals hold "
            f"{field.loo_coverage:.0%} of the rows. Cross-validated R2 {field.explained:.2f}.\n"
        ).encode()
