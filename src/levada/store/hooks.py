"""Webhook stores: a small file beside the store, written only by the server, or memory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from levada.core.errors import StoreDamaged
from levada.core.records import Webhook
from levada.store.sqlite.small_file import SmallFile

_APPLICATION_ID = 0x4C76486B  # "LvHk"
_VERSION = 1
_SCHEMA = (
    "CREATE TABLE hooks (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Webhook).decode


class SqliteWebhooks:
    """Webhooks in a file (`levada.core.protocols.Hooks`). Threads may share one."""

    def __init__(self, path: Path) -> None:
        # A lost position only repeats deliveries, with the same ids: a commit need not wait for the disk.
        self._file = SmallFile(
            path, _SCHEMA, application_id=_APPLICATION_ID, version=_VERSION, holds="hooks", durable=False
        )
        self._connection = self._file.connection

    def hooks(self) -> list[Webhook]:
        rows = self._file.run(lambda: self._connection.execute("SELECT body FROM hooks ORDER BY id").fetchall())
        try:
            return [_decode(body) for (body,) in rows]
        except msgspec.MsgspecError as error:
            raise StoreDamaged(f"{self._file.path} holds a hook that cannot be read ({error}): delete it") from error

    def add(self, hook: Webhook) -> None:
        self._file.run(lambda: self._connection.execute("INSERT INTO hooks VALUES (?, ?)", (hook.id, _encode(hook))))

    def update(self, hook: Webhook) -> bool:
        return self._changed("UPDATE hooks SET body = ?2 WHERE id = ?1", hook.id, _encode(hook))

    def remove(self, id: str) -> bool:
        return self._changed("DELETE FROM hooks WHERE id = ?1", id)

    def close(self) -> None:
        self._file.close()

    def _changed(self, statement: str, *values: str | bytes) -> bool:
        return self._file.run(lambda: self._connection.execute(statement, values)).rowcount > 0


class MemoryWebhooks:
    """The reference webhook store, in memory."""

    def __init__(self) -> None:
        self._hooks: dict[str, Webhook] = {}

    def hooks(self) -> list[Webhook]:
        return [hook for _, hook in sorted(self._hooks.items())]

    def add(self, hook: Webhook) -> None:
        self._hooks[hook.id] = hook

    def update(self, hook: Webhook) -> bool:
        there = hook.id in self._hooks
        if there:
            self._hooks[hook.id] = hook
        return there

    def remove(self, id: str) -> bool:
        return self._hooks.pop(id, None) is not None

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
