"""Panels: one picture of a run each, in axes of one's own, in the style in force."""

import io
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from cell_runs import cell_run, live_cell
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from small_runs import QUESTIONS, live, sketch, small_run

from fieldbo.errors import InputError, UnknownNameError
from fieldbo.results import plot
from fieldbo.results.plot.style import RED, hue, shade

PANELS = ["path", "map", "curve", "ledger", "readings"]


@pytest.fixture(scope="module")
def grid():
    return small_run()


@pytest.fixture(scope="module")
def optimum():
    return small_run(question=QUESTIONS["maximum"])


def runs():
    return {
        "line": small_run("line"),
        "scattered": small_run("scattered"),
        "box": small_run("box", question=QUESTIONS["maximum"]),
        "live": live(small_run()),
        "chain": cell_run("chain", 3),
        "sets": live_cell(cell_run("sets", 4)),
    }


def axes(**look):
    return Figure(layout="constrained", **look).subplots()


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_every_panel_of_every_kind_of_run_draws_and_names_its_artists():
    for result in runs().values():
        for name in PANELS:
            ax = axes()
            drawn = getattr(result.plot, name)(ax=ax)
            assert drawn
            ax.figure.savefig(io.BytesIO())
        for layer in plot.layers_of(result):
            ax = axes()
            assert result.plot.map(layer, ax)
            assert ax.get_title()


def test_a_panel_draws_into_the_given_axes_and_no_others(grid):
    figure = Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    grid.plot.map("sd", ax=right)
    assert right.has_data()
    assert not left.has_data()
    assert figure.axes[:2] == [left, right]


def test_without_axes_a_panel_makes_a_new_figure_each_time(grid):
    before = plt.get_fignums()
    first, second = grid.plot.curve(), grid.plot.curve()
    try:
        assert first["f1"].axes is not second["f1"].axes
        assert len(plt.get_fignums()) == len(before) + 2
    finally:
        plt.close("all")


def test_the_field_of_a_layer_is_its_values(grid):
    shape = grid.mission.world.domain.shape
    maps = grid.maps()
    for layer, values in (
        ("mean", maps["mean"].values),
        ("sd", maps["sd"].values),
        ("probability", maps["exceedance"].values),
        ("truth", grid.truth.reshape(shape)),
        ("error", maps["mean"].values - grid.truth.reshape(shape)),
    ):
        field = grid.plot.map(layer, axes())["field"]
        np.testing.assert_allclose(field.get_array().T, values)


def test_an_error_map_has_its_zero_in_the_middle_of_its_colours(grid):
    field = grid.plot.map("error", axes())["field"]
    low, high = field.get_clim()
    assert low == -high < 0


def test_the_curve_is_the_column_of_the_table(grid):
    line = grid.plot.curve(axes(), "f1", label="mine", color="tab:red", linewidth=3)["f1"]
    np.testing.assert_array_equal(line.get_ydata(), [s.f1 for s in grid.curve])
    assert (line.get_label(), line.get_color(), line.get_linewidth()) == ("mine", "tab:red", 3)


def test_curves_of_two_runs_share_axes_that_hold_both(optimum):
    ax = axes()
    dear = small_run(battery=900.0, question=QUESTIONS["maximum"])
    lowest = []
    for result in (dear, optimum):
        for line in result.plot.curve(ax, "regret").values():
            lowest.append(np.min(line.get_ydata()))
    assert ax.get_xlim()[1] == 900
    assert ax.get_ylim()[0] <= min(lowest)


def test_the_ledger_shows_what_the_table_of_the_run_says(grid):
    drawn = grid.plot.ledger(axes())
    (account,) = grid.accounts
    lines = [battery for _, battery, _ in account.lines]
    np.testing.assert_allclose(drawn["spent"].get_ydata()[1:], [400 - e.left for e in lines])
    np.testing.assert_allclose(drawn["planned"].get_ydata()[1:], np.cumsum([e.planned for e in lines]))
    np.testing.assert_allclose(drawn["left"].get_ydata(), [400 - account.left, 400])
    bars = grid.plot.ledger(axes(), "orders")["spent"]
    np.testing.assert_allclose([bar.get_height() for bar in bars], [e.spent for e in lines])


def test_the_reserve_is_a_band_below_the_battery(grid):
    assert "reserve" not in grid.plot.ledger(axes())
    vehicle = replace(grid.mission.vehicles[0], reserve=50.0)
    careful = replace(grid, mission=replace(grid.mission, vehicles=(vehicle,)))
    ax = axes()
    reserve = careful.plot.ledger(ax)["reserve"]
    box = reserve.get_window_extent().transformed(ax.transData.inverted())
    assert (box.y0, box.y1) == pytest.approx((350, 400))


def test_readings_that_the_model_left_out_are_crossed(grid):
    believed = np.ones(len(grid.values), dtype=bool)
    believed[1] = False
    doubted = replace(grid)
    doubted.__dict__["believed"] = believed
    crosses = doubted.plot.readings(axes())["left out"]
    np.testing.assert_array_equal(crosses.get_xydata(), [[2, grid.values[1]]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.plot.map("men", axes()), "unknown layer 'men'.*did you mean 'mean'"),
        (lambda r: r.plot.curve(axes(), "f2"), "unknown score 'f2'.*did you mean 'f1'"),
        (lambda r: r.plot.curve(axes(), ["f1", "regret"]), "unknown score 'regret'"),
        (lambda r: r.plot.ledger(axes(), "order"), "unknown view of a ledger.*did you mean 'orders'"),
    ],
)
def test_an_unknown_name_is_an_error_that_suggests_the_nearest(grid, call, message):
    with pytest.raises(UnknownNameError, match=f"(?s){message}"):
        call(grid)


def test_a_layer_that_the_run_cannot_have_says_why(grid, optimum):
    with pytest.raises(InputError, match=r"(?s)'bound': it asks for a level set.*one of mean, sd"):
        grid.plot.map("bound", axes())
    with pytest.raises(InputError, match=r"(?s)'classes': it asks for an optimum"):
        optimum.plot.map("classes", axes())
    with pytest.raises(InputError, match=r"(?s)'truth': its world is live"):
        live(grid).plot.map("truth", axes())


# -- the style in force ----------------------------------------------------------------------------------


def test_greys_lie_between_the_background_and_the_ink_of_the_style(grid):
    with plt.style.context("dark_background"):
        ax = axes()
        line = grid.plot.curve(ax, "unclassified")["unclassified"]
        assert to_rgb(line.get_color()) == shade(0.55)
        assert max(shade(0.07)) < 0.1
        assert min(shade(1.0)) > 0.9
        assert to_rgb(grid.plot.map("mean", axes())["field"].axes.get_facecolor()) == shade(0.07)


def test_a_colour_cycle_of_the_style_replaces_ours_and_that_of_matplotlib_does_not():
    assert hue(RED) == RED
    with plt.style.context("ggplot"):
        assert hue(RED) == mpl.rcParams["axes.prop_cycle"].by_key()["color"][1]


def test_colour_map_line_width_letters_and_marks_follow_the_style(grid):
    wide = {"lines.linewidth": 3.0, "font.size": 20.0, "lines.markersize": 12.0, "image.cmap": "cividis"}
    plain, field = axes(), grid.plot.map("mean", axes())["field"]
    line, dots = grid.plot.curve(plain, "f1")["f1"], grid.plot.path(axes())["readings"]
    assert field.get_cmap().name == "viridis"
    with mpl.rc_context(wide):
        assert grid.plot.curve(axes(), "f1")["f1"].get_linewidth() == 2 * line.get_linewidth()
        assert grid.plot.path(axes())["readings"].get_markersize() == 2 * dots.get_markersize()
        assert grid.plot.map("mean", axes())["field"].get_cmap().name == "cividis"
    assert grid.plot.map("mean", axes(), cmap="magma", vmin=0, vmax=9)["field"].get_clim() == (0, 9)


def test_the_grid_of_a_style_stays_its_own(grid):
    with plt.style.context("ggplot"):
        ax = axes()
        grid.plot.curve(ax)
        assert to_rgb(ax.get_xgridlines()[0].get_color()) == to_rgb("white")


def test_a_colour_bar_takes_room_from_the_map_where_the_figure_makes_none(grid):
    for layout, inside in (("constrained", True), (None, False)):
        ax = Figure(layout=layout).subplots()
        bar = grid.plot.map("sd", ax)["field"].colorbar
        assert (bar.ax in ax.child_axes) is inside
    assert grid.plot.map("classes", axes(), colorbar=False)["field"].colorbar is None


def test_a_legend_of_ones_own_shows_the_path_in_all_its_colours(grid):
    ax = axes()
    grid.plot.path(ax)
    legend = ax.legend()
    assert "path" in [t.get_text() for t in legend.get_texts()]
    assert any(len(c.get_segments()) > 1 for c in legend.findobj(mpl.collections.LineCollection))


def test_a_path_in_one_colour_has_that_colour_on_every_leg(grid):
    drawn = grid.plot.path(axes(), color="red", linewidth=4)
    drawn["path"].figure.savefig(io.BytesIO())
    assert {tuple(c[:3]) for c in drawn["path"].get_edgecolor()} == {(1.0, 0.0, 0.0)}
    assert drawn["path"].get_linewidths() == [4]


@pytest.mark.each_choice
@pytest.mark.parametrize("name", ["ledger", "readings"])
@pytest.mark.parametrize("width", ["screen", "column", "page"])
def test_the_new_pictures_come_in_all_widths(grid, name, width):
    figure = getattr(plot, f"{name}_picture")(grid, width)
    inches = {"column": 3.5, "page": 7.2}.get(width, 9)
    assert figure.get_figwidth() == inches
    assert sketch(plot.layer_picture, grid, "error", width).axes
