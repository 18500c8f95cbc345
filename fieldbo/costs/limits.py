"""What may still be spent of one thing that runs out: the battery, or the time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fieldbo._numerics.arrays import Array, Mask


@dataclass(frozen=True)
class Limit:
    """What may still be spent of one thing that runs out: the battery, or the time.

    At declared prices: the reserve, orders that are out, and the margin by which moves may turn out dearer
    are taken off already. A query at a site can be paid for while what was spent before it, `going` there
    and `back` home are together at most `left`.

    Attributes
    ----------
    name : str
        ``"battery"``, in the world's cost unit, or ``"time"``, in seconds.
    left : float
    going : Callable
        ``going(positions, sites, controls=None, level=0)``, the full price of a query; shapes as for
        `CostModel.to`.
    back : Callable
        ``back(sites) -> (N,)``, the price of the way home; zeros without a home.
    """

    name: str
    left: float
    going: Callable[..., Array]
    back: Callable[[Array], Array]

    def after(self, position: Array, site: Array, level: int = 0, controls: Mask | None = None) -> float:
        """Return what could still be spent on queries after the next, in the limit's unit.

        Parameters
        ----------
        position, site : (d,) array
            Where it begins, and where it reads.
        level : int
            The sensor's setting.
        controls : (d,) bool array, optional
            The variables to be set; None: all.

        Returns
        -------
        float
            What is left when it is done and the way home is set aside; 0 where it can't be paid for.
        """
        taken = self.going(position, site[None], controls, level) + self.back(site[None])
        return max(0.0, self.left - float(taken[0]))
