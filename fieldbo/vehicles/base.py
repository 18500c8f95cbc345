"""The contract of a vehicle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from fieldbo.messages import Event, Order


class Vehicle(ABC):
    """Carries orders out and reports what came of them; a context manager.

    An order is settled by an observation that is its last part, by a Rejected or by a Lost.
    """

    @abstractmethod
    def send(self, order: Order) -> None:
        """Give an order; one that was sent before (the same id) is not carried out again."""

    @abstractmethod
    def events(self, timeout_s: float) -> list[Event]:
        """Return what was reported since the last call; wait up to `timeout_s` for something."""

    def resume(self, orders: Sequence[Order], events: Sequence[Event]) -> None:
        """Take up a run that another vehicle began: all its orders, and all that was told of them, in order.

        Called once, before anything else, on a vehicle that was given no order yet. Of those orders that no
        event settles, `outcome` is asked next; one that is unknown there is sent again.
        """

    def outcome(self, order: str) -> list[Event] | None:
        """Return all events of an order, or None where it is unknown or not remembered."""
        return None

    def cancel(self, order: str) -> None:
        """Give an order up; it still has to be settled."""

    def hold(self) -> None:
        """Stay where you are until the next order."""

    def close(self) -> None:
        """Let go of links and files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
