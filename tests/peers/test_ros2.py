"""A robot on ROS 2: Fast DDS between it and fieldbo, each in a process of its own, in a network of their own."""

from __future__ import annotations

import os
from itertools import count

import numpy as np
import pytest
from peers.faults import FaultTable, Peer
from peers.network import cut, own_network
from peers.pond import SPEEDUP, pond, pond_mission
from peers.processes import fieldbo
from working_folder import write

from fieldbo.errors import InputError
from fieldbo.testing import VehicleContract
from fieldbo.vehicles.ros2 import Ros2
from fieldbo.vehicles.settings import for_new_run, vehicle_of

FRAME = '[frame]\nalong = "x"\nleft = "y"\n'


@pytest.fixture(scope="module", autouse=True)
def network():
    """Nothing of another ROS 2 on this machine is heard here, and nothing goes past the network."""
    settings = {"FASTDDS_BUILTIN_TRANSPORTS": "UDPv4", "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    with pytest.MonkeyPatch.context() as patch, own_network():
        for name, value in settings.items():
            patch.setenv(name, value)
        yield


# -- a robot in another process --------------------------------------------------------------------------


class Contract(VehicleContract):
    """Each test meets a robot of its own, in a domain of its own."""

    kind: str
    patience_s = 20.0
    domains = count(1)

    @pytest.fixture(autouse=True)
    def _robot(self, tmp_path):
        self.folder, self.file = tmp_path, tmp_path / "robot.toml"
        link = f'[link]\nkind = "{self.kind}"\ndomain_id = {next(self.domains)}\n'
        write(self.file, f"format = 1\n{link}{FRAME}[arrival]\nwithin = 0.1\n")
        world = pond(tmp_path).parent / "pond" / "world.toml"
        with fieldbo("robot", self.file, "--world", world, "--speedup", SPEEDUP) as robot:
            robot.wait_for("ready")
            yield

    def mission(self):
        return pond_mission(self.folder)

    def vehicle(self, mission):
        return vehicle_of(for_new_run(str(self.file)), mission)


class TestVisit(Contract):
    kind = "ros2"


class TestTopics(Contract):
    kind = "ros2-topics"


class TestNav2(Contract):
    kind = "ros2-nav2"


# -- what goes wrong -------------------------------------------------------------------------------------


class OverVisit(Peer):
    """A robot that serves Visit; the network can be cut."""

    tables = FRAME
    link = 'kind = "ros2"'

    def start(self):
        """There is nothing between."""

    def cut(self):
        cut()

    def mend(self):
        cut(False)


class TestFaults(FaultTable):
    peer = OverVisit
