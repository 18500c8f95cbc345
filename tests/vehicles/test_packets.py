"""Packets of MAVLink that come late: each counts once, and hides no other."""

from dataclasses import dataclass

import pytest

from fieldbo.vehicles.mavlink import wire
from fieldbo.vehicles.mavlink.wire import Sequence


@dataclass
class Packet:
    """A packet of one component, ten milliseconds after the one before."""

    number: int
    timed: bool = True

    def __post_init__(self):
        if self.timed:
            self.time_boot_ms = 10 * self.number

    def get_srcSystem(self):  # noqa: N802 - pymavlink's name
        return 1

    def get_srcComponent(self):  # noqa: N802
        return 1

    def get_seq(self):
        return self.number % 256


@pytest.fixture
def sequence():
    sequence = Sequence()
    assert all(sequence.is_new(Packet(number)) for number in range(300))
    return sequence


@pytest.mark.parametrize("late", [1, 20, 127, 128, 140, 255])
def test_a_late_packet_is_not_new_and_hides_none_of_those_that_follow(sequence, late):
    assert not sequence.is_new(Packet(299 - late))
    assert all(sequence.is_new(Packet(number)) for number in range(300, 400))


@pytest.mark.parametrize("late", [140, 180])
def test_a_late_packet_without_a_time_hides_none_of_those_that_follow(sequence, late):
    sequence.is_new(Packet(299 - late, timed=False))
    assert all(sequence.is_new(Packet(number, timed=number % 5 == 0)) for number in range(300, 400))


def test_packets_after_a_gap_are_new(sequence):
    assert all(sequence.is_new(Packet(number)) for number in range(400, 500))


def test_packets_of_different_kinds_may_carry_times_that_are_a_little_older(sequence):
    mixed = Packet(300)
    mixed.time_boot_ms -= 200
    assert sequence.is_new(mixed)


def test_a_vehicle_that_was_restarted_counts_anew(sequence, monkeypatch):
    later_s = wire.time.monotonic() + 5.0
    monkeypatch.setattr(wire.time, "monotonic", lambda: later_s)
    assert all(sequence.is_new(Packet(number)) for number in range(50))
