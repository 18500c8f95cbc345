"""Pictures for papers: formats, widths, the shore, and labels that do not overlap."""

import io
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import shapely
from cell_runs import cell_run
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.legend import Legend
from matplotlib.offsetbox import AnchoredOffsetbox
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Text
from small_runs import AXES, DOMAINS, OUTLINE, QUESTIONS, sketch, small_mission, small_run
from tiers import swept

import fieldbo
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.results import plot
from fieldbo.results.metrics import REGRET
from fieldbo.results.plot.figures import finish, headline, new_figure
from fieldbo.results.plot.layout import NUMBER, overlapping, settled, tick_labels
from fieldbo.results.plot.style import VALUE, all_axes
from fieldbo.results.plot.surfaces import cells_of, edge, field, frame, laid_out, shore, triangles

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
WIDTHS = {"screen": None, "column": 3.5, "page": 7.2}
RUNS = {
    "line": lambda: small_run("line"),
    "obstacles": lambda: small_run("obstacles"),
    "optimum": lambda: small_run("continuous 2", question=QUESTIONS["minimum"]),
    "square": lambda: fieldbo.run(fieldbo.load_mission("se-optimum", {"agent": {"max_steps": 3}})),
    "slices": lambda: small_run("box"),
    "four axes": lambda: small_run("four axes", question=QUESTIONS["maximum"]),
    "chain": lambda: cell_run("chain", 3),
    "sets": lambda: cell_run("sets", 4),
    "many settings": lambda: cell_run("chain", 8),
}


def hexagons():
    rows = np.arange(2.0, 60.0, 5.0)
    sites = np.array([(x, y) for k, y in enumerate(rows) for x in np.arange(2.0 + 2.9 * (k % 2), 100.0, 5.8)])
    inside = shapely.intersects_xy(OUTLINE, *sites.T)
    return Domain(AXES, sites[inside], region=OUTLINE, outline=OUTLINE)


@pytest.fixture(scope="module")
def results():
    made = {}

    def result(name):
        if name not in made:
            made[name] = RUNS[name]()
        return made[name]

    return result


def drawn(result, kind, width):
    if kind == "world":
        return plot.world_picture(result.mission.world, 6.0, width)
    return getattr(plot, f"{kind}_picture")(result, width)


def sketched(result, kind, width):
    return sketch(getattr(plot, f"{kind}_picture"), result, width)


def written(figure, format):
    out = io.BytesIO()
    plot.save(figure, out, format)
    return out.getvalue()


def texts_of(figure):
    """Return all that is written on a figure, with its boxes in pixels."""
    figure.draw_without_rendering()  # this places the entries of legends
    written = {t.get_text(): t.get_window_extent() for t in figure.texts if t.get_text()}
    boxes = list(written.items())
    for ax in all_axes(figure):
        parts = [ax.title, *ax.texts]
        if ax.axison:
            parts += [ax.xaxis.label, ax.yaxis.label]
            boxes += [("tick", box) for axis in (ax.xaxis, ax.yaxis) for box in tick_labels(axis)]
        if ax.get_legend() is not None:
            parts += ax.get_legend().get_texts()
        boxes += [
            (t.get_text(), Text.get_window_extent(t)) for t in parts if t.get_text() and t.get_visible()
        ]
    return boxes + [(t.get_text(), t.get_window_extent()) for one in figure.legends for t in one.get_texts()]


def collisions(figure):
    """Return the pairs of labels that overlap by more than a pixel."""
    boxes = [(text, box.padded(-0.5)) for text, box in texts_of(figure)]
    return [(a, b) for k, (a, one) in enumerate(boxes) for b, two in boxes[:k] if one.overlaps(two)]


# -- formats ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("format", MAGIC)
def test_a_picture_is_written_in_its_format_with_the_same_bytes_each_time(results, format):
    first = written(drawn(results("obstacles"), "map", "column"), format)
    assert first.startswith(MAGIC[format])
    assert written(drawn(results("obstacles"), "map", "column"), format) == first
    assert b"Date" not in first
    assert b"<dc:date" not in first


def test_fonts_are_embedded_as_truetype_and_text_in_svg_stays_text():
    figure = new_figure(3, 2)
    figure.subplots().set_xlabel("east (m)")
    pdf, svg = written(figure, "pdf"), written(figure, "svg").decode()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert re.search(r"<text[^>]*>east \(m\)</text>", svg)
    assert "sans-serif" in svg


@pytest.mark.parametrize("width", ["column", "page"])
def test_a_pdf_is_as_wide_as_a_column_or_a_page(results, width):
    pdf = written(drawn(results("line"), "curve", width), "pdf")
    (found,) = re.findall(rb"/MediaBox \[ 0 0 ([\d.]+) [\d.]+ \]", pdf)
    assert float(found) == pytest.approx(72 * WIDTHS[width])


def test_the_extension_chooses_the_format(tmp_path):
    figure = new_figure(3, 2)
    figure.subplots()
    for name, format in (("a.pdf", "pdf"), ("b.SVG", "svg"), ("c.png", "png"), ("d", "png")):
        plot.save(figure, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(MAGIC[format])
    plot.save(figure, str(tmp_path / "e"), "pdf")
    assert (tmp_path / "e").read_bytes().startswith(MAGIC["pdf"])


@pytest.mark.parametrize(
    ("name", "format", "error"),
    [
        ("a.pdf", "png", InputError),
        ("a.jpg", None, InputError),
        ("a.jpg", "png", InputError),
        ("a.png", "jpg", UnknownNameError),
    ],
)
def test_a_format_that_is_unknown_or_contradicts_the_extension_is_refused(name, format, error, tmp_path):
    figure = new_figure(3, 2)
    with pytest.raises(error):
        plot.save(figure, tmp_path / name, format)
    assert not (tmp_path / name).exists()


def test_a_result_saves_its_pictures_in_a_format_and_a_width(results, tmp_path):
    results("line").save(tmp_path, "pdf", "column")
    pictures = {f.name for f in tmp_path.iterdir() if f.read_bytes().startswith(MAGIC["pdf"])}
    assert pictures == {"path.pdf", "map.pdf", "curve.pdf"}
    assert not list(tmp_path.glob("*.png"))


@pytest.mark.parametrize("wrong", [{"format": "eps"}, {"width": "poster"}])
def test_nothing_is_saved_in_an_unknown_format_or_width(results, tmp_path, wrong):
    with pytest.raises(UnknownNameError, match="unknown picture"):
        results("line").save(tmp_path / "r", **wrong)
    assert not (tmp_path / "r").exists()


# -- widths ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.filterwarnings("error")
def test_labels_do_not_overlap_and_nothing_is_cut_off(results, name, width):
    for kind in ("path", "map", "curve", "world"):
        figure = drawn(results(name), kind, width)
        assert collisions(figure) == [], kind
        within, (wide, high) = figure.get_tightbbox(), figure.get_size_inches()
        assert min(within.x0, within.y0, wide - within.x1, high - within.y1) >= -0.01, kind
        if WIDTHS[width]:
            assert wide == WIDTHS[width]
            assert high <= 9.5
            sizes = [t.get_fontsize() for t in figure.findobj(Text) if t.get_text() and t.get_visible()]
            assert min(sizes) >= 7
            assert max(sizes) <= 9.6


def test_the_check_for_overlapping_labels_finds_some(results):
    figure = drawn(results("line"), "curve", "column")
    ax = figure.axes[0]
    ax.text(0.5, 0.5, "one", transform=ax.transAxes)
    ax.text(0.5, 0.5, "other", transform=ax.transAxes)
    assert collisions(figure) == [("other", "one")]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("score", [plot.BANDS, REGRET], ids=["F1", "regret"])
def test_a_comparison_is_legible_at_every_width_and_says_what_its_bands_are(width, score):
    cost = np.linspace(1, 100, 20)
    curve = np.linspace(0.1, 0.9, 20)
    table = {
        f"lake-rule-number-{k}": (cost, curve ** (1 + k), np.array([0.3 * curve, 0.1 * curve]))
        for k in range(6)
    }
    kinds = {"score": score} if score is REGRET else {}
    figure = plot.comparison_picture(table, "s", width=width, band=plot.BANDS["interval"], **kinds)
    assert collisions(figure) == []
    assert "central 90% of the runs" in figure.axes[0].get_xlabel()
    named = [
        t.get_text()
        for part in (*figure.legends, figure.axes[0])
        for t in (part.get_texts() if isinstance(part, Legend) else part.texts)
    ]
    assert sorted(named) == sorted(table)
    (band, *_) = figure.axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(max(0.7 * curve[0], figure.axes[0].get_ylim()[0]), rel=0.05)


@pytest.mark.slow
def test_panels_have_letters_on_paper_only_and_a_column_has_no_headline(results):
    for width in WIDTHS:
        figure = sketched(results("obstacles"), "map", width)
        letters = [ax.get_title()[:3] for ax in figure.axes]
        assert (letters == ["(a)", "(b)", "(c)", "(d)"]) == (width != "screen")
        assert (figure._suptitle is None) == (width == "column")
    assert not sketched(results("obstacles"), "path", "column").axes[0].get_title()


def test_maps_keep_their_aspect_on_paper_without_empty_space(results):
    figure = drawn(results("obstacles"), "path", "column")
    ax = figure.axes[0]
    box, (low, high), (left, right) = ax.get_window_extent(), ax.get_ylim(), ax.get_xlim()
    assert box.height / box.width == pytest.approx((high - low) / (right - left), rel=1e-6)
    drawn_part = figure.get_tightbbox()
    assert figure.get_size_inches()[1] - drawn_part.height < 0.25


# -- the path --------------------------------------------------------------------------------------------


def test_the_scale_moves_away_from_marks_and_numbers_from_the_scale(results):
    figure = plot.world_picture(fieldbo.load_world("lake-places"))
    (ax,) = figure.axes
    (scale,) = (a for a in ax.artists if isinstance(a, AnchoredOffsetbox))
    before = scale.get_window_extent()
    middle = ax.transData.inverted().transform(before.get_points().mean(axis=0))
    ax.plot(*middle, "o", color="red")
    ax.annotate("17", middle, xytext=(5, 5), textcoords="offset points", gid=NUMBER)
    figure.set_layout_engine("constrained")
    settled(figure)
    after = scale.get_window_extent()
    assert not after.contains(*ax.transData.transform(middle))
    assert not after.overlaps(before)
    ((_, number),) = [pair for pair in texts_of(figure) if pair[0] == "17"]
    assert not after.overlaps(number)


@pytest.mark.parametrize("readings", swept([10, 50, 200, 500], [10, 500]))
def test_long_paths_have_few_arrows_and_numbers_and_smaller_marks(readings):
    short = small_run("obstacles", battery=1e6)
    rng, domain = np.random.default_rng(0), short.mission.world.domain
    sites = domain.sites[rng.integers(domain.size, size=readings)]
    many = [
        replace(short.observations[0], order=f"x/{k}", sites=s[None], position=s) for k, s in enumerate(sites)
    ]
    result = replace(short, observations=tuple(many), queries=())
    figure = plot.path_picture(result, "column")
    ax = figure.axes[0]
    arrows = [a for a in ax.get_children() if isinstance(a, FancyArrowPatch)]
    numbers = [t for t in ax.texts if t.get_gid() == NUMBER]
    assert 0 < len(arrows) <= 8
    assert 0 < len(numbers) <= 6
    assert not overlapping([Text.get_window_extent(t) for t in numbers])
    assert collisions(figure) == []
    (dots,) = [line for line in ax.lines if line.get_label().startswith("reading")]
    assert dots.get_markersize() == pytest.approx(2.7 * np.clip(np.sqrt(100 / (readings + 1)), 0.55, 1))


def test_the_colour_of_a_path_runs_from_its_first_leg_to_its_last(results):
    figure = sketched(results("obstacles"), "path", "screen")
    (legs,) = [c for c in figure.axes[0].collections if getattr(c, "get_segments", None) and c.zorder > 3]
    path = results("obstacles").path
    np.testing.assert_array_equal(np.array(legs.get_segments())[:, 0], path[:-1])
    np.testing.assert_array_equal(legs.get_array(), np.arange(len(path) - 1))
    assert "path" in [t.get_text() for t in figure.legends[0].get_texts()]


# -- the shore -------------------------------------------------------------------------------------------


def pixels_of(domain, *, level=False):
    """Return the colours (P, 3) of a map's pixels and their places (P, 2)."""
    figure = new_figure(5, 3)
    ax = figure.subplots()
    frame(ax, domain, solid=())
    field(ax, domain, np.linspace(1, 2, domain.size), "", VALUE)
    if level:
        edge(ax, domain, domain.sites[:, 0] - 50.0)
    for line in ax.lines:
        line.set_visible(False)
    finish(figure, "")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = np.asarray(canvas.buffer_rgba())[::-1, :, :3]
    box = ax.get_window_extent()
    across, up = (np.arange(int(a) + 3, int(b) - 3) for a, b in ((box.x0, box.x1), (box.y0, box.y1)))
    grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    return image[grid[:, 1], grid[:, 0]], ax.transData.inverted().transform(grid + 0.5)


@pytest.mark.parametrize(
    "domain",
    [DOMAINS["outline"], hexagons(), Domain.grid(AXES, (9, 6), OUTLINE)],
    ids=["grid", "hexagons", "coarse grid"],
)
def test_values_reach_the_shore_everywhere_and_nothing_is_drawn_beyond(domain):
    colours, places = pixels_of(domain)
    ground = np.all(np.abs(colours.astype(int) - round(0.93 * 255)) <= 1, axis=1)
    inside = shapely.intersects_xy(OUTLINE.buffer(-0.5), *places.T)
    outside = ~shapely.intersects_xy(OUTLINE.buffer(0.5), *places.T)
    assert inside.sum() > 1e4
    assert outside.sum() > 1e4
    assert not ground[inside].any()
    assert ground[outside].all()
    with_level = np.all(np.abs(pixels_of(domain, level=True)[0].astype(int) - round(0.93 * 255)) <= 1, axis=1)
    assert with_level[outside].all()


def test_water_that_cannot_be_reached_stays_empty():
    domain = small_mission("obstacles").world.domain
    assert domain.dropped > 0
    colours, places = pixels_of(domain)
    far = np.all(np.abs(places - [90, 40]) < 2, axis=1)
    assert np.all(np.abs(colours[far].astype(int) - round(0.93 * 255)) <= 1)
    box = small_mission("box with a wall").world.domain
    x, _, grid = laid_out(box, np.arange(float(box.size)))
    assert np.ma.getmaskarray(grid)[:, x > 72].all()
    assert not np.ma.getmaskarray(grid)[:, x < 60].any()


def test_each_cell_of_scattered_sites_holds_what_is_nearest_to_its_site():
    domain = hexagons()
    cells = [shapely.Polygon(c) for c in cells_of(domain)]
    assert sum(c.area for c in cells) == pytest.approx(100 * 60)
    points = np.random.default_rng(0).uniform([0, 0], [100, 60], (300, 2))
    nearest = np.argmin(np.linalg.norm(points[:, None] - domain.sites, axis=2), axis=1)
    assert all(cells[k].buffer(1e-9).contains(shapely.Point(p)) for k, p in zip(nearest, points, strict=True))


def test_scattered_sites_on_a_line_or_at_one_place_are_dots():
    line = Domain(AXES, np.column_stack([np.arange(8.0), np.arange(8.0)]))
    same = Domain(AXES, np.repeat([[1.0, 2.0], [3.0, 4.0], [5.0, 1.0]], 2, axis=0))
    for domain in (line, same):
        assert cells_of(domain) is None
        assert triangles(domain) is None
        figure = new_figure(4, 3)
        field(figure.subplots(), domain, np.arange(float(domain.size)), "", VALUE)


def test_a_level_among_scattered_sites_is_drawn_within_the_shore():
    domain = hexagons()
    ax = new_figure(4, 3).subplots()
    edge(ax, domain, domain.sites[:, 0] - 50.0, "level")
    (line,) = ax.collections
    points = np.concatenate([path.vertices for path in line.get_paths()])
    np.testing.assert_allclose(points[:, 0], 50.0, atol=1e-6)
    assert line.get_clip_path() is not None
    assert shore(domain) is domain.region


# -- curves ----------------------------------------------------------------------------------------------


def test_the_expected_f1_ends_with_its_90_percent_interval(results):
    result = results("obstacles")
    ax = sketched(result, "curve", "screen").axes[0]
    (bar,) = [c for c in ax.collections if c.get_label() == "expected F1: final 90% interval"]
    ((low, high),) = [segment[:, 1] for segment in bar.get_segments()]
    expected = result.summary()["expected_f1_interval90"]
    np.testing.assert_allclose([low, high], expected)
    assert bar.get_segments()[0][0, 0] == result.curve[-1].cost


# -- the command line ------------------------------------------------------------------------------------

MISSION = ["run", "lake-lawnmower", "--battery", "400", "--out", "r"]


@pytest.mark.slow
def test_a_run_writes_pictures_in_a_format_and_a_resume_keeps_it(said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = said(*MISSION, "--format", "pdf", "--width", "column")
    assert "path.pdf, map.pdf, curve.pdf" in told
    assert not list(Path("r").glob("*.png"))
    assert Path("r/map.pdf").read_bytes().startswith(MAGIC["pdf"])
    Path("r/map.pdf").unlink()
    assert "map.pdf" in said("resume", "r")
    assert "path.svg" in said("resume", "r", "--format", "svg")
    files = said("export", "r", "pictures", "--format", "svg", "--width", "page").split()
    assert [Path(f).name for f in files] == ["path.svg", "map.svg", "curve.svg"]
    assert all(Path(f).read_bytes().startswith(MAGIC["svg"]) for f in files)


def test_a_world_is_drawn_in_the_format_of_the_file(said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said("show", "lake-transect", "--out", "x.pdf")
    assert Path("x.pdf").read_bytes().startswith(MAGIC["pdf"])


def test_a_world_is_drawn_in_the_format_asked_for(said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "lake-transect.svg" in said("show", "lake-transect", "--format", "svg", "--width", "column")
    assert Path("lake-transect.svg").read_bytes().startswith(MAGIC["svg"])


@pytest.mark.parametrize(
    ("args", "where"),
    [
        ((*MISSION, "--format", "jpg"), "--format"),
        ((*MISSION, "--width", "wide"), "--width"),
        (("show", "lake-transect", "--out", "x.jpg"), "--out"),
        (("show", "lake-transect", "--out", "x.png", "--format", "pdf"), "--out"),
        (("compare", "lake-level-set", "--out", "t.csv", "--format", "gif"), "--format"),
        (("compare", "lake-level-set", "--out", "t.pdf"), "--out"),
        (("compare", "lake-level-set", "--out", "t.csv", "--band", "wide"), "--band"),
        (("resume", "r", "--format", "jpg"), "--format"),
    ],
)
def test_a_wrong_format_width_or_band_is_refused_before_anything_is_done(
    command, args, where, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, _, err = command(*args)
    assert code == 2
    assert f"where:    {where}" in err
    assert not list(tmp_path.iterdir())


def test_the_headline_is_the_title_of_the_mission_or_without_one_its_name():
    titled = fieldbo.load_mission("lake-level-set", {"title": "The lake before the storm"})
    named = replace(titled, settings={**titled.settings, "title": ""})
    assert headline(SimpleNamespace(mission=titled)).startswith("The lake before the storm\nwhere is ")
    assert headline(SimpleNamespace(mission=named)).startswith("lake-level-set: where is ")
