"""Advise on the battery of a mission before it begins."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from fieldbo.belief.question import ShareOfMaximum
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.amounts import amount
from fieldbo.mission.default_policy import AUTO
from fieldbo.mission.files import write_whole
from fieldbo.mission.kinds import POLICIES
from fieldbo.mission.load import load_mission, merged
from fieldbo.mission.mission import Mission
from fieldbo.results.answers import ANSWERS
from fieldbo.results.formatting import question_text
from fieldbo.runs.advice.advice import Advice, PolicyAdvice
from fieldbo.runs.advice.checks import check_numbers, check_supported
from fieldbo.runs.advice.fields import Draw, FieldSource
from fieldbo.runs.advice.search import needed, rank_of, share_interval
from fieldbo.runs.advice.table import Trials
from fieldbo.runs.advice.trial import Task, Trial
from fieldbo.runs.comparison import label
from fieldbo.runs.folder import describe

SUMMARY = "advice.json"

PATIENCE_S = 1800.0
"""Advice that would take longer than this is only given with `patient`."""

_CHECKED = 1.5  # runs to check an answer, and every other time to correct it, relative to one to read it off
_LARGER = 2.0 + 4.0 + 8.0  # where the first battery is too small: runs with the larger ones, relative to it
_LONG_S = 120.0  # a run that takes longer says enough
_MOST_REDRAWN = 1000
_TRIVIAL = 0.1  # share of fields that all lie on one side of the threshold, from which on there is a note

Progress = Callable[[str, int, int], object]


def advise(
    mission: Path | str,
    target: float | None = None,
    probability: float = 0.8,
    battery: float | str | None = None,
    *,
    fields: int = 40,
    policies: Sequence[str] = (),
    overrides: Mapping[str, Any] | None = None,
    out: Path | str | None = None,
    jobs: int = 1,
    seed: int = 0,
    patient: bool = False,
    on_estimate: Callable[[float], object] | None = None,
    on_progress: Progress | None = None,
) -> Advice:
    """Say which battery a mission needs, or what to expect of a battery.

    The mission is simulated as it is, from its start, in fields that are drawn from its belief: from the
    posterior given its earlier readings and the survey of its world, or else from the prior. A world without
    a field will do.

    Parameters
    ----------
    mission : Path or str
        Name or TOML file.
    target : float, optional
        F1 to reach at the end. Without `battery`, the battery that it needs is searched for.
    probability : float
        With which to reach it.
    battery : float or str, optional
        Battery to judge, by default the mission's own: a number in the world's cost unit, or text with a
        unit.
    fields : int
        Number of drawn fields; a search uses as many again to check its answer.
    policies : sequence of str
        Kinds of policies to advise on, all in the same fields; by default the mission's own. ``"auto"`` is
        the default for such a mission.
    overrides : mapping, optional
        Keys to replace in the mission, as in `load_mission`.
    out : Path or str, optional
        Folder for the table of runs and the advice; by default ``runs/<mission>-advice``. Runs that it holds
        are not repeated, so that interrupted advice continues.
    jobs : int
        Number of parallel processes.
    seed : int
        Of the drawn fields.
    patient : bool
        Whether to begin even if it takes more than half an hour.
    on_estimate : callable, optional
        Called with the seconds that it will take, once they are known and before most runs.
    on_progress : callable, optional
        Called with what is being done, and the number of runs finished and in total for it.

    Returns
    -------
    Advice

    Raises
    ------
    InputError
        An option is out of range, the mission is invalid, can't pay a reading or is of a kind that is not
        supported (chains of modules, control sets, several vehicles), it would take too long, or `out` holds
        runs with other settings.

    Examples
    --------
    >>> import fieldbo, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     advice = fieldbo.advise(
    ...         "lake-level-set-unit-cost", battery=10, fields=3, out=folder, policies=["random"]
    ...     )
    >>> advice["random"].battery, len(advice["random"].trials)
    (10.0, 3)
    """
    overrides = dict(overrides or {})
    if battery is not None:
        overrides = merged(overrides, {"agent": {"battery": battery}})
    check_numbers(target, probability, fields, jobs, seed)
    search = target is not None and battery is None
    if search:
        rank_of(fields, probability)
    overrides = _dated(str(mission), overrides)
    cases = _cases(str(mission), policies, overrides)
    for policy, case in cases.items():
        check_supported(case.mission, target, policy)
    first = next(iter(cases.values())).mission
    folder = folder_of(mission, out)
    marks = {policy: _mark(case.mission, seed) for policy, case in cases.items()}
    source = FieldSource(first, seed)
    draws = _Draws(source)
    with Trials.opened(folder, marks, jobs) as trials:
        work = _Work(str(mission), cases, draws, trials, target, fields, on_progress)
        seconds = work.estimate(search)
        if on_estimate is not None:
            on_estimate(seconds)
        if seconds > PATIENCE_S and not patient:
            raise _too_long(seconds, fields)
        by_policy = tuple(
            work.searched(policy, probability) if search else work.expected(policy) for policy in cases
        )
    advice = Advice(
        first.name,
        _question(first),
        by_policy,
        target,
        probability,
        first.world.cost_unit,
        first.world.quantity.unit,
        source.words,
        (*source.notes, *_notes(by_policy, draws, first, probability)),
    )
    write_whole(folder / SUMMARY, json.dumps(advice.to_plain(), indent=2).encode() + b"\n")
    return advice


def folder_of(mission: Path | str, out: Path | str | None) -> Path:
    """Return the folder of advice on a mission: `out`, or ``runs/<mission>-advice``."""
    return Path("runs") / f"{label(str(mission))}-advice" if out is None else Path(out)


@dataclass(frozen=True, eq=False)
class _Case:
    """A mission with one of the policies, and the overrides that make it."""

    mission: Mission
    overrides: Mapping[str, Any]


class _Draws:
    """The drawn fields, each drawn when it is first needed.

    Attributes
    ----------
    redrawn : int
        Number of fields that were drawn again, because a fraction of their maximum has no meaning.
    """

    def __init__(self, source: FieldSource) -> None:
        self._source, self._drawn = source, dict[int, Draw]()
        self.redrawn = 0

    def __call__(self, numbers: Sequence[int]) -> list[Draw]:
        """Return the fields of these numbers."""
        new = [number for number in numbers if number not in self._drawn]
        self._drawn |= {draw.number: draw for draw in self._source.draw(new)} if new else {}
        if isinstance(self._source.mission.question, ShareOfMaximum):
            for number in new:
                self._above_zero(number)
        return [self._drawn[number] for number in numbers]

    def _above_zero(self, number: int) -> None:
        """Draw a field again until its maximum lies above 0."""
        again = number
        while float(self._drawn[number].values.max()) <= 0:
            again += 1_000_000  # beyond the numbers of other fields
            self.redrawn += 1
            if self.redrawn > _MOST_REDRAWN:
                raise InputError(
                    "drawn fields lie below 0, so that a fraction of their maximum has no meaning",
                    expected="a model of values above 0",
                    where="model",
                    fix="set mean and variance in [model], or a threshold in the unit of the values",
                )
            draw = self._source.draw([again])[0]
            self._drawn[number] = Draw(number, draw.values, draw.hyperparameters)


@dataclass
class _Work:
    """The runs of one call of `advise`."""

    name: str
    cases: Mapping[str, _Case]
    draws: _Draws
    trials: Trials
    target: float | None
    fields: int
    on_progress: Progress | None
    _stage: str = field(default="")

    def __post_init__(self) -> None:
        if self.on_progress is not None:
            report = self.on_progress
            self.trials.on_trial = lambda finished, total: report(self._stage, finished, total)

    def estimate(self, search: bool) -> float:
        """Return how many seconds the runs will take, from one run of each policy."""
        until = self.target if search else None
        seconds = 0.0
        for policy, case in self.cases.items():
            battery = case.mission.vehicles[0].battery
            self._stage = f"{policy}: measuring how long a run takes"
            trials = self._run(policy, [0], battery, until)
            if trials[0].seconds < _LONG_S and self.fields > 1:  # the first run may have compiled loops
                trials += self._run(policy, [1], battery, until)
            per_field = min(trial.seconds for trial in trials)
            if self.target is not None and search:
                missed = np.mean([np.isinf(trial.need(self.target)) for trial in trials])
                per_field *= 1.0 + _CHECKED + _LARGER * float(missed)
            seconds += self.fields * per_field
        return seconds / min(self.trials.jobs, os.cpu_count() or 1)

    def searched(self, policy: str, probability: float) -> PolicyAdvice:
        """Search for the battery that a policy needs."""
        assert self.target is not None

        def run(numbers: Sequence[int], battery: float, until: float | None) -> list[Trial]:
            unit = self.cases[policy].mission.world.cost_unit
            doing = "searching" if until is not None else "checking"
            self._stage = f"{policy}: {doing} with {battery:,.4g} {unit}"
            return self._run(policy, numbers, battery, until)

        first = self.cases[policy].mission.vehicles[0].battery
        result = needed(run, self.fields, self.target, probability, first)
        battery = result.largest if result.battery is None else result.battery
        score = ANSWERS[type(self.cases[policy].mission.question)].score
        return PolicyAdvice(policy, battery, result.trials, score, self.target, result)

    def expected(self, policy: str) -> PolicyAdvice:
        """Run the mission with the given battery, or its own."""
        mission = self.cases[policy].mission
        battery = mission.vehicles[0].battery
        self._stage = f"{policy}: running with {battery:,.4g} {mission.world.cost_unit}"
        trials = self._run(policy, range(self.fields), battery, None)
        return PolicyAdvice(
            policy, battery, tuple(trials), ANSWERS[type(mission.question)].score, self.target
        )

    def _run(self, policy: str, numbers: Sequence[int], battery: float, until: float | None) -> list[Trial]:
        overrides = self.cases[policy].overrides
        draws = self.draws(numbers)
        return self.trials.run([Task(self.name, overrides, policy, d, battery, until) for d in draws])


def _cases(mission: str, policies: Sequence[str], overrides: Mapping[str, Any]) -> dict[str, _Case]:
    """Return the mission with each of the policies."""
    if not policies:
        own = load_mission(mission, overrides)
        return {own.policy_kind: _Case(own, overrides)}
    cases: dict[str, _Case] = {}
    for kind in policies:
        if kind not in (AUTO, *POLICIES.names()):
            raise UnknownNameError.of("policy", kind, POLICIES.names(), where="--policy")
        replaced = {**overrides, "policy": {**overrides.get("policy", {}), "kind": kind}}
        case = _Case(load_mission(mission, replaced), replaced)
        if case.mission.policy_kind in cases:
            raise InputError(
                f"{case.mission.policy_kind} is given twice", expected="each policy once", where="--policy"
            )
        cases[case.mission.policy_kind] = case
    return cases


def _dated(mission: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides with the time at which a mission begins, if the ages of its readings depend on it.

    It is the coming midnight (UTC): advice that continues on the same day finds the same ages.
    """
    loaded = load_mission(mission, overrides)
    settings = loaded.settings.get("prior", {})
    ages = None if loaded.prior is None else loaded.prior.ages_days
    if ages is None or not np.isfinite(ages).any() or {"at", "age_days"} & set(settings):
        return dict(overrides)
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    return merged(overrides, {"prior": {"at": f"{tomorrow.isoformat()}T00:00:00+00:00"}})


def _mark(mission: Mission, seed: int) -> str:
    """Return digests of what all trials share, and of the policy."""
    description = describe(mission)
    description["versions"] = description["versions"]["fieldbo"]
    settings = {key: value for key, value in description["settings"].items() if key != "policy"}
    shared = {k: v for k, v in description.items() if k not in ("policy", "settings", "plugins", "crew")}
    crew = [{k: v for k, v in vehicle.items() if k != "battery"} for vehicle in description["crew"]]
    agent = {k: v for k, v in settings.get("agent", {}).items() if k != "battery"}
    parts = (
        [shared, {**settings, "agent": agent}, crew, seed],
        [description["policy"], description.get("plugins")],
    )
    return "-".join(_digest(part) for part in parts)


def _digest(part: Any) -> str:
    return hashlib.sha256(json.dumps(part, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _question(mission: Mission) -> str:
    threshold = mission.settings.get("question", {}).get("threshold")
    quantity = mission.world.quantity
    if isinstance(threshold, Mapping) and "quantile" in threshold:
        side = getattr(mission.question, "side", "above")
        return f"where is {quantity.name} at or {side} the {threshold['quantile']:g} quantile of each field?"
    return question_text(mission.question, quantity)


def _notes(
    policies: Sequence[PolicyAdvice], draws: _Draws, mission: Mission, probability: float
) -> list[str]:
    """Return what the runs say about how far to trust the advice."""
    notes = list[str]()
    trials = policies[0].trials
    shares = np.array([trial.share for trial in trials])
    empty, full = int((shares <= 0).sum()), int((shares >= 1).sum())
    if empty + full > _TRIVIAL * len(trials):
        notes.append(
            f"in {empty} of {len(trials)} drawn fields no site lies in the set, and in {full} all do: the "
            "question is trivial there, and the advice says little; check threshold, mean and variance"
        )
    target = policies[0].target
    if target is not None:
        easy = int((2 * shares / (1 + shares) >= target).sum())  # F1 if every site counts as inside
        if easy > _TRIVIAL * len(trials):
            notes.append(
                f"in {easy} of {len(trials)} drawn fields, a map on which every site lies in the set reaches "
                f"F1 {target:g} without any reading; ask for a higher target to learn what a survey needs"
            )
    if draws.redrawn:
        notes.append(f"{draws.redrawn} drawn fields that lie below 0 were drawn again")
    spec, unit = mission.vehicles[0], mission.world.cost_unit
    given = mission.settings.get("agent", {}).get("full_battery")
    full_battery = np.inf if given is None else amount(given, unit, "agent.full_battery")
    for p in policies:
        if p.answered_short:
            notes.append(
                f"{p.policy}: {p.answered_short} of {len(p.trials)} runs ended below the target because the "
                "question counted as answered: no battery changes that; set [stop] expected_f1 higher"
            )
        limited = sum(t.end_reason == "step limit" for t in p.trials)
        if limited:
            notes.append(
                f"{p.policy}: {limited} of {len(p.trials)} runs ended at max_steps = {mission.max_steps}"
            )
        if not p.enough:
            low, high = share_interval(p.reached, len(p.trials))
            notes.append(
                f"{p.policy}: the target is not reached with probability {probability:g} even with "
                f"{p.battery:,.4g} {unit}, the largest battery tried ({p.reached / len(p.trials):.2f}, "
                f"{low:.2f} to {high:.2f})"
            )
        if p.battery > full_battery:
            notes.append(f"{p.policy}: this is more than the full battery of {full_battery:,.4g} {unit}")
    if spec.time_limit_s is not None:
        notes.append(f"time_limit_s = {spec.time_limit_s:g} limits every run, whatever the battery")
    return notes


def _too_long(seconds: float, fields: int) -> InputError:
    fewer = max(1, int(fields * PATIENCE_S / seconds))
    return InputError(
        f"this would take about {in_words(seconds)}",
        expected=f"at most {in_words(PATIENCE_S)}, unless you agree to more",
        where="--fields",
        fix=f"set --fields {fewer} or --jobs, or repeat the command with --yes",
    )


def in_words(seconds: float) -> str:
    """Return a duration in words.

    Examples
    --------
    >>> in_words(38), in_words(400), in_words(9000)
    ('40 s', '7 min', '2.5 h')
    """
    if seconds < 90:
        return f"{max(1.0, float(f'{seconds:.1g}')):g} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
