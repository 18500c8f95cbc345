"""LaMBO: its choices, its memory, and how its arms develop on a small chain of modules."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pytest

from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.agent.agent import Agent
from fieldbo.belief.model import Model
from fieldbo.belief.question import LevelSet, Optimum
from fieldbo.costs.cells import Modular, Module
from fieldbo.costs.travel import Euclidean
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.sensor import Sensor
from fieldbo.errors import InputError
from fieldbo.messages import EndReason, Lost, Query, Rejected, Stop
from fieldbo.mission.kinds import POLICIES
from fieldbo.mission.mission import Mission
from fieldbo.mission.vehicle_spec import VehicleSpec
from fieldbo.policies.chains.bandit import BanditState, arms_of
from fieldbo.policies.chains.lambo import LaMBO
from fieldbo.policies.contract import Policy
from fieldbo.testing import PolicyContract, drive, small_world
from fieldbo.testing.small import carried_out
from fieldbo.vehicles.base import Simulated
from fieldbo.world.fields.base import Field
from fieldbo.world.world import Quantity, World

AXES = [Axis("a", "m", 0.0, 4.0), Axis("b", "", -1.0, 1.0), Axis("c", "s", 0.0, 1.0), Axis("e", "", 0.0, 1.0)]
BEST = np.array([3.0, 0.5, 0.2, 0.8])


class Bowl(Field):
    """The squared distance to `BEST`, in shares of the axes' lengths."""

    def values(self, sites, time_s=0.0):
        extent = np.array([axis.extent for axis in AXES])
        return np.sum(((np.atleast_2d(sites) - BEST) / extent) ** 2, axis=1)


def chain(prices=(40.0, 10.0, 1.0), charge_last=True):
    """Three modules: the first has two of four axes, and not the first two."""
    axes = (("b", "c"), ("a",), ("e",))
    modules = tuple(Module(n, x, c) for n, x, c in zip(("heat", "press", "cool"), axes, prices, strict=True))
    return Modular(modules=modules, charge_last=charge_last)


def chain_world(cost=None, noise_sd=0.01, representers=64):
    domain = Domain.box(AXES, representers)
    cost = chain() if cost is None else cost
    return World(
        name="chain",
        title="A chain of three modules",
        domain=domain,
        cost=cost.within(domain),
        cost_unit="EUR",
        sensor=Sensor(noise_sd),
        quantity=Quantity("error", ""),
        field=Bowl(),
    )


def chain_mission(policy=None, *, world=None, battery=600.0, home=False, initial=6, seed=0):
    world = chain_world() if world is None else world
    start = world.domain.sites[0]
    return Mission(
        name="chain",
        world=world,
        question=Optimum("minimise"),
        policy=LaMBO() if policy is None else policy,
        model=Model(kernel="se", learn=False, mean=0.5),
        vehicles=(VehicleSpec(battery, start, home=start if home else None),),
        initial=initial,
        seed=seed,
    )


@pytest.mark.sweep  # one setting is among those of test_contracts
class TestLaMBOKeepsTheContract(PolicyContract):
    @pytest.fixture(
        autouse=True,
        params=[
            LaMBO(candidates=128),
            LaMBO(candidates=128, depths=(3, 1), cells=3, restart=4, drop=0.9, drop_after=2, deepen=3),
            LaMBO(candidates=64, depths="eq20", climbs=1, value_scale=0.3),
        ],
        ids=["default", "busy", "recipe"],
    )
    def settings(self, request):
        self.chosen = request.param

    def policy(self):
        return type(self.chosen)(**vars(self.chosen))

    def mission(self, policy, **changes):
        """Costs are such that the suite's least battery, of 0.5, does not pay for a single sample."""
        single = changes.pop("world", None) is not None
        world = chain_world(chain((0.6, 0.3, 0.6)), representers=1 if single else 24)
        return chain_mission(policy, world=world, **{"battery": 8.0, "home": True, "initial": 1, **changes})


# -- what it is refused for ------------------------------------------------------------------------------


def test_it_is_registered_and_answers_only_questions_for_an_optimum():
    assert POLICIES.get("lambo") is LaMBO
    with pytest.raises(InputError):
        replace(chain_mission(), question=LevelSet(0.3))


@pytest.mark.parametrize(
    ("world", "told"),
    [
        (small_world(), "costs of kind euclidean"),
        (replace(chain_world(), cost=Euclidean(rate=1.0).within(chain_world().domain)), "modular"),
        (
            replace(
                chain_world(),
                cost=Modular(modules=(Module("all", ("a", "b", "c", "e"), 1.0),)).within(
                    chain_world().domain
                ),
            ),
            "at least two modules",
        ),
    ],
    ids=["grid", "other costs", "one module"],
)
def test_it_needs_a_chain_of_modules_over_a_box(world, told):
    with pytest.raises(InputError, match=told):
        LaMBO().check(world.cost, world.domain)


def test_it_needs_a_box():
    grid = Domain.grid(AXES, (3, 3, 3, 3))
    with pytest.raises(InputError, match="continuous"):
        LaMBO().check(chain().within(grid), grid)


def test_it_needs_declared_costs():
    with pytest.raises(InputError, match="unknown costs"):
        LaMBO().check(None, chain_world().domain)


@pytest.mark.parametrize("depths", [(1,), (1, 2, 3)])
def test_depths_are_one_for_each_module_but_the_last(depths):
    with pytest.raises(InputError, match="one for each module but the last"):
        LaMBO(depths=depths).check(chain_world().cost, chain_world().domain)


@pytest.mark.parametrize(
    "wrong",
    [
        {"eta": 0.0},
        {"eta": np.nan},
        {"lam": -1.0},
        {"value_scale": 0.0},
        {"restart": 0},
        {"cells": 0},
        {"refinements": -1},
        {"deepen": -1},
        {"drop": 1.0},
        {"drop_after": 0},
        {"candidates": 0},
        {"climbs": 0},
        {"depths": (0, 1)},
        {"horizon": 0},
    ],
    ids=str,
)
def test_settings_out_of_range_are_rejected(wrong):
    with pytest.raises(InputError):
        LaMBO(**wrong)


# -- runs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Watched(Policy):
    """LaMBO, with each state, memory and decision kept."""

    inner: LaMBO = field(default_factory=LaMBO)
    kept: list = field(default_factory=list, hash=False)

    answers = LaMBO.answers

    def suggest(self, state, memory):
        spendable = state.spendable

        def affordable(sites, controls=None, level=0, position=None, spent=0.0):
            """Say so as of now, whatever is spent later."""
            return state.cost.to(state.position, sites) <= spendable

        kept = replace(state, surface=state.surface.copy(), affordable=affordable)
        decision = self.inner.suggest(state, memory)
        self.kept.append((kept, memory, decision))
        return decision

    def observe(self, state, memory, event):
        return self.inner.observe(state, memory, event)


@cache
def watched_run(inner=None, answer=carried_out, **changes):
    policy = Watched(LaMBO(candidates=200) if inner is None else inner)
    agent, orders, stop = drive(chain_mission(policy, **changes), answer)
    return agent, orders, stop, tuple(policy.kept)


def steps_of(kept):
    """Return (state, memory before, memory after, site) of each step."""
    return [
        (state, before, decision.memory, decision.choice.site)
        for state, before, decision in kept
        if isinstance(decision.choice, Query)
    ]


def test_modules_before_the_first_changed_region_keep_their_values_exactly():
    _, _, _, kept = watched_run(battery=600.0)
    seen = set()
    for state, before, after, site in steps_of(kept)[1:]:
        if before["arm"] is None or after["arm"] is None or before["cells"] != after["cells"]:
            continue  # cells were bisected, or no arm could be paid for
        old, new = before["arms"][before["arm"]], after["arms"][after["arm"]]
        first = next((m for m in range(2) if old[m] != new[m]), 2)
        seen.add(first)
        for own in state.cost.columns[:first]:
            np.testing.assert_array_equal(site[list(own)], state.position[list(own)])
        assert state.cost.to(state.position, site[None])[0] <= [51.0, 11.0, 1.0][first]
    assert seen == {0, 1, 2}


def test_a_point_lies_in_the_regions_of_its_arm():
    _, _, _, kept = watched_run(battery=600.0)
    for state, _, after, site in steps_of(kept):
        for m, k in enumerate(after["arms"][after["arm"]] if after["arm"] is not None else []):
            low, high = np.array(after["cells"][m][k])
            place = site[list(state.cost.columns[m])]
            assert np.all((low <= place) & (place <= high))


def test_the_first_step_moves_every_module_and_most_later_ones_only_the_last():
    _, _, _, kept = watched_run(battery=600.0)
    changes = [decision.why["changes"] for _, _, decision in kept if isinstance(decision.choice, Query)]
    assert changes[0] == "heat, press, cool"
    assert changes.count("cool") > 0.5 * len(changes)
    assert changes.count("heat, press, cool") < 0.2 * len(changes)


@pytest.mark.slow  # test_arms guards it without a run
def test_deeper_trees_move_early_modules_more_rarely():
    def share(depths):
        policy = LaMBO(candidates=64, climbs=1, depths=depths, deepen=0, refinements=0, eta=1e-9)
        _, _, _, kept = watched_run(policy, battery=480.0)
        changes = [d.why["changes"] for _, _, d in kept if isinstance(d.choice, Query)]
        return np.mean([c.startswith("heat") for c in changes])

    assert share((5, 1)) < 0.6 * share((1, 1))


def test_it_finds_the_minimum_of_a_bowl():
    agent, orders, stop, _ = watched_run(battery=600.0)
    assert stop.reason is EndReason.BATTERY_SPENT
    truth = agent.mission.world.truth(np.stack([o.site for o in orders if isinstance(o, Query)]))
    assert truth.min() < 0.5 * truth[:6].min()


def test_the_battery_is_spent_until_nothing_is_affordable():
    agent, _, stop, kept = watched_run(battery=600.0)
    assert stop.reason is EndReason.BATTERY_SPENT
    assert agent.spent <= 600.0
    assert agent.spent > 598.0  # the last module's samples cost 1 each
    last, memory, decision = kept[-1]
    assert isinstance(decision.choice, Stop)
    assert decision.memory == memory
    assert last.spendable < 1.0


@on_one_blas_thread  # as agents ask: sums over several threads may differ in rounding
def test_the_same_state_and_memory_give_the_same_decision():
    _, _, _, kept = watched_run(battery=600.0)
    for state, memory, decision in kept[3:30:9]:
        again = LaMBO(candidates=200).suggest(replace(state), memory)
        assert again.memory == decision.memory
        assert again.why == decision.why
        np.testing.assert_array_equal(again.choice.site, decision.choice.site)


def test_the_memory_survives_being_written_and_read():
    told = BanditState.over([np.array([[[0.0], [1.0]], [[1.0], [2.0]]])], arms_of([2]), (1,), 2.5)
    plain = told.to_plain()
    assert BanditState.from_plain(plain).to_plain() == plain
    assert plain["h"] == 1
    np.testing.assert_allclose(plain["log_p"], np.log(0.5))


def test_losses_are_in_units_of_the_range_of_the_first_readings_by_default():
    _, _, _, kept = watched_run(battery=600.0)
    state, _, decision = kept[0]
    values = np.concatenate([event.values for event in state.history])
    assert decision.memory["value_scale"] == pytest.approx(np.ptp(values))
    assert kept[-1][1]["value_scale"] == decision.memory["value_scale"]
    told = LaMBO(candidates=200, value_scale=7.0).suggest(replace(state), None)
    assert told.memory["value_scale"] == 7.0


def test_without_a_reading_losses_are_in_units_of_the_prior():
    _, _, _, kept = watched_run(battery=120.0, initial=0)
    assert kept[0][2].memory["value_scale"] == pytest.approx(1.0)


# -- restart, refinement, depths -------------------------------------------------------------------------


def turned(policy, state, memory):
    return policy._maintain(state, BanditState.from_plain(memory))


def a_memory(**changes):
    """Four arms, halves of the axes c and a; the system stands in the first of them."""
    _, _, _, kept = watched_run(LaMBO(candidates=64), battery=450.0)
    state, memory, _ = kept[8]
    cells = [[[[-1.0, 0.0], [1.0, 0.5]], [[-1.0, 0.5], [1.0, 1.0]]], [[[0.0], [2.0]], [[2.0], [4.0]]]]
    plain = {**memory, "cells": cells, "arms": [[0, 0], [0, 1], [1, 0], [1, 1]], "arm": 0, "h": 1}
    plain.update(log_p=np.log([0.7, 0.1, 0.1, 0.1]).tolist(), below=[0] * 4, depths=[1, 1], moves=0, step=7)
    position = np.array([1.0, 0.3, 0.2, 0.9])
    return replace(state, position=position), {**plain, "refinements": 0, **changes}


def test_a_restart_makes_arms_equally_probable_and_keeps_arm_height_and_depth():
    state, memory = a_memory(step=50, below=[0, 3, 0, 9], depths=[4, 1], h=3)
    after = turned(LaMBO(), state, memory)
    np.testing.assert_allclose(np.exp(after.log_p), 0.25)
    assert after.below.tolist() == [0, 0, 0, 0]
    assert (after.arm, after.h, after.depths, after.step) == (0, 3, (4, 1), 50)
    assert after.refinements == 0
    same = turned(LaMBO(), state, {**memory, "step": 51})
    assert same.log_p.tolist() == memory["log_p"]


def test_arms_restart_periodically():
    _, _, _, kept = watched_run(LaMBO(candidates=64, climbs=1, restart=5, refinements=0), battery=450.0)
    alike = [
        decision.why["probability"] == pytest.approx(0.25)
        for _, _, decision in kept
        if isinstance(decision.choice, Query) and "probability" in decision.why
    ]
    assert len(alike) > 12
    assert all(alike[::5])
    assert not all(alike)


def test_a_refinement_bisects_surviving_regions_and_keeps_the_present_arm():
    state, memory = a_memory(below=[0, 10, 10, 9], h=2, depths=[3, 1], moves=2)
    after = turned(LaMBO(), state, memory)
    assert len(after.arms) == 8  # arms 0 and 3 survive; each has 2 x 2 halves
    assert after.arms.tolist() == sorted(after.arms.tolist())
    np.testing.assert_allclose(np.exp(after.log_p), 1 / 8)
    assert after.below.tolist() == [0] * 8
    assert (after.h, after.depths, after.refinements) == (2, (3, 1), 1)
    assert after.arm is not None
    for m, own in enumerate([(1, 2), (0,)]):
        low, high = after.regions[m][after.arms[after.arm, m]]
        place = state.position[list(own)]
        assert np.all((low <= place) & (place <= high))
    # the longest side is in shares of the axes: b is whole, c was halved
    assert after.regions[0][0].tolist() == [[-1.0, 0.0], [0.0, 0.5]]


def test_after_its_arm_is_dropped_the_next_step_moves_every_module():
    state, memory = a_memory(below=[10, 0, 0, 0])
    assert turned(LaMBO(), state, memory).arm is None
    decision = LaMBO(candidates=200).suggest(replace(state), memory)
    assert decision.why["changes"] == "heat, press, cool"
    assert decision.why["arms"] == 12


def test_no_arm_is_dropped_after_the_last_refinement():
    state, memory = a_memory(below=[0, 10, 10, 10], refinements=2)
    after = turned(LaMBO(), state, memory)
    assert len(after.arms) == 4
    assert after.refinements == 2


def test_the_depth_of_the_first_module_grows_after_frequent_changes():
    for moves, deeper in ((5, 1), (6, 2)):
        state, memory = a_memory(step=40, moves=moves)
        after = turned(LaMBO(), state, memory)
        assert after.depths == (deeper, 1)
        assert after.moves == 0
    state, memory = a_memory(step=41, moves=9)
    assert turned(LaMBO(), state, memory).depths == (1, 1)
    state, memory = a_memory(step=40, moves=9)
    assert turned(LaMBO(deepen=0), state, memory).depths == (1, 1)


def test_in_a_run_regions_are_refined_at_most_twice_and_depth_only_grows():
    policy = LaMBO(candidates=8, climbs=1, value_scale=0.05)
    _, _, _, kept = watched_run(policy, battery=480.0)
    memories = [after for _, _, after, _ in steps_of(kept)]
    refinements = [m["refinements"] for m in memories]
    assert refinements == sorted(refinements)
    assert refinements[-1] == 2
    depths = [m["depths"][0] for m in memories]
    assert depths == sorted(depths)
    for memory in memories:
        assert np.logaddexp.reduce(memory["log_p"]) == pytest.approx(0.0, abs=1e-9)


# -- queries that come to nothing ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("fate", [Rejected, Lost])
def test_after_a_failed_query_it_continues_from_the_present_position(fate):
    def every_third(n, order, vehicle):
        if isinstance(order, Query) and n > 8 and n % 3 == 0:
            return fate(str(order.id), "no")
        return carried_out(n, order, vehicle)

    _, _, _, kept = watched_run(answer=every_third, battery=600.0)
    for state, before, after, site in steps_of(kept)[1:]:
        first = int(state.cost.first_changed(state.position, site[None])[0])
        for own in state.cost.columns[:first]:
            np.testing.assert_array_equal(site[list(own)], state.position[list(own)])
        if before["cells"] == after["cells"] and after["arm"] is not None:
            held = BanditState.from_plain(before).current_arm(state.cost.columns, state.position)
            if held is not None and after["arms"][after["arm"]] == before["arms"][held]:
                assert first == 2  # its cells are the same: only the last module moves


def test_a_rejected_change_of_the_first_module_is_not_counted():
    state, memory = a_memory(moves=3, moved=True)
    event = Rejected("chain/9", "no")
    after = LaMBO().observe(state, memory, event)
    assert (after["moves"], after["moved"]) == (2, False)
    assert LaMBO().observe(state, after, event) == after
    assert LaMBO().observe(state, {**memory, "moved": False}, event)["moves"] == 3
    assert LaMBO().observe(state, None, event) is None


def test_the_arm_follows_a_system_that_was_moved():
    state, memory = a_memory(arm=0)
    told = BanditState.from_plain(memory)
    columns = state.cost.columns
    assert told.current_arm(columns, state.position) == 0
    assert told.current_arm(columns, np.array([3.0, 0.3, 0.8, 0.9])) == 3
    assert told.current_arm(columns, np.array([2.0, 0.3, 0.5, 0.9])) == 0  # cells are closed: the arm stays
    assert replace(told, arm=None).current_arm(columns, state.position) is None


# -- what it says ----------------------------------------------------------------------------------------


def test_its_reasons_contain_arm_regions_probability_and_cost():
    _, _, _, kept = watched_run(battery=600.0)
    for state, _, decision in kept[:-1]:
        why = decision.why
        if "cells" not in why:
            continue  # no arm could be paid for
        assert why["cells"].startswith("heat: ")
        assert 0.0 < why["probability"] <= 1.0
        assert 0.0 < why["probability_near"] <= 1.0 + 1e-12
        assert why["moving"] == state.cost.travel(state.position, decision.choice.site[None])[0]
        assert why["best"][0]["site"] == decision.choice.site.tolist()
        assert len(why["losses"].split(", ")) == min(3, why["arms"])


def test_only_affordable_points_are_chosen():
    _, _, _, kept = watched_run(battery=600.0)
    state, memory, _ = kept[5]
    for least, allowed in ((1.0, {"cool"}), (11.0, {"cool", "press, cool"})):
        prices = []

        def affordable(sites, controls=None, level=0, position=None, spent=0.0, least=least):
            return state.cost.to(state.position, sites) <= least

        for draw in range(8):
            rng = np.random.default_rng(draw)
            poor = replace(state, affordable=affordable, draw=lambda rng=rng: rng)
            decision = LaMBO(candidates=64, climbs=1).suggest(poor, {**memory, "h": sum(memory["depths"])})
            prices.append(decision.why["changes"])
        assert set(prices) <= allowed


def test_if_no_arm_is_affordable_only_late_modules_move():
    state, memory = a_memory(below=[10, 0, 0, 0])  # its arm is dropped: any other would move all

    def affordable(sites, controls=None, level=0, position=None, spent=0.0):
        return state.cost.to(state.position, sites) <= 12.0

    decision = LaMBO(candidates=200).suggest(replace(state, affordable=affordable), memory)
    assert decision.why["changes"] in {"press, cool", "cool"}
    np.testing.assert_array_equal(decision.choice.site[[1, 2]], state.position[[1, 2]])
    assert decision.memory["arm"] is None
    assert decision.memory["step"] == memory["step"] + 1


def test_a_decision_uses_the_part_of_a_region_that_was_not_rejected():
    state, memory = a_memory()
    nearest = np.array([state.domain.nearest(site) for site in state.domain.sites])
    rejected = np.isin(np.arange(state.domain.size), nearest[state.domain.sites[:, 0] > 2.0])
    for draw in range(4):
        rng = np.random.default_rng(draw)
        decision = LaMBO(candidates=200).suggest(
            replace(state, rejected=rejected, draw=lambda rng=rng: rng), {**memory, "h": 2}
        )
        assert not rejected[state.domain.nearest(decision.choice.site)]


def test_a_simulated_run_is_reproducible():
    mission = chain_mission(LaMBO(candidates=64), battery=450.0, seed=3)
    runs = []
    for _ in range(2):
        agent, vehicle, sites = Agent(mission), Simulated(mission), []
        while isinstance(order := agent.ask(), Query):
            sites.append(order.site.tolist())
            agent.tell(carried_out(0, order, vehicle))
        runs.append(sites)
    assert runs[0] == runs[1]
