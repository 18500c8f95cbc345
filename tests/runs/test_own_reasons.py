"""A policy of somebody else's may give any reasons: orders are explained, whatever they are."""

import math
from dataclasses import dataclass, field, replace

import pytest

from fieldbo.agent.agent import Agent
from fieldbo.policies.choice import best_affordable
from fieldbo.policies.contract import Policy
from fieldbo.runs.explain import details
from fieldbo.runs.reasons import best_of
from fieldbo.testing import small_mission

KEYS = [
    *("best", "worst", "score", "site", "level", "limit", "incumbent", "lcb", "had", "alpha", "sets"),
    *("plausible", "front", "unclassified", "at_risk", "stop", "end_reason", "mine"),
]
FORMS = [
    *(None, 3, math.nan, True, "a word", "a, list", [], [1, 2], [[1, 2], [3]], {}, {"site": 4}),
    *([{"site": [0.0, 1.0]}], [{"value": "x"}], [{"site": 4, "value": 1.0}], [{"set": 9}]),
    [{"site": [0.0, 1.0], "value": [2.0], "cost": "cheap"}],
]


@dataclass(frozen=True)
class Own(Policy):
    """Gives reasons of its own."""

    why: dict = field(default_factory=dict)

    def suggest(self, state, memory):
        decision = best_affordable(state, state.surface.variance, memory)
        return replace(decision, why={**decision.why, **self.why})


MISSION = replace(small_mission(Own(), initial=0), settings={"policy": {"kind": "ucb"}})


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_an_order_with_any_reasons_is_explained(form):
    before = Agent(MISSION)
    for key in KEYS:
        agent = Agent(replace(MISSION, policy=Own({key: form})))
        query = agent.ask()
        why = agent.issued[query.id].why
        text = details(before, query, why, best_of(before, query, why), {})
        assert f"{query.site[0]:.4g}" in text
        assert "expected" in text


def test_reasons_of_another_form_are_shown_as_they_are():
    agent = Agent(replace(MISSION, policy=Own({"worst": "the bay", "mine": 7, "best": "here"})))
    query = agent.ask()
    text = details(Agent(MISSION), query, agent.issued[query.id].why, best_of(agent, query, None), {})
    assert "worst of the policy the bay" in text
    assert "best of the policy here" in text
    assert "mine 7" in text
