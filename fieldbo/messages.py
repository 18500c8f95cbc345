"""Messages between an agent and its vehicles: orders one way, events the other.

Messages are frozen values. Records and links contain their plain form (:func:`to_plain`, :func:`from_plain`)
of strings, numbers and lists, with None for NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, TypeGuard

import numpy as np
import shapely
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array, Mask, frozen_array
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError, UnknownNameError, printable

LONGEST_CHANNEL = 100
"""Most characters of the name of a telemetry channel."""


class EndReason(StrEnum):
    """Why a run ended: an answered question is distinct from a spent battery."""

    QUESTION_ANSWERED = "question answered"
    BATTERY_SPENT = "battery spent"
    STEP_LIMIT = "step limit"
    STOPPED_BY_POLICY = "stopped by policy"
    STOPPED_BY_OPERATOR = "stopped by operator"
    VEHICLE_LOST = "vehicle lost"


def _freeze(value: object, name: str, array: ArrayLike, dtype: type = float) -> None:
    object.__setattr__(value, name, frozen_array(array, dtype))


def _numbers(name: str, given: object, where: str, *, gaps: bool = False) -> Array:
    """Return `given` as a read-only copy of numbers.

    Parameters
    ----------
    name : str
    given : array_like
        Numbers of any type, including Decimal and Fraction, but not text such as "1".
    where : str
        The place that errors name.
    gaps : bool
        Whether None stands for a missing number, NaN.

    Raises
    ------
    InputError
        It contains anything else.
    """
    try:
        numbers = np.array(given, order="C")
        kind = numbers.dtype.kind
        if kind not in "biufO" and numbers.size:
            raise TypeError
        if kind == "O" and any(
            isinstance(item, str | bytes | np.ndarray) or (item is None and not gaps) for item in numbers.flat
        ):
            raise TypeError
        numbers = numbers.astype(float, copy=False)
    except (TypeError, ValueError, OverflowError):
        shown = given.tolist() if isinstance(given, np.ndarray) else given
        raise InputError(f"{name} = {shown!r}", expected="numbers", where=where) from None
    numbers.setflags(write=False)
    return numbers


def _row(name: str, given: object, where: str, *, gaps: bool = False) -> Array:
    """Return `given` as (k,) numbers; other axes of length 1 are dropped."""
    numbers = _numbers(name, given, where, gaps=gaps)
    if numbers.ndim > 1 and numbers.size not in (0, max(numbers.shape)):
        raise InputError(
            f"{name} is an array of {_by(numbers)} numbers",
            expected="numbers in one row",
            where=where,
            fix="pass a flat list",
        )
    return numbers if numbers.ndim == 1 else numbers.ravel()


def _number(name: str, given: object, where: str) -> float:
    """Return `given` as a float; it may be an array of a single number."""
    if isinstance(given, float):
        return float(given)
    numbers = _numbers(name, given, where)
    if numbers.size != 1:
        raise InputError(f"{name} = {numbers.tolist()}", expected="a number", where=where)
    return float(numbers.item())


def _check_finite(name: str, given: Array | float, where: str, least: float = -math.inf) -> None:
    """Raise an `InputError` unless all numbers are finite and at least `least`."""
    numbers = np.asarray(given)
    if not (np.isfinite(numbers) & (numbers >= least)).all():
        raise InputError(
            f"{name} = {numbers.tolist()}",
            expected="finite numbers" + (f" of at least {least:g}" if least > -math.inf else ""),
            where=where,
        )


def _route(given: object, d: int, where: str) -> Array:
    """Return the points (k, d) of a route; (0, d) if it is straight."""
    points = _numbers("route", given, where)
    if points.size == 0:
        points = np.empty((0, d))
        points.setflags(write=False)
    elif points.ndim != 2 or len(points) < 2 or (d and points.shape[1] != d):
        raise InputError(
            f"route is an array of {_by(points)} numbers",
            expected=f"at least two points of {d} coordinates, or none",
            where=where,
        )
    _check_finite("route", points, where)
    return points


def _by(numbers: Array) -> str:
    """Return the shape of an array: ``2 x 3``."""
    return " x ".join(map(str, numbers.shape)) or "1"


@dataclass(frozen=True, eq=False)
class Query:
    """Go to `site` and sample there.

    Parameters
    ----------
    site : (d,) array
        In the domain's axes and units; NaN where a variable is left free.
    controls : (d,) bool array, optional
        The variables to set; None sets all of them.
    level : int
        The sensor's level, counted from 0.
    vehicle : int
        Number of the vehicle.
    expected_cost : float, optional
        Cost that the agent expects, in the world's cost unit.
    id : str, optional
        ``<run>/<n>``, assigned by the agent; n counts orders.
    expected_time_s : float, optional
        Time at which the agent expects it done, in seconds since the start.
    route : (k, d) array, optional
        The points to pass, in straight legs, from where the vehicle will be to the site, both included, as
        priced. Empty if the route is straight.
    """

    site: Array
    controls: Mask | None = None
    level: int = 0
    vehicle: int = 0
    expected_cost: float | None = None
    id: str | None = None
    expected_time_s: float | None = None
    route: Array = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    def __post_init__(self) -> None:
        where = "a query" if self.id is None else f"query {self.id}"
        object.__setattr__(self, "site", _row("site", self.site, where))
        if self.controls is not None:
            _freeze(self, "controls", np.ravel(self.controls), bool)
            if len(self.controls) != len(self.site):
                raise InputError(
                    f"controls has {len(self.controls)} entries",
                    expected=f"{len(self.site)}, one for each variable",
                    where=where,
                )
            _freeze(self, "site", np.where(self.controls, self.site, np.nan))
        object.__setattr__(self, "route", _route(self.route, len(self.site), where))

    def observed(
        self,
        value: float,
        *,
        noise_variance: float,
        time_s: float | None = None,
        cost: float | None = None,
        position: ArrayLike | None = None,
    ) -> Observation:
        """Return the observation of one reading that answers this query.

        Parameters
        ----------
        value : float
            The reading in the user's unit; NaN or None if it failed.
        noise_variance : float
            Variance of the reading's noise.
        time_s : float, optional
            Seconds since the start of the run; by default the expected time.
        cost : float, optional
            Real cost; by default the expected one. Required where costs are unknown.
        position : (d,) array, optional
            Where the reading was taken; by default the query's site. Required where variables were left
            free: it contains their values.

        Raises
        ------
        InputError
            The position or the cost is required and missing.

        Examples
        --------
        >>> query = Query([3.0, 4.0], expected_cost=7.0, id="run/0")
        >>> query.observed(1.5, noise_variance=0.01).cost
        7.0
        """
        if position is None and np.isnan(self.site).any():
            raise InputError(
                f"no position for {self.id}, which left variables free",
                expected="the values of all variables when the reading was taken",
                where="position",
                fix="pass position=[...], one number per variable",
            )
        if cost is None and self.expected_cost is None and self.id is not None:
            raise InputError(
                f"no cost for {self.id}, whose cost was unknown",
                expected="its real cost",
                where="cost",
                fix="pass cost=...",
            )
        at = self.site if position is None else _row("position", position, f"observation of {self.id}")
        paid = self.expected_cost if cost is None else cost
        reading: dict[str, Any] = {
            "values": [value],
            "noise_variances": [noise_variance],
            "times_s": [(self.expected_time_s or 0.0) if time_s is None else time_s],
        }
        return Observation(
            order=str(self.id), sites=at[None], position=at, cost=0.0 if paid is None else paid, **reading
        )


@dataclass(frozen=True)
class GoHome:
    """Return to the vehicle's home, without sampling.

    Parameters
    ----------
    vehicle : int
    id : str
    site : (d,) array, optional
        The home position.
    expected_cost : float, optional
    expected_time_s : float, optional
        Time at which the agent expects it there, in seconds since the start.
    route : (k, d) array, optional
        The points to pass, in straight legs, from where the vehicle will be to its home, both included, as
        priced. Empty if the route is straight.
    """

    vehicle: int
    id: str
    site: Array | None = field(default=None, compare=False)
    expected_cost: float | None = field(default=None, compare=False)
    expected_time_s: float | None = field(default=None, compare=False)
    route: Array = field(default_factory=lambda: np.empty((0, 0)), compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.site is not None:
            _freeze(self, "site", self.site)
        d = 0 if self.site is None else len(self.site)
        object.__setattr__(self, "route", _route(self.route, d, f"order {self.id}"))

    def observed(self, *, cost: float | None = None) -> Observation:
        """Return the observation that the vehicle is home; `cost` is by default the expected one."""
        return _arrived(self, self.expected_cost if cost is None else cost)


@dataclass(frozen=True)
class Recharge:
    """Wait at home until the battery is changed or charged. The observation that settles it begins a new one.

    Parameters
    ----------
    vehicle : int
    id : str
    battery : int
        Number of the battery with which the vehicle goes on, counted from 1.
    site : (d,) array, optional
        The home position.
    expected_cost : float, optional
    expected_time_s : float, optional
        Time at which the agent expects it done, in seconds since the start.

    Examples
    --------
    >>> Recharge(0, "run/7", 2, site=[0.0, 0.0], expected_time_s=3600.0).observed().time_s
    3600.0
    """

    vehicle: int
    id: str
    battery: int
    site: Array | None = field(default=None, compare=False)
    expected_cost: float | None = field(default=0.0, compare=False)
    expected_time_s: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.site is not None:
            _freeze(self, "site", self.site)

    @property
    def route(self) -> Array:
        """No points (0, 0): the vehicle stays where it is."""
        return np.empty((0, 0))

    def observed(self, *, cost: float | None = None) -> Observation:
        """Return the observation that the battery was changed; `cost` is by default the expected one, 0."""
        return _arrived(self, self.expected_cost if cost is None else cost)


def _arrived(order: GoHome | Recharge, cost: float | None) -> Observation:
    """Return the observation that a vehicle is home, without a reading."""
    assert order.site is not None
    none = np.empty(0)
    return Observation(
        order=order.id,
        sites=np.empty((0, len(order.site))),
        values=none,
        noise_variances=none,
        times_s=none,
        position=order.site,
        cost=0.0 if cost is None else cost,
        time_s=order.expected_time_s,
    )


@dataclass(frozen=True)
class Stop:
    """The end of a vehicle's part: no further orders, and why."""

    reason: EndReason


Order = Query | GoHome | Recharge


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
            "position": _row("position", self.position, where),
            "sites": _numbers("sites", self.sites, where),
            "values": _row("values", self.values, where, gaps=True),
            "noise_variances": _row("noise_variances", self.noise_variances, where),
            "times_s": _row("times_s", self.times_s, where),
            "cost": _number("cost", self.cost, where),
        }
        if self.time_s is not None:
            settled["time_s"] = _number("time_s", self.time_s, where)
        if self.channels is not None:
            settled["channels"] = {
                printable(name): _row(f"channels[{name!r}]", values, where, gaps=True)
                for name, values in self.channels.items()
            }
        settled["sites"] = _sites(settled["sites"], len(settled["position"]), where)
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
            _check_finite(name, getattr(self, name), where)
        for name in ("noise_variances", "cost"):
            _check_finite(name, getattr(self, name), where, least=0.0)
        if self.time_s is not None:
            _check_finite("time_s", self.time_s, where)


def _sites(given: Array, dimension: int, where: str) -> Array:
    """Return the sites (k, d) of readings, which may come as a flat list."""
    fits = given.ndim < 2 or given.shape[-1] == dimension or given.size == dimension
    if not dimension or given.size % dimension or not fits:
        raise InputError(
            f"a position of {dimension} coordinates but sites of {_by(given)}",
            expected="one coordinate per variable, in the position and in each site",
            where=where,
        )
    return given.reshape(-1, dimension)


@dataclass(frozen=True)
class Rejected:
    """The order was not carried out: nothing moved, and nothing was spent."""

    order: str
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", printable(self.reason))


@dataclass(frozen=True)
class Lost:
    """The outcome of the order is unknown; its declared cost stays reserved."""

    order: str
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", printable(self.reason))


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

    def __post_init__(self) -> None:
        where = f"telemetry of vehicle {self.vehicle}"
        object.__setattr__(self, "position", _row("position", self.position, where))
        object.__setattr__(self, "doubts", tuple(self.doubts))
        for name in ("remaining", "time_s", "accuracy", "located_s", "measured_s", "pack"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, _number(name, value, where))
        if self.remaining is not None and math.isnan(self.remaining):
            object.__setattr__(self, "remaining", None)
        for name, least in (("position", -math.inf), ("time_s", -math.inf), ("accuracy", 0.0)):
            _check_finite(name, getattr(self, name), where, least)
        for name in ("remaining", "located_s", "measured_s", "pack"):
            if (value := getattr(self, name)) is not None:
                _check_finite(name, value, where)
        if self.channels is not None:
            channels = {
                printable(str(name))[:LONGEST_CHANNEL]: _number(f"channels[{name!r}]", value, where)
                for name, value in self.channels.items()
            }
            for name, value in channels.items():
                _check_finite(f"channels[{name!r}]", value, where)
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
        object.__setattr__(self, "values", _row("values", self.values, where, gaps=True))
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


class Action(StrEnum):
    """What an operator can have a run do while it is under way."""

    PAUSE = "pause"
    CONTINUE = "continue"
    SKIP = "skip"
    NEXT = "next"
    NO_GO = "no-go"
    HOME = "home"
    STOP = "stop"


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
            object.__setattr__(self, "site", _row("site", self.site, where))
            _check_finite("site", self.site, where)
        areas = (a if isinstance(a, Obstacle) else Obstacle(**a) for a in self.areas)
        object.__setattr__(self, "areas", tuple(areas))
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
        value = math.nan if self.value is None else _number("value", self.value, where)
        object.__setattr__(self, "value", value)
        if self.position is not None:
            object.__setattr__(self, "position", _row("position", self.position, where))
            _check_finite("position", self.position, where)
        if self.cost is not None:
            object.__setattr__(self, "cost", _number("cost", self.cost, where))
            _check_finite("cost", self.cost, where, least=0.0)
        for name in ("id", "order", "by", "refused"):
            object.__setattr__(self, name, printable(str(getattr(self, name))))


Event = Observation | Rejected | Lost | Telemetry | Correction | Fitted | Command | Answer

_KINDS: dict[str, type] = {
    "query": Query,
    "go-home": GoHome,
    "recharge": Recharge,
    "observation": Observation,
    "rejected": Rejected,
    "lost": Lost,
    "telemetry": Telemetry,
    "correction": Correction,
    "fitted": Fitted,
    "command": Command,
    "answer": Answer,
}
_NAMES = {cls: name for name, cls in _KINDS.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Obstacle):
        value = {"name": value.name, "corners": shapely.get_coordinates(value.polygon.exterior)[:-1]}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def to_plain(message: Order | Event) -> dict[str, Any]:
    """Return an order or event as a mapping of strings, numbers and lists, with its ``kind``.

    Examples
    --------
    >>> to_plain(Rejected("run/3", "shallow water"))
    {'kind': 'rejected', 'order': 'run/3', 'reason': 'shallow water'}
    """
    body = {f.name: _plain(getattr(message, f.name)) for f in fields(message)}
    return {"kind": _NAMES[type(message)], **body}


_UNCHANGED = (
    "order",
    "id",
    "reason",
    "hyperparameters",
    "weighted",
    "doubts",
    "areas",
    "hold",
    "by",
    "refused",
)


def _restored(value: Any) -> Any:
    """Return the numbers that JSON does not have and `_plain` replaced."""
    if isinstance(value, Mapping):
        return {k: _restored(v) for k, v in value.items()}
    if isinstance(value, list):
        return [math.nan if v is None else _restored(v) for v in value]
    return float(value) if value in ("inf", "-inf") else value


def from_plain(plain: Mapping[str, Any]) -> Order | Event:
    """Return the order or event of a plain form; the inverse of `to_plain`.

    Raises
    ------
    InputError
        The kind is unknown, or a field is missing or unknown.

    Examples
    --------
    >>> from_plain({"kind": "lost", "order": "run/3", "reason": "link"})
    Lost(order='run/3', reason='link')
    """
    body = dict(plain)
    kind = body.pop("kind", None)
    cls = _KINDS.get(str(kind))
    if cls is None:
        raise UnknownNameError.of("message kind", kind, _KINDS)
    try:
        message: Order | Event = cls(**{k: v if k in _UNCHANGED else _restored(v) for k, v in body.items()})
    except TypeError as error:
        raise InputError(f"{kind} message: {error}", expected=f"the fields of {cls.__name__}") from error
    return message


def kind_of(message: Order | Event) -> str:
    """Return a message's kind as records name it, for example ``"observation"``."""
    return _NAMES[type(message)]


def order_number(order: str | None) -> int:
    """Return the number in the id of an order: 3 in ``"run/3"``."""
    return int(str(order).rpartition("/")[2])


def settles(event: Event) -> TypeGuard[Observation | Rejected | Lost]:
    """Return True if an event is the last one of its order."""
    return isinstance(event, Rejected | Lost) or (isinstance(event, Observation) and event.last)
