"""How many are there? Counts kept beside what they count, so that nothing is counted twice a second."""

from __future__ import annotations

import sqlite3

__all__ = ["Counters", "read_counters"]


def read_counters(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT name, n FROM counters"))


class Counters:
    """The counts as one transaction sees them; written once, at its end."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._counts = read_counters(connection)
        self._changed: set[str] = set()

    def add(self, name: str, n: int = 1, base: int = 0) -> int:
        """Count `n` more, from `base` at least; the new total."""
        total = max(self._counts.get(name, 0), base) + n
        self._counts[name] = total
        self._changed.add(name)
        return total

    def at_least(self, name: str, n: int) -> None:
        self.add(name, 0, n)

    def total(self, name: str) -> int:
        return self._counts.get(name, 0)

    def write(self) -> None:
        self._connection.executemany(
            "INSERT INTO counters (name, n) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = excluded.n",
            [(name, self._counts[name]) for name in sorted(self._changed)],
        )
