"""Settings of the travel policies: wrong ones are rejected with their place and what was expected."""

from pathlib import Path

import pytest
from small_files import world_text

import fieldbo
from fieldbo.errors import InputError
from fieldbo.messages import EndReason
from fieldbo.policies.travel.one_step import DUCB, UCB, DistUCB, EIPerCost, TravelScore
from fieldbo.policies.travel.rollout import Rollout

WORLD = world_text(("x", 0, 10, 5), ("y", 0, 6, 4), title="a yard", sensor={"noise_sd": 0})
MISSION = """format = 1
world = "yard"
[question]
kind = "optimum"
[agent]
battery = {battery}
start = [0, 0]
{agent}
[policy]
kind = "{kind}"
{settings}
[model]
learn = false
length_scales = [3, 3]
mean = 0
"""


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("worlds/yard").mkdir(parents=True)
    Path("worlds/yard/world.toml").write_text(WORLD)


def load(kind="rollout", settings="", battery=40, agent=""):
    Path("m.toml").write_text(MISSION.format(kind=kind, settings=settings, battery=battery, agent=agent))
    return fieldbo.load_mission("m.toml")


WRONG = [
    ("rollout", "horizon = 0", ("horizon = 0", "at least 1", '"budget"', "policy.horizon")),
    ("rollout", "horizon = -3", ("horizon = -3", "policy.horizon")),
    ("rollout", "horizon = 51", ("horizon = 51", "at most 50", "policy.horizon")),
    ("rollout", 'horizon = "for ever"', ("for ever", "policy.horizon")),
    ("rollout", "horizon = 2.5", ("2.5", "policy.horizon")),
    ("rollout", "fantasies = 0", ("fantasies = 0", "at least 1", "policy.fantasies")),
    ("rollout", "fantasies = -1", ("fantasies = -1", "policy.fantasies")),
    ("rollout", "fantasies = 100000", ("fantasies = 100000", "policy.fantasies")),
    ("rollout", "fantasies = 1.5", ("1.5", "policy.fantasies")),
    ("rollout", 'base = "truvar"', ("truvar", "dist-ucb", "ei-per-cost", "policy.base")),
    ("rollout", 'convention = "one plus"', ("one plus", "one_plus", "floor", "policy.convention")),
    ("rollout", "kappa = -1", ("kappa = -1", "at least 0", "policy.kappa")),
    ("rollout", "kappa = nan", ("kappa = nan", "policy.kappa")),
    ("rollout", "d0 = 0", ("d0 = 0", "above 0", "policy.d0")),
    ("rollout", "d0 = -1", ("d0 = -1", "policy.d0")),
    ("rollout", "d0 = inf", ("d0 = inf", "a finite number", "policy.d0")),
    ("rollout", 'stop = "never"', ("never", "best_affordable", "first_unaffordable", "policy.stop")),
    ("rollout", "candidates = 0", ("candidates = 0", "above 0", "policy.candidates")),
    ("rollout", "level = 1", ("level = 1", "policy.level")),
    ("rollout", "fantasy_noise = 1", ("1", "policy.fantasy_noise")),
    ("rollout", "fantasys = 3", ("unknown key", "did you mean 'fantasies'", "policy.fantasys")),
    ("dist-ucb", "d0 = 0", ("d0 = 0", "policy.d0")),
    ("dist-ucb", "kappa = inf", ("kappa = inf", "policy.kappa")),
    ("ucb", "kappa = -0.5", ("kappa = -0.5", "policy.kappa")),
    ("ei-per-cost", "d0 = nan", ("d0 = nan", "policy.d0")),
    ("ducb", "", ("rho", "policy.rho")),
    ("ducb", "rho = -1", ("rho = -1", "at least 0", "policy.rho")),
    ("ducb", "rho = 1\nkappa = nan", ("kappa = nan", "policy.kappa")),
]


@pytest.mark.parametrize(
    ("kind", "settings", "expected"), WRONG, ids=lambda part_id: str(part_id).replace("\n", " ")
)
def test_a_wrong_setting_is_rejected_with_its_place_and_what_was_expected(kind, settings, expected):
    with pytest.raises(InputError) as caught:
        load(kind, settings)
    text = " ".join(str(caught.value).split())
    for part in expected:
        assert part in text, text


@pytest.mark.parametrize(
    "settings",
    ["", "horizon = 1", "horizon = 50", 'horizon = "budget"', "fantasies = 1", "kappa = 0", "d0 = 1e-9"],
)
def test_settings_at_their_limits_are_accepted(settings):
    mission = load("rollout", settings)
    assert isinstance(mission.policy, Rollout)


@pytest.mark.parametrize("make", [Rollout, DistUCB, UCB, TravelScore, lambda **k: DUCB(rho=1.0, **k)])
@pytest.mark.parametrize("kappa", [-1.0, float("nan"), float("inf")])
def test_settings_are_checked_in_python_too(make, kappa):
    with pytest.raises(InputError, match="kappa"):
        make(kappa=kappa)


def test_every_class_with_a_d0_rejects_a_d0_of_zero():
    for make in (Rollout, DistUCB, EIPerCost, TravelScore):
        with pytest.raises(InputError, match="d0"):
            make(d0=0.0)


@pytest.mark.parametrize("kind", ["rollout", "dist-ucb", "ei-per-cost", "ucb"])
def test_a_battery_too_small_for_any_reading_ends_the_mission_at_once(kind):
    result = fieldbo.run(load(kind, battery=0.5, agent="home = [0, 0]"))
    assert len(result.queries) == 0
    assert result.cost == 0
    assert result.end_reason is EndReason.BATTERY_SPENT


@pytest.mark.parametrize("horizon", ["50", '"budget"'])
def test_a_battery_that_suffices_for_one_reading_is_used_for_it(horizon):
    result = fieldbo.run(load("rollout", f"horizon = {horizon}", battery=1.0, agent="home = [0, 0]"))
    assert len(result.queries) == 1
    assert result.end_reason is EndReason.BATTERY_SPENT
