"""The picture of a ledger: what orders were planned to cost, what they cost, and what is left."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from fieldbo._numerics.arrays import Array
from fieldbo.errors import UnknownNameError
from fieldbo.messages import order_number
from fieldbo.results.answers import LevelSetAnswer
from fieldbo.results.outcome import Account, Outcome
from fieldbo.results.plot.figures import finish, headline, level, new_figure, opened, readings
from fieldbo.results.plot.style import BLUE, SERIES, Colour, Look, hue, line_width, shade

VIEWS = ("total", "orders")
"""Views of a ledger: totals up to each order, or the cost of each order."""

_MOST_GAPS = 150  # more bars leave no gaps between them


def ledger_picture(outcome: Outcome, width: str = "screen") -> Figure:
    """Draw planned and real cost of each order, and their totals up to the battery.

    Parameters
    ----------
    outcome : Outcome
        For example a `Result`.
    width : {"screen", "column", "page"}
        Size for a screen, or for one or both columns of a paper.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels: both views of `ledger_panel`.
    """
    figure = new_figure(9, 6.5, width)
    top, ax = figure.subplots(2, 1, height_ratios=[2, 3])
    ledger_panel(top, outcome, "orders")
    ledger_panel(ax, outcome, "total")
    return finish(
        figure, f"{headline(outcome)}\nplanned and real cost of each order, and in total", [top, ax]
    )


def ledger_panel(
    ax: Axes,
    outcome: Outcome,
    view: str = "total",
    *,
    color: str | None = None,
    linewidth: float | None = None,
) -> dict[str, Artist | BarContainer]:
    """Draw planned against real costs into axes, order by order, in the cost unit.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    outcome : Outcome
        For example a `Result`.
    view : {"total", "orders"}
        Totals up to each order, below the battery and its reserve; or the cost of each order.
    color : color, optional
        Of the lines and bars; by default each vehicle has its own.
    linewidth : float, optional
        In points.

    Returns
    -------
    dict of str to Artist or BarContainer
        For totals ``"planned"`` and ``"spent"``, lines that begin at 0 and include the trip home; the line at
        the ``"battery"``; the ``"changes"`` to another battery and the band of the ``"reserve"``, where there
        are any; and ``"left"``, from the total to the battery. For orders ``"planned"``, ``"spent"``, a
        container of bars, and ``"changes"``. With several vehicles, the names end in ``" of vehicle k"``.
        Orders that are not settled yet, or have no declared cost, are left out.

    Raises
    ------
    UnknownNameError
        There is no such view.
    """
    if view not in VIEWS:
        raise UnknownNameError.of("view of a ledger", view, VIEWS, where="view")
    drawn, several = dict[str, Artist | BarContainer](), len(outcome.accounts) > 1
    whole = view == "total"
    furthest = ax.get_xlim()[1] if ax.has_data() else 1.0
    for number, account in enumerate(outcome.accounts):
        of = f" of vehicle {number}" if several else ""
        shown = color or hue(SERIES[number % len(SERIES)] if several else BLUE)
        draw = _totals if whole else _orders
        artists = draw(ax, outcome, account, number, of, shown, linewidth)
        artists |= _changes(ax, account, whole, of, shown)
        drawn |= {f"{name}{of}": artist for name, artist in artists.items()}
        last = len(account.lines) if whole else max(_numbers(account), default=0.0)
        furthest = max(furthest, last + 0.6)
    unit = outcome.mission.world.cost_unit
    ax.set_xlabel("orders so far" if whole else "order")
    ax.set_ylabel(f"{'total cost' if whole else 'cost of the order'} ({unit})")
    ax.set(xlim=(0 if whole else -0.6, furthest))
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    opened(ax)
    return drawn


def _numbers(account: Account) -> list[float]:
    """Return the number of each order (k,), counted from 0 over all vehicles."""
    return [float(order_number(order.id)) for order, _, _ in account.lines]


def _amounts(account: Account) -> tuple[Array, Array, Array]:
    """Return planned and real cost of each order (k,), and what was left after it; NaN while unknown."""
    entries = [battery for _, battery, _ in account.lines]
    columns = [[e.planned for e in entries], [e.spent for e in entries], [e.left for e in entries]]
    planned, spent, left = np.array(columns, dtype=float).reshape(3, -1)
    return planned, spent, left


def _changes(
    ax: Axes, account: Account, whole: bool, of: str, colour: str | Colour
) -> dict[str, Artist | BarContainer]:
    """Draw a line where each battery but the first begins, between two orders."""
    batteries = _batteries(account)
    first = 1 + np.flatnonzero(np.diff(batteries))
    if not len(first):
        return {}
    at = first if whole else np.array(_numbers(account))[first] - 0.5
    look: Look = {"color": shade(0.6) if not of else colour, "linewidth": line_width(1.0), "zorder": 1.5}
    where, label = ax.get_xaxis_transform(), f"battery changed{of}"
    return {"changes": ax.vlines(at, 0.0, 1.0, transform=where, linestyle="-.", label=label, **look)}


def _batteries(account: Account) -> NDArray[np.int64]:
    """Return the number of the battery of each order (k,), counted from 1."""
    return np.array([account.battery_of.get(str(order.id), 1) for order, _, _ in account.lines], dtype=int)


def _before(account: Account, left: Array, battery: float) -> Array:
    """Return what the batteries before that of each order (k,) spent in all."""
    number_of = _batteries(account)
    before = np.zeros(len(number_of))
    for number in range(1, account.batteries_used):
        known = left[(number_of == number) & np.isfinite(left)]
        before[number_of > number] += battery - known[-1] if len(known) else 0.0
    return before


def _totals(
    ax: Axes,
    outcome: Outcome,
    account: Account,
    number: int,
    of: str,
    colour: str | Colour,
    linewidth: float | None,
) -> dict[str, Artist | BarContainer]:
    planned, _, left = _amounts(account)
    vehicle, unit = outcome.mission.vehicles[number], outcome.mission.world.cost_unit
    settled, drawn = np.isfinite(left), dict[str, Artist | BarContainer]()
    orders = np.append(0, 1 + np.flatnonzero(settled))
    before = _before(account, left, vehicle.battery)
    spent = np.append(0.0, (before + vehicle.battery - left)[settled])
    known = np.append(0.0, np.cumsum(np.nan_to_num(planned)))
    wide = line_width(1.8) if linewidth is None else linewidth
    look: Look = {"color": shade(0.6) if not of else colour, "linewidth": 0.7 * wide, "linestyle": "--"}
    (drawn["planned"],) = ax.plot(known, label=f"planned{of}", zorder=2.4, **look)
    (drawn["spent"],) = ax.plot(orders, spent, color=colour, linewidth=wide, label=f"spent{of}", zorder=2.5)
    end: Look = {"color": shade(1.0) if not of else colour, "linewidth": line_width(1.0)}
    several = vehicle.batteries > 1
    label = f"battery{of}: {vehicle.battery:g} {unit}"
    label = f"{vehicle.batteries} batteries{of}: {vehicle.capacity:g} {unit}" if several else label
    drawn["battery"] = ax.axhline(vehicle.capacity, linestyle=":", label=label, **end)
    if vehicle.reserve > 0 and not several:
        band: Look = {"facecolor": "none", "edgecolor": shade(0.35), "hatch": "////", "linewidth": 0.0}
        bottom, label = vehicle.battery - vehicle.reserve, f"reserve{of}: {vehicle.reserve:g} {unit}"
        drawn["reserve"] = ax.axhspan(bottom, vehicle.battery, label=label, zorder=1.0, **band)
    full = vehicle.battery + (float(before[-1]) if len(before) else 0.0)
    at, total = len(planned), full - account.left
    label = f"left{of}: {account.left:.4g} {unit}"
    arrow: Look = {"marker": "_", "linestyle": "-", "label": label, "clip_on": False, "zorder": 2.6}
    (drawn["left"],) = ax.plot([at, at], [total, full], **arrow, **end)
    return drawn


def _orders(
    ax: Axes,
    outcome: Outcome,
    account: Account,
    number: int,
    of: str,
    colour: str | Colour,
    linewidth: float | None,
) -> dict[str, Artist | BarContainer]:
    planned, spent, _ = _amounts(account)
    vehicles = len(outcome.accounts)
    bar = (0.8 if len(planned) <= _MOST_GAPS else 1.0) / vehicles
    middle = np.array(_numbers(account)) + bar * (number - 0.5 * (vehicles - 1))
    bars = ax.bar(middle, np.nan_to_num(spent), bar, color=colour, linewidth=0, label=f"spent{of}")
    wide = line_width(1.2) if linewidth is None else linewidth
    look: Look = {"color": shade(1.0), "linewidth": wide, "label": "planned" if not number else ""}
    known = np.isfinite(planned)
    half = 0.5 * bar
    ticks = ax.hlines(planned[known], middle[known] - half, middle[known] + half, **look)
    return {"planned": ticks, "spent": bars}


def readings_picture(outcome: Outcome, width: str = "screen") -> Figure:
    """Draw the value of each reading in order; see `readings_panel`.

    Parameters
    ----------
    outcome : Outcome
        For example a `Result`.
    width : {"screen", "column", "page"}
        Size for a screen, or for one or both columns of a paper.
    """
    figure = new_figure(9, 5, width)
    readings_panel(figure.subplots(), outcome)
    return finish(figure, f"{headline(outcome)}\nreadings in order")


def readings_panel(
    ax: Axes, outcome: Outcome, *, color: str | None = None, linewidth: float | None = None
) -> dict[str, Artist]:
    """Draw the value of each reading into axes, in the order in which they were taken, with its noise.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    outcome : Outcome
        For example a `Result`.
    color : color, optional
        Of the bars that show the noise.
    linewidth : float, optional
        Of these bars, in points.

    Returns
    -------
    dict of str to Artist
        Those drawn of ``"readings"`` (or ``"readings at level k"``), ``"readings on the way"``,
        ``"left out"``, ``"noise"``, which reaches one standard deviation up and down, and the
        ``"threshold"`` or the ``"reported optimum"``.
    """
    variances = np.concatenate([np.empty(0), *(o.noise_variances for o in outcome.observations)])
    number, values, sd = np.arange(1, len(variances) + 1), outcome.values, np.sqrt(variances)
    look: Look = {"color": color or shade(0.5), "linewidth": linewidth or line_width(1.0), "zorder": 2.2}
    noise = ax.vlines(number, values - sd, values + sd, label="± one standard deviation of the noise", **look)
    drawn: dict[str, Artist] = {"noise": noise}
    drawn |= readings(ax, number.astype(float), values, outcome, numbered=False)
    if isinstance(outcome.answer, LevelSetAnswer):
        drawn["threshold"] = level(ax, outcome.answer.user_threshold)
    else:
        style: Look = {"color": shade(1.0), "linewidth": line_width(1.0), "linestyle": ":"}
        value = outcome.answer.reported_value
        drawn["reported optimum"] = ax.axhline(value, label="value at the reported optimum", **style)
    ax.set(xlabel="reading", ylabel=outcome.mission.world.quantity.label)
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    opened(ax)
    return drawn
