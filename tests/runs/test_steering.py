"""Commands to a run under way: what the vehicle does, what the record holds, and what can't be obeyed."""

import csv
import json
import sqlite3
import threading
from dataclasses import replace
from functools import partial
from io import StringIO

import numpy as np
import pytest
import shapely
from batteries import mission_with
from typer.testing import CliRunner
from underway import Underway, command, commands_in, steered
from waiting import SLOW_S

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.agent.phase import Phase
from fieldbo.cli import app
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError, RefusedError, UnconfirmedError
from fieldbo.messages import Action, Command, Lost, Query, Telemetry, from_plain, to_plain
from fieldbo.mission.layers import areas_in
from fieldbo.record.record import Record
from fieldbo.results.tables import ledger_table
from fieldbo.runs.folder import begin
from fieldbo.runs.loop import Stopped
from fieldbo.runs.runner import resume, run
from fieldbo.runs.state import RunState
from fieldbo.runs.steer import append, command_text, steer
from fieldbo.testing import SteppedClock, small_mission


@pytest.fixture
def mission():
    return small_mission(battery=60.0)


def test_a_pause_stops_the_vehicle_under_way_and_it_goes_on_from_there(mission, tmp_path):
    result, vehicle, rows = steered(mission, tmp_path, {4: command("pause"), 9: command("continue")})

    kinds = [row.kind for row in rows]
    paused, continued = (k for k, kind in enumerate(kinds) if kind == "command")
    assert "query" not in kinds[paused:continued]
    cut_short = [row.message for row in rows[paused:continued] if row.kind == "observation"]
    assert [event.complete for event in cut_short] == [False]
    assert result.end_reason is not None
    after = next(row.message for row in rows[continued:] if row.kind == "query")
    assert (vehicle.legs[2][0] == cut_short[0].position).all() or len(after.route) == 0
    assert np.array_equal(result.path[-1], mission.vehicles[0].home)


def test_a_site_that_was_taken_back_by_a_pause_may_be_proposed_again(mission, tmp_path):
    _, _, rows = steered(mission, tmp_path, {5: command("pause"), 7: command("continue")})

    pause = next(k for k, row in enumerate(rows) if row.kind == "command")
    before = [row.message.site.tolist() for row in rows[:pause] if row.kind == "query"][-1]
    assert before in [row.message.site.tolist() for row in rows[pause:] if row.kind == "query"]


def test_an_initial_reading_that_was_taken_back_is_asked_for_again(tmp_path):
    mission = small_mission(battery=80.0, initial=4)
    _, _, rows = steered(mission, tmp_path, {4: command("pause"), 7: command("continue")})

    asked = [row.message.site.tolist() for row in rows if row.kind == "query" and row.body["why"] is None]
    read = {row.order for row in rows if row.kind == "observation" and row.body["message"]["values"]}
    first = [row.message.site.tolist() for row in rows if row.order in read and row.kind == "query"][:4]
    assert len(asked) == 5
    assert len({tuple(site) for site in first}) == 4
    assert {tuple(site) for site in first} == {tuple(q.site) for q in Agent(mission).initial}


def test_a_skipped_site_is_left_out_from_then_on(mission, tmp_path):
    _, _, rows = steered(mission, tmp_path, {4: command("skip")})

    skip = next(k for k, row in enumerate(rows) if row.kind == "command")
    skipped = commands_in(rows)[0].order
    site = next(row.message.site.tolist() for row in rows if row.kind == "query" and row.order == skipped)
    assert site not in [row.message.site.tolist() for row in rows[skip:] if row.kind == "query"]


def test_the_site_that_an_operator_wants_is_next(mission, tmp_path):
    _, _, rows = steered(mission, tmp_path, {4: command("next", site=[4.1, 3.2])})

    given = next(k for k, row in enumerate(rows) if row.kind == "command")
    ordered = next(row for row in rows[given:] if row.kind == "query")
    assert ordered.message.site.tolist() == [4.0, 3.0]
    assert ordered.body["why"] == {"operator": "next"}


def test_a_wanted_site_that_was_not_read_after_all_is_noted(mission, tmp_path):
    for folder in ("sent home", "read"):
        (tmp_path / folder).mkdir()
    wanted = {4: command("next", site=[4.1, 3.2])}
    sent_home, _, _ = steered(mission, tmp_path / "sent home", wanted | {5: command("home")})
    read, _, _ = steered(mission, tmp_path / "read", wanted)

    assert "an operator wanted a reading at [4.0, 3.0] next, but none was taken" in sent_home.notes
    assert not any("wanted" in note for note in read.notes)


def test_a_wanted_site_that_is_read_after_the_run_was_resumed_is_not_noted(mission, tmp_path):
    wanted = command("next", site=[4.0, 3.0])
    steered(mission, tmp_path, {4: wanted, 5: command("home")})
    append(tmp_path / "commands.sqlite", command("next", site=[4.0, 3.0]))
    with Record(tmp_path / "run.sqlite") as record:
        result = resume(mission, record, [Underway(mission)])

    assert [4.0, 3.0] in result.sites.tolist()
    assert not any("wanted" in note for note in result.notes)


def test_an_obeyed_command_keeps_only_what_belongs_to_its_action(mission, tmp_path):
    area = Obstacle("buoy", corners=((1.5, 1.5), (2.5, 1.5), (2.5, 2.5)))
    odd = {"site": [1.0, 2.0, 3.0], "areas": (area,), "order": "<b>"}
    _, _, rows = steered(mission, tmp_path, {4: command("pause", **odd), 8: command("continue", **odd)})

    for given in commands_in(rows):
        assert (given.refused, given.site, given.areas, given.order) == ("", None, (), None)


@pytest.mark.parametrize("action", ["pause", "continue", "next", "skip", "no-go", "battery", "home", "stop"])
@pytest.mark.parametrize("refused", ["", "too far"])
def test_a_command_with_any_site_can_be_put_into_words(mission, action, refused):
    for site in (None, [1.0], [1.0, 2.0, 3.0]):
        given = command(action, site=site, order="<b>", refused=refused)
        assert command_text(mission, given).startswith(action)


def test_a_vehicle_that_is_sent_home_turns_round_and_the_run_ends_there(mission, tmp_path):
    result, _, rows = steered(mission, tmp_path, {7: command("home")})

    assert result.end_reason == "stopped by operator"
    assert np.array_equal(result.path[-1], mission.vehicles[0].home)
    assert [row.kind for row in rows if row.kind in ("query", "go-home")][-1] == "go-home"
    assert result.cost < 30.0


def test_a_vehicle_that_is_paused_on_its_way_home_still_gets_there(mission, tmp_path):
    result, _, _ = steered(
        mission, tmp_path, {7: command("home"), 9: command("pause"), 14: command("continue")}
    )

    assert np.array_equal(result.path[-1], mission.vehicles[0].home)
    assert sum(isinstance(c, Command) for c in result.commands) == 3


def test_no_leg_of_the_vehicle_leads_through_an_area_that_was_closed(tmp_path):
    mission = small_mission(battery=90.0)
    area = Obstacle("swimmers", corners=((1.5, 0.5), (3.5, 0.5), (3.5, 2.5), (1.5, 2.5)))
    result, vehicle, rows = steered(mission, tmp_path, {5: command("no-go", areas=(area,))})

    closed = next(k for k, row in enumerate(rows) if row.kind == "command")
    inside = shapely.buffer(area.polygon, -1e-9)
    sites = [row.message.site for row in rows[closed:] if row.kind == "query"]
    assert len(sites) > 3
    assert not any(inside.contains(shapely.Point(site)) for site in sites)
    after = [shapely.LineString([a, b]) for a, b, areas in vehicle.legs if areas]
    assert len(after) > 3
    assert not any(leg.intersects(inside) for leg in after)
    assert any(len(row.message.route) for row in rows[closed:] if row.kind in ("query", "go-home"))
    assert len(result.surface.mean) == mission.world.domain.size


def test_a_stopped_run_can_be_resumed_to_the_same_end_as_one_that_was_not_stopped(mission, tmp_path):
    for name in ("whole", "parted"):
        (tmp_path / name).mkdir()
    whole, _, _ = steered(mission, tmp_path / "whole", {})
    stopped, _, _ = steered(mission, tmp_path / "parted", {8: command("stop")})

    assert stopped.end_reason is None
    with Record(tmp_path / "parted/run.sqlite") as record:
        resumed = resume(mission, record, [Underway(mission)])
    assert resumed.cost == whole.cost
    assert np.array_equal(resumed.values, whole.values)


def test_a_run_sent_home_by_an_operator_can_go_on_later(mission, tmp_path):
    steered(mission, tmp_path, {7: command("home")})
    with Record(tmp_path / "run.sqlite") as record:
        resumed = resume(mission, record, [Underway(mission)])

    assert resumed.end_reason != "stopped by operator"
    assert resumed.cost > 30.0


EVERYTHING = {
    4: command("pause"),
    6: command("continue"),
    8: command("skip"),
    10: command("next", site=[4.0, 3.0]),
    13: command("no-go", areas=(Obstacle("buoy", corners=((1.5, 1.5), (2.5, 1.5), (2.5, 2.5))),)),
}


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5])
def test_a_run_that_died_between_commands_goes_on_as_if_it_had_not(mission, tmp_path, cut):
    """Each command is replayed with the orders around it, and one that was not obeyed yet is obeyed then."""
    whole, _, rows = steered(mission, tmp_path, EVERYTHING)
    place = [k for k, row in enumerate(rows) if row.kind == "command"][cut - 1]
    agents = [Agent(mission, "run"), Agent(mission, "run")]
    states = [RunState(mission, "run"), RunState(mission, "run")]
    states[0].replay(rows)
    states[1].replay(rows[: place + 1])
    states[1].replay(rows[place + 1 :])

    first, second = (state.agent for state in states)
    assert agents[0].commands == []
    assert np.array_equal(first.rejected, second.rejected)
    assert np.array_equal(first.surface.mean, second.surface.mean)
    assert first.spent == second.spent == whole.cost
    assert first.mission.world.no_go == second.mission.world.no_go != ()
    assert states[0].result().cost == whole.cost


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (command("continue"), "it is not paused"),
        (command("skip", order="run/77"), "query run/77 does not exist"),
        (command("skip", order="run/0"), "query run/0 is done"),
        (command("next"), "there is no site"),
        (command("next", site=[99.0, 1.0]), "outside the domain"),
        (command("next", site=[1.0]), "1 coordinate"),
        (command("no-go"), "there is no area"),
        (
            command("no-go", areas=(Obstacle("all", corners=((-1, -1), (9, -1), (9, 9), (-1, 9))),)),
            "lies in all",
        ),
        (
            command("no-go", areas=(Obstacle("far", corners=((90, 90), (99, 90), (99, 99))),)),
            "lies entirely outside the domain",
        ),
        (command("pause", vehicle=3), "there is no vehicle 3"),
        (command("battery"), "it is not said what is left"),
        (command("battery", left=40.5), "is more than the battery, 40 s"),
        (command("battery", left=4.0, vehicle=3), "there is no vehicle 3"),
    ],
)
def test_a_command_that_cannot_be_obeyed_is_recorded_with_why_and_changes_nothing(tmp_path, wanted, why):
    mission = small_mission(battery=40.0)
    for name in ("plain", "asked"):
        (tmp_path / name).mkdir()
    plain, _, _ = steered(mission, tmp_path / "plain", {})
    asked, _, rows = steered(mission, tmp_path / "asked", {5: wanted})

    assert why in commands_in(rows)[0].refused
    assert np.array_equal(plain.values, asked.values)
    assert plain.cost == asked.cost


def test_a_message_of_a_command_survives_its_plain_form():
    area = Obstacle("buoy <b>", corners=((1.0, 1.0), (2.0, 1.0), (2.0, 2.5)))
    given = Command("7", "no-go", areas=(area,), by="<script>", vehicle=1)
    back = from_plain(to_plain(given))

    assert (back.action, back.areas[0].name, back.by, back.vehicle) == (
        Action.NO_GO,
        "buoy <b>",
        "<script>",
        1,
    )
    assert back.areas[0].polygon.equals(area.polygon)


@pytest.mark.parametrize(
    "body", ["", "7", "{}", '{"kind": "lost", "order": "run/1", "reason": "x"}', "[" * 9999]
)
def test_rubbish_in_the_commands_file_is_left_aside(mission, tmp_path, body):
    file = tmp_path / "commands.sqlite"
    append(file, command("skip"))
    with sqlite3.connect(file) as connection:
        connection.execute("INSERT INTO command (time_utc, body) VALUES ('', ?)", (body,))
    append(file, command("next", site=[1.0, 1.0]))
    result, _, rows = steered(mission, tmp_path, {})

    assert [c.action for c in commands_in(rows)] == ["skip", "next"]
    assert result.end_reason is not None


def test_a_commands_file_that_is_no_database_does_not_stop_a_run(mission, tmp_path):
    (tmp_path / "commands.sqlite").write_text("not a database, but long enough to look like one" * 99)
    result, _, _ = steered(mission, tmp_path, {})

    assert result.end_reason is not None


def test_commands_of_many_writers_are_all_obeyed_once(mission, tmp_path):
    wanted = [command("next", site=[float(k % 4), 1.0]) for k in range(24)]
    writers = [threading.Thread(target=append, args=(tmp_path / "commands.sqlite", c)) for c in wanted]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    _, _, rows = steered(mission, tmp_path, {})

    assert sorted(c.id for c in commands_in(rows)) == sorted(c.id for c in wanted)


def test_commands_are_never_changed_or_deleted(tmp_path):
    append(tmp_path / "commands.sqlite", command("pause"))
    with sqlite3.connect(tmp_path / "commands.sqlite") as connection:
        for statement in ("DELETE FROM command", "UPDATE command SET body = ''"):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(statement)


# -- a run in another thread ---------------------------------------------------------------------------------


class Waiting(Underway):
    """A vehicle that finishes nothing before it is told to."""

    def __init__(self, mission):
        super().__init__(mission, polls=1)
        self.sent, self.go = threading.Event(), threading.Event()

    def send(self, order):
        super().send(order)
        self.sent.set()

    def events(self, timeout_s):
        if not self.go.wait(timeout_s):
            waiting, self._waiting = self._waiting, []
            return waiting
        return super().events(timeout_s)


@pytest.fixture
def under_way(tmp_path):
    """A run under way, as its folder, vehicle and thread."""
    mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 2000}})
    folder, vehicle, ended = tmp_path / "lake-1", Waiting(mission), []

    def carry_out():
        _, record = begin(mission, folder, [{"kind": "simulated"}])
        with record:
            try:
                ended.append(run(mission, [vehicle], record=record))
            except Stopped as stop:
                ended.append(stop.result)

    thread = threading.Thread(target=carry_out, daemon=True)
    thread.start()
    assert vehicle.sent.wait(SLOW_S)
    yield folder, thread, ended
    if thread.is_alive():
        append(folder / "commands.sqlite", command("stop"))
    thread.join(SLOW_S)


def test_steer_returns_the_command_as_the_run_recorded_it(under_way):
    folder, thread, ended = under_way
    give = partial(steer, folder, wait_s=SLOW_S)
    give("pause", by="me")
    with pytest.raises(RefusedError, match="paused already"):
        give("pause")
    wanted = give("next", site=[300.2, 3.9])
    give("continue")
    skipped = give("skip")
    give("stop")
    thread.join(SLOW_S)

    assert wanted.site.tolist() in fieldbo.load_mission("lake-level-set").world.domain.sites.tolist()
    assert skipped.order is not None
    assert len(ended) == 1
    state = fieldbo.load_run(folder)
    assert [c.action for c in state.agent.commands] == [
        "pause",
        "pause",
        "next",
        "continue",
        "skip",
        "stop",
    ]
    assert state.agent.commands[0].by == "me"


def test_steer_says_that_a_run_has_not_confirmed_in_time(tmp_path):
    mission, clock = fieldbo.load_mission("lake-level-set"), SteppedClock()
    folder, record = begin(mission, tmp_path / "lake-1")
    with record, pytest.raises(UnconfirmedError, match=r"in 10 s: it is busy.*obeys as soon as it can"):
        steer(folder, "pause", clock=clock)
    assert 10.0 < clock.now_s() < 11.0


def test_a_run_that_nobody_carries_out_cannot_be_steered(tmp_path):
    mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 300}})
    folder, record = begin(mission, tmp_path / "lake-1")
    with record:
        run(mission, record=record)
    with pytest.raises(InputError, match="is not under way: it has ended"):
        steer(folder, "pause")
    assert not (folder / "commands.sqlite").exists()


# -- the command line ----------------------------------------------------------------------------------------


def told(*arguments):
    done = CliRunner().invoke(app, ["steer", *map(str, arguments), "--wait", str(SLOW_S)])
    return done.exit_code, done.output + (str(done.exception) if done.exception else "")


def test_the_command_line_confirms_refuses_and_explains(under_way):
    folder, _, _ = under_way

    assert told(folder, "pause") == (0, "confirmed: pause\n")
    code, said = told(folder, "pause")
    assert (code, "it is paused already" in said) == (1, True)
    code, said = told(folder, "next", "300 4")
    assert (code, said.startswith("confirmed: next at ")) == (0, True)
    code, said = told(folder, "no-go", "0,0; 10,0; 10,5")
    assert (code, "can't route around" in said) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["next"], "a place"),
        (["next", "here"], "2 coordinates"),
        (["no-go"], "an area"),
        (["no-go", "nowhere.geojson"], "no file nowhere.geojson"),
        (["no-go", "0,0; 1,1"], "2 different corners"),
        (["no-go", "0,0; 1,1; 0,1; 1,0"], "crosses"),
        (["pause", "now"], "nothing"),
        (["battery"], "what is left"),
        (["battery", "nan"], "a number with its unit"),
        (["battery", "4 kWh"], "is in kWh"),
    ],
)
def test_arguments_that_make_no_sense_give_nothing_to_the_run(under_way, arguments, why):
    folder, _, _ = under_way
    _, said = told(folder, *arguments)

    assert why in said
    assert not (folder / "commands.sqlite").exists()


def test_polygons_of_a_file_are_areas_in_the_coordinates_of_the_domain(tmp_path):
    square = [[0, 0], [2, 0], [2, 1], [0, 0]]
    geometry = {"type": "Polygon", "coordinates": [square]}
    feature = {"type": "Feature", "properties": {"name": "nets"}, "geometry": geometry}
    file = tmp_path / "areas.geojson"
    features = [feature, {**feature, "properties": None}]
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    areas = areas_in(file, small_mission().world.domain, "--areas")

    assert [area.name for area in areas] == ["nets", "closed area"]
    assert areas[0].polygon.area == 1.0
    for text in ("", "{}", '{"type": "Point", "coordinates": [1, 2]}'):
        file.write_text(text)
        with pytest.raises(InputError):
            areas_in(file, small_mission().world.domain, "--areas")


# -- several vehicles, lost orders, and forged commands ----------------------------------------------------


def test_an_area_is_closed_to_all_vehicles_whichever_was_named():
    mission = small_mission(battery=60.0)
    pair = replace(mission, vehicles=mission.vehicles * 2)
    agent = Agent(pair)
    orders = [agent.ask(0), agent.ask(1)]
    area = Obstacle("nets", corners=((2.6, 1.6), (3.4, 1.6), (3.4, 2.4), (2.6, 2.4)))
    closing = agent.completed(command("no-go", areas=(area,), vehicle=1))
    agent.tell(closing)

    assert closing.vehicle is None
    assert {str(order.id) for order in orders} <= agent.withdrawn


def test_an_area_is_refused_that_may_cut_off_a_vehicle_whose_order_was_lost():
    agent = Agent(small_mission(battery=60.0))
    agent.tell(agent.ask().observed(0.1, noise_variance=0.01))
    order = agent.issue(Query([5.0, 2.0]))
    agent.tell(Lost(order.id, "silence"))
    wall = Obstacle("wall", corners=((3.3, -1), (3.7, -1), (3.7, 9), (3.3, 9)))

    assert "could not get home" in agent.completed(command("no-go", areas=(wall,))).refused


@pytest.mark.parametrize(("margin", "needed"), [(0.0, 6.41), (0.25, 8.01)])
def test_a_vehicle_is_not_stopped_where_the_margin_of_the_way_home_is_gone(margin, needed):
    mission = small_mission(battery=30.0, initial=0)  # the way home from the far corner takes 6.40
    agent = Agent(replace(mission, vehicles=(replace(mission.vehicles[0], margin=margin),)))
    agent.tell(agent.issue(Query([5.0, 4.0])).observed(0.1, noise_variance=0.01))
    state = agent.vehicles[0]

    agent.tell(Telemetry(0, [5.0, 4.0], needed, 8.0))
    assert state.can_turn_back(state.cost)
    agent.tell(Telemetry(0, [5.0, 4.0], needed - 0.02, 9.0))
    assert not state.can_turn_back(state.cost)


def test_a_wanted_site_that_was_taken_back_by_a_pause_is_asked_for_again(mission, tmp_path):
    wanted = [4.0, 3.0]
    steps = {4: command("next", site=wanted), 8: command("pause"), 10: command("continue")}
    _, _, rows = steered(mission, tmp_path, steps)

    orders = [row for row in rows if row.kind == "query" and row.body["why"] == {"operator": "next"}]
    assert [row.message.site.tolist() for row in orders] == [wanted, wanted]
    read = [row.order for row in rows if row.kind == "observation" and row.body["message"]["values"]]
    assert orders[-1].order in read


def test_a_site_wanted_while_the_battery_is_changed_is_next_although_the_process_died(tmp_path):
    mission, wanted = mission_with(2, battery=16.0), [2.0, 1.0]
    whole, _, rows = steered(mission, tmp_path, {14: command("next", site=wanted)})
    kinds = [row.kind for row in rows]
    given = kinds.index("command")
    changed = next(k for k in range(given, len(rows)) if kinds[k] == "recharge")
    assert kinds[:given].count("go-home") == 1  # it is on its way to the other battery

    for cut in range(given + 1, changed + 3):
        state = RunState(mission, "run")
        state.replay(rows[:cut])
        assert [site.tolist() for site in state.agent.vehicles[0].wanted] == [wanted]
    after = next(row for row in rows[changed:] if row.kind == "query")
    assert (after.message.site.tolist(), after.body["why"]) == (wanted, {"operator": "next"})
    state.replay(rows[cut:])
    assert state.agent.spent == whole.cost


def test_a_wanted_site_is_refused_if_those_before_it_leave_too_little():
    agent = Agent(small_mission(battery=18.0))
    agent.tell(agent.ask().observed(0.1, noise_variance=0.01))
    first = agent.completed(command("next", site=[5.0, 4.0]))
    agent.tell(first)
    second = agent.completed(command("next", site=[0.0, 4.0]))

    assert not first.refused
    assert "is not enough" in second.refused


@pytest.mark.parametrize(
    "forged",
    [
        {"action": "pause", "order": "\ud800"},
        {"action": "pause", "hold": "ghost"},
        {"action": "skip", "order": ["run/0"]},
        {"action": "pause", "refused": "no"},
        {"action": "battery", "left": -1.0},
        {"action": "battery", "left": "much"},
    ],
)
def test_a_command_that_somebody_forged_does_not_end_a_run(mission, tmp_path, forged):
    append(tmp_path / "commands.sqlite", command("skip"))
    body = json.dumps({"kind": "command", "id": "forged", **forged})
    with sqlite3.connect(tmp_path / "commands.sqlite") as connection:
        connection.execute("INSERT INTO command (time_utc, body) VALUES ('', ?)", (body,))
    append(tmp_path / "commands.sqlite", command("continue"))
    result, _, rows = steered(mission, tmp_path, {})

    assert result.end_reason is not None
    assert not any(c.hold for c in commands_in(rows))
    assert commands_in(rows)[-1].action == "continue"


# -- what is left in the battery ---------------------------------------------------------------------------


def ledger_of(result):
    return list(csv.DictReader(StringIO(ledger_table(result.accounts, result.commands).decode())))


def test_a_lower_level_counts_at_once_and_the_ledger_adds_up(mission, tmp_path):
    (tmp_path / "plain").mkdir()
    plain, _, _ = steered(mission, tmp_path / "plain", {})
    result, _, rows = steered(mission, tmp_path, {5: command("battery", left=20.0)})

    (given,) = commands_in(rows)
    assert (given.refused, given.counted, given.vehicle) == ("", 20.0, 0)
    assert len(result.observations) < len(plain.observations)
    table = ledger_of(result)
    (stated,) = [row for row in table if row["kind"] == "battery"]
    assert float(stated["left"]) == 20.0
    assert float(stated["spent"]) > 0
    assert sum(float(row["spent"] or 0) for row in table) == pytest.approx(60.0 - result.accounts[0].left)
    assert np.array_equal(result.path[-1], mission.vehicles[0].home)
    assert any("battery" in note for note in result.notes)


def test_a_higher_level_gives_back_what_a_false_report_took_and_no_more(mission):
    agent = Agent(mission)
    order = agent.ask()
    agent.tell(order.observed(1.0, noise_variance=0.01))
    declared = agent.vehicles[0].ledger.left
    agent.tell(Telemetry(0, agent.vehicles[0].position, declared - 15.0, agent.vehicles[0].time_s + 1.0))
    assert agent.vehicles[0].ledger.left == pytest.approx(declared - 15.0)
    for left, counted in ((declared - 5.0, declared - 5.0), (60.0, declared), (30.0, 30.0), (60.0, declared)):
        given = agent.completed(command("battery", left=left))
        assert given.counted == pytest.approx(counted)
        agent.tell(given)
        assert agent.vehicles[0].ledger.left == pytest.approx(counted)


def test_no_gauge_gives_back_what_a_person_took(mission):
    agent = Agent(mission)
    agent.tell(agent.ask().observed(1.0, noise_variance=0.01))
    agent.tell(agent.completed(command("battery", left=20.0)))
    agent.tell(Telemetry(0, agent.vehicles[0].position, 55.0, agent.vehicles[0].time_s + 1.0))
    assert agent.vehicles[0].ledger.left == pytest.approx(20.0)


def test_a_level_that_is_cut_says_so(mission):
    agent = Agent(mission)
    agent.tell(agent.ask().observed(1.0, noise_variance=0.01))
    given = agent.completed(command("battery", left=60.0))
    assert f"the run assumes {given.counted:,.6g} s" in command_text(mission, given)
    assert from_plain(to_plain(given)).counted == given.counted


@pytest.mark.parametrize("left", [-1.0, float("nan"), float("inf"), True, "4"])
def test_a_level_that_is_no_amount_is_an_error(left):
    with pytest.raises(InputError, match="left"):
        command("battery", left=left)


def test_a_run_that_died_after_a_statement_goes_on_as_if_it_had_not(mission, tmp_path):
    for folder in ("whole", "cut"):
        (tmp_path / folder).mkdir()
    whole, _, rows = steered(mission, tmp_path / "whole", {5: command("battery", left=30.0)})
    place = next(k for k, row in enumerate(rows) if row.kind == "command")
    states = [RunState(mission, "run"), RunState(mission, "run")]
    states[0].replay(rows)
    states[1].replay(rows[: place + 1])
    states[1].replay(rows[place + 1 :])
    assert states[0].result().summary() == states[1].result().summary() == whole.summary()


def test_a_battery_that_is_out_of_use_is_not_stated(mission):
    agent = Agent(mission)
    agent.vehicles[0].phase = Phase.CHANGING
    assert "being changed" in agent.completed(command("battery", left=3.0)).refused
    agent.vehicles[0].phase = Phase.ENDED
    assert "is over" in agent.completed(command("battery", left=3.0)).refused
