"""Automatic holds: what a mission file may say, and when a vehicle is held."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples
from underway import Underway, command
from working_folder import write

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.errors import InputError
from fieldbo.messages import Action, Telemetry
from fieldbo.mission.rules import Hold, Zone
from fieldbo.record.record import Record
from fieldbo.runs.folder import begin
from fieldbo.runs.holds import Holds
from fieldbo.runs.runner import resume, run
from fieldbo.runs.steer import append, commands_file
from fieldbo.testing import small_mission
from fieldbo.vehicles.load import check_new

WIND = Hold("wind", above=8, release_below=6, delay_s=10)
VOLTAGE = Hold("voltage", below=11.2, release_above=11.8)


# -- settings --------------------------------------------------------------------------------------------


def test_a_hold_defaults_to_its_limit_without_delay_and_the_name_of_its_channel():
    hold = Hold("wind", above=8)
    assert (hold.release_below, hold.delay_s, hold.latch, hold.name) == (8, 0, False, "wind")
    assert Hold("voltage", below=11).release_above == 11
    assert replace(hold, delay_s=3).release_below == 8


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({}, "neither above nor below is set"),
        ({"above": 8, "below": 3}, "above and below are both set"),
        ({"above": 8, "release_below": 9}, "release_below = 9, but above = 8"),
        ({"below": 8, "release_above": 7}, "release_above = 7, but below = 8"),
        ({"above": 8, "release_above": 9}, "release_above is set, but the hold is for values above"),
        ({"above": math.nan}, "above = nan"),
        ({"above": math.inf}, "above = inf"),
        ({"above": "8"}, 'above = "8"'),
        ({"above": 8, "delay_s": -1}, "delay_s = -1"),
        ({"above": 8, "channel": ""}, 'channel = ""'),
        ({"above": 8, "channel": "wind\x1b[2J"}, "channel = "),
        ({"above": 8, "name": " wind"}, "name = ' wind'"),
        ({"above": 8, "channel": "w" * 101}, "channel = "),
    ],
)
def test_a_hold_that_says_nothing_clear_is_an_error(content, problem):
    with pytest.raises(InputError) as error:
        Hold(**{"channel": "wind", **content})
    assert problem in str(error.value)
    assert "expected:" in str(error.value)


def test_two_holds_on_one_channel_need_two_names():
    both = (Hold("wind", above=8), Hold("wind", above=12, latch=True))
    with pytest.raises(InputError, match="two holds have the name 'wind'"):
        replace(small_mission(), holds=both)
    named = (both[0], replace(both[1], name="storm"))
    assert [hold.name for hold in replace(small_mission(), holds=named).holds] == ["wind", "storm"]


MISSION = """format = 1
world = "lake-transect"
[question]
kind = "level-set"
threshold = 1.5
[agent]
battery = 600
home = [0, 0]
[[hold]]
channel = "wind"
above = 8
release_below = 6
delay_s = 60
[[hold]]
channel = "voltage"
below = 11.2
latch = true
"""


def test_check_says_in_words_when_a_mission_waits(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    write("windy.toml", MISSION)
    code, out, _ = command("check", "windy.toml")
    assert code == 0
    assert "hold      wind above 8, until below 6 for 1 min" in out
    assert "hold      voltage below 11.2, until an operator continues" in out


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("release_below = 6", "release_below = 60", "windy.toml: hold[0].release_below"),
        ("below = 11.2", "", "windy.toml: hold[1]"),
        ("below = 11.2", "belw = 11.2", "windy.toml: hold[1].belw"),
        ('"voltage"', '"wind"', "windy.toml: hold[1].name"),
        ("[[hold]]", "[hold]", "windy.toml: hold"),
    ],
)
def test_an_error_in_a_hold_names_its_place(old, new, where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = MISSION.replace(old, new)
    write("windy.toml", text[: text.rindex("[hold]")] if new == "[hold]" else text)
    with pytest.raises(InputError) as error:
        fieldbo.load_mission("windy.toml")
    assert error.value.where == where


def test_a_run_folder_holds_the_holds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("windy.toml", MISSION)
    mission = fieldbo.load_mission("windy.toml")
    folder, record = begin(mission, tmp_path / "run")
    with record:
        result = run(mission, record=record)
    assert fieldbo.load_mission(folder / "mission.toml").holds == mission.holds != ()
    assert fieldbo.load_run(folder).mission.holds == mission.holds
    assert [note for note in result.notes if "could do nothing" in note] == [
        "nothing was heard from the channel wind: the hold wind could do nothing",
        "nothing was heard from the channel voltage: the hold voltage could do nothing",
    ]


@pytest.mark.parametrize(
    ("plain", "warned"),
    [
        ({"kind": "by-hand"}, ["wind", "voltage"]),
        ({"format": 1, "link": {"kind": "mqtt"}, "session": "s"}, []),
        ({"format": 1, "link": {"kind": "ros2"}, "battery": {"full": 6000}, "session": "s"}, ["wind"]),
        (
            {
                "format": 1,
                "link": {"kind": "ros2", "channels": {"wind": "/wind"}},
                "battery": {"full": 6000},
                "session": "s",
            },
            [],
        ),
    ],
)
def test_a_vehicle_that_can_not_report_a_channel_is_warned_of_at_the_start(
    plain, warned, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    write("windy.toml", MISSION)
    warnings = [w for w in check_new(plain, fieldbo.load_mission("windy.toml")) if "can do nothing" in w]
    assert [w.partition(" can do")[0] for w in warnings] == [f"the hold {name}" for name in warned]


def test_zones_are_ordered_by_how_bad_they_are():
    assert [WIND.zone(x) for x in (5.9, 6, 8, 8.1, math.nan)] == [
        Zone.CLEAR,
        Zone.BETWEEN,
        Zone.BETWEEN,
        Zone.BEYOND,
        Zone.BETWEEN,
    ]
    assert Zone.CLEAR < Zone.BETWEEN < Zone.BEYOND


# -- when a vehicle is held ------------------------------------------------------------------------------


class Watched:
    """An agent whose vehicle stands still, and its holds; each telemetry is obeyed at once."""

    def __init__(self, *holds, battery=1e6):
        self.agent = Agent(replace(small_mission(battery=battery), holds=holds))
        self.holds, self.given = Holds(self.agent), []

    def hear(self, time_s, **channels):
        telemetry = Telemetry(0, [0.0, 0.0], None, time_s, channels=channels or None)
        self.agent.tell(telemetry)
        for wanted in self.holds.take(telemetry):
            self.give(wanted)
        return self.held

    def give(self, wanted):
        for named in self.holds.named(wanted):
            self.given.append(self.agent.completed(named))
            self.agent.tell(self.given[-1])
        return self.given[-1]

    @property
    def held(self):
        return set(self.agent.vehicles[0].paused_by)


VALUES = st.one_of(st.none(), st.floats(3.0, 11.0), st.sampled_from([6.0, 8.0]))


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 8.0), VALUES), max_size=40), st.sampled_from([0.0, 3.0, 10.0]))
def test_a_vehicle_is_held_above_and_let_go_once_the_value_stayed_below(reports, delay_s):
    """The law is stated over the whole history; None is telemetry without the channel."""
    hold = replace(WIND, delay_s=delay_s)
    watched, now_s, heard = Watched(hold), 0.0, []
    for after_s, value in reports:
        now_s += after_s
        held = bool(watched.hear(now_s, **({} if value is None else {"wind": value})))
        heard += [] if value is None else [(now_s, value)]
        beyond = [k for k, (_, x) in enumerate(heard) if x > 8]
        clear = [at_s for k, (at_s, _) in enumerate(heard) if all(x < 6 for _, x in heard[k:])]
        if value is not None and value > 8:
            assert held
        if clear and heard[-1][0] - clear[0] >= delay_s:
            assert not held
        if not beyond:
            assert not held
        if held:
            assert not clear or heard[-1][0] - clear[0] < delay_s
        lately = heard[beyond[-1] :] if beyond else []
        calm = [all(x < 6 for _, x in lately[k : j + 1]) and lately[j][0] - lately[k][0] >= delay_s
                for k in range(len(lately)) for j in range(k, len(lately))]  # fmt: skip
        assert held == (bool(beyond) and not any(calm))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.floats(10.0, 13.0), max_size=30))
def test_a_limit_below_is_the_mirror_image_of_one_above(values):
    low, high = Watched(VOLTAGE), Watched(Hold("voltage", above=-11.2, release_below=-11.8))
    for k, value in enumerate(values):
        assert low.hear(float(k), voltage=value) == high.hear(float(k), voltage=-value)


def test_a_value_that_flaps_between_the_limits_neither_holds_nor_lets_go():
    watched = Watched(replace(WIND, delay_s=0))
    assert not any(watched.hear(float(k), wind=x) for k, x in enumerate([7, 6, 8, 6.5, 8]))
    assert watched.hear(10.0, wind=8.5)
    assert all(watched.hear(11.0 + k, wind=x) for k, x in enumerate([7, 6, 8, 6.5, 9, 6]))
    assert not watched.hear(20.0, wind=5.9)
    assert [given.action for given in watched.given] == [Action.PAUSE, Action.CONTINUE]


def test_a_gust_begins_the_delay_again():
    watched = Watched(WIND)
    for time_s, value in [(0, 9), (5, 5), (14, 7), (15, 5), (24, 5)]:
        assert watched.hear(time_s, wind=value)
    assert not watched.hear(25.0, wind=5)


def test_a_channel_that_falls_silent_lets_nobody_go():
    watched = Watched(WIND)
    watched.hear(0.0, wind=9)
    watched.hear(1.0, wind=5)
    assert all(watched.hear(2.0 + k) for k in range(100))


def test_two_holds_end_each_on_its_own():
    watched = Watched(replace(WIND, delay_s=0), VOLTAGE)
    assert watched.hear(0.0, wind=9, voltage=12) == {"wind"}
    assert watched.hear(1.0, wind=9, voltage=11) == {"wind", "voltage"}
    assert watched.hear(2.0, wind=3, voltage=11) == {"voltage"}
    assert watched.hear(3.0, wind=3, voltage=12) == set()


def test_an_operators_pause_stays_when_a_hold_ends():
    watched = Watched(replace(WIND, delay_s=0))
    watched.give(command("pause"))
    watched.hear(0.0, wind=9)
    assert watched.hear(1.0, wind=3) == {""}
    watched.hear(2.0, wind=9)
    watched.give(command("continue"))
    assert watched.held == {"wind"}


def test_a_latched_hold_waits_for_an_operator_and_its_value():
    watched = Watched(replace(WIND, latch=True))
    watched.hear(0.0, wind=9.5)
    refused = watched.give(command("continue"))
    assert refused.refused == "wind is 9.5, above 8; wait until that is over; or: home"
    assert all(watched.hear(float(k), wind=1) for k in range(1, 100))
    obeyed = watched.give(command("continue"))
    assert (obeyed.hold, obeyed.refused, watched.held) == ("wind", "", set())
    assert watched.hear(200.0, wind=9) == {"wind"}


def test_an_operator_ends_all_holds_whose_values_are_back_or_none():
    watched = Watched(replace(WIND, latch=True), replace(VOLTAGE, latch=True))
    watched.hear(0.0, wind=9, voltage=11)
    watched.hear(1.0, wind=1, voltage=11)
    assert "voltage is 11, below 11.2" in watched.give(command("continue")).refused
    assert watched.held == {"wind", "voltage"}
    watched.hear(2.0, wind=1, voltage=12)
    watched.give(command("continue"))
    assert watched.held == set()
    assert len({given.id for given in watched.given}) == len(watched.given)


def test_a_continue_that_ends_two_holds_is_known_by_its_id_only_once_both_have_ended():
    """A run that died in between finds the command again, and obeys what is left of it."""
    watched = Watched(replace(WIND, latch=True), replace(VOLTAGE, latch=True))
    watched.hear(0.0, wind=9, voltage=11)
    watched.hear(1.0, wind=1, voltage=12)
    wanted = command("continue")
    first, last = watched.holds.named(wanted)
    assert first.id != wanted.id == last.id

    watched.agent.tell(watched.agent.completed(first))
    (left,) = watched.holds.named(wanted)
    assert (left.id, left.hold) == (wanted.id, last.hold)


def test_an_operator_may_end_a_hold_whose_channel_is_silent():
    watched = Watched(WIND)
    watched.hear(0.0, wind=9)
    watched.hear(60.0)
    assert watched.give(command("continue")).refused
    watched.hear(130.0)
    assert not watched.give(command("continue")).refused
    assert watched.hear(131.0) == set()
    assert watched.hear(132.0, wind=9) == {"wind"}


def test_a_vehicle_that_was_sent_home_is_not_held_on_its_way():
    watched = Watched(WIND)
    watched.hear(0.0, wind=9)
    watched.give(command("home"))
    assert watched.hear(1.0, wind=9.5) == set()


def test_a_hold_that_can_not_be_afforded_is_refused_once_and_tried_again(monkeypatch):
    watched = Watched(WIND)
    state = watched.agent.vehicles[0]
    monkeypatch.setattr(type(state), "can_turn_back", lambda state, cost, slack=0.0: False)
    assert not any(watched.hear(float(k), wind=9) for k in range(5))
    assert [bool(given.refused) for given in watched.given] == [True]
    monkeypatch.undo()
    assert watched.hear(6.0, wind=9) == {"wind"}


def test_a_hold_concerns_the_vehicle_that_reports_it():
    spec = small_mission().vehicles[0]
    agent = Agent(replace(small_mission(), vehicles=(spec, spec), holds=(WIND,)))
    (pause,) = Holds(agent).take(Telemetry(1, [0.0, 0.0], None, 1.0, channels={"wind": 9}))
    assert pause.vehicle == 1
    agent.tell(agent.completed(pause))
    assert [bool(state.paused_by) for state in agent.vehicles] == [False, True]


# -- runs ------------------------------------------------------------------------------------------------


class Windy(Underway):
    """A vehicle that reports the wind with each poll, and whose time passes while it waits."""

    def __init__(self, mission, wind, stop_at=None, tick_s=1.0):
        super().__init__(mission)
        self.wind, self.stop_at, self.tick_s = wind, stop_at, tick_s

    def events(self, timeout_s):
        events = super().events(timeout_s)
        if self.stop_at == self.count:
            raise RuntimeError("the process dies")
        if not self.queued:
            self.time_s += self.tick_s
        wind = self.wind(self.count)
        channels = None if wind is None else {"wind": wind}
        return [*events, Telemetry(0, self.position, None, self.time_s, channels=channels)]


@pytest.fixture
def windy():
    return replace(small_mission(battery=60.0), holds=(replace(WIND, delay_s=3),))


def carried_out(mission, folder, vehicle):
    record = Record.create(folder / "run.sqlite", "run", {"vehicles": [{"kind": "windy"}]})
    with record:
        result = run(mission, [vehicle], record=record)
        return result, record.rows()


def test_a_vehicle_under_way_stops_in_the_wind_and_the_ledger_says_what_it_took(windy, tmp_path):
    vehicle = Windy(windy, lambda count: 9.0 if 7 <= count < 15 else 5.0)
    result, rows = carried_out(windy, tmp_path, vehicle)

    commands = [row.message for row in rows if row.kind == "command"]
    assert [(c.action, c.hold) for c in commands] == [("pause", "wind"), ("continue", "wind")]
    assert commands[0].by == "hold: wind 9 above 8"
    kinds = [row.kind for row in rows]
    first, last = (k for k, kind in enumerate(kinds) if kind == "command")
    assert "query" not in kinds[first:last]
    assert "query" in kinds[last:]
    assert np.array_equal(result.path[-1], windy.vehicles[0].home)
    (hold,) = result.accounts[0].pauses
    assert (hold.hold, hold.seconds >= 8) == ("wind", True)
    result.save(tmp_path / "out")
    assert "hold wind" in (tmp_path / "out" / "ledger.csv").read_text()
    assert any(note.startswith("1 hold for wind: ") for note in result.notes)


def test_no_order_leaves_while_the_wind_is_too_strong_from_the_start(windy, tmp_path):
    vehicle = Windy(windy, lambda count: 9.0 if count < 20 else 5.0)
    _, rows = carried_out(windy, tmp_path, vehicle)

    assert [row.kind for row in rows if row.kind in ("query", "command")][:3] == [
        "command",
        "command",
        "query",
    ]


def test_a_vehicle_whose_wind_never_drops_is_sent_home_in_time(windy, tmp_path):
    spec = replace(windy.vehicles[0], time_limit_s=60.0)
    mission = replace(windy, vehicles=(spec,))
    vehicle = Windy(mission, lambda count: 9.0 if count > 10 else 5.0, tick_s=0.1)
    result, rows = carried_out(mission, tmp_path, vehicle)

    commands = [row.message for row in rows if row.kind == "command"]
    assert [c.action for c in commands] == ["pause", "home"]
    assert np.array_equal(result.path[-1], spec.home)
    assert vehicle.time_s <= 60.0


def test_a_run_that_died_while_held_stays_held_until_the_wind_has_dropped(windy, tmp_path):
    record = Record.create(tmp_path / "run.sqlite", "run", {"vehicles": [{"kind": "windy"}]})
    with record, pytest.raises(RuntimeError):
        run(windy, [Windy(windy, lambda count: 9.0 if count >= 7 else 5.0, stop_at=12)], record=record)
    with Record(tmp_path / "run.sqlite") as record:
        before = len(record.rows())
        silent = Windy(windy, lambda count: None if count < 5 else 7.0 if count < 9 else 5.0)
        result = resume(windy, record, [silent])
        rows = record.rows()[before:]

    kinds = [row.kind for row in rows if row.kind in ("command", "query")]
    assert kinds[:2] == ["command", "query"]
    (goes_on,) = (row.message for row in rows if row.kind == "command")
    assert goes_on.action == "continue"
    values = [
        row.message.channels for row in rows[: rows.index(next(r for r in rows if r.kind == "command"))]
    ]
    assert values[-1] == {"wind": 5.0}
    assert [channels for channels in values if channels][:4] == [{"wind": 7.0}] * 4
    assert result.end_reason is not None


def test_an_operator_continues_a_latched_run_and_is_refused_before(windy, tmp_path):
    mission = replace(windy, holds=(replace(WIND, latch=True),))
    vehicle = Windy(mission, lambda count: 9.0 if 7 <= count < 20 else 5.0)
    file = commands_file(tmp_path / "run.sqlite")
    given = {12: command("continue"), 30: command("continue")}
    vehicle.on_poll = lambda vehicle: (
        append(file, given.pop(vehicle.count)) if vehicle.count in given else None
    )
    _, rows = carried_out(mission, tmp_path, vehicle)

    pause, refused, obeyed = (row.message for row in rows if row.kind == "command")
    assert refused.refused.startswith("wind is 9, above 8")
    assert (pause.hold, obeyed.hold, obeyed.refused) == ("wind", "wind", "")
    wind = [row.message.channels["wind"] for row in rows if row.kind == "telemetry"]
    assert wind.count(9.0) == 13
