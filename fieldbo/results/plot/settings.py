"""The path of a cell: its settings order by order, what ran or was set for them, and what that cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.domain import Domain
from fieldbo.results.answers import OptimumAnswer
from fieldbo.results.cell_runs import Counted, ModuleRuns
from fieldbo.results.plot.figures import SERIES, VALUE, Look, headline, legend_below, new_figure, opened
from fieldbo.results.plot.marks import mark

if TYPE_CHECKING:
    from fieldbo.results.result import Result

_KINDS = (*SERIES[:-1], "0.3")
_PANELS = 6  # axes up to which each has a panel of its own; more are rows of one strip
_LIGHT = 0.25  # what is left of the colour of a value that came about by chance
_NEAR = 3.0  # times what was spent, up to which the battery is in the picture
_BEGIN = -0.6  # where panels begin: the first order is number 0
_DECADES = 1.3  # costs that differ by more are drawn on a log scale


def settings_picture(result: Result) -> Figure:
    """Draw the settings of each order of a cell's run, the modules or control sets, and the cost.

    Parameters
    ----------
    result : Result
        Of a run in a cell.

    Returns
    -------
    matplotlib.figure.Figure
        Against the number of the order, with a gap where one was turned down: values on up to six axes as
        lines or dots, of more as colours, from one end of the axis to the other, those that were left to
        chance lighter; at the right-hand end the true optimum and the reported one, or of control sets the
        play to go on with, blank where it leaves a variable free; modules that ran, or control sets, each in
        its colour; the cost of an order by the first module that ran, or by the set; and what was spent in
        all, up to the battery.
    """
    cell, d = result.cell, result.mission.world.domain.dimension
    kinds, strip = len(cell.names), d > _PANELS
    rows = [0.26 * d + 0.2] if strip else [0.78] * d
    heights = [*rows, 0.24 * kinds + 0.3, 1.25, 1.25]
    figure = new_figure(11, sum(heights) + 0.16 * len(heights) + 1.6)
    grid = GridSpec(len(heights), 1, figure, height_ratios=heights)
    panels = [figure.add_subplot(grid[0])]
    panels += [figure.add_subplot(grid[k], sharex=panels[0]) for k in range(1, len(heights))]
    if strip:
        _strip(panels[0], result)
    else:
        _lines(panels[:d], result)
        figure.align_ylabels(panels[:d])
    _kinds(panels[-3], result)
    _costs(panels[-2], result)
    _spent(panels[-1], result)
    for ax in panels[:-1]:
        ax.tick_params(labelbottom=False)
    last = _last(result)
    panels[-1].set(xlim=(_BEGIN, _end(result)), xlabel="order")
    panels[-1].set_xticks(
        [k for k in MaxNLocator(8, integer=True).tick_values(0, max(last, 1)) if 0 <= k <= last]
    )
    figure.suptitle(f"{headline(result)}\nsettings, {_kind_of(result)}s and cost, order by order")
    legend_below(figure)
    return figure


def _kind_of(result: Result) -> str:
    return "module" if isinstance(result.cell, ModuleRuns) else "control set"


def _last(result: Result) -> int:
    """Return the number of the last play's order; -1 before any."""
    return max((play.number for play in result.cell.plays), default=-1)


def _end(result: Result) -> float:
    """Return where the panels end: behind the last order there is room for the optima."""
    orders = _last(result) + 1
    return orders - 0.5 + max(1.5, 0.07 * orders)


def colour_of(kind: int) -> str:
    """Return the colour of a module or control set; they come again where there are many."""
    return _KINDS[kind % len(_KINDS)]


def _groups(result: Result) -> list[tuple[int, int | None]]:
    """Return the numbers of the axes in the order in which they are drawn, each with its module."""
    cell = result.cell
    if isinstance(cell, ModuleRuns):
        return [(axis, module) for module, own in enumerate(cell.chain.columns) for axis in own]
    return [(axis, None) for axis in range(result.mission.world.domain.dimension)]


def _played(result: Result) -> tuple[NDArray[np.int64], Array, Mask, NDArray[np.int64]]:
    """Return of all plays: numbers (T,), settings (T, d), which of them were set (T, d), and kinds (T,)."""
    plays, d = result.cell.plays, result.mission.world.domain.dimension
    return (
        np.array([play.number for play in plays], dtype=np.int64),
        np.array([play.site for play in plays]).reshape(-1, d),
        np.array([play.controls for play in plays], dtype=bool).reshape(-1, d),
        np.array([play.kind for play in plays], dtype=np.int64),
    )


def _optima(result: Result) -> list[tuple[str, Array]]:
    """Return the true optimum, where it is known, and what is recommended: NaN is a variable left free."""
    answer, play = result.answer, result.play
    if not isinstance(answer, OptimumAnswer):
        return []
    controls = result.mission.world.domain.controls
    settable = controls is None or controls.index_of(None) is not None
    true = [("true optimum", answer.optimum.point)] if answer.optimum is not None and settable else []
    if play is not None:
        return [*true, ("recommended play", play.site)]
    return [*true, ("reported optimum", answer.reported.point)]


# -- settings --------------------------------------------------------------------------------------------


def _lines(panels: list[Axes], result: Result) -> None:
    """Draw each axis in a panel of its own."""
    domain, (order, sites, controls, kinds) = result.mission.world.domain, _played(result)
    behind = 0.5 * (_last(result) + 0.5 + _end(result))
    size = float(np.clip(60 / np.sqrt(len(sites) + 1), 1.6, 5.0))
    dot: Look = {"linestyle": "none", "marker": "o", "markersize": size, "markeredgewidth": 0}
    for ax, (axis, module) in zip(panels, _groups(result), strict=True):
        one, on, y = domain.axes[axis], controls[:, axis], sites[:, axis]
        if module is not None:
            colour = colour_of(module)
            ax.step(order, y, where="mid", color=colour, linewidth=0.9, alpha=0.6)
            changed = np.append(True, y[1:] != y[:-1])[: len(y)]
            ax.plot(order[changed], y[changed], color=colour, **dot)
            _group(ax, result, axis, module)
        else:
            ring: Look = {"markerfacecolor": "none", "markeredgecolor": "0.72", "markeredgewidth": 0.8}
            ax.plot(order[~on], y[~on], label="left to chance", **(dot | ring))
            for kind in np.unique(kinds):
                here = on & (kinds == kind)
                ax.plot(order[here], y[here], color=colour_of(int(kind)), **dot)
        for label, point in _optima(result):
            mark(ax, np.array([behind, point[axis]]), label)
        margin = 0.06 * one.extent  # what came about by chance may lie beyond the axis
        ax.set_ylim(min(one.low, *y, one.high) - margin, max(one.low, *y, one.high) + margin)
        ax.yaxis.set_inverted(one.positive == "down")
        ax.set_ylabel(one.label, rotation=0, horizontalalignment="right", verticalalignment="center")
        ax.set_yticks([one.low, one.high])
        opened(ax)


def _group(ax: Axes, result: Result, axis: int, module: int) -> None:
    """Name a module beside its first axis, and draw its colour along all of them."""
    ax.plot(
        [1.012, 1.012], [0, 1], color=colour_of(module), linewidth=4, transform=ax.transAxes, clip_on=False
    )
    cell = result.cell
    assert isinstance(cell, ModuleRuns)
    if cell.chain.columns[module][0] == axis:
        _beside(ax, 0.5, cell.names[module], colour_of(module))


def _beside(ax: Axes, height: float, text: str, colour: str = "0.2") -> None:
    """Write on the right of axes, at a share of their height."""
    ax.annotate(
        text,
        (1.02, height),
        xycoords="axes fraction",
        color=colour,
        verticalalignment="center",
        fontsize=9,
        annotation_clip=False,
    )


def _strip(ax: Axes, result: Result) -> None:
    """Draw each axis as a row of colours, from its low end to its high one."""
    domain, (order, sites, controls, _), groups = (
        result.mission.world.domain,
        _played(result),
        _groups(result),
    )
    axes, last, end = [axis for axis, _ in groups], _last(result) + 0.5, _end(result)
    rows = len(axes)
    settings = np.full((_last(result) + 1, rows), np.nan)
    settings[order] = sites
    on = np.ones_like(settings, dtype=bool)
    on[order] = controls
    look: Look = {"aspect": "auto", "interpolation": "nearest"}
    if len(settings):
        colours = _coloured(domain, settings, on)[:, axes].transpose(1, 0, 2)
        ax.imshow(colours, extent=(-0.5, last, rows - 0.5, -0.5), label="settings", **look)
    optima = _optima(result)
    width = (end - last) / max(1, len(optima))
    for k, (label, point) in enumerate(optima):
        one = _coloured(domain, point[None], np.ones((1, rows), dtype=bool))[:, axes].transpose(1, 0, 2)
        left = last + (k + 0.15) * width
        ax.imshow(one, extent=(left, left + 0.8 * width, rows - 0.5, -0.5), label=label, **look)
        mark(ax, np.array([left + 0.4 * width, -1.0]), label)
    ax.set(xlim=(_BEGIN, end), ylim=(rows - 0.5, -0.5))
    ax.set_yticks(range(rows), [domain.axes[axis].label for axis in axes])
    ax.tick_params(left=False)
    ax.spines[:].set_visible(False)
    for row in range(1, rows):
        new = groups[row][1] != groups[row - 1][1]
        ax.axhline(row - 0.5, color="white", linewidth=4.0 if new else 0.8)
    for row, (_, module) in enumerate(groups):
        if module is not None:
            ax.get_yticklabels()[row].set_color(colour_of(module))
            if row == 0 or groups[row - 1][1] != module:
                _beside(ax, 1 - (row + 0.5) / rows, result.cell.names[module], colour_of(module))
    figure = ax.get_figure(root=True)
    assert figure is not None
    named = max((len(result.cell.names[m]) for _, m in groups if m is not None), default=0)
    place = ax.inset_axes((max(1.13, 1.05 + 0.012 * named), 0.1, 0.014, 0.8))
    lighter = "" if controls.all() else "\n(lighter: left to chance)"
    scale = ScalarMappable(Normalize(0, 1), VALUE["cmap"])
    bar = figure.colorbar(scale, cax=place, label=f"place on its axis{lighter}")
    bar.set_ticks([0, 0.5, 1], labels=["low", "mid", "high"])


def _coloured(domain: Domain, sites: Array, controls: Mask) -> Array:
    """Return the colours (T, d, 3) of settings (T, d), lighter where left to chance, white where NaN."""
    colours = colormaps[VALUE["cmap"]]((sites - domain.low) / domain.extent)[..., :3]
    colours = np.where(controls[..., None], colours, 1.0 - _LIGHT * (1.0 - colours))
    return np.where(np.isnan(sites)[..., None], 1.0, colours)


# -- what ran, and what it cost --------------------------------------------------------------------------


def _kinds(ax: Axes, result: Result) -> None:
    """Draw which modules ran, or which control set was played, with the number and the cost of all."""
    cell, (order, _, _, kinds) = result.cell, _played(result)
    chain, rows = isinstance(cell, ModuleRuns), len(cell.names)
    for kind in range(rows):
        ran = kinds <= kind if chain else kinds == kind
        ax.bar(order[ran], 0.72, _width(result), kind - 0.36, color=colour_of(kind), linewidth=0)
        _beside(ax, 1 - (kind + 0.5) / rows, _in_all(result, kind))
    ax.set_ylim(rows - 0.5, -0.5)
    ax.set_yticks(range(rows), cell.names)
    for label, kind in zip(ax.get_yticklabels(), range(rows), strict=True):
        label.set_color(colour_of(kind))
    ax.tick_params(left=False)
    opened(ax)
    ax.grid(visible=False)


def _width(result: Result) -> float:
    """Return the width of a bar: they stand apart where they are few."""
    return 0.85 if len(result.cell.plays) <= 150 else 1.0


def _in_all(result: Result, kind: int) -> str:
    """Return how often a module ran or a control set was played, and for how much."""
    told: dict[str, Any] = result.cell.summary()
    unit = result.mission.world.cost_unit
    if "modules" in told:
        one = told["modules"][kind]
        return f"{_times(one['runs'], 'run')}, {one['spent']:.4g} {unit}"
    one = told["control_sets"][kind]
    return f"{_times(one['plays'], 'play')}, {one['cost']:.3g} {unit}"


def _times(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _costs(ax: Axes, result: Result) -> None:
    """Draw what each order cost, as a bar."""
    costs, (order, _, _, kinds) = np.array([play.cost for play in result.cell.plays]), _played(result)
    positive = costs[costs > 0]
    spread = len(positive) > 0 and float(np.log10(positive.max() / positive.min())) > _DECADES
    bottom = 0.5 * float(positive.min()) if spread else 0.0
    for kind in np.unique(kinds):
        here = kinds == kind
        height = np.maximum(costs[here] - bottom, 0.0)
        ax.bar(order[here], height, _width(result), bottom, color=colour_of(int(kind)), linewidth=0)
    if spread:
        ax.set_yscale("log")
    ax.set_ylim(bottom=bottom)
    ax.set_ylabel(f"cost of the\norder ({result.mission.world.cost_unit})")
    opened(ax)


def _spent(ax: Axes, result: Result) -> None:
    """Draw what was spent in all, by module or control set, up to the battery."""
    assert isinstance(result.cell, Counted)
    (order, *_), shares = _played(result), result.cell.costs_by_kind()
    whole = np.cumsum(shares.sum(axis=1))
    upper = np.cumsum(np.cumsum(shares, axis=0), axis=1)
    lower = upper - np.cumsum(shares, axis=0)
    for kind in range(len(result.cell.names)):
        look: Look = {"color": colour_of(kind), "alpha": 0.55, "linewidth": 0}
        ax.fill_between(order, lower[:, kind], upper[:, kind], **look)
    ax.plot(order, whole, color="black", linewidth=1.6, label="spent in all")
    battery, unit = sum(c.battery for c in result.mission.vehicles), result.mission.world.cost_unit
    most = whole.max(initial=0.0)
    near = battery <= _NEAR * most or not most
    label = "battery" if near else f"battery: {battery:g} {unit}, far above"
    ax.axhline(battery, color="black", linewidth=0.9, linestyle=":", label=label)
    ax.set_ylim(0, 1.08 * max(battery if near else 0.0, most))
    ax.set_ylabel(f"spent\n({unit})")
    opened(ax)
