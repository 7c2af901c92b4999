"""Task store, maps and table in memory: the reference that every engine must match. And a pace without threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

import msgspec

from levada.bulk.entries import PlainRows
from levada.bulk.instance import ThreadedPipeline, ThreadHeartbeat
from levada.bulk.protocols import Entries
from levada.bulk.splitting import Key, NullKeys, Span, TableFacts, holds
from levada.bulk.tasks import LoadRecord, LoadState, LoadStatus, Manifest, TaskLease, TaskResult, Totals, added
from levada.core.protocols import Clock

__all__ = ["DirectPipeline", "MemoryMaps", "MemoryTable", "MemoryTaskStore", "NoHeartbeat"]


class _Task(msgspec.Struct):
    span: Span
    token: int = 0
    owner: str = ""
    offer: str = ""
    expires_at: float | None = None  # None: waiting
    result: TaskResult | None = None

    def free_at(self, now: float) -> bool:
        return self.expires_at is None or self.expires_at <= now


class MemoryTaskStore:
    """Tasks and leases in dictionaries."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._records: dict[str, LoadRecord] = {}
        self._tasks: dict[tuple[str, int], list[_Task]] = {}

    def begin(self, record: LoadRecord, spans: Sequence[Span], expected: int) -> bool:
        name = record.plan.name
        known = self._records.get(name)
        if (known.generation if known else 0) != expected:
            return False
        self._records[name] = msgspec.structs.replace(record, started_at=self._clock.now())
        self._tasks[name, record.generation] = [_Task(span) for span in spans]
        return True

    def lease(self, name: str, generation: int, owner: str, seconds: float, offer: str) -> TaskLease | None:
        if not self._runs(name, generation):
            return None
        now, tasks = self._clock.now(), self._tasks[name, generation]
        free = [number for number, task in enumerate(tasks) if task.result is None and task.free_at(now)]
        if not free:
            return None
        number = min(free, key=lambda each: tasks[each].expires_at is not None)  # waiting tasks come first
        task = tasks[number]
        task.token += 1
        task.owner, task.offer, task.expires_at = owner, offer, now + seconds
        return TaskLease(name, generation, number, task.token, task.span)

    def renew(self, lease: TaskLease, seconds: float) -> bool:
        task = self._held(lease)
        if task is None:
            return False
        task.expires_at = self._clock.now() + seconds
        return True

    def complete(self, lease: TaskLease, result: TaskResult) -> bool:
        task = self._held(lease)
        if task is None:
            return False
        task.result = result
        self._tasks[lease.name, lease.generation] += [_Task(span) for span in result.parts]
        return True

    def finish(self, name: str, generation: int, state: LoadState, reason: str) -> bool:
        known = self._records.get(name)
        if known is None or known.generation != generation or known.state is LoadState.PUBLISHED:
            return False
        ended = None if state is LoadState.RUNNING else self._clock.now()
        self._records[name] = msgspec.structs.replace(known, state=state, reason=reason, ended_at=ended)
        return True

    def status(self, name: str) -> LoadStatus | None:
        record = self._records.get(name)
        if record is None:
            return None
        now, total, owners = self._clock.now(), Totals(), dict[str, tuple[int, int, int]]()
        tasks = self._tasks[name, record.generation]
        leased = [task for task in tasks if task.result is None and task.expires_at is not None]
        for task in tasks:
            if task.owner:
                held, done, rows = owners.get(task.owner, (0, 0, 0))
                result = task.result
                owners[task.owner] = (
                    held + (result is None),
                    done + (result is not None and not result.parts),
                    rows + (result.rows if result else 0),
                )
            total = added(total, task.result) if task.result else total
        living = [task for task in leased if (task.expires_at or 0.0) > now]
        return LoadStatus(
            record,
            waiting=sum(task.result is None and task.expires_at is None for task in tasks),
            leased=len(leased),
            expired=len(leased) - len(living),
            done=total,
            now=now,
            owners=owners,
            offers=tuple(dict.fromkeys(task.offer for task in living if task.offer)),
        )

    def _runs(self, name: str, generation: int) -> bool:
        known = self._records.get(name)
        return known is not None and known.generation == generation and known.state is LoadState.RUNNING

    def _held(self, lease: TaskLease) -> _Task | None:
        if not self._runs(lease.name, lease.generation):
            return None
        task = self._tasks[lease.name, lease.generation][lease.task]
        return task if task.token == lease.token and task.result is None else None


class MemoryMaps:
    """Writer and reader of maps in memory."""

    def __init__(self) -> None:
        self._gates: dict[tuple[str, int], int] = {}
        self._layers: dict[tuple[str, int], dict[bytes, bytes]] = {}
        self._published: dict[str, Manifest] = {}
        self._born = next(_births)

    @property
    def buckets(self) -> int:
        return 1

    def fingerprint(self) -> str:
        return str(self._born)

    def fence(self, name: str, generation: int, action: str) -> int:
        place = name, generation
        known = self._published.get(name)
        if action == "open" and place not in self._gates and (known is None or known.generation < generation):
            self._gates[place] = 1
        if action == "move" and self._gates.get(place):
            self._gates[place] += 1
        return self._gates.get(place, 0)

    def write(self, name: str, generation: int, epoch: int, entries: Entries) -> bool:
        if not epoch or self._gates.get((name, generation)) != epoch:
            return False
        self._layers.setdefault((name, generation), {}).update(entries.pairs())
        return True

    def publish(self, manifest: Manifest) -> bool:
        name = manifest.plan.name
        known = self._published.get(name)
        if (known is not None and known.generation > manifest.generation) or (
            (name, manifest.generation) not in self._gates
        ):
            return False
        self._gates[name, manifest.generation] = 0
        self._published[name] = manifest
        return True

    def remove(self, name: str, generation: int) -> None:
        known = self._published.get(name)
        if known is None or generation not in known.layers:
            self._gates.pop((name, generation), None)
            self._layers.pop((name, generation), None)

    def manifest(self, name: str) -> Manifest | None:
        return self._published.get(name)

    def get(self, manifest: Manifest, keys: Sequence[bytes]) -> tuple[list[bytes | None], bool]:
        name = manifest.plan.name
        layers = [self._layers.get((name, layer), {}) for layer in manifest.layers]
        found = [next((layer[key] for layer in layers if key in layer), None) for key in keys]
        return found, self._published.get(name) == manifest

    def entries(self, name: str, generation: int) -> Iterator[tuple[bytes, bytes]]:
        yield from self._layers.get((name, generation), {}).items()

    def generations(self, name: str) -> list[int]:
        return sorted(generation for each, generation in {*self._gates, *self._layers} if each == name)

    def close(self) -> None:
        pass


_births = count(1)


class MemoryTable:
    """Rows (key, value) in a list; blocks are positions in it."""

    def __init__(self, rows: Sequence[tuple[Key | None, object]], kinds: tuple[str, str] = ("int", "int")) -> None:
        self._rows = rows
        self._kinds = kinds

    def share(self, offers: Sequence[str], since: str | None) -> str | None:
        return ""

    def facts(self) -> TableFacts:
        return TableFacts(len(self._rows), *self._kinds, blocks=len(self._rows))

    def sample(self, span: Span, size: int) -> list[Key]:
        keys = sorted(key for key, _ in self._of(span) if key is not None)
        return keys[:: max(1, len(keys) // max(1, size))]

    def duplicate(self) -> Key | None:
        return None

    def read(self, span: Span, limit: int | None) -> PlainRows | int | None:
        rows = self._of(span)
        if isinstance(span, NullKeys):
            return len(rows)
        taken = [(key, value) for key, value in rows if value is not None]
        if limit is not None and len(taken) > limit:
            return None
        keys, values = [key for key, _ in taken], [value for _, value in taken]
        return PlainRows(keys, values, self._kinds, len(rows) - len(taken))

    def close(self) -> None:
        pass

    def _of(self, span: Span) -> list[tuple[Key | None, object]]:
        return [row for place, row in enumerate(self._rows) if holds(span, row[0], place)]


class NoHeartbeat(ThreadHeartbeat):
    """Never renews: time stands still."""

    @contextmanager
    def beating(self, beat: Callable[[], bool]) -> Iterator[NoHeartbeat]:
        yield self


class DirectPipeline(ThreadedPipeline):
    """Runs nothing concurrently: each step has its instant."""

    def put(self, work: Callable[[], None]) -> None:
        work()
