"""Lines of scores against cost, of one run or of several in the same axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from fieldbo._numerics.arrays import Array
from fieldbo.belief.confidence import Interval
from fieldbo.errors import UnknownNameError
from fieldbo.results.answers import LevelSetAnswer
from fieldbo.results.cell_runs import CountedRuns
from fieldbo.results.outcome import Outcome
from fieldbo.results.plot.figures import floor_of, plain_log
from fieldbo.results.plot.style import BLUE, GREEN, ORANGE, RED, Look, hue, line_width, shade

HELD: Look = {"where": "post", "clip_on": False}
"""Look of a score: it is valid until the next order is settled."""


class ScoreLine(NamedTuple):
    """How a score is drawn; the colour is one of `SERIES`, or None for a grey."""

    label: str
    colour: str | None
    width: float
    style: str = "-"
    zorder: float = 2.0


_CLASSIFIED = {
    "f1": ScoreLine("F1", BLUE, 2.2, zorder=3.0),
    "precision": ScoreLine("precision", GREEN, 0.9),
    "recall": ScoreLine("recall", ORANGE, 0.9),
    "expected_f1": ScoreLine("expected F1", RED, 1.5, "--"),
    "unclassified": ScoreLine("fraction unclassified", None, 0.9),
}
_REGRET = {"regret": ScoreLine("regret", BLUE, 2.2)}
_REGRETS_OF_A_CELL = {  # widths that show both lines where they coincide
    "regret": ScoreLine("reported optimum", BLUE, 2.8),
    "best_regret": ScoreLine("best sample", GREEN, 1.4),
    "simple_regret": ScoreLine("best play, in expectation", GREEN, 1.4),
}
_REPORTED = {"reported_value": ScoreLine("reported value", BLUE, 2.2)}
_REPORTED_BY_A_CELL = {"reported_value": ScoreLine("reported value", BLUE, 2.0)}
_NEED_THE_TRUTH = ("f1", "precision", "recall")


def score_lines(outcome: Outcome) -> dict[str, ScoreLine]:
    """Return the scores that a run has, by the name of their column in ``curve.csv``."""
    live = outcome.truth is None
    if isinstance(outcome.answer, LevelSetAnswer):
        return {k: v for k, v in _CLASSIFIED.items() if not (live and k in _NEED_THE_TRUTH)}
    cell = isinstance(outcome.cell_runs, CountedRuns)
    if live:
        return _REPORTED_BY_A_CELL if cell else _REPORTED
    kept = ("regret", *outcome.cell_runs.optimum_columns)
    return {k: v for k, v in _REGRETS_OF_A_CELL.items() if k in kept} if cell else _REGRET


def column_of(outcome: Outcome, name: str) -> Array:
    """Return a column (k,) of the curve."""
    return np.array([getattr(step, name) for step in outcome.curve], dtype=float)


def draw_scores(
    ax: Axes,
    outcome: Outcome,
    scores: Sequence[str] | None = None,
    *,
    label: str | None = None,
    color: str | None = None,
    linewidth: float | None = None,
) -> dict[str, Artist]:
    """Draw scores against cost, and set up the vertical axis; see `curve_panel`."""
    lines = score_lines(outcome)
    names = list(lines) if scores is None else [scores] if isinstance(scores, str) else list(scores)
    for name in names:
        if name not in lines:
            raise UnknownNameError.of("score", name, lines, where="scores")
    others = ax.has_data()
    regrets, floor = [column_of(outcome, name) for name in names if name.endswith("regret")], -np.inf
    if regrets:
        floor = floor_of(np.concatenate(regrets))
    cost = column_of(outcome, "cost")
    drawn, intervals = dict[str, Line2D](), dict[str, Artist]()
    for name in names:
        line, values = lines[name], column_of(outcome, name)
        text = line.label if label is None else label if len(names) == 1 else f"{label}: {line.label}"
        text += " (zero: at the lower edge)" if (values < floor).any() else ""
        look: Look = {"color": color or (shade(0.55) if line.colour is None else hue(line.colour))}
        look |= {"linewidth": line_width(line.width) if linewidth is None else linewidth}
        look |= {"linestyle": line.style, "zorder": line.zorder, "label": text}
        (drawn[name],) = ax.step(cost, np.maximum(values, floor), **look, **HELD)
    for name in names:
        if (ends := _final_interval(outcome, name)) is not None and outcome.curve:
            look = {"color": drawn[name].get_color(), "linewidth": line_width(3.0), "alpha": 0.6}
            of = lines[name].label if label is None else f"{label}: {lines[name].label}"
            look |= {"label": f"{of}: final 90% interval", "clip_on": False, "zorder": 3.5}
            intervals[f"{name} interval"] = ax.vlines(cost[-1], ends.low, ends.high, **look)
    _upright(ax, outcome, floor if regrets else None, others=others)
    return {**drawn, **intervals}


def _final_interval(outcome: Outcome, name: str) -> Interval | None:
    """Return the 90% interval at the end of a curve, if it has one: earlier ones are not recorded."""
    if isinstance(outcome.answer, LevelSetAnswer):
        return outcome.answer.confidence.f1 if name == "expected_f1" else None
    cell = isinstance(outcome.cell_runs, CountedRuns)
    return outcome.answer.confidence.value if name == "reported_value" and not cell else None


def _upright(ax: Axes, outcome: Outcome, floor: float | None, *, others: bool) -> None:
    """Set up the vertical axis, so that what is there already stays visible."""
    quantity = outcome.mission.world.quantity
    if isinstance(outcome.answer, LevelSetAnswer):
        ax.set(ylim=(0, 1), ylabel="score or fraction of sites")
    elif floor is None:
        ax.set_ylabel(quantity.label)
    else:
        lowest = min(floor, ax.get_ylim()[0]) if others else floor
        plain_log(ax)
        ax.set_ylabel(f"regret of {quantity.label}")
        ax.set_ylim(bottom=lowest)
