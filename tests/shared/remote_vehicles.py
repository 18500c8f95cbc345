"""Remote vehicles over a link in this process, whose robots do as they are told or have faults."""

import math
from dataclasses import replace

import numpy as np
from direct_link import Near

from fieldbo.messages import Lost, Observation, Rejected
from fieldbo.mission.vehicle_spec import WhenLost
from fieldbo.testing import SteppedClock, small_mission, small_world
from fieldbo.vehicles.remote.link import GoalResult
from fieldbo.vehicles.remote.remote import Remote
from fieldbo.vehicles.remote.settings import Arrival, Battery, Reports, VehicleFile, Watch
from fieldbo.vehicles.simulators import Fault, Robot

QUICK = Watch(silence_s=0.3, connect_s=0.5, patience=3.0, least_s=0.6)
SETTINGS = VehicleFile.model_construct(
    format=1,
    title="",
    link={},
    frame=None,
    watch=QUICK,
    battery=Battery(),
    reports=Reports(),
    arrival=Arrival(1e-6, dwell_s=0.0),
)


def mission(battery=40.0, noise_sd=0.05, **when_lost):
    made = small_mission(world=small_world(noise_sd=noise_sd), battery=battery)
    return replace(made, vehicles=(replace(made.vehicles[0], when_lost=WhenLost(**when_lost)),))


def remote(*faults, mission=None, link=Near, speedup=1000.0, session="s", clock=None, **settings):
    mission, clock = mission or small_mission(), clock or SteppedClock()
    robot = Robot(
        mission.world,
        seed=mission.seed,
        start=mission.vehicles[0].start,
        battery=mission.vehicles[0].battery,
        speedup=speedup,
        faults=[Fault.parse(f) for f in faults],
        clock=clock,
    )
    return Remote(mission, 0, link(robot), SETTINGS.model_copy(update=settings), session, clock)


def again(vehicle):
    """Return a new vehicle for the robot of another one, as after a restart of the planner."""
    settings = vehicle._filter.settings
    return Remote(vehicle.mission, 0, vehicle.link, settings, vehicle.session, vehicle.clock)


def until_settled(vehicle, order, patience_s=5.0):
    """Return all events up to the one that settles an order, and those that came with it."""
    found, end_s = [], vehicle.clock.now_s() + patience_s
    while vehicle.clock.now_s() < end_s:
        found += vehicle.events(0.05)
        if any(e.order == order for e in found if isinstance(e, Observation | Rejected | Lost)):
            return found
    raise AssertionError(f"{order} was not settled: {found}")


def settled(vehicle, order):
    return next(e for e in until_settled(vehicle, order) if getattr(e, "order", None) == order)


def part(vehicle, number, position, *, last, value=1.0, **more):
    at = np.array(position, dtype=float)
    vehicle._track.expect(at, vehicle.clock.now_s())  # as the robot's positions would show
    done = GoalResult(
        f"run/{number}#s", at, at[None], np.array([value]), np.array([math.nan]), last=last, **more
    )
    vehicle.link.wires[-1].hear(done)


def until_settled_whole(vehicle):
    found, end_s = [], vehicle.clock.now_s() + 5.0
    while not any(isinstance(e, Observation) and e.last for e in found):
        assert vehicle.clock.now_s() < end_s
        found += vehicle.events(0.05)
    return found
