"""A small world, mission and state, and a loop that drives an agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo._numerics.streams import stream
from fieldbo.agent.agent import Agent
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum, Question
from fieldbo.costs.base import CostModel
from fieldbo.costs.cells import Modular, Module, Subset
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.controls import Controls, ControlSet, TruncatedNormal, Uniform
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.messages import Event, Observation, Order, Query, Stop
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.baselines import Straddle
from fieldbo.policies.contract import Policy, State
from fieldbo.vehicles.base import Simulated
from fieldbo.world.fields.base import Field
from fieldbo.world.world import Quantity, World

ORDERS_AT_MOST = 300
"""`drive` takes a mission with more orders than this for an endless one."""

Answer = Callable[[int, Order, Simulated], Event]
"""``answer(n, order, vehicle) -> Event``: the event that answers order number n."""


class Hills(Field):
    """``sin(x / 2) + cos(y)``, or ``sin(x / 2)`` on one axis: smooth, with values above and below 0.3."""

    def values(self, sites: Array, time_s: float = 0.0) -> Array:
        """Return the values (N,) at `sites` (N, d)."""
        return np.asarray(np.sin(sites[:, 0] / 2.0) + np.cos(sites[:, 1:]).sum(axis=1))


def small_world(shape: tuple[int, ...] = (6, 5), noise_sd: float = 0.05) -> World:
    """Return a world of a few sites, 1 m apart, where each metre and each sample costs 1 s.

    Parameters
    ----------
    shape : tuple of int
        Number of sites along each axis.
    noise_sd : float
        Standard deviation of the noise.

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
    """Return a factory cell of three modules: a change of x costs 7 s, of y 3 s, and of z 1 s.

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
    """Return a factory cell with three control sets: x for 0.25 s, x and y for 0.5 s, all for 1 s.

    Examples
    --------
    >>> [control_set.name for control_set in small_cell().domain.control_sets]
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
    """Return a mission that starts, and with `home` also ends, at the first site of a small world.

    Parameters
    ----------
    policy : Policy, optional
        By default, `Straddle`.
    world : World, optional
        By default, `small_world`; for a policy that leaves variables free, `small_cell`.
    question : Question, optional
        By default, the level set at 0.3; for a policy that can't answer it, the maximum.
    battery : float
        In the cost unit of the world.
    home : bool
        Return to the start at the end. Ignored where costs are unknown.
    initial : int
        Number of readings before the policy takes over.
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


def state(
    policy: Policy | None = None,
    *,
    sites: ArrayLike | None = None,
    values: ArrayLike | None = None,
    world: World | None = None,
    question: Question | None = None,
    battery: float = 30.0,
    home: bool = True,
    seed: int = 0,
    **changes: Any,
) -> State:
    """Return the state that a policy sees after some readings in a small world.

    Parameters
    ----------
    policy : Policy, optional
        The policy to test: it selects a world and a question that it can work with. By default, `Straddle`.
    sites : (n, d) array, optional
        Sites read so far; NaN marks a free variable. The vehicle is at the last one. By default, three sites
        of the world.
    values : (n,) array, optional
        Readings at these sites, in the user's unit. By default, they are simulated.
    world, question, home, seed
        As for `small_mission`.
    battery : float
        Battery left after the readings, in the cost unit.
    **changes
        Other fields of `State` to replace.

    Returns
    -------
    State

    Raises
    ------
    InputError
        The number of values differs from the number of sites.

    Examples
    --------
    Ask a policy for its next query:

    >>> from fieldbo.policies.baselines import Straddle
    >>> policy = Straddle()
    >>> seen = state(policy, sites=[[0, 0], [3, 2]], values=[0.9, 0.1], battery=12)
    >>> decision = policy.suggest(seen, None)
    >>> decision.choice.site.tolist()
    [0.0, 3.0]

    With a battery that is not enough for another site, it stops:

    >>> policy.suggest(state(policy, battery=1), None).choice.reason
    <EndReason.BATTERY_SPENT: 'battery spent'>

    Policies with a memory begin with ``policy.start(seen)`` instead of None.
    """
    mission = small_mission(policy, world=world, question=question, home=home, seed=seed)
    world, position, time_s = mission.world, mission.vehicles[0].start, 0.0
    if sites is None:
        sites = world.domain.sites[[0, world.domain.size // 3, world.domain.size // 2]]
    sites = np.array(sites, dtype=float).reshape(-1, world.domain.dimension)
    readings: list[tuple[Query, Observation]] = []
    for n, site in enumerate(sites):
        free = np.isnan(site)
        query = Query(site, ~free if free.any() else None, id=f"run/{n}")
        seen = world.evaluate(query, position, time_s, stream(seed, "sensor", n))
        readings.append((replace(query, expected_cost=seen.cost), seen))
        position, time_s = seen.position, float(seen.times_s[-1])
    if values is not None:
        values = np.array(values, dtype=float)
        if values.shape != (len(sites),):
            raise InputError(f"values of shape {values.shape}", expected=f"({len(sites)},), one per site")
        readings = [(q, replace(e, values=np.array([v]))) for (q, e), v in zip(readings, values, strict=True)]
    spent = sum(event.cost for _, event in readings)
    vehicles = tuple(replace(vehicle, battery=battery + spent) for vehicle in mission.vehicles)
    agent = Agent(replace(mission, vehicles=vehicles))
    for query, event in readings:
        agent.replay(query, agent.memory, None)
        agent.tell(event)
    return replace(agent.seen(), **changes)


def carried_out(number: int, order: Order, vehicle: Simulated) -> Event:
    """Let the simulated vehicle carry out the order; the default `Answer`."""
    vehicle.send(order)
    (event,) = vehicle.events(0.0)
    return event


def drive(mission: Mission, answer: Answer = carried_out) -> tuple[Agent, list[Order], Stop]:
    """Ask and tell until the agent stops.

    Parameters
    ----------
    mission : Mission
    answer : Callable
        ``answer(n, order, vehicle) -> Event``: the event that answers order number n.

    Returns
    -------
    agent : Agent
    orders : list of Order
    stop : Stop

    Raises
    ------
    AssertionError
        The agent does not stop.
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
    """Return the sites of the queries among `orders`; None for a free variable."""
    return [plain_site(order.site) for order in orders if isinstance(order, Query)]


def plain_site(site: Any) -> list[float | None]:
    """Return a site as a list; None for a free variable."""
    return [None if x is None or np.isnan(x) else float(x) for x in site]
