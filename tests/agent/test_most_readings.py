"""A limit to the number of readings at a site, and the note without one."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import fieldbo
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.errors import InputError
from fieldbo.messages import Command, EndReason, Query, Rejected
from fieldbo.mission.files import toml_text
from fieldbo.policies import EI, Straddle
from fieldbo.results.contradictions import reread
from fieldbo.testing import small_mission, small_world


def noisy(policy=None, most=None, battery=1000.0, **changes):
    world = small_world((3, 2), noise_sd=0.5)
    question = Optimum() if isinstance(policy, EI) else LevelSet(0.3)
    mission = small_mission(policy or Straddle(), world=world, question=question, battery=battery)
    return replace(mission, most_readings_per_site=most, **changes)


def times_of(result):
    return Counter(site.tobytes() for site in result.sites).values()


@pytest.mark.parametrize("policy", [Straddle(), EI()])
def test_no_site_is_read_more_often_than_the_mission_allows(policy):
    result = fieldbo.run(noisy(policy, most=3))
    assert list(times_of(result)) == [3] * 6
    assert result.end_reason is EndReason.STOPPED_BY_POLICY


def test_without_a_limit_a_site_is_read_more_often():
    assert max(times_of(fieldbo.run(noisy(battery=60.0)))) > 3


def test_queries_on_their_way_count_and_rejected_ones_do_not():
    agent = fieldbo.Agent(noisy(most=1))
    first = agent.ask()
    assert agent.read_out.sum() == 1
    agent.tell(Rejected(first.id, "a swan"))
    assert not agent.read_out.any()


def test_a_batch_respects_it():
    result = fieldbo.run(noisy(most=2, batch=4))
    assert list(times_of(result)) == [2] * 6


def test_an_operator_still_sends_the_vehicle_to_a_site_that_was_read_so_often():
    agent = fieldbo.Agent(noisy(most=1))
    first = agent.ask()
    agent.tell(first.observed([0.4], noise_variance=0.25, cost=1.0))
    agent.tell(agent.completed(Command("a", "next", site=first.site, vehicle=0)))
    assert agent.ask().site.tolist() == first.site.tolist()


def test_a_run_folder_keeps_it(tmp_path, command):
    settings = ("--battery", "8", "--policy", "straddle,most_readings_per_site=2")
    code, _, err = command("run", "gp-lake", *settings, "--out", tmp_path / "runs")
    assert code == 0, err
    assert fieldbo.load_mission(tmp_path / "runs" / "mission.toml").most_readings_per_site == 2


def test_the_default_policy_takes_it():
    settings = {"policy": {"kind": "auto", "most_readings_per_site": 2}}
    mission = fieldbo.load_mission("gp-lake", settings)
    assert mission.most_readings_per_site == 2
    assert mission.settings["policy"] == {"kind": "tour", "most_readings_per_site": 2}


@pytest.mark.parametrize("most", [0, -1, 2.5, "many"])
def test_a_wrong_limit_is_rejected(most):
    with pytest.raises(InputError, match="most_readings_per_site") as error:
        fieldbo.load_mission("gp-lake", {"policy": {"most_readings_per_site": most}})
    assert "policy.most_readings_per_site" in error.value.where


def test_in_a_box_it_is_rejected():
    with pytest.raises(InputError, match="the domain is a box"):
        fieldbo.load_mission("branin", {"policy": {"most_readings_per_site": 2}})


def test_the_json_schema_has_it_for_every_kind():
    from fieldbo.mission.schema import json_schema

    kinds = json_schema("mission")["properties"]["policy"]["oneOf"]
    assert all("most_readings_per_site" in kind["properties"] for kind in kinds)


# -- the note --------------------------------------------------------------------------------------------


def hovering(times, noise_variance=0.01):
    """Return an agent that read one site `times` times, and each of the others once."""
    agent = fieldbo.Agent(noisy(EI()))
    sites = agent.domain.sites
    for k, site in enumerate([*sites, *[sites[0]] * (times - 1)]):
        order = agent.issue(Query(site))
        agent.tell(order.observed(float(k < 6) * float(site[0]), noise_variance=noise_variance))
    return agent


def test_a_note_counts_readings_at_settled_sites():
    (note,) = reread(hovering(20, noise_variance=1e-6))
    assert note.startswith(
        "17 of 25 readings were taken at 1 site that earlier ones had settled, up to 20 at "
    )
    assert note.endswith("most_readings_per_site in [policy] limits them")


def test_readings_that_were_needed_are_not_counted():
    assert list(reread(hovering(20, noise_variance=100.0))) == []
    assert list(reread(hovering(3, noise_variance=1e-6))) == []


def test_a_site_far_from_the_threshold_is_settled():
    agent = fieldbo.Agent(noisy())
    for k in range(30):
        order = agent.issue(Query(agent.domain.sites[k % 2]))
        agent.tell(order.observed(np.array([5.0 - k % 2]), noise_variance=0.25))
    (note,) = reread(agent)
    assert note.startswith("24 of 30")


def test_it_holds_for_another_policy_too(tmp_path):
    settings = {"policy": {"kind": "straddle", "most_readings_per_site": 2}}
    text = toml_text(dict(fieldbo.load_mission("gp-lake", settings).settings))
    (tmp_path / "m.toml").write_text(text)
    other = fieldbo.load_mission(tmp_path / "m.toml", {"policy": {"kind": "gchk"}})
    assert (other.policy_kind, other.most_readings_per_site) == ("gchk", 2)
    more = {"policy": {"kind": "gchk", "most_readings_per_site": 5}}
    assert fieldbo.load_mission(tmp_path / "m.toml", more).most_readings_per_site == 5
