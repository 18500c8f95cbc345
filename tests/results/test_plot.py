"""Pictures show the contents of a run, for every kind of domain."""

import io
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import shapely
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.text import Text
from small_runs import (
    AXES,
    CROWDED,
    DOMAINS,
    LEVELS,
    OBSTACLES,
    OUTLINE,
    QUESTIONS,
    labelled,
    live,
    png,
    sketch,
    small_mission,
    small_run,
)

import fieldbo
from fieldbo.belief.question import LevelSet, Optimum, ShareOfMaximum
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.obstacles import Obstacle
from fieldbo.results import plot
from fieldbo.results.metrics import REGRET, doubtful
from fieldbo.results.plot.surfaces import frame, laid_out

PICTURES = [plot.path_picture, plot.map_picture, plot.curve_picture]


@pytest.fixture(scope="module")
def lake():
    return fieldbo.run(
        fieldbo.load_mission("lake-level-set", {"policy": {"kind": "truvar"}, "agent": {"battery": 800}})
    )


@pytest.fixture(scope="module")
def grid():
    return small_run()


def world_of(result):
    return plot.world_picture(result.mission.world, 6.0)


@pytest.mark.each_choice
@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("question", ["level set", "maximum"])
@pytest.mark.parametrize("known", [True, False], ids=["truth", "live"])
@pytest.mark.parametrize("picture", [*PICTURES, world_of])
@pytest.mark.filterwarnings("error")
def test_every_kind_of_domain_draws(name, question, known, picture):
    result = small_run(name, question=QUESTIONS[question])
    assert png(picture(result if known else live(result))).startswith(b"\x89PNG")


@pytest.mark.each_choice
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.filterwarnings("error")
def test_a_run_without_readings_draws(grid, question, picture):
    asked = replace(grid.mission, question=QUESTIONS[question])
    empty = replace(grid, mission=asked, observations=(), curve=())
    assert png(picture(empty)).startswith(b"\x89PNG")


@pytest.mark.filterwarnings("error")
def test_a_threshold_that_nothing_reaches_draws_without_edges(grid):
    far = replace(grid, mission=replace(grid.mission, question=LevelSet(1e3)))
    assert not labelled(sketch(plot.path_picture, far), "true level 1000")
    png(sketch(plot.map_picture, far))


def test_the_path_goes_through_all_points_of_the_results_path(lake):
    (path,) = labelled(sketch(plot.path_picture, lake), "path")
    np.testing.assert_array_equal(path.get_xydata(), lake.path)


def test_the_path_along_one_axis_is_drawn_leg_by_leg():
    result = small_run("line")
    (path,) = labelled(sketch(plot.path_picture, result), "path")
    np.testing.assert_array_equal(path.get_xdata(), result.path[:, 0])
    np.testing.assert_array_equal(path.get_ydata(), np.arange(len(result.path)))


def test_start_and_end_are_marked_where_the_path_starts_and_ends(lake):
    figure = sketch(plot.path_picture, lake)
    for label, point in (("start", lake.path[0]), ("end", lake.path[-1])):
        (mark,) = labelled(figure, label)
        np.testing.assert_array_equal(mark.get_xydata(), [point])


def test_the_legend_names_start_end_and_both_levels(lake):
    (legend,) = sketch(plot.path_picture, lake).legends
    told = {t.get_text() for t in legend.get_texts()}
    assert {"start", "end", "path", "true level 1.5", "estimated level 1.5"} <= told


def test_each_reading_is_a_dot_and_at_most_twelve_are_numbered_where_they_were_taken(lake):
    figure = sketch(plot.path_picture, lake)
    (dots,) = labelled(figure, "reading (numbered in order)")
    np.testing.assert_array_equal(dots.get_xydata(), lake.sites)
    numbers = {int(t.get_text()): t.xy for t in figure.axes[0].texts}
    assert 0 < len(numbers) <= 12
    for number, place in numbers.items():
        assert tuple(place) == tuple(lake.sites[number - 1])


def test_depth_points_down_and_distance_along_does_not(lake):
    for figure in (
        sketch(plot.path_picture, lake),
        sketch(plot.map_picture, lake),
        sketch(plot.world_picture, lake.mission.world),
    ):
        for ax in figure.axes:
            assert ax.yaxis_inverted()
            assert not ax.xaxis_inverted()


def test_the_path_lies_over_the_truth_and_without_one_over_the_posterior_mean(grid):
    shape = grid.mission.world.domain.shape
    for result, values in ((grid, grid.truth), (live(grid), grid.maps()["mean"].values.ravel())):
        ax = sketch(plot.path_picture, result).axes[0]
        (mesh,) = [c for c in ax.collections if isinstance(c, QuadMesh)]
        np.testing.assert_allclose(mesh.get_array().T, values.reshape(shape))
        assert ("truth unknown" in ax.get_title()) == (result.truth is None)


def test_grid_cells_are_cut_at_the_outline():
    result = small_run("outline")
    for ax in sketch(plot.map_picture, result).axes:
        (mesh,) = [c for c in ax.collections if isinstance(c, QuadMesh)]
        cut = mesh.get_clip_path().get_fully_transformed_path()
        rings = [shapely.Polygon(ring) for ring in cut.transformed(ax.transData.inverted()).to_polygons()]
        assert rings[0].symmetric_difference(shapely.Polygon(OUTLINE.exterior)).area < 1e-6
        assert sum(ring.area for ring in rings[1:]) == pytest.approx(100)


@pytest.mark.parametrize("clearance", [0.0, 3.0])
def test_the_shore_is_drawn_along_the_ends_of_the_axes_too_and_the_ends_of_a_map_alone_are_not(clearance):
    shore = shapely.Polygon([(0, 0), (100, 0), (100, 40), (60, 60), (0, 60)])
    pier = Obstacle("pier", (40, 0), (44, 30))
    for outline, length in ((shore, shore.length - 4 + 64), (None, 64)):
        domain = Domain.grid(AXES, (26, 16), outline, [pier], clearance)
        ax = Figure().add_subplot()
        frame(ax, domain)
        drawn = shapely.union_all([shapely.LineString(line.get_xydata()) for line in ax.lines])
        assert drawn.length == pytest.approx(length, abs=0.01)


@pytest.mark.each_choice
@pytest.mark.parametrize(
    ("name", "question"),
    [("obstacles", "level set"), ("tower", "maximum"), ("continuous, obstacles", "maximum")],
)
@pytest.mark.parametrize("picture", [*PICTURES, world_of])
@pytest.mark.filterwarnings("error")
def test_every_kind_of_domain_draws_with_obstacles(name, question, picture):
    result = small_run(name, question=QUESTIONS[question])
    assert png(picture(live(result) if picture is world_of else result)).startswith(b"\x89PNG")


def obstacles_on(ax):
    return [a for a in ax.get_children() if isinstance(a, PathPatch) and a.get_zorder() == 1.5]


@pytest.mark.parametrize("name", ["obstacles", "continuous, obstacles"])
def test_obstacles_are_hatched_on_every_map_above_the_values_and_below_the_path(name):
    result = small_run(name)
    for picture in (sketch(plot.path_picture, result), sketch(plot.map_picture, result)):
        maps = [ax for ax in picture.axes if ax.get_xlabel() or ax.get_title()]
        assert [len(obstacles_on(ax)) for ax in maps] == [len(OBSTACLES)] * len(maps)
        assert all(o.get_hatch() and o.get_fill() for ax in maps for o in obstacles_on(ax))
        for ax in maps:
            meshes = [c for c in ax.collections if isinstance(c, QuadMesh)]
            assert (
                max(c.get_zorder() for c in ax.collections if not isinstance(c, LineCollection))
                < 1.5
                < min([a.get_zorder() for a in labelled(picture, "path")] or [2])
            )
            assert len(meshes) == 1
    legend = [t.get_text() for t in sketch(plot.path_picture, result).legends[0].get_texts()]
    assert legend.count("obstacle") == 1


def test_obstacles_have_their_real_size_in_a_light_band_of_the_clearance():
    figure = sketch(plot.path_picture, small_run("obstacles"))
    ax = figure.axes[0]
    pond, well = obstacles_on(ax)[1:]
    assert shapely.Polygon(pond.get_path().vertices).equals(OBSTACLES[1].polygon)
    assert shapely.Polygon(well.get_path().vertices).equals(OBSTACLES[2].polygon)
    [band] = [a for a in ax.get_children() if a.get_label() == "clearance"]
    rings = [shapely.Polygon(ring) for ring in band.get_path().to_polygons()]
    around = sum(ring.contains(shapely.Point(79.5, 31)) for ring in rings)
    assert [sum(r.contains(shapely.Point(x, 31)) for r in rings) - around for x in (78, 81)] == [-1, 1]
    legend = [t.get_text() for t in figure.legends[0].get_texts()]
    assert legend.count("clearance") == 1
    without = sketch(plot.path_picture, small_run("continuous, obstacles"))
    assert "clearance" not in [t.get_text() for t in without.legends[0].get_texts()]


def test_a_vertical_name_is_centred_in_its_obstacle():
    tall = Obstacle("scaffold", (50, 10), (54, 50))
    domain = Domain.grid(AXES, (26, 16), obstacles=[tall])
    figure = plot.world_picture(live(small_run()).mission.world)
    ax = figure.axes[0]
    frame(ax, domain, named=True)
    figure.draw_without_rendering()
    [text] = ax.texts
    box = text.get_window_extent().transformed(ax.transData.inverted())
    assert text.get_rotation() == 90
    assert tall.polygon.contains(shapely.box(box.x0, box.y0, box.x1, box.y1))
    assert (box.y0 + box.y1) / 2 == pytest.approx(30, abs=1.5)


def test_an_obstacle_beyond_the_domain_does_not_widen_the_picture():
    with_them = sketch(plot.world_picture, small_mission("obstacles").world).axes[0]
    without = sketch(plot.world_picture, small_mission("outline").world).axes[0]
    assert with_them.get_xlim() == without.get_xlim()
    assert with_them.get_ylim() == without.get_ylim()


def test_obstacles_are_named_where_the_name_fits():
    figure = plot.world_picture(small_mission("obstacles").world)
    figure.draw_without_rendering()
    texts = {t.get_text(): t for t in figure.axes[0].texts}
    assert set(texts) == {"a wall across", "pond"}
    for one in OBSTACLES[:2]:
        box = texts[one.name].get_window_extent().transformed(figure.axes[0].transData.inverted())
        assert one.polygon.contains(shapely.box(box.x0, box.y0, box.x1, box.y1))
    assert not sketch(plot.map_picture, small_run("obstacles")).axes[0].texts


def test_values_continue_behind_obstacles_and_are_unchanged_elsewhere():
    domain = CROWDED["obstacles"]
    values = np.arange(float(domain.size))
    x, y, drawn = laid_out(domain, values)
    np.testing.assert_array_equal(drawn.T.ravel()[domain.grid_index], values)
    nodes = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    more = np.flatnonzero(~drawn.mask.ravel() & ~domain.contains(nodes))
    assert set(drawn.ravel()[more]) <= set(values)
    taken = shapely.union_all([o.polygon for o in domain.obstacles])
    assert set(np.flatnonzero(shapely.intersects_xy(taken, *nodes.T) & ~domain.contains(nodes))) <= set(more)


def test_with_three_axes_only_slices_through_an_obstacle_hatch_it_and_a_path_shows_its_outline():
    mission = small_mission("tower")
    panels = [ax for ax in sketch(plot.world_picture, mission.world).axes if ax.get_title()]
    assert [len(obstacles_on(ax)) for ax in panels] == [1, 1, 0]  # depths 0, 2.5 and 5 m, a tower down to 3 m
    figure = sketch(plot.path_picture, small_run("tower"))
    (shadow,) = obstacles_on(figure.axes[0])
    assert (shadow.get_fill(), shadow.get_label()) == (False, "obstacle, seen along depth")


def test_colour_bars_carry_the_quantitys_name_and_unit(lake):
    (bar,) = sketch(plot.path_picture, lake).axes[0].child_axes
    assert bar.get_ylabel() == "chlorophyll (mg m-3)"


def test_the_four_panels_show_the_results_maps(lake):
    panels, maps = sketch(plot.map_picture, lake).axes, lake.maps()
    for ax, name in zip(panels, ["mean", "sd", "exceedance", "class"], strict=True):
        (mesh,) = [c for c in ax.collections if isinstance(c, QuadMesh)]
        drawn = np.asarray(mesh.get_array().T)
        np.testing.assert_allclose(
            np.where(drawn == 4.0, 2, drawn > 1.5) if name == "class" else drawn, maps[name].values
        )


def test_unclassified_sites_are_drawn_paler(lake):
    (mesh,) = [c for c in sketch(plot.map_picture, lake).axes[3].collections if isinstance(c, QuadMesh)]
    pale = np.isin(np.asarray(mesh.get_array()), [1.0, 2.0]).mean()
    answer = lake.answer
    np.testing.assert_allclose(pale, (doubtful(answer.probability) & ~answer.not_inspected).mean())


def test_misclassified_sites_are_marked_and_counted_in_the_title(lake):
    figure = sketch(plot.map_picture, lake)
    wrong = lake.answer.above != (lake.truth >= 1.5)
    (dots,) = labelled(figure, "misclassified")
    np.testing.assert_array_equal(dots.get_xydata(), lake.mission.world.domain.sites[wrong])
    assert f"{wrong.mean():.1%}" in figure.axes[3].get_title()


def test_without_a_truth_nothing_is_called_misclassified(grid):
    figure = sketch(plot.map_picture, live(grid))
    assert figure.axes[3].get_title() == "classes"
    assert not labelled(figure, "misclassified")


def test_the_edge_of_a_log_model_uses_the_median_as_its_classes_do():
    result = small_run("grid", transform="log")
    domain, at = result.mission.world.domain, result.mission.question.threshold
    ax = sketch(plot.map_picture, result).axes[0]
    (edge,) = [c for c in ax.collections if not isinstance(c, QuadMesh)]
    median = result.hyperparameters.scale.to_user(result.surface.mean).reshape(domain.shape)
    x, y = (np.linspace(a.low, a.high, n) for a, n in zip(domain.axes, domain.shape, strict=True))
    for east, north in edge.get_paths()[0].vertices:  # each lies between sites below and above the median
        i = np.flatnonzero(np.abs(x - east) < (x[1] - x[0]) * 0.9999)
        j = np.flatnonzero(np.abs(y - north) < (y[1] - y[0]) * 0.9999)
        near = median[np.ix_(i, j)]
        assert near.min() - 1e-9 <= at <= near.max() + 1e-9


def test_the_curve_runs_over_cost_from_zero_to_the_battery(lake):
    figure = sketch(plot.curve_picture, lake)
    ax = figure.axes[0]
    (f1,), (expected,) = labelled(figure, "F1"), labelled(figure, "expected F1")
    np.testing.assert_array_equal(f1.get_xdata(), [s.cost for s in lake.curve])
    np.testing.assert_array_equal(f1.get_ydata(), [s.f1 for s in lake.curve])
    np.testing.assert_array_equal(expected.get_ydata(), [s.expected_f1 for s in lake.curve])
    assert ax.get_xlim() == (0, 800)
    assert ax.get_ylim() == (0, 1)
    assert "(s)" in ax.get_xlabel()


def test_a_live_world_has_no_f1_line(grid):
    figure = sketch(plot.curve_picture, live(grid))
    assert not labelled(figure, "F1")
    assert labelled(figure, "expected F1")


def test_a_battery_that_was_overdrawn_is_marked_inside_the_picture(grid):
    small = replace(grid.mission, vehicles=(replace(grid.mission.vehicles[0], battery=grid.cost / 2),))
    figure = sketch(plot.curve_picture, replace(grid, mission=small))
    (battery,) = labelled(figure, "battery")
    assert battery.get_xdata()[0] == grid.cost / 2
    assert figure.axes[0].get_xlim() == (0, grid.cost)


@pytest.mark.parametrize(
    ("axes", "aspect"),
    [
        ((Axis("x", "m", 0, 100), Axis("y", "m", 0, 60)), 1.0),
        ((Axis("x", "m", 0, 100), Axis("y", "m", 0, 20)), "auto"),
        ((Axis("x", "m", 0, 100), Axis("t", "K", 0, 60)), "auto"),
    ],
    ids=["alike", "long and thin", "other unit"],
)
def test_both_axes_have_the_same_scale_only_if_they_are_alike(axes, aspect):
    world = small_mission(axes=axes).world
    assert sketch(plot.world_picture, world).axes[0].get_aspect() == aspect


def test_a_world_shows_all_its_sites_and_its_start(grid):
    world = grid.mission.world
    figure = sketch(plot.world_picture, world, threshold=6.0)
    np.testing.assert_array_equal(labelled(figure, "site")[0].get_xydata(), world.domain.sites)
    np.testing.assert_array_equal(labelled(figure, "start")[0].get_xydata(), [world.start])
    assert labelled(figure, "level 6")
    assert not labelled(sketch(plot.world_picture, world), "level 6")


def test_a_world_of_three_axes_has_one_panel_per_value_of_the_third():
    world = small_mission("box").world
    figure = sketch(plot.world_picture, world, threshold=6.0)
    truth = world.truth(world.domain.sites).reshape(world.domain.shape)
    assert [ax.get_title() for ax in figure.axes] == ["depth 0 m", "depth 2.5 m", "depth 5 m"]
    for k, ax in enumerate(figure.axes):
        (mesh,) = [c for c in ax.collections if isinstance(c, QuadMesh)]
        np.testing.assert_allclose(mesh.get_array().T, truth[:, :, k])
        assert mesh.get_clim() == (truth.min(), truth.max())
    assert "true field by depth (m)" in figure.get_suptitle()


def test_a_world_of_four_axes_shows_the_mean_over_the_others():
    world = small_mission("four axes").world
    figure = sketch(plot.world_picture, world)
    (dots,) = [c for c in figure.axes[0].collections if c.get_array() is not None]
    truth = world.truth(world.domain.sites).reshape(world.domain.shape)
    np.testing.assert_allclose(dots.get_array(), truth.mean(axis=(2, 3)).ravel())
    assert "mean over c, d" in figure.get_suptitle()


@pytest.mark.parametrize("name", ["line", "grid", "box"])
def test_a_live_world_shows_only_its_sites(name):
    world = replace(small_mission(name).world, field=None)
    figure = sketch(plot.world_picture, world)
    (sites,) = labelled(figure, "site")
    np.testing.assert_array_equal(sites.get_xdata(), world.domain.sites[:, 0])
    assert "live: the truth is not known" in figure.get_suptitle()


def test_a_comparison_draws_one_named_line_per_policy_and_names_do_not_overlap():
    cost = np.linspace(0, 100, 11)
    curve = np.concatenate([[np.nan], np.linspace(0.2, 0.99, 10)])
    table = {f"rule {n}": (cost, curve, np.full(11, 0.02)) for n in range(9)}
    figure = plot.comparison_picture(table, unit="Wh")
    ax = figure.axes[0]
    figure.draw_without_rendering()
    assert [line.get_label() for line in ax.lines] == list(table)
    assert len({(to_hex(line.get_color()), line.get_linestyle()) for line in ax.lines}) == 9
    assert [t.get_text() for t in ax.texts] == list(table)
    heights = sorted(Text.get_window_extent(t).bounds[1::2] for t in ax.texts)
    assert all(low + h <= above for (low, h), (above, _) in pairwise(heights))
    assert "(Wh)" in ax.get_xlabel()
    png(plot.comparison_picture({}, unit="Wh"))


@pytest.fixture(scope="module", params=["maximum", "minimum"])
def optimum(request):
    return small_run("continuous 2", question=QUESTIONS[request.param])


def test_both_optima_are_marked_on_path_and_maps(optimum):
    answer = optimum.answer
    for label, place in (("true optimum", answer.optimum), ("reported optimum", answer.reported)):
        figures = sketch(plot.path_picture, optimum), sketch(plot.map_picture, optimum)
        for figure, marks in zip(figures, (1, 4), strict=True):
            found = labelled(figure, label)
            assert len(found) == marks
            for mark in found:
                np.testing.assert_array_equal(mark.get_xydata(), [place.point])
            (legend,) = figure.legends
            assert [t.get_text() for t in legend.get_texts()].count(label) == 1


def test_a_live_world_marks_no_true_optimum(optimum):
    figure = sketch(plot.path_picture, live(optimum))
    assert labelled(figure, "reported optimum")
    assert not labelled(figure, "true optimum")


def test_along_one_axis_the_optima_lie_on_their_curves():
    result = small_run("continuous 1", question=Optimum())
    figure = sketch(plot.path_picture, result)
    ((x, y),) = labelled(figure, "true optimum")[0].get_xydata()
    assert y == pytest.approx(result.answer.truth.at(np.array([x])))
    ((x, y),) = labelled(figure, "reported optimum")[0].get_xydata()
    scale = result.hyperparameters.scale
    assert y == pytest.approx(scale.to_user(result.surface.belief.mean([[x]]))[0])


def test_the_maps_of_an_optimum_show_the_probability_and_the_extent_of_improvement(optimum):
    figure = sketch(plot.map_picture, optimum)
    sign = optimum.mission.question.sign
    mean, sd = (optimum.maps()[name].values for name in ("mean", "sd"))
    for ax, values in (
        (figure.axes[2], optimum.maps()["exceedance"].values),
        (figure.axes[3], mean + sign * 1.96 * sd),
    ):
        (mesh,) = [c for c in ax.collections if isinstance(c, QuadMesh)]
        drawn = np.asarray(mesh.get_array())
        assert values.min() - 1e-9 <= drawn.min()
        assert drawn.max() <= values.max() + 1e-9
    side = "upper" if sign > 0 else "lower"
    assert figure.axes[3].get_title().startswith(f"{side} end of the 95% interval")


def test_the_surface_of_a_box_agrees_with_its_sites_and_covers_it(optimum):
    domain = optimum.mission.world.domain
    linear = domain.sites @ [0.3, -0.2] + 1
    x, y, ground = laid_out(domain, linear)
    assert not np.ma.getmaskarray(ground).any()
    inside = np.ix_((y > 10) & (y < 50), (x > 15) & (x < 85))
    np.testing.assert_allclose(ground[inside], (0.3 * x[None] - 0.2 * y[:, None] + 1)[inside], atol=1e-9)
    _, _, classes = laid_out(domain, np.arange(domain.size) % 4)
    assert set(np.unique(classes)) <= {0.0, 1.0, 2.0, 3.0}


def test_the_curve_of_an_optimum_is_its_regret_on_a_log_scale_or_the_reported_value_if_live(optimum):
    figure = sketch(plot.curve_picture, optimum)
    (line,) = figure.axes[0].lines
    np.testing.assert_array_equal(line.get_ydata(), [s.regret for s in optimum.curve])
    assert figure.axes[0].get_yscale() == "log"
    (line,) = sketch(plot.curve_picture, live(optimum)).axes[0].lines
    np.testing.assert_array_equal(line.get_ydata(), [s.reported_value for s in optimum.curve])


def test_zero_regret_is_drawn_at_the_lower_edge_and_the_legend_says_so(optimum):
    found = replace(optimum, curve=(*optimum.curve[:-1], replace(optimum.curve[-1], regret=0.0)))
    figure = sketch(plot.curve_picture, found)
    (line,) = figure.axes[0].lines
    assert line.get_ydata()[-1] == figure.axes[0].get_ylim()[0] > 0
    assert "lower edge" in line.get_label()


def test_precision_and_recall_are_drawn_with_f1(lake):
    figure = sketch(plot.curve_picture, lake)
    for name in ("precision", "recall"):
        (line,) = labelled(figure, name)
        np.testing.assert_array_equal(line.get_ydata(), [getattr(s, name) for s in lake.curve])
    assert not labelled(sketch(plot.curve_picture, live(lake)), "precision")


@pytest.mark.parametrize("name", ["line", "grid", "box"])
def test_readings_of_the_most_accurate_level_have_the_largest_marks(name):
    result = small_run(name, sensor=LEVELS)
    assert set(result.levels) == {0, 1, 2}
    figure = sketch(plot.path_picture, result)
    sizes = []
    for level, sd in enumerate(("0.001", "0.1", "0.32")):
        (dots,) = labelled(figure, f"reading at level {level} (noise sd {sd})")
        np.testing.assert_array_equal(dots.get_xdata(), result.sites[result.levels == level, 0])
        sizes.append((dots.get_markersize(), dots.get_marker()))
    assert sorted({size for size, _ in sizes}, reverse=True) == [size for size, _ in sizes]
    assert len({marker for _, marker in sizes}) == 3
    assert min(size for size, _ in sizes) >= 5
    (start,) = labelled(figure, "start")
    assert start.get_markersize() > max(size for size, _ in sizes)
    assert start.get_zorder() < labelled(figure, "reading at level 0 (noise sd 0.001)")[0].get_zorder()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("continuous 1", {"sensor": LEVELS}),
        ("continuous 1", {"sensor": LEVELS, "question": QUESTIONS["maximum"]}),
        ("square", {}),
        ("square", {"sensor": LEVELS}),
        ("outline", {"question": QUESTIONS["minimum"]}),
        ("box", {}),
        ("continuous 3", {}),
        ("four axes", {}),
    ],
)
def test_nothing_is_cut_off_at_the_edges_of_a_picture(name, settings):
    square = (Axis("x", "", 0, 1), Axis("y", "", 0, 1)) if name == "square" else None
    result = small_run("grid" if square else name, axes=square, **settings)
    figures = [picture(result) for picture in PICTURES]
    figures += [plot.world_picture(world) for world in (result.mission.world, live(result).mission.world)]
    for figure in figures:
        png(figure)
        within, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
        assert min(within.x0, within.y0, width - within.x1, height - within.y1) >= 0


def test_the_legend_of_a_line_with_many_entries_takes_more_rows_and_names_all():
    figure = sketch(plot.path_picture, small_run("continuous 1", sensor=LEVELS))
    (legend,) = figure.legends
    assert {"start", "end"} <= {t.get_text() for t in legend.get_texts()}
    assert legend.get_tightbbox().width <= figure.bbox.width


def test_numbers_stay_within_the_axes(lake):
    figure = plot.path_picture(lake)
    figure.draw_without_rendering()
    ax = figure.axes[0]
    box = Axes.get_window_extent(ax)
    for number in ax.texts:
        told = Text.get_window_extent(number)
        assert told.y1 <= box.y1
        assert told.x1 <= box.x1


def test_readings_that_the_model_leaves_out_are_crossed():
    told = small_mission(battery=4000.0)
    model = replace(told.model, outliers="tested")
    ok = fieldbo.run(replace(told, model=model, max_steps=30))
    assert ok.believed.all()
    assert not labelled(sketch(plot.path_picture, ok), "reading left out by the model")
    spoilt = list(ok.observations)
    for n, value in ((9, 500.0), (12, np.nan)):
        spoilt[n] = replace(spoilt[n], values=np.array([value]))
    (cross,) = labelled(
        sketch(plot.path_picture, replace(ok, observations=tuple(spoilt))), "reading left out by the model"
    )
    np.testing.assert_array_equal(cross.get_xydata(), ok.sites[[9, 12]])


def test_under_a_log_the_band_lies_between_quantiles_and_above_0():
    result = small_run("line", transform="log", battery=60.0)
    scale, s = result.hyperparameters.scale, result.surface
    low, high = scale.to_user(s.mean - 1.96 * s.sd), scale.to_user(s.mean + 1.96 * s.sd)
    for figure in (sketch(plot.map_picture, result), sketch(plot.path_picture, result)):
        (band,) = labelled(figure, "95% interval")
        drawn = band.get_paths()[0].vertices[:, 1]
        assert drawn.min() == pytest.approx(low.min(), rel=1e-3)
        assert drawn.max() == pytest.approx(high.max(), rel=1e-3)
        assert drawn.min() > 0


def test_a_share_of_the_maximum_draws_the_true_and_the_estimated_level():
    result = small_run(question=ShareOfMaximum(0.9))
    figure = sketch(plot.path_picture, result)
    assert labelled(figure, f"true level {result.answer.truth.threshold:.4g}")
    assert labelled(figure, f"estimated level {result.answer.user_threshold:.4g}")
    assert "at or above 90% of its maximum?" in figure.axes[0].get_title()


@pytest.mark.filterwarnings("error")
def test_a_comparison_by_regret_has_a_log_scale_and_says_that_smaller_is_better():
    cost = np.linspace(1, 100, 10)
    table = {
        "fast": (cost, np.append(np.geomspace(2, 0.01, 9), 0.0), np.full(10, 0.5)),
        "slow": (cost, np.geomspace(2, 0.1, 10), np.full(10, 0.05)),
    }
    figure = plot.comparison_picture(table, "s", REGRET)
    figure.draw_without_rendering()
    ax = figure.axes[0]
    assert ax.get_yscale() == "log"
    assert ax.get_ylim()[0] > 0
    assert "smaller is better" in ax.get_ylabel()
    assert [line.get_label() for line in ax.lines] == ["fast", "slow"]
    heights = [t.xyann[1] for t in ax.texts]
    assert heights[0] < heights[1], "names stand as high as their lines end"
    png(plot.comparison_picture({}, "s", REGRET))


@pytest.mark.slow
@pytest.mark.parametrize("picture", PICTURES)
def test_the_same_picture_gives_the_same_bytes(lake, picture):
    figure = picture(lake)
    first = png(figure)
    assert png(figure) == first
    assert png(picture(lake)) == first


def test_a_saved_file_has_no_date_and_equals_what_a_stream_gets(grid, tmp_path):
    figure = sketch(plot.curve_picture, grid)
    plot.save(figure, tmp_path / "curve.png")
    content, stream = (tmp_path / "curve.png").read_bytes(), io.BytesIO()
    plot.save(figure, stream)
    assert content == stream.getvalue()
    assert b"fieldbo" in content
    assert b"Date" not in content
    assert b"tEXtCreation" not in content


def test_pictures_do_not_import_pyplot():
    code = "import sys, fieldbo.results.plot; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_home_is_framed_and_only_one_number_is_written_at_each_place():
    told = {"agent": {"battery": 8, "reserve": 4}}
    result = fieldbo.run(fieldbo.load_mission("wall-worst-crack", {"policy": {"kind": "dist-ucb"}, **told}))
    figure = sketch(plot.path_picture, result)
    (home,) = labelled(figure, "home")
    np.testing.assert_array_equal(home.get_xydata(), [[2.0, 0.0]])
    numbers = [tuple(t.xy) for t in figure.axes[0].texts if t.get_text().isdigit()]
    assert len(set(numbers)) == len(numbers) > 0
