"""The page of a run holds what the run says, for people and scripts, and executes nothing of it."""

import hashlib
import re
import sqlite3
from base64 import b64decode, b64encode
from html.parser import HTMLParser

import numpy as np
import pytest
from earth import world_on_earth
from page_runs import HOSTILE, carried_out, data_of, pond, unpacked

import fieldbo
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.mission.load import load_mission
from fieldbo.pages import report
from fieldbo.pages.course import evenly, layers_of, replayed
from fieldbo.pages.field_map import quantised
from fieldbo.pages.plane import Flat, OnEarth, plane_of, raster_of
from fieldbo.pages.report import report_page, write_report
from fieldbo.record.record import Record
from fieldbo.results.maps import layers
from fieldbo.runs.export import read_run
from fieldbo.runs.folder import begin

QUANTUM = 1.0 / 65534


class Parsed(HTMLParser):
    """The elements of a page, its text, and the content of its scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.text, self.code = [], [], []
        self._within = None
        self.feed(page.decode())

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._within = self.elements[-1] if tag in ("script", "style") else None

    def handle_endtag(self, tag):
        self._within = None

    def handle_data(self, data):
        if self._within is None:
            self.text.append(data)
        else:
            self.code.append((self._within, data))

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def words(self):
        return re.sub(r"\s+", " ", " ".join(self.text))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    parent = tmp_path_factory.mktemp("runs")
    return carried_out(pond(parent), parent / "pond-1", rejected=[3], lost=[5])


@pytest.fixture(scope="module")
def page(folder):
    return report_page(read_run(folder))


@pytest.fixture(scope="module")
def parsed(page):
    return Parsed(page)


# -- what it says ------------------------------------------------------------------------------------------


def test_a_page_states_the_question_the_answer_and_the_notes(folder, parsed):
    result = fieldbo.load_run(folder).result()
    stated = result.report()
    assert "Where is algae at or above 0.3 mg?" in parsed.words
    for words in (stated.heading, *(f"{label} {value}" for label, value in stated.rows), *stated.notes):
        assert words in parsed.words


def test_a_page_says_how_often_intervals_of_learned_models_held(parsed, tmp_path):
    mission = load_mission("lake-level-set", {"agent": {"max_steps": 6}})
    learned = Parsed(report_page(read_run(carried_out(mission, tmp_path / "lake-1"))))
    assert "In simulations of seven kinds of fields with the default policy" in learned.words
    assert "In simulations of" not in parsed.words, "its model is known"


def test_a_page_lists_each_order_with_its_costs_and_reasons(folder, parsed):
    result = fieldbo.load_run(folder).result()
    orders = len(result.accounts[0].lines)
    reasons = parsed.all("summary")
    assert parsed.words.count("Why order ") == len(result.queries)
    assert orders == len(result.queries) + 1  # the trip home
    assert len(reasons) >= len(result.queries)
    assert "an initial reading, before the policy takes over" in parsed.words


def test_a_page_lists_rejected_and_lost_orders_with_their_reasons(parsed):
    assert "3" in parsed.words
    assert parsed.words.count("too shallow") >= 2
    assert "rejected: too shallow" in parsed.words
    assert "lost: too shallow" in parsed.words


def test_a_page_tells_how_to_repeat_the_run(folder, parsed):
    text = (folder / "mission.toml").read_text()
    assert f"fieldbo run {folder.name}/mission.toml" in parsed.words
    assert re.sub(r"\s+", " ", text).strip() in parsed.words
    assert fieldbo.__version__ in parsed.words
    assert f"Seed {fieldbo.load_run(folder).mission.seed}" in parsed.words


def test_the_same_record_gives_the_same_page(folder, page):
    assert report_page(read_run(folder)) == page


# -- the map -----------------------------------------------------------------------------------------------


def test_there_is_one_frame_before_the_first_reading_and_one_per_settled_order(folder, page):
    data = data_of(page)
    curve = fieldbo.load_run(folder).result().curve
    assert len(data["steps"]) == len(curve) + 1
    assert data["steps"][0]["marks"]["readings"] == 0
    assert data["steps"][-1]["marks"]["readings"] == len(data["readings"])
    assert data["steps"][-1]["marks"]["routes"] == [len(data["routes"][0])]
    assert [len(step["facts"]) > 1 for step in data["steps"]] == [True] * len(data["steps"])


@pytest.mark.parametrize("question", ["level-set", "optimum"])
def test_the_last_frame_holds_the_maps_of_the_result(tmp_path, question):
    asked = {"optimum": '[question]\nkind = "optimum"'}.get(question)
    mission = pond(tmp_path, **({} if asked is None else {"question": asked}))
    if asked:
        mission = load_mission(str(tmp_path / "pond.toml"), {"policy": {"kind": "ei"}})
    folder = carried_out(mission, tmp_path / "r")
    data = data_of(report_page(read_run(folder)))
    result = fieldbo.load_run(folder).result()
    final = {name: values for name, (values, _) in layers(result.answer, result.failures).items()}
    last, shown = data["steps"][-1]["layers"], raster_of(plane_of(mission.world.domain)).shown
    for key, name in {"mean": "mean", "sd": "sd", "probability": "exceedance"}.items():
        error = np.abs(unpacked(last[key]) - final[name][shown])
        assert error.max() <= 0.51 * QUANTUM * np.ptp(final[name][shown]) + 1e-12
    if question == "level-set":
        classes = np.frombuffer(b64decode(last["class"]), dtype=np.uint8)
        above = np.isin(classes, (2, 3))
        expected = np.where(final["class"] == 2, 4, above)
        assert (np.where(classes == 4, 4, above) == expected).all()
        assert (classes == 4).sum() == (final["class"] == 2).sum()


def test_frames_between_hold_what_was_known_then(folder, page):
    run, steps = read_run(folder), data_of(page)["steps"]
    shown = raster_of(plane_of(run.mission.world.domain)).shown
    known = [
        layers_of(agent)["mean"][shown]
        for row, agent in run.steps()
        if row.kind in ("observation", "rejected", "lost")
    ]
    assert np.ptp(unpacked(steps[0]["layers"]["mean"])) == 0.0
    for step, mean in zip(steps[1:], known, strict=True):
        assert unpacked(step["layers"]["mean"]) == pytest.approx(mean, abs=1e-4)


def test_long_runs_are_thinned_evenly_and_the_page_says_so(folder, monkeypatch):
    monkeypatch.setattr(report, "_MOST_FRAMES", 4)
    page = report_page(read_run(folder))
    data, total = data_of(page), len(fieldbo.load_run(folder).result().curve)
    assert len(data["steps"]) == 4
    assert f"4 moments are shown, evenly over {total} steps" in Parsed(page).words
    assert data["steps"][-1]["facts"][0] == ["step", f"{total} of {total}"]


def test_the_number_of_frames_follows_from_the_number_of_sites(folder, monkeypatch):
    shown = len(raster_of(plane_of(read_run(folder).mission.world.domain)).shown)
    monkeypatch.setattr(report, "_MOST_VALUES", 3 * shown)
    assert len(data_of(report_page(read_run(folder)))["steps"]) == 3


def test_two_hundred_steps_over_2500_sites_stay_within_their_bytes():
    values = np.random.default_rng(0).normal(size=2500)  # what compresses worst
    frame = sum(len(quantised(values)["values"]) for _ in range(3)) + len(b64encode(bytes(2500)))
    frames = min(201, report._MOST_VALUES // 2500)
    assert frames == 201
    assert frames * frame < 5e6  # of 8 MB


def test_a_replay_computes_maps_only_for_the_frames_that_are_shown(folder, monkeypatch):
    from fieldbo.pages import course

    taken = []
    monkeypatch.setattr(course, "layers_of", lambda agent: taken.append(agent.steps) or {"mean": np.zeros(1)})
    frames = replayed(read_run(folder), 3).frames
    assert len(taken) == 4  # the last one twice: before and after fits that may follow
    assert sum(bool(frame.layers) for frame in frames) == 3


@pytest.mark.parametrize(("count", "most"), [(1, 5), (2, 2), (7, 3), (400, 399), (5, 0)])
def test_frames_are_chosen_evenly_with_the_first_and_the_last(count, most):
    chosen = evenly(count, most)
    assert len(chosen) == min(count, most)
    assert chosen == sorted(set(chosen))
    if len(chosen) > 1:
        assert (chosen[0], chosen[-1]) == (0, count - 1)
        assert np.ptp(np.diff(chosen)) <= 1


# -- pixels and places -------------------------------------------------------------------------------------


def test_each_pixel_shows_the_nearest_site_or_nothing_outside(tmp_path):
    domain = pond(tmp_path).world.domain
    plane = plane_of(domain)
    raster = raster_of(plane, 60)
    rows, columns = raster.pixels.shape
    for k in range(0, rows, 7):
        for j in range(0, columns, 7):
            point = np.array([90 * (j + 0.5) / columns, 60 * (1 - (k + 0.5) / rows)])
            if not domain.contains(point[None])[0]:
                assert raster.pixels[k, j] == -1
                continue
            gaps = np.linalg.norm(domain.sites - point, axis=1)
            assert gaps[raster.shown[raster.pixels[k, j]]] == pytest.approx(gaps.min(), abs=1e-9)


@pytest.mark.parametrize("name", ["lake", "south", "dateline", "fiji", "delft"])
def test_a_place_has_a_map_in_degrees_that_is_continuous(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    domain = load_mission(str(world_on_earth(tmp_path, name))).world.domain
    plane = plane_of(domain)
    assert isinstance(plane, OnEarth)
    degrees = plane.to_map(domain.sites)
    assert np.ptp(degrees[:, 1]) < 0.02
    assert plane.to_domain(degrees) == pytest.approx(domain.sites, abs=1e-3)
    raster = raster_of(plane, 80)
    assert set(raster.shown) == set(range(domain.size))
    assert (raster.pixels == -1).any()


def test_a_place_near_a_pole_has_a_map_in_metres(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plane = plane_of(load_mission(str(world_on_earth(tmp_path, "pole"))).world.domain)
    assert type(plane) is Flat


def test_depth_points_down():
    lake = Domain.grid([Axis("along", "m", 0, 100), Axis("depth", "m", 0, 10, "down")], (3, 3))
    surface, bottom = plane_of(lake).to_map([[0, 0], [0, 10]])
    assert surface[0] > bottom[0]


def test_values_survive_quantising_to_half_a_step():
    values = np.random.default_rng(0).normal(size=1000) * 1e6
    values[3] = np.nan
    error = np.abs(unpacked(quantised(values)) - values)
    assert np.nanmax(error) <= 0.501 * QUANTUM * (np.nanmax(values) - np.nanmin(values))
    assert np.isnan(error[3])
    assert unpacked(quantised(np.full(3, 7.5))).tolist() == [7.5] * 3
    assert np.isnan(unpacked(quantised(np.full(2, np.nan)))).all()


@pytest.mark.slow
@pytest.mark.parametrize(("mission", "steps"), [("hartmann", 3), ("cell-growth", 3), ("cell-griewank-6", 3)])
def test_a_run_without_a_map_has_pictures_instead(tmp_path, mission, steps):
    loaded = load_mission(mission, {"agent": {"max_steps": steps}})
    folder, record = begin(loaded, tmp_path / "r")
    with record:
        fieldbo.run(loaded, record=record)
    parsed = Parsed(report_page(read_run(folder)))
    assert len(parsed.all("img")) == 3
    assert all(image["alt"] for image in parsed.all("img"))
    assert parsed.all("script") == []
    assert "the map" not in parsed.words.lower()


# -- nothing is executed -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    parent = tmp_path_factory.mktemp("hostile")
    mission = pond(parent, HOSTILE)
    return report_page(read_run(carried_out(mission, parent / "r", rejected=[2], reason=HOSTILE)))


def test_names_and_reasons_are_text_and_no_elements(hostile):
    parsed = Parsed(hostile)
    assert all(not attributes.get("src", "data:").startswith("x") for attributes in parsed.all("img"))
    handlers = [name for _, attributes in parsed.elements for name in attributes if name.startswith("on")]
    assert handlers == []
    assert len(parsed.all("script")) == 5  # data, Leaflet, map, layers, report
    assert "window.hacked" not in "".join(text for (_, kind), text in parsed.code if "type" not in kind)
    shown = HOSTILE.replace("\u2028", " ").strip()
    assert parsed.words.count(re.sub(r"\s+", " ", shown)) >= 3


def test_data_keeps_its_names_and_cannot_end_its_element(hostile):
    data = data_of(hostile)
    assert data["map"]["obstacles"][0]["name"] == HOSTILE
    assert HOSTILE in data["layers"][0]["label"]
    raw = re.search(rb'id="run-data">(.*?)</script>', hostile, re.S)[1]
    assert not set(b"<>&") & set(raw)
    assert "\u2028".encode() not in raw


def test_the_policy_allows_the_scripts_and_styles_of_the_page_and_nothing_else(page, parsed):
    (policy,) = (m["content"] for m in parsed.all("meta") if "Content-Security-Policy" in m.values())
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for (tag, attributes), text in parsed.code:
        if "type" not in attributes:
            digest = b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in rules[f"{tag}-src"]
    assert "unsafe" not in policy
    assert not re.search(rb' style="| on\w+="', page)


def test_a_page_names_no_other_file(parsed):
    sources = [a[key] for _, a in parsed.elements for key in ("src", "href") if key in a]
    assert sources
    assert all(source.startswith(("#", "data:")) for source in sources)


# -- unfinished runs and bad input -------------------------------------------------------------------------


def test_an_interrupted_run_says_as_of_when(tmp_path):
    folder = carried_out(pond(tmp_path), tmp_path / "r", orders=4)
    words = Parsed(report_page(read_run(folder))).words
    with Record(folder / "run.sqlite") as record:
        at = record.rows()[-1].time_utc[:10]
    assert f"Run not finished: as of {at}" in words
    assert "It was interrupted, and can be resumed." in words


def test_a_run_in_progress_says_so(tmp_path):
    folder = carried_out(pond(tmp_path), tmp_path / "r", orders=4)
    with Record(folder / "run.sqlite") as record:
        record.claim()
        assert "The run was still in progress." in Parsed(report_page(read_run(folder))).words


def test_a_run_without_a_reading_has_a_page(tmp_path):
    mission = pond(tmp_path)
    folder, record = begin(mission, tmp_path / "r")
    agent = fieldbo.Agent(mission, record.name)
    with record:
        record.order(agent.ask(), agent.memory, agent.why)
    page = report_page(read_run(folder))
    assert "No reading yet." in Parsed(page).words
    assert "outstanding" in Parsed(page).words
    assert len(data_of(page)["steps"]) == 1


def test_the_command_writes_the_page_into_the_run_folder(folder, said):
    assert said("report", folder) == f"{folder}/report.html\n"
    assert (folder / "report.html").read_bytes().startswith(b"<!DOCTYPE html>")


def test_the_command_writes_the_page_elsewhere(folder, said, tmp_path):
    assert said("report", folder, "--out", tmp_path / "page.html") == f"{tmp_path}/page.html\n"
    assert (tmp_path / "page.html").stat().st_size > 100_000


def test_a_run_that_does_not_exist_ends_with_2(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = command("report", "nowhere")
    assert (code, out) == (2, "")
    assert "there is no run nowhere" in err


def test_a_newer_record_ends_with_2_and_says_so(command, tmp_path):
    folder = carried_out(pond(tmp_path), tmp_path / "r", orders=1)
    with sqlite3.connect(folder / "run.sqlite") as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    code, _, err = command("report", folder)
    assert code == 2
    assert "record format 999; this version of fieldbo reads format" in err


def test_an_empty_record_ends_with_2(command, tmp_path):
    folder, record = begin(pond(tmp_path), tmp_path / "r")
    record.close()
    code, _, err = command("report", folder)
    assert code == 2
    assert "a run that has issued an order" in err


@pytest.mark.parametrize("name", ["missing/page.html", "file/page.html"])
def test_a_file_that_cannot_be_written_ends_with_2_and_names_the_option(folder, command, tmp_path, name):
    (tmp_path / "file").write_text("")
    code, _, err = command("report", folder, "--out", tmp_path / name)
    assert code == 2
    assert "--out" in err
    assert "can't be written" in err


@pytest.mark.parametrize("name", ["run.sqlite", "page", "."])
def test_only_web_pages_are_written_so_that_no_record_is_overwritten(folder, tmp_path, name):
    before = (folder / "run.sqlite").read_bytes()
    with pytest.raises(InputError, match=r"is not a web page(.|\n)*\.html"):
        write_report(folder, folder / name)
    assert (folder / "run.sqlite").read_bytes() == before


def test_a_run_whose_plugin_is_gone_ends_with_2_and_names_it(command, tmp_path):
    folder = carried_out(pond(tmp_path), tmp_path / "r", orders=1)
    mission = folder / "mission.toml"
    mission.write_text(mission.read_text().replace('"truvar"', '"from-a-plugin"'))
    code, _, err = command("report", folder)
    assert code == 2
    assert "from-a-plugin" in err


def test_earlier_readings_are_on_the_map_before_the_first_order(tmp_path):
    pond(tmp_path)
    (tmp_path / "before.csv").write_text("east,north,value\n10,20,0.4\n50,5,0.7\n", encoding="utf-8")
    mission = load_mission(str(tmp_path / "pond.toml"), {"prior": {"readings": str(tmp_path / "before.csv")}})
    folder = carried_out(mission, tmp_path / "run", orders=3)
    page = report_page(read_run(folder))
    data = data_of(page)
    kinds = [reading["kind"] for reading in data["readings"]]
    assert kinds[:2] == ["earlier", "earlier"]
    assert "earlier" not in kinds[2:]
    assert [step["marks"]["readings"] for step in data["steps"]] == [2, 3, 4, 5]
    assert data["readings"][0]["text"] == "earlier reading: 0.4 mg"
    assert page.count(b'class="earlier"') == 2
    assert b"began with 2 earlier readings" in page
