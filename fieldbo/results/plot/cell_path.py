"""The path of a factory cell: settings, runs or plays, and cost, order by order."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.domain.domain import Domain
from fieldbo.errors import counted
from fieldbo.results.answers import OptimumAnswer
from fieldbo.results.cell_runs import CountedRuns, ModuleRuns
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.figures import finish, folded, headline, mark, new_figure, opened, plain_log
from fieldbo.results.plot.style import (
    SERIES,
    Colour,
    Look,
    font_size,
    hue,
    letter_size,
    line_width,
    shade,
    width_of,
)

_PANELS = 6  # up to this many axes each has its own panel; more become rows of one strip
_LIGHT = 0.25  # colour saturation of a value that was left to chance
_NEAR = 3.0  # the battery is drawn if it is at most this many times the total cost
_BEGIN = -0.6  # left end of the panels; the first order is number 0
_MARKS = {"screen": 0.07, "page": 0.1, "column": 0.3}  # room for optima, as a fraction of all orders
_SHARE = {"screen": 0.65, "page": 0.6, "column": 0.4}  # of the figure's width, taken by the panels
_NAME, _SET = 12, 17  # letters of the name of an axis and of a set in a line on paper
_DECADES = 1.3  # costs that span more decades are drawn on a log scale


def settings_picture(outcome: Outcome, width: str = "screen") -> Figure:
    """Draw the settings of each order of a factory cell's run, its modules or control sets, and its cost.

    Parameters
    ----------
    outcome : Outcome
        Of a run in a factory cell.
    width : {"screen", "column", "page"}
        Size for a screen, or for one or both columns of a paper.

    Returns
    -------
    matplotlib.figure.Figure
        Against the number of the order, with gaps for rejected ones: the values on up to six axes as lines or
        dots, on more axes as colours, lighter if left to chance; at the right-hand end the true and the
        reported optimum or, for control sets, the recommended play, blank for free variables; the modules
        that ran, or the control sets, each in its colour; the cost of each order, by its first module or its
        set; and the total cost, up to the battery.
    """
    d = outcome.mission.world.domain.dimension
    kinds, strip = len(outcome.cell_runs.names), d > _PANELS
    row = 0.24 if width == "screen" else 0.36
    rows = [0.26 * d + 0.2] if strip else [0.78] * d
    heights = [*rows, row * kinds + 0.3, 1.25, 1.25]
    tall = sum(heights) + 0.16 * len(heights) + 1.6
    figure = new_figure(11, tall, width, tall=0.8 * tall)
    grid = GridSpec(len(heights), 1, figure, height_ratios=heights)
    panels = [figure.add_subplot(grid[0])]
    panels += [figure.add_subplot(grid[k], sharex=panels[0]) for k in range(1, len(heights))]
    if strip:
        settings_panel(panels[0], outcome)
    else:
        _lines(panels[:d], outcome)
        figure.align_ylabels(panels[:d])
    _kinds(panels[-3], outcome)
    _costs(panels[-2], outcome)
    _total(panels[-1], outcome)
    for ax in panels[:-1]:
        ax.tick_params(labelbottom=False)
    last = _last(outcome)
    panels[-1].set(xlim=(_BEGIN, _end(outcome, width)), xlabel="order")
    ticks = MaxNLocator(8 if width == "screen" else 4, integer=True)
    panels[-1].set_xticks([k for k in ticks.tick_values(0, max(last, 1)) if 0 <= k <= last])
    title = f"{headline(outcome)}\nsettings, {_kind_of(outcome)}s and cost, order by order"
    return finish(figure, title, [panels[0], *panels[-3:]])


def _kind_of(outcome: Outcome) -> str:
    return "module" if isinstance(outcome.cell_runs, ModuleRuns) else "control set"


def _last(outcome: Outcome) -> int:
    """Return the number of the last play's order; -1 before any."""
    return max((play.number for play in outcome.cell_runs.plays), default=-1)


def _end(outcome: Outcome, width: str) -> float:
    """Return the right end of the panels, which leaves space for the optima after the last order."""
    orders = _last(outcome) + 1
    return orders - 0.5 + max(1.5, _MARKS[width] * orders)


def colour_of(kind: int) -> str | Colour:
    """Return the colour of a module or control set; colours repeat if there are many."""
    place = kind % len(SERIES)
    return shade(0.7) if SERIES[place] == "black" else hue(SERIES[place])


def _groups(outcome: Outcome) -> list[tuple[int, int | None]]:
    """Return the axes in the order in which they are drawn, each with its module."""
    runs = outcome.cell_runs
    if isinstance(runs, ModuleRuns):
        return [(axis, module) for module, axes in enumerate(runs.chain.columns) for axis in axes]
    return [(axis, None) for axis in range(outcome.mission.world.domain.dimension)]


def _played(outcome: Outcome) -> tuple[NDArray[np.int64], Array, Mask, NDArray[np.int64]]:
    """Return the plays' numbers (T,), settings (T, d), masks of set variables (T, d), and kinds (T,)."""
    plays, d = outcome.cell_runs.plays, outcome.mission.world.domain.dimension
    return (
        np.array([play.number for play in plays], dtype=np.int64),
        np.array([play.site for play in plays]).reshape(-1, d),
        np.array([play.controls for play in plays], dtype=bool).reshape(-1, d),
        np.array([play.kind for play in plays], dtype=np.int64),
    )


def _optima(outcome: Outcome) -> list[tuple[str, Array]]:
    """Return the true optimum, if known, and the recommended play or reported optimum; free variables NaN."""
    answer, play = outcome.answer, outcome.play
    if not isinstance(answer, OptimumAnswer):
        return []
    controls = outcome.mission.world.domain.controls
    settable = controls is None or controls.index_of(None) is not None
    true = [("true optimum", answer.optimum.point)] if answer.optimum is not None and settable else []
    if play is not None:
        return [*true, ("recommended play", play.site)]
    return [*true, ("reported optimum", answer.reported.point)]


# -- settings --------------------------------------------------------------------------------------------


def _lines(panels: list[Axes], outcome: Outcome) -> None:
    domain, (order, sites, controls, kinds) = outcome.mission.world.domain, _played(outcome)
    right = 0.5 * (_last(outcome) + 0.5 + _end(outcome, width_of(panels[0])))
    size = float(np.clip(60 / np.sqrt(len(sites) + 1), 1.6, 5.0))
    dot: Look = {"linestyle": "none", "marker": "o", "markersize": size, "markeredgewidth": 0}
    for ax, (axis, module) in zip(panels, _groups(outcome), strict=True):
        scale, on, y = domain.axes[axis], controls[:, axis], sites[:, axis]
        if module is not None:
            colour = colour_of(module)
            ax.step(order, y, where="mid", color=colour, linewidth=0.9, alpha=0.6)
            changed = np.append(True, y[1:] != y[:-1])[: len(y)]
            ax.plot(order[changed], y[changed], color=colour, **dot)
            _group(ax, outcome, axis, module)
        else:
            ring: Look = {"markerfacecolor": "none", "markeredgecolor": shade(0.28), "markeredgewidth": 0.8}
            ax.plot(order[~on], y[~on], label="left to chance", **(dot | ring))
            for kind in np.unique(kinds):
                here = on & (kinds == kind)
                ax.plot(order[here], y[here], color=colour_of(int(kind)), **dot)
        for label, point in _optima(outcome):
            mark(ax, np.array([right, point[axis]]), label)
        margin = 0.06 * scale.extent  # values left to chance may lie beyond the axis
        ax.set_ylim(min(scale.low, *y, scale.high) - margin, max(scale.low, *y, scale.high) + margin)
        ax.yaxis.set_inverted(scale.positive == "down")
        ax.set_ylabel(
            folded(ax, scale.label, _NAME),
            rotation=0,
            horizontalalignment="right",
            verticalalignment="center",
        )
        ax.set_yticks([scale.low, scale.high])
        opened(ax)


def _group(ax: Axes, outcome: Outcome, axis: int, module: int) -> None:
    """Name a module next to its first axis, and draw its colour along all its axes."""
    ax.plot(
        [1.012, 1.012], [0, 1], color=colour_of(module), linewidth=4, transform=ax.transAxes, clip_on=False
    )
    runs = outcome.cell_runs
    assert isinstance(runs, ModuleRuns)
    if runs.chain.columns[module][0] == axis:
        _right_of(ax, 0.5, runs.names[module], colour_of(module))


def _right_of(ax: Axes, height: float, text: str, colour: str | Colour | None = None) -> None:
    """Write to the right of axes, at a fraction of their height."""
    ax.annotate(
        text,
        (1.02, height),
        xycoords="axes fraction",
        color=shade(0.8) if colour is None else colour,
        verticalalignment="center",
        fontsize=letter_size(9),
        annotation_clip=False,
    )


def settings_panel(
    ax: Axes, outcome: Outcome, *, cmap: Any = None, colorbar: bool = True
) -> dict[str, Artist]:
    """Draw each axis of a factory cell as a row of colours, from its low end to its high one.

    Parameters
    ----------
    ax : Axes
    outcome : Outcome
        Of a run in a factory cell.
    cmap : str or Colormap, optional
        By default that of the style.
    colorbar : bool

    Returns
    -------
    dict of str to Artist
        The ``"settings"``, one column per order, and those of each optimum with its mark, by its name.
    """
    drawn: dict[str, Artist] = {}
    domain, groups = outcome.mission.world.domain, _groups(outcome)
    order, sites, controls, _ = _played(outcome)
    axes, last, end = [axis for axis, _ in groups], _last(outcome) + 0.5, _end(outcome, width_of(ax))
    rows = len(axes)
    settings = np.full((_last(outcome) + 1, rows), np.nan)
    settings[order] = sites
    on = np.ones_like(settings, dtype=bool)
    on[order] = controls
    look: Look = {"aspect": "auto", "interpolation": "nearest"}
    if len(settings):
        colours = _colour(domain, settings, on, cmap)[:, axes].transpose(1, 0, 2)
        drawn["settings"] = ax.imshow(
            colours, extent=(-0.5, last, rows - 0.5, -0.5), label="settings", **look
        )
    optima = _optima(outcome)
    width = (end - last) / max(1, len(optima))
    for k, (label, point) in enumerate(optima):
        setting = _colour(domain, point[None], np.ones((1, rows), dtype=bool), cmap)
        colours = setting[:, axes].transpose(1, 0, 2)
        left = last + (k + 0.15) * width
        ax.imshow(colours, extent=(left, left + 0.8 * width, rows - 0.5, -0.5), label=label, **look)
        drawn[label] = mark(ax, np.array([left + 0.4 * width, -1.0]), label)
    ax.set(xlim=(_BEGIN, end), ylim=(rows - 0.5, -0.5))
    ax.set_yticks(range(rows), [domain.axes[axis].label for axis in axes])
    ax.tick_params(left=False)
    ax.spines[:].set_visible(False)
    for row in range(1, rows):
        new_module = groups[row][1] != groups[row - 1][1]
        ax.axhline(row - 0.5, color=shade(0.0), linewidth=4.0 if new_module else 0.8)
    for row, (_, module) in enumerate(groups):
        if module is not None:
            ax.get_yticklabels()[row].set_color(colour_of(module))
            if row == 0 or groups[row - 1][1] != module:
                _right_of(ax, 1 - (row + 0.5) / rows, outcome.cell_runs.names[module], colour_of(module))
    if colorbar:
        _position_bar(ax, outcome, groups, cmap, lighter=not controls.all())
    return drawn


def _position_bar(
    ax: Axes, outcome: Outcome, groups: list[tuple[int, int | None]], cmap: Any, *, lighter: bool
) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    longest = max((len(outcome.cell_runs.names[m]) for _, m in groups if m is not None), default=0)
    inches = _SHARE[width_of(ax)] * float(figure.get_size_inches()[0])  # estimated: there is no layout yet
    names = max(0.6 * font_size(ax, 9.0) / 72 / inches, 0.012) * longest
    place = ax.inset_axes((max(1.13, 1.05 + names), 0.1, 0.014, 0.8))
    note = "\n(lighter: left to chance)" if lighter else ""
    scale = ScalarMappable(Normalize(0, 1), cmap)
    bar = figure.colorbar(scale, cax=place, label=f"position on its axis{note}")
    bar.set_ticks([0, 0.5, 1], labels=["low", "middle", "high"])


def _colour(domain: Domain, sites: Array, controls: Mask, cmap: Any = None) -> Array:
    """Return the colours (T, d, 3) of settings (T, d), lighter where left to chance, white where NaN."""
    colours = colormaps.get_cmap(cmap)((sites - domain.low) / domain.extent)[..., :3]
    colours = np.where(controls[..., None], colours, 1.0 - _LIGHT * (1.0 - colours))
    return np.where(np.isnan(sites)[..., None], 1.0, colours)


# -- what ran, and what it cost --------------------------------------------------------------------------


def _kinds(ax: Axes, outcome: Outcome) -> None:
    runs, (order, _, _, kinds) = outcome.cell_runs, _played(outcome)
    chain, rows = isinstance(runs, ModuleRuns), len(runs.names)
    for kind in range(rows):
        ran = kinds <= kind if chain else kinds == kind
        ax.bar(order[ran], 0.72, _width(outcome), kind - 0.36, color=colour_of(kind), linewidth=0)
        numbers = _count_and_cost(outcome, kind)
        numbers = numbers.replace(", ", "\n") if width_of(ax) == "column" else numbers
        _right_of(ax, 1 - (kind + 0.5) / rows, numbers)
    ax.set_ylim(rows - 0.5, -0.5)
    ax.set_yticks(range(rows), [folded(ax, name, _SET) for name in runs.names])
    for label, kind in zip(ax.get_yticklabels(), range(rows), strict=True):
        label.set_color(colour_of(kind))
    ax.tick_params(left=False)
    opened(ax)
    ax.grid(visible=False)


def _width(outcome: Outcome) -> float:
    """Return the width of a bar; many bars leave no gaps."""
    return 0.85 if len(outcome.cell_runs.plays) <= 150 else 1.0


def _count_and_cost(outcome: Outcome, kind: int) -> str:
    numbers: dict[str, Any] = outcome.cell_runs.summary()
    unit = outcome.mission.world.cost_unit
    if "modules" in numbers:
        module = numbers["modules"][kind]
        return f"{counted(module['runs'], 'run')}, {module['spent']:.4g} {unit}"
    control_set = numbers["control_sets"][kind]
    return f"{counted(control_set['plays'], 'play')}, {control_set['cost']:.3g} {unit}"


def _costs(ax: Axes, outcome: Outcome) -> None:
    costs, (order, _, _, kinds) = np.array([play.cost for play in outcome.cell_runs.plays]), _played(outcome)
    positive = costs[costs > 0]
    log = len(positive) > 0 and float(np.log10(positive.max() / positive.min())) > _DECADES
    bottom = 0.5 * float(positive.min()) if log else 0.0
    for kind in np.unique(kinds):
        here = kinds == kind
        height = np.maximum(costs[here] - bottom, 0.0)
        ax.bar(order[here], height, _width(outcome), bottom, color=colour_of(int(kind)), linewidth=0)
    if log:
        plain_log(ax)
    ax.set_ylim(bottom=bottom)
    ax.set_ylabel(f"cost per\norder ({outcome.mission.world.cost_unit})")
    opened(ax)


def _total(ax: Axes, outcome: Outcome) -> None:
    """Draw the total cost, by module or control set, up to the battery."""
    assert isinstance(outcome.cell_runs, CountedRuns)
    (order, *_), shares = _played(outcome), outcome.cell_runs.costs_by_kind()
    total = np.cumsum(shares.sum(axis=1))
    upper = np.cumsum(np.cumsum(shares, axis=0), axis=1)
    lower = upper - np.cumsum(shares, axis=0)
    for kind in range(len(outcome.cell_runs.names)):
        look: Look = {"color": colour_of(kind), "alpha": 0.55, "linewidth": 0}
        ax.fill_between(order, lower[:, kind], upper[:, kind], **look)
    ax.plot(order, total, color=shade(1.0), linewidth=line_width(1.6), label="total cost")
    battery, unit = sum(c.capacity for c in outcome.mission.vehicles), outcome.mission.world.cost_unit
    most = total.max(initial=0.0)
    near = battery <= _NEAR * most or not most
    label = "battery" if near else f"battery: {battery:g} {unit} (off scale)"
    ax.axhline(battery, color=shade(1.0), linewidth=line_width(0.9), linestyle=":", label=label)
    ax.set_ylim(0, 1.08 * max(battery if near else 0.0, most))
    ax.set_ylabel(f"total cost\n({unit})")
    opened(ax)
