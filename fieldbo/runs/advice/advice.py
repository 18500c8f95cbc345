"""What advice says: the battery that a target needs, and what to expect of a battery, by policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.errors import counted
from fieldbo.mission.amounts import amount
from fieldbo.mission.mission import Mission
from fieldbo.results.metrics import Score
from fieldbo.results.words import aligned, question_text
from fieldbo.runs.advice.search import Needed, quantile, share_interval, successes
from fieldbo.runs.advice.trial import Trial

FRACTIONS = (0.25, 0.5, 0.75, 1.0)
"""Fractions of the battery at which scores are stated."""

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Quantiles over the fields."""


@dataclass(frozen=True, eq=False)
class PolicyAdvice:
    """Advice for one policy.

    Attributes
    ----------
    policy : str
    battery : float
        Of the `trials`; with a target and no battery given, the answer, or the largest battery tried.
    trials : tuple of Trial
        Runs of the mission as it is, with that battery.
    score : Score
        F1, or the regret in the unit of the values.
    target : float or None
        F1 to reach.
    needed : Needed or None
        What the search found; None if a battery was given.
    each : float or None
        What one battery holds if the mission changes it: `battery` is what all hold together. None otherwise.
    """

    policy: str
    battery: float
    trials: tuple[Trial, ...]
    score: Score
    target: float | None = None
    needed: Needed | None = None
    each: float | None = None

    @property
    def batteries(self) -> int:
        """Number of batteries."""
        return 1 if self.each is None else round(self.battery / self.each)

    @property
    def enough(self) -> bool:
        """False if even the largest battery tried does not reach the target often enough."""
        return self.needed is None or self.needed.battery is not None

    @property
    def reached(self) -> int:
        """Number of trials that end at the target or above; 0 without one."""
        return 0 if self.target is None else successes(self.trials, self.target)

    @property
    def reached_interval(self) -> tuple[float, float]:
        """The 90% interval of the probability to reach the target."""
        return share_interval(self.reached, len(self.trials))

    @property
    def answered(self) -> int:
        """Number of trials that ended because the question counted as answered."""
        return self._ended("question answered")

    def _ended(self, reason: str) -> int:
        return sum(trial.end_reason == reason for trial in self.trials)

    @property
    def answered_short(self) -> int:
        """Number of trials that ended so, but below the target: no battery would have helped."""
        if self.target is None:
            return 0
        return sum(t.end_reason == "question answered" and t.final < self.target for t in self.trials)

    def half(self) -> tuple[float, float, float]:
        """Return the battery that half of the fields need, and its 90% interval; only after a search."""
        assert self.needed is not None
        return quantile(self.needed.needs, 0.5)

    def scores(self, costs: Array) -> Array:
        """Return the `QUANTILES` (5, k) over the fields of the score at given costs (k,)."""
        return np.quantile([trial.at(costs) for trial in self.trials], QUANTILES, axis=0)

    def to_plain(self) -> dict[str, Any]:
        """Return a dict of strings, numbers and lists."""
        costs = [self.battery * fraction for fraction in FRACTIONS]
        plain: dict[str, Any] = {
            "battery": self.battery,
            "enough": self.enough,
            "fields": len(self.trials),
            "answered": self.answered,
            "at": costs,
            "quantiles": dict(zip(map(str, QUANTILES), self.scores(np.array(costs)).tolist(), strict=True)),
        }
        if self.each is not None:
            changes = {"batteries": self.batteries, "changes": self.batteries - 1, "each": self.each}
            plain = {"battery": self.battery, **changes, **plain}
        if self.target is not None:
            plain |= {"reached": self.reached, "reached_interval90": list(self.reached_interval)}
        if self.needed is not None:
            half = [x if np.isfinite(x) else None for x in self.half()]
            plain |= {"half_of_the_fields_need": half[0], "half_interval90": half[1:]}
        return plain


@dataclass(frozen=True, eq=False)
class Advice:
    """Advice on the battery of a mission; `print` it, or read its attributes.

    Attributes
    ----------
    mission, question : str
        Name of the mission, and its question in words.
    policies : tuple of PolicyAdvice
        One per policy, on the same fields.
    target : float or None
        F1 to reach.
    probability : float
        With which to reach it.
    cost_unit, unit : str
        Of the battery, and of the regret.
    source : str
        Where the fields come from.
    notes : tuple of str
        What to know before trusting the advice.
    """

    mission: str
    question: str
    policies: tuple[PolicyAdvice, ...]
    target: float | None
    probability: float
    cost_unit: str
    unit: str
    source: str
    notes: tuple[str, ...] = ()

    def __getitem__(self, policy: str) -> PolicyAdvice:
        """Return the advice for a policy."""
        return next(p for p in self.policies if p.policy == policy)

    @property
    def score(self) -> Score:
        """F1, or the regret."""
        return self.policies[0].score

    def to_plain(self) -> dict[str, Any]:
        """Return a dict of strings, numbers and lists, as in ``advice.json``."""
        return {
            "mission": self.mission,
            "question": self.question,
            "target": self.target,
            "probability": self.probability,
            "cost_unit": self.cost_unit,
            "score": self.score.name,
            "fields": self.source,
            "notes": list(self.notes),
            "policies": {p.policy: p.to_plain() for p in self.policies},
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(advice: Advice) -> list[str]:
    """Return the advice in words."""
    lines = [f"{advice.mission}: {advice.question}", f"fields drawn from {advice.source}"]
    shares = [t.share for p in advice.policies[:1] for t in p.trials]
    if not np.isnan(shares).any():
        low, middle, high = 100 * np.quantile(shares, (0.1, 0.5, 0.9))
        lines.append(
            f"in the set: {middle:.0f}% of the sites (central 80% of the fields: {low:.0f}% to {high:.0f}%)"
        )
    if any(p.needed is not None for p in advice.policies):
        lines += ["", *_needed_lines(advice)]
    elif advice.target is not None:
        lines += ["", *_reached_lines(advice)]
    return [*lines, "", *_expected_lines(advice), *_notes(advice)]


def _needed_lines(advice: Advice) -> list[str]:
    unit, each = _unit(advice), advice.policies[0].each
    what = "battery" if each is None else "batteries"
    rows = [["policy", f"{what} ({unit})", "fresh fields that reach it", f"half of the fields need ({unit})"]]
    for p in advice.policies:
        middle, low, high = p.half()
        battery = _size(p, p.battery) if p.enough else f"more than {_size(p, p.battery)}"
        if p.each is not None and p.enough:
            battery += f", {counted(p.batteries - 1, 'change')}"
        most = f"to {_size(p, high)}" if np.isfinite(high) else "or more"
        half = "more than half do not reach it"
        if np.isfinite(middle):
            half = f"{_size(p, middle)} ({_size(p, low)} {most})"
        rows.append([p.policy, battery, _share(p), half])
    return [
        f"{what} to reach F1 {advice.target:g} with probability {advice.probability:g}, with the trip home, "
        "reserve and margin; (90% intervals)",
        *aligned(rows),
    ]


def _reached_lines(advice: Advice) -> list[str]:
    rows = [
        ["policy", f"battery ({_unit(advice)})", f"fields that reach F1 {advice.target:g} (90% interval)"]
    ]
    rows += [[p.policy, _size(p, p.battery), _share(p)] for p in advice.policies]
    return aligned(rows)


def _share(p: PolicyAdvice) -> str:
    low, high = p.reached_interval
    n = len(p.trials)
    return f"{p.reached} of {n}: {p.reached / n:.2f} ({low:.2f} to {high:.2f})"


def _expected_lines(advice: Advice) -> list[str]:
    score, unit = advice.score, advice.cost_unit
    name = score.name if score.better == "larger" or advice.unit == "1" else f"{score.name} ({advice.unit})"
    rows = [["policy", "battery", *(f"at {100 * f:g}%" for f in FRACTIONS), "question answered"]]
    for p in advice.policies:
        low, middle, high = p.scores(p.battery * np.array(FRACTIONS))[[0, 2, 4]]
        cells = [f"{m:.3g} ({a:.3g} to {b:.3g})" for a, m, b in zip(low, middle, high, strict=True)]
        rows.append([p.policy, _sizes(p, unit), *cells, f"{p.answered} of {len(p.trials)}"])
    return [f"{name} to expect: median (central 80%) over {len(p.trials)} fields", *aligned(rows)]


def _notes(advice: Advice) -> list[str]:
    notes = [f"note: {note}" for note in advice.notes]
    return ["", *notes, "The advice holds if the field is like the drawn ones."]


def _unit(advice: Advice) -> str:
    """Return what the batteries of advice are counted in."""
    each = advice.policies[0].each
    return advice.cost_unit if each is None else f"of {_amount(each)} {advice.cost_unit}"


def _size(p: PolicyAdvice, battery: float) -> str:
    """Return a battery as an amount, or as a number of batteries."""
    return _amount(battery) if p.each is None else f"{round(battery / p.each)}"


def _sizes(p: PolicyAdvice, unit: str) -> str:
    return f"{_amount(p.battery)} {unit}" if p.each is None else f"{p.batteries} x {_amount(p.each)} {unit}"


def _amount(x: float) -> str:
    """Return an amount to three digits."""
    digits = max(0, 2 - int(np.floor(np.log10(x)))) if x > 0 else 0
    return f"{x:,.{digits}f}"


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
