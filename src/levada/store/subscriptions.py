"""Subscriptions and their outbox: a small file beside the store, or memory.

A change that a subscription wants is first taken: it waits, with its text, in the same transaction that moves the
subscription's position in the change log. Then it becomes part of a message, in the transaction that ends its wait.
A message is sent only after it was recorded, and stays until the target has taken it. So after a crash nothing is
missing, and what is repeated is the same message with the same id.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from levada.core.errors import StoreDamaged, UsageError
from levada.core.protocols import Faults
from levada.core.subscriptions import DeliveryRecord, DescribedChange, Message, Subscription, TakenChanges, Waiting
from levada.store.faults import NoFaults
from levada.store.sqlite.small_file import SmallFile

Edit = Callable[[Subscription], Subscription]
Compose = Callable[[Sequence[DescribedChange]], Message]
_KEPT = 1_000  # delivered messages of a subscription that the log shows
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Subscription).decode
_decode_change = msgspec.json.Decoder(DescribedChange).decode
_decode_message = msgspec.json.Decoder(Message).decode
_OUTBOX = (
    "CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY AUTOINCREMENT, hook TEXT NOT NULL,"
    " seen REAL NOT NULL, body BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS waiting_of ON waiting (hook, number)",
    "CREATE TABLE IF NOT EXISTS outbox (number INTEGER PRIMARY KEY AUTOINCREMENT, hook TEXT NOT NULL,"
    " message TEXT NOT NULL, created REAL NOT NULL, sent REAL, attempts INTEGER NOT NULL DEFAULT 0,"
    " trouble TEXT NOT NULL DEFAULT '', changes INTEGER NOT NULL, title TEXT NOT NULL, body BLOB)",
    "CREATE INDEX IF NOT EXISTS outbox_of ON outbox (hook, sent, number)",
)


class SqliteSubscriptions(SmallFile):
    """Subscriptions in a file that only its owner may read (`levada.core.protocols.Subscriptions`).

    Threads and processes may share it.
    """

    application_id = 0x4C76486B  # "LvHk"
    schema = ("CREATE TABLE hooks (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID", *_OUTBOX)
    holds = "hooks"
    durable = True  # a message must be on the disk before it is sent; other writes do not wait for it
    busy_seconds: ClassVar[float] = 20.0

    def __init__(self, path: Path, *, faults: Faults | None = None) -> None:
        self._faults = faults or NoFaults()
        self._operation = "open"
        with suppress(OSError):  # targets hold passwords; SQLite gives its other files the same mode
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            path.chmod(0o600)
        super().__init__(path)

    def subscriptions(self) -> list[Subscription]:
        return [self._read(body) for (body,) in self._rows("SELECT body FROM hooks ORDER BY id")]

    def get(self, id: str) -> Subscription | None:
        rows = self._rows("SELECT body FROM hooks WHERE id = ?", (id,))
        return self._read(rows[0][0]) if rows else None

    def add(self, subscription: Subscription) -> None:
        with self._write("add") as run:
            if self.get(subscription.id) is not None:
                raise _taken(subscription.id)
            run.execute("INSERT INTO hooks VALUES (?, ?)", (subscription.id, _encode(subscription)))

    def edit(self, id: str, change: Edit) -> Subscription | None:
        with self._write("edit") as run:
            return self._edit(run, id, change)

    def remove(self, id: str) -> bool:
        with self._write("remove") as run:
            for table in ("waiting", "outbox"):
                run.execute(f"DELETE FROM {table} WHERE hook = ?", (id,))
            return bool(run.execute("DELETE FROM hooks WHERE id = ? RETURNING 1", (id,)).fetchall())

    def take(self, id: str, taken: TakenChanges) -> bool:
        with self._write("take") as run:
            known = self.get(id)
            if known is None or known.after != taken.before:
                return False
            self._edit(run, id, lambda each: replace(each, after=taken.after, lost=each.lost + taken.lost))
            self._reach("position")
            rows = [(id, taken.seen, _encode(change)) for change in taken.changes]
            run.executemany("INSERT INTO waiting (hook, seen, body) VALUES (?, ?, ?)", rows)
            return True

    def waiting(self, id: str) -> Waiting | None:
        ((count, since),) = self._rows("SELECT COUNT(*), MIN(seen) FROM waiting WHERE hook = ?", (id,))
        return Waiting(count, since) if count else None

    def compose(self, id: str, most: int, compose: Compose) -> bool:
        with self._write("compose", durable=True) as run:
            asked = "SELECT number, body FROM waiting WHERE hook = ? ORDER BY number LIMIT ?"
            rows = run.execute(asked, (id, most)).fetchall()
            if not rows:
                return False
            message = compose([_decode_change(body) for _, body in rows])
            run.execute(
                "INSERT INTO outbox (hook, message, created, changes, title, body) VALUES (?, ?, ?, ?, ?, ?)",
                (id, message.id, message.created, len(message.changes), message.title, _encode(message)),
            )
            self._reach("message")
            run.execute("DELETE FROM waiting WHERE hook = ? AND number <= ?", (id, rows[-1][0]))
            return True

    def next_message(self, id: str) -> Message | None:
        rows = self._rows(
            "SELECT body, attempts FROM outbox WHERE hook = ? AND sent IS NULL ORDER BY number LIMIT 1", (id,)
        )
        return replace(_decode_message(rows[0][0]), attempts=rows[0][1]) if rows else None

    def unsent(self, id: str) -> int:
        asked = "SELECT COALESCE(SUM(changes), 0) FROM outbox WHERE hook = ? AND sent IS NULL"
        return int(self._rows(asked, (id,))[0][0])

    def sent(self, message: Message, at: float) -> None:
        with self._write("sent") as run:
            done = run.execute(
                "UPDATE outbox SET sent = ?, body = NULL WHERE hook = ? AND message = ? AND sent IS NULL"
                " RETURNING number",
                (at, message.subscription, message.id),
            ).fetchall()
            self._reach("message")
            if done:
                self._edit(run, message.subscription, _told(message))
                run.execute(
                    "DELETE FROM outbox WHERE hook = ?1 AND sent IS NOT NULL AND number <= (SELECT number FROM outbox"
                    " WHERE hook = ?1 AND sent IS NOT NULL ORDER BY number DESC LIMIT 1 OFFSET ?2)",
                    (message.subscription, _KEPT),
                )

    def failed(self, message: Message, trouble: str, retry_at: float) -> None:
        with self._write("failed") as run:
            run.execute(
                "UPDATE outbox SET attempts = attempts + 1, trouble = ? WHERE hook = ? AND message = ?",
                (trouble, message.subscription, message.id),
            )
            self._reach("message")
            self._edit(run, message.subscription, _not_told(trouble, retry_at))

    def skip(self, id: str, after: tuple[int, ...]) -> int:
        with self._write("skip") as run:
            ((waiting,),) = run.execute("SELECT COUNT(*) FROM waiting WHERE hook = ?", (id,)).fetchall()
            due = self.unsent(id)
            run.execute("DELETE FROM waiting WHERE hook = ?", (id,))
            run.execute("DELETE FROM outbox WHERE hook = ? AND sent IS NULL", (id,))
            self._edit(run, id, lambda each: replace(each, after=after, failures=0, trouble="", retry_at=0.0))
            return int(waiting + due)

    def forget(self, is_forgotten: Callable[[str], bool]) -> int:
        """Delete what is held of these pages: waiting changes, messages on their way, and titles in the log."""
        with self._write("forget") as run:
            run.execute("PRAGMA secure_delete = ON")
            gone = 0
            for number, body in run.execute("SELECT number, body FROM waiting").fetchall():
                if is_forgotten(_decode_change(body).event.url):
                    run.execute("DELETE FROM waiting WHERE number = ?", (number,))
                    gone += 1
            for number, body in run.execute("SELECT number, body FROM outbox WHERE body IS NOT NULL").fetchall():
                if any(is_forgotten(each.event.url) for each in _decode_message(body).changes):
                    run.execute("DELETE FROM outbox WHERE number = ?", (number,))
                    gone += 1
            run.execute("UPDATE outbox SET title = '' WHERE sent IS NOT NULL AND title <> ''")
            return gone

    def log(self, limit: int, id: str = "") -> list[DeliveryRecord]:
        rows = self._rows(
            "SELECT message, hook, created, sent, attempts, trouble, changes, title FROM outbox"
            " WHERE ?1 = '' OR hook = ?1 ORDER BY number DESC LIMIT ?2",
            (id, limit),
        )
        return [DeliveryRecord(*row) for row in rows]

    def _edit(self, run: Connection, id: str, change: Edit) -> Subscription | None:
        known = self.get(id)
        if known is None:
            return None
        changed = change(known)
        run.execute("UPDATE hooks SET body = ? WHERE id = ?", (_encode(changed), id))
        return changed

    @contextmanager
    def _write(self, operation: str, *, durable: bool = False) -> Iterator[Connection]:
        with self._lock:
            self._operation = operation
            if not durable:
                self._rows("PRAGMA synchronous = NORMAL")
            try:
                with self._transaction() as run:
                    yield run
            finally:
                self._rows("PRAGMA synchronous = FULL")

    def _reach(self, step: str) -> None:
        self._faults.reach(f"{self._operation}.{step}")

    def _prepare(self) -> None:
        super()._prepare()
        for statement in _OUTBOX:  # a file of an earlier version has only the hooks
            self._connection.execute(statement)

    def _read(self, body: bytes) -> Subscription:
        try:
            return _decode(body)
        except msgspec.MsgspecError as error:
            raise StoreDamaged(f"{self.path} holds a hook that cannot be read ({error}): delete it") from error


class MemorySubscriptions:
    """The reference implementation, in memory."""

    def __init__(self) -> None:
        self._known: dict[str, Subscription] = {}
        self._waiting: list[tuple[str, float, DescribedChange]] = []
        self._outbox: list[tuple[Message, DeliveryRecord]] = []

    def subscriptions(self) -> list[Subscription]:
        return [each for _, each in sorted(self._known.items())]

    def get(self, id: str) -> Subscription | None:
        return self._known.get(id)

    def add(self, subscription: Subscription) -> None:
        if subscription.id in self._known:
            raise _taken(subscription.id)
        self._known[subscription.id] = subscription

    def edit(self, id: str, change: Edit) -> Subscription | None:
        if id in self._known:
            self._known[id] = change(self._known[id])
        return self._known.get(id)

    def remove(self, id: str) -> bool:
        self._waiting = [each for each in self._waiting if each[0] != id]
        self._outbox = [each for each in self._outbox if each[0].subscription != id]
        return self._known.pop(id, None) is not None

    def take(self, id: str, taken: TakenChanges) -> bool:
        known = self._known.get(id)
        if known is None or known.after != taken.before:
            return False
        self._known[id] = replace(known, after=taken.after, lost=known.lost + taken.lost)
        self._waiting += [(id, taken.seen, change) for change in taken.changes]
        return True

    def waiting(self, id: str) -> Waiting | None:
        seen = [at for hook, at, _ in self._waiting if hook == id]
        return Waiting(len(seen), min(seen)) if seen else None

    def compose(self, id: str, most: int, compose: Compose) -> bool:
        taken = [each for each in self._waiting if each[0] == id][:most]
        if not taken:
            return False
        message = compose([change for _, _, change in taken])
        record = DeliveryRecord(message.id, id, message.created, None, 0, "", len(taken), message.title)
        self._outbox.append((message, record))
        self._waiting = [each for each in self._waiting if each not in taken]
        return True

    def next_message(self, id: str) -> Message | None:
        due = ((each, record) for each, record in self._outbox if each.subscription == id and record.sent is None)
        message, record = next(due, (None, None))
        return replace(message, attempts=record.attempts) if message and record else None

    def unsent(self, id: str) -> int:
        due = (record for _, record in self._outbox if record.subscription == id and record.sent is None)
        return sum(record.changes for record in due)

    def sent(self, message: Message, at: float) -> None:
        if not self._record(message, lambda record: replace(record, sent=at)):
            return
        self.edit(message.subscription, _told(message))

    def failed(self, message: Message, trouble: str, retry_at: float) -> None:
        self._record(message, lambda record: replace(record, attempts=record.attempts + 1, trouble=trouble))
        self.edit(message.subscription, _not_told(trouble, retry_at))

    def skip(self, id: str, after: tuple[int, ...]) -> int:
        unsent = self.unsent(id)
        due = [each for each in self._outbox if each[0].subscription == id and each[1].sent is None]
        waiting = [each for each in self._waiting if each[0] == id]
        self._outbox = [each for each in self._outbox if each not in due]
        self._waiting = [each for each in self._waiting if each not in waiting]
        self.edit(id, lambda each: replace(each, after=after, failures=0, trouble="", retry_at=0.0))
        return len(waiting) + unsent

    def log(self, limit: int, id: str = "") -> list[DeliveryRecord]:
        found = [record for _, record in self._outbox if id in ("", record.subscription)]
        return found[::-1][:limit]

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _record(self, message: Message, change: Callable[[DeliveryRecord], DeliveryRecord]) -> bool:
        for place, (each, record) in enumerate(self._outbox):
            if (each.subscription, each.id, record.sent) == (message.subscription, message.id, None):
                self._outbox[place] = (each, change(record))
                return True
        return False


def _told(message: Message) -> Edit:
    count = len(message.changes)
    return lambda each: replace(each, told=each.told + count, failures=0, trouble="", retry_at=0.0)


def _not_told(trouble: str, retry_at: float) -> Edit:
    return lambda each: replace(each, failures=each.failures + 1, trouble=trouble, retry_at=retry_at)


def _taken(id: str) -> UsageError:
    return UsageError(f'there is a notification "{id}" already: choose another --name, or remove that one first')
