"""What advice says beside its numbers: the question, and how far to trust the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fieldbo.mission.amounts import amount
from fieldbo.mission.mission import Mission
from fieldbo.results.words import question_text
from fieldbo.runs.advice.advice import PolicyAdvice
from fieldbo.runs.advice.search import share_interval

_TRIVIAL = 0.1  # share of fields that all lie on one side of the threshold, from which on there is a note


def question_asked(mission: Mission) -> str:
    """Return the question; that of a quantile stays one, as each drawn field has its own."""
    threshold = mission.settings.get("question", {}).get("threshold")
    quantity = mission.world.quantity
    if isinstance(threshold, Mapping) and "quantile" in threshold:
        side = getattr(mission.question, "side", "above")
        return f"where is {quantity.name} at or {side} the {threshold['quantile']:g} quantile of each field?"
    return question_text(mission.question, quantity)


def _largest(p: PolicyAdvice, unit: str) -> str:
    """Return the largest battery that was tried, in words."""
    if p.each is None:
        return f"{p.battery:,.4g} {unit}, the largest battery"
    return f"{p.batteries} batteries, the most"


def notes(policies: Sequence[PolicyAdvice], redrawn: int, mission: Mission, probability: float) -> list[str]:
    """Return what the runs say about how far to trust the advice."""
    said = list[str]()
    trials = policies[0].trials
    shares = np.array([trial.share for trial in trials])
    empty, full = int((shares <= 0).sum()), int((shares >= 1).sum())
    if empty + full > _TRIVIAL * len(trials):
        said.append(
            f"in {empty} of {len(trials)} drawn fields no site lies in the set, and in {full} all do: the "
            "question is trivial there, and the advice says little; check threshold, mean and variance"
        )
    target = policies[0].target
    if target is not None:
        easy = int((2 * shares / (1 + shares) >= target).sum())  # F1 if every site counts as inside
        if easy > _TRIVIAL * len(trials):
            said.append(
                f"in {easy} of {len(trials)} drawn fields, a map on which every site lies in the set reaches "
                f"F1 {target:g} without any reading; ask for a higher target to learn what a survey needs"
            )
    if redrawn:
        said.append(f"{redrawn} drawn fields that lie below 0 were drawn again")
    spec, unit = mission.vehicles[0], mission.world.cost_unit
    given = mission.settings.get("agent", {}).get("full_battery")
    full_battery = np.inf if given is None else amount(given, unit, "agent.full_battery")
    for p in policies:
        if p.answered_short:
            said.append(
                f"{p.policy}: {p.answered_short} of {len(p.trials)} runs ended below the target because the "
                "question counted as answered: no battery changes that; set [stop] expected_f1 higher"
            )
        limited = sum(t.end_reason == "step limit" for t in p.trials)
        if limited:
            said.append(
                f"{p.policy}: {limited} of {len(p.trials)} runs ended at max_steps = {mission.max_steps}"
            )
        if not p.enough:
            low, high = share_interval(p.reached, len(p.trials))
            said.append(
                f"{p.policy}: the target is not reached with probability {probability:g} even with "
                f"{_largest(p, unit)} tried ({p.reached / len(p.trials):.2f}, "
                f"{low:.2f} to {high:.2f})"
            )
        if (p.each or p.battery) > full_battery:
            said.append(f"{p.policy}: this is more than the full battery of {full_battery:,.4g} {unit}")
    if spec.time_limit_s is not None:
        said.append(f"time_limit_s = {spec.time_limit_s:g} limits every run, whatever the battery")
    return said
