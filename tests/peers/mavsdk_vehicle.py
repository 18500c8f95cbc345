"""A vehicle whose MAVLink is all MAVSDK's: its C++ library sends and takes every message; modes are PX4's.

``python mavsdk_vehicle.py VEHICLE.toml WORLD [--seed 0] [--battery 6000] [--speedup 1]`` is the vehicle that
the file's link reaches. It stands armed, goes where SET_POSITION_TARGET_GLOBAL_INT says while it is in
OFFBOARD, and prints each mission that is put into it, as JSON.
"""

import argparse
import json
import queue
import time

from mavsdk.component_type import ComponentType
from mavsdk.mavsdk import Configuration, Mavsdk
from mavsdk.plugins.action_server import ActionServer, AllowableFlightModes, FlightMode
from mavsdk.plugins.mavlink_direct_server import MavlinkDirectServer, MavlinkMessage
from mavsdk.plugins.mission_raw_server import MissionRawServer, MissionRawServerResult
from mavsdk.plugins.telemetry_server import Battery, Heading, Position, TelemetryServer, VelocityNed

from fieldbo.mission.load import load_world
from fieldbo.vehicles.file import LoadedVehicleFile
from fieldbo.vehicles.remote.link import BatteryReport, GoalResult, PositionReport
from fieldbo.vehicles.simulators import Robot
from fieldbo.vehicles.simulators.mavlink import mirrored

OFFBOARD = FlightMode.OFFBOARD


class Vehicle:
    """Between MAVSDK, whose callbacks come on threads of its own, and the robot."""

    def __init__(self, mavsdk, robot, link, ground):
        autopilot = mavsdk.server_component_by_type(ComponentType.AUTOPILOT)
        self.robot, self.link, self.ground = robot, link, ground
        self.telemetry, self.action = TelemetryServer(autopilot), ActionServer(autopilot)
        self.mission, self.direct = MissionRawServer(autopilot), MavlinkDirectServer(autopilot)
        self.came = queue.SimpleQueue()
        self.reading, self.count, self.mode, self.target = None, 0, None, None
        self.action.set_armable(True, True)
        self.action.set_disarmable(True, True)
        self.action.set_allowable_flight_modes(AllowableFlightModes(*[True] * 7))
        self.action.set_armed_state(True)
        self.action.subscribe_flight_mode_change(lambda result, mode, _: self.came.put((self.switched, mode)))
        self.mission.subscribe_incoming_mission(
            lambda result, plan, _: self.came.put((self.planned, (result, plan)))
        )
        self.direct.subscribe_message(
            "SET_POSITION_TARGET_GLOBAL_INT",
            lambda message, _: self.came.put((self.guided, json.loads(message.fields_json))),
        )

    def turn(self):
        while not self.came.empty():
            act, what = self.came.get()
            act(what)
        for signal in self.robot.tick():
            self.tell(signal)

    def switched(self, mode):
        self.mode = mode
        print(f"mode {mode.name}", flush=True)
        if mode != OFFBOARD:
            self.target = None
            self.robot.hold()

    def planned(self, what):
        result, plan = what
        if result != MissionRawServerResult.SUCCESS:
            print(f"no mission: {result.name}", flush=True)
            return
        names = ["seq", "frame", "command", "current", "autocontinue", "param1", "param2", "param3", "param4"]
        items = [{name: getattr(one, name) for name in [*names, "x", "y", "z"]} for one in plan.mission_items]
        print(f"mission {json.dumps(items)}", flush=True)

    def guided(self, message):
        target = tuple(message[name] for name in ("time_boot_ms", "lat_int", "lon_int", "alt"))
        if self.mode != OFFBOARD or (self.target is not None and target <= self.target):
            return  # known, or overtaken by a later one
        self.target, self.reading = target, None
        _, latitude, longitude, altitude = target
        place = self.ground.from_geodetic([latitude / 1e7, longitude / 1e7, altitude])[0]
        self.robot.go_to(f"target {self.count}", place, 0.05)
        self.count += 1

    def tell(self, signal):
        if isinstance(signal, PositionReport):
            latitude, longitude, altitude = self.ground.geodetic(signal.position)[0].tolist()
            place = Position(latitude, longitude, altitude, altitude)
            self.telemetry.publish_position(place, VelocityNed(0, 0, 0), Heading(90))
            if self.reading is not None:
                self.send("NAMED_VALUE_FLOAT", time_boot_ms=0, name=self.link.reading, value=self.reading)
        elif isinstance(signal, BatteryReport) and signal.share is not None:
            self.telemetry.publish_battery(Battery(12.6, signal.share))
        elif isinstance(signal, GoalResult) and signal.complete and len(signal.values):
            self.reading = float(signal.values[-1])

    def send(self, kind, **fields):
        self.direct.send_message(MavlinkMessage(kind, fields_json=json.dumps(fields)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vehicle")
    parser.add_argument("world")
    parser.add_argument("--seed", type=int, default=0)
    for name, default in (("--battery", 6000.0), ("--speedup", 1.0)):
        parser.add_argument(name, type=float, default=default)
    asked = parser.parse_args()
    told, world = LoadedVehicleFile.read(asked.vehicle), load_world(asked.world)
    robot = Robot(world, seed=asked.seed, battery=asked.battery, speedup=asked.speedup)
    mavsdk = Mavsdk(Configuration.create_manual(told.link.system, told.link.component, True))
    mavsdk.add_any_connection(mirrored(told.link).replace(":", "://", 1))
    vehicle = Vehicle(mavsdk, robot, told.link, told.settings.frame.over(world.domain.axes))
    print("ready", flush=True)
    while True:
        vehicle.turn()
        time.sleep(0.02)


if __name__ == "__main__":
    main()
