"""The contract of every policy, as tests to inherit."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from fieldbo.agent.agent import Agent
from fieldbo.messages import (
    Correction,
    EndReason,
    Event,
    Lost,
    Observation,
    Order,
    Query,
    Rejected,
    Stop,
    to_plain,
)
from fieldbo.mission.mission import Mission
from fieldbo.policies.choice import TIE
from fieldbo.policies.contract import Decision, Memory, Policy, State
from fieldbo.testing.small import Answer, carried_out, drive, plain_site, sites_of, small_mission, small_world
from fieldbo.vehicles.base import Simulated


@dataclass(frozen=True)
class _Watched(Policy):
    """A policy that routes each call through ``watch(call, state, *rest)``."""

    inner: Policy
    watch: Callable[..., Any]

    @property
    def answers(self) -> tuple[type, ...]:  # type: ignore[override]
        return self.inner.answers

    @property
    def costs(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.inner.costs

    @property
    def leaves_free(self) -> bool:  # type: ignore[override]
        return self.inner.leaves_free

    def start(self, state: State) -> Memory:
        return self.watch(self.inner.start, state)

    def suggest(self, state: State, memory: Memory) -> Decision:
        decision: Decision = self.watch(self.inner.suggest, state, memory)
        return decision

    def suggest_batch(self, state: State, memory: Memory, k: int) -> list[Decision] | None:
        decisions: list[Decision] | None = self.watch(self.inner.suggest_batch, state, memory, k)
        return decisions

    def observe(self, state: State, memory: Memory, event: Event) -> Memory:
        return self.watch(self.inner.observe, state, memory, event)


def _plain(answer: Any) -> Any:
    """Return a decision or a memory as nested lists and dicts."""
    if not isinstance(answer, Decision):
        return answer
    choice = answer.choice
    plain = choice.reason.value if isinstance(choice, Stop) else to_plain(choice)
    return [plain, answer.memory, dict(answer.why)]


def _text(answer: Any) -> str:
    return json.dumps(_plain(answer), sort_keys=True, default=repr)


def _snapshot(state: State) -> tuple[Any, ...]:
    """Return copies of everything in a state that a policy could change."""
    s = state.surface
    arrays = (s.mean, s.variance, s.covariance(), s.belief.weights, state.position, state.rejected)
    return (
        *(a.tobytes() for a in (*arrays, state.domain.sites)),
        s.belief.size,
        tuple(id(event) for event in state.history),
        tuple(id(query) for query in state.pending),
        (state.steps, state.remaining, state.spendable, state.threshold, state.time_s),
    )


def _whole(state: State, choice: Query) -> Any:
    """Return the point (d,) of a query, with free variables in the middle of their range."""
    return np.where(np.isnan(choice.site), state.domain.middle, choice.site)


class PolicyContract(ABC):
    """The contract of every policy. Override `policy`, and `mission` if the policy needs another one."""

    @abstractmethod
    def policy(self) -> Policy:
        """Return the policy to test; every call must return an equal one."""

    def mission(self, policy: Policy, **changes: Any) -> Mission:
        """Return the mission to test it on; `changes` are arguments of `small_mission`."""
        return small_mission(policy, **changes)

    def _watch(self, watch: Callable[..., Any], answer: Answer = carried_out, **changes: Any) -> int:
        """Run a mission with all calls watched; return the number of calls."""
        calls = 0

        def counted(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            nonlocal calls
            calls += 1
            return watch(call, state, *rest)

        drive(self.mission(_Watched(self.policy(), counted), **changes), answer)
        return calls

    def _collect_decisions(
        self, answer: Answer = carried_out, **changes: Any
    ) -> list[tuple[State, Decision]]:
        """Run a mission; return each decision with its state, and check that its site is valid."""
        decisions: list[tuple[State, Decision]] = []

        def watch(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            returned = call(state, *rest)
            if isinstance(returned, Decision):
                decisions.append((state, returned))
                choice = returned.choice
                if isinstance(choice, Query):
                    site = _whole(state, choice)
                    assert state.domain.contains(site[None])[0], f"{site.tolist()} is outside the domain"
                    affordable = state.affordable(site[None], choice.controls, choice.level)[0]
                    assert affordable, f"{site.tolist()} is not affordable"
            return returned

        self._watch(watch, answer, **changes)
        return decisions

    def test_it_is_a_frozen_value(self) -> None:
        """Settings can't be changed, and policies with equal settings are equal."""
        policy = self.policy()
        assert is_dataclass(policy), "a policy must be a frozen dataclass"
        assert policy == self.policy()
        assert hash(policy) == hash(self.policy())
        for name in [f.name for f in fields(policy)] or ["anything"]:
            try:
                setattr(policy, name, None)
            except (AttributeError, TypeError):
                continue
            raise AssertionError(f"{name} can be set: decorate the class with @dataclass(frozen=True)")

    def test_the_same_state_and_memory_give_the_same_answer(self) -> None:
        """Only the arguments matter; random numbers come from the state's stream."""

        def twice(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            first = call(replace(state), *deepcopy(rest))
            again = call(replace(state), *deepcopy(rest))
            assert _text(first) == _text(again), f"{call.__name__} returned two different answers"
            return first

        assert self._watch(twice) >= 3

    def test_it_does_not_change_the_state_or_the_memory(self) -> None:
        """Arrays of the agent are read-only for a policy."""

        def guarded(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            before, memory = _snapshot(state), _text(rest[0]) if rest else ""
            answer = call(state, *rest)
            assert _snapshot(state) == before, f"{call.__name__} changed the state"
            assert not rest or _text(rest[0]) == memory, f"{call.__name__} changed its memory argument"
            return answer

        assert self._watch(guarded) >= 3

    def test_memory_and_reasons_are_plain_data(self) -> None:
        """The record can hold them: no arrays, no tuples, no NaN."""

        def plain(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            answer = call(state, *rest)
            data = [answer.memory, dict(answer.why)] if isinstance(answer, Decision) else answer
            assert json.loads(json.dumps(data, allow_nan=False)) == data, f"{call.__name__}: {data}"
            return answer

        assert self._watch(plain) >= 3

    def test_a_memory_read_back_from_the_record_gives_the_same_path(self) -> None:
        """A resumed run continues like an uninterrupted one."""

        def restored(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            read_back = [json.loads(json.dumps(rest[0])), *rest[1:]] if rest else []
            return call(state, *read_back)

        _, orders, _ = drive(self.mission(self.policy()))
        _, again, _ = drive(self.mission(_Watched(self.policy(), restored)))
        assert sites_of(orders) == sites_of(again)

    def test_it_proposes_only_affordable_sites_inside_the_domain(self) -> None:
        """A site outside is an error; a site that is not affordable ends the run."""
        decisions = self._collect_decisions()
        assert any(isinstance(d.choice, Query) for _, d in decisions)

    def test_the_best_candidates_in_its_reasons_begin_with_its_choice(self) -> None:
        """If `why` has ``best``: up to three candidates in order of value, with correct cost and rest."""
        for state, decision in self._collect_decisions():
            best, choice = decision.why.get("best"), decision.choice
            if best is None or not isinstance(choice, Query):
                continue
            assert 1 <= len(best) <= 3, "expected up to three candidates"
            assert plain_site(best[0]["site"]) == plain_site(choice.site), "the first is not the choice"
            values = np.array([float(candidate["value"]) for candidate in best])
            tie = TIE * np.abs(values[:-1], where=np.isfinite(values[:-1]), out=np.zeros(len(values) - 1))
            assert np.all(values[1:] <= values[:-1] + tie), "the candidates are not in order of value"
            sites = np.array([candidate["site"] for candidate in best], dtype=float)
            distinct = {str(plain_site(site)) for site in sites}
            assert len(distinct) == len(best) or len(state.levels) > 1, "a site occurs twice"
            if state.cost is not None:
                for candidate, site, home in zip(best, sites, state.return_cost(sites), strict=True):
                    free = np.isnan(site)
                    level = candidate.get("level", choice.level)
                    price = state.cost.to(state.position, site[None], ~free if free.any() else None, level)
                    assert np.isclose(candidate["cost"], price[0]), "the cost is not the declared one"
                    assert np.isclose(candidate["left"], max(0.0, state.spendable - price[0] - home))

    def test_it_never_overdraws_the_battery_and_ends_at_home(self) -> None:
        """For any battery, with and without a home."""
        for battery in (1.0, 2.5, 7.0, 19.75):
            for home in (True, False):
                mission = self.mission(self.policy(), battery=battery, home=home)
                agent, _, _ = drive(mission)
                vehicle = agent.vehicles[0]
                assert vehicle.ledger.spent <= battery * (1 + 1e-12)
                assert not home or np.array_equal(vehicle.position, mission.vehicles[0].start)

    def test_it_stops_when_no_site_is_affordable(self) -> None:
        """And does not claim that the question is answered."""
        ((_, decision),) = self._collect_decisions(battery=0.5, initial=0)
        assert isinstance(decision.choice, Stop)
        assert decision.choice.reason is not EndReason.QUESTION_ANSWERED

    def test_every_mission_ends_with_an_end_reason(self) -> None:
        """After at least one order."""
        _, orders, stop = drive(self.mission(self.policy()))
        assert isinstance(stop.reason, EndReason)
        assert orders

    def test_a_rejected_site_is_not_proposed_again_and_the_mission_continues(self) -> None:
        """A rejection changes neither position nor battery, so the same site would be rejected for ever."""
        rejected: list[list[float | None]] = []

        def every_second(n: int, order: Order, vehicle: Simulated) -> Event:
            if n % 2 and isinstance(order, Query):
                rejected.append(plain_site(order.site))
                return Rejected(str(order.id), "shallow water")
            return carried_out(n, order, vehicle)

        _, orders, _ = drive(self.mission(self.policy()), every_second)
        assert rejected
        for n, order in enumerate(orders):
            if isinstance(order, Query):
                before = sites_of([o for k, o in enumerate(orders[:n]) if k % 2])
                assert plain_site(order.site) not in before, "a rejected site was proposed again"
        assert len(sites_of(orders)) > 2, "the mission ended with the first rejection"

    def test_it_stops_when_every_site_was_rejected(self) -> None:
        """And does not claim that the question is answered."""

        def reject(n: int, order: Order, vehicle: Simulated) -> Event:
            return Rejected(str(order.id), "no entry") if isinstance(order, Query) else Lost("", "")

        agent, orders, stop = drive(self.mission(self.policy()), reject)
        assert len(sites_of(orders)) <= agent.domain.size + 1
        assert stop.reason is not EndReason.QUESTION_ANSWERED
        assert agent.vehicles[0].ledger.spent == 0.0

    def test_it_continues_after_a_lost_order(self) -> None:
        """The cost of the lost order stays reserved; the rest of the battery can be used."""

        def third(n: int, order: Order, vehicle: Simulated) -> Event:
            return Lost(str(order.id), "no link") if n == 2 else carried_out(n, order, vehicle)

        agent, orders, _ = drive(self.mission(self.policy()), third)
        assert len(sites_of(orders)) > 3
        assert agent.vehicles[0].ledger.available >= -1e-9

    def test_it_tolerates_readings_that_are_nan(self) -> None:
        """A broken sensor does not end the mission."""

        def blind(n: int, order: Order, vehicle: Simulated) -> Event:
            event = carried_out(n, order, vehicle)
            if isinstance(event, Observation) and n % 3 != 0:
                return replace(event, values=np.full(len(event.values), np.nan))
            return event

        agent, orders, _ = drive(self.mission(self.policy()), blind)
        assert agent.left_out > 0
        assert len(sites_of(orders)) > agent.readings
        assert np.isfinite(agent.surface.mean).all()

    def test_it_continues_after_a_correction(self) -> None:
        """With the belief that the right reading would have given, and with plain data as its memory."""
        mission = self.mission(self.policy())
        agent, vehicle, n = Agent(mission), Simulated(mission), 0
        while not isinstance(order := agent.ask(), Stop):
            event = carried_out(n, order, vehicle)
            if n == 2 and isinstance(event, Observation) and len(event.values):
                agent.tell(replace(event, values=event.values + 1e4))
                agent.tell(Correction(event.order, event.part, event.values))
                assert json.loads(json.dumps(agent.memory)) == agent.memory
            else:
                agent.tell(event)
            n += 1
        assert n > 3
        read = [e.values for e in agent.history if isinstance(e, Observation)]
        assert max(np.abs(np.concatenate(read))) < 1e3
        assert np.abs(agent.hyperparameters.scale.to_user(agent.surface.mean)).max() < 1e3

    def test_the_same_seed_gives_the_same_path(self) -> None:
        """Bit by bit."""
        _, orders, stop = drive(self.mission(self.policy(), seed=3))
        _, again, stop_again = drive(self.mission(self.policy(), seed=3))
        assert sites_of(orders) == sites_of(again)
        assert stop == stop_again

    def test_a_batch_is_affordable_as_a_whole(self) -> None:
        """Outstanding orders count in the ledger, and the trip home starts at the last of them."""
        mission = self.mission(self.policy(), battery=14.0)
        agent = Agent(mission)
        orders = agent.ask_batch(6)
        assert orders
        assert agent.vehicles[0].ledger.available >= -1e-9
        vehicle = Simulated(mission)
        for n, order in enumerate(orders):
            agent.tell(carried_out(n, order, vehicle))
        assert agent.vehicles[0].ledger.spent <= 14.0 + 1e-9

    def test_it_works_on_a_domain_of_a_single_site(self) -> None:
        """Scores and bounds exist there, too."""
        world = small_world((1, 1))
        for initial in (0, 1):
            _, orders, _ = drive(self.mission(self.policy(), world=world, battery=5.0, initial=initial))
            assert sites_of(orders)


class UnknownCostContract(PolicyContract):
    """The contract of a policy for unknown costs: only the last query may overdraw the battery."""

    def test_it_never_overdraws_the_battery_and_ends_at_home(self) -> None:
        """No query is issued whose estimated cost exceeds what is left."""
        for battery in (1.0, 2.5, 7.0):
            agent, orders, _ = drive(self.mission(self.policy(), battery=battery))
            entries = [*agent.vehicles[0].ledger.entries.values()]
            assert orders
            assert sum(e.spent for e in entries[:-1]) < battery
            left = battery
            for entry in entries:
                assert not entry.planned > left + 1e-12
                left -= entry.spent

    def test_it_stops_when_no_site_is_affordable(self) -> None:
        """It learns so from its first queries."""
        _, orders, stop = drive(self.mission(self.policy(), battery=0.3, initial=0))
        assert len(orders) <= 2
        assert stop.reason is not EndReason.QUESTION_ANSWERED

    def test_a_batch_is_affordable_as_a_whole(self) -> None:
        """As far as costs are known."""
        agent = Agent(self.mission(self.policy(), battery=14.0))
        assert agent.ask_batch(6)
        assert agent.vehicles[0].ledger.available >= -1e-9
