"""What every policy keeps to."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from fieldbo.agent.agent import Agent
from fieldbo.messages import EndReason, Event, Lost, Observation, Order, Query, Rejected, Stop, to_plain
from fieldbo.mission.mission import Mission
from fieldbo.policies.choice import TIE
from fieldbo.policies.contract import Decision, Memory, Policy, State
from fieldbo.testing.small import Answer, carried_out, drive, sites_of, small_mission, small_world
from fieldbo.vehicles.simulated import Simulated


@dataclass(frozen=True)
class _Watched(Policy):
    """A policy whose every call goes through `watch(call, state, *rest)`."""

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
    told = choice.reason.value if isinstance(choice, Stop) else to_plain(choice)
    return [told, answer.memory, dict(answer.why)]


def _text(answer: Any) -> str:
    return json.dumps(_plain(answer), sort_keys=True, default=repr)


def _snapshot(state: State) -> tuple[Any, ...]:
    """Return copies of everything in a state that a policy could spoil."""
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
    """Return the point (d,) of a query, what it leaves free in the middle."""
    return np.where(np.isnan(choice.site), state.domain.middle, choice.site)


def _told(site: Any) -> list[float | None]:
    """Return a site as a list, None for what is left free."""
    return [None if x is None or np.isnan(x) else float(x) for x in site]


class PolicyContract(ABC):
    """What every policy keeps to. Override `policy`; `mission` where it needs another one."""

    @abstractmethod
    def policy(self) -> Policy:
        """Return the policy to be tested; each call an equal one."""

    def mission(self, policy: Policy, **changes: Any) -> Mission:
        """Return the mission it is tested on; `changes` are those of `small_mission`."""
        return small_mission(policy, **changes)

    def _watched(self, watch: Callable[..., Any], answer: Answer = carried_out, **changes: Any) -> int:
        """Run a mission with all calls watched; return how many there were."""
        calls = 0

        def counted(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            nonlocal calls
            calls += 1
            return watch(call, state, *rest)

        drive(self.mission(_Watched(self.policy(), counted), **changes), answer)
        return calls

    def _decisions(self, answer: Answer = carried_out, **changes: Any) -> list[tuple[State, Decision]]:
        found: list[tuple[State, Decision]] = []

        def watch(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            given = call(state, *rest)
            if isinstance(given, Decision):
                found.append((state, given))
                if isinstance(given.choice, Query):
                    site = _whole(state, given.choice)
                    assert state.domain.contains(site[None])[0], f"{site.tolist()} is outside the domain"
                    able = state.affordable(site[None], given.choice.controls, given.choice.level)[0]
                    assert able, f"{site.tolist()} can't be paid for"
            return given

        self._watched(watch, answer, **changes)
        return found

    def test_it_is_a_frozen_value(self) -> None:
        """Settings can't be changed, and equal settings are equal policies."""
        policy = self.policy()
        assert is_dataclass(policy), "a policy is a frozen dataclass"
        assert policy == self.policy()
        assert hash(policy) == hash(self.policy())
        for name in [f.name for f in fields(policy)] or ["anything"]:
            try:
                setattr(policy, name, None)
            except (AttributeError, TypeError):
                continue
            raise AssertionError(f"{name} can be set: make it @dataclass(frozen=True)")

    def test_the_same_state_and_memory_give_the_same_answer(self) -> None:
        """Nothing but the arguments decides; draws come from the state's own stream."""

        def twice(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            first = call(replace(state), *deepcopy(rest))
            again = call(replace(state), *deepcopy(rest))
            assert _text(first) == _text(again), f"{call.__name__} answered twice, differently"
            return first

        assert self._watched(twice) >= 3

    def test_it_leaves_the_state_and_the_memory_as_they_were(self) -> None:
        """A working buffer of the agent is not the policy's to write to."""

        def guarded(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            before, memory = _snapshot(state), _text(rest[0]) if rest else ""
            answer = call(state, *rest)
            assert _snapshot(state) == before, f"{call.__name__} changed the state"
            assert not rest or _text(rest[0]) == memory, f"{call.__name__} changed the memory it was given"
            return answer

        assert self._watched(guarded) >= 3

    def test_memory_and_reasons_are_plain_data(self) -> None:
        """What is recorded reads back equal: no arrays, no tuples, no NaN."""

        def plain(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            answer = call(state, *rest)
            told = [answer.memory, dict(answer.why)] if isinstance(answer, Decision) else answer
            assert json.loads(json.dumps(told, allow_nan=False)) == told, f"{call.__name__}: {told}"
            return answer

        assert self._watched(plain) >= 3

    def test_a_memory_read_back_from_the_record_gives_the_same_path(self) -> None:
        """A resumed run goes on as an unbroken one would."""

        def restored(call: Callable[..., Any], state: State, *rest: Any) -> Any:
            read_back = [json.loads(json.dumps(rest[0])), *rest[1:]] if rest else []
            return call(state, *read_back)

        _, orders, _ = drive(self.mission(self.policy()))
        _, again, _ = drive(self.mission(_Watched(self.policy(), restored)))
        assert sites_of(orders) == sites_of(again)

    def test_it_proposes_only_sites_of_the_domain_that_can_be_paid_for(self) -> None:
        """The agent refuses the first and ends the run at the second."""
        decisions = self._decisions()
        assert any(isinstance(d.choice, Query) for _, d in decisions)

    def test_the_best_sites_that_it_tells_of_begin_with_its_choice(self) -> None:
        """Where its reasons hold ``best``: up to three, the best first, with what each costs and leaves."""
        for state, decision in self._decisions():
            told, choice = decision.why.get("best"), decision.choice
            if told is None or not isinstance(choice, Query):
                continue
            assert 1 <= len(told) <= 3, "up to three are told of"
            assert _told(told[0]["site"]) == _told(choice.site), "the first of the best is not the choice"
            values = np.array([float(one["value"]) for one in told])
            tie = TIE * np.abs(values[:-1], where=np.isfinite(values[:-1]), out=np.zeros(len(values) - 1))
            assert np.all(values[1:] <= values[:-1] + tie), "the best are not in order"
            sites = np.array([one["site"] for one in told], dtype=float)
            assert len({str(_told(site)) for site in sites}) == len(told) or len(state.levels) > 1, (
                "a site is told of twice"
            )
            if state.cost is not None:
                for one, site, home in zip(told, sites, state.return_cost(sites), strict=True):
                    free = np.isnan(site)
                    level = one.get("level", choice.level)
                    price = state.cost.to(state.position, site[None], ~free if free.any() else None, level)
                    assert np.isclose(one["cost"], price[0]), "the cost is not the declared one"
                    assert np.isclose(one["left"], max(0.0, state.spendable - price[0] - home))

    def test_it_never_overdraws_and_comes_home(self) -> None:
        """Whatever the battery, with and without a home."""
        for battery in (1.0, 2.5, 7.0, 19.75):
            for home in (True, False):
                mission = self.mission(self.policy(), battery=battery, home=home)
                agent, _, _ = drive(mission)
                craft = agent.vehicles[0]
                assert craft.ledger.spent <= battery * (1 + 1e-12)
                assert not home or np.array_equal(craft.position, mission.vehicles[0].start)

    def test_it_stops_when_nothing_can_be_paid_for(self) -> None:
        """And does not call that an answer."""
        ((_, decision),) = self._decisions(battery=0.5, initial=0)
        assert isinstance(decision.choice, Stop)
        assert decision.choice.reason is not EndReason.QUESTION_ANSWERED

    def test_it_ends_for_a_reason_of_the_closed_list(self) -> None:
        """Every mission ends, and says why."""
        _, orders, stop = drive(self.mission(self.policy()))
        assert isinstance(stop.reason, EndReason)
        assert orders

    def test_a_rejected_site_is_not_proposed_again_and_the_mission_goes_on(self) -> None:
        """Nothing moved and nothing was paid: the same site would be refused for ever."""
        refused: list[list[float | None]] = []

        def every_second(n: int, order: Order, vehicle: Simulated) -> Event:
            if n % 2 and isinstance(order, Query):
                refused.append(_told(order.site))
                return Rejected(str(order.id), "shallow water")
            return carried_out(n, order, vehicle)

        _, orders, _ = drive(self.mission(self.policy()), every_second)
        assert refused
        for n, order in enumerate(orders):
            if isinstance(order, Query):
                before = sites_of([o for k, o in enumerate(orders[:n]) if k % 2])
                assert _told(order.site) not in before, "a rejected site was proposed again"
        assert len(sites_of(orders)) > 2, "the mission ended with the first rejection"

    def test_it_stops_when_every_site_was_rejected(self) -> None:
        """And does not call that an answer."""

        def refuse(n: int, order: Order, vehicle: Simulated) -> Event:
            return Rejected(str(order.id), "no entry") if isinstance(order, Query) else Lost("", "")

        agent, orders, stop = drive(self.mission(self.policy()), refuse)
        assert len(sites_of(orders)) <= agent.domain.size + 1
        assert stop.reason is not EndReason.QUESTION_ANSWERED
        assert agent.vehicles[0].ledger.spent == 0.0

    def test_it_goes_on_after_an_order_was_lost(self) -> None:
        """Its cost stays reserved, and the rest of the battery is still there to be used."""

        def third(n: int, order: Order, vehicle: Simulated) -> Event:
            return Lost(str(order.id), "no link") if n == 2 else carried_out(n, order, vehicle)

        agent, orders, _ = drive(self.mission(self.policy()), third)
        assert len(sites_of(orders)) > 3
        assert agent.vehicles[0].ledger.available >= -1e-9

    def test_it_copes_with_readings_that_are_no_numbers(self) -> None:
        """A broken sensor costs readings, not the mission."""

        def blind(n: int, order: Order, vehicle: Simulated) -> Event:
            event = carried_out(n, order, vehicle)
            if isinstance(event, Observation) and n % 3 != 0:
                return replace(event, values=np.full(len(event.values), np.nan))
            return event

        agent, orders, _ = drive(self.mission(self.policy()), blind)
        assert agent.left_out > 0
        assert len(sites_of(orders)) > agent.readings
        assert np.isfinite(agent.surface.mean).all()

    def test_the_same_seed_gives_the_same_path(self) -> None:
        """To the last digit."""
        _, orders, stop = drive(self.mission(self.policy(), seed=3))
        _, again, stop_again = drive(self.mission(self.policy(), seed=3))
        assert sites_of(orders) == sites_of(again)
        assert stop == stop_again

    def test_a_batch_can_be_paid_for_as_a_whole(self) -> None:
        """Orders that are out count in the ledger, and the way home is from the last of them."""
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
        """Scores and bounds have to exist there, too."""
        world = small_world((1, 1))
        for initial in (0, 1):
            _, orders, _ = drive(self.mission(self.policy(), world=world, battery=5.0, initial=initial))
            assert sites_of(orders)


class UnknownCostContract(PolicyContract):
    """What a policy keeps to beside that, where costs are not known: only the last query may overdraw."""

    def test_it_never_overdraws_and_comes_home(self) -> None:
        """Nothing leaves that is expected to cost more than is left."""
        for battery in (1.0, 2.5, 7.0):
            agent, orders, _ = drive(self.mission(self.policy(), battery=battery))
            entries = [*agent.vehicles[0].ledger.entries.values()]
            assert orders
            assert sum(e.spent for e in entries[:-1]) < battery
            left = battery
            for entry in entries:
                assert not entry.planned > left + 1e-12
                left -= entry.spent

    def test_it_stops_when_nothing_can_be_paid_for(self) -> None:
        """Nothing is known to be too dear before it was tried, and afterwards it is."""
        _, orders, stop = drive(self.mission(self.policy(), battery=0.3, initial=0))
        assert len(orders) <= 2
        assert stop.reason is not EndReason.QUESTION_ANSWERED

    def test_a_batch_can_be_paid_for_as_a_whole(self) -> None:
        """As far as can be expected."""
        agent = Agent(self.mission(self.policy(), battery=14.0))
        assert agent.ask_batch(6)
        assert agent.vehicles[0].ledger.available >= -1e-9
