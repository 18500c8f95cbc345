"""Wording and number formats shared by reports, notes, pictures and commands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.belief.question import Question
from fieldbo.domain.domain import Domain
from fieldbo.domain.places import place_text
from fieldbo.world.world import Quantity


def rounded(value: float, whole: float, digits: int = 3) -> str:
    """Format an amount to the precision of so many significant digits of its total.

    Examples
    --------
    >>> rounded(57.1234, 60), rounded(5997.3, 6000), rounded(0.0123, 0.5), rounded(5997.31, 60, digits=5)
    ('57.1', '5,997', '0.012', '5,997.310')
    """
    decimals = max(0, digits - 1 - math.floor(math.log10(whole))) if 0 < whole < math.inf else 0
    return f"{value:,.{decimals}f}"


def spent_of(spent: float, battery: float, unit: str, used: int = 1, batteries: int = 1) -> str:
    """Return what was spent of a battery, or from how many of several.

    Examples
    --------
    >>> spent_of(912.4, 1080.0, "s"), spent_of(2349.0, 1080.0, "s", used=3, batteries=3)
    ('912 of 1,080 s', '2,349 s from 3 of 3 batteries of 1,080 s')
    """
    if batteries == 1:
        return f"{rounded(spent, battery)} of {battery:,.10g} {unit}"
    return f"{rounded(spent, battery)} {unit} from {used} of {batteries} batteries of {battery:,.10g} {unit}"


def interval(ends: Sequence[float], digits: str = ".4g") -> str:
    """Return the two ends of an interval in brackets.

    Examples
    --------
    >>> interval([0.5, 1.25])
    '(0.5 to 1.25)'
    """
    low, high = ends
    return f"({low:{digits}} to {high:{digits}})"


def coordinates(domain: Domain, point: ArrayLike) -> str:
    """Return a point (d,) with the names and units of its axes or, with a CRS, in degrees.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> coordinates(Domain.box([Axis("along", "m", 0, 10), Axis("pH", "", 0, 14)], 8), [2.5, 7.0])
    'along 2.5 m, pH 7'
    """
    if domain.crs is not None:
        return place_text(domain, point)
    values = zip(domain.axes, np.asarray(point, dtype=float).tolist(), strict=True)
    return ", ".join(f"{a.name} {x:.4g} {a.unit}".rstrip() for a, x in values)


def extreme(question: Question) -> str:
    """Return ``"largest"`` or ``"smallest"``: the value that a question for an optimum looks for."""
    return "largest" if question.sign > 0 else "smallest"


def question_text(question: Question, quantity: Quantity) -> str:
    """Return a question in plain English.

    Examples
    --------
    >>> from fieldbo.belief.question import LevelSet, Optimum, ShareOfMaximum
    >>> question_text(LevelSet(1.5), Quantity("chlorophyll", "mg m-3"))
    'where is chlorophyll at or above 1.5 mg m-3?'
    >>> question_text(LevelSet(4, side="below"), Quantity("oxygen", "mg l-1"))
    'where is oxygen at or below 4 mg l-1?'
    >>> question_text(ShareOfMaximum(0.8), Quantity("chlorophyll"))
    'where is chlorophyll at or above 80% of its maximum?'
    >>> question_text(Optimum("minimise"), Quantity("cost"))
    'where is cost smallest?'
    """
    return question.text(quantity.name, quantity.amount)


def on_one_class(above: bool, threshold: float, values: Array, limit: float | None) -> str:
    """Return the note that every site is classified as above, or as below, the threshold.

    Parameters
    ----------
    above : bool
    threshold : float
    values : (n,) array
        The readings, in the unit of the threshold.
    limit : float, optional
        Limit of detection.

    Examples
    --------
    >>> print(on_one_class(False, 5.0, np.array([1.0, 6.0]), None))
    every site is classified as below the threshold, although 1 of 2 readings reaches it
    """
    most = _at_most(values, limit)
    censored = np.zeros(len(most), dtype=bool) if limit is None else most <= limit
    beyond = most < threshold if above else (most >= threshold) & ~censored
    text = f"every site is classified as {'above' if above else 'below'} the threshold"
    if count := np.count_nonzero(beyond):
        verb = (
            ("lies below" if count == 1 else "lie below") if above else "reaches" if count == 1 else "reach"
        )
        return f"{text}, although {count} of {len(most)} readings {verb} it"
    if count := np.count_nonzero(censored & (most >= threshold)):
        which = f"{count} of {len(most)} readings {'is' if count == 1 else 'are'}"
        return f"{text}, but {which} at or below the limit of detection, which does not tell the side"
    reached = "fallen below" if above else "reached"
    return f"{text}. No reading has {reached} it, so a patch between the readings may have been missed"


def on_one_side(threshold: float, values: Array, limit: float | None, quantity: Quantity) -> Iterator[str]:
    """Yield a note if the threshold lies above all readings (n,), or below all; none otherwise."""
    most = _at_most(values, limit)
    if len(most) and most.max() < threshold:
        side = "above"
    elif len(most) and most.min() > (threshold if limit is None else max(threshold, limit)):
        side = "below"
    else:
        return
    readings = range_of(values, limit, quantity)
    yield f"the threshold {quantity.number(threshold)} lies {side} all readings, {readings}"


def detected(value: float, limit: float | None, quantity: Quantity) -> str:
    """Return an estimate with its unit; at or below the limit of detection, that limit.

    Examples
    --------
    >>> crack = Quantity("crack", "mm")
    >>> detected(-33.0, 2.0, crack), detected(3.0, 2.0, crack), detected(-33.0, None, crack)
    ('at most 2 mm', '3 mm', '-33 mm')
    """
    return quantity.amount(value) if limit is None or value > limit else f"at most {quantity.amount(limit)}"


def range_of(values: Array, limit: float | None, quantity: Quantity) -> str:
    """Return the range of readings (n,) in words.

    Examples
    --------
    >>> zinc = Quantity("zinc", "ug/L")
    >>> range_of(np.array([0.1, 2.3]), None, zinc), range_of(np.array([0.1, 2.3]), 0.1, zinc)
    ('0.1 to 2.3 ug/L', 'at most 0.1 to 2.3 ug/L')
    >>> range_of(np.array([0.1, 0.1]), 0.1, zinc), range_of(np.array([0.1]), None, zinc)
    ('at most 0.1 ug/L', '0.1 ug/L')
    """
    most = _at_most(values, limit)
    low, high = float(most.min()), float(most.max())
    censored = limit is not None and low <= limit
    least = "" if high == low else f"{quantity.number(low)} to "
    return f"{'at most ' if censored else ''}{least}{quantity.amount(high)}"


def _at_most(values: Array, limit: float | None) -> Array:
    """Return what the finite ones of the values read can be at most."""
    finite = values[np.isfinite(values)]
    return finite if limit is None else np.maximum(finite, limit)


def short(value: float) -> str:
    """Return an amount to three digits, from 100 on as a whole number.

    Examples
    --------
    >>> short(0.01234), short(12.0), short(12345.6)
    ('0.0123', '12', '12,346')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def number(value: Any) -> str:
    """Return a number to four digits, from 1000 on as a whole number; a dash for None; text unchanged.

    Examples
    --------
    >>> number(0.123456), number(12345.6), number(None), number("inf")
    ('0.1235', '12,346', '-', 'inf')
    """
    if value is None:
        return "-"
    if isinstance(value, bool | str):
        return str(value).lower()
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def place(domain: Domain, site: Array) -> str:
    """Return a site (d,) with the names and units of its axes, or in degrees; NaN marks a free variable.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> place(Domain.box([Axis("x", "", 0, 1), Axis("t", "K", 0, 9)], 8), np.array([np.nan, 4.0]))
    'x free, t 4 K'
    """
    if domain.crs is not None:
        return place_text(domain, site)
    return ", ".join(
        f"{axis.name} free" if math.isnan(x) else f"{axis.name} {number(x)} {axis.unit}".rstrip()
        for axis, x in zip(domain.axes, site.tolist(), strict=True)
    )


def aligned(rows: Sequence[Sequence[str]], *, right: bool = False) -> list[str]:
    """Return rows of text as lines with aligned columns.

    Examples
    --------
    >>> aligned([["policy", "F1"], ["tour", "0.9"]])
    ['policy  F1', 'tour    0.9']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    pad = str.rjust if right else str.ljust
    return ["  ".join(map(pad, row, widths)).rstrip() for row in rows]
