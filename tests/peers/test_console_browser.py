"""The console in Chromium: it drives a mission over MQTT, and a mission by hand is completed in its form."""

from __future__ import annotations

import csv
import json
import os
import re
import sqlite3
import time
from contextlib import contextmanager, suppress

import pytest
from axe_playwright_python.sync_playwright import Axe
from peers.pond import area_beside, long_pond, pond
from peers.processes import SLOW_S, Broker, fieldbo, free_port, until
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import expect, sync_playwright
from reverse_proxy import reverse_proxy
from working_folder import write

from fieldbo.errors import RecordError
from fieldbo.record.record import Record

TOKEN = "a-token-for-tests-0123456789"
HOSTILE = "<img src=x onerror=window.hacked=1>"
SIZES = {"phone": (360, 740), "desktop": (1280, 900)}
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        expect.set_options(timeout=1000 * SLOW_S)
        yield opened
        opened.close()


@contextmanager
def viewer(browser, address, size=SIZES["phone"]):
    """Open the console; on leaving, check that nothing went wrong in the browser."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]})
    context.set_default_timeout(1000 * SLOW_S)
    page, wrong = context.new_page(), []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(address)
    expect(page.locator("#status")).not_to_have_text("Connecting")
    try:
        yield page
        assert page.evaluate("window.hacked") is None
        assert [text for text in wrong if "ERR_CONNECTION" not in text and "ERR_INCOMPLETE" not in text] == []
    finally:
        context.close()


@contextmanager
def console(folder, *arguments, port=0):
    environment = {"FIELDBO_CONSOLE_TOKEN": TOKEN}
    with fieldbo("console", *arguments, "--port", port, cwd=folder, env=environment) as program:
        line = program.wait_for("open http")
        yield program, re.search(r"http://\S+", line)[0]


@pytest.fixture
def boat(tmp_path):
    """A slow robot over MQTT in a pond; yield its vehicle file and the mission."""
    mission = long_pond(tmp_path)
    world = tmp_path / "pond" / "world.toml"
    write(world, world.read_text().replace('title = "a pond"', f'title = "a pond {HOSTILE}"'))
    with Broker(tmp_path) as broker:
        link = f'kind = "mqtt"\nport = {broker.port}\ntopic = "tests/console"'
        write(tmp_path / "boat.toml", f"format = 1\n[link]\n{link}\n")
        more = ["--world", world, "--speedup", 10, "--battery", 4000]
        with fieldbo("robot", tmp_path / "boat.toml", *more) as robot:
            robot.wait_for("ready")
            yield tmp_path / "boat.toml", mission


def rows_of(run):
    try:
        with Record(run / "run.sqlite") as record:
            return record.rows()
    except RecordError:
        return []


def faults_of(page):
    """Return what axe takes for a serious fault: its rule, and where."""
    found = Axe().run(page).response["violations"]
    serious = [fault for fault in found if fault["impact"] in ("serious", "critical")]
    return [(fault["id"], [node["html"] for node in fault["nodes"]]) for fault in serious]


def press(page, action, outcome="confirmed"):
    """Press a button, confirm it, and wait for what the run says; return that."""
    page.locator(f"#{action}").click()
    page.locator("#ask-yes").click()
    expect(page.locator("#outcome")).to_contain_text(outcome)
    return page.locator("#outcome").inner_text()


def task_of(page):
    """Return the order on the page, once there is one: between two, it says that one is being chosen."""
    expect(page.locator("#task")).to_contain_text("go to")
    return page.locator("#task").inner_text()


def at(page, east, north):
    """Return the pixel of the map at a place in the pond, 60 m by 50 m, as an offset from its corner."""
    return page.evaluate(
        """([x, y]) => {
          const box = document.querySelector('#map canvas').getBoundingClientRect();
          const whole = document.querySelector('#map').getBoundingClientRect();
          const right = box.left - whole.left + box.width * x / 60;
          return {x: right, y: box.bottom - whole.top - box.height * y / 50};
        }""",
        [east, north],
    )


def area_beside_boat(run):
    """Return an area beside the way on which the boat is: how far it has come depends on the machine."""
    rows = rows_of(run)
    told = [row.message.position for row in rows if row.kind in ("telemetry", "observation")]
    return area_beside(*told[-1:], *[row.message.site for row in rows if row.kind == "query"][-2:])


@pytest.mark.parametrize("size", SIZES)
def test_a_mission_over_mqtt_is_driven_from_the_console_and_its_ledger_shows_it(
    browser, boat, tmp_path, size
):
    file, mission = boat
    run = tmp_path / "runs" / "pond-1"
    with console(tmp_path, mission.name, "--vehicle", file.name) as (_, address):
        with viewer(browser, address, SIZES[size]) as page:
            expect(page.locator("#vehicles .order")).to_contain_text("go to")
            expect(page.locator("#run")).to_contain_text(HOSTILE)
            press(page, "pause")
            expect(page.locator("#status")).to_have_text("Paused")
            page.locator("#level summary").click()
            page.locator("#left").fill("3900")
            page.locator("#left-send").click()
            page.locator("#ask-yes").click()
            expect(page.locator("#outcome")).to_contain_text("State what is left in the battery: confirmed")
            area = area_beside_boat(run)
            page.locator("#no-go").click()
            for corner in area.exterior.coords[:-1]:
                page.locator("#map").click(position=at(page, *corner))
            expect(page.locator("#picked")).to_contain_text("4 corners")
            page.locator("#area").fill(f"nets {HOSTILE}")
            page.locator("#pick-send").click()
            expect(page.locator("#outcome")).to_contain_text("No-go area: confirmed")
            expect(page.locator(".fieldbo-area")).to_contain_text("nets")
            page.locator("#next").click()
            page.locator("#map").click(position=at(page, *area.centroid.coords[0]))
            page.locator("#pick-send").click()
            expect(page.locator("#outcome")).to_contain_text("lies in a no-go area")
            page.locator("#next").click()
            page.locator("#place").fill("50, 30")
            page.locator("#pick-send").click()
            expect(page.locator("#outcome")).to_contain_text("Go there next: confirmed")
            press(page, "continue")
            expect(page.locator("#vehicles .order")).to_contain_text("x 50 m, y 30 m")
            answered = re.compile(
                "Skip this site(: confirmed| refused)"
            )  # for the robot is there, on a slow machine
            until(lambda: "confirmed" in press(page, "skip", answered))
            assert faults_of(page) == []
            press(page, "home")
            expect(page.locator("#status")).to_have_text("Ended: stopped by operator")
        until((run / "ledger.csv").exists, what="the ledger")
    with (run / "ledger.csv").open() as opened:
        kinds = [line["kind"] for line in csv.DictReader(opened)]
    commands = [kind for kind in kinds if kind not in ("query", "go-home")]
    assert commands == ["pause", "battery", "no-go", "next", "continue", "skip", "home"]
    assert kinds[-1] == "go-home"


def test_two_viewers_and_a_console_that_is_killed_and_started_again_lose_nothing(browser, boat, tmp_path):
    file, mission = boat
    run = tmp_path / "runs" / "pond-1"
    with console(tmp_path, mission.name, "--vehicle", file.name) as (program, address):
        port = int(re.search(r":(\d+)/", address)[1])
        with viewer(browser, address) as first, viewer(browser, address, SIZES["desktop"]) as second:
            press(first, "pause")
            expect(second.locator("#status")).to_have_text("Paused")
            expect(second.locator("#log")).to_contain_text("pause by console")
            program.kill()
            expect(first.locator("#connection")).to_be_visible()
            before = len(rows_of(run))
            with console(tmp_path, run, port=port):
                for page in (first, second):
                    expect(page.locator("#connection")).to_be_hidden()
                press(second, "continue")
                expect(first.locator("#status")).to_have_text("Under way")
                until(lambda: len(rows_of(run)) > before + 2, what="the mission to go on")
                press(first, "stop")
                for page in (first, second):
                    expect(page.locator("#status")).to_contain_text("fieldbo resume")
                    expect(page.locator("#log")).to_contain_text("stop by console")
                lines = [page.locator("#log li").all_text_contents() for page in (first, second)]
    with sqlite3.connect(run / "commands.sqlite") as connection:
        asked = [
            json.loads(body)["id"] for (body,) in connection.execute("SELECT body FROM command ORDER BY seq")
        ]
    recorded = [row.body["message"]["id"] for row in rows_of(run) if row.kind == "command"]
    assert recorded == asked
    for seen in lines:
        texts = " ".join(seen)
        assert all(word in texts for word in ("pause by console", "continue by console", "stop by console"))


def test_the_form_completes_a_mission_with_a_doubt_a_correction_and_a_skipped_site(browser, tmp_path):
    mission = pond(tmp_path)
    write(mission, mission.read_text().replace("max_steps = 8", "max_steps = 6"))
    run = tmp_path / "runs" / "pond-1"
    with console(tmp_path, mission.name, "--by-hand") as (_, address):  # noqa: SIM117
        with viewer(browser, address) as first, viewer(browser, address) as second:

            def enter(page, value):
                page.locator("[name=value]").fill(value)
                order = task_of(page)
                page.locator("#enter").click()
                return order

            for value in ("0,5", "0.6", "0.4"):
                order = enter(first, value)
                expect(first.locator("#task")).not_to_have_text(order)
            expect(first.locator("#last")).to_contain_text("0.4 was entered")
            second_task = task_of(first)
            expect(second.locator("#task")).to_have_text(second_task)
            enter(second, "77")
            expect(second.locator("#doubt")).to_contain_text("really 77")
            second.locator("#confirm").click()
            expect(first.locator("#task")).not_to_have_text(second_task)
            first.locator("#undo summary").click()
            first.locator("#right").fill("0.7")
            first.locator("#correct button").click()
            expect(second.locator("#last")).to_contain_text("0.7 was entered")
            assert faults_of(first) == []
            skipped = task_of(first)
            first.locator("#cannot").click()
            first.locator("#ask-yes").click()
            expect(first.locator("#task")).not_to_have_text(skipped)
            end = time.monotonic() + SLOW_S
            while "Ended" not in first.locator("#status").inner_text() and time.monotonic() < end:
                with suppress(PlaywrightError):  # the form may close while it is filled in
                    if first.locator("[name=value]").count():
                        first.locator("[name=value]").fill("0.5", timeout=1000)
                    first.locator("#enter").click(timeout=1000)
            expect(first.locator("#status")).to_contain_text("Ended")
    rows = rows_of(run)
    values = [row.message.values.tolist() for row in rows if row.kind == "observation"]
    assert [77.0] in values
    assert [row.message.values.tolist() for row in rows if row.kind == "correction"] == [[0.7]]
    assert sum(row.kind == "rejected" for row in rows) == 1
    with Record(run / "run.sqlite") as record:
        assert record.end_reason is not None


def test_the_console_works_below_a_path_of_a_proxy(browser, tmp_path):
    mission, port = pond(tmp_path), free_port()
    named = ("--host-name", f"localhost:{port}")
    with console(tmp_path, mission.name, "--by-hand", *named) as (_, address):
        own_port, query = re.search(r":(\d+)/(\S+)", address).groups()
        with (
            reverse_proxy(int(own_port), "/boats/pond/", port),
            viewer(browser, f"http://localhost:{port}/boats/pond/{query}") as page,
        ):
            assert page.url == f"http://localhost:{port}/boats/pond/"
            order = task_of(page)
            page.locator("[name=value]").fill("0.5")
            page.locator("#enter").click()
            expect(page.locator("#task")).not_to_have_text(order)
            press(page, "stop")
    values = [
        row.message.values.tolist()
        for row in rows_of(tmp_path / "runs" / "pond-1")
        if row.kind == "observation"
    ]
    assert values == [[0.5]]
