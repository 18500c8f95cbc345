"""What people tell a run that is under way: commands, and answers to its orders."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fieldbo._numerics.arrays import Array
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError, UnknownNameError, printable
from fieldbo.messages.names import Action
from fieldbo.messages.numbers import check_finite, number_in, row_in


@dataclass(frozen=True, eq=False)
class Command:
    """An operator's command to a run that is under way.

    Parameters
    ----------
    id : str
        Identifies the command: it is obeyed once.
    action : Action or str
    vehicle : int or None
        The vehicle that it concerns; None for all.
    order : str or None
        For ``skip``: the id of the order to skip.
    site : (d,) array or None
        For ``next``: where to sample next, in the domain's axes and units.
    areas : tuple of Obstacle
        For ``no-go``: polygons over the first two axes that vehicles must not enter from now on.
    left : float or None
        For ``battery``: what is left in it now, as a person says, in the cost unit.
    counted : float or None
        What the run assumes from then on: `left`, or the declared account if that is less.
    hold : str
        For ``pause`` and ``continue``: name of the automatic hold that gave it; empty for a person.
    by : str
        Who gave it, for people.
    refused : str
        Why it was not obeyed; empty if it was.
    after : int
        How many orders had been issued when the run took it in.
    """

    id: str
    action: Action
    vehicle: int | None = None
    order: str | None = None
    site: Array | None = None
    areas: tuple[Obstacle, ...] = ()
    left: float | None = None
    counted: float | None = None
    hold: str = ""
    by: str = ""
    refused: str = ""
    after: int = 0

    def __post_init__(self) -> None:
        where = f"command {printable(str(self.id))}"
        try:
            object.__setattr__(self, "action", Action(self.action))
        except ValueError:
            raise UnknownNameError.of("action", self.action, Action, where=where) from None
        if self.vehicle is not None and (not isinstance(self.vehicle, int) or self.vehicle < 0):
            raise InputError(f"vehicle = {self.vehicle!r}", expected="a number from 0", where=where)
        if self.site is not None:
            object.__setattr__(self, "site", row_in("site", self.site, where))
            check_finite("site", self.site, where)
        areas = (a if isinstance(a, Obstacle) else Obstacle(**a) for a in self.areas)
        object.__setattr__(self, "areas", tuple(areas))
        for name in ("left", "counted"):
            amount = getattr(self, name)
            if amount is None:
                continue
            number = isinstance(amount, int | float) and not isinstance(amount, bool)
            if not (number and 0 <= amount < math.inf):
                raise InputError(
                    f"{name} = {amount!r}", expected="a finite number of at least 0", where=where
                )
            object.__setattr__(self, name, float(amount))
        if self.order is not None:
            object.__setattr__(self, "order", printable(str(self.order)))
        for name in ("id", "hold", "by", "refused"):
            object.__setattr__(self, name, printable(str(getattr(self, name))))


@dataclass(frozen=True, eq=False)
class Answer:
    """What a person entered in a form about an order, or about the reading of one that is done.

    Parameters
    ----------
    id : str
        Identifies the answer: it counts once.
    order : str
        Id of the order.
    value : float or None
        The reading in the user's unit; NaN or None if it failed. Not used for the trip home.
    position : (d,) array or None
        Where it was taken; by default the query's site.
    cost : float or None
        What the order really took; by default what was expected.
    skipped : bool
        Whether the site can't be reached; nothing else counts then.
    corrects : bool
        Whether it corrects the reading of an order that is done; nothing but the value counts then.
    confirmed : bool
        Whether the person has confirmed numbers that were doubted.
    by : str
        Who entered it, for people.
    refused : str
        Why it was not accepted; empty if it was.
    """

    id: str
    order: str
    value: float | None = None
    position: Array | None = None
    cost: float | None = None
    skipped: bool = False
    corrects: bool = False
    confirmed: bool = False
    by: str = ""
    refused: str = ""

    def __post_init__(self) -> None:
        where = f"answer to {printable(str(self.order))}"
        value = math.nan if self.value is None else number_in("value", self.value, where)
        object.__setattr__(self, "value", value)
        if self.position is not None:
            object.__setattr__(self, "position", row_in("position", self.position, where))
            check_finite("position", self.position, where)
        if self.cost is not None:
            object.__setattr__(self, "cost", number_in("cost", self.cost, where))
            check_finite("cost", self.cost, where, least=0.0)
        for name in ("id", "order", "by", "refused"):
            object.__setattr__(self, name, printable(str(getattr(self, name))))
