"""The servers of a replay: which of them answer, and what is on each?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from levada.adapters.postgresql.connecting import Address
from levada.adapters.postgresql.failures import translated
from levada.adapters.replay.tables import SCHEMA, drop_all, drop_tables, make_schema, size_of
from levada.errors import LevadaError, StoreError, UsageError

if TYPE_CHECKING:
    import psycopg

__all__ = ["Servers", "check_targets"]

Made = TypeVar("Made")


def check_targets(dsns: Sequence[str]) -> None:
    """Each is one server's database: two names for one would drop each other's tables."""
    places: set[str] = set()
    for place in (Address(dsn, SCHEMA).place for dsn in dsns):
        if place in places:
            raise UsageError(f"--target names {place} twice: give it once, and --shards K for several shards on it")
        places.add(place)


class Servers:
    """`away` says of each server that does not answer why; the replay goes on without it."""

    def __init__(self, dsns: Sequence[str]) -> None:
        self.addresses = [Address(dsn, SCHEMA) for dsn in dsns]
        self.away: dict[int, str] = {}
        self._made: list[int] = []

    def __len__(self) -> int:
        return len(self.addresses)

    def prepare(self, *, force: bool) -> None:
        """The schema on each; an error only if no server answers, or one has such a schema already."""
        try:
            for number, address in enumerate(self.addresses):
                self.use(number, partial(make_schema, place=address.place, force=force))
                if number not in self.away:
                    self._made.append(number)
        except LevadaError:
            self.drop()
            raise
        if not self._made:
            raise StoreError(f"no server can be used: {'; '.join(self.away.values())}")

    def use(self, server: int, work: Callable[[psycopg.Connection[Any]], Made]) -> Made | None:
        """None where the server is away; from then on it is left out."""
        import psycopg

        if server in self.away:
            return None
        address = self.addresses[server]
        try:
            with address.connect() as connection:
                return work(connection)
        except StoreError as error:
            self.away[server] = str(error)
        except psycopg.Error as error:
            self.away[server] = str(translated(error, address.place))
        return None

    def each(self, work: Callable[[int, psycopg.Connection[Any]], Made]) -> list[Made | None]:
        """On all of them at once."""
        with ThreadPoolExecutor(len(self.addresses)) as pool:
            calls = [pool.submit(self.use, number, partial(work, number)) for number in range(len(self.addresses))]
            return [call.result() for call in calls]

    def sizes(self) -> list[int | None]:
        return self.each(lambda number, connection: size_of(connection))

    def forget(self, prefix: str) -> None:
        """The tables of one scheme, so that the next one has the room."""
        self.each(lambda number, connection: drop_tables(connection, prefix))

    def drop(self) -> None:
        """The schemas that were made; a server that went away is tried once more."""
        for number in self._made:
            self.away.pop(number, None)
            self.use(number, drop_all)
