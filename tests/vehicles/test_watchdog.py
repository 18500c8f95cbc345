"""A robot is silent for as long as fieldbo listens and hears nothing."""

import pytest

from fieldbo.vehicles.remote.contact import Watchdog


def watched(*checks_s, allowed_s=4.0):
    """Return a watchdog that was reset at 0 and checked at these times."""
    watchdog = Watchdog(allowed_s)
    watchdog.reset(0.0)
    for now_s in checks_s:
        watchdog.check(now_s)
    return watchdog


def test_silence_between_frequent_checks_counts_in_full():
    watchdog = watched(*(0.5 * k for k in range(1, 9)))
    assert watchdog.silent_s == pytest.approx(4.0)
    assert not watchdog.expired
    watchdog.check(4.5)
    assert watchdog.expired


def test_one_long_interval_does_not_make_a_robot_silent():
    assert not watched(3600.0).expired


def test_a_robot_is_silent_in_the_end_however_seldom_it_is_checked():
    assert not watched(10.0, 20.0, 30.0, 40.0).expired
    assert watched(10.0, 20.0, 30.0, 40.0, 50.0).expired


def test_a_report_resets_it_also_one_that_arrived_before_the_last_check():
    watchdog = watched(1.0, 2.0, 3.0)
    watchdog.reset(2.5)
    assert watchdog.silent_s == 0.0
    watchdog.check(3.0)
    assert watchdog.silent_s == pytest.approx(0.5)


def test_nothing_counts_before_the_first_reset():
    watchdog = Watchdog(4.0)
    watchdog.check(100.0)
    assert watchdog.silent_s == 0.0
