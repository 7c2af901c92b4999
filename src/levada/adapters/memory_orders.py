"""What do people outside want of the crawl? The `Orders` port in memory: the reference."""

from __future__ import annotations

from levada.orders import Order, Wishes

__all__ = ["MemoryOrders"]


class MemoryOrders:
    def __init__(self) -> None:
        self._given = 0
        self._pending: list[tuple[int, Order]] = []
        self._wishes = Wishes()

    def give(self, order: Order) -> int:
        self._given += 1
        self._pending.append((self._given, order))
        return self._given

    def pending(self) -> list[tuple[int, Order]]:
        return list(self._pending)

    def obeyed(self, number: int, wishes: Wishes) -> None:
        self._pending = [(each, order) for each, order in self._pending if each > number]
        self._wishes = wishes

    def wishes(self) -> Wishes:
        return self._wishes

    def close(self) -> None:
        pass
