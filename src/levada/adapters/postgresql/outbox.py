"""Which links wait for another shard? The `Outbox` of a shard on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from levada.adapters.postgresql.database import Database
from levada.errors import StoreDamaged
from levada.records import Forwarded, Found

__all__ = ["PostgresqlOutbox"]

_decode = msgspec.msgpack.Decoder(Found).decode


class PostgresqlOutbox:
    def __init__(self, database: Database) -> None:
        self._database = database

    def undelivered(self, limit: int) -> list[Forwarded]:
        rows = self._database.rows("SELECT id, found, found_on, at FROM outbox ORDER BY id LIMIT %s", (limit,))
        try:
            return [Forwarded(id, _decode(found), found_on, at) for id, found, found_on, at in rows]
        except msgspec.MsgspecError as error:
            raise StoreDamaged(
                f"a link in the outbox of {self._database.place} is not readable ({error})"
            ) from error

    def delivered(self, ids: Sequence[int]) -> None:
        if not ids:
            return
        with self._database.write("delivered") as write:
            write.reach("outbox")
            write.execute("DELETE FROM outbox WHERE id = ANY(%s::bigint[])", (list(ids),))
