"""Which hooks are there? A small file beside the store, written only by the server."""

from __future__ import annotations

from pathlib import Path

import msgspec

from levada.adapters.small_file import SmallFile
from levada.errors import StoreDamaged
from levada.records import Hook

__all__ = ["SqliteHooks"]

_APPLICATION_ID = 0x4C76486B  # "LvHk"
_VERSION = 1
_SCHEMA = (
    "CREATE TABLE hooks (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Hook).decode


class SqliteHooks:
    """`levada.ports.Hooks`; threads may share one."""

    def __init__(self, path: Path) -> None:
        # Whatever of a place is lost is told again, under the same ids: a commit need not wait for the disk.
        self._file = SmallFile(
            path, _SCHEMA, application_id=_APPLICATION_ID, version=_VERSION, holds="hooks", durable=False
        )
        self._connection = self._file.connection

    def hooks(self) -> list[Hook]:
        rows = self._file.run(lambda: self._connection.execute("SELECT body FROM hooks ORDER BY id").fetchall())
        try:
            return [_decode(body) for (body,) in rows]
        except msgspec.MsgspecError as error:
            raise StoreDamaged(
                f"{self._file.path} holds a hook that cannot be read ({error}): delete it"
            ) from error

    def add(self, hook: Hook) -> None:
        self._file.run(
            lambda: self._connection.execute("INSERT INTO hooks VALUES (?, ?)", (hook.id, _encode(hook)))
        )

    def update(self, hook: Hook) -> bool:
        return self._changed("UPDATE hooks SET body = ?2 WHERE id = ?1", hook.id, _encode(hook))

    def remove(self, id: str) -> bool:
        return self._changed("DELETE FROM hooks WHERE id = ?1", id)

    def close(self) -> None:
        self._file.close()

    def _changed(self, statement: str, *values: str | bytes) -> bool:
        return self._file.run(lambda: self._connection.execute(statement, values)).rowcount > 0
