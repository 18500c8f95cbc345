"""Batteries in the units that people have, and in percent of a full one."""

import pytest
from working_folder import write

import fieldbo
from fieldbo.errors import InputError
from fieldbo.mission.amounts import amount
from fieldbo.runs.folder import begin
from fieldbo.runs.replay import load_run
from fieldbo.vehicles.load import check_new, full_battery, load_vehicle, recorded_settings, vehicle_of

BOAT = """format = 1
[link]
kind = "{kind}"
[frame]
origin = {{ latitude = 47.31, longitude = 8.58, altitude = 406 }}
bearing = 90
along = "along"
depth = "depth"
[battery]
{battery}
[arrival]
within = {within}
"""
LAKE = "lake-level-set"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def boat(kind="mavlink", battery="full = 6000", within=0.3, axis="depth"):
    text = BOAT.format(kind=kind, battery=battery, within=within)
    write("boat.toml", text.replace("depth", axis))
    return recorded_settings("boat.toml")


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("6000", "s", 6000.0),
        ("6000 s", "s", 6000.0),
        ("2 h", "s", 7200.0),
        ("90min", "s", 5400.0),
        ("1 h 15 min", "s", 4500.0),
        ("1h15min30s", "s", 4530.0),
        ("6 min 44 s", "min", 6.0 + 44.0 / 60.0),
        ("0.5 kWh", "Wh", 500.0),
        ("1800 kJ", "Wh", 500.0),
        ("2 km", "m", 2000.0),
        ("2 Ah", "mAh", 2000.0),
        ("12 credits", "credits", 12.0),
        ("35 %", "s", 350.0),
        ("35%", "credits", 350.0),
    ],
)
def test_an_amount_may_be_in_a_multiple_of_the_cost_unit_or_in_percent(text, unit, number):
    assert amount(text, unit, "agent.battery", full=1000.0) == pytest.approx(number, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("90 minutes", "did you mean min?"),
        ("90 mins", "did you mean min?"),
        ("2 hours", "did you mean h?"),
        ("1.5 hr", "did you mean h?"),
        ("3 H", "did you mean h?"),
        ("5400 mAh", None),
        ("90 kg", None),
        ("1,5 h", "write 1.5 h"),
        ("5,400 s", "write 5400 s, without the comma"),
        ("a lot", None),
        ("15 min 1 h", None),
        ("1 h 15", None),
        ("1 h and 15 min", None),
        ("1 h 2 h", None),
        ("1 h -5 min", None),
    ],
)
def test_the_fix_of_a_wrong_amount_is_what_was_meant_or_nothing(text, fix):
    with pytest.raises(InputError) as error:
        amount(text, "s", "agent.battery")
    assert error.value.fix == fix


@pytest.mark.parametrize("place", ["start", "home"])
def test_a_place_that_is_no_list_is_asked_for_as_coordinates(place):
    with pytest.raises(InputError) as error:
        fieldbo.load_mission(LAKE, {"agent": {place: "start"}})
    assert error.value.problem == f'{place} = "start"'
    assert error.value.expected == "coordinates, one per axis, for example [0, 0] or a table"


def test_a_battery_and_a_reserve_in_percent_are_of_the_full_battery():
    mission = fieldbo.load_mission(
        LAKE, {"agent": {"battery": "50 %", "reserve": "5 %", "full_battery": "2 h"}}
    )
    assert (mission.vehicles[0].battery, mission.vehicles[0].reserve) == (3600.0, 360.0)


def test_the_vehicle_s_full_battery_comes_before_the_mission_s_and_a_record_keeps_it(tmp_path):
    of_vehicle = full_battery([boat(battery='full = "3 h"')])
    overrides = {"agent": {"battery": "10 %", "full_battery": "2 h", "max_steps": 1}}
    mission = fieldbo.load_mission(LAKE, overrides, of_vehicle)
    assert mission.vehicles[0].battery == 1080.0
    folder, record = begin(mission, tmp_path / "run")
    with record:
        fieldbo.run(mission, record=record)
    assert record.description["crew"][0]["battery"] == 1080.0
    assert load_run(folder).mission.vehicles[0].battery == 1080.0
    assert fieldbo.load_mission(folder / "mission.toml").vehicles[0].battery == 1080.0


def test_a_vehicle_takes_the_full_battery_and_the_accuracy_in_any_unit():
    mission = fieldbo.load_mission(LAKE)
    battery = vehicle_of(boat(battery='full = "2 h"\naccuracy = "2 %"'), mission)._filter.settings.battery
    assert (battery.full, battery.accuracy) == (7200.0, 144.0)


@pytest.mark.parametrize("kind", ["mavlink", "ros2", "ros2-nav2", "ros2-topics"])
def test_a_robot_that_reports_percentages_needs_a_full_battery(kind):
    mission = fieldbo.load_mission(LAKE)
    with pytest.raises(InputError, match="percent"):
        check_new(boat(kind, battery=""), mission)
    with pytest.raises(InputError, match="percent"):
        load_vehicle("boat.toml", mission)
    assert check_new(boat(kind), mission) == []
    simulated = fieldbo.load_mission(LAKE, {"agent": {"battery": "50 %", "full_battery": 7000}})
    assert check_new(boat(kind, battery=""), simulated) == []


def test_a_robot_that_may_report_percentages_draws_a_warning_without_a_full_battery():
    mission = fieldbo.load_mission(LAKE)
    [warning] = check_new(boat("mqtt", battery=""), mission)
    assert "percent" in warning
    assert check_new(boat("mqtt"), mission) == []


@pytest.mark.parametrize(
    ("battery", "part"),
    [
        ("full = 5000", "less than the mission's battery of 6000 s"),
        ('full = "2 kWh"', "is in kWh"),
        ('full = "2 h"\naccuracy = "2 Wh"', "is in Wh"),
    ],
)
def test_a_full_battery_that_does_not_fit_the_mission_is_rejected(battery, part):
    with pytest.raises(InputError, match=part):
        check_new(boat(battery=battery), fieldbo.load_mission(LAKE))


@pytest.mark.parametrize("battery", ['full = "x"', 'full = "-2 h"', 'full = "50 %"', 'accuracy = "120 %"'])
def test_a_wrong_battery_in_a_vehicle_file_is_rejected_without_a_mission(battery):
    with pytest.raises(InputError, match="battery"):
        boat(battery=battery)


@pytest.mark.parametrize("kind", ["mavlink", "ros2-topics"])
def test_an_arrival_tolerance_wider_than_the_spacing_or_the_clearance_is_rejected(kind, command):
    with pytest.raises(InputError, match="spacing of the sites along depth"):
        check_new(boat(kind, within=0.4), fieldbo.load_mission(LAKE))
    wall = fieldbo.load_mission("wall-damage-map")
    file = boat(kind, battery="full = 100", within=0.2, axis="height")
    with pytest.raises(InputError, match="clearance"):
        check_new(file, wall)
    assert check_new(boat(kind, battery="full = 100", within=0.15, axis="height"), wall) == []
    boat(kind, within=0.4)
    for verb in ("check", "run"):
        code, _, err = command(verb, LAKE, "--vehicle", "boat.toml")
        assert (code, "arrival.within" in err) == (2, True)


def test_the_arrival_tolerance_of_a_robot_that_reports_does_not_matter():
    assert check_new(boat("mqtt", within=9.0), fieldbo.load_mission(LAKE)) == []
