"""The text of an explanation: a table of the best candidates, the reasons, and the policy's own tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.agent.agent import Agent
from fieldbo.costs.chain import Modular
from fieldbo.domain.distributions import halton
from fieldbo.domain.domain import Domain
from fieldbo.messages import EndReason, Observation, Query
from fieldbo.policies.choice import LEFT
from fieldbo.results.metrics import MIDDLE90

_BECAUSE = {
    EndReason.QUESTION_ANSWERED: "the question is answered",
    EndReason.BATTERY_SPENT: "there is not enough battery for another query",
    EndReason.STEP_LIMIT: "the step limit is reached",
    EndReason.STOPPED_BY_POLICY: "the policy has nothing more to ask",
    EndReason.STOPPED_BY_OPERATOR: "the operator stopped it",
    EndReason.VEHICLE_LOST: "the vehicle is lost",
}

_SHOWN = {"score", "site", "level", "best", "end_reason", "limit", "incumbent", "worst", "lcb", "had"}
"""Keys of a policy's `why` that the table or a line of its own shows already."""

_LISTS_OF_SETS = {"plausible", "front"}
"""Keys of a policy's `why` that hold numbers of control sets."""

_DRAWS, _QUANTILES = 256, 64
"""Draws of the free variables, and quantiles of the field at each, that an expected reading averages."""


def because(why: Mapping[str, Any]) -> str:
    """Return the reason why there is no further query, from the `why` at the end of a run.

    Examples
    --------
    >>> because({"end_reason": "step limit"})
    'the step limit is reached'
    """
    if why.get("limit") == "time":
        return "there is not enough time for another query"
    return _BECAUSE[EndReason(why["end_reason"])]


def heading(agent: Agent, title: str) -> str:
    """Return the title of an order with the battery and time that are left before it."""
    vehicle, unit = agent.vehicles[0], agent.mission.world.cost_unit
    left = f"{number(vehicle.ledger.available)} of {number(vehicle.spec.battery)} {unit}"
    if vehicle.spec.time_limit_s is not None:
        left += f" and {number(vehicle.time_ledger.available)} of {number(vehicle.spec.time_limit_s)} s"
    return f"{title}, with {left} left"


def place(domain: Domain, site: Array) -> str:
    """Return a site (d,) with the names and units of its axes; NaN marks a free variable.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> place(Domain.box([Axis("x", "", 0, 1), Axis("t", "K", 0, 9)], 8), np.array([np.nan, 4.0]))
    'x free, t 4 K'
    """
    return ", ".join(
        f"{axis.name} free" if math.isnan(x) else f"{axis.name} {number(x)} {axis.unit}".rstrip()
        for axis, x in zip(domain.axes, site.tolist(), strict=True)
    )


def best_of(agent: Agent, query: Query, why: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the chosen candidate as it was issued, and the runners-up that the policy recorded.

    Parameters
    ----------
    agent : Agent
        As it was before it issued the query.
    query : Query
    why : mapping or None
        The reasons recorded by the policy.

    Returns
    -------
    list of dict
        See `Explanation.best`.
    """
    vehicle, recorded = agent.vehicles[0], (why or {}).get("best", ())
    chosen: dict[str, Any] = {
        "site": [None if math.isnan(x) else x for x in query.site.tolist()],
        "value": recorded[0]["value"] if recorded else (why or {}).get("score"),
        "cost": query.expected_cost if vehicle.cost is None else vehicle.price(query),
    }
    for limit in vehicle.limits:
        chosen[LEFT[limit.name]] = limit.after(vehicle.end, query.site, query.level, query.controls)
    if vehicle.cost is None:
        known = chosen["cost"] is not None
        chosen["left"] = max(0.0, vehicle.spendable - chosen["cost"]) if known else None
    if agent.mission.world.sensor.settings > 1:
        chosen["level"] = query.level
    return [chosen, *recorded[1:]]


def details(
    agent: Agent,
    query: Query,
    why: Mapping[str, Any] | None,
    best: Sequence[Mapping[str, Any]],
    extra: Mapping[str, str],
) -> str:
    """Return the table of the best candidates, the reasons, and one table per list in `why`.

    Parameters
    ----------
    agent : Agent
        As it was before it issued the query.
    query : Query
    why : mapping or None
        The reasons recorded by the policy; None for an initial reading.
    best : sequence of mapping
        From `best_of`.
    extra : mapping of str to str
        Further reasons by label.
    """
    reasons = {**_reasons(agent, query, why, best), **extra}
    width = max(map(len, reasons))
    parts = [_best_table(agent, best), "\n".join(f"  {k:<{width}}  {text}" for k, text in reasons.items())]
    for key, rows in (why or {}).items():
        if key == "sets" and why is not None and "worst" in why:
            parts.append(_sets_table(agent, why))
        elif key != "best" and _is_table(rows):
            parts.append(_table_of(agent.domain, rows))
    return "\n\n".join(parts)


# -- reasons ---------------------------------------------------------------------------------------------


def _reasons(
    agent: Agent, query: Query, why: Mapping[str, Any] | None, best: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Return the reasons for a query by label."""
    mission, quantity = agent.mission, agent.mission.world.quantity
    controlled = _controlled(agent.domain, query)
    cost = {"cost": _cost(agent, query, best[0]["cost"])}
    if why is None:
        return {"why": "an initial reading, before the policy takes over", **controlled, **cost}
    settings = {k: v for k, v in mission.settings["policy"].items() if k != "kind"}
    kind = mission.policy_kind + (f" ({_listed(settings)})" if settings else "")
    summary = (type(mission.policy).__doc__ or "").strip().partition("\n")[0].replace("``", "")
    reasons = {"policy": f"{kind}: {summary}" if summary else kind, **controlled}
    if len(best) > 1:
        reasons["value"] = _lead(best[0]["value"], best[1]["value"])
    if "worst" in why:
        value = reasons.get("value", number(best[0]["value"]))
        reasons["value"] = f"{value}; relative to the worst value, {quantity.amount(why['worst'])}"
    reasons["expected"] = _expected(agent, query)
    if (incumbent := why.get("incumbent")) is not None:
        best_value = float(agent.hyperparameters.scale.to_user(np.array([incumbent]))[0])
        reasons["best so far"] = f"{quantity.amount(best_value)}, by the model"
    if (bound := _best_bound(agent, why)) is not None:
        side = "at most" if mission.question.sign < 0 else "at least"
        reasons["best so far"] = f"{side} {quantity.amount(bound)} on average, by the confidence bound"
    return reasons | cost | _other(agent, why, settings, hidden={"set"} if controlled else set())


def _other(
    agent: Agent, why: Mapping[str, Any], settings: Mapping[str, Any], hidden: set[str]
) -> dict[str, str]:
    """Return what else the policy recorded: lists in lines of their own, numbers in one line."""
    rest = {
        k: v for k, v in why.items() if k not in _SHOWN | hidden and settings.get(k) != v and not _is_table(v)
    }
    if sets := agent.domain.control_sets:
        for key, value in rest.items():
            if isinstance(value, list) and len(value) <= len(sets):
                rest[key] = "; ".join(sets[x].name if key in _LISTS_OF_SETS else number(x) for x in value)
    lines = {key.replace("_", " "): value for key, value in rest.items() if _is_long(value)}
    short = _listed({k: v for k, v in rest.items() if not _is_long(v)})
    return {**lines, **({"also": short} if short else {})}


def _lead(first: Any, second: Any) -> str:
    """Return the score of the chosen candidate and its lead over the runner-up."""
    if not (isinstance(first, int | float) and isinstance(second, int | float)):
        return f"{number(first)}; next best {number(second)}"
    if first <= second:
        return f"{number(first)}, equal to the next best"
    return f"{number(first)}, {first - second:.2g} above the next best"


def _controlled(domain: Domain, query: Query) -> dict[str, str]:
    """Return which variables a query sets and leaves free; nothing in a domain without control sets."""
    if domain.controls is None:
        return {}
    on = _set_variables(query)
    names = np.array([axis.name for axis in domain.axes])
    if on.all():
        return {"sets": "all variables"}
    return {"sets": f"{', '.join(names[on])}; {', '.join(names[~on])} left to chance"}


def _set_variables(query: Query) -> Mask:
    """Return the variables (d,) that a query sets."""
    return np.ones(len(query.site), dtype=bool) if query.controls is None else query.controls


def _cost(agent: Agent, query: Query, price: float | None) -> str:
    """Return the cost of a query and its parts."""
    vehicle, world, unit = agent.vehicles[0], agent.mission.world, agent.mission.world.cost_unit
    if vehicle.cost is None:
        return _estimated_cost(agent, query, price)
    assert price is not None
    if agent.domain.controls is not None:
        return f"{number(price)} {unit} for this control set"
    if isinstance(world.cost, Modular):
        return f"{number(price)} {unit}: {_modules(world.cost, vehicle.end, query.site)}"
    travel = float(world.cost.travel(vehicle.end, query.site[None], vehicle.time_s)[0])
    cost = f"{number(price)} {unit}: travel {number(travel)}, sampling {number(price - travel)}"
    if vehicle.spec.home is not None:
        cost += f"; trip home from there {number(float(vehicle.return_cost(query.site[None])[0]))}"
    return cost


def _modules(chain: Modular, position: Array, site: Array) -> str:
    """Return which modules of a chain rerun, with their costs, and which do not."""
    first = int(chain.first_changed(position, site[None])[0])
    rerun = [f"{m.name} {number(m.cost)}" for m in chain.modules[first:]]
    if not chain.charge_last:
        rerun[-1] = f"{chain.modules[-1].name} free"
    kept = ", ".join(m.name for m in chain.modules[:first])
    return ", ".join(rerun) + (f"; unchanged: {kept}" if kept else "")


def _estimated_cost(agent: Agent, query: Query, estimate: float | None) -> str:
    """Return the estimate of an unknown cost, and what the same control set has cost so far."""
    mask = _set_variables(query).tobytes()
    same = {
        key
        for key, issued in agent.issued.items()
        if isinstance(issued.order, Query) and _set_variables(issued.order).tobytes() == mask
    }
    paid: dict[str, float] = {}
    for event in agent.history:
        if isinstance(event, Observation) and event.order in same:
            paid[event.order] = paid.get(event.order, 0.0) + event.cost
    cost = "unknown" if estimate is None else f"about {number(estimate)} {agent.mission.world.cost_unit}"
    if not paid:
        return f"{cost}; this control set has not been used before"
    low, high = number(min(paid.values())), number(max(paid.values()))
    times = "once" if len(paid) == 1 else f"{len(paid)} times"
    return f"{cost}; this control set was used {times}, for {low if low == high else f'{low} to {high}'}"


def _expected(agent: Agent, query: Query) -> str:
    """Return the reading that the model expects, averaged over free variables, with a 90% interval."""
    belief, scale = agent.surface.belief, agent.hyperparameters.scale
    quantity, free = agent.mission.world.quantity, np.isnan(query.site)
    if free.any():
        low, middle, high = _over_chance(agent, query.site)
        names = ", ".join(a.name for a, is_free in zip(agent.domain.axes, free, strict=True) if is_free)
        over = f" on average over {names}"
    else:
        mean, half = belief.mean(query.site[None]), MIDDLE90 * belief.variance(query.site[None]) ** 0.5
        low, middle, high = (float(scale.to_user(mean + k * half)[0]) for k in (-1, 0, 1))
        low, high = sorted((low, high))
        over = ""
    return f"{quantity.amount(middle)}{over} (90% interval {low:.4g} to {high:.4g})"


def _over_chance(agent: Agent, site: Array) -> tuple[float, float, float]:
    """Return 5% quantile, mean and 95% quantile of a reading over the free variables; user's unit."""
    from scipy.special import ndtri

    domain, scale = agent.domain, agent.hyperparameters.scale
    points = np.repeat(site[None], _DRAWS, axis=0)
    for j, (law, u) in enumerate(zip(domain.distributions, halton(_DRAWS, domain.dimension).T, strict=True)):
        if np.isnan(site[j]):
            assert law is not None
            points[:, j] = law.quantile(u)
    mean, sd = agent.surface.belief.mean(points), agent.surface.belief.variance(points) ** 0.5
    steps = ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    low, high = np.quantile(scale.to_user((mean[:, None] + sd[:, None] * steps).ravel()), [0.05, 0.95])
    return float(low), float(scale.to_user(np.array([mean.mean()]))[0]), float(high)


def _best_bound(agent: Agent, why: Mapping[str, Any]) -> float | None:
    """Return the confidence bound of the best average value so far; None if the policy records none."""
    gain = why.get("lcb", why.get("had"))
    return None if gain is None or "worst" not in why else _value_of(agent, why["worst"], gain)


def _value_of(agent: Agent, worst: float, gain: float) -> float:
    """Return the value that is better than the worst value by `gain`."""
    sign = agent.mission.question.sign
    return worst + sign * gain


# -- tables ----------------------------------------------------------------------------------------------


def _best_table(agent: Agent, best: Sequence[Mapping[str, Any]]) -> str:
    """Return the best candidates as an aligned table."""
    world = agent.mission.world
    unit, levels = world.cost_unit, ["level"] if world.sensor.settings > 1 else []
    columns = {"value": "value", "cost": f"cost ({unit})", "left": f"left after ({unit})"}
    if any("left_s" in candidate for candidate in best):
        columns["left_s"] = "left after (s)"
    rows = [
        [
            str(rank),
            *map(number, candidate["site"]),
            *(str(candidate[key]) for key in levels),
            *(number(candidate.get(key)) for key in columns),
        ]
        for rank, candidate in enumerate(best, 1)
    ]
    return _aligned(["", *(a.label for a in world.domain.axes), *levels, *columns.values()], rows)


def _is_table(value: object) -> bool:
    """Return True for a list of mappings, which is shown as a table."""
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _is_long(value: object) -> bool:
    """Return True for a text with several parts, which gets a line of its own."""
    return isinstance(value, str) and any(mark in value for mark in (", ", "; ", ": "))


def _table_of(domain: Domain, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a list of mappings as an aligned table, one column per key."""
    keys = list(dict.fromkeys(key for row in rows for key in row))

    def text(key: str, value: object) -> str:
        if key == "set" and isinstance(value, int) and 0 <= value < len(domain.control_sets):
            return domain.control_sets[value].name
        if isinstance(value, list | tuple):
            return ", ".join(map(number, value))
        return {True: "yes", False: "no"}[value] if isinstance(value, bool) else number(value)

    return _aligned(
        [key.replace("_", " ") for key in keys], [[text(key, row.get(key)) for key in keys] for row in rows]
    )


def _sets_table(agent: Agent, why: Mapping[str, Any]) -> str:
    """Return bounds, costs and plays of each control set as an aligned table, with notes on the columns."""
    world, rows, minimises = agent.mission.world, why["sets"], agent.mission.question.sign < 0
    unit, value_unit = world.cost_unit, world.quantity.unit
    heads = ["control set", "best case" + ("" if value_unit in ("", "1") else f" ({value_unit})")]
    heads += [f"mean cost ({unit})", f"cost at least ({unit})", "plays", "plausible"]
    plausible = {True: "yes", False: "no", None: "exploring"}
    table = [
        [
            agent.domain.control_sets[row["set"]].name,
            "unknown" if row["ucb"] is None else number(_value_of(agent, why["worst"], row["ucb"])),
            *(number(row[key]) for key in ("cost", "cost_low", "plays")),
            plausible[row["plausible"]],
        ]
        for row in rows
    ]
    notes = [
        f"best case: {'lower' if minimises else 'upper'} confidence bound of the best average value over the "
        f"free variables; {getattr(agent.mission.policy, 'bounds_are', '')}"
    ]
    if any(row["plausible"] is None for row in rows):
        notes.append("exploring: no set is ruled out before exploration has ended")
    elif (bound := _best_bound(agent, why)) is not None:
        fraction = 1.0 - why["alpha"]
        limit = why["worst"] + fraction * (bound - why["worst"])
        notes.append(
            f"plausible: {world.quantity.amount(limit)} or {'less' if minimises else 'more'}, which is "
            f"{number(100.0 * fraction)}% of the step from the worst value to the best so far"
        )
    return "\n".join([_aligned(heads, table), "", *(f"  {note}" for note in notes)])


def _aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with right-aligned columns."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = ("  ".join(x.rjust(w) for x, w in zip(row, widths, strict=True)) for row in (heads, *rows))
    return "\n".join(lines)


def _listed(settings: Mapping[str, Any]) -> str:
    """Return settings in one line; of lists and tables only the number of entries."""
    return ", ".join(
        f"{key.replace('_', ' ')} {f'({len(x)} entries)' if isinstance(x, list | dict) else number(x)}"
        for key, x in settings.items()
    )


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
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
