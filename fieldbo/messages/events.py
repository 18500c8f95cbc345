"""Events: what happened, and what people tell a run that is under way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from fieldbo._numerics.arrays import Array
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError, UnknownNameError, printable
from fieldbo.messages.names import Action
from fieldbo.messages.numbers import check_finite, number_in, numbers_in, row_in, sites_in


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


LONGEST_CHANNEL = 100
"""Most characters of the name of a telemetry channel."""


@dataclass(frozen=True, eq=False)
class Observation:
    """What really happened when an order was carried out.

    Positions are taken as reported: a reading outside the domain, or a free variable beyond the ends of its
    axis, is modelled where it was. Only queries stay within the domain; a run notes how many readings lie
    beyond.

    Parameters
    ----------
    order : str
        Id of the order.
    sites : (k, d) array
        Where readings were really taken, in the domain or not; the last one is at or nearest to the target.
    values, noise_variances, times_s : (k,) arrays
        The readings in the user's unit (NaN or None for a failed one), their noise variances, and their times
        in seconds since the start of the run.
    position : (d,) array
        Present position of the vehicle.
    cost : float
        Real cost of this part, in the world's cost unit.
    part : int
        Number of this part: a long leg may report in parts. Each (order, part) counts once.
    last : bool
        Whether this part settles the order.
    complete : bool
        False if the leg was cut short.
    channels : mapping of str to (k,) array, optional
        Other quantities read at the same sites; recorded, not modelled.
    time_s : float, optional
        Time at which the vehicle was at `position`, in seconds since the start; by default that of the last
        reading. The trip home has no reading.
    estimated : bool
        Whether `cost` is an estimate because the vehicle did not report it: what was really spent may be
        more, up to the margin.
    doubts : tuple of str
        What the vehicle reported that was not believed.
    """

    order: str
    sites: Array
    values: Array
    noise_variances: Array
    times_s: Array
    position: Array
    cost: float
    part: int = 0
    last: bool = True
    complete: bool = True
    channels: Mapping[str, Array] | None = None
    time_s: float | None = None
    estimated: bool = False
    doubts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        where = f"observation of {self.order}"
        object.__setattr__(self, "doubts", tuple(self.doubts))
        settled: dict[str, Any] = {
            "position": row_in("position", self.position, where),
            "sites": numbers_in("sites", self.sites, where),
            "values": row_in("values", self.values, where, gaps=True),
            "noise_variances": row_in("noise_variances", self.noise_variances, where),
            "times_s": row_in("times_s", self.times_s, where),
            "cost": number_in("cost", self.cost, where),
        }
        if self.time_s is not None:
            settled["time_s"] = number_in("time_s", self.time_s, where)
        if self.channels is not None:
            settled["channels"] = {
                printable(name): row_in(f"channels[{name!r}]", values, where, gaps=True)
                for name, values in self.channels.items()
            }
        settled["sites"] = sites_in(settled["sites"], len(settled["position"]), where)
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        self._check(where)

    def _check(self, where: str) -> None:
        """Raise an `InputError` unless each reading has one of each, and all but the values are finite."""
        readings = {name: getattr(self, name) for name in ("values", "noise_variances", "times_s")}
        readings |= {f"channels[{name!r}]": values for name, values in (self.channels or {}).items()}
        for name, numbers in readings.items():
            if len(numbers) != len(self.sites):
                raise InputError(
                    f"{name} has {len(numbers)} entries",
                    expected=f"{len(self.sites)}, one for each reading",
                    where=where,
                )
        for name in ("sites", "times_s", "position"):
            check_finite(name, getattr(self, name), where)
        for name in ("noise_variances", "cost"):
            check_finite(name, getattr(self, name), where, least=0.0)
        if self.time_s is not None:
            check_finite("time_s", self.time_s, where)


@dataclass(frozen=True)
class Rejected:
    """The order was not carried out: nothing moved, and nothing was spent."""

    order: str
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", printable(self.reason))


@dataclass(frozen=True)
class Lost:
    """The outcome of the order is unknown; its declared cost stays reserved.

    Parameters
    ----------
    order : str
    reason : str
    sent : bool
        False if the order never left for the vehicle, which has spent nothing on it.
    time_s : float, optional
        When it was given up, in seconds since the start of the run: where the vehicle was seen before says
        little of where it is. By default, the time of the event before.
    """

    order: str
    reason: str
    sent: bool = True
    time_s: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", printable(self.reason))
        if self.time_s is not None:
            where = f"loss of {self.order}"
            object.__setattr__(self, "time_s", number_in("time_s", self.time_s, where))
            check_finite("time_s", self.time_s, where)


@dataclass(frozen=True, eq=False)
class Telemetry:
    """A vehicle's position and what is left in its battery.

    Parameters
    ----------
    vehicle : int
    position : (d,) array
    remaining : float or None
        What is left in the battery, in the world's cost unit; None or NaN if unknown.
    time_s : float
        Seconds since the start of the run.
    accuracy : float
        Accuracy of `remaining`: a ledger that agrees with it to that accuracy stays as it is.
    located_s : float, optional
        When the vehicle was at `position`, in seconds since the start; by default `time_s`. A vehicle that is
        heard from need not know where it is.
    measured_s : float, optional
        When `remaining` was measured at the latest, in seconds since the start; by default `time_s`.
    pack : float, optional
        What is left in the whole battery, of which the mission may use only a part.
    doubts : tuple of str
        What the vehicle reported that was not believed.
    channels : mapping of str to float, optional
        Other quantities that were heard since the telemetry before, such as the wind: the latest value of
        each. A mission's holds watch them.
    at_least : float
        The fraction of declared costs that stays charged, however much remains. By default 1: the battery's
        gauge may be stuck.
    """

    vehicle: int
    position: Array
    remaining: float | None
    time_s: float
    accuracy: float = 0.0
    located_s: float | None = None
    measured_s: float | None = None
    pack: float | None = None
    doubts: tuple[str, ...] = ()
    channels: Mapping[str, float] | None = None
    at_least: float = 1.0

    def __post_init__(self) -> None:
        where = f"telemetry of vehicle {self.vehicle}"
        object.__setattr__(self, "position", row_in("position", self.position, where))
        object.__setattr__(self, "doubts", tuple(self.doubts))
        for name in ("remaining", "time_s", "accuracy", "located_s", "measured_s", "pack", "at_least"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, number_in(name, value, where))
        if self.remaining is not None and math.isnan(self.remaining):
            object.__setattr__(self, "remaining", None)
        for name, least in (("position", -math.inf), ("time_s", -math.inf), ("accuracy", 0.0)):
            check_finite(name, getattr(self, name), where, least)
        for name in ("remaining", "located_s", "measured_s", "pack"):
            if (value := getattr(self, name)) is not None:
                check_finite(name, value, where)
        if not 0.0 <= self.at_least <= 1.0:
            raise InputError(
                f"at_least = {self.at_least:g}", expected="a fraction between 0 and 1", where=where
            )
        if self.channels is not None:
            channels = {
                printable(str(name))[:LONGEST_CHANNEL]: number_in(f"channels[{name!r}]", value, where)
                for name, value in self.channels.items()
            }
            for name, value in channels.items():
                check_finite(f"channels[{name!r}]", value, where)
            object.__setattr__(self, "channels", channels or None)


@dataclass(frozen=True, eq=False)
class Correction:
    """Readings that were reported wrong, and what they really were.

    The record keeps both. From then on the belief is the one that the right readings would have given;
    costs, times and places stay.

    Parameters
    ----------
    order : str
        Id of the order.
    part : int
        Part of its observation.
    values : (k,) array
        All readings of that part, in the user's unit; NaN or None for one that failed or is withdrawn.
    """

    order: str
    part: int
    values: Array

    def __post_init__(self) -> None:
        where = f"correction of {self.order}"
        object.__setattr__(self, "values", row_in("values", self.values, where, gaps=True))
        if not len(self.values):
            raise InputError("values has 0 entries", expected="at least one reading", where=where)


@dataclass(frozen=True)
class Fitted:
    """The model was fitted.

    Parameters
    ----------
    hyperparameters : plain mapping
        Later beliefs use them.
    weighted : plain mapping, optional
        Hyperparameters over which later results average. Without it, the ones before stay, if any.
    """

    hyperparameters: Mapping[str, Any]
    weighted: Mapping[str, Any] | None = None


Event = Observation | Rejected | Lost | Telemetry | Correction | Fitted | Command | Answer


def settles(event: Event) -> TypeGuard[Observation | Rejected | Lost]:
    """Return True if an event is the last one of its order."""
    return isinstance(event, Rejected | Lost) or (isinstance(event, Observation) and event.last)
