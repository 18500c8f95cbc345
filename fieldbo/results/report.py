"""The closing report of a run, as `print(result)` and ``fieldbo run`` show it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fieldbo.belief.covering import MOST_AXES, distance_text
from fieldbo.clock import duration_text
from fieldbo.domain.domain import Domain
from fieldbo.domain.georeference import TABLE_DIGITS
from fieldbo.domain.places import compared
from fieldbo.errors import counted
from fieldbo.messages import EndReason
from fieldbo.results.answers import OptimumAnswer
from fieldbo.results.cell_runs import SetPlays
from fieldbo.results.outcome import Outcome
from fieldbo.results.recommendation import BestPlay
from fieldbo.results.words import coordinates, extreme, interval, rounded, short, spent_of
from fieldbo.world.world import World

_ENDINGS = {
    EndReason.QUESTION_ANSWERED: "Question answered",
    EndReason.BATTERY_SPENT: "Battery spent",
    EndReason.TIME_LIMIT: "Time limit reached",
    EndReason.STEP_LIMIT: "Step limit reached",
    EndReason.STOPPED_BY_POLICY: "Stopped by the policy",
    EndReason.STOPPED_BY_OPERATOR: "Stopped by the operator",
    EndReason.VEHICLE_LOST: "Vehicle lost",
}
_HECTARE, _HECTARES = 1e4, 10.0  # m2, and the size of a domain from which on areas are in ha
_NOTHING = 1e-9  # of the domain: such an area is a sum of tiny probabilities
_MOST_PLACES = 3  # that are not inspected
_LONG_S = 120.0  # a cost in seconds that is easier to read in minutes
_MUCH = 0.1  # of the range of the readings, by which a measured value differs from the stated one
_SAME = 0.01  # relative difference of planned and real cost that is not worth a mention


@dataclass(frozen=True)
class Report:
    """A closing report.

    Attributes
    ----------
    heading : str
        Why the run ended, and after how many sites, or readings and sites if these differ.
    rows : tuple of (str, str)
        Labels and values: the answer, its scores, and the cost.
    notes : tuple of str
    """

    heading: str
    rows: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """The rows as text, with their values aligned.

        Examples
        --------
        >>> Report("Battery spent after 3 sites.", (("regret", "0.2"), ("cost", "9 of 9 s"))).lines
        ('regret: 0.2', 'cost:   9 of 9 s')
        """
        width = 1 + max((len(label) for label, _ in self.rows), default=0)
        return tuple(f"{label + ':':<{width}} {value}" for label, value in self.rows)

    def __str__(self) -> str:
        indented = [*self.lines, *(f"note: {note}" for note in self.notes)]
        return "\n".join([self.heading, *(f"  {line}" for line in indented)])


def report(outcome: Outcome) -> Report:
    """Return the closing report of a run."""
    numbers = summary(outcome)
    answer = _optimum if isinstance(outcome.answer, OptimumAnswer) else _level_set
    rows = [*answer(outcome, numbers), *_goal(outcome), *_cell_scores(numbers), *_costs(numbers)]
    rows += _cell_runs(numbers)
    return Report(_heading(outcome, numbers), tuple(rows), tuple(numbers["notes"]))


def _heading(outcome: Outcome, numbers: dict[str, Any]) -> str:
    taken = counted(numbers["steps"], "sample") if outcome.cell_runs.names else _readings(outcome)
    if outcome.end_reason is None:
        return f"Not finished: {taken} so far."
    ending = "Time limit reached" if numbers["limit"] == "time" else _ENDINGS[outcome.end_reason]
    return f"{ending} after {taken}."


def _readings(outcome: Outcome) -> str:
    """Return the number of sites that were visited and, if it differs, that of the readings."""
    readings, sites = len(outcome.values), counted(outcome.visited, "site")
    return sites if readings == outcome.visited else f"{counted(readings, 'reading')} at {sites}"


def _level_set(outcome: Outcome, numbers: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield F1, and the area of the level set."""
    scored = "" if numbers["f1"] is None else f"{numbers['f1']:.3f} against the truth; "
    value = "unknown" if numbers["expected_f1"] is None else f"{numbers['expected_f1']:.3f}"
    expected = f"{value} {interval(numbers['expected_f1_interval90'], '.3f')}"
    yield "F1", f"{scored}model expects {expected}"
    side = numbers.get("side", "above")
    whole = float(outcome.mission.world.domain.cells.sum())
    area = _sizes(numbers, side, whole)
    share = numbers.get("threshold_of_maximum")
    of_maximum = "" if share is None else f"; the threshold is {100 * share:g}% of the maximum"
    yield f"{side} {outcome.mission.world.quantity.amount(numbers['threshold'])}", f"{area}{of_maximum}"
    if numbers["not_inspected_area"] > 0:
        yield "not inspected", _not_inspected(outcome.mission.world.domain, numbers, whole)


def _not_inspected(domain: Domain, numbers: dict[str, Any], whole: float) -> str:
    """Return how much was not inspected, where, and how large a patch could be missed."""
    unit, factor = _unit(numbers, whole)

    def shown(area: float) -> str:
        return f"{_area(factor * area, factor * whole)} {unit}".rstrip()

    places, all_of_it = numbers["not_inspected_places"], numbers["not_inspected_area"]
    share = f"{all_of_it / whole:.0%} of the domain"
    named = places[:_MOST_PLACES]
    elsewhere = all_of_it - sum(each["area"] for each in named)
    parts = [f"{shown(each['area'])} {each['place']}" for each in named]
    if elsewhere > _SAME * all_of_it:
        parts.append(f"{shown(elsewhere)} elsewhere")
    if len(parts) == 1 and named:
        where = f"{shown(all_of_it)} {named[0]['place']}, {share}"
    else:
        where = f"{shown(all_of_it)}, {share}" + (f" ({'; '.join(parts)})" if named else "")
    missed = numbers["largest_missed"]
    if missed is None or domain.dimension > MOST_AXES:
        return where
    return f"{where}; largest patch that could be missed: {distance_text(domain, missed)}"


def _unit(numbers: dict[str, Any], whole: float) -> tuple[str, float]:
    """Return the unit in which areas are shown, and the factor that converts them to it."""
    if numbers["area_unit"] == "m2" and whole >= _HECTARES * _HECTARE:
        return "ha", 1.0 / _HECTARE
    return numbers["area_unit"], 1.0


def _sizes(numbers: dict[str, Any], side: str, whole: float) -> str:
    """Return the size of the level set with its interval, its share of the domain, and the true size."""
    size, true = numbers[f"area_{side}"], numbers[f"area_{side}_true"]
    unit, factor = _unit(numbers, whole)

    def shown(area: float) -> str:
        return _area(factor * area, factor * whole)

    low, high = (shown(end) for end in numbers[f"area_{side}_interval90"])
    if size is None:
        return f"unknown ({low} to {high} {unit})".replace(" )", ")")
    area = f"{shown(size)} {unit}".rstrip() + f" ({low} to {high}), {size / whole:.0%} of the domain"
    return area if true is None else f"{area}; {shown(true)} in truth"


def _area(area: float, whole: float) -> str:
    """Return an area, rounded to a whole number if large, else to three digits; 0 if next to nothing."""
    return short(0.0 if area < _NOTHING * whole else area)


def _goal(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Yield whether the answer reaches the goal that the mission sets."""
    verdict = outcome.verdict
    if verdict is None:
        return
    if isinstance(outcome.answer, OptimumAnswer):
        goal = f"regret of at most {100 * verdict.goal:g}% of the range of the readings"
    else:
        goal = f"F1 of at least {verdict.goal:g}"
    domain = outcome.mission.world.domain
    sure = f"{goal} with a probability of {verdict.wanted:g}"
    if verdict.within is not None:
        sure += f", and no place farther than {distance_text(domain, verdict.within)} from a reading"
    reached = "reached" if verdict.answered else "not reached"
    if verdict.too_far and verdict.farthest is not None and verdict.farthest < math.inf:
        reached += f", because one is {distance_text(domain, verdict.farthest)} away"
    elif verdict.unseen and verdict.probability < verdict.wanted:
        reached += f" (probability {verdict.probability:.2f}), because something better may lie unseen"
    elif verdict.unseen:
        reached += ", because the readings leave gaps"
    elif verdict.unfitted:
        reached += ", because the model has not been fitted to the latest readings"
    elif verdict.probability > 0:
        reached += f" (probability {verdict.probability:.2f})"
    yield "goal", f"{sure}: {reached}"


def _optimum(outcome: Outcome, numbers: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the reported optimum and its regret; among control sets, the recommended play."""
    world, question = outcome.mission.world, outcome.mission.question
    if outcome.play is not None:
        yield "recommended play", outcome.play.in_words(world)
        sets = world.domain.control_sets
        unpriced = (p for p in outcome.best_plays if p.as_good and p.cost is None and p is not outcome.play)
        if names := ", ".join(sets[play.number].name for play in unpriced):
            yield "equally good", f"{names}, as far as is known, at a cost not known yet"
        return
    value = _stated(world, numbers["reported_value"], numbers["reported_value_interval90"])
    all_set = "with everything set, " if world.domain.control_sets else ""
    place = coordinates(world.domain, numbers["reported_site"])
    yield f"{extreme(question)} value", f"{value} at {all_set}{place}"
    if (best := outcome.measured_elsewhere) is not None:
        measured = f"{world.quantity.amount(best.value)} at {coordinates(world.domain, best.point)}"
        yield "best measured", measured
    elif (there := outcome.best_measured) is not None and _differs(outcome, there.value):
        yield "best measured", f"{world.quantity.amount(there.value)}, at the same place"
    scored = "" if numbers["regret"] is None else f"{numbers['regret']:.3g} against the truth; "
    expected = f"{numbers['expected_regret']:.3g} {interval(numbers['expected_regret_interval90'], '.3g')}"
    yield "regret", f"{scored}model expects {expected}"


def _stated(world: World, value: float, ends: list[float]) -> str:
    """Return the stated value with its interval; without a number at or below the limit of detection."""
    sensor, amount = world.sensor, world.quantity.amount
    if sensor.below is None or sensor.detects(value):
        return f"{amount(value)} {interval(ends)}"
    text = f"at or below the limit of detection, {amount(sensor.below)},"
    return f"{text} or up to {amount(ends[1])}," if sensor.detects(ends[1]) else text


def _differs(outcome: Outcome, measured: float) -> bool:
    """Return whether what was measured at the reported place differs from what is stated of it by much."""
    assert isinstance(outcome.answer, OptimumAnswer)
    believed = outcome.values[outcome.believed]
    return outcome.mission.world.sensor.detects(measured) and bool(
        abs(measured - outcome.answer.reported_value) > _MUCH * np.ptp(believed)
    )


def _cell_scores(numbers: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the regrets of a factory cell's best play or best sample, where the truth is known."""
    if numbers.get("simple_regret") is not None:
        play = numbers["play"]
        recommended = "" if play is None else f"; {play['regret']:.3g} for the recommended one"
        yield "regret of the best play", f"{numbers['simple_regret']:.3g}{recommended}"
    elif numbers.get("best_regret") is not None:
        yield "regret of the best sample", f"{numbers['best_regret']:.3g}"


def _costs(numbers: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the cost, the time, and the cost of each sensor level."""
    unit, battery = numbers["cost_unit"], numbers["battery"]
    yield "cost", _against_plan(numbers)
    if "time_limit_s" in numbers:
        limit = numbers["time_limit_s"]
        yield "time", f"{duration_text(numbers['time_s'])} of {duration_text(limit)}"
    for level in numbers.get("levels", ()):
        cost = f"{rounded(level['cost'], battery)} {unit}"
        yield f"level {level['level']}", f"{counted(level['readings'], 'reading')} for {cost}"


def _against_plan(numbers: dict[str, Any]) -> str:
    """Return the cost and, if it differs by at least 1 %, the planned cost."""
    cost, planned, battery = numbers["cost"], numbers["planned_cost"], numbers["battery"]
    unit, batteries = numbers["cost_unit"], numbers.get("batteries", 1)
    spent = spent_of(cost, battery, unit, numbers.get("batteries_used", 1), batteries)
    if unit == "s" and cost >= _LONG_S:
        spent += f" ({duration_text(cost)})"
    if numbers["costs"] == "unknown":
        return f"{spent}, not known beforehand"
    if cost == planned or abs(cost - planned) < _SAME * planned:
        return spent
    return f"{spent}, {compared(cost, planned, f'the {rounded(planned, battery)} planned')}"


def _cell_runs(numbers: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the runs of each module or the plays of each control set, and what the field measured."""
    if modules := numbers.get("modules"):
        yield "runs", ", ".join(f"{module['name']} {module['runs']}" for module in modules)
    if measured := numbers.get("measured"):
        yield "measured", ", ".join(f"{name} {total:.4g}" for name, total in measured.items())
    if played := [s for s in numbers.get("control_sets", ()) if s["plays"]]:
        unit = numbers["cost_unit"]
        yield "plays", "; ".join(f"{s['set']}: {s['plays']} for {s['cost']:.3g} {unit}" for s in played)


def summary(outcome: Outcome) -> dict[str, Any]:
    """Return a run in numbers; only the keys that apply to its question, its world and its sensor."""
    mission, answer, accounts = outcome.mission, outcome.answer, outcome.accounts
    world, column, readings = mission.world, answer.score.column, outcome.values
    costs, scores = [s.cost for s in outcome.curve], [getattr(s, column) for s in outcome.curve]
    return {
        "run": outcome.run,
        "mission": mission.name,
        "world": world.name,
        "policy": mission.policy_kind,
        "draw": world.draw,
        "seed": mission.seed,
        "question": answer.kind,
        "value_unit": world.quantity.unit,
        "end_reason": None if outcome.end_reason is None else outcome.end_reason.value,
        "complete": outcome.end_reason is not None,
        **answer.summary(costs, scores),
        **_best_measured(outcome),
        **_goal_numbers(outcome),
        **_plays(outcome),
        **outcome.cell_runs.summary(),
        **_cell_numbers(outcome),
        **_measured(outcome),
        "cost": outcome.cost,
        "planned_cost": math.fsum(a.planned for a in accounts),
        "cost_unit": world.cost_unit,
        "costs": mission.costs,
        "battery": sum(c.battery for c in mission.vehicles),
        **_batteries(outcome),
        "left": math.fsum(a.left for a in accounts),
        "time_s": max((a.time_s for a in accounts), default=0.0),
        "planned_time_s": max((a.planned_s for a in accounts), default=0.0),
        **_limits(outcome),
        "batch": mission.batch,
        "steps": outcome.steps,
        "readings": len(readings),
        **_outliers(outcome),
        **_failures(outcome),
        **({"levels": _levels(outcome)} if world.sensor.settings > 1 else {}),
        "start": mission.vehicles[0].start.tolist(),
        "hyperparameters": outcome.hyperparameters.to_plain(),
        "notes": list(outcome.notes),
    }


def _best_measured(outcome: Outcome) -> dict[str, Any]:
    """Return the best measured place of an optimum; nothing without one."""
    best = outcome.best_measured
    if best is None:
        return {}
    place = {"best_measured_site": best.point.tolist(), "best_measured_value": best.value}
    georeference = outcome.mission.world.domain.georeference
    if georeference is None:
        return place
    return {
        **place,
        "best_measured_site_degrees": georeference.degrees(best.point)[0].round(TABLE_DIGITS).tolist(),
    }


def _goal_numbers(outcome: Outcome) -> dict[str, Any]:
    """Return the mission's goal, and whether the answer reaches it; nothing without a goal."""
    verdict = outcome.verdict
    return {} if verdict is None else {"stop": {**verdict.why["stop"], "reached": verdict.answered}}


def _plays(outcome: Outcome) -> dict[str, Any]:
    """Return the recommended play and the best play of each control set; nothing without control sets."""
    plays = outcome.cell_runs
    if not isinstance(plays, SetPlays) or not isinstance(outcome.answer, OptimumAnswer):
        return {}
    plain = partial(BestPlay.plain, world=outcome.mission.world, truth=plays.expected)
    return {
        "play": None if outcome.play is None else plain(outcome.play),
        "best_plays": [plain(play) for play in outcome.best_plays],
    }


def _cell_numbers(outcome: Outcome) -> dict[str, float | None]:
    """Return the last step's scores of a factory cell; None where unknown."""
    columns = outcome.cell_runs.columns
    last = {name: getattr(outcome.curve[-1], name) for name in columns} if outcome.curve else {}
    return {name: None if math.isnan(score) else score for name, score in last.items()}


def _measured(outcome: Outcome) -> dict[str, Any]:
    """Return the sums of quantities that the field measures as it runs, such as seconds."""
    names = () if (field := outcome.mission.world.field) is None else field.measured
    totals = {
        name: math.fsum(x for o in outcome.observations for x in (o.channels or {}).get(name, ()))
        for name in names
    }
    return {"measured": totals} if totals else {}


def _batteries(outcome: Outcome) -> dict[str, int]:
    """Return how many batteries there are, and how many were used; nothing without a recharge."""
    vehicles = outcome.mission.vehicles
    if all(spec.recharge is None for spec in vehicles):
        return {}
    used = sum(account.batteries_used for account in outcome.accounts)
    return {"batteries": sum(spec.batteries for spec in vehicles), "batteries_used": used}


def _limits(outcome: Outcome) -> dict[str, Any]:
    """Return the time limit, whether the vehicles are home, and the limit that ended the run."""
    accounts, numbers = outcome.accounts, dict[str, Any]()
    limits = [c.time_limit_s for c in outcome.mission.vehicles if c.time_limit_s is not None]
    if limits:
        numbers |= {"time_limit_s": min(limits), "left_s": min(a.left_s for a in accounts)}
    home = [a.home for a in accounts if a.home is not None]
    numbers["home"] = all(home) if home else None
    numbers["limit"] = next((a.limit for a in accounts if a.limit is not None), None)
    return numbers


def _outliers(outcome: Outcome) -> dict[str, int]:
    if not outcome.outliers_tested:
        return {}
    return {"outliers": int(np.count_nonzero(outcome.usable & ~outcome.believed))}


def _failures(outcome: Outcome) -> dict[str, Any]:
    """Return how many readings failed, and at how many sites they are likely to; nothing without any."""
    failures = outcome.failures
    if failures is None or not failures.failed:
        return {}
    failed, _ = failures.counts()
    avoided = failures.avoided
    return {
        "failures": {
            "readings": failed,
            "probability": failures.overall,
            "local": failures.local,
            "avoided": 0 if avoided is None else int(np.count_nonzero(avoided)),
        }
    }


def _levels(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the readings at each sensor level, and the cost of their orders."""
    level_of, levels = outcome.level_of_order, outcome.levels
    return [
        {
            "level": k,
            "noise_variance": level.variance,
            "readings": int(np.count_nonzero(levels == k)),
            "cost": math.fsum(o.cost for o in outcome.observations if level_of.get(o.order) == k),
        }
        for k, level in enumerate(outcome.mission.world.sensor.levels)
    ]
