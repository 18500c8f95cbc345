"""Properties of every policy in every world: random worlds, batteries and noise, and the full loop."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import shapely
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo.agent.agent import Agent
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.costs.base import Unit
from fieldbo.costs.travel import Euclidean, Transect
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.messages import EndReason, Stop
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.baselines import GCHK, Lawnmower, MaximumVariance, Random, Straddle
from fieldbo.policies.level_set.truvar import TruVaR
from fieldbo.policies.travel.one_step import DUCB, UCB, DistUCB, EIPerCost
from fieldbo.policies.travel.rollout import Rollout
from fieldbo.record.record import Record
from fieldbo.runs.runner import run
from fieldbo.vehicles.base import Simulated
from fieldbo.world.fields.gp_draw import GPDraw
from fieldbo.world.world import Quantity, World

STEPS_AT_MOST = 14
COUNTS = {1: 25, 2: 7, 3: 4}

kappas = st.just(0.0) | st.floats(0.1, 4.0)
conventions = st.sampled_from(["one_plus", "floor", "exclude", "literal"])
stops = st.sampled_from(["best_affordable", "first_unaffordable"])
small_travel = st.none() | st.floats(0.01, 100.0)

policies = st.one_of(
    st.builds(
        TruVaR,
        per_cost=st.booleans(),
        a=st.floats(0.2, 3.0),
        eta=st.sampled_from([0.0, 0.3, 1.0]),
        r=st.floats(0.05, 0.9),
        delta=st.floats(0.0, 0.5),
        monotone=st.sampled_from([None, True, False]),
    ),
    st.builds(GCHK, per_cost=st.booleans(), kappa=st.floats(0.5, 4.0), intersect=st.booleans()),
    st.builds(Straddle, per_cost=st.booleans(), kappa=st.floats(0.5, 4.0)),
    st.builds(MaximumVariance, per_cost=st.booleans()),
    st.builds(Random),
    st.builds(Lawnmower, lines=st.integers(1, 5), samples=st.integers(1, 5)),
    st.builds(DistUCB, kappa=kappas, convention=conventions, d0=small_travel, stop=stops),
    st.builds(UCB, kappa=kappas, stop=stops),
    st.builds(DUCB, rho=st.floats(0.0, 2.0), kappa=kappas, stop=stops),
    st.builds(EIPerCost, d0=small_travel, stop=stops),
    st.builds(
        Rollout,
        base=st.sampled_from(["dist-ucb", "ucb", "ei", "ei-per-cost"]),
        horizon=st.just("budget") | st.integers(1, 4),
        fantasies=st.integers(1, 5),
        kappa=kappas,
        convention=conventions,
        d0=small_travel,
        fantasy_noise=st.booleans(),
        stop=stops,
    ),
)


@st.composite
def outlines(draw, low, high):
    """Corners around the middle of the box, at random distances."""
    middle, half = (low + high) / 2, (high - low) / 2
    angles = np.linspace(0, 2 * np.pi, draw(st.integers(3, 7)), endpoint=False)
    reach = np.array([draw(st.floats(0.3, 1.0)) for _ in angles])
    corners = middle + half * reach[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return shapely.Polygon(corners)


@st.composite
def domains(draw):
    dimension = draw(st.integers(1, 3))
    axes = [Axis(name, "m", 0.0, draw(st.floats(1.0, 100.0))) for name in "xyz"[:dimension]]
    shape = [draw(st.integers(1, COUNTS[dimension])) for _ in axes]
    region = None
    if dimension == 2 and draw(st.booleans()):
        low, high = np.zeros(2), np.array([a.high for a in axes])
        region = draw(outlines(low, high))
        nodes = np.stack(np.meshgrid(*[np.linspace(0, a.high, n) for a, n in zip(axes, shape, strict=True)]))
        assume(shapely.intersects_xy(region, nodes[0], nodes[1]).any())
    return Domain.grid(axes, shape, region)


@st.composite
def questions(draw, policy, sd):
    if LevelSet in policy.answers:
        return LevelSet(draw(st.floats(-2.0, 2.0)) * sd, draw(st.sampled_from(["above", "below"])))
    return Optimum(draw(st.sampled_from(["maximise", "minimise"])))


@st.composite
def missions(draw):
    domain, policy = draw(domains()), draw(policies)
    blind = not getattr(policy, "per_cost", False)
    sampling = draw(st.floats(0.1, 3.0) | st.just(0.0)) if blind else draw(st.floats(0.1, 3.0))
    kinds = [Unit(sampling=max(sampling, 0.1)), Euclidean(rate=draw(st.floats(0.0, 2.0)), sampling=sampling)]
    kinds += [Transect(depth_rate=0.5)] if domain.dimension == 2 else []
    cost = draw(st.sampled_from(kinds))
    scales = tuple(np.maximum(draw(st.floats(0.1, 1.0)) * domain.extent, 1e-3))
    variance = draw(st.floats(0.1, 10.0))
    world = World(
        name="random",
        title="",
        domain=domain,
        cost=cost,
        cost_unit="s",
        sensor=Sensor(draw(st.just(0.0) | st.floats(1e-3, 1.0))),
        quantity=Quantity(),
        field=GPDraw(scales, variance=variance).make(domain, draw(st.integers(0, 99)), None),
    )
    places = st.integers(0, domain.size - 1).map(lambda k: domain.sites[k])
    start = draw(places)
    home = draw(st.none() | st.just(start) | places)
    typical = float(np.mean(cost.to(start, domain.sites))) + 0.05
    battery = draw(st.floats(0.1, 12.0)) * typical
    crew = VehicleSpec(
        battery,
        start,
        home=home,
        reserve=draw(st.just(0.0) | st.floats(0.0, 0.3)) * battery,
        margin=draw(st.just(0.0) | st.floats(0.0, 0.5)),
    )
    if home is not None:  # a battery that can't even pay the way home is another matter
        assume(cost.travel(start, home[None])[0] * (1 + crew.margin) <= battery - crew.reserve)
    learn = draw(st.just(False) | st.builds(lambda k: {"every": k}, st.integers(4, 9)))
    return Mission(
        name="random",
        world=world,
        question=draw(questions(policy, np.sqrt(variance))),
        policy=policy,
        model=Model(learn=learn, length_scales=scales, variance=variance),
        vehicles=(crew,),
        initial=draw(st.integers(0, min(3, domain.size))),
        max_steps=draw(st.integers(1, STEPS_AT_MOST)),
        seed=draw(st.integers(0, 999)),
    )


def check_the_record(record, result):
    """Every order and event of the run, in order, and the end."""
    rows = record.rows()
    assert [row.seq for row in rows] == sorted({row.seq for row in rows})
    sent: list[str] = []
    settled: list[str] = []
    for row in rows[:-1]:
        if row.kind in ("query", "go-home"):
            assert settled == sent, "an order left before the one before it was settled"
            sent.append(row.order)
        elif row.kind == "observation":
            settled.append(row.order)
            assert settled == sent, "an event without its order"
        else:
            assert row.kind in ("fitted", "stop")
    assert sent == [f"run/{n}" for n in range(len(sent))]
    kinds = [row.kind for row in rows]
    assert kinds.count("query") == len(result.queries)
    assert kinds.count("go-home") <= 1
    assert kinds.count("observation") == len(result.observations) == len(result.curve)
    for row, query in zip((r for r in rows if r.kind == "query"), result.queries, strict=True):
        assert np.array_equal(row.message.site, query.site)
    told = (r for r in rows if r.kind == "observation")
    for row, observation in zip(told, result.observations, strict=True):
        assert np.array_equal(row.message.values, observation.values)
        assert row.message.cost == observation.cost
    assert kinds[-1] == "end"
    assert record.end_reason is result.end_reason


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck))
@given(mission=missions())
def test_a_run_stays_inside_and_within_its_battery_comes_home_and_is_reproducible(mission):
    world, crew = mission.world, mission.vehicles[0]
    with (
        tempfile.TemporaryDirectory() as folder,
        Record.create(Path(folder) / "run.sqlite", "run", {}) as record,
    ):
        result = run(mission, record=record)
        check_the_record(record, result)

    # inside
    assert world.domain.contains(result.sites).all() or not len(result.sites)
    # never overdrawn, and the reserve is left
    slack = 1e-9 * crew.battery
    assert result.cost <= crew.battery - crew.reserve + slack
    assert all(step.remaining >= crew.reserve - slack for step in result.curve)
    assert abs(sum(o.cost for o in result.observations) - result.cost) <= slack
    # home
    end = result.observations[-1].position if result.observations else crew.start
    assert crew.home is None or np.array_equal(end, crew.home)
    # a typed end
    assert isinstance(result.end_reason, EndReason)
    assert len(result.queries) <= mission.max_steps
    if result.end_reason is EndReason.STEP_LIMIT:
        assert len(result.queries) == mission.max_steps
    # once more
    again = run(mission)
    assert np.array_equal(again.sites, result.sites)
    assert np.array_equal(again.values, result.values)
    assert np.array_equal(again.surface.mean, result.surface.mean)
    assert again.end_reason is result.end_reason


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(mission=missions(), sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_whole_batches_are_affordable_and_leave_enough_for_the_trip_home(mission, sizes):
    crew, agent, vehicle = mission.vehicles[0], Agent(mission), Simulated(mission)
    slack = 1e-9 * crew.battery

    for size in [*sizes, *[5] * STEPS_AT_MOST]:
        orders = agent.ask_batch(size)
        assert agent.vehicles[0].ledger.available >= crew.reserve - slack
        for order in orders:
            vehicle.send(order)
        for event in vehicle.events(0.0):
            agent.tell(event)

    assert isinstance(agent.ask(), Stop)
    assert agent.vehicles[0].ledger.spent <= crew.battery - crew.reserve + slack
    assert crew.home is None or np.array_equal(agent.vehicles[0].position, crew.home)
