"""The curves of a cell: regrets, evaluations, and where the money went."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec, SubplotSpec

from fieldbo._numerics.arrays import Array
from fieldbo.results.cell_runs import ModuleRuns
from fieldbo.results.plot.figures import BLUE, GREEN, Look, floor_of, headline, new_figure, opened
from fieldbo.results.plot.settings import colour_of

if TYPE_CHECKING:
    from fieldbo.results.result import Result

_HELD: Look = {"where": "post", "clip_on": False}
_NAMES = {
    "regret": ("reported optimum", BLUE),
    "best_regret": ("best sample", GREEN),
    "simple_regret": ("best play, in expectation", GREEN),
}

Panel = Callable[[Figure, SubplotSpec, Any], None]


def plays_picture(result: Result) -> Figure:
    """Draw the regrets of a cell's run against what was spent, and what it was spent on.

    Parameters
    ----------
    result : Result
        Of a run in a cell, for an optimum.

    Returns
    -------
    matplotlib.figure.Figure
        Regret on a log scale (in a live world the reported value); how often each module ran, or each control
        set was played; what moving has cost and its regret, or the regrets of quality and of cost; and the
        share of each module or set.
    """
    chain = isinstance(result.cell, ModuleRuns)
    panels: list[Panel] = [_regrets, _counts]
    panels += [_movement] if chain else [] if result.truth is None else [_quality_and_cost]
    panels += [_shares]
    figure = new_figure(12, 8)
    grid = GridSpec(2, 2, figure)
    places = (
        [grid[0, 0], grid[0, 1], grid[1, 0], grid[1, 1]]
        if len(panels) == 4
        else [grid[0, 0], grid[0, 1], grid[1, :]]
    )
    for panel, place in zip(panels, places, strict=True):
        panel(figure, place, result)
    figure.suptitle(headline(result))
    return figure


def _against_cost(ax: Axes, result: Result, *, named: bool = True) -> None:
    """Lay axes out from 0 to what was spent; the lowest of a column has the name."""
    battery, unit = sum(c.battery for c in result.mission.vehicles), result.mission.world.cost_unit
    ax.set_xlim(0, result.cost or battery)
    if result.cost > battery:
        ax.axvline(battery, color="black", linewidth=0.9, linestyle=":", label="battery")
    if named:
        ax.set_xlabel(f"spent ({unit}); the battery holds {battery:g} {unit}")
    else:
        ax.tick_params(labelbottom=False)
    opened(ax)


def _spent(result: Result) -> Array:
    return np.array([step.cost for step in result.curve])


def _column(result: Result, name: str) -> Array:
    return np.array([getattr(step, name) for step in result.curve])


def _regrets(figure: Figure, place: SubplotSpec, result: Result) -> None:
    """Draw the regrets on a log scale; without a truth, the reported value."""
    ax, quantity = figure.add_subplot(place), result.mission.world.quantity
    _against_cost(ax, result)
    if result.truth is None:
        ax.step(_spent(result), _column(result, "reported_value"), color=BLUE, linewidth=2.0, **_HELD)
        ax.set(title="reported value", ylabel=quantity.label)
        return
    curves = {name: _column(result, name) for name in ("regret", *result.cell.judged) if name in _NAMES}
    floor = floor_of(np.concatenate(list(curves.values())))
    for name, regret in curves.items():
        label, colour = _NAMES[name]
        label += "" if not (regret < floor).any() else " (none: at the lower edge)"
        ax.step(_spent(result), np.maximum(regret, floor), color=colour, linewidth=2.0, label=label, **_HELD)
    ax.set(yscale="log", title="regret", ylabel=f"regret of {quantity.label}")
    ax.set_ylim(bottom=floor)
    _legend(ax)


def _legend(ax: Axes) -> None:
    """Name the lines below the axes' title, above the axes."""
    ax.set_title(ax.get_title(), pad=24)
    ax.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=9, borderaxespad=0.2
    )


def _counts(figure: Figure, place: SubplotSpec, result: Result) -> None:
    """Draw how often each module ran, or each control set was played, against what was spent."""
    ax, cell = figure.add_subplot(place), result.cell
    chain = isinstance(cell, ModuleRuns)
    spent = np.cumsum([play.cost for play in cell.plays])
    kinds = np.array([play.kind for play in cell.plays], dtype=int)
    if not chain:
        every = np.arange(1, len(kinds) + 1)
        ax.step(spent, every, color="black", linewidth=2.2, label="all plays", **_HELD)
    for kind, name in enumerate(cell.names):
        count = np.cumsum(kinds <= kind if chain else kinds == kind)
        label = name if chain else "_" + name  # named by the bars below
        ax.step(spent, count, color=colour_of(kind), linewidth=1.6, label=label, **_HELD)
    ax.set(
        title="runs of each module" if chain else "evaluations, in all and by control set",
        ylabel="runs" if chain else "plays",
    )
    ax.set_ylim(0, 1.05 * max(1, len(kinds)))
    _legend(ax)
    _against_cost(ax, result)


def _movement(figure: Figure, place: SubplotSpec, result: Result) -> None:
    """Draw what moving has cost, and where there is a truth the movement regret."""
    curves = {"movement": f"cost\n({result.mission.world.cost_unit})"}
    if result.truth is not None:
        curves["movement_regret"] = "movement\nregret"
    _stacked(figure, place, result, curves, "moving: all runs but the last module's")


def _quality_and_cost(figure: Figure, place: SubplotSpec, result: Result) -> None:
    """Draw the regrets of quality and of cost."""
    unit = result.mission.world.cost_unit
    curves = {"quality_regret": "quality\nregret", "cost_regret": f"cost regret\n({unit})"}
    _stacked(figure, place, result, curves, "regrets of quality and of cost, at 90% of the best")


def _stacked(figure: Figure, place: SubplotSpec, result: Result, curves: dict[str, str], title: str) -> None:
    """Draw columns of the curve, each with its label, one above the other."""
    grid, first = place.subgridspec(len(curves), 1), None
    for row, (name, label) in enumerate(curves.items()):
        ax = figure.add_subplot(grid[row], sharex=first)
        first = first or ax
        values = _column(result, name)
        ax.step(_spent(result), values, color="0.25", linewidth=2.0, **_HELD)
        ax.set(title="" if row else title, ylabel=label)
        if not values.any():
            ax.set_ylim(0, 1)
        _against_cost(ax, result, named=row == len(curves) - 1)


def _shares(figure: Figure, place: SubplotSpec, result: Result) -> None:
    """Draw the shares of runs and of cost of each module or control set, as bars."""
    ax, told = figure.add_subplot(place), result.cell.summary()
    chain = "modules" in told
    ones = told["modules" if chain else "control_sets"]
    counts = np.array([one["runs" if chain else "plays"] for one in ones], dtype=float)
    costs = np.array([one["spent" if chain else "cost"] for one in ones])
    rows = np.arange(len(ones))
    unit, n = result.mission.world.cost_unit, max(1, len(result.cell.plays))
    colours = [colour_of(int(k)) for k in rows]
    shares = counts / n, costs / (costs.sum() or 1.0)
    for up, share, alpha in ((-0.2, shares[0], 1.0), (0.2, shares[1], 0.45)):
        ax.barh(rows + up, 100 * share, 0.38, color=colours, alpha=alpha)
    for row, (count, cost) in enumerate(zip(counts, costs, strict=True)):
        for up, share, text in (
            (-0.2, shares[0][row], f"{count:g} {'run' if chain else 'play'}{'' if count == 1 else 's'}"),
            (0.2, shares[1][row], f"{cost:.3g} {unit}"),
        ):
            ax.annotate(
                text, (100 * share, row + up), (4, 0), textcoords="offset points", fontsize=8, va="center"
            )
    names = [
        name + (" ✓" if one.get("good_enough_true") else "")
        for name, one in zip(result.cell.names, ones, strict=True)
    ]
    ax.set_yticks(rows, names)
    for label, colour in zip(ax.get_yticklabels(), colours, strict=True):
        label.set_color(colour)
    ax.yaxis.set_inverted(True)
    ax.set_xlim(0, 100 * 1.15 * max(0.01, shares[0].max(), shares[1].max()))
    ax.set_title(f"share of {'runs' if chain else 'plays'} (dark) and of cost (light)")
    ticked = any(name.endswith("✓") for name in names)
    ax.set_xlabel("%" + ("; ✓: reaches 90% of the best in expectation" if ticked else ""))
    opened(ax)
    ax.grid(visible=False, axis="y")
