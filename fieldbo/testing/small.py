"""A small world and mission, and a loop to drive an agent with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from fieldbo._numerics.arrays import Array
from fieldbo.agent.agent import Agent
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum, Question
from fieldbo.costs.base import CostModel
from fieldbo.costs.chain import Modular, Module
from fieldbo.costs.control_sets import Subset
from fieldbo.costs.euclidean import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import Controls, ControlSet
from fieldbo.domain.distributions import TruncatedNormal, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.messages import Event, Order, Query, Stop
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.contract import Policy
from fieldbo.policies.level_set.rivals import Straddle
from fieldbo.vehicles.simulated import Simulated
from fieldbo.world.fields.base import Field
from fieldbo.world.world import Quantity, World

ORDERS_AT_MOST = 300
"""A small mission that gives more orders than this is taken to go on for ever."""

Answer = Callable[[int, Order, Simulated], Event]
"""What becomes of order number n: an event, made up or carried out by the simulated vehicle."""


class Hills(Field):
    """``sin(x / 2) + cos(y)``, or ``sin(x / 2)`` on one axis: smooth, and on both sides of 0.3."""

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the values (N,) at `sites` (N, d)."""
        return np.asarray(np.sin(sites[:, 0] / 2.0) + np.cos(sites[:, 1:]).sum(axis=1))


def small_world(shape: tuple[int, ...] = (6, 5), noise_sd: float = 0.05) -> World:
    """Return a world of a few sites, 1 m apart, where a metre costs 1 s and a sample 1 s more.

    Parameters
    ----------
    shape : tuple of int
        Sites along each axis.
    noise_sd : float
        Of a reading.

    Examples
    --------
    >>> small_world().domain.size
    30
    """
    axes = [Axis(name, "m", 0.0, max(1.0, n - 1.0)) for name, n in zip("xyz", shape, strict=False)]
    return World(
        name="small",
        title="Hills on a few sites",
        domain=Domain.grid(axes, shape),
        cost=Euclidean(rate=1.0, sampling=1.0),
        cost_unit="s",
        sensor=Sensor(noise_sd),
        quantity=Quantity("height", "m"),
        field=Hills(),
    )


def small_chain() -> World:
    """Return a cell of three modules: a change of x costs 4 s, one of y 2 s, and each sample 1 s.

    Examples
    --------
    >>> chain = small_chain()
    >>> chain.cost.to([0, 0, 0], [[0, 0, 2], [0, 1, 0], [3, 0, 0]])
    array([1., 3., 7.])
    """
    axes = [Axis(name, "", 0.0, 5.0) for name in "xyz"]
    modules = tuple(Module(f"set {a.name}", (a.name,), c) for a, c in zip(axes, (4.0, 2.0, 1.0), strict=True))
    domain = Domain.box(axes, 24)
    return _cell(domain, Modular(modules=modules))


def small_cell() -> World:
    """Return a cell with three control sets: x alone for 0.25 s, x and y for 0.5 s, all for 1 s.

    Examples
    --------
    >>> [one.name for one in small_cell().domain.control_sets]
    ['x', 'x, y', 'all']
    """
    axes = [Axis(name, "", 0.0, 5.0) for name in "xyz"]
    sets = tuple(ControlSet.of(list(names), axes, "control_sets") for names in ("x", "xy", "xyz"))
    controls = Controls(sets, (None, Uniform(0.0, 5.0), TruncatedNormal(2.0, 1.0, 0.0, 5.0)))
    return _cell(Domain.box(axes, 24, controls=controls), Subset(costs=(0.25, 0.5, 1.0)))


def _cell(domain: Domain, cost: CostModel) -> World:
    sensor, quantity = Sensor(0.05), Quantity("height", "m")
    return World("cell", "Hills over three settings", domain, cost, "s", sensor, quantity, Hills())


def small_mission(
    policy: Policy | None = None,
    *,
    world: World | None = None,
    question: Question | None = None,
    battery: float = 30.0,
    home: bool = True,
    initial: int = 1,
    seed: int = 0,
) -> Mission:
    """Return a mission that starts (and, with `home`, ends) at the small world's first site.

    Parameters
    ----------
    policy : Policy, optional
        By default straddle.
    world : World, optional
        By default `small_world`; for a policy that leaves variables free, `small_cell`.
    question : Question, optional
        By default the level set at 0.3, or the maximum for a policy that can't answer that.
    battery : float
        In the world's cost unit.
    home : bool
        Whether the vehicle must return to its start; never where costs are unknown.
    initial : int
        Readings before the policy takes over.
    seed : int

    Examples
    --------
    >>> import fieldbo
    >>> fieldbo.run(small_mission(battery=12.0)).cost <= 12.0
    True
    """
    policy = Straddle() if policy is None else policy
    if world is None:
        world = small_cell() if policy.leaves_free else small_world()
    assert world.start is not None
    costs: Literal["declared", "unknown"] = "declared" if "declared" in policy.costs else "unknown"
    home = home and costs == "declared"
    if question is None:
        question = LevelSet(0.3) if LevelSet in policy.answers else Optimum()
    return Mission(
        name="small",
        world=world,
        question=question,
        policy=policy,
        model=Model(learn=False, length_scales=(2.0,) * world.domain.dimension, mean=0.0),
        vehicles=(VehicleSpec(battery, world.start, home=world.start if home else None),),
        initial=initial,
        seed=seed,
        costs=costs,
    )


def carried_out(number: int, order: Order, vehicle: Simulated) -> Event:
    """Let the simulated vehicle carry the order out; the usual `Answer`."""
    vehicle.send(order)
    (event,) = vehicle.events(0.0)
    return event


def drive(mission: Mission, answer: Answer = carried_out) -> tuple[Agent, list[Order], Stop]:
    """Ask and tell until the agent stops.

    Parameters
    ----------
    mission : Mission
    answer : Callable
        ``answer(n, order, vehicle) -> Event``: what becomes of order number n.

    Returns
    -------
    agent : Agent
    orders : list of Order
    stop : Stop

    Raises
    ------
    AssertionError
        It does not stop.
    """
    agent, vehicle, orders = Agent(mission), Simulated(mission), list[Order]()
    while len(orders) <= ORDERS_AT_MOST:
        order = agent.ask()
        if isinstance(order, Stop):
            return agent, orders, order
        orders.append(order)
        agent.tell(answer(len(orders) - 1, order, vehicle))
    raise AssertionError(f"no Stop after {ORDERS_AT_MOST} orders")


def sites_of(orders: list[Order]) -> list[list[float | None]]:
    """Return where the queries among `orders` go, in order; None for a variable that is left free."""
    return [[None if np.isnan(x) else float(x) for x in o.site] for o in orders if isinstance(o, Query)]
