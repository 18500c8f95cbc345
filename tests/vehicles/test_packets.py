"""Packets of MAVLink that come late: each counts once, and hides no other."""

from dataclasses import dataclass

import pytest

from fieldbo.vehicles.mavlink import wire
from fieldbo.vehicles.mavlink.wire import PacketSequence


@dataclass
class Packet:
    """A packet of one component."""

    number: int

    def get_srcSystem(self):  # noqa: N802 - pymavlink's name
        return 1

    def get_srcComponent(self):  # noqa: N802
        return 1

    def get_seq(self):
        return self.number % 256


@pytest.fixture
def sequence():
    sequence = PacketSequence()
    assert all(sequence.is_new(Packet(number)) for number in range(300))
    return sequence


@pytest.mark.parametrize("late", [1, 20, 127])
def test_a_late_packet_is_not_new(sequence, late):
    assert not sequence.is_new(Packet(299 - late))
    assert all(sequence.is_new(Packet(number)) for number in range(300, 400))


@pytest.mark.parametrize("late", [128, 140, 180])
def test_a_packet_that_is_late_by_half_a_cycle_hides_none_of_those_that_follow(sequence, late):
    sequence.is_new(Packet(299 - late))
    assert all(sequence.is_new(Packet(number)) for number in range(300, 400))


def test_packets_after_a_gap_are_new(sequence):
    assert all(sequence.is_new(Packet(number)) for number in range(400, 500))


def test_a_vehicle_that_was_restarted_counts_anew(sequence, monkeypatch):
    later_s = wire.time.monotonic() + 5.0
    monkeypatch.setattr(wire.time, "monotonic", lambda: later_s)
    assert all(sequence.is_new(Packet(number)) for number in range(50))
