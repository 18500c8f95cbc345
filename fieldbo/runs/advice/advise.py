"""Advise on the battery of a mission before it begins."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from fieldbo.agent.agent import Agent
from fieldbo.belief.question import Optimum
from fieldbo.clock import duration_text
from fieldbo.costs.cells import Modular
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.default_policy import AUTO
from fieldbo.mission.files import write_whole
from fieldbo.mission.kinds import POLICIES
from fieldbo.mission.load import load_mission, merged, with_policy
from fieldbo.mission.mission import Mission
from fieldbo.results.answers import ANSWERS
from fieldbo.runs.advice.advice import Advice, PolicyAdvice, notes, question_asked
from fieldbo.runs.advice.fields import Draws, FieldSource
from fieldbo.runs.advice.search import least_fields, needed, rank_of
from fieldbo.runs.advice.trial import Task, Trial, Trials
from fieldbo.runs.comparison import label
from fieldbo.runs.folder import describe
from fieldbo.runs.trials import digest_of

SUMMARY = "advice.json"

PROBABILITY = 0.8
"""With which to reach a target unless another is given."""

PATIENCE_S = 1800.0
"""Advice that would take longer than this is only given with `patient`."""

_CHECKED = 1.5  # runs to check an answer, and every other time to correct it, relative to one to read it off
_LARGER = 2.0 + 4.0 + 8.0  # where the first battery is too small: runs with the larger ones, relative to it
_LONG_S = 120.0  # a run that takes longer says enough

Progress = Callable[[str, int, int], object]


def advise(
    mission: Path | str,
    target: float | None = None,
    probability: float | None = None,
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
    """Say which battery a mission needs, or how many, or what to expect of a battery.

    Where the mission changes its battery (``recharge``), the number of batteries is searched for.

    The mission is simulated as it is, from its start, in fields that are drawn from its belief: from the
    posterior given its earlier readings and the survey of its world, or else from the prior. A world without
    a field will do.

    Parameters
    ----------
    mission : Path or str
        Name or TOML file.
    target : float, optional
        F1 to reach at the end. Without `battery`, the battery that it needs is searched for.
    probability : float, optional
        With which to reach it, by default 0.8.
    battery : float or str, optional
        Battery to judge, by default the mission's own: a number in the world's cost unit, or text with a
        unit.
    fields : int
        Number of drawn fields; a search uses as many again to check its answer.
    policies : sequence of str
        Policies to advise on, all in the same fields; by default the mission's own. Each is a kind, with
        settings after commas: ``"gchk,per_cost=true"``. ``"auto"`` is the default for such a mission.
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
        Called with the seconds that it will take, before most runs; not if all have been done before.
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
    probability = PROBABILITY if probability is None else probability
    search = target is not None and battery is None
    if search:
        rank_of(fields, probability)
    cases = _cases(str(mission), policies, overrides)
    if (at := _begins_at(next(iter(cases.values())).mission)) is not None:
        cases = _cases(str(mission), policies, merged(overrides, {"prior": {"at": at}}))
    for policy, case in cases.items():
        check_supported(case.mission, target, policy)
    first = next(iter(cases.values())).mission
    folder = folder_of(mission, out)
    marks = {policy: _mark(case.mission, seed) for policy, case in cases.items()}
    if on_progress is not None:
        on_progress("drawing fields", 0, fields)
    source = FieldSource(first, seed)
    draws = Draws(source)
    with Trials.opened(folder, marks, jobs) as trials:
        least = least_fields(probability) if search else 1
        work = _Work(
            str(mission), cases, draws, trials, target, fields, least, patient, on_estimate, on_progress
        )
        work.measure(search)
        by_policy = tuple(
            work.searched(policy, probability) if search else work.expected(policy) for policy in cases
        )
    advice = Advice(
        first.name,
        question_asked(first),
        by_policy,
        target,
        probability,
        first.world.cost_unit,
        first.world.quantity.unit,
        source.words,
        (*source.notes, *notes(by_policy, draws.redrawn, first, probability)),
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


@dataclass
class _Work:
    """The runs of one call of `advise`."""

    name: str
    cases: Mapping[str, _Case]
    draws: Draws
    trials: Trials
    target: float | None
    fields: int
    least_fields: int
    patient: bool
    on_estimate: Callable[[float], object] | None
    on_progress: Progress | None
    _stage: str = field(default="")
    _to_announce_s: float | None = field(default=None)

    def __post_init__(self) -> None:
        if self.on_progress is not None:
            report = self.on_progress
            self.trials.on_trial = lambda finished, total: report(self._stage, finished, total)

    def measure(self, search: bool) -> None:
        """Measure with a few runs of each policy how long the missing ones take."""
        until, left_s = self.target if search else None, 0.0
        for policy, case in self.cases.items():
            battery = case.mission.vehicles[0].capacity
            self._stage = f"{policy}: measuring how long a run takes"
            trials = self._run(policy, [0], battery, until)
            if trials[0].seconds < _LONG_S and self.fields > 1:  # the first run may have compiled loops
                trials = self._run(policy, range(1, min(self.fields, 3)), battery, until)
            wanted = float(self.fields)
            if self.target is not None and search:
                missed = np.mean([np.isinf(trial.need(self.target)) for trial in trials])
                wanted *= 1.0 + _CHECKED + _LARGER * float(missed)
            done = sum(self._counts(trial, battery, search) for trial in self.trials.of(policy))
            left_s += max(0.0, wanted - done) * float(np.mean([trial.seconds for trial in trials]))
        self._to_announce_s = left_s / min(self.trials.jobs, os.cpu_count() or 1)

    def _counts(self, trial: Trial, battery: float, search: bool) -> bool:
        """Return True if a trial is one of those that this advice needs."""
        if not search:
            return (trial.battery, trial.until) == (battery, None) and trial.field < self.fields
        if trial.until is None:  # checks are run in fresh fields
            return self.fields <= trial.field < 2 * self.fields
        return trial.until == self.target and trial.field < self.fields

    def searched(self, policy: str, probability: float) -> PolicyAdvice:
        """Search for the battery that a policy needs."""
        assert self.target is not None

        def run(numbers: Sequence[int], battery: float, until: float | None) -> list[Trial]:
            unit = self.cases[policy].mission.world.cost_unit
            doing = "searching" if until is not None else "checking"
            self._stage = f"{policy}: {doing} with {battery:,.4g} {unit}"
            return self._run(policy, numbers, battery, until)

        spec = self.cases[policy].mission.vehicles[0]
        each = None if spec.recharge is None else spec.battery
        result = needed(run, self.fields, self.target, probability, spec.capacity, each)
        battery = result.largest if result.battery is None else result.battery
        score = ANSWERS[type(self.cases[policy].mission.question)].score
        return PolicyAdvice(policy, battery, result.trials, score, self.target, result, each)

    def expected(self, policy: str) -> PolicyAdvice:
        """Run the mission with the given battery, or its own."""
        mission = self.cases[policy].mission
        spec = mission.vehicles[0]
        battery, each = spec.capacity, None if spec.recharge is None else spec.battery
        self._stage = f"{policy}: running with {battery:,.4g} {mission.world.cost_unit}"
        trials = self._run(policy, range(self.fields), battery, None)
        return PolicyAdvice(
            policy, battery, tuple(trials), ANSWERS[type(mission.question)].score, self.target, each=each
        )

    def _run(self, policy: str, numbers: Sequence[int], battery: float, until: float | None) -> list[Trial]:
        overrides = self.cases[policy].overrides
        tasks = [Task(self.name, overrides, policy, d, battery, until) for d in self.draws(numbers)]
        if self._to_announce_s is not None and self.trials.missing(tasks):
            self._announce(self._to_announce_s)
            self._to_announce_s = None
        return self.trials.run(tasks)

    def _announce(self, seconds: float) -> None:
        """Say how long the rest takes; raise an `InputError` if that is too long."""
        if seconds > PATIENCE_S and not self.patient:
            raise _too_long(seconds, self.fields, self.least_fields)
        if self.on_estimate is not None:
            self.on_estimate(seconds)


def _cases(mission: str, policies: Sequence[str], overrides: Mapping[str, Any]) -> dict[str, _Case]:
    """Return the mission with each of the policies."""
    if not policies:
        own = load_mission(mission, overrides)
        return {own.policy_kind: _Case(own, overrides)}
    cases: dict[str, _Case] = {}
    for policy in policies:
        replaced = with_policy(policy, overrides)
        kind = replaced["policy"]["kind"]
        if kind not in (AUTO, *POLICIES.names()):
            raise UnknownNameError.of("policy", kind, [AUTO, *POLICIES.names()], where="--policy")
        case = _Case(load_mission(mission, replaced), replaced)
        name = policy if "," in policy else case.mission.policy_kind
        if name in cases:
            raise InputError(f"{name} is given twice", expected="each policy once", where="--policy")
        cases[name] = case
    return cases


def _begins_at(mission: Mission) -> str | None:
    """Return the time at which a mission begins, if the ages of its earlier readings depend on it.

    It is the coming midnight (UTC): advice that continues on the same day finds the same ages.
    """
    settings = mission.settings.get("prior", {})
    ages = None if mission.prior is None else mission.prior.ages_days
    if ages is None or not np.isfinite(ages).any() or {"at", "age_days"} & set(settings):
        return None
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    return f"{tomorrow.isoformat()}T00:00:00+00:00"


def _mark(mission: Mission, seed: int) -> str:
    """Return digests of what all trials share, and of the policy."""
    description = describe(mission)
    description["versions"] = description["versions"]["fieldbo"]
    settings = {key: value for key, value in description["settings"].items() if key != "policy"}
    shared = {k: v for k, v in description.items() if k not in ("policy", "settings", "plugins", "crew")}
    crew = [_without_battery(vehicle) for vehicle in description["crew"]]
    agent = _without_battery(settings.get("agent", {}))
    parts = (
        [shared, {**settings, "agent": agent}, crew, seed],
        [description["policy"], description.get("plugins")],
    )
    return "-".join(digest_of(part) for part in parts)


def _without_battery(agent: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a vehicle without its battery or, where it changes them, without their number."""
    if not (recharge := agent.get("recharge")):
        return {k: v for k, v in agent.items() if k != "battery"}
    return {**agent, "recharge": {k: v for k, v in recharge.items() if k != "batteries"}}


def _too_long(seconds: float, fields: int, least: int) -> InputError:
    fewer = int(fields * PATIENCE_S / seconds)
    reduced = f"set --fields {fewer}, raise --jobs," if fewer >= least else "raise --jobs,"
    return InputError(
        f"this would take about {duration_text(seconds, about=True)}",
        expected=f"at most {duration_text(PATIENCE_S, about=True)}, unless you agree to more",
        where="--fields",
        fix=f"{reduced} or repeat the command with --yes",
    )


def check_numbers(target: float | None, probability: float | None, fields: int, jobs: int, seed: int) -> None:
    """Raise an `InputError` if a number is out of its range."""
    if target is not None and not 0 < target <= 1:
        raise InputError(
            f"the target is {target:g}", expected="an F1 above 0 and at most 1", where="--target"
        )
    if probability is not None and target is None:
        raise InputError(
            "a probability without a target",
            expected="the F1 to reach with that probability",
            where="--probability",
            fix="add --target 0.9, for example",
        )
    if probability is not None and not 0 < probability < 1:
        raise InputError(
            f"the probability is {probability:g}", expected="a number between 0 and 1", where="--probability"
        )
    for name, number, least in (("fields", fields, 1), ("jobs", jobs, 1), ("seed", seed, 0)):
        if number < least:
            raise InputError(f"{name} = {number}", expected=f"at least {least}", where=f"--{name}")


def check_supported(mission: Mission, target: float | None, policy: str) -> None:
    """Raise an `InputError` if a mission can't be advised on."""
    world = mission.world
    if world.domain.control_sets or isinstance(world.cost, Modular):
        kind = "control sets" if world.domain.control_sets else "a chain of modules"
        raise InputError(
            f"world {world.name} has {kind}, on which advice is not supported",
            expected="a world that a vehicle samples, site by site",
            where="MISSION",
            fix="compare policies at equal cost instead: fieldbo compare",
        )
    if mission.costs == "unknown":
        raise InputError(
            "the costs are unknown to the agent, so no battery can be advised",
            expected='costs = "declared"',
            where="agent.costs",
        )
    if len(mission.vehicles) > 1:
        raise InputError(f"{len(mission.vehicles)} vehicles", expected="one vehicle", where="MISSION")
    if target is not None and isinstance(mission.question, Optimum):
        raise InputError(
            "--target is an F1, but the question is for an optimum, which is scored by regret",
            expected="no target; the advice then states the regret to expect of a battery",
            where="--target",
            fix="leave out --target, and set --battery",
        )
    vehicle, levels = Agent(mission).vehicles[0], range(world.sensor.settings)
    sites = np.vstack([world.domain.sites, vehicle.position])
    if not any(vehicle.affordable(sites, level=level).any() for level in levels):
        raise InputError(
            f"a battery of {vehicle.spec.battery:g} {world.cost_unit} pays for no reading"
            + (", with the trip home, reserve and margin" if vehicle.spec.home is not None else ""),
            expected="a battery that pays for a few readings at least",
            where="agent.battery",
            fix="raise it, in the mission or with --battery; a search begins with it",
        )
