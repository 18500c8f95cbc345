"""The question that a mission answers: a level set or an optimum.

In model units larger is always better: a question that minimises, or that asks for the set below a threshold,
has ``sign = -1``, which the model's value scale absorbs.

Each question brings its own words: its `text`, the name of its `score` and what a `good_score` is, and what
is `missable` where nobody has looked. `known_threshold` says whether its threshold is known before any
reading, and `least_size` how wide the smallest patch that matters is, if that is stated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, PositiveFloat

from fieldbo.belief.value_scale import ValueScale
from fieldbo.errors import InputError
from fieldbo.validation import settings

Side = Literal["above", "below"]
"""The side of its threshold on which a set lies; the threshold belongs to the set."""

Amount = Callable[[float], str]
"""Writes a value with its unit."""


def one_threshold(given: Any) -> Any:
    """Return a threshold as it is.

    Raises
    ------
    InputError
        There are several.
    """
    if isinstance(given, list | tuple | np.ndarray):
        raise InputError(
            f"threshold = {np.asarray(given, dtype=object).tolist()}",
            expected="one threshold: a mission maps a single level set",
            where="question.threshold",
            fix="run one mission per threshold, for example with --set question.threshold=2",
        )
    return given


@settings("question")
class LevelSet:
    """The set of sites where the quantity is at or above a threshold, or at or below it.

    Examples
    --------
    >>> LevelSet(4.0, side="below").sign
    -1.0
    """

    threshold: Annotated[float, BeforeValidator(one_threshold)]
    """In the unit of the values."""
    side: Side = "above"
    """Whether the set lies above or below the threshold. The threshold belongs to the set."""
    least_size: ClassVar[float | None] = None
    score: ClassVar[str] = "F1"
    good_score: ClassVar[str] = "F1 is high"
    missable: ClassVar[str] = "a patch on the other side of the threshold"
    known_threshold: ClassVar[bool] = True

    @property
    def sign(self) -> float:
        """1 for a set above its threshold, -1 for one below."""
        return 1.0 if self.side == "above" else -1.0

    @property
    def centre(self) -> float | None:
        """Prior mean before the first reading, in the unit of the values."""
        return self.threshold

    def text(self, quantity: str, amount: Amount) -> str:
        """Return the question in plain English.

        Parameters
        ----------
        quantity : str
            What is measured.
        amount : Callable
            Writes a value with its unit.

        Examples
        --------
        >>> LevelSet(4, side="below").text("oxygen", "{:g} mg l-1".format)
        'where is oxygen at or below 4 mg l-1?'
        """
        return f"where is {quantity} at or {self.side} {amount(self.threshold)}?"

    def level(self, maximum: float, scale: ValueScale | None = None) -> float:
        """Return the threshold if the field's maximum were `maximum`; here it does not depend on it.

        Parameters
        ----------
        maximum : float
            In model units if a scale is given, otherwise in the user's.
        scale : ValueScale, optional
            Converts the threshold to model units.
        """
        return self.threshold if scale is None else float(scale.to_model([self.threshold])[0])


@dataclass(frozen=True)
class ShareOfMaximum:
    """The set of sites where the quantity is at or above a fraction of its (unknown) maximum.

    Bogunovic et al. 2016, appendix A.

    Parameters
    ----------
    share : float
        Fraction of the maximum, between 0 and 1.

    Examples
    --------
    >>> ShareOfMaximum(0.8).level(10.0)
    8.0
    """

    share: float
    side: ClassVar[Side] = "above"
    sign: ClassVar[float] = 1.0
    centre: ClassVar[float | None] = None
    least_size: ClassVar[float | None] = None
    score: ClassVar[str] = "F1"
    good_score: ClassVar[str] = "F1 is high"
    missable: ClassVar[str] = "a larger value"
    known_threshold: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InputError(  # a file calls it of_maximum
                f"of_maximum = {self.share}",
                expected="a fraction of the maximum, above 0 and below 1",
                where="question.threshold.of_maximum",
            )

    def text(self, quantity: str, amount: Amount) -> str:
        """Return the question in plain English, as for a `LevelSet`."""
        return f"where is {quantity} at or above {100 * self.share:g}% of its maximum?"

    def level(self, maximum: float, scale: ValueScale | None = None) -> float:
        """Return the threshold if the field's maximum were `maximum`; units as for a `LevelSet`."""
        if scale is None:
            return self.share * maximum
        if scale.transform == "log":  # without leaving the log, in which no maximum is too small
            return maximum + float(np.log(self.share)) / scale.scale
        return float(scale.to_model([self.share * float(scale.to_user([maximum])[0])])[0])


@settings("question")
class Optimum:
    """The site where the quantity is largest, or smallest."""

    goal: Literal["maximise", "minimise"] = "maximise"
    """Whether to seek the largest or the smallest value."""
    least_size: PositiveFloat | None = None
    """Width of the smallest patch that matters, in the unit of the axes. Default: that of the cells of a
    sweep which takes the whole battery."""
    centre: ClassVar[float | None] = None
    score: ClassVar[str] = "regret"
    good_score: ClassVar[str] = "regret is small"
    known_threshold: ClassVar[bool] = False

    @property
    def sign(self) -> float:
        """1 to maximise, -1 to minimise."""
        return 1.0 if self.goal == "maximise" else -1.0

    @property
    def missable(self) -> str:
        """What may be hidden where nobody has looked, in words."""
        return "a smaller value" if self.sign < 0 else "a larger value"

    def text(self, quantity: str, amount: Amount) -> str:
        """Return the question in plain English, as for a `LevelSet`."""
        return f"where is {quantity} {'smallest' if self.sign < 0 else 'largest'}?"

    def level(self, maximum: float, scale: ValueScale | None = None) -> float:
        """Return NaN: an optimum has no threshold."""
        return float("nan")


Question = LevelSet | ShareOfMaximum | Optimum

ThresholdIf = Callable[[float], float]
"""From the maximum of a field to its threshold, both in model units."""


def threshold_if(question: Question, scale: ValueScale) -> ThresholdIf | None:
    """Return how the threshold follows from the field's maximum; None if it does not depend on it."""
    return partial(question.level, scale=scale) if isinstance(question, ShareOfMaximum) else None
