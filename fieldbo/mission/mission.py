"""The frozen description of a mission: a world, who goes, what for, with which battery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fieldbo._numerics.arrays import Array
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum, Question, ShareOfMaximum
from fieldbo.belief.value_scale import ValueScale
from fieldbo.costs.base import CostModel
from fieldbo.errors import InputError
from fieldbo.mission.reach import within_reach
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.contract import Policy
from fieldbo.world.world import World

MOST_AT_ONCE = 100
"""Queries of a batch: each is chosen after the ones before it."""

_KINDS: dict[type, str] = {LevelSet: "level-set", ShareOfMaximum: "level-set", Optimum: "optimum"}


@dataclass(frozen=True, eq=False)
class Mission:
    """Everything that decides a run.

    Parameters
    ----------
    name : str
    world : World
        Less the sites that no vehicle can reach.
    question : Question
    policy : Policy
    policy_kind : str
        The policy's name in files.
    model : Model
    vehicles : tuple of VehicleSpec
        One a vehicle.
    initial : int
        Readings before the policy takes over; the first one at the start.
    initial_level : int
        The sensor's setting for them.
    batch : int
        How many queries leave at once.
    max_steps : int, optional
        At most so many orders.
    seed : int
        Keys the random streams; it never changes the field.
    settings : mapping
        The mission's file as it was understood, overrides included; empty for one made in Python.
    folder : Path, optional
        The world's folder.
    costs : {"declared", "unknown"}
        Whether the agent knows the world's costs, or only what each order really cost.

    Raises
    ------
    InputError
        A start or home outside the domain, or a policy that does not fit the costs.
    """

    name: str
    world: World
    question: Question
    policy: Policy
    model: Model
    vehicles: tuple[VehicleSpec, ...]
    initial: int = 1
    initial_level: int = 0
    batch: int = 1
    max_steps: int | None = None
    seed: int = 0
    policy_kind: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    folder: Path | None = None
    costs: Literal["declared", "unknown"] = "declared"

    def __post_init__(self) -> None:
        if not self.vehicles:
            raise InputError("a mission without a vehicle", expected="at least one [agent]")
        object.__setattr__(self, "world", within_reach(self.world, self.vehicles))
        if not 0 <= self.initial <= self.world.domain.size:
            raise InputError(
                f"count = {self.initial}",
                expected=f"0 to {self.world.domain.size}, the number of sites",
                where="initial.count",
            )
        self._check_level(self.initial_level, "initial.level")
        self._check_level(getattr(self.policy, "level", 0), "policy.level")
        if not 1 <= self.batch <= MOST_AT_ONCE:
            raise InputError(
                f"batch = {self.batch}", expected=f"at least 1, at most {MOST_AT_ONCE}", where="agent.batch"
            )
        if self.max_steps is not None and self.max_steps < 1:
            raise InputError(f"max_steps = {self.max_steps}", expected="at least 1", where="agent.max_steps")
        if self.seed < 0:
            raise InputError(f"seed = {self.seed}", expected="a whole number of at least 0", where="seed")
        for one in self.vehicles:
            if one.home is not None:
                self._check_way_home(one, one.home)
        self._check_question()
        self._check_costs()
        self._check_controls()
        self.policy.check(self.declared_cost, self.world.domain)
        self._check_end()
        self.model.initial(self.world.domain, self.question)

    @property
    def declared_cost(self) -> CostModel | None:
        """The world's costs as the agent knows them; None where it does not."""
        return self.world.cost if self.costs == "declared" else None

    @property
    def unreachable(self) -> int:
        """How many of the world's sites no vehicle can reach, and were left out."""
        return self.world.domain.dropped

    def _check_level(self, level: int, where: str) -> None:
        settings = self.world.sensor.settings
        if not 0 <= level < settings:
            raise InputError(
                f"level = {level}",
                expected="0, the sensor's only setting"
                if settings == 1
                else f"0 to {settings - 1}, a setting of the sensor",
                where=where,
            )

    def _check_question(self) -> None:
        answers = self.policy.answers
        if not isinstance(self.question, answers):
            raise InputError(
                f"policy {self.policy_kind or type(self.policy).__name__} for a question of kind "
                f"{_KINDS[type(self.question)]}",
                expected="a question of kind " + " or ".join(sorted({_KINDS[a] for a in answers})),
                where="policy.kind",
                fix="choose another policy: fieldbo policies lists what each of them answers",
            )
        if isinstance(self.question, ShareOfMaximum) and not self.world.live:
            highest = float(self.world.truth(self.world.domain.sites).max())
            if highest <= 0:
                raise InputError(
                    f"a share of a maximum of {highest:g}, which lies at or above all values",
                    expected="a field whose maximum is above 0",
                    where="question.threshold.of_maximum",
                    fix="ask for a threshold instead",
                )
        if isinstance(self.question, LevelSet):
            try:
                ValueScale(self.model.transform).to_model([self.question.threshold])
            except InputError as error:
                raise error.at("question.threshold") from None

    def _check_costs(self) -> None:
        """Raise an `InputError` unless what the agent is told of costs is what its policy goes by."""
        name = self.policy_kind or type(self.policy).__name__
        if self.costs not in self.policy.costs:
            declared = self.costs == "declared"
            raise InputError(
                f"policy {name} finds out what costs are, and they are declared"
                if declared
                else f"policy {name} goes by declared costs, and they are unknown",
                expected='costs = "unknown"' if declared else 'costs = "declared"',
                where="agent.costs",
                fix="set it, or take a policy for "
                + ("declared" if declared else "unknown")
                + " costs: fieldbo policies",
            )
        if self.costs == "declared":
            if not self.world.cost.known:
                raise InputError(
                    f"the costs of {self.world.name} are not known",
                    expected='costs = "unknown", or a world whose [cost] has costs',
                    where="agent.costs",
                    fix='set costs = "unknown", with a policy that finds them out: fieldbo policies',
                )
            return
        for one in self.vehicles:
            for what, given in (("home", one.home), ("time_limit_s", one.time_limit_s)):
                if given is not None:
                    raise InputError(
                        f"a {what} where costs are unknown",
                        expected="declared costs, by which it can be kept",
                        where=f"agent.{what}",
                        fix='leave it out, or set costs = "declared"',
                    )

    def _check_controls(self) -> None:
        """Raise an `InputError` if a policy can't set what it sets, or average over what it leaves free."""
        controls, name = self.world.domain.controls, self.policy_kind or type(self.policy).__name__
        if controls is None:
            return
        if self.policy.leaves_free:
            if self.model.transform != "none":
                raise InputError(
                    f"policy {name} averages values over what is left free, and the model is of their "
                    f"{self.model.transform}",
                    expected='transform = "none"',
                    where="model.transform",
                )
            return
        if controls.index_of(None) is None:
            raise InputError(
                f"policy {name} sets all variables, and no control set has all of them",
                expected="a control set of all variables, or a policy that leaves some free",
                where="policy.kind",
                fix="add all axes as one more of the world's control_sets, with its cost, or take another "
                "policy: fieldbo policies",
            )

    def _check_way_home(self, one: VehicleSpec, home: Array) -> None:
        unit = self.world.cost_unit
        needed = float(self.world.cost.travel(one.start, home[None])[0]) * (1.0 + one.margin) + one.reserve
        if needed > one.battery:
            raise InputError(
                f"battery {one.battery:g} {unit} does not pay for the way from start to home",
                expected=f"at least {needed:g} {unit}, margin and reserve included",
                where="agent.battery",
                fix="raise the battery, or start nearer to home",
            )
        seconds = float(self.world.cost.travel_s(one.start, home[None])[0]) * (1.0 + one.margin)
        if one.time_limit_s is not None and seconds > one.time_limit_s:
            raise InputError(
                f"time_limit_s = {one.time_limit_s:g} is over before the way from start to home is done",
                expected=f"at least {seconds:g} s, margin included",
                where="agent.time_limit_s",
                fix="allow more time, or start nearer to home",
            )

    def _check_end(self) -> None:
        """Raise an `InputError` if free samples would keep a battery from ever being spent."""
        if not self.world.cost.known:
            return
        if self.max_steps is None and self.world.cost.least_sampling_cost(self.world.domain.sites) <= 0:
            raise InputError(
                "sampling again at the same site costs nothing: the battery might never be spent",
                expected="a sampling cost above 0, or a limit of steps",
                where="cost",
                fix=f"{self.world.cost.to_price_samples}, or set max_steps in [agent]",
            )
