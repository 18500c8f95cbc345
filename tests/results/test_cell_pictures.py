"""Pictures of a factory cell: settings, modules and control sets, costs and regrets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cell_runs import cell_run as run
from cell_runs import live_cell as live
from cell_runs import modules
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.text import Text
from small_runs import labelled, png, sketch

from fieldbo.belief.question import LevelSet
from fieldbo.costs.cells import Modular
from fieldbo.results import plot
from fieldbo.results.plot.cell_path import colour_of

PICTURES = [plot.path_picture, plot.map_picture, plot.curve_picture]


@pytest.fixture(scope="module")
def chain():
    return run("chain", 3)


@pytest.fixture(scope="module")
def played():
    return run("sets", 4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chain", "sets"])
@pytest.mark.parametrize("d", [1, 2, 8])
@pytest.mark.filterwarnings("error")
def test_cells_of_any_dimension_draw_with_a_truth_and_live_and_nothing_is_cut_off(kind, d):
    result = run(kind, d)
    for one in (result, live(result)):
        for picture in (plot.path_picture, plot.curve_picture):
            figure = picture(one)
            assert png(figure).startswith(b"\x89PNG")
            within, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
            assert min(within.x0, within.y0, width - within.x1, height - within.y1) >= -1e-6


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chain", "sets"])
@pytest.mark.filterwarnings("error")
def test_a_level_set_and_a_single_order_draw_too(kind):
    for result in (run(kind, 3, LevelSet(0.5)), run(kind, 8, orders=1)):
        for picture in PICTURES:
            figure = picture(result)
            assert png(figure).startswith(b"\x89PNG")
            assert any(ax.has_data() for ax in figure.axes)


def test_each_axis_of_a_chain_shows_its_settings_and_where_they_changed(chain):
    figure = sketch(plot.path_picture, chain)
    for axis in range(3):
        ax = figure.axes[axis]
        steps, changes = ax.lines[:2]
        np.testing.assert_array_equal(steps.get_ydata(), chain.sites[:, axis])
        changed = np.append(True, np.diff(chain.sites[:, axis]) != 0)
        np.testing.assert_array_equal(changes.get_xdata(), np.flatnonzero(changed))
        assert to_hex(steps.get_color()) == to_hex(colour_of(0 if axis == 0 else 1))
        assert ax.get_ylabel() == chain.mission.world.domain.axes[axis].label
        for label in ("true optimum", "reported optimum"):
            (mark,) = [line for line in ax.lines if line.get_label() == label]
            assert mark.get_xdata()[0] > len(chain.sites)


def test_variables_left_to_chance_are_drawn_as_rings(played):
    figure = sketch(plot.path_picture, played)
    rings = labelled(figure, "left to chance")
    controls = np.array([play.controls for play in played.cell_runs.plays])
    assert len(rings) == 4
    for axis, ring in enumerate(rings):
        free = ~controls[:, axis]
        np.testing.assert_array_equal(ring.get_xdata(), np.flatnonzero(free))
        np.testing.assert_array_equal(ring.get_ydata(), played.sites[free, axis])
        assert ring.get_markerfacecolor() == "none"


def test_many_axes_become_a_strip_of_colours_lighter_if_left_to_chance():
    result = run("sets", 8)
    ax = sketch(plot.path_picture, result).axes[0]
    strip, true, reported = (image.get_array() for image in ax.get_images())
    controls = np.array([play.controls for play in result.cell_runs.plays])
    assert strip.shape == (8, len(result.sites), 3)
    assert true.shape == reported.shape == (8, 1, 3)
    assert strip[~controls.T].min() >= 0.75 - 1e-9
    assert strip[controls.T].min() < 0.5
    assert [t.get_text() for t in ax.get_yticklabels()] == [a.label for a in result.mission.world.domain.axes]


def test_costs_are_bars_by_the_first_module_that_ran_or_by_the_set(chain, played):
    for result in (chain, played):
        figure = sketch(plot.path_picture, result)
        (ax,) = [ax for ax in figure.axes if ax.get_ylabel().startswith("cost per")]
        bars = {round(bar.get_x() + bar.get_width() / 2): bar for bar in ax.patches}
        for number, play in enumerate(result.cell_runs.plays):
            assert bars[number].get_y() + bars[number].get_height() == pytest.approx(play.cost)
            assert to_hex(bars[number].get_facecolor()) == to_hex(colour_of(play.kind))
        (whole,) = labelled(figure, "total cost")
        assert whole.get_ydata()[-1] == pytest.approx(result.cost)
        assert figure.axes[-1].get_ylim()[1] >= result.cost
    assert labelled(sketch(plot.path_picture, chain), "battery")
    assert labelled(figure, "battery: 500 EUR (off scale)")


def test_the_total_cost_is_split_among_the_modules_as_their_runs_are_charged(chain):
    (ax,) = [ax for ax in sketch(plot.path_picture, chain).axes if ax.get_ylabel().startswith("total cost")]
    mix, bake = (area.get_datalim(ax.transData) for area in ax.collections)
    spent = [one["spent"] for one in chain.summary()["modules"]]
    assert mix.y1 == pytest.approx(spent[0])
    assert bake.y1 == pytest.approx(sum(spent)) == pytest.approx(chain.cost)


def test_every_module_or_set_is_named_with_its_count_and_its_cost(chain, played):
    for result, names, first in (
        (chain, ["mix", "bake"], "4 runs, 160 EUR"),
        (played, ["x1, x2", "x3, x4", "all"], "3 plays, 0.03 EUR"),
    ):
        figure = sketch(plot.path_picture, result)
        (ax,) = [ax for ax in figure.axes if [t.get_text() for t in ax.get_yticklabels()] == names]
        assert first in [t.get_text() for t in ax.texts]
        ran = {round(bar.get_x() + bar.get_width() / 2) for bar in ax.patches if bar.get_y() < 0}
        assert len(ran) == int(first.split()[0])


def test_the_curves_show_the_columns_of_the_table(chain, played):
    for result, columns in (
        (chain, ("regret", "best_regret", "movement", "movement_regret")),
        (played, ("regret", "simple_regret", "quality_regret", "cost_regret")),
    ):
        drawn = [line.get_ydata() for ax in sketch(plot.curve_picture, result).axes for line in ax.lines]
        for column in columns:
            values = [getattr(step, column) for step in result.curve]
            assert any(len(y) == len(values) and np.allclose(y, values) for y in drawn), column


def test_runs_of_modules_and_plays_of_sets_are_counted_against_cost(chain, played):
    ax = sketch(plot.curve_picture, chain).axes[1]
    assert {line.get_label(): line.get_ydata()[-1] for line in ax.lines} == {"mix": 4, "bake": 12}
    ax = sketch(plot.curve_picture, played).axes[1]
    (whole,) = [line for line in ax.lines if line.get_label() == "all plays"]
    np.testing.assert_array_equal(whole.get_ydata(), np.arange(1, 13))
    np.testing.assert_allclose(whole.get_xdata(), [step.cost for step in played.curve])
    assert sum(line.get_ydata()[-1] for line in ax.lines if line is not whole) == 12


def test_sets_that_reach_nine_tenths_of_the_best_are_ticked(played):
    shares = sketch(plot.curve_picture, played).axes[-1]
    good = [one["good_enough_true"] for one in played.summary()["control_sets"]]
    assert [t.get_text().endswith("✓") for t in shares.get_yticklabels()] == good
    assert good[-1]
    assert "90% of the best" in shares.get_xlabel()
    shares = sketch(plot.curve_picture, live(played)).axes[-1]
    assert not any("✓" in t.get_text() for t in shares.get_yticklabels())


def test_a_live_cell_shows_the_reported_value_and_no_regret(chain, played):
    for result, axes in ((chain, 4), (played, 3)):
        figure = sketch(plot.curve_picture, live(result))
        assert len(figure.axes) == axes
        (line,) = figure.axes[0].lines
        np.testing.assert_array_equal(line.get_ydata(), [step.reported_value for step in result.curve])
        assert not labelled(sketch(plot.path_picture, live(result)), "true optimum")


def test_a_legend_covers_no_data(chain):
    figure = plot.curve_picture(chain)
    figure.draw_without_rendering()
    for ax in figure.axes:
        if (legend := ax.get_legend()) is not None:
            assert legend.get_window_extent().y0 >= Axes.get_window_extent(ax).y1 - 1


def test_names_of_modules_and_the_colour_bar_do_not_overlap():
    result = run("chain", 8)
    long = tuple(replace(m, name=f"a module with a long name, {m.name}") for m in modules(8))
    cost = Modular(modules=long).within(result.mission.world.domain)
    world = replace(result.mission.world, cost=cost)
    figure = plot.path_picture(replace(result, mission=replace(result.mission, world=world)))
    figure.draw_without_rendering()
    ax, bar = figure.axes[0], figure.axes[0].child_axes[0]
    (right,) = {round(max(Text.get_window_extent(t).x1 for t in ax.texts))}
    assert right < Axes.get_window_extent(bar).x0


@pytest.mark.slow
@pytest.mark.parametrize("picture", PICTURES)
def test_the_same_picture_of_a_cell_gives_the_same_bytes(played, picture):
    assert png(picture(played)) == png(picture(played))


def test_twelve_sets_have_different_colours():
    assert len({to_hex(colour_of(kind)) for kind in range(12)}) == 12


@pytest.mark.parametrize(("kind", "what"), [("sets", "play"), ("chain", "run")])
def test_a_single_play_or_run_is_written_in_the_singular(kind, what):
    texts = {t.get_text() for t in sketch(plot.curve_picture, run(kind, 3, orders=1)).axes[-1].texts}

    assert f"1 {what}" in texts
    assert f"1 {what}s" not in texts
