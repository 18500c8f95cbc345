"""Runs with readings on the way: the model that learns from them, the record, tables and pictures."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from small_files import mission_text, world_text

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.belief.model import Model
from fieldbo.belief.posterior import Belief
from fieldbo.costs import Boat
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Along, Sensor
from fieldbo.messages import Observation, Stop
from fieldbo.record.record import Record
from fieldbo.results import plot
from fieldbo.runs.export import export
from fieldbo.runs.folder import begin
from fieldbo.runs.loop import Interrupted
from fieldbo.runs.replay import load_run
from fieldbo.runs.runner import resume, run
from fieldbo.testing import small_mission
from fieldbo.vehicles.base import Simulated
from fieldbo.world.fields.gp_draw import GPDraw
from fieldbo.world.world import Quantity, World

KNOWN = Model(learn=False, length_scales=(120.0, 120.0), variance=1.0, mean=0.0)


def bay_mission(model=KNOWN, battery=1500.0, every_s=1.0, noise_sd=0.1):
    axes = [Axis("east", "m", 0, 400), Axis("north", "m", 0, 400)]
    domain = Domain.grid(axes, (21, 21))
    field = GPDraw(length_scales=(120.0, 120.0)).make(domain, 1)
    sensor = Sensor(noise_sd, along=Along(every_s=every_s))
    world = World("bay", "", domain, Boat(speed=1.5, stop_s=20), "s", sensor, Quantity(), field)
    return replace(small_mission(world=world, battery=battery), model=model)


def driven(mission, orders=1000):
    """An agent after a mission, or after some of its orders."""
    agent, vehicle = Agent(mission), Simulated(mission)
    while agent.asks < orders and not isinstance(order := agent.ask(), Stop):
        vehicle.send(order)
        (event,) = vehicle.events(0.0)
        agent.tell(event)
    return agent


def test_the_belief_is_that_of_all_readings_within_a_fraction_of_its_standard_deviation():
    agent = driven(bay_mission())
    every = [event for event in agent.history if isinstance(event, Observation)]
    sites, values, noises = (
        np.concatenate([getattr(event, name) for event in every])
        for name in ("sites", "values", "noise_variances")
    )
    assert len(values) > 600
    assert agent.readings < 0.25 * len(values)
    exact = Belief(agent.hyperparameters.kernel).condition_on(sites, values, noises)
    grid = agent.domain.sites
    sd = np.sqrt(exact.variance(grid))
    assert np.sqrt(np.mean(((agent.surface.mean - exact.mean(grid)) / sd) ** 2)) < 0.1
    assert agent.surface.sd == pytest.approx(sd, rel=0.1)


def test_readings_are_pooled_anew_with_the_length_scales_of_each_fit():
    agent = driven(bay_mission(Model(average=False), battery=4000.0), orders=12)
    before = agent.readings
    scales = agent.hyperparameters.kernel.length_scales
    assert agent.online_model.fits
    halved = dict(agent.hyperparameters.to_plain(), length_scales=(0.5 * scales).tolist())
    agent.tell(fieldbo.messages.Fitted(halved))
    assert 1.3 * before < agent.readings < 2.5 * before
    assert agent.surface.belief.size == agent.readings


def test_fits_are_due_by_orders_not_by_readings():
    agent = driven(bay_mission(Model(average=False), battery=1e5, every_s=4.0), orders=24)
    assert [fit.after for fit in agent.online_model.fits] == [2, 12, 22]


def test_a_correction_of_a_reading_on_the_way_gives_the_belief_that_the_right_one_would_have():
    mission = bay_mission(Model(), battery=1e5)
    wrong, right = Agent(mission), Agent(mission)
    vehicle = Simulated(mission)
    for number in range(8):
        order = right.ask()
        vehicle.send(order)
        (event,) = vehicle.events(0.0)
        right.tell(event)
        wrong.replay(order, right.issued[order.id].memory, right.issued[order.id].why)
        spoilt = event.values.copy()
        if number == 3:
            k = len(spoilt) // 2
            spoilt[k] += 0.3
        wrong.tell(replace(event, values=spoilt))
        if number == 3:
            true_value = float(event.values[k])
        while (fitted := right.refit()) is not None:
            right.tell(fitted)
        while (fitted := wrong.refit()) is not None:
            wrong.tell(fitted)
    assert not np.array_equal(right.surface.mean, wrong.surface.mean)
    wrong.correct(3, true_value, k)
    while (fitted := wrong.refit()) is not None:
        wrong.tell(fitted)
    assert np.array_equal(right.surface.mean, wrong.surface.mean)
    assert np.array_equal(right.stated.surface.mean, wrong.stated.surface.mean)


def test_failed_readings_on_the_way_are_left_out_and_their_sites_still_proposed():
    mission = bay_mission()
    agent, vehicle = Agent(mission), Simulated(mission)
    for _ in range(3):
        order = agent.ask()
        vehicle.send(order)
        (event,) = vehicle.events(0.0)
        values = event.values.copy()
        values[1:-1:2] = np.nan
        agent.tell(replace(event, values=values))
    assert np.isfinite(agent.surface.mean).all()
    assert not agent.rejected.any()


def test_a_part_that_failed_on_the_way_says_nothing_about_the_place_where_it_ended():
    mission = bay_mission()
    agent, vehicle = Agent(mission), Simulated(mission)
    for _ in range(2):
        order = agent.ask()
        vehicle.send(order)
        (event,) = vehicle.events(0.0)
        agent.tell(event)
    before = agent.ask()
    failed = np.full(3, np.nan)
    sites = np.tile(agent.domain.sites[[5]], (3, 1))
    agent.tell(
        Observation(before.id, sites, failed, np.full(3, 0.01), np.full(3, 900.0), sites[0], 1.0, last=False)
    )
    assert not agent.rejected.any()


def test_a_robot_whose_sensor_reads_on_the_way_keeps_its_readings_unless_the_mission_tests_them():
    assert bay_mission().as_found().model.outliers is None
    tested = bay_mission(replace(KNOWN, outliers="tested"))
    assert tested.as_found().model.outliers == "tested"


WORLD = world_text(
    ("east", 0, 400, 21),
    ("north", 0, 400, 21),
    title="a bay that a boat logs every second",
    domain={"obstacles": [{"name": "island", "corners": [[150, 100], [250, 100], [250, 250], [150, 250]]}]},
    field={"kind": "gp-draw", "length_scales": [120, 120]},
    cost={"kind": "boat", "stop_s": 20},
    sensor={"noise_sd": 0.1, "along": {"every_s": 1}},
)
MISSION = mission_text("bay", threshold=0.3, battery=2000, agent={"home": [0, 0]}, model={"average": False})


@pytest.fixture
def logged(tmp_path):
    """A mission from files, in a bay with an island."""
    (tmp_path / "bay").mkdir()
    (tmp_path / "bay" / "world.toml").write_text(WORLD)
    (tmp_path / "logged.toml").write_text(MISSION)
    return fieldbo.load_mission(tmp_path / "logged.toml")


def recorded(mission, folder):
    """The folder of a run of a mission."""
    folder, record = begin(mission, folder)
    with record:
        run(mission, record=record).save(folder)
    return folder


def test_the_path_is_the_route_whatever_was_read_on_it(logged):
    result = run(logged)
    points = [logged.vehicles[0].start]
    routes = {query.id: query.route for query in result.queries}
    for event in result.observations:
        if not np.array_equal(event.position, points[-1]):
            route = routes.get(event.order, np.empty((0, 0)))
            points += [*route[1:]] if len(route) else [event.position]
    assert len(result.values) > 1000
    assert any(len(route) for route in routes.values())
    driven_home = logged.world.cost.path(result.observations[-2].position, [0.0, 0.0])
    points[-1:] = driven_home[1:]
    assert result.path.tolist() == np.stack(points).tolist()


def test_a_track_off_the_route_is_drawn_where_the_vehicle_read():
    mission = small_mission()
    agent = Agent(mission)
    for _ in range(2):
        order = agent.ask()
        sites = np.array([[0.2, 0.9], [0.4, 1.9], *([order.site] if len(order.site) else [])])
        agent.tell(
            Observation(order.id, sites, np.zeros(3), np.full(3, 0.01), np.arange(3.0), order.site, 1.0)
        )
    path = fieldbo.Result.of(agent).path.tolist()
    assert [0.2, 0.9] in path
    assert [0.4, 1.9] in path


@pytest.mark.slow
def test_a_record_has_a_hundred_bytes_per_reading_and_gives_the_same_belief(logged, tmp_path):
    folder, result = recorded(logged, tmp_path / "run"), run(logged)
    assert len(result.values) > 1000
    with Record(folder / "run.sqlite") as record:
        bodies = [row.body for row in record.rows() if row.kind == "observation"]
    assert len(json.dumps(bodies)) < 110 * len(result.values)
    again = load_run(folder).result()
    assert np.array_equal(again.values, result.values)
    assert np.array_equal(again.surface.mean, result.surface.mean)


def test_a_resumed_run_ends_as_an_uninterrupted_one(logged, tmp_path):
    whole, seen = run(logged), []

    def interrupt(step):
        seen.append(step)
        if len(seen) == 7:
            raise KeyboardInterrupt

    folder, record = begin(logged, tmp_path / "run")
    with record, pytest.raises(Interrupted):
        run(logged, record=record, on_step=interrupt)
    result = resume(folder)
    assert len(seen) == 7
    assert np.array_equal(result.values, whole.values)
    assert np.array_equal(result.surface.mean, whole.surface.mean)
    assert result.path.tolist() == whole.path.tolist()


@pytest.mark.slow
def test_tables_and_pictures_show_each_reading_with_its_time_and_place(logged, tmp_path):
    folder = recorded(logged, tmp_path / "run")
    result = load_run(folder).result()
    rows = list(csv.DictReader(io.StringIO((folder / "observations.csv").read_text())))
    assert len(rows) == len(result.values)
    times = np.array([float(row["time_s"]) for row in rows])
    assert (np.diff(times) > 0).all()
    places = [[float(row["east"]), float(row["north"])] for row in rows]
    assert places == result.sites.tolist()
    assert sum(float(row["cost"]) for row in rows) == pytest.approx(result.cost)
    assert result.on_the_way.sum() == len(rows) - result.steps
    figure = plot.path_picture(result)
    (dots,) = [line for line in figure.axes[0].lines if line.get_label() == "reading on the way"]
    assert len(dots.get_xdata()) == result.on_the_way.sum()
    (at_sites,) = [line for line in figure.axes[0].lines if "numbered in order" in str(line.get_label())]
    assert len(at_sites.get_xdata()) == result.steps
    export(folder, ["csv", "mcap"], tmp_path / "out")
    assert len((tmp_path / "out" / "observations.csv").read_text().splitlines()) == len(rows) + 1
