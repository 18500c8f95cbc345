"""Clocks: this machine's, and one that moves only while somebody waits by it."""

import queue
import sys
import threading
import time

import pytest

from fieldbo.clock import Clock
from fieldbo.testing import SteppedClock


@pytest.fixture
def clock():
    return SteppedClock(step_s=0.25)


def test_a_stepped_clock_stands_still_until_somebody_waits(clock):
    assert clock.now_s() == clock.now_s() == clock.boot_s()
    clock.sleep(7.0)
    assert clock.now_s() == 7.0


def test_what_goes_on_meanwhile_takes_a_turn_in_each_step(clock):
    turns_s = []
    clock.meanwhile.append(lambda: turns_s.append(clock.now_s()))
    clock.sleep(0.6)
    assert turns_s == [0.0, 0.25, 0.5]
    assert clock.now_s() == pytest.approx(0.6)


def test_a_wait_for_something_that_is_there_takes_no_time(clock):
    heard, done = queue.SimpleQueue(), threading.Event()
    heard.put("hello")
    done.set()
    assert clock.get(heard, 60.0) == "hello"
    assert clock.wait(done, 60.0)
    assert clock.now_s() == 0.0


def test_a_wait_ends_with_the_step_in_which_its_object_comes(clock):
    heard, done = queue.SimpleQueue(), threading.Event()
    clock.after(1.0, lambda: heard.put(clock.now_s()))
    clock.after(2.0, done.set)
    assert (clock.get(heard, 60.0), clock.now_s()) == (1.0, 1.25)
    assert (clock.wait(done, 60.0), clock.now_s()) == (True, 2.25)


def test_a_wait_in_vain_takes_all_of_its_time(clock):
    with pytest.raises(queue.Empty):
        clock.get(queue.SimpleQueue(), 1.5)
    assert not clock.wait(threading.Event(), 0.5)
    assert clock.now_s() == 2.0


def test_what_is_to_be_done_later_is_done_once(clock):
    done_s = []
    clock.after(1.0, lambda: done_s.append(clock.now_s()))
    clock.sleep(5.0)
    assert done_s == [1.0]


def test_deadlines_stand_still_while_the_computer_is_suspended(clock):
    clock.suspend(500.0)
    assert (clock.now_s(), clock.boot_s()) == (0.0, 500.0)


@pytest.mark.parametrize("timeout_s", [0.0, -1.0])
def test_a_wait_without_time_only_looks(clock, timeout_s):
    for kind in (clock, Clock()):
        with pytest.raises(queue.Empty):
            kind.get(queue.SimpleQueue(), timeout_s)
        kind.sleep(timeout_s)
    assert clock.now_s() == 0.0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such clock")
def test_the_clock_of_this_machine_counts_the_time_in_which_it_was_suspended():
    before_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before_s <= Clock().boot_s() <= time.clock_gettime(time.CLOCK_BOOTTIME)
