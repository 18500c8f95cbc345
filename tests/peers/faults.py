"""The faults of robots, one test each: a whole mission from files, over a real link.

The tests are written once. To test a kind of robot, subclass `FaultTable` and describe in a `Peer` how to
reach the robot::

    class OverMqtt(Peer):
        def start(self):
            self.broker = Broker(self.folder)
            self.link = f'kind = "mqtt"\\\\nport = {self.broker.port}'

    class TestFaults(FaultTable):
        peer = MqttClient
"""

from __future__ import annotations

import csv
import json
import re
import signal
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import shapely
from peers.pond import BATTERY_S, CLEARANCE_M, NOISE_SD, OBSTACLES, PIER, REEDS, SPEEDUP, pond
from peers.processes import Program, fieldbo, until
from working_folder import write

from fieldbo.messages import Command, EndReason, GoHome, Lost, Observation, Query, Rejected, Telemetry
from fieldbo.mission.load import load_mission
from fieldbo.record.record import Record
from fieldbo.runs.runner import run as simulate
from fieldbo.vehicles.file import LoadedVehicleFile
from fieldbo.vehicles.remote.link import PositionReport

PATIENT = {"silence_s": 20.0, "connect_s": 60.0, "least_s": 60.0}
"""How long fieldbo waits for signs of life, for the first one, and for an order: a busy machine is slow."""

SILENCE_S, LEAST_S = 3.0, 6.0
"""The first and the last of them where a test waits until they are over."""

ROUNDING_M = 0.03
"""How far a robot may be from where it is sent, because messages round."""

ASIDE_M = 1.0
"""How far a robot that turned back may be from the straight way."""

FAR_M = 1e5
"""Positions beyond this are glitches."""

WIND = """
[[hold]]
channel = "wind"
above = 8
release_below = 6
delay_s = 2
"""

STOPPING_S = 3.0
"""How long a robot may take to stop: one that streams turns back to where it was last seen."""


def track_of(folder: Path):
    """Return the robot's own track (k, 2), and its times (k,), which it wrote when it was switched off."""
    rows = np.loadtxt(folder / "track.csv", delimiter=",", skiprows=1)
    return rows[:, :2], rows[:, 2]


class Peer(ABC):
    """One kind of robot, and what lies between it and fieldbo; a context manager.

    Attributes
    ----------
    folder : Path
        For files of its own.
    link : str
        The vehicle file's ``[link]`` table, without its header.
    tables : str
        More tables of the vehicle file: ``[frame]``, ``[arrival]``.
    speedup, slowly : float
        How fast the simulated robot's clock runs; the second when a test interferes on the way.
    within : float
        How close to a site it arrives, in metres: the accuracy in the vehicle file.
    answers : bool
        Whether the robot reports outcomes by id, even after fieldbo restarts.
    """

    link: str = ""
    tables: str = ""
    speedup: float = SPEEDUP
    slowly: float = SPEEDUP / 10
    within: float = 0.0
    answers: bool = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def start(self) -> None:
        """Start the connection, and set `link`."""

    def stop(self) -> None:
        """End the connection."""

    @abstractmethod
    def cut(self) -> None:
        """Cut the connection."""

    @abstractmethod
    def restore(self) -> None:
        """Restore the connection."""

    def __enter__(self) -> Peer:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


@dataclass(frozen=True)
class Ran:
    """A run that has ended or was interrupted: its exit code, output and folder."""

    code: int
    output: str
    folder: Path

    @property
    def rows(self):
        with Record(self.folder / "run.sqlite") as record:
            return record.rows()

    def of(self, *kinds):
        """Return its orders and events of some kinds, in order."""
        found = [row.message for row in self.rows if row.kind not in ("stop", "end")]
        return [message for message in found if isinstance(message, kinds)]

    def seconds_until(self, kind):
        """Return how long after its first order the first row of a kind was recorded."""
        first, then = (next(row for row in self.rows if row.kind == one) for one in ("query", kind))
        return (
            datetime.fromisoformat(then.time_utc) - datetime.fromisoformat(first.time_utc)
        ).total_seconds()

    @property
    def told(self):
        """Its observations, each part once."""
        return list({(one.order, one.part): one for one in self.of(Observation)}.values())

    @property
    def visits(self):
        """Those of them that answer queries and hold a reading."""
        queries = {one.id for one in self.of(Query)}
        return [one for one in self.told if one.order in queries and len(one.values)]

    @property
    def summary(self):
        return json.loads((self.folder / "summary.json").read_text())


class Trial:
    """A mission in the pond, its files, and a robot in a process of its own; a context manager."""

    def __init__(self, folder: Path, peer: Peer, obstacles: str = "") -> None:
        self.folder, self.peer, self.mission = folder, peer, pond(folder, obstacles)
        self.world = folder / "pond" / "world.toml"
        self.file = folder / "robot.toml"
        self.write_file()
        self.truth = load_mission(str(self.mission)).world.truth
        self._programs: list[Program] = []

    def write_file(self, **watch: float | str) -> None:
        """Write the vehicle file; its ``[watch]`` is patient but for what is given."""
        settings = {**PATIENT, "patience": 0.01, **watch}
        lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        reports = f"accuracy = {self.peer.within}\nlow = -100.0\nhigh = 100.0"
        tables = [f"[link]\n{self.peer.link}", self.peer.tables, "\n".join(["[watch]", *lines])]
        tables += [f"[reports]\n{reports}", f"[battery]\nfull = {BATTERY_S}"]
        write(self.file, "\n".join(["format = 1", *tables, ""]))

    def robot(self, *faults: str, start=(0.0, 0.0), slow: bool = False, speedup=None, channel="") -> Program:
        """Start the robot, and wait until it is ready; a slow one gives time to do something to it."""
        at = ",".join(f"{x:g}" for x in start)
        settings = {"world": self.world, "seed": 3, "start": at, "battery": BATTERY_S}
        settings["speedup"] = speedup or (self.peer.slowly if slow else self.peer.speedup)
        settings["track"] = self.folder / "track.csv"
        told = [part for name, value in settings.items() for part in (f"--{name}", value)]
        told += ["--channel", channel] if channel else []
        wrong = [part for fault in faults for part in ("--fault", fault)]
        program = self._begun(fieldbo("robot", self.file, *told, *wrong, cwd=self.folder))
        program.wait_for("ready")
        return program

    def start(self, *settings: str, out: str = "run") -> Program:
        """Start the mission."""
        replaced = [part for one in settings for part in ("--set", one)]
        files = ["--vehicle", self.file, "--out", self.folder / out]
        return self._begun(fieldbo("run", self.mission, *files, *replaced, cwd=self.folder))

    def resume(self) -> Ran:
        """Resume the mission, to the end."""
        return self.ended(self._begun(fieldbo("resume", self.folder / "run", cwd=self.folder)))

    def run(self, *settings: str) -> Ran:
        """Run the mission to the end."""
        return self.ended(self.start(*settings))

    def ended(self, program: Program) -> Ran:
        """Wait until a run has ended."""
        return Ran(program.wait(), program.output, self.folder / "run")

    def _begun(self, program: Program) -> Program:
        self._programs.append(program)
        return program

    def rows(self):
        """Return the record's rows so far."""
        file = self.folder / "run" / "run.sqlite"
        return Ran(0, "", self.folder / "run").rows if file.exists() else []

    def until_under_way(self, orders: int, running: Program):
        """Wait until this many orders were sent and the last is outstanding; return its row."""

        def last():
            assert running.running, running.output
            rows = self.rows()
            left = [row for row in rows if row.kind == "query"]
            return left[-1] if len(left) >= orders and rows[-1].kind == "query" else None

        try:
            return until(last, what=f"order {orders} to leave")
        except AssertionError as error:
            told = [(row.seq, row.time_utc, row.kind, row.order) for row in self.rows()]
            raise AssertionError(f"{error}:\n{running.output}\n{told}") from None

    @contextmanager
    def positions(self):
        """Listen to the robot next to fieldbo; yield the growing list of positions (d,) that it reports."""
        told, places = LoadedVehicleFile.read(str(self.file)), []
        mission = load_mission(str(self.mission))
        ground = told.settings.ground(mission.world.domain)

        def hear(report):
            if isinstance(report, PositionReport):
                places.append(report.position)

        connection = told.link.open(mission, ground, hear)
        try:
            yield places
        finally:
            connection.close()

    def where_the_robot_stays(self, reports: int = 10):
        """Return the next positions (k, d) of the robot, of about a second."""
        with self.positions() as places:
            until(lambda: len(places) > reports, what="the robot to say where it is")
        return np.array(places[1:])

    def where_the_robot_stops(self, *, home: bool = False):
        """Wait until the robot says ten times that it is at one place (d,), or at home; return the place.

        It may turn back first, to where it was last seen.
        """

        def stop():
            last = np.array([place for place in places if np.abs(place).max() < FAR_M][-10:])
            there = last if home else last - last[:1]
            return [last[-1]] if len(last) == 10 and np.abs(there).max() <= ROUNDING_M else []

        with self.positions() as places:
            return until(stop, what="the robot to stand")[0]

    def check_that_it_stops_on_the_way(self, row, said):
        """Check that the robot stops between the site of the last reading and that of an order (row)."""
        site, within = row.message.site, self.peer.within
        before = [one.message for one in self.rows() if one.kind == "observation"][-1].position
        place = self.where_the_robot_stops()
        ways = [np.linalg.norm(one) for one in (place - before, site - place, site - before)]
        assert ways[0] + ways[1] <= ways[2] + 2 * within + ASIDE_M, f"{before}, {place}, {site}\n{said}"
        assert ways[1] > within, said

    def until_one_is_lost(self, since, run: Program) -> None:
        """Wait until an order is lost after a row; or two more are done, because nothing was cut."""

        def over():
            assert run.running, run.output
            kinds = [row.kind for row in self.rows() if row.seq > since.seq]
            return "lost" in kinds or kinds.count("observation") > 2

        until(over, what="an order to be lost")

    def check(self, ran: Ran, codes=(0,)) -> None:
        """Check what holds for every finished run, whatever went wrong."""
        said = "\n".join([ran.output, *(one.output for one in self._programs)])
        assert "Traceback" not in said, said
        assert ran.code in codes, said
        ended = [row.body["reason"] for row in ran.rows if row.kind == "end"]
        assert ended == [ran.summary["end_reason"]]
        assert ended[0] in list(EndReason)
        self._nothing_is_counted_twice(ran)
        self._readings_are_where_they_were_taken(ran)

    def _nothing_is_counted_twice(self, ran: Ran) -> None:
        """Each order is sent once, each part counts once, and the cost is what the robot used.

        Where the robot reports no costs, the order after a lost one is charged from the worst of the places
        where it may have begun.
        """
        expected = {order.id: order.expected_cost for order in ran.of(Query, GoHome)}
        assert len(expected) == len(ran.of(Query, GoHome))
        assert ran.summary["readings"] == sum(len(one.values) for one in ran.visits)
        told = [one.remaining for one in ran.of(Telemetry) if one.remaining is not None]
        if told:
            levels = list(pairwise([BATTERY_S, *told]))
            used = sum(max(0.0, before - after) for before, after in levels)
            guessed = sum(
                max(0.0, event.cost - expected[event.order]) for event in ran.told if event.estimated
            )
            accuracy = 0.02 * BATTERY_S
            assert used - accuracy <= ran.summary["cost"] <= used + guessed + accuracy

    def _readings_are_where_they_were_taken(self, ran: Ran) -> None:
        """The field has these values at these sites."""
        for one in ran.visits:
            known = np.isfinite(one.values)
            gap = np.abs(self.truth(one.sites[known]) - one.values[known])
            assert (gap < 6 * NOISE_SD + 0.2 * self.peer.within).all(), (one.order, one.sites, one.values)

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *error: object) -> None:
        for program in reversed(self._programs):
            program.__exit__(*error)


class FaultTable(ABC):
    """The tests. Override `peer`."""

    peer: ClassVar[type[Peer]]

    @pytest.fixture
    def trial(self, tmp_path):
        with self.peer(tmp_path) as peer, Trial(tmp_path, peer) as trial:
            yield trial

    def test_a_faultless_robot_visits_the_sites_of_a_simulation(self, trial):
        trial.robot()

        ran = trial.run()

        trial.check(ran)
        planned = simulate(load_mission(str(trial.mission)).as_found())
        assert [one.site.tolist() for one in ran.of(Query)] == [q.site.tolist() for q in planned.queries]
        assert ran.summary["end_reason"] == planned.end_reason
        assert ran.summary["home"]

    def test_a_robot_drives_round_obstacles_and_comes_home(self, tmp_path):
        with self.peer(tmp_path) as peer, Trial(tmp_path, peer, OBSTACLES) as trial:
            robot = trial.robot()

            ran = trial.run()

            robot.interrupt()
            robot.wait()
            trial.check(ran)
        track, _ = track_of(tmp_path)
        bent = [order for order in ran.of(Query, GoHome) if len(order.route)]
        assert len(bent) >= 2
        assert ran.summary["home"]
        assert np.abs(track[-1]).max() <= ROUNDING_M
        driven = shapely.LineString(track)
        assert driven.length > 100.0
        for obstacle in (PIER, REEDS):
            assert driven.distance(obstacle) >= CLEARANCE_M - ROUNDING_M
        assert shapely.box(0, 0, 60, 50).buffer(ROUNDING_M).covers(driven)

    def test_without_a_robot_no_run_starts(self, trial):
        trial.write_file(connect_s=1.0)
        ran = trial.run()

        assert ran.code == 2, ran.output
        assert "no robot answers" in ran.output
        assert "Traceback" not in ran.output
        assert not ran.folder.exists()

    def test_a_rejected_order_costs_nothing_and_the_run_continues(self, trial):
        trial.robot("refuse:2")

        ran = trial.run()

        trial.check(ran)
        (refused,) = ran.of(Rejected)
        assert refused.order == ran.of(Query)[2].id
        assert len(ran.visits) == len(ran.of(Query)) - 1
        assert ran.summary["home"]

    def test_an_order_that_is_never_done_is_given_up_and_the_run_continues(self, trial):
        trial.write_file(least_s=LEAST_S)
        trial.robot("stuck:2")

        ran = trial.run()

        trial.check(ran)
        orders = [one.id for one in ran.of(Query)]
        assert orders[2] not in [one.order for one in ran.visits]
        assert len(ran.visits) == len(orders) - 1
        assert ran.summary["home"]

    def test_only_nan_and_absurd_readings_count_as_failed(self, trial):
        trial.robot("nan:2", "absurd:4")

        ran = trial.run()

        trial.check(ran)
        failed = [k for k, one in enumerate(ran.visits) if np.isnan(one.values).any()]
        assert failed == [2, 4]
        assert len(ran.visits) == len(ran.of(Query))

    def test_a_reading_far_from_its_site_counts_where_it_was_taken(self, trial):
        trial.robot("astray:3:7")

        ran = trial.run()

        trial.check(ran)
        asked, seen = ran.of(Query)[3], ran.visits[3]
        gap = seen.sites[-1] - asked.site
        assert gap == pytest.approx([7.0, 0.0], abs=0.1 + trial.peer.within)

    def test_a_battery_that_drains_faster_than_planned_still_brings_the_robot_home(self, trial):
        trial.robot("drain:1:1.6")

        ran = trial.run("agent.max_steps=100", "agent.margin=0.7")

        trial.check(ran)
        assert ran.summary["end_reason"] == EndReason.BATTERY_SPENT
        assert ran.summary["home"]
        assert ran.of(Telemetry)[-1].remaining >= 0.0
        assert ran.summary["cost"] > 1.2 * ran.summary["planned_cost"]

    def test_a_result_that_arrives_twice_or_late_counts_once(self, trial):
        trial.robot("twice:1", "late:3:2.5", "twice:5")

        ran = trial.run()

        trial.check(ran)
        assert len(ran.visits) == len(ran.of(Query))

    def test_a_result_after_its_order_was_given_up_still_counts_once(self, trial):
        trial.write_file(silence_s=SILENCE_S, least_s=LEAST_S)
        trial.robot(f"late:2:{LEAST_S + SILENCE_S + 2.0}")

        ran = trial.run("agent.max_steps=12")

        trial.check(ran)
        (late,) = ran.of(Lost)
        assert late.order == ran.of(Query)[2].id
        assert late.order in [one.order for one in ran.visits]

    def test_a_clock_that_jumps_does_not_reorder_readings(self, trial):
        trial.robot("clock:2:-5000", "clock:4:100000")

        ran = trial.run()

        trial.check(ran)
        times = [one.times_s[-1] for one in ran.visits]
        assert times == sorted(times)
        assert ran.summary["time_s"] < 3 * ran.summary["planned_time_s"]
        assert len(ran.visits) == len(ran.of(Query))

    def test_a_robot_that_is_killed_and_restarted_continues(self, trial):
        trial.write_file(silence_s=SILENCE_S)
        robot = trial.robot(slow=True)
        run = trial.start("agent.when_lost.orders=2", 'agent.when_lost.then="wait"')
        row = trial.until_under_way(3, run)
        robot.kill()
        last = [row.message for row in trial.rows() if row.kind == "observation"][-1]
        trial.until_one_is_lost(row, run)
        trial.robot(start=last.position, slow=True)

        ran = trial.ended(run)

        trial.check(ran)
        assert ran.summary["end_reason"] != EndReason.VEHICLE_LOST
        assert len(ran.visits) >= len(ran.of(Query)) - 2

    def test_a_robot_that_never_returns_ends_the_run(self, trial):
        trial.write_file(silence_s=SILENCE_S)
        robot = trial.robot(slow=True)
        run = trial.start("agent.when_lost.orders=2", "agent.when_lost.patience_s=2")
        trial.until_under_way(3, run)
        robot.kill()

        ran = trial.ended(run)

        trial.check(ran)
        assert ran.summary["end_reason"] == EndReason.VEHICLE_LOST
        assert ran.of(Lost)

    def test_a_run_survives_a_gap_in_the_connection(self, trial):
        trial.write_file(silence_s=SILENCE_S)
        trial.robot(slow=True)
        run = trial.start()
        row = trial.until_under_way(4, run)  # a short way: nobody sees how far it goes
        trial.peer.cut()
        trial.until_one_is_lost(row, run)
        trial.peer.restore()

        ran = trial.ended(run)

        trial.check(ran)
        assert ran.summary["end_reason"] != EndReason.VEHICLE_LOST
        assert len(ran.visits) >= len(ran.of(Query)) - 2

    def test_the_watchdog_notices_a_silent_robot_in_time(self, trial):
        trial.write_file(silence_s=SILENCE_S)
        robot = trial.robot(slow=True)
        run = trial.start("agent.when_lost.orders=1", 'agent.when_lost.then="wait"')
        trial.until_under_way(4, run)  # a short way: nobody sees how far it goes
        robot.freeze()
        frozen = time.time()
        lost = until(
            lambda: next((row for row in trial.rows() if row.kind == "lost"), None), what="the watchdog"
        )
        robot.thaw()

        ran = trial.ended(run)

        trial.check(ran)
        noticed_s = datetime.fromisoformat(lost.time_utc).timestamp() - frozen
        silent_s = float(re.search(r"no sign of life from the robot for ([\d.]+) s", lost.message.reason)[1])
        assert SILENCE_S <= silent_s <= 1.25 * SILENCE_S  # while fieldbo itself was not held up
        assert SILENCE_S - 1.0 < noticed_s < PATIENT["least_s"]
        assert ran.summary["end_reason"] != EndReason.VEHICLE_LOST

    def test_ctrl_c_stops_the_robot_and_the_run_can_be_resumed(self, trial):
        trial.robot(slow=True)
        run = trial.start()
        row = trial.until_under_way(3, run)
        run.interrupt()
        broken = trial.ended(run)
        assert broken.code == 128 + signal.SIGINT, broken.output
        assert broken.summary["end_reason"] is None

        trial.check_that_it_stops_on_the_way(row, broken.output)
        ran = trial.resume()

        trial.check(ran)
        assert ran.summary["end_reason"] == EndReason.STEP_LIMIT

    def test_a_killed_run_resumes_and_counts_nothing_twice(self, trial):
        trial.robot(slow=True)
        run = trial.start()
        trial.until_under_way(3, run)
        run.kill()
        trial.where_the_robot_stops()

        ran = trial.resume()

        trial.check(ran)
        assert ran.summary["end_reason"] == EndReason.STEP_LIMIT
        if trial.peer.answers:
            assert len(ran.visits) == len(ran.of(Query))

    def test_bad_fixes_on_the_way_change_nothing(self, trial):
        trial.robot("glitch:2:190000", "glitch:4:25")

        ran = trial.run()

        trial.check(ran)
        assert len(ran.visits) == len(ran.of(Query))
        assert ran.summary["home"]

    def test_ctrl_c_among_bad_fixes_stops_the_robot_where_it_is(self, trial):
        trial.robot("glitch:2:190000", slow=True)
        run = trial.start()
        row = trial.until_under_way(3, run)
        time.sleep(0.5)
        run.interrupt()
        broken = trial.ended(run)
        assert broken.code == 128 + signal.SIGINT, broken.output

        trial.check_that_it_stops_on_the_way(row, broken.output)

    def test_without_battery_reports_the_robot_still_comes_home(self, trial):
        trial.write_file(silence_s=SILENCE_S)  # older reports say nothing
        trial.robot("uncharged:2", "drain:2:1.2", speedup=40.0)

        ran = trial.run("agent.max_steps=100", "agent.margin=0.5")

        assert "Traceback" not in ran.output
        assert ran.code == 0, ran.output
        assert ran.summary["home"]
        assert ran.of(Telemetry)[-1].remaining is None

    def test_a_hold_that_can_not_be_sent_is_reported_at_once_and_sent_later(self, trial):
        trial.robot(speedup=2.0)
        run = trial.start()
        row = trial.until_under_way(3, run)  # of twenty seconds
        trial.peer.cut()
        run.interrupt()
        run.wait_for(
            "was NOT told to hold", timeout_s=0.5 * PATIENT["connect_s"]
        )  # for which it keeps trying
        trial.peer.restore()
        run.wait_for("was told to hold after all")
        broken = trial.ended(run)

        assert broken.code == 128 + signal.SIGINT, broken.output
        trial.check_that_it_stops_on_the_way(row, broken.output)

    def test_a_robot_whose_planner_is_killed_stops_by_itself(self, trial):
        trial.write_file(planner_silence_s=3.0)
        robot = trial.robot(speedup=4.0)
        run = trial.start()
        row = trial.until_under_way(3, run)  # of ten seconds
        run.kill()
        robot.wait_for("holding")

        stays = trial.where_the_robot_stays()

        assert np.ptp(stays, axis=0).max() == 0.0
        assert np.abs(stays[-1]).max() > 0.0
        assert np.abs(stays[-1] - row.message.site).max() > trial.peer.within

    def test_a_robot_whose_planner_is_killed_goes_home_by_itself(self, trial):
        trial.write_file(planner_silence_s=3.0, when_planner_silent="home")
        robot = trial.robot(slow=True)
        run = trial.start()
        trial.until_under_way(3, run)
        run.kill()
        robot.wait_for("going home")
        trial.where_the_robot_stops(home=True)

        assert (trial.where_the_robot_stays() == 0.0).all()
        ran = trial.resume()

        trial.check(ran)
        assert ran.summary["home"]

    def test_a_robot_holds_in_a_long_gap_and_the_run_continues_after_it(self, trial):
        trial.write_file(planner_silence_s=3.0, silence_s=SILENCE_S)
        robot = trial.robot(slow=True)
        run = trial.start("agent.when_lost.orders=1", 'agent.when_lost.then="wait"')
        row = trial.until_under_way(3, run)
        trial.peer.cut()
        robot.wait_for("holding")
        trial.until_one_is_lost(row, run)
        trial.peer.restore()

        ran = trial.ended(run)

        trial.check(ran)
        assert ran.summary["end_reason"] != EndReason.VEHICLE_LOST

    def test_a_robot_stands_still_while_the_wind_is_too_strong_and_then_goes_on(self, trial):
        write(trial.mission, trial.mission.read_text() + WIND)
        robot = trial.robot(slow=True, channel="wind=5,3:9.5,13:5")

        ran = trial.run()

        robot.interrupt()
        robot.wait()
        trial.check(ran)
        pause, goes_on = ran.of(Command)
        assert (pause.action, pause.by) == ("pause", "hold: wind 9.5 above 8")
        assert (goes_on.action, goes_on.by) == ("continue", "hold: wind below 6 for 2 s")
        track, times_s = track_of(trial.folder)
        first_s = times_s[1]
        abated_s = first_s + 13.0 + 2.0
        stops_s = first_s + ran.seconds_until("command") + STOPPING_S
        assert stops_s < abated_s
        blown_s = np.linspace(stops_s, abated_s, 50)
        stood = np.column_stack([np.interp(blown_s, times_s, track[:, j]) for j in (0, 1)])
        assert np.ptp(stood, axis=0).max() < 0.5
        later = track[times_s > blown_s[-1]]
        assert np.linalg.norm(later - stood[0], axis=1).max() > 10.0
        with (ran.folder / "ledger.csv").open() as file:
            (held,) = (line for line in csv.DictReader(file) if line["kind"] == "hold wind")
        assert float(held["spent_s"]) > 5.0
        assert ran.summary["home"]
        assert np.abs(track[-1]).max() <= ROUNDING_M + trial.peer.within

    def test_a_second_planner_is_refused_and_the_first_one_continues(self, trial):
        trial.robot(speedup=trial.peer.slowly / 2)
        first = trial.start()
        trial.until_under_way(2, first)
        second = trial.start(out="second")

        assert second.wait() == 2, second.output
        assert re.search("has claimed this robot|another program uses", second.output)
        assert "fix:" in second.output
        assert not (trial.folder / "second").exists()
        ran = trial.ended(first)
        trial.check(ran)
        assert len(ran.visits) == len(ran.of(Query))
