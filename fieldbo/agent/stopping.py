"""When the question counts as answered, and where to look if a policy claims so too early."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from fieldbo._numerics.arrays import Array, Mask
from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo._numerics.streams import stream
from fieldbo.agent.checks import suggested
from fieldbo.agent.coverage import covered, covering, read_places
from fieldbo.agent.state import AgentState, Verdict
from fieldbo.agent.unseen import hidden_at_sites, unseen
from fieldbo.belief.confidence import (
    AnySurface,
    best_by_mean,
    drawn_regrets,
    drawn_scores,
    expected_f1,
    rivals_of,
)
from fieldbo.belief.covering import gaps
from fieldbo.belief.question import Optimum, threshold_if
from fieldbo.messages import EndReason, Query, Stop
from fieldbo.mission.rules import CONFIRMED_F1, CONFIRMED_REGRET
from fieldbo.policies.acquisition import straddle
from fieldbo.policies.contract import Decision, State

_SLACK = 0.05  # by which a quick test may miss what the draws say
_WIDE = 1.96  # standard deviations
_KNOWN = 1e-8  # share of the prior variance below which a reading teaches nothing


def decided(agent: AgentState, state: State) -> Decision:
    """Return the policy's decision, unless the question is answered, or the policy claims so too early.

    If the mission sets a goal, it stops once the goal is reached. A policy that learns its model may claim to
    have the answer because a fit is too sure: its claim counts only if the belief, averaged over
    hyperparameters, agrees. Otherwise the mission goes on at the most doubtful site.

    If nothing but gaps between readings keeps an answer from counting, it goes on in the widest of them. If
    the mission limits how far a place may be from a reading, see `fieldbo.agent.coverage`.
    """
    mission, memory = agent.mission, agent.memory
    judgement = verdict(agent) if mission.stop.is_set and not agent.initial_left else None
    if judgement is not None and judgement.answered:
        return Decision(Stop(EndReason.QUESTION_ANSWERED), memory, judgement.why)
    decision = suggested(mission, state, memory)
    too_far = judgement is not None and judgement.too_far and judgement.probability >= judgement.wanted
    return covering(agent, state, _review(agent, state, decision, judgement), now=too_far)


def _review(agent: AgentState, state: State, decision: Decision, judgement: Verdict | None) -> Decision:
    """Return a policy's decision, or a query instead of a claim that does not count, or in a gap."""
    mission = agent.mission
    averages = agent.online_model.averages and not agent.domain.control_sets
    if _claims(decision) and (mission.stop.is_set or averages):
        return _confirm(agent, state, decision, verdict(agent))
    return (
        decision
        if judgement is None or not judgement.unseen
        else _into_gap(agent, state, decision, judgement)
    )


def _into_gap(agent: AgentState, state: State, decision: Decision, judgement: Verdict) -> Decision:
    """Return a query in the widest gap instead of the policy's decision, if such a site can be read."""
    site = _widest_gap(agent, _choosable(agent, state))
    if site is not None:  # the policy will decide again, as if it had not been asked
        return _read(agent, site, replace(decision, memory=agent.memory), judgement)
    left = gaps_of(agent, planned=True)[~agent.rejected]
    if isinstance(decision.choice, Stop) and 1.0 < left.max(initial=0.0) < np.inf:
        return replace(decision, choice=Stop(EndReason.BATTERY_SPENT), why={**decision.why, **judgement.why})
    return decision


def _confirm(agent: AgentState, state: State, claim: Decision, judgement: Verdict) -> Decision:
    """Return a policy's claim to have the answer if the belief agrees; else a query of a site to read."""
    why = {**claim.why, **judgement.why}
    if judgement.answered:
        return replace(claim, why=why)
    surface, scale = agent.stated
    choosable = _choosable(agent, state)
    site = _widest_gap(agent, choosable) if judgement.unseen or _alike(agent) else None
    if site is None:
        site = most_doubtful(
            surface, agent.mission.question.level(float(surface.mean.max()), scale), choosable
        )
    if site is not None:
        return _read(agent, site, claim, judgement)
    wanted = _open(surface)
    hides = _alike(agent) and bool(_find_hidden(agent).any())
    if not wanted.any() and not hides:  # every site is known: the claim is right
        return replace(claim, why=why)
    if len(state.rejected):
        wanted &= ~state.rejected
    wanted[_list_pending(agent)] = False
    reason = EndReason.BATTERY_SPENT if wanted.any() or hides else EndReason.STOPPED_BY_POLICY
    return replace(claim, choice=Stop(reason), why=why)


def _choosable(agent: AgentState, state: State) -> Mask:
    """Return the sites (N,) that can be read next, without those of pending queries."""
    choosable = state.choosable(agent.mission.levels[0])
    choosable[_list_pending(agent)] = False
    return choosable


def _list_pending(agent: AgentState) -> list[int]:
    """Return the sites of pending queries."""
    return [agent.domain.nearest(query.site) for query in agent.pending]


def _read(agent: AgentState, site: int, decision: Decision, judgement: Verdict) -> Decision:
    """Return a decision to read a site instead of what the policy decided, whose scores no longer apply."""
    query = Query(agent.domain.sites[site], level=agent.mission.levels[0])
    why = {key: reason for key, reason in decision.why.items() if key not in ("best", "score")}
    return Decision(query, decision.memory, {**why, **judgement.why, "site": site})


def gaps_of(agent: AgentState, *, planned: bool = False) -> Array:
    """Return how far each site (N,) lies from readings that the model believes; above 1, it is in a gap.

    A site that was ordered counts as read even if the reading was taken next to it: the vehicle gets no
    closer by trying again. With `planned`, the sites of pending queries count as read, too.
    """
    model, mission, domain = agent.online_model, agent.mission, agent.domain
    read = model.data(model.believed).sites
    beside = read_places(agent, planned=planned)[len(read) :]
    return gaps(read, mission.model, domain, mission.question, beside)


def goal_decides(agent: AgentState) -> bool:
    """Return True if the mission's goal decides what is next: it is reached, or only gaps are in its way.

    A limit for the distance from a reading may decide at any time.
    """
    if not agent.mission.stop.is_set or agent.initial_left:
        return False
    if agent.mission.stop.farthest is not None:
        return True
    return verdict(agent).answered or verdict(agent).unseen


def awaits_fit(agent: AgentState) -> bool:
    """Return True if only readings that the latest fit has not seen keep an answer from counting."""
    if not agent.online_model.fit_is_stale:
        return False
    if agent.mission.stop.is_set:
        return not agent.initial_left and verdict(agent).unfitted
    latest = next(reversed(agent.issued.values()), None)  # a claim that did not count
    return latest is not None and bool((latest.why or {}).get("stop", {}).get("unfitted"))


def _claims(decision: Decision) -> bool:
    """Return True if a policy claims to have the answer."""
    choice = decision.choice
    return isinstance(choice, Stop) and choice.reason is EndReason.QUESTION_ANSWERED


@on_one_blas_thread
def final_verdict(agent: AgentState) -> Verdict | None:
    """Return the verdict with which a mission ended, or would end now; None if it sets no goal."""
    if not agent.mission.stop.is_set:
        return None
    for why in agent.endings.values():
        if why.get("end_reason") == EndReason.QUESTION_ANSWERED.value and "stop" in why:
            return Verdict(**{"wanted": agent.mission.stop.probability, **why["stop"]})
    return verdict(agent)


def verdict(agent: AgentState) -> Verdict:
    """Return how sure the belief, averaged over hyperparameters, is of its answer."""
    at = (agent.asks, len(agent.history))
    if agent.judged is None or agent.judged[0] != at:
        agent.judged = at, _judge(agent)
    return agent.judged[1]


def _judge(agent: AgentState) -> Verdict:
    mission, model = agent.mission, agent.online_model
    rule, rng = mission.stop, stream(mission.seed, "stop", agent.asks)
    optimum = isinstance(mission.question, Optimum)
    own = rule.regret if optimum else rule.expected_f1
    goal = (CONFIRMED_REGRET if optimum else CONFIRMED_F1) if own is None else own
    learns = mission.model.every is not None
    limit = covered(agent)
    far = {} if limit is None else limit._asdict()
    if agent.blinded or model.readings < (rule.least_readings if learns else 1):
        return Verdict(goal, 0.0, rule.probability, **far)
    reaches = _reaches_regret if optimum else _reaches_f1
    probability = reaches(agent, goal, rule.probability, rng)
    likely = learns and probability >= rule.probability
    hidden = _chance_unseen(agent, goal) if likely and rule.regret is not None else 0.0
    probability *= 1.0 - hidden
    everywhere = not mission.question.known_threshold or one_sided(agent)
    unseen = likely and everywhere and bool((gaps_of(agent) > 1.0)[~agent.rejected].any())
    unseen = unseen or (likely and probability < rule.probability)
    unfitted = likely and not unseen and model.fit_is_stale
    return Verdict(goal, probability, rule.probability, unseen, unfitted, **far)


def one_sided(agent: AgentState) -> bool:
    """Return True if all sites are classified as on the same side of the threshold."""
    surface, scale = agent.stated
    inside = surface.exceedance(agent.mission.question.level(float(surface.mean.max()), scale)) >= 0.5
    return bool(inside.all() or not inside.any())


def _widest_gap(agent: AgentState, choosable: Mask) -> int | None:
    """Return the choosable site that is farthest from all readings and pending ones, if in a gap.

    Else, if what is unseen counts, the one where a better value is most likely to lie unseen; or None.
    Where all sites count as in gaps, the farthest one is not known: None, too.
    """
    widths = np.where(choosable, gaps_of(agent, planned=True), 0.0)
    if 1.0 < widths.max() < np.inf:
        return int(np.argmax(widths))
    hidden = np.where(choosable, _find_hidden(agent), 0.0)
    return int(np.argmax(hidden)) if hidden.max() > 0 else None


def _find_hidden(agent: AgentState) -> Array:
    """Return the probability (N,) of something better at each site, unseen; 0 if that does not count."""
    counts = agent.mission.stop.regret is not None or _alike(agent)
    hidden = hidden_at_sites(agent.mission, agent.stated[0]) if counts else None
    return np.zeros(agent.domain.size) if hidden is None else hidden


def _alike(agent: AgentState) -> bool:
    """Return True if the place of an optimum is sought, and all readings are equal.

    The model then knows every place, however little was seen, so that its word does not count.
    """
    values = agent.online_model.believed_values
    return isinstance(agent.mission.question, Optimum) and len(values) > 1 and not np.ptp(values)


def _chance_unseen(agent: AgentState, goal: float) -> float:
    """Return the probability that a value unseen is better than the goal for the regret allows.

    By the distances to the readings alone: the model's own word is that nothing is there.
    """
    surface, scale = agent.stated
    there = unseen(agent.mission, surface)
    if there is None:
        return 0.0
    # The best reading may lie elsewhere than what is reported, or be noise.
    has = scale.to_user(min(there.best, float(surface.mean.max())))
    allowed = np.copysign(_allow_regret(agent, goal), scale.scale)
    if not scale.usable(has + allowed):  # under a log, no value is so small
        return 0.0
    return there.chance_beyond(float(scale.to_model(has + allowed)) - there.best)


def _allow_regret(agent: AgentState, goal: float) -> float:
    """Return the regret that reaches the goal, in the user's unit; 0 without readings."""
    values = agent.online_model.believed_values
    values = values[agent.stated[1].usable(values)]
    return goal * float(np.ptp(values)) if len(values) else 0.0


def _reaches_f1(agent: AgentState, goal: float, wanted: float, rng: np.random.Generator) -> float:
    """Return the probability that F1 is at least `goal`; 0 if it is plainly below `wanted`."""
    question, (surface, scale) = agent.mission.question, agent.stated
    threshold = question.level(float(surface.mean.max()), scale)
    p = surface.exceedance(threshold)
    inside = p >= 0.5
    # If the chance were `wanted`, the mean of F1 would be higher. Where many sites share one small doubt, the
    # ratio of expectations can be lower all the same: the mission then goes on, although it need not.
    if inside.any() and expected_f1(inside, p) < goal * wanted - _SLACK:
        return 0.0
    drawn = drawn_scores(surface, threshold, rng, threshold_if(question, scale))
    return float(np.mean(drawn.f1 >= goal))


def _reaches_regret(agent: AgentState, goal: float, wanted: float, rng: np.random.Generator) -> float:
    """Return the probability that the regret is at most `goal` times the range of the readings."""
    (surface, scale), allowed = agent.stated, _allow_regret(agent, goal)
    if not allowed > 0 or _may_be_beaten(agent, allowed, wanted):
        return 0.0
    point, _, _ = best_by_mean(surface, agent.domain)
    rivals = rivals_of(surface, agent.domain, point, rng)
    return float(np.mean(drawn_regrets(rivals, point, scale, rng).regret <= allowed))


def _may_be_beaten(agent: AgentState, allowed: float, wanted: float) -> bool:
    """Return True if by the fit alone some site beats the best one by more than `allowed` (user's unit)."""
    surface, scale = agent.surface, agent.hyperparameters.scale
    best = int(np.argmax(surface.mean))
    better = scale.to_user(surface.mean[best]) + np.copysign(allowed, scale.scale)
    if not scale.usable(better):  # under a log, no value is so small
        return False
    gap = float(scale.to_model(better)) - surface.mean
    variance = surface.variance + surface.variance[best] - 2.0 * surface.covariance(best)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        sure = ndtr(gap / np.sqrt(np.maximum(variance, 0.0)))
    return bool(np.nanmin(sure) < wanted - _SLACK)


def most_doubtful(surface: AnySurface, threshold: float, choosable: Mask) -> int | None:
    """Return the choosable site about which the belief is least sure; None if there is none.

    For a level set by the straddle score, for an optimum (threshold NaN) by the upper end of the 95%
    interval, among sites where a reading still teaches something.
    """
    mean, sd = surface.mean, surface.sd
    scores = mean + _WIDE * sd if np.isnan(threshold) else straddle(mean, sd, threshold, _WIDE)
    worth = choosable & _open(surface)
    return int(np.argmax(np.where(worth, scores, -np.inf))) if worth.any() else None


def _open(surface: AnySurface) -> Mask:
    """Return the sites (N,) about which a reading still teaches something, as bool."""
    return np.asarray(surface.variance > _KNOWN * surface.process_variance)
