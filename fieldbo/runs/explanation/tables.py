"""Tables and numbers in explanations of orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fieldbo.agent.agent import Agent
from fieldbo.domain.domain import Domain

SET_KEYS = {"set", "ucb", "cost", "cost_low", "plays", "plausible"}
"""Keys of each row of a table of control sets."""


def best_bound(agent: Agent, why: Mapping[str, Any]) -> float | None:
    """Return the confidence bound of the best average value so far; None if the policy records none."""
    gain = why.get("lcb", why.get("had"))
    return None if gain is None or "worst" not in why else _value_of(agent, why["worst"], gain)


def _value_of(agent: Agent, worst: float, gain: float) -> float:
    """Return the value that is better than the worst value by `gain`."""
    sign = agent.mission.question.sign
    return worst + sign * gain


def best_table(agent: Agent, best: Sequence[Mapping[str, Any]]) -> str:
    """Return the best candidates as an aligned table."""
    world = agent.mission.world
    unit, levels = world.cost_unit, ["level"] if world.sensor.settings > 1 else []
    columns = {"value": "value", "cost": f"cost ({unit})", "left": f"left after ({unit})"}
    if any("left_s" in candidate for candidate in best):
        columns["left_s"] = "left after (s)"
    rows = [
        [
            str(rank),
            *_coordinates(world.domain, candidate["site"]),
            *(str(candidate[key]) for key in levels),
            *(number(candidate.get(key)) for key in columns),
        ]
        for rank, candidate in enumerate(best, 1)
    ]
    return _aligned(["", *_axes(world.domain), *levels, *columns.values()], rows)


def _axes(domain: Domain) -> list[str]:
    """Return the heads of the columns of `_coordinates`."""
    if domain.georeference is None:
        return [axis.label for axis in domain.axes]
    others = [axis.label for j, axis in enumerate(domain.axes) if j not in domain.georeference.axes]
    return ["latitude", "longitude", *others]


def _coordinates(domain: Domain, site: Sequence[float | None]) -> list[str]:
    """Return a site's coordinates or, with a CRS, its latitude, longitude and other coordinates."""
    if domain.georeference is None:
        return [number(x) for x in site]
    others = [number(x) for j, x in enumerate(site) if j not in domain.georeference.axes]
    return [*domain.georeference.text(site).split(", "), *others]  # type: ignore[arg-type]


def is_table(value: object) -> bool:
    """Return True for a list of mappings, which is shown as a table."""
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def table_of(domain: Domain, rows: Sequence[Mapping[str, Any]]) -> str:
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


def sets_table(agent: Agent, why: Mapping[str, Any]) -> str:
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
    elif (bound := best_bound(agent, why)) is not None:
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
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
