"""The task store logic that SQL databases share.

The row of the load is locked first, so that the steps of one load come one after the other. Each database has its
own way to do that (`_step`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from levada.bulk.splitting import Span
from levada.bulk.tasks import LoadRecord, LoadState, LoadStatus, TaskLease, TaskResult, Totals, added

TABLES = (
    "CREATE TABLE IF NOT EXISTS levada_loads (name TEXT PRIMARY KEY, generation BIGINT NOT NULL,"
    " state TEXT NOT NULL, reason TEXT NOT NULL, started_at DOUBLE PRECISION NOT NULL, record TEXT NOT NULL,"
    " ended_at DOUBLE PRECISION)",
    "CREATE TABLE IF NOT EXISTS levada_load_tasks (name TEXT NOT NULL, task BIGINT NOT NULL, span TEXT NOT NULL,"
    " token BIGINT NOT NULL DEFAULT 0, owner TEXT NOT NULL DEFAULT '', offer TEXT NOT NULL DEFAULT '',"
    " expires_at DOUBLE PRECISION, result TEXT, PRIMARY KEY (name, task))",
)
_FREE = (
    "SELECT task, token, span FROM levada_load_tasks WHERE name = ? AND result IS NULL"
    " AND (expires_at IS NULL OR expires_at <= ?) ORDER BY expires_at IS NOT NULL, task LIMIT 1"
)


class SqlTaskStore:
    """A task store on SQL, over one connection."""

    def _step(self, name: str) -> AbstractContextManager[None]:
        """One transaction; it locks the load's row where there is one."""
        raise NotImplementedError

    def _run(self, statement: str, *values: object) -> list[Any]:
        """Run a statement with `?` for values in a step; return its rows, if there are any."""
        raise NotImplementedError

    def _now(self) -> float:
        raise NotImplementedError

    def begin(self, record: LoadRecord, spans: Sequence[Span], expected: int) -> bool:
        name = record.plan.name
        with self._step(name):
            known = self._run("SELECT generation FROM levada_loads WHERE name = ?", name)
            if (known[0][0] if known else 0) != expected:
                return False
            self._run("DELETE FROM levada_load_tasks WHERE name = ?", name)
            self._run("DELETE FROM levada_loads WHERE name = ?", name)
            self._run(
                "INSERT INTO levada_loads VALUES (?, ?, ?, ?, ?, ?, NULL)",
                *(name, record.generation, record.state.value, "", self._now(), _text(record)),
            )
            self._insert(name, 0, spans)
            return True

    def lease(self, name: str, generation: int, owner: str, seconds: float, offer: str) -> TaskLease | None:
        with self._step(name):
            if not self._runs(name, generation):
                return None
            now = self._now()
            found = self._run(_FREE, name, now)
            if not found:
                return None
            task, token, span = found[0]
            self._run(
                "UPDATE levada_load_tasks SET token = ?, owner = ?, offer = ?, expires_at = ?"
                " WHERE name = ? AND task = ?",
                *(token + 1, owner, offer, now + seconds, name, task),
            )
            return TaskLease(name, generation, task, token + 1, msgspec.json.decode(span, type=Span))

    def renew(self, lease: TaskLease, seconds: float) -> bool:
        with self._step(lease.name):
            held = self._held(lease)
            if held:
                self._run(
                    "UPDATE levada_load_tasks SET expires_at = ? WHERE name = ? AND task = ?",
                    *(self._now() + seconds, lease.name, lease.task),
                )
            return held

    def complete(self, lease: TaskLease, result: TaskResult) -> bool:
        with self._step(lease.name):
            if not self._held(lease):
                return False
            self._run(
                "UPDATE levada_load_tasks SET result = ? WHERE name = ? AND task = ?",
                *(_text(result), lease.name, lease.task),
            )
            if result.parts:
                last = self._run("SELECT max(task) FROM levada_load_tasks WHERE name = ?", lease.name)[0][0]
                self._insert(lease.name, last + 1, result.parts)
            return True

    def finish(self, name: str, generation: int, state: LoadState, reason: str) -> bool:
        with self._step(name):
            known = self._run("SELECT generation, state FROM levada_loads WHERE name = ?", name)
            if not known or known[0][0] != generation or known[0][1] == LoadState.PUBLISHED.value:
                return False
            ended = None if state is LoadState.RUNNING else self._now()
            self._run(
                "UPDATE levada_loads SET state = ?, reason = ?, ended_at = ? WHERE name = ?",
                *(state.value, reason, ended, name),
            )
            return True

    def status(self, name: str) -> LoadStatus | None:
        with self._step(name):
            known = self._run(
                "SELECT record, state, reason, started_at, ended_at FROM levada_loads WHERE name = ?", name
            )
            if not known:
                return None
            tasks = self._run("SELECT owner, offer, expires_at, result FROM levada_load_tasks WHERE name = ?", name)
            return status_of_load(known[0], tasks, self._now())

    def _runs(self, name: str, generation: int) -> bool:
        known = self._run("SELECT generation, state FROM levada_loads WHERE name = ?", name)
        return bool(known) and tuple(known[0]) == (generation, LoadState.RUNNING.value)

    def _held(self, lease: TaskLease) -> bool:
        if not self._runs(lease.name, lease.generation):
            return False
        found = self._run(
            "SELECT token FROM levada_load_tasks WHERE name = ? AND task = ? AND result IS NULL", lease.name, lease.task
        )
        return bool(found) and found[0][0] == lease.token

    def _insert(self, name: str, first: int, spans: Sequence[Span]) -> None:
        for task, span in enumerate(spans, first):
            self._run("INSERT INTO levada_load_tasks (name, task, span) VALUES (?, ?, ?)", name, task, _text(span))


def status_of_load(known: Sequence[Any], tasks: Sequence[Any], now: float) -> LoadStatus:
    """The status from the load's record, state, reason, start and end, and each task's owner, offer, lease end and
    result."""
    text, state, reason, started_at, ended_at = known
    record = msgspec.json.decode(text, type=LoadRecord)
    record = msgspec.structs.replace(
        record, state=LoadState(state), reason=reason, started_at=started_at, ended_at=ended_at
    )
    total, owners, offers = Totals(), dict[str, tuple[int, int, int]](), dict[str, None]()
    waiting = leased = expired = 0
    for owner, offer, expires_at, text in tasks:
        held, done, rows = owners.get(owner, (0, 0, 0))
        if text is not None:
            result = msgspec.json.decode(text, type=TaskResult)
            total = added(total, result)
            owners[owner] = (held, done + (not result.parts), rows + result.rows)
        elif expires_at is None:
            waiting += 1
        else:
            leased += 1
            owners[owner] = (held + 1, done, rows)
            if expires_at <= now:
                expired += 1
            elif offer:
                offers[offer] = None
    return LoadStatus(record, waiting, leased, expired, total, now, owners, tuple(offers))


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
