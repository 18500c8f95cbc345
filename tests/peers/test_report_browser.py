"""The page of a run in a browser: from a file, offline, by mouse, keyboard and finger."""

from __future__ import annotations

import re
import shutil

import pytest
from axe_playwright_python.sync_playwright import Axe
from earth import world_on_earth
from page_runs import HOSTILE, carried_out, data_of, pond
from peers.processes import SLOW_S
from playwright.sync_api import expect, sync_playwright

import fieldbo
from fieldbo.mission.load import load_mission
from fieldbo.pages.report import write_report
from fieldbo.runs.folder import begin

SIZES = {"phone": (360, 740), "desktop": (1280, 900)}
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        expect.set_options(timeout=1000 * SLOW_S)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The pages by name, as files."""
    made = {}
    for name, title in (("pond", "algae"), ("hostile", HOSTILE)):
        parent = tmp_path_factory.mktemp(name)
        run = carried_out(pond(parent, title), parent / "r", rejected=[3], reason=title)
        made[name] = write_report(run)
    parent = tmp_path_factory.mktemp("earth")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(parent)  # where its world is found
        mission = load_mission(str(world_on_earth(parent)))
        made["earth"] = write_report(carried_out(mission, parent / "r"))
    parent = tmp_path_factory.mktemp("cell")
    mission = load_mission("cell-growth", {"agent": {"max_steps": 3}})
    folder, record = begin(mission, parent / "r")
    with record:
        fieldbo.run(mission, record=record)
    made["cell"] = write_report(folder)
    return made


@pytest.fixture
def opened(browser, pages):
    """Open a page without a network; whatever the browser complains about fails the test."""
    contexts, complaints = [], []

    def open_page(name, size="desktop", **options):
        width, height = SIZES[size]
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_default_timeout(1000 * SLOW_S)
        context.set_offline(True)
        context.route(
            re.compile("^(?!file:|data:)"),
            lambda route: (complaints.append(route.request.url), route.abort()),
        )
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(pages[name].as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def box_of_map(page):
    """Scroll to the map, and return its box."""
    page.locator("#map").evaluate("map => map.scrollIntoView()")
    return page.locator("#map").bounding_box()


def pixels(page):
    """Return the pixels of the map's raster."""
    return page.evaluate("document.querySelector('.fieldbo-raster').toDataURL()")


def fact(page, label):
    """Return a fact of the present step by its label."""
    return page.locator("#facts div", has=page.locator("dt", has_text=label)).first.locator("dd").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["pond", "earth", "cell", "hostile"])
def test_axe_finds_no_serious_violation_and_nothing_is_wider_than_the_screen(opened, name, size, scheme):
    page = opened(name, size, color_scheme=scheme)
    found = Axe().run(page, options={"iframes": False}).response["violations"]
    serious = [
        (v["id"], [node["html"][:200] for node in v["nodes"]])
        for v in found
        if v["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["pond", "earth"])
def test_arrow_keys_move_the_slider_the_map_and_the_facts(opened, pages, name, size):
    page = opened(name, size)
    steps = data_of(pages[name].read_bytes())["steps"]
    slider = page.locator("#step")
    assert slider.get_attribute("aria-valuetext") == steps[-1]["title"]
    assert fact(page, "cost") == dict(steps[-1]["facts"])["cost"]
    last = pixels(page)
    slider.focus()
    page.keyboard.press("Home")
    assert slider.get_attribute("aria-valuetext") == "before the first reading"
    assert fact(page, "known") == "nothing read yet"
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == steps[1]["title"]
    assert fact(page, "result") == dict(steps[1]["facts"])["result"]
    assert pixels(page) != last
    page.keyboard.press("End")
    assert pixels(page) == last


def test_the_layers_are_chosen_by_radio_buttons(opened, pages):
    page = opened("pond")
    layers = data_of(pages["pond"].read_bytes())["layers"]
    assert [layer["key"] for layer in layers] == ["mean", "sd", "probability", "class", "truth"]
    seen = set()
    for layer in layers:
        page.get_by_label(layer["label"], exact=True).check()
        seen.add(pixels(page))
        assert layer["label"] in page.locator("#colours").inner_text()
    assert len(seen) == len(layers)
    page.get_by_label("class", exact=True).check()
    assert "likely above" in page.locator("#colours").inner_text()


def test_values_are_written_where_the_pointer_is(opened):
    page = opened("pond")
    box = box_of_map(page)
    texts = set()
    for share in (0.2, 0.8):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.85 * box["height"])
        texts.add(page.locator("#values").inner_text())
    assert len(texts) == 2
    for text in texts:
        assert re.search(r"east [\d.]+ m, north [\d.]+ m; estimate of algae -?[\d.e-]+ mg; uncertainty", text)
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.58 * box["height"])
    assert "obstacle: algae" in page.locator("#values").inner_text()


def test_a_tap_writes_the_values_there(opened):
    page = opened("earth", "phone", has_touch=True, is_mobile=True)
    box = box_of_map(page)
    page.locator("#map").tap(position={"x": 0.35 * box["width"], "y": 0.75 * box["height"]})
    expect(page.locator("#values")).to_contain_text(re.compile(r"° N, \S+° E; estimate of turbidity"))


def test_the_keyboard_moves_the_map_and_reads_the_value_in_its_middle(opened):
    page = opened("pond")
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#values")).to_contain_text(re.compile("estimate of algae|obstacle"))
    page.wait_for_timeout(600)  # the map glides
    before = page.locator("#values").inner_text()
    assert "estimate of algae" in before or "obstacle" in before
    page.keyboard.press("ArrowDown")
    expect(page.locator("#values")).not_to_have_text(before)


def test_play_runs_to_the_end_and_is_not_announced_step_by_step(opened):
    page = opened("pond")
    page.get_by_role("button", name="Play").click()
    assert page.locator("#facts").get_attribute("aria-live") == "off"
    expect(page.locator("#play")).to_have_text("Pause")
    expect(page.locator("#play")).to_have_text("Play")
    slider = page.locator("#step")
    assert slider.input_value() == slider.get_attribute("max")
    assert page.locator("#facts").get_attribute("aria-live") == "polite"


def test_names_that_are_code_are_shown_as_text_and_never_run(opened):
    page = opened("hostile")
    box = box_of_map(page)
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.58 * box["height"])
    assert "<script>window.hacked=1</script>" in page.locator("#values").inner_text()
    page.locator("#step").focus()
    for _ in range(12):
        page.keyboard.press("ArrowLeft")
    for radio in page.locator("input[name=layer]").all():
        radio.check()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img[src='x']").count() == 0
    assert "<script>window.hacked=1</script>" in page.locator("h1").inner_text()


def test_printing_shows_the_last_step_and_opens_the_details(opened):
    page = opened("pond")
    page.locator("#step").focus()
    page.keyboard.press("Home")
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert page.locator("#step").input_value() == page.locator("#step").get_attribute("max")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("#step").input_value() == "0"
    assert page.locator("details[open]").count() == 0


def test_without_scripts_the_page_still_states_answer_orders_and_readings(opened):
    page = opened("pond", "phone", java_script_enabled=False)
    assert page.locator("#map").is_hidden()
    assert page.locator("#still svg").is_visible()
    assert page.locator("#still circle").count() > 5
    assert page.locator("#orders tbody tr").count() > 5
    assert page.locator("#answer dd").first.is_visible()
