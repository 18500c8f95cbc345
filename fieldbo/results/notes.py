"""Notes of a run: overdrawn limits, how each vehicle ended, rejected orders, and doubtful readings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from fieldbo.agent.agent import Agent
from fieldbo.agent.failures import patches
from fieldbo.agent.ledger import Ledger
from fieldbo.agent.stopping import gaps_of, one_sided
from fieldbo.agent.vehicle_state import VehicleState
from fieldbo.agent.warnings import unaffordable
from fieldbo.belief.outliers import dwarfing
from fieldbo.belief.question import Optimum
from fieldbo.clock import duration_text
from fieldbo.domain.places import place_text
from fieldbo.errors import counted
from fieldbo.messages import (
    Action,
    Correction,
    EndReason,
    Lost,
    Observation,
    Query,
    Rejected,
    Telemetry,
    order_number,
)
from fieldbo.mission.mission import FAILURE_LIMIT
from fieldbo.results.answers import Answer, LevelSetAnswer, OptimumAnswer, answer_of
from fieldbo.results.contradictions import contradictions, reread
from fieldbo.results.curve import contradiction
from fieldbo.results.words import range_of, rounded

_ENOUGH = {"battery": "battery", "time": "time"}
_ROUNDING = 1e-9  # fraction of the battery or time limit
_GAPS = 0.1  # share of the sites in gaps from which on a note says so
_SURPLUS = 0.05  # fraction of the battery that it may show beyond what the orders leave
_MOST_OUTLIERS = 5  # values of readings that were left out
_MOST_DOUBTS = 5  # notes of reports that were not believed
_MOST_PATCHES = 3  # notes of areas where readings fail
_MANY_FAILED = 6  # readings that failed everywhere
_MOST_CONTRADICTIONS = 3  # notes of places whose readings contradict each other


def notes_of(agent: Agent, reason: EndReason | None) -> Iterator[str]:
    """Yield the notes of an agent's run.

    Parameters
    ----------
    agent : Agent
    reason : EndReason or None
        Why the run ended; None if it was interrupted.
    """
    mission, scale = agent.mission, agent.hyperparameters.scale
    yield from getattr(mission.world.field, "notes", ())
    if len(mission.earlier.values):
        yield f"began with {mission.earlier.in_words()}"
        yield from mission.earlier.notes
    yield from agent.warnings
    for kind, name in ((Rejected, "rejected"), (Lost, "lost")):
        if number := sum(isinstance(e, kind) for e in agent.history):
            yield f"orders {name}: {number}"
    if number := sum(isinstance(e, Correction) for e in agent.history):
        yield f"corrections of readings: {number}; the record keeps what was reported first"
    yield from _commands(agent)
    yield from _unheard(agent)
    readings = [e.values for e in agent.history if isinstance(e, Observation)]
    values = np.concatenate([mission.earlier.values, *readings])
    answer = answer_of(mission, *agent.stated, blinded=agent.blinded)
    if (sentence := contradiction(agent)) is not None:
        yield sentence
    yield from answer.notes(values, reason)
    if agent.domain.control_sets and isinstance(mission.question, Optimum) and scale.transform != "none":
        yield (
            "no play is recommended: the model is of the logarithm of the values, and expected values over "
            'free variables need a model of the values (transform = "none" in [model])'
        )
    yield from _limits(agent, reason)
    if reason is EndReason.VEHICLE_LOST:
        yield (
            "several orders in a row were lost; set when_lost in [agent] to allow more of them, or to wait "
            'for the vehicle (then = "wait"); fieldbo resume continues the run once it answers'
        )
    yield from _gaps(agent, answer)
    yield from _standing_still(agent)
    yield from _doubts(agent)
    yield from _far_off(agent)
    yield from _contradictions(agent)
    yield from reread(agent)
    if agent.disbelieved:
        were = "was classified as an outlier" if agent.disbelieved == 1 else "were classified as outliers"
        values = agent.online_model.data(~agent.online_model.believed).values.tolist()
        shown = ", ".join(mission.world.quantity.amount(value) for value in values[:_MOST_OUTLIERS])
        more = ", ..." if len(values) > _MOST_OUTLIERS else ""
        yield f"{agent.disbelieved} of {agent.readings} readings {were} and left out: {shown}{more}"
    yield from _failures(agent)
    if agent.left_out:
        count = counted(agent.left_out, "reading")
        yield f"{count} could not be modelled (not finite, or not above 0 under a log)"


def _failures(agent: Agent) -> Iterator[str]:
    """Yield where readings fail, with the command that closes each area; or that they fail everywhere."""
    failures, domain = agent.failures, agent.domain
    if not failures.known:
        return
    if not failures.local:
        failed, whole = failures.counts()
        if failed >= _MANY_FAILED and failures.overall > FAILURE_LIMIT:
            yield f"{failed} of {whole} readings failed, and no place stands out: check the sensor"
        return
    limit = agent.mission.failure_limit
    likely = failures.chances > (limit if limit < 1.0 else FAILURE_LIMIT)
    avoided = ", which are avoided while others are left" if failures.avoided is not None else ""
    found = patches(domain, likely)
    if likely.any() and not found:
        yield f"a reading is likely to fail at {counted(int(likely.sum()), 'site')}{avoided}"
    for sites, corners in found[:_MOST_PATCHES]:
        failed, whole = failures.counts(sites)
        centre = domain.sites[sites].mean(axis=0)
        where = place_text(domain, domain.sites[domain.nearest(centre)])
        area = "; ".join(f"{round(x, 3)},{round(y, 3)}" for x, y in corners.tolist())
        yield (
            f"readings fail around {where}: {failed} of {whole} did. They are likely to at "
            f"{counted(len(sites), 'site')}{avoided}. To close the area while the run is under way: "
            f'fieldbo steer {agent.run} no-go "{area}"'
        )
    if further := len(found[_MOST_PATCHES:]):
        yield f"readings fail in {counted(further, 'further area')}"


def _commands(agent: Agent) -> Iterator[str]:
    obeyed = Counter(c.action.value for c in agent.commands if not (c.refused or c.hold))
    if obeyed:
        names = (f"{number} x {name}" if number > 1 else name for name, number in obeyed.items())
        yield f"commands obeyed: {', '.join(names)}"
    if refused := sum(bool(c.refused) for c in agent.commands):
        yield f"commands refused: {refused}"
    yield from _unread(agent)
    unit = agent.mission.world.cost_unit
    for vehicle in agent.vehicles:
        for hold in dict.fromkeys(pause.hold for pause in vehicle.pauses):
            pauses = [pause for pause in vehicle.pauses if pause.hold == hold]
            spent = math.fsum(pause.spent for pause in pauses)
            seconds = math.fsum(pause.seconds for pause in pauses)
            what = f"{counted(len(pauses), 'hold')} for {hold}" if hold else counted(len(pauses), "pause")
            if seconds or spent:
                drained = rounded(spent, vehicle.spec.battery)
                yield f"{what}: {duration_text(seconds)}, and {drained} {unit} of the battery"


def _unread(agent: Agent) -> Iterator[str]:
    done = [event for event in agent.history if isinstance(event, Observation)]
    read = {event.order for event in done if np.isfinite(event.values).any()}
    read -= {event.order for event in done if not event.complete}
    read |= {str(query.id) for query in agent.pending}
    orders = [issued.order for key, issued in agent.issued.items() if key in read]
    sites = [(order_number(order.id), tuple(order.site)) for order in orders if isinstance(order, Query)]
    waiting = {tuple(site) for vehicle in agent.vehicles if not vehicle.phase.over for site in vehicle.wanted}
    obeyed = [c for c in agent.commands if c.action is Action.NEXT and not c.refused]
    wanted = {tuple(c.site): c.after for c in obeyed if c.site is not None}  # since the last command
    for site, after in wanted.items():
        if site not in waiting and not any(number >= after and site == there for number, there in sites):
            where = place_text(agent.domain, np.array(site))
            yield f"an operator wanted a reading at {where} next, but none was taken"


def _unheard(agent: Agent) -> Iterator[str]:
    """Yield holds that could do nothing: nobody reported their channel."""
    heard = {name for e in agent.history if isinstance(e, Telemetry) for name in e.channels or ()}
    for hold in agent.mission.holds:
        if hold.channel not in heard:
            yield f"nothing was heard from the channel {hold.channel}: the hold {hold.name} could do nothing"


def _limits(agent: Agent, reason: EndReason | None) -> Iterator[str]:
    unit = agent.mission.world.cost_unit
    any_query = any(isinstance(issued.order, Query) for issued in agent.issued.values())
    for number, vehicle in enumerate(agent.vehicles):
        limit = agent.endings.get(number, {}).get("limit")
        who = f"vehicle {number}: " if len(agent.vehicles) > 1 else ""
        if limit is not None and not any_query:
            needed = unaffordable(agent.mission, agent.initial) if len(agent.vehicles) == 1 else []
            yield from needed or [f"{who}not enough {_ENOUGH[limit]} for a single reading"]
        elif reason is not None and (limit == "time" or (limit and vehicle.spec.home is not None)):
            yield who + _ending(vehicle, limit, unit)
        yield from (who + note for note in _overdrawn(vehicle, unit))
        yield from (who + note for note in _unexplained(vehicle, unit))


def _ending(vehicle: VehicleState, limit: str, unit: str) -> str:
    """Return how a vehicle ended that had too little battery or time for another site."""
    spec, left = vehicle.spec, max(0.0, vehicle.ledger.left)
    amounts = f"{rounded(left, spec.battery)} {unit}"
    if left < spec.reserve - _ROUNDING * spec.battery:
        reserve = rounded(spec.reserve, spec.battery)
        amounts += f" (of a reserve of {reserve}: orders cost more than the margin allows for)"
    elif spec.reserve:
        amounts += f" (including {rounded(min(left, spec.reserve), spec.battery)} of reserve)"
    if spec.time_limit_s is not None:
        amounts += f" and {duration_text(max(0.0, vehicle.time_ledger.left))}"
    if spec.home is None:
        ended = "stopped"
    else:
        ended = "returned home" if np.array_equal(vehicle.position, spec.home) else "stopped away from home"
    return f"{ended} with {amounts} left: not enough {_ENOUGH[limit]} for another site"


def _overdrawn(vehicle: VehicleState, unit: str) -> Iterator[str]:
    why = (
        "the last order cost more than expected (costs were unknown)"
        if vehicle.cost is None
        else "orders cost more than declared, and more than the margin allows for"
    )
    longer = "orders took longer than declared, or time passed while no planner ran"
    ledgers = [(name, ledger, unit, why) for name, ledger in _batteries(vehicle)]
    for limit, ledger, limit_unit, reason in [*ledgers, ("time limit", vehicle.time_ledger, "s", longer)]:
        if ledger.left < -_ROUNDING * ledger.battery:
            over = f"{rounded(-ledger.left, ledger.battery)} {limit_unit}"
            if ledger is vehicle.time_ledger:
                over = duration_text(-ledger.left)
            yield f"{limit} overdrawn by {over}: {reason}"


def _batteries(vehicle: VehicleState) -> Iterator[tuple[str, Ledger]]:
    """Yield the ledger of each battery of a vehicle, with its name: ``battery``, or ``battery 2``."""
    for number, ledger in enumerate(vehicle.ledgers, start=1):
        yield f"battery {number}" if vehicle.spec.batteries > 1 else "battery", ledger


def _unexplained(vehicle: VehicleState, unit: str) -> Iterator[str]:
    """Yield the gap between the battery's own reports and the cost of the orders."""
    for name, ledger in _batteries(vehicle):
        gap, which = math.fsum(ledger.unexplained), "the battery" if name == "battery" else name
        if abs(gap) > _ROUNDING * ledger.battery:
            size, side = rounded(abs(gap), ledger.battery), "less" if gap > 0 else "more"
            yield f"{which} held {size} {unit} {side} than the orders account for; its reports were believed"
        if ledger.surplus > _SURPLUS * ledger.battery:
            size = rounded(ledger.surplus, ledger.battery)
            yield f"{which} last showed {size} {unit} more than the orders leave; its gauge may be wrong" + (
                ' (trust = "gauge" in [battery] of the vehicle file uses it)' if ledger.estimated else ""
            )


def _standing_still(agent: Agent) -> Iterator[str]:
    several = len(agent.vehicles) > 1
    for number, vehicle in enumerate(agent.vehicles):
        whose = f"of vehicle {number}" if several else "of the vehicle"
        for what, how in vehicle.still.found.items():
            verb = "stands" if what in vehicle.still.now else "stood"
            yield f"the {what} {whose} {verb} still: {how}"


def _doubts(agent: Agent) -> Iterator[str]:
    doubts = [doubt for event in agent.history for doubt in getattr(event, "doubts", ())]
    yield from doubts[:_MOST_DOUBTS]
    if len(doubts) > _MOST_DOUBTS:
        yield f"{len(doubts) - _MOST_DOUBTS} further reports were not believed"


def _gaps(agent: Agent, answer: Answer) -> Iterator[str]:
    """Yield that gaps between readings may hide an optimum, or a patch in a map that shows a single side.

    A model that learns its hyperparameters does not expect them.
    """
    mission, domain = agent.mission, agent.domain
    learns = mission.model.every is not None and not domain.control_sets
    if not learns or not agent.readings:
        return
    question = mission.question
    if question.known_threshold and not one_sided(agent):
        return
    if isinstance(answer, OptimumAnswer) and answer.hidden is not None:
        return  # the answer itself says what may be there
    if question.known_threshold and isinstance(answer, LevelSetAnswer) and answer.inspection.far.any():
        return  # the report says how much was not inspected, by other distances, and F1 allows for it
    widths = gaps_of(agent)
    share = float(np.mean(widths > 1.0))
    if share < _GAPS:
        return
    if np.isfinite(widths).all():
        where = f"{share:.0%} of the sites lie far from all readings"
    else:
        where = f"the readings are few for {len(domain.axes)} axes"
    yield f"{where}: {question.missable} may have been missed, even if the stated {question.good_score}"


def _far_off(agent: Agent) -> Iterator[str]:
    """Yield readings that are very far from all the others, unless the model already left out outliers."""
    if agent.disbelieved:
        return
    read = [(v, e.order) for e in agent.history if isinstance(e, Observation) for v in e.values.tolist()]
    read = [reading for reading in read if math.isfinite(reading[0])]
    centre, skewed = agent.mission.question.centre, agent.mission.model.transform == "log"
    far = dwarfing([value for value, _ in read], [] if centre is None else [centre], skewed=skewed)
    others = [value for k, (value, _) in enumerate(read) if k not in far]
    if not len(far) or not others:
        return
    several = f"; {counted(len(far) - 1, 'other reading')} like it" if len(far) > 1 else ""
    value, order = read[far[0]]
    world, model = agent.mission.world, agent.mission.model
    limit, number = world.sensor.below, world.quantity.number
    if limit is not None and min(others) <= limit:
        rest = f"are {range_of(np.array(others), limit, world.quantity)}"
    else:
        rest = f"lie between {number(min(others))} and {number(max(others))}"
    bounds = "set low and high under [reports] in the vehicle file"
    tested = model.outliers == "tested"
    ways = f"or {bounds}" if tested else f'{bounds}, or set outliers = "tested" in [model]'
    yield (
        f"the reading of {order} is {number(value)}{several}; all others {rest}. It is so far away that "
        f"the model can't tell them apart. If it is impossible, correct it with fieldbo correct, {ways}"
    )


def _contradictions(agent: Agent) -> Iterator[str]:
    """Yield readings that contradict each other beyond the declared noise, if the model trusts it."""
    if agent.mission.model.noise == "learned":
        return
    observed = (event for event in agent.history if isinstance(event, Observation))
    found = contradictions(observed, agent.domain, agent.mission.world.sensor)
    yield from found[:_MOST_CONTRADICTIONS]
    if further := len(found[_MOST_CONTRADICTIONS:]):
        yield f"readings contradict each other at {counted(further, 'further place')}"
