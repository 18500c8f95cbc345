"""The tuning of a neural network: real training, a table of what is known, and the world made of both."""

import csv
import warnings

import numpy as np
import pytest
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st
from tiers import swept

import fieldbo
from fieldbo.belief.question import Optimum
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.results.truth import truth_of
from fieldbo.world.fields.gallery import mlp
from fieldbo.world.fields.gallery.mlp import MLPTraining, Settings, trained_error

TABLE = ROOT / "worlds" / "mlp-breast-cancer" / "errors.csv"
CASES = 5 * 171
AXES = [
    Axis("batch_size", "", 32, 128),
    Axis("learning_rate", "", 1e-6, 1),
    Axis("schedule", "", 1e-6, 1),
    Axis("hidden_factor", "", 0.5, 4),
]
FEW = Domain.box(AXES, 2)


def rows():
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def table(folder, sites, errors):
    lines = [",".join([*(a.name for a in AXES), "test_error"])]
    lines += [",".join(map(repr, [*site, error])) for site, error in zip(sites.tolist(), errors, strict=True)]
    (folder / "errors.csv").write_text("\n".join(lines))
    return MLPTraining("errors.csv")


@pytest.fixture(scope="module")
def world():
    return fieldbo.load_world("mlp-breast-cancer")


@pytest.fixture
def no_training(monkeypatch):
    def refused(settings):
        raise AssertionError(f"a training at {settings}")

    monkeypatch.setattr(mlp, "trained_error", refused)


@pytest.mark.parametrize("which", swept(["first", "best"], ["first"]))
def test_rows_of_the_table_are_reproducible(which):
    told = rows()
    best = min(range(len(told)), key=lambda i: float(told[i]["test_error"]))
    i = 0 if which == "first" else best
    site = np.array([float(told[i][a.name]) for a in AXES])
    # other versions of the library may tell a case or two otherwise
    assert trained_error(Settings.at(site)) == pytest.approx(float(told[i]["test_error"]), abs=5 / CASES)


def test_the_same_settings_have_the_same_error_bit_for_bit_and_training_warns_of_nothing():
    settings = Settings(128, 0.3, 0.2, 15)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = trained_error(settings)
    trained_error.cache_clear()
    assert trained_error(settings) == first
    assert (first * CASES) == pytest.approx(round(first * CASES))


def test_a_network_that_hardly_learns_is_worse_than_one_that_does():
    assert trained_error(Settings(128, 1e-6, 1.0, 15)) > 0.3
    assert trained_error(Settings(128, 0.5, 0.2, 15)) < 0.06


@given(st.tuples(*(st.floats(a.low, a.high) for a in AXES)))
def test_settings_stay_in_range_and_survive_being_written_as_text(site):
    settings = Settings.at(np.array(site))
    assert 32 <= settings.batch_size <= 128
    assert 15 <= settings.hidden <= 120
    assert Settings.at(np.array([float(repr(x)) for x in site])) == settings
    assert abs(settings.learning_rate - site[1]) <= 1e-9


def test_the_table_holds_every_site_so_scores_train_nothing(world, no_training):
    errors = world.truth(world.domain.sites)
    told = rows()
    assert np.array_equal(errors, [float(r["test_error"]) for r in told[: world.domain.size]])
    assert ((errors > 0) & (errors < 0.5)).all()
    assert np.allclose(errors * CASES, np.round(errors * CASES), atol=1e-5)


def test_the_best_known_error_is_the_least_of_the_table_and_no_search_trains(world, no_training):
    best = truth_of(world, Optimum("minimise")).optimum
    assert best.value == min(float(r["test_error"]) for r in rows())
    assert best.value < world.truth(world.domain.sites).min()
    assert world.domain.contains(best.point[None])[0]
    assert world.field.optimum("maximise") is None


def test_missing_errors_are_computed_by_training(tmp_path, monkeypatch):
    field = table(tmp_path, np.tile(FEW.sites, (3, 1)), [0.25, 0.75] * 3).make(FEW, 0, tmp_path)
    monkeypatch.setattr(mlp, "trained_error", lambda settings: float(settings.batch_size))
    between = np.array([[40.2, 0.5, 0.5, 1.0]])

    assert field.values(np.concatenate([FEW.sites, between])).tolist() == [0.25, 0.75, 40.0]


def test_an_incomplete_table_is_rejected(tmp_path, no_training):
    kind = table(tmp_path, np.tile(FEW.sites[:1], (5, 1)), [0.1] * 5)
    with pytest.raises(InputError, match=r"1 of 2 sites have no row"):
        kind.make(FEW, 0, tmp_path)


def test_without_a_table_nothing_is_trained_before_a_value_is_needed(no_training):
    field = MLPTraining().make(FEW)
    assert field.known == {}
    assert field.optimum("minimise") is None


def test_invalid_settings_are_rejected():
    with pytest.raises(InputError, match="over 2 axes"):
        MLPTraining().make(Domain.box(AXES[:2], 4))
    with pytest.raises(InputError, match="'learning_rate' starts at 0"):
        MLPTraining().make(Domain.box([AXES[0], Axis("learning_rate", "", 0, 1), *AXES[2:]], 4))
    with pytest.raises(InputError, match="needs a folder"):
        MLPTraining("errors.csv").make(FEW)


def test_a_move_across_an_axis_of_the_tuning_world_costs_one(world):
    low, high = world.domain.low, world.domain.high
    assert world.cost.to(low, high[None]) == pytest.approx([2.0])
