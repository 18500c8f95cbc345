"""What a mission is to answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldbo.errors import InputError


@dataclass(frozen=True)
class LevelSet:
    """The set of sites where the quantity is at or above a threshold.

    Parameters
    ----------
    threshold : float
        In the unit of the values.
    """

    threshold: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.threshold):
            raise InputError(
                f"threshold {self.threshold}",
                expected="a finite number, in the unit of the values",
                where="question.threshold",
            )


Question = LevelSet
