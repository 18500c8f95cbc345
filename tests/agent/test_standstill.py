"""What stands still although its vehicle works is noticed, and nothing else is."""

from dataclasses import replace

import pytest
from direct_link import Near, Streaming
from hypothesis import given
from hypothesis import strategies as st
from remote_vehicles import mission, remote

import fieldbo
from fieldbo.agent.failures import Standstill
from fieldbo.messages import GoHome, Query, Telemetry
from fieldbo.record.record import Record

COST = 3.0


def worked(*, levels=None, positions=None, times=None, values=None, accuracy=0.0, orders=8, limit=None):
    """What stands still after orders to sites 1, 2, ...; by default, all that the vehicle reports changes."""
    still = Standstill(100.0, "s", limit)
    for k in range(1, orders + 1):
        order = Query([float(k), 0.0], expected_cost=COST, id=f"run/{k}")
        event = order.observed(
            value=k + 0.5 if values is None else values[k - 1],
            noise_variance=0.01,
            time_s=COST * k if times is None else times[k - 1],
            position=[k if positions is None else positions[k - 1], 0.0],
        )
        still.done(order, event, COST)
        level = 100.0 - COST * k if levels is None else levels[k - 1]
        still.heard(Telemetry(0, event.position, level, COST * k, accuracy))
    return still


def test_what_changes_does_not_stand_still():
    assert worked().found == {}


@pytest.mark.parametrize(
    ("changes", "what", "how"),
    [
        ({"levels": [100.0] * 8}, "battery gauge", "it has shown 100 s while orders declared at 21 s were"),
        ({"positions": [1.0] * 8}, "position", "it has stayed the same through 7 orders to other sites"),
        ({"times": [9.0] * 8}, "clock", "it has shown 9 s through 7 orders"),
        ({"values": [7.3] * 8}, "sensor", "it has read 7.3 at 8 sites in a row"),
    ],
    ids=["gauge", "position", "clock", "sensor"],
)
def test_what_stands_still_is_named(changes, what, how):
    still = worked(**changes)
    assert list(still.now) == list(still.found) == [what]
    assert still.now[what].startswith(how)


@pytest.mark.parametrize(
    "changes",
    [
        {"levels": [97, 97, 94, 94, 91, 91, 88, 88]},  # it moves in steps
        {"levels": [100.0] * 8, "accuracy": 10.0},  # it is not that accurate
        {"levels": [None] * 8},
        {"values": [0.0] * 8},  # a count
        {"values": [0.2] * 8, "limit": 0.2},
        {"values": [7.3, 7.3, 7.3, 7.3, 7.3, 7.4, 7.3, 7.3]},
        {"positions": [1, 1, 1, 2, 2, 2, 3, 3]},
        {"times": [9.0, 9.0, 9.0, 10.0, 10.0, 11.0, 12.0, 13.0]},
        {"times": [None] * 8},
    ],
)
def test_what_may_well_stay_the_same_is_not_named(changes):
    assert worked(**changes).found == {}


def test_what_moves_again_stands_still_no_longer_but_it_did():
    still = worked(levels=[100, 100, 100, 100, 100, 100, 70, 70])
    assert still.now == {}
    assert still.found["battery gauge"] == "it has shown 100 s while orders declared at 15 s were carried out"


def test_another_battery_may_show_the_same():
    still = worked(levels=[100.0] * 8)
    still.renew()
    still.heard(Telemetry(0, [1.0, 0.0], 100.0, 99.0))
    assert not still.gauge
    home = GoHome(0, "run/9", [0.0, 0.0], 3.0)
    still.done(home, home.observed(), 3.0)
    assert not still.gauge


@given(st.lists(st.floats(1.0, 90.0), min_size=3, max_size=8, unique=True))
def test_a_gauge_that_moves_with_each_order_never_stands_still(levels):
    assert "battery gauge" not in worked(levels=levels, orders=len(levels)).found


# -- a robot whose reports stand still ---------------------------------------------------------------------


def run_with(fault, tmp_path, *, link=Near, battery=40.0):
    made = replace(mission(battery=battery, noise_sd=0.05), max_steps=30)
    vehicle, steps = remote(fault, mission=made, link=link), []
    tmp_path.mkdir()
    with Record.create(tmp_path / "run.sqlite", "run", {"vehicles": [{}]}) as record:
        result = fieldbo.run(made, [vehicle], record=record, on_step=steps.append)
    return result, vehicle.link.robot, steps


@pytest.mark.parametrize("link", [Near, Streaming])
def test_a_stuck_gauge_gives_nothing_back_and_is_named(tmp_path, link):
    honest = run_with("uncharged:0", tmp_path / "honest", link=link)[1]
    result, robot, steps = run_with("gauge:0", tmp_path / "stuck", link=link)
    assert robot.remaining >= 0.0
    assert 40.0 - robot.remaining == pytest.approx(40.0 - honest.remaining, abs=4.0)
    assert steps[0].standing_still == ()
    assert steps[-1].standing_still == ("battery gauge",)
    (note,) = [note for note in result.notes if "still" in note]
    assert note.startswith("the battery gauge of the vehicle stands still: it has shown ")


def test_a_stuck_sensor_and_a_stuck_position_are_named(tmp_path):
    assert "sensor" in run_with("sensor:1", tmp_path / "sensor")[2][-1].standing_still
    result, _, steps = run_with("fix:1", tmp_path / "fix")
    assert any("position" in step.standing_still for step in steps)
    assert any(note.startswith("the position of the vehicle stood still") for note in result.notes)
