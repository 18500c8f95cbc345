"""The frozen description of a mission: a world, a question, vehicles, a policy and a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from fieldbo.belief.model import Model
from fieldbo.belief.question import Question
from fieldbo.costs.base import CostModel
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError
from fieldbo.mission.checks import check_mission
from fieldbo.mission.hold import Hold
from fieldbo.mission.kinds import POLICIES
from fieldbo.mission.prior import Prior
from fieldbo.mission.reach import within_reach
from fieldbo.mission.stop_rule import StopRule
from fieldbo.mission.vehicle_spec import FAILURE_LIMIT, VehicleSpec
from fieldbo.policies.contract import Policy
from fieldbo.world.world import World


@dataclass(frozen=True, eq=False)
class Mission:
    """Everything that determines a run.

    Parameters
    ----------
    name : str
    world : World
        Sites that no vehicle can reach are removed from it.
    question : Question
    policy : Policy
    model : Model
    vehicles : tuple of VehicleSpec
    initial : int
        Number of readings before the policy takes over; the first is at the start.
    initial_level : int
        Sensor level of these readings.
    batch : int
        Number of queries issued at once.
    max_steps : int, optional
        Maximum number of orders.
    seed : int
        Seed of the random streams; it never changes the field.
    policy_kind : str
        The policy's name in files.
    settings : mapping
        Content of the mission's file, including overrides; empty for a mission made in Python.
    folder : Path, optional
        The world's folder.
    costs : {"declared", "unknown"}
        Whether the agent knows the world's costs, or learns what each order has cost.
    prior : Prior, optional
        Earlier readings and a prior mean with which the mission begins.
    stop : StopRule
        When the question counts as answered.
    holds : tuple of Hold
        When vehicles wait.
    failure_limit : float
        Probability of a failed reading above which a site is not proposed while others are left; 1 proposes
        all sites.
    most_readings_per_site : int, optional
        Number of orders to one site after which it is not proposed again; only where sites are a list.

    Raises
    ------
    InputError
        The parts do not fit together: see `fieldbo.mission.checks`.
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
    prior: Prior | None = None
    stop: StopRule = field(default_factory=StopRule)
    holds: tuple[Hold, ...] = ()
    failure_limit: float = FAILURE_LIMIT
    most_readings_per_site: int | None = None

    def __post_init__(self) -> None:
        if not self.vehicles:
            raise InputError("the mission has no vehicle", expected="at least one VehicleSpec", where="agent")
        object.__setattr__(self, "world", within_reach(self.world, self.vehicles))
        if (loaded := self.settings.get("policy")) is not None:  # `replace` may have changed the policy
            as_loaded = type(self.policy) is POLICIES.get(loaded["kind"])
            name = loaded["kind"] if as_loaded else type(self.policy).__name__
            object.__setattr__(self, "policy_kind", name)
        check_mission(self)

    def as_found(self) -> Mission:
        """Return the mission as a real vehicle meets it.

        Without a field that is fitted to earlier readings: the place may have changed since, so they are no
        truth to score against. With a test for outliers, unless the mission says otherwise, or the sensor
        reads on the way: spikes among neighbouring readings are then left out anyway.
        """
        world, model = self.world, self.model
        if world.field is not None and world.field.fitted_to is not None:
            world = replace(world, field=None)
        if model.outliers is None and world.sensor.along is None:
            model = replace(model, outliers="tested")
        return replace(self, world=world, model=model)

    def with_no_go(self, areas: Sequence[Obstacle]) -> Mission:
        """Return the mission with areas that were closed to vehicles under way, besides those closed before.

        Its sites stay, and it is not checked again: vehicles have left their starts.

        Raises
        ------
        InputError
            An area does not fit the domain, no site is left, or the kind of cost can't route around areas.
        """
        other = copy(self)
        world = replace(self.world, no_go=(*self.world.no_go, *areas))
        object.__setattr__(other, "world", world)
        return other

    @property
    def title(self) -> str:
        """The title in the mission's file; without one, the mission's name."""
        return str(self.settings.get("title") or self.name)

    @property
    def levels(self) -> Sequence[int]:
        """The levels of the sensor at which the policy reads: its own, or all of them if it chooses."""
        level = getattr(self.policy, "level", None)
        return range(self.world.sensor.settings) if level is None else [int(level)]

    @property
    def declared_cost(self) -> CostModel | None:
        """The world's cost model, or None if the agent does not know it."""
        return self.world.cost if self.costs == "declared" else None

    @property
    def earlier(self) -> Prior:
        """The prior with the earlier readings that lie in the domain; empty if there is none."""
        return (Prior() if self.prior is None else self.prior).over(self.world.domain)

    @property
    def unreachable(self) -> int:
        """Number of the world's sites that no vehicle can reach, and that were removed."""
        return self.world.domain.dropped
