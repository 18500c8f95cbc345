"""The rows of a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fieldbo.messages import Event, Order, from_plain

ORDERS = ("query", "go-home", "recharge")
"""Kinds of rows that are orders."""

WITHOUT_MESSAGE = ("stop", "end", "reopened", "note", "session", "vehicles")
"""Kinds of rows that are neither orders nor events."""


@dataclass(frozen=True)
class Row:
    """One entry of the log.

    Attributes
    ----------
    seq : int
    time_utc : str
    kind : str
        From `fieldbo.messages.kind_of`, or ``"stop"`` (a vehicle), ``"end"`` (of the run), ``"reopened"``
        (after such an end), ``"note"`` (on what was ignored), ``"session"`` (of a copy, or after a loss), or
        ``"vehicles"`` (with which the run continues).
    order : str or None
        Id of the order that the row belongs to.
    body : dict
        The plain form of the ``message``; an order also has ``memory``, ``why`` and, except
        in old records, ``origin``, and the ``scores`` of steps since the order before, by their place in the
        curve. A stop has ``vehicle``, ``reason``, ``memory`` and ``why``, a note
        ``text``, a session ``session`` and ``why``, and vehicles ``vehicles``, their settings.
    """

    seq: int
    time_utc: str
    kind: str
    order: str | None
    body: dict[str, Any]

    @property
    def message(self) -> Order | Event:
        """The order or event of this row."""
        message = self.body["message"]
        if self.kind == "telemetry":  # versions without this key trusted every gauge
            message = {"at_least": 0.0, **message}
        return from_plain(message)
