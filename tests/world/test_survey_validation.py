"""Surveys are judged by leaving out whole lines or blocks."""

from __future__ import annotations

import numpy as np
import pytest
from tiers import swept

from fieldbo.belief.kernels import Matern52
from fieldbo.belief.posterior import Belief
from fieldbo.errors import InputError
from fieldbo.tables.readings import Readings
from fieldbo.world.fields.table import fit_table
from fieldbo.world.survey_validation import (
    Score,
    Validation,
    blocks_of,
    groups_of,
    lines_of,
    predict_left_out,
)

SIDE, SCALE = 600.0, 80.0
GRID = np.stack(np.meshgrid(*[np.linspace(0, SIDE, 31)] * 2), axis=-1).reshape(-1, 2)


def lawn(gap=100.0, step=12.0, ways=True, jitter=1.0):
    """Return the sites of a boat that mows a lawn, with its way from line to line."""
    rng, rows = np.random.default_rng(0), []
    offsets = np.arange(0, SIDE + 1, gap)
    for i, y in enumerate(offsets):
        x = np.arange(0, SIDE + 1, step)[:: -1 if i % 2 else 1]
        rows.append(np.column_stack([x, np.full(len(x), y)]))
        if ways and y < offsets[-1]:
            way = np.arange(step, gap - step / 2, step)
            rows.append(np.column_stack([np.full(len(way), x[-1]), y + way]))
    sites = np.concatenate(rows)
    return sites + jitter * rng.standard_normal(sites.shape), len(offsets)


def survey_of(sites, seed=1, noise=0.02, offsets=0.0):
    """Return the fit to a survey of a random field, its validation, and the error of its map."""
    rng = np.random.default_rng(seed)
    truth = Belief(Matern52([SCALE, SCALE])).sample(np.concatenate([sites, GRID]), 1, rng)[0]
    values = truth[: len(sites)] + noise * rng.standard_normal(len(sites)) + offsets
    field = fit_table(Readings(sites, values, None, {}), np.full(2, SIDE), "matern52", "none", "s.csv")
    error = float(np.sqrt(np.mean((field.values(GRID) - truth[len(sites) :]) ** 2)))
    return field, field.validation(GRID), error


# -- exact predictions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 2, 2, 2, 3], [0, 1, 2, 3, 4, 5, 6, 7], [1, 0] * 4])
def test_predictions_of_left_out_groups_are_those_of_a_belief_without_them(labels):
    rng = np.random.default_rng(3)
    sites, values = rng.random((8, 2)), rng.standard_normal(8)
    noise = rng.uniform(0.01, 0.2, 8)
    prior = Belief(Matern52([0.3, 0.5], 1.7))
    mean, variance = predict_left_out(prior.condition_on(sites, values, noise), labels)
    for label in set(labels):
        out = np.array(labels) == label
        others = prior.condition_on(sites[~out], values[~out], noise[~out])
        assert mean[out] == pytest.approx(others.mean(sites[out]), abs=1e-9)
        assert variance[out] == pytest.approx(others.variance(sites[out]) + noise[out], abs=1e-9)


def test_single_readings_left_out_give_leave_one_out():
    rng = np.random.default_rng(5)
    belief = Belief(Matern52([0.3])).condition_on(rng.random((20, 1)), rng.standard_normal(20), 0.1)
    for ours, known in zip(predict_left_out(belief, range(20)), belief.leave_one_out(), strict=True):
        assert ours == pytest.approx(known)


def test_all_readings_left_out_leave_the_prior():
    belief = Belief(Matern52([1.0], 2.0)).condition_on([[0.0], [0.5]], [1.0, -1.0], 0.1)
    mean, variance = predict_left_out(belief, [0, 0])
    assert mean == pytest.approx([0.0, 0.0], abs=1e-12)
    assert variance == pytest.approx([2.1, 2.1])


def test_labels_for_other_readings_are_rejected():
    belief = Belief(Matern52([1.0])).condition_on([[0.0], [0.5]], [1.0, -1.0], 0.1)
    with pytest.raises(InputError, match="one label per site"):
        predict_left_out(belief, [0, 1, 2])


# -- groups ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ways", [True, False], ids=["with the ways", "lines only"])
@pytest.mark.parametrize("gap", [60.0, 100.0, 150.0])
def test_a_mown_lawn_is_split_into_its_lines(gap, ways):
    sites, count = lawn(gap, ways=ways)
    labels = lines_of(sites / SCALE)
    assert len(np.unique(labels)) == count
    middle = np.abs(sites[:, 0] - SIDE / 2) < 200
    for label in range(count):
        assert np.ptp(sites[middle & (labels == label), 1]) < 10


def test_casts_of_a_profiler_are_lines():
    sites = np.array([[along, depth] for along in range(0, 900, 100) for depth in np.arange(0.5, 20, 0.5)])
    labels = lines_of(sites / [150.0, 4.0])
    assert len(np.unique(labels)) == 9
    assert all(np.ptp(sites[labels == label, 0]) == 0 for label in np.unique(labels))


def test_lines_sailed_out_and_back_are_left_out_together():
    along = np.arange(0, SIDE, 12.0)
    passes = [np.column_stack([x, np.full(len(x), 100.0 * i + offset)])
              for i in range(5) for x, offset in ((along, 0.0), (along[::-1] + 2, 3.0))]  # fmt: skip
    assert len(np.unique(lines_of(np.concatenate(passes) / SCALE))) == 5


@pytest.mark.parametrize("sites", ["random", "shuffled", "one line", "few", "two lines"])
def test_readings_without_lines_are_no_lines(sites):
    rng, along = np.random.default_rng(0), np.linspace(0, 5, 60)
    sites = {
        "random": 5 * rng.random((100, 2)),
        "shuffled": rng.permutation(lawn()[0] / SCALE),
        "one line": np.column_stack([along, np.sin(along)]),
        "few": np.column_stack([along[:5], along[:5]]),
        "two lines": np.concatenate(
            [np.column_stack([along, 0 * along]), np.column_stack([along, 0 * along + 1])]
        ),
    }[sites]
    assert lines_of(sites) is None


def test_a_single_line_and_scattered_readings_are_left_out_in_blocks():
    along = np.linspace(0, SIDE, 60)
    line = np.column_stack([along, 0.1 * along])
    for sites in (line, SIDE * np.random.default_rng(0).random((100, 2)), along[:, None]):
        scales = np.full(sites.shape[1], SCALE)
        groups = groups_of(sites, scales, sites + 1.0)
        assert groups.kind == "block"
        assert groups.name == f"{groups.count} blocks"
        assert 3 <= groups.count <= len(sites) // 4


def test_blocks_are_as_wide_as_the_gaps_of_the_map():
    rng = np.random.default_rng(0)
    places = 10 * rng.random((500, 2))
    spread = 10 * rng.random((120, 2))
    centres = np.stack(np.meshgrid([1.5, 5, 8.5], [1.5, 5, 8.5]), axis=-1).reshape(-1, 2)
    clustered = np.repeat(centres, 12, axis=0) + 0.1 * rng.standard_normal((108, 2))
    assert len(set(blocks_of(clustered, places))) <= 18, "one or two for each of the nine clusters"
    assert len(set(blocks_of(spread, places))) > 20, "no gaps, so blocks are small"


def test_a_survey_too_large_for_all_distances_is_grouped_too():
    sites = np.random.default_rng(0).random((5000, 2))
    blocks = blocks_of(sites, sites[:200])
    assert blocks.shape == (5000,)
    assert len(np.unique(blocks)) > 100


@pytest.mark.parametrize("n", range(1, 9))
def test_few_readings_have_three_blocks_or_none(n):
    sites = np.random.default_rng(n).random((n, 2))
    groups = groups_of(sites, np.ones(2), sites + 0.1)
    assert groups is None if n < 6 else groups.count == 3


# -- what follows for the map ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", swept(range(3), [0]))
@pytest.mark.parametrize("gap", [60.0, 120.0])
def test_the_expected_error_lies_between_that_of_single_readings_and_that_of_lines(gap, seed):
    sites, count = lawn(gap)
    field, validation, error = survey_of(sites, seed)
    assert validation.groups == f"{count} lines"
    assert field.loo_rmse < 0.5 * error, "optimistic: every reading has neighbours on its line"
    assert error < validation.grouped.rmse < 6 * error, "cautious: the gap of a missing line is twice as wide"
    assert 0.7 * error < validation.expected < 1.4 * error
    assert 0.75 < validation.grouped.coverage <= 1.0


@pytest.mark.parametrize("step", swept([12.0, 20.0], [20.0]))
def test_lines_that_disagree_show_in_the_coverage_of_lines_only(step):
    sites, _ = lawn(40.0, step)
    labels = lines_of(sites / SCALE)
    drift = 0.3 * np.random.default_rng(0).standard_normal(labels.max() + 1)
    field, validation, error = survey_of(sites, 0, offsets=drift[labels])
    assert field.loo_rmse < 0.3 * error
    assert field.loo_coverage > 0.82 > validation.grouped.coverage
    assert error < validation.grouped.rmse < 3 * error
    assert validation.advice("").startswith("the second error counts: lines differ by more than")
    held = f"90% intervals hold only {100 * validation.grouped.coverage:.0f}% of the readings"
    assert held in validation.warning


def test_for_scattered_readings_all_errors_are_alike():
    sites = SIDE * np.random.default_rng(2).random((250, 2))
    field, validation, error = survey_of(sites)
    assert validation.kind == "block"
    assert field.loo_rmse < validation.grouped.rmse < 3 * field.loo_rmse
    assert 0.6 * error < validation.expected < 1.6 * error


def test_repeated_sites_are_left_out_together():
    sites, count = lawn(120.0)
    _, validation, _ = survey_of(np.repeat(sites, 2, axis=0))
    assert validation.groups == f"{count} lines"


def test_a_handful_of_readings_is_not_validated_in_groups():
    sites = SIDE * np.random.default_rng(2).random((5, 2))
    _, validation, _ = survey_of(sites)
    assert validation is None


def scored(grouped, kind="line", expected=0.1, coverage=0.9, inflation=1.0):
    single, grouped = Score(0.02, 0.95), Score(grouped, coverage)
    return Validation(single, grouped, kind, f"9 {kind}s", expected, inflation, spread=1.0)


@pytest.mark.parametrize(
    ("validation", "advice"),
    [
        (
            scored(0.42),
            "expect an error of about 0.1 m over the map: smaller near readings, and up to 0.42 m in the "
            "widest gaps",
        ),
        (
            scored(0.025, expected=0.02),
            "both errors agree; expect an error of about 0.02 m over the map",
        ),
        (
            scored(0.42, expected=0.9),
            "expect an error of about 0.9 m over the map, more than between lines, because parts of the area "
            "are far from any reading",
        ),
        (
            scored(144.4, expected=1.2),
            "expect an error of about 1.2 m over the map: smaller near readings, and up to 140 m (no better "
            "than the readings' mean) in the widest gaps",
        ),
        (
            scored(0.4, "block", inflation=1.5),
            "the second error counts: blocks differ by more than the fitted model allows, so between blocks "
            "the map may be off by 0.4 m",
        ),
    ],
    ids=["honest model", "alike", "far from all readings", "worthless in gaps", "optimistic model"],
)
def test_the_advice_names_the_error_to_expect(validation, advice):
    assert validation.advice(" m") == advice


def test_narrow_intervals_are_warned_of():
    assert scored(0.4).warning is None
    assert scored(0.4, coverage=0.7, inflation=2.34).warning == (
        "with lines left out, 90% intervals hold only 70% of the readings; take the map's standard "
        "deviations times 2.3"
    )
