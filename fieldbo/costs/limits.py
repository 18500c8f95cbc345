"""What a vehicle may still spend of a limited supply: the battery, or time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from fieldbo._numerics.arrays import Array, Mask


class Supply(NamedTuple):
    """What all vehicles, with all their batteries, have of a limited supply: `left`, and `in_all` at first.

    What they spent counts as it was, and what is left without reserve and margin.
    """

    left: float
    in_all: float

    @property
    def share(self) -> float:
        """Share that is left.

        Examples
        --------
        >>> Supply(left=10.0, in_all=40.0).share
        0.25
        """
        return self.left / self.in_all if self.in_all > 0 else 0.0


@dataclass(frozen=True)
class Limit:
    """What a vehicle may still spend of a limited supply: the battery, or time.

    Amounts are declared costs: the reserve, outstanding orders and the margin for moves that turn out more
    expensive are already subtracted. A query is affordable if the earlier queries, the trip there (`going`)
    and the trip home (`back`) together cost at most `left`.

    Attributes
    ----------
    name : str
        ``"battery"``, in the world's cost unit, or ``"time"``, in seconds.
    left : float
        What is left to spend.
    going : Callable
        ``going(positions, sites, controls=None, level=0)``, the full cost of a query; shapes as in
        `CostModel.to`.
    back : Callable
        ``back(sites) -> (N,)``, the cost of the trip home; zeros without a home.
    """

    name: str
    left: float
    going: Callable[..., Array]
    back: Callable[[Array], Array]

    def after(self, position: Array, site: Array, level: int = 0, controls: Mask | None = None) -> float:
        """Return what would be left for further queries after the next one.

        Parameters
        ----------
        position, site : (d,) array
            Where the query starts, and where it samples.
        level : int
            The sensor's level.
        controls : (d,) bool array, optional
            The controlled variables; None means all.

        Returns
        -------
        float
            What is left after the query, with the trip home set aside; 0 if it is not affordable.
        """
        spent = self.going(position, site[None], controls, level) + self.back(site[None])
        return max(0.0, self.left - float(spent[0]))
