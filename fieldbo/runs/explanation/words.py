"""Why an order is what it is, in words and tables: from its agent as it was before the order left."""

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
from fieldbo.results.formatting import amount
from fieldbo.results.metrics import MIDDLE90

_BECAUSE = {
    EndReason.QUESTION_ANSWERED: "the question is answered",
    EndReason.BATTERY_SPENT: "the battery pays for no further query",
    EndReason.STEP_LIMIT: "the limit of steps is reached",
    EndReason.STOPPED_BY_POLICY: "the policy proposes nothing more",
    EndReason.STOPPED_BY_OPERATOR: "the operator stopped it",
    EndReason.VEHICLE_LOST: "the vehicle is lost",
}

_OWN = {"score", "site", "level", "best", "end_reason", "limit", "incumbent", "worst", "lcb", "had"}
"""What of a policy's `why` has a place of its own here."""

_OF_SETS = {"plausible", "front"}
"""What of a policy's `why` are numbers of control sets."""

_DRAWS, _QUANTILES = 256, 64
"""What is left free is expected over so many draws, and so many quantiles of the field at each."""


def because(why: Mapping[str, Any]) -> str:
    """Return why there is no further query, from the `why` of a run's end.

    Examples
    --------
    >>> because({"end_reason": "step limit"})
    'the limit of steps is reached'
    """
    if why.get("limit") == "time":
        return "there is no time for another query"
    return _BECAUSE[EndReason(why["end_reason"])]


def standing(agent: Agent, name: str) -> str:
    """Return what the battery was when an order of that name left, or will leave."""
    craft, unit = agent.vehicles[0], agent.mission.world.cost_unit
    left = f"{_digits(craft.ledger.available)} of {_digits(craft.spec.battery)} {unit}"
    if craft.spec.time_limit_s is not None:
        left += f" and {_digits(craft.time_ledger.available)} of {_digits(craft.spec.time_limit_s)} s"
    return f"{name}, with {left} left"


def place(domain: Domain, site: Array) -> str:
    """Return a site (d,) with the axes' names and units; a variable that is NaN is left free.

    Examples
    --------
    >>> from fieldbo.domain.axes import Axis
    >>> place(Domain.box([Axis("x", "", 0, 1), Axis("t", "K", 0, 9)], 8), np.array([np.nan, 4.0]))
    'x free, t 4 K'
    """
    told = zip(domain.axes, site.tolist(), strict=True)
    return ", ".join(
        f"{a.name} free" if math.isnan(x) else f"{a.name} {_digits(x)} {a.unit}".rstrip() for a, x in told
    )


def best_of(agent: Agent, query: Query, why: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the chosen site as it was sent out, and the next best that the policy told.

    Parameters
    ----------
    agent : Agent
        Before the query left.
    query : Query
    why : mapping or None
        The policy's.

    Returns
    -------
    list of dict
        As `Explanation.best` tells them.
    """
    craft, told = agent.vehicles[0], (why or {}).get("best", ())
    chosen: dict[str, Any] = {
        "site": [None if math.isnan(x) else x for x in query.site.tolist()],
        "value": told[0]["value"] if told else (why or {}).get("score"),
        "cost": query.expected_cost if craft.cost is None else craft.price(query),
    }
    for limit in craft.limits:
        taken = limit.going(craft.end, query.site[None], query.controls, query.level)
        chosen[LEFT[limit.name]] = max(0.0, limit.left - float((taken + limit.back(query.site[None]))[0]))
    if craft.cost is None:
        known = chosen["cost"] is not None
        chosen["left"] = max(0.0, craft.spendable - chosen["cost"]) if known else None
    if agent.mission.world.sensor.settings > 1:
        chosen["level"] = query.level
    return [chosen, *told[1:]]


def in_words(
    agent: Agent,
    query: Query,
    why: Mapping[str, Any] | None,
    best: Sequence[Mapping[str, Any]],
    extra: Mapping[str, str],
) -> str:
    """Return the best as a table, the reasons by catchword, and a table of each list that the policy told.

    Parameters
    ----------
    agent : Agent
        Before the query left.
    query : Query
    why : mapping or None
        The policy's; None for an initial reading.
    best : sequence of mapping
        From `best_of`.
    extra : mapping of str to str
        Further reasons.
    """
    told = {**_reasons(agent, query, why, best), **extra}
    wide = max(map(len, told))
    lines = [f"  {what:<{wide}}  {said}" for what, said in told.items()]
    parts = [_best_table(agent, best), "\n".join(lines)]
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
    """Return why a query is what it is, by catchword."""
    mission, world = agent.mission, agent.mission.world
    cost = _cost(agent, query, best[0]["cost"])
    controlled = _controlled(agent.domain, query)
    if why is None:
        first = {"why": "a reading to begin with, before the policy takes over"}
        return {**first, **controlled, "cost": cost}
    settings = {k: v for k, v in mission.settings["policy"].items() if k != "kind"}
    rule = mission.policy_kind + (f" ({_listed(settings)})" if settings else "")
    said = (type(mission.policy).__doc__ or "").strip().partition("\n")[0].replace("``", "")
    told = {"policy": f"{rule}: {said}" if said else rule, **controlled}
    if len(best) > 1:
        told["value"] = _ahead(best)
    if "worst" in why:
        value = told.get("value", _digits(best[0]["value"]))
        told["value"] = f"{value}; counted from the worst, {amount(why['worst'], world.quantity)}"
    told["expected"] = _expected(agent, query)
    if (incumbent := why.get("incumbent")) is not None:
        so_far = float(agent.hyperparameters.scale.to_user(np.array([incumbent]))[0])
        told["so far"] = f"at best {amount(so_far, world.quantity)}, by the model"
    if (had := _had(agent, why)) is not None:
        told["so far"] = (
            f"{amount(had, world.quantity)} on average by the best settings, all doubt against them"
        )
    told["cost"] = cost
    taken = _OWN | ({"set"} if controlled else set())
    own = {k: v for k, v in why.items() if k not in taken and settings.get(k) != v and not _is_table(v)}
    if sets := agent.domain.control_sets:
        for key, value in own.items():
            if isinstance(value, list) and len(value) <= len(sets):  # of control sets, or a number for each
                own[key] = "; ".join(sets[x].name if key in _OF_SETS else _digits(x) for x in value)
    told |= {key.replace("_", " "): v for key, v in own.items() if _is_list_in_words(v)}
    if rest := _listed({k: v for k, v in own.items() if not _is_list_in_words(v)}):
        told["also"] = rest
    return told


def _controlled(domain: Domain, query: Query) -> dict[str, str]:
    """Return what a query sets and what it leaves free; nothing where all variables always are set."""
    if domain.controls is None:
        return {}
    on = np.ones(domain.dimension, dtype=bool) if query.controls is None else query.controls
    if on.all():
        return {"sets": "all variables"}
    left = ", ".join(a.name for a, one in zip(domain.axes, on, strict=True) if not one)
    return {"sets": f"{_set_name(domain, on)}; {left} left to chance"}


def _set_name(domain: Domain, controls: Mask) -> str:
    return ", ".join(a.name for a, on in zip(domain.axes, controls, strict=True) if on)


def _cost(agent: Agent, query: Query, price: float | None) -> str:
    """Return what a query costs, and what of that is for what; of unknown costs what is known of them."""
    craft, world, unit = agent.vehicles[0], agent.mission.world, agent.mission.world.cost_unit
    if craft.cost is None:
        return _found_out(agent, query, price)
    assert price is not None
    if agent.domain.controls is not None:
        return f"{_digits(price)} {unit} for this control set"
    site, home = query.site[None], craft.spec.home
    way = float(world.cost.travel(craft.end, site, craft.time_s)[0])
    if isinstance(world.cost, Modular):
        return _by_modules(world.cost, craft.end, query.site, price, unit)
    cost = f"{_digits(way)} {unit} to get there, {_digits(price - way)} to sample"
    if home is not None:
        cost += f"; home from there {_digits(float(craft.return_cost(site)[0]))}"
    return cost


def _by_modules(chain: Modular, position: Array, site: Array, price: float, unit: str) -> str:
    """Return which modules of a chain run anew, and what each of them costs."""
    first = int(chain.first_changed(position, site[None])[0])
    *early, last = [f"{m.name} {_digits(m.cost)}" for m in chain.modules[first:]]
    parts = ", ".join([*early, last if chain.charge_last else f"{chain.modules[-1].name} free"])
    kept = ", ".join(m.name for m in chain.modules[:first])
    return f"{_digits(price)} {unit}: {parts}" + (f"; kept as it is: {kept}" if kept else "")


def _found_out(agent: Agent, query: Query, expected: float | None) -> str:
    """Return what is expected of a cost that was not declared, and what queries like it have cost."""
    unit = agent.mission.world.cost_unit
    alike = {
        key
        for key, issued in agent.issued.items()
        if isinstance(issued.order, Query) and _mask(issued.order) == _mask(query)
    }
    paid: dict[str, float] = {}
    for event in agent.history:
        if isinstance(event, Observation) and event.order in alike:
            paid[event.order] = paid.get(event.order, 0.0) + event.cost
    about = "not known" if expected is None else f"about {_digits(expected)} {unit}, as found out so far"
    if not paid:
        return f"{about}: nothing was set this way before"
    low, high = min(paid.values()), max(paid.values())
    times = "once" if len(paid) == 1 else f"{len(paid)} times"
    return f"{about}: set this way {times}, for {_digits(low)}" + (
        f" to {_digits(high)}" if high > low else ""
    )


def _mask(query: Query) -> bytes:
    on = np.ones(len(query.site), dtype=bool) if query.controls is None else query.controls
    return on.tobytes()


def _expected(agent: Agent, query: Query) -> str:
    """Return what the model expects to be read: there, or over what is left to chance."""
    belief, scale = agent.surface.belief, agent.hyperparameters.scale
    quantity, free = agent.mission.world.quantity, np.isnan(query.site)
    if not free.any():
        mean, half = belief.mean(query.site[None]), MIDDLE90 * belief.variance(query.site[None]) ** 0.5
        low, median, high = (float(scale.to_user(mean + k * half)[0]) for k in (-1, 0, 1))
        low, high = sorted((low, high))
        return f"{amount(median, quantity)} there, by the model ({low:.4g} to {high:.4g})"
    low, average, high = _over_chance(agent, query.site)
    left = ", ".join(a.name for a, one in zip(agent.domain.axes, free, strict=True) if one)
    return f"{amount(average, quantity)} on average over {left}, by the model ({low:.4g} to {high:.4g})"


def _over_chance(agent: Agent, site: Array) -> tuple[float, float, float]:
    """Return lower end, mean and upper end of what nine in ten readings will be within; user's unit."""
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


def _ahead(best: Sequence[Mapping[str, Any]]) -> str:
    """Return by how much the chosen site is ahead of the next best."""
    first, second = (one["value"] for one in best[:2])
    if not (isinstance(first, int | float) and isinstance(second, int | float)):
        return f"{_digits(first)}; the next best {_digits(second)}"
    if first <= second:
        return f"{_digits(first)}, level with the next best"
    percent = round(100 * (first - second) / abs(first), 1) if first else 0.0
    share = f" ({_digits(percent)}%)" if percent else ""
    return f"{_digits(first)}, {first - second:.2g}{share} above the next best"


# -- tables ----------------------------------------------------------------------------------------------


def _best_table(agent: Agent, best: Sequence[Mapping[str, Any]]) -> str:
    """Return the best as an aligned table."""
    world = agent.mission.world
    several, unit = world.sensor.settings > 1, world.cost_unit
    heads = [*(a.label for a in world.domain.axes), *(["level"] if several else [])]
    shown = {"value": "value", "cost": f"cost ({unit})", "left": f"left for more ({unit})"}
    if any("left_s" in one for one in best):
        shown["left_s"] = "left for more (s)"
    rows = []
    for n, one in enumerate(best, 1):
        level = [str(one["level"])] if several else []
        numbers = [_digits(one.get(key)) for key in shown]
        rows.append([str(n), *map(_digits, one["site"]), *level, *numbers])
    return _aligned(["", *heads, *shown.values()], rows)


def _is_table(value: object) -> bool:
    """Say whether something is a list of mappings, which is told as a table."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _is_list_in_words(value: object) -> bool:
    """Say whether a policy told several things in one text, which takes a line of its own."""
    return isinstance(value, str) and any(mark in value for mark in (", ", "; ", ": "))


def _table_of(domain: Domain, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a list of mappings as an aligned table, a column a key; control sets by their variables."""
    keys = list(dict.fromkeys(key for row in rows for key in row))

    def cell(key: str, value: object) -> str:
        if key == "set" and isinstance(value, int) and 0 <= value < len(domain.control_sets):
            return domain.control_sets[value].name
        if isinstance(value, list | tuple):
            return ", ".join(_digits(one) for one in value)
        return {True: "yes", False: "no"}[value] if isinstance(value, bool) else _digits(value)

    heads = [key.replace("_", " ") for key in keys]
    return _aligned(heads, [[cell(key, row.get(key)) for key in keys] for row in rows])


def _had(agent: Agent, why: Mapping[str, Any]) -> float | None:
    """Return the average value that is had already, all doubt against it; None where none is told."""
    gain = why.get("lcb", why.get("had"))
    return None if gain is None or "worst" not in why else _on_worst(agent, why["worst"], gain)


def _on_worst(agent: Agent, worst: float, gain: float) -> float:
    """Return the value that is better than the worst by `gain`."""
    sign = agent.mission.question.sign
    return worst + sign * gain


def _sets_table(agent: Agent, why: Mapping[str, Any]) -> str:
    """Return what is known of each control set as an aligned table, and what its words mean.

    Its bounds are told as values, not as gains on the worst; of what is not known yet that is said.
    """
    world, rows, minimises = agent.mission.world, why["sets"], agent.mission.question.sign < 0
    unit, of_value = world.cost_unit, world.quantity.unit
    heads = ["control set", "at best" + ("" if of_value in ("", "1") else f" ({of_value})")]
    heads += [f"mean cost ({unit})", f"cost at least ({unit})", "plays", "good enough"]
    enough = {True: "may be", False: "no", None: "exploring"}
    table = [
        [
            agent.domain.control_sets[one["set"]].name,
            "not yet known" if one["ucb"] is None else _digits(_on_worst(agent, why["worst"], one["ucb"])),
            *(_digits(one[key]) for key in ("cost", "cost_low", "plays")),
            enough[one["plausible"]],
        ]
        for one in rows
    ]
    bounds = getattr(agent.mission.policy, "bounds_are", "")
    notes = [
        f"at best: the {'least' if minimises else 'most'} that a set may come to on average over what it "
        f"leaves to chance, all doubt in its favour; {bounds}"
    ]
    if any(one["plausible"] is None for one in rows):
        notes.append("exploring: no set is given up before that has ended")
    elif (had := _had(agent, why)) is not None:
        share = 1.0 - why["alpha"]
        limit = why["worst"] + share * (had - why["worst"])
        notes.append(
            f"good enough: {amount(limit, world.quantity)} or {'less' if minimises else 'more'}, which is "
            f"{_digits(100.0 * share)}% of the way from the worst to what is had so far"
        )
    return "\n".join([_aligned(heads, table), "", *(f"  {note}" for note in notes)])


def _aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an aligned table, numbers to the right."""
    from io import StringIO

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(escape(head), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(escape, row))
    out = StringIO()
    Console(file=out, width=1000, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _listed(settings: Mapping[str, Any]) -> str:
    """Return settings side by side; of those with many entries only how many there are."""
    told = (
        f"{key.replace('_', ' ')} {f'({len(x)} entries)' if isinstance(x, list | dict) else _digits(x)}"
        for key, x in settings.items()
    )
    return ", ".join(told)


def _digits(value: Any) -> str:
    """Return a number to four digits, thousands whole; a dash for none, and words as they are.

    Examples
    --------
    >>> _digits(0.123456), _digits(12345.6), _digits(None), _digits("inf")
    ('0.1235', '12,346', '-', 'inf')
    """
    if value is None:
        return "-"
    if isinstance(value, bool | str):
        return str(value).lower()
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
