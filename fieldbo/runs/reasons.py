"""Why an agent asks what it asks: the reasons that a policy recorded, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array, Mask
from fieldbo.agent.agent import Agent
from fieldbo.agent.homewards import WHY
from fieldbo.agent.state import WANTED
from fieldbo.belief.confidence import best_by_mean, value_at
from fieldbo.belief.covering import distance_text
from fieldbo.costs.cells import Modular
from fieldbo.domain.controls import halton
from fieldbo.domain.domain import Domain
from fieldbo.errors import counted
from fieldbo.messages import EndReason, Observation, Query
from fieldbo.policies.choice import LEFT
from fieldbo.results.answers import best_measured
from fieldbo.results.words import number, place

SET_KEYS = {"set", "ucb", "cost", "cost_low", "plays", "plausible"}
"""Keys of each row of a table of control sets."""


def best_bound(agent: Agent, why: Mapping[str, Any]) -> float | None:
    """Return the confidence bound of the best average value so far; None if the policy records none."""
    gain = why.get("lcb", why.get("had"))
    return None if gain is None or "worst" not in why else value_of(agent, why["worst"], gain)


def value_of(agent: Agent, worst: float, gain: float) -> float:
    """Return the value that is better than the worst value by `gain`."""
    sign = agent.mission.question.sign
    return worst + sign * gain


def is_table(value: object) -> bool:
    """Return True for a list of mappings, which is shown as a table."""
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


_BECAUSE = {
    EndReason.QUESTION_ANSWERED: "the question is answered",
    EndReason.BATTERY_SPENT: "there is not enough battery for another query",
    EndReason.TIME_LIMIT: "there is not enough time for another query",
    EndReason.STEP_LIMIT: "the step limit is reached",
    EndReason.STOPPED_BY_POLICY: "the policy has nothing more to ask",
    EndReason.STOPPED_BY_OPERATOR: "the operator stopped it",
    EndReason.VEHICLE_LOST: "the vehicle is lost",
}

_SHOWN = {
    "score",
    "site",
    "level",
    "best",
    "end_reason",
    "limit",
    "incumbent",
    "worst",
    "lcb",
    "had",
    "stop",
    "cover",
    "failures",
}
"""Keys of a policy's `why` that the table or a line of its own shows already."""

_LISTS_OF_SETS = {"plausible", "front"}
"""Keys of a policy's `why` that hold numbers of control sets."""

_ALMOST_ALL = 0.99  # of what a tour is worth

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
    if WHY in why and "end_reason" not in why:
        return f"battery {why[WHY] - 1} affords no further query, and battery {why[WHY]} does"
    return _BECAUSE[EndReason(why["end_reason"])]


def understood(agent: Agent, why: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return reasons in which the keys with a meaning of their own have the form that goes with it.

    A policy of somebody else's may use them for anything; they are then shown as they are.
    """
    if why is None:
        return None
    sets, d = range(len(agent.domain.control_sets)), agent.domain.dimension
    numbers = {"worst", "incumbent", "lcb", "had", "alpha"}

    def fits(key: str, value: Any) -> bool:
        if key in numbers:
            return _is_number(value)
        if key == "best":
            return _are_candidates(value, d)
        if key == "failures":
            return isinstance(value, Mapping) and all(_is_number(value.get(k)) for k in ("here", "avoided"))
        if key in _LISTS_OF_SETS and sets:
            return isinstance(value, list) and all(x in sets for x in value)
        if key == "sets" and sets:
            return is_table(value) and all(row.keys() >= SET_KEYS and row["set"] in sets for row in value)
        return True

    return {key if fits(key, value) else f"{key} of the policy": value for key, value in why.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_candidates(value: Any, d: int) -> bool:
    """Return True for a list of candidates as in `Decision.why`: places with a score."""
    return isinstance(value, list) and all(
        isinstance(row, Mapping)
        and isinstance(row.get("site"), list)
        and len(row["site"]) == d
        and all(x is None or _is_number(x) for x in row["site"])
        and all(row.get(key) is None or isinstance(row[key], int | float | str) for key in ("value", "level"))
        and all(row.get(key) is None or _is_number(row[key]) for key in ("cost", "left", "left_s"))
        and {"value", *(["level"] if "level" in row else [])} <= row.keys()
        for row in value
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
    why = understood(agent, why)
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


# -- reasons ---------------------------------------------------------------------------------------------


def reasons_for(
    agent: Agent, query: Query, why: Mapping[str, Any] | None, best: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Return the reasons for a query by label; parameters as for `details`."""
    mission, quantity = agent.mission, agent.mission.world.quantity
    controlled, why = _controlled(agent.domain, query), understood(agent, why)
    cost = {"cost": _cost(agent, query, best[0]["cost"])}
    if why is None:
        return {"why": "an initial reading, before the policy takes over", **controlled, **cost}
    if why == WANTED:
        return {
            "why": "an operator wanted it next",
            **controlled,
            "expected": _expected(agent, query),
            **cost,
        }
    settings = {k: v for k, v in mission.settings["policy"].items() if k != "kind"}
    kind = mission.policy_kind + (f" ({_listed(settings)})" if settings else "")
    summary = (type(mission.policy).__doc__ or "").strip().partition("\n")[0].replace("``", "")
    reasons = {"policy": f"{kind}: {summary}" if summary else kind, **controlled}
    if "cover" in why:
        reasons["instead"] = _covering(agent.domain, mission.world.cost_unit, **why["cover"])
    elif "stop" in why:
        reasons["instead"] = _doubt(**why["stop"])
    if len(best) > 1:
        reasons["value"] = _lead(best[0]["value"], best[1]["value"])
    if "worst" in why:
        value = reasons.get("value", number(best[0]["value"]))
        reasons["value"] = f"{value}; relative to the worst value, {quantity.amount(why['worst'])}"
    if "failures" in why:
        reasons["failures"] = _failing(agent.domain, **why["failures"])
    reasons["expected"] = _expected(agent, query)
    if (incumbent := why.get("incumbent")) is not None:
        best_value = float(agent.hyperparameters.scale.to_user(np.array([incumbent]))[0])
        reasons["best so far"] = f"{quantity.amount(best_value)}, by the fit"
    if (bound := best_bound(agent, why)) is not None:
        side = "at most" if mission.question.sign < 0 else "at least"
        reasons["best so far"] = f"{side} {quantity.amount(bound)} on average, by the confidence bound"
    cost |= _best_measured(agent)
    return reasons | cost | _other(agent, why, settings, hidden={"set"} if controlled else set())


def _best_measured(agent: Agent) -> dict[str, str]:
    """Return the best measured place of an optimum, unless it is the best one by the fit, too."""
    model = agent.online_model
    rows = np.flatnonzero(model.believed)
    data = model.data(rows[rows >= model.earlier])
    best = best_measured(agent.mission, data.sites, data.values, data.noise_variances)
    if best is None:
        return {}
    at = place(agent.domain, best.point)
    if at == place(agent.domain, best_by_mean(agent.surface, agent.domain)[0]):
        return {}
    return {"best measured": f"{agent.mission.world.quantity.amount(best.value)} at {at}"}


def _other(
    agent: Agent, why: Mapping[str, Any], settings: Mapping[str, Any], hidden: set[str]
) -> dict[str, str]:
    """Return what else the policy recorded: lists in lines of their own, numbers in one line."""
    rest = {
        k: v for k, v in why.items() if k not in _SHOWN | hidden and settings.get(k) != v and not is_table(v)
    }
    if sets := agent.domain.control_sets:
        for key, value in rest.items():
            if isinstance(value, list) and len(value) <= len(sets):
                rest[key] = "; ".join(sets[x].name if key in _LISTS_OF_SETS else number(x) for x in value)
    if isinstance(count := rest.get("unclassified"), int):  # the report counts by probability instead
        rest["unclassified"] = f"{count} of {agent.domain.size} sites, by the policy's bounds"
    if isinstance(count := rest.get("at_risk"), int):
        rest["at_risk"] = f"{count} of {agent.domain.size} sites"
    if all(_is_number(rest.get(key)) for key in ("covers", "gain", "hidden")):
        looks = [rest.pop(key) for key in ("covers", "gain", "hidden")]
        rest = {"purpose": _purpose(agent, *looks), **rest}
    lines = {key.replace("_", " "): value for key, value in rest.items() if _is_long(value)}
    short = _listed({k: v for k, v in rest.items() if not _is_long(v)})
    return {**lines, **({"also": short} if short else {})}


def _purpose(agent: Agent, covers: float, gain: float, hidden: float) -> str:
    """Return what a tour of scout is for, from what its `why` has."""
    better = "smaller" if agent.mission.question.sign < 0 else "larger"
    looking = f"to look where something {better} could hide"
    share = covers / gain if gain > 0 else 1.0
    if share >= _ALMOST_ALL:
        purpose = looking
    elif share <= 1.0 - _ALMOST_ALL:
        purpose = "to know the best place"
    else:
        purpose = f"{looking} ({share:.0%} of what the tour is worth), and to know the best place"
    best = "smallest" if better == "smaller" else "largest"
    return f"{purpose}; with a probability of {min(1.0, hidden):.0%}, the {best} value lies unseen"


def _failing(domain: Domain, here: float, avoided: int) -> str:
    """Return where readings fail, from what a `why` has under ``failures``.

    Examples
    --------
    >>> from fieldbo.testing.small import small_world
    >>> _failing(small_world().domain, 0.071, 4)
    'with a probability of 0.07 here; 4 of 30 sites are avoided, where a reading is likely to fail'
    """
    return (
        f"with a probability of {here:.2f} here; {avoided} of {domain.size} sites are avoided, "
        "where a reading is likely to fail"
    )


def _covering(domain: Domain, unit: str, sites: list[int], cost: float, within: float) -> str:
    """Return why a query covers places that are too far from all readings, from a `why`.

    Examples
    --------
    >>> from fieldbo.testing.small import small_world
    >>> _covering(small_world().domain, "s", [3, 7, 20], 41.2, 2.0)
    'no place may be farther than 2 m from a reading: that takes 3 more stops, and 41.2 s with the way home'
    """
    return (
        f"no place may be farther than {distance_text(domain, within)} from a reading: that takes "
        f"{counted(len(sites), 'more stop')}, and {number(cost)} {unit} with the way home"
    )


def _doubt(
    goal: float,
    probability: float,
    wanted: float = 0.9,
    *,
    unseen: bool = False,
    unfitted: bool = False,
    farthest: float | None = None,
    within: float | None = None,
) -> str:
    """Return why a query replaces the policy's decision, from what its `why` has under ``stop``.

    Examples
    --------
    >>> _doubt(0.95, 0.62)
    'the answer does not count yet: it reaches 0.95 with a probability of 0.62, not 0.9'
    """
    text = "the answer does not count yet: "
    if unseen:
        return f"{text}the readings leave gaps, and this is the place that says most about what they hide"
    if farthest is not None and within is not None and probability >= wanted and farthest > within:
        return f"{text}a place is {number(farthest)} from all readings, not {number(within)}"
    if unfitted:
        return f"{text}the latest fit has not seen all readings"
    return (
        f"{text}it reaches {number(goal)} with a probability of {number(probability)}, not {number(wanted)}"
    )


def _lead(first: Any, second: Any) -> str:
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
    return np.ones(len(query.site), dtype=bool) if query.controls is None else query.controls


def _cost(agent: Agent, query: Query, price: float | None) -> str:
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
    first = int(chain.first_changed(position, site[None])[0])
    rerun = [f"{m.name} {number(m.cost)}" for m in chain.modules[first:]]
    if not chain.charge_last:
        rerun[-1] = f"{chain.modules[-1].name} free"
    kept = ", ".join(m.name for m in chain.modules[:first])
    return ", ".join(rerun) + (f"; unchanged: {kept}" if kept else "")


def _estimated_cost(agent: Agent, query: Query, estimate: float | None) -> str:
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
    quantity, free = agent.mission.world.quantity, np.isnan(query.site)
    if free.any():
        low, middle, high = _over_chance(agent, query.site)
        names = ", ".join(a.name for a, is_free in zip(agent.domain.axes, free, strict=True) if is_free)
        over = f" on average over {names}"
    else:
        surface, scale = agent.stated
        middle, low, high = astuple(value_at(surface.over(query.site[None]), scale))
        over = ""
    return f"{quantity.amount(middle)}{over} (90% interval {low:.4g} to {high:.4g})"


def _over_chance(agent: Agent, site: Array) -> tuple[float, float, float]:
    """Return 5% quantile, mean and 95% quantile of a reading over the free variables; user's unit."""
    from scipy.special import ndtri

    domain, (surface, scale) = agent.domain, agent.stated
    points = np.repeat(site[None], _DRAWS, axis=0)
    for j, (law, u) in enumerate(zip(domain.distributions, halton(_DRAWS, domain.dimension).T, strict=True)):
        if np.isnan(site[j]):
            assert law is not None
            points[:, j] = law.quantile(u)
    mean, sd = surface.belief.mean(points), surface.belief.variance(points) ** 0.5
    steps = ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    low, high = np.quantile(scale.to_user((mean[:, None] + sd[:, None] * steps).ravel()), [0.05, 0.95])
    return float(low), float(scale.to_user(np.array([mean.mean()]))[0]), float(high)


def _is_long(value: object) -> bool:
    """Return True for a text with several parts, which gets a line of its own."""
    return isinstance(value, str) and any(mark in value for mark in (", ", "; ", ": "))


def _listed(settings: Mapping[str, Any]) -> str:
    """Return settings in one line; of lists and tables only the number of entries."""
    return ", ".join(
        f"{key.replace('_', ' ')} {f'({len(x)} entries)' if isinstance(x, list | dict) else number(x)}"
        for key, x in settings.items()
    )
