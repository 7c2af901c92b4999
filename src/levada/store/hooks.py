"""Webhook stores: a small file beside the store, written only by the server, or memory."""

from __future__ import annotations

import msgspec

from levada.core.errors import StoreDamaged
from levada.core.records import Webhook
from levada.store.sqlite.small_file import SmallFile

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Webhook).decode


class SqliteWebhooks(SmallFile):
    """Webhooks in a file (`levada.core.protocols.Hooks`). Threads may share one."""

    application_id = 0x4C76486B  # "LvHk"
    schema = ("CREATE TABLE hooks (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",)
    holds = "hooks"
    durable = False  # a lost position only repeats deliveries, with the same ids

    def hooks(self) -> list[Webhook]:
        try:
            return [_decode(body) for (body,) in self._rows("SELECT body FROM hooks ORDER BY id")]
        except msgspec.MsgspecError as error:
            raise StoreDamaged(f"{self.path} holds a hook that cannot be read ({error}): delete it") from error

    def add(self, hook: Webhook) -> None:
        self._rows("INSERT INTO hooks VALUES (?, ?)", (hook.id, _encode(hook)))

    def update(self, hook: Webhook) -> bool:
        return bool(self._rows("UPDATE hooks SET body = ? WHERE id = ? RETURNING 1", (_encode(hook), hook.id)))

    def remove(self, id: str) -> bool:
        return bool(self._rows("DELETE FROM hooks WHERE id = ? RETURNING 1", (id,)))


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
