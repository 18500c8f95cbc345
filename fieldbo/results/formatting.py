"""Wording and number formats shared by reports, notes, pictures and commands."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fieldbo.belief.question import Optimum, Question, ShareOfMaximum
from fieldbo.domain.axes import place_text
from fieldbo.domain.domain import Domain
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
    >>> from fieldbo.belief.question import LevelSet
    >>> question_text(LevelSet(1.5), Quantity("chlorophyll", "mg m-3"))
    'where is chlorophyll at or above 1.5 mg m-3?'
    >>> question_text(LevelSet(4, side="below"), Quantity("oxygen", "mg l-1"))
    'where is oxygen at or below 4 mg l-1?'
    >>> question_text(ShareOfMaximum(0.8), Quantity("chlorophyll"))
    'where is chlorophyll at or above 80% of its maximum?'
    >>> question_text(Optimum("minimise"), Quantity("cost"))
    'where is cost smallest?'
    """
    if isinstance(question, Optimum):
        return f"where is {quantity.name} {extreme(question)}?"
    if isinstance(question, ShareOfMaximum):
        return f"where is {quantity.name} at or above {100 * question.share:g}% of its maximum?"
    return f"where is {quantity.name} at or {question.side} {quantity.amount(question.threshold)}?"
