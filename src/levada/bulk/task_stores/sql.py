"""The task store logic that SQL databases share.

The row of the load is locked first, so that the steps of one load come one after the other. Each database has its
own way to do that (`_step`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

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


class SqlStep(Protocol):
    """One transaction."""

    def run(self, statement: str, *values: object) -> list[Any]:
        """Run a statement with `?` for values; return its rows, if there are any."""

    def now(self) -> float: ...


class SqlTaskStore:
    """A task store on SQL. `_step` locks the load's row where there is one."""

    def _step(self, name: str) -> AbstractContextManager[SqlStep]:
        raise NotImplementedError

    def begin(self, record: LoadRecord, spans: Sequence[Span], expected: int) -> bool:
        name = record.plan.name
        with self._step(name) as step:
            known = step.run("SELECT generation FROM levada_loads WHERE name = ?", name)
            if (known[0][0] if known else 0) != expected:
                return False
            step.run("DELETE FROM levada_load_tasks WHERE name = ?", name)
            step.run("DELETE FROM levada_loads WHERE name = ?", name)
            step.run(
                "INSERT INTO levada_loads VALUES (?, ?, ?, ?, ?, ?, NULL)",
                *(name, record.generation, record.state.value, "", step.now(), _text(record)),
            )
            _insert(step, name, 0, spans)
            return True

    def lease(self, name: str, generation: int, owner: str, seconds: float, offer: str) -> TaskLease | None:
        with self._step(name) as step:
            if not _runs(step, name, generation):
                return None
            now = step.now()
            found = step.run(_FREE, name, now)
            if not found:
                return None
            task, token, span = found[0]
            step.run(
                "UPDATE levada_load_tasks SET token = ?, owner = ?, offer = ?, expires_at = ?"
                " WHERE name = ? AND task = ?",
                *(token + 1, owner, offer, now + seconds, name, task),
            )
            return TaskLease(name, generation, task, token + 1, msgspec.json.decode(span, type=Span))

    def renew(self, lease: TaskLease, seconds: float) -> bool:
        with self._step(lease.name) as step:
            held = _held(step, lease)
            if held:
                step.run(
                    "UPDATE levada_load_tasks SET expires_at = ? WHERE name = ? AND task = ?",
                    *(step.now() + seconds, lease.name, lease.task),
                )
            return held

    def complete(self, lease: TaskLease, result: TaskResult) -> bool:
        with self._step(lease.name) as step:
            if not _held(step, lease):
                return False
            step.run(
                "UPDATE levada_load_tasks SET result = ? WHERE name = ? AND task = ?",
                *(_text(result), lease.name, lease.task),
            )
            if result.parts:
                last = step.run("SELECT max(task) FROM levada_load_tasks WHERE name = ?", lease.name)[0][0]
                _insert(step, lease.name, last + 1, result.parts)
            return True

    def finish(self, name: str, generation: int, state: LoadState, reason: str) -> bool:
        with self._step(name) as step:
            known = step.run("SELECT generation, state FROM levada_loads WHERE name = ?", name)
            if not known or known[0][0] != generation or known[0][1] == LoadState.PUBLISHED.value:
                return False
            ended = None if state is LoadState.RUNNING else step.now()
            step.run(
                "UPDATE levada_loads SET state = ?, reason = ?, ended_at = ? WHERE name = ?",
                *(state.value, reason, ended, name),
            )
            return True

    def status(self, name: str) -> LoadStatus | None:
        with self._step(name) as step:
            known = step.run(
                "SELECT record, state, reason, started_at, ended_at FROM levada_loads WHERE name = ?", name
            )
            if not known:
                return None
            text, state, reason, started_at, ended_at = known[0]
            tasks = step.run("SELECT owner, offer, expires_at, result FROM levada_load_tasks WHERE name = ?", name)
            record = msgspec.structs.replace(
                msgspec.json.decode(text, type=LoadRecord),
                state=LoadState(state),
                reason=reason,
                started_at=started_at,
                ended_at=ended_at,
            )
            return status_of_load(record, tasks, step.now())


def status_of_load(record: LoadRecord, tasks: Sequence[Any], now: float) -> LoadStatus:
    """The status from each task's owner, offer, lease end and result."""
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


def _runs(step: SqlStep, name: str, generation: int) -> bool:
    known = step.run("SELECT generation, state FROM levada_loads WHERE name = ?", name)
    return bool(known) and tuple(known[0]) == (generation, LoadState.RUNNING.value)


def _held(step: SqlStep, lease: TaskLease) -> bool:
    if not _runs(step, lease.name, lease.generation):
        return False
    found = step.run(
        "SELECT token FROM levada_load_tasks WHERE name = ? AND task = ? AND result IS NULL", lease.name, lease.task
    )
    return bool(found) and found[0][0] == lease.token


def _insert(step: SqlStep, name: str, first: int, spans: Sequence[Span]) -> None:
    for task, span in enumerate(spans, first):
        step.run("INSERT INTO levada_load_tasks (name, task, span) VALUES (?, ?, ?)", name, task, _text(span))


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
