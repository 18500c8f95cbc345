"""The life of a robot's order: every state, and everything that it may bring."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fieldbo.messages import Correction, Lost, Query, Rejected
from fieldbo.vehicles.remote.progress import OrderBook, Progress, may_follow

QUERY = Query([1.0, 2.0], expected_cost=2.0, id="run/0")
READING = QUERY.observed(value=0.5, noise_variance=0.01)

LIVES = {
    "waits, is sent, and gives a result": "queued sent done",
    "is held until the robot says where it is": "queued held sent done",
    "is cancelled before it is sent": "queued rejected",
    "is cancelled under way": "queued sent cancelling done",
    "is cancelled, without an answer": "queued sent cancelling lost done",
    "is refused": "queued sent rejected",
    "is refused after it was given up": "queued sent lost rejected",
    "can't be reached": "queued lost",
    "waits for a position in vain": "queued held lost",
    "was sent by an earlier program, and again": "earlier queued sent done",
    "was sent by an earlier program, whose result arrives": "earlier done",
    "was sent by an earlier program, whose result arrives before it is sent again": "earlier queued done",
}


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_an_order(life):
    first, *later = map(Progress, life.split())
    book = OrderBook()
    entry = book.add(QUERY, first)
    for progress in later:
        book.advance(entry, progress)
    assert entry.progress is later[-1]
    assert book.current is None
    assert book.next is None


@pytest.mark.parametrize(("progress", "then"), [*product(Progress, Progress)])
def test_every_pair_is_allowed_or_refused(progress, then):
    book = OrderBook()
    entry = book.add(QUERY, progress)
    if may_follow(progress, then):
        book.advance(entry, then)
        assert entry.progress is then
        assert not progress.settled
    else:
        with pytest.raises(AssertionError, match=f"run/0: {progress.value} to {then.value}"):
            book.advance(entry, then)
        assert entry.progress is progress


EVENTS = {
    "result": (READING, Progress.DONE),
    "part": (replace(READING, last=False), None),
    "rejection": (Rejected("run/0", "too deep"), Progress.REJECTED),
    "loss": (Lost("run/0", "silence"), Progress.LOST),
    "correction": (Correction("run/0", 0, np.array([0.4])), None),
}


@pytest.mark.parametrize(("progress", "event"), [*product(Progress, EVENTS)])
def test_whatever_an_order_brings_is_kept_and_an_outcome_stands(progress, event):
    message, leads_to = EVENTS[event]
    book = OrderBook()
    entry = book.add(QUERY, progress)
    book.take(message)
    assert entry.events == [message]
    if progress.settled or leads_to is None:
        assert entry.progress is progress
    else:
        assert entry.progress is leads_to


def test_orders_are_under_way_one_at_a_time_in_their_order():
    book = OrderBook()
    entries = [book.add(Query([1.0, k], id=f"run/{k}")) for k in range(3)]
    for entry in entries:
        assert book.current is None
        assert book.next is entry
        book.advance(entry, Progress.SENT)
        assert book.current is book.latest is entry
        book.take(Lost(entry.id, "silence"))
    assert book.next is None
    book.take(Query([1.0, 0.0], expected_cost=1.0, id="run/0").observed(value=1.0, noise_variance=0.1))
    assert [entry.progress.value for entry in book] == ["done", "lost", "lost"]
    assert book.latest is entries[-1]
