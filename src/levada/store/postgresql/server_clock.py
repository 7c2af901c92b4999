"""How far the clock of this machine is from that of a PostgreSQL server, by which all machines of a collection go."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from levada.core.errors import StoreError
from levada.store.base import StoreLimits
from levada.store.postgresql.connection import Address, connect, translated

TOLERATED = 1.0  # seconds: less is what clocks that are set by NTP differ by, and what a busy line adds
_TRIES = 3
_NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"


def clock_ahead(dsn: str, now: Callable[[], float]) -> float:
    """Seconds by which `now` is ahead of the server's clock; 0 if no more than is tolerated.

    Of some tries the quickest counts: the answer was written somewhere within its round trip.
    """
    import psycopg

    address = Address(dsn, "levada_shared")
    with closing(connect(address, StoreLimits(), read_only=True)) as session:
        found = []
        for _ in range(_TRIES):
            before = now()
            try:
                row = session.execute(_NOW).fetchone()
            except psycopg.Error as error:
                raise translated(error, address.place) from error
            if row is None:
                raise StoreError(f"{address.place} does not tell the time")
            after = now()
            found.append((after - before, (before + after) / 2 - row[0]))
    trip, ahead = min(found)
    return ahead if abs(ahead) > TOLERATED + trip else 0.0


def told(ahead: float) -> str:
    """A sentence about a clock that is wrong."""
    way = "ahead of" if ahead > 0 else "behind"
    return (
        f"the clock of this machine is {abs(ahead):,.0f} s {way} that of the database, which is used instead: "
        "set it by NTP, for instance with 'timedatectl set-ntp true'"
    )
