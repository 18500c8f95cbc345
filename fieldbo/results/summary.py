"""The numbers of ``summary.json``."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from fieldbo.domain.georeference import TABLE_DIGITS
from fieldbo.results.answers import OptimumAnswer
from fieldbo.results.cell_runs import SetPlays
from fieldbo.results.outcome import Outcome
from fieldbo.results.recommendation import BestPlay


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
        **_goal(outcome),
        **_plays(outcome),
        **outcome.cell_runs.summary(),
        **_cell_scores(outcome),
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


def _goal(outcome: Outcome) -> dict[str, Any]:
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


def _cell_scores(outcome: Outcome) -> dict[str, float | None]:
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
