"""One instance of a load: it leases, reads, writes and completes tasks until all are done.

Nobody knows how many instances there are. Each may join late, be killed or stall at any instant: an expired task is
leased again, the write fence of the generation rejects what the stalled instance still writes, and its late "done"
is refused. When every task is done, the first instance to notice swaps the pointer.

A write carries the fence's epoch from before the task was leased: another instance that took the task since would
have moved the fence first. So the usual task costs no extra read of the fence.

An instance works on two tasks: it reads one here, while the write pipeline writes and completes the one before.
Source and task store may be called from either side; the target only from the pipeline while that is busy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from threading import Event, Thread
from typing import NamedTuple

from levada.bulk.entries import DuplicateKey
from levada.bulk.protocols import (
    Away,
    LeaseLost,
    LoadEnded,
    LostGround,
    MapTarget,
    RowBatch,
    TableSource,
    TaskStore,
    Wakeup,
)
from levada.bulk.splitting import Span, parts_of
from levada.bulk.start import Starter
from levada.bulk.tasks import LoadRecord, LoadState, LoadStatus, Manifest, TaskLease, TaskResult, Throttle
from levada.core.errors import LevadaError
from levada.core.protocols import Clock


class NoWakeup:
    """Waits without a message; nobody is woken."""

    def __init__(self, wait: Callable[[float], object]) -> None:
        self._wait = wait

    def notify(self) -> None:
        """Do nothing."""

    def wait(self, seconds: float) -> bool:
        self._wait(seconds)
        return False

    def close(self) -> None:
        """Do nothing."""


class ThreadHeartbeat:
    """Renews a lease every `seconds` of real time, which shows that the process lives. `alive` turns False as soon as
    a renewal is refused."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._over = Event()
        self.alive = True

    @contextmanager
    def beating(self, beat: Callable[[], bool]) -> Iterator[ThreadHeartbeat]:
        thread = Thread(target=self._run, args=(beat,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    def _run(self, beat: Callable[[], bool]) -> None:
        while not self._over.wait(self._seconds):
            try:
                self.alive = beat()
            except LevadaError:
                continue  # the task store is away: the lease may outlast that
            if not self.alive:
                return


class ThreadedPipeline:
    """Writes one task on a thread of its own while the next is read."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "levada-load-write")
        self._last: Future[None] | None = None

    def put(self, work: Callable[[], None]) -> None:
        """Start this as soon as the previous work is done; raise what that raised."""
        self.empty()
        self._last = self._thread.submit(work)

    def empty(self) -> None:
        """Wait until all work is done; raise what it raised."""
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def close(self) -> None:
        """Wait, and raise nothing: the caller leaves because of another error."""
        self._thread.shutdown()


_SAMPLE = 1_000
_MOST_TAKES = 50  # leases of one task: more means that the task kills its instances
_POLL_SECONDS = 0.5  # seconds between two status checks, while there is work


class Pace:
    """How fast an instance may go, and how long a lease lasts."""

    def __init__(self, *, lease: float = 30.0, most_rows: int = 200_000, rows_per_second: float = 0.0) -> None:
        self.lease = lease
        self.most_rows = most_rows
        self.throttle = Throttle(rows_per_second)


def _nap(idle: int) -> float:
    """Seconds to wait after so many idle checks: a quarter of the time waited so far, so that little is lost at the
    end."""
    return 0.002 * 1.25 ** min(idle, 60)


def read_span(source: TableSource, span: Span, most_rows: int) -> RowBatch | int | list[Span]:
    """The rows of a span, or its number of NULL keys, or its parts if it has more rows than that."""
    batch = source.read(span, most_rows)
    if batch is None:
        parts = parts_of(span, source.sample(span, _SAMPLE))
        if len(parts) > 1:
            return parts
        batch = source.read(span, None)  # one key, whatever its size
    if batch is None:
        raise LevadaError("a source must read a span that cannot be divided")
    return batch


class Instance:
    """One instance of one generation of a load."""

    def __init__(
        self,
        source: TableSource,
        task_store: TaskStore,
        target: MapTarget,
        clock: Clock,
        owner: str,
        *,
        pace: Pace,
        wait: Callable[[float], object],
        wakeup: Wakeup | None = None,
        heartbeat: Callable[[float], ThreadHeartbeat] = ThreadHeartbeat,
        pipeline: Callable[[], ThreadedPipeline] = ThreadedPipeline,
    ) -> None:
        self._source, self._task_store, self._target, self._clock = source, task_store, target, clock
        self._owner, self._pace, self._heartbeat, self._pipeline = owner, pace, heartbeat, pipeline
        self._wait, self._wakeup = wait, wakeup or NoWakeup(wait)
        self._epoch = 0  # of the write fence, as last seen
        self.rows = 0
        self.published = False  # by this instance

    def work(self, record: LoadRecord, offer: str, watch: Callable[[LoadStatus], None]) -> LoadStatus:
        """Work until the generation is published, by us or by another instance."""
        self._check_target(record)
        self._epoch = self._target.fence(record.plan.name, record.generation, "look")
        with closing(self._pipeline()) as pipeline:
            status = self._until_done(record, offer, watch, pipeline)
        return status if status.record.state is LoadState.PUBLISHED else self._publish(status)

    def _check_target(self, record: LoadRecord) -> None:
        if self._target.fingerprint() != record.fingerprint:
            raise LostGround("the target was restarted and may have lost what was written")

    def _until_done(
        self, record: LoadRecord, offer: str, watch: Callable[[LoadStatus], None], pipeline: ThreadedPipeline
    ) -> LoadStatus:
        name, generation = record.plan.name, record.generation
        look_at, idle = 0.0, 0
        while True:
            epoch = self._epoch  # from before the lease, whatever the pipeline sees while we read
            lease = self._task_store.lease(name, generation, self._owner, self._pace.lease, offer)
            idle = idle + 1 if lease is None else 0
            if lease is not None:
                self._do(record, lease, epoch, pipeline)
                if self._clock.monotonic() < look_at:
                    continue
            else:
                pipeline.empty()  # what we still write may be the last missing task
            status = self._status(record)
            watch(status)
            look_at = self._clock.monotonic() + _POLL_SECONDS
            if status.record.state is LoadState.PUBLISHED or status.finished:
                return status
            if lease is None:
                if idle == 1:
                    self._wakeup.notify()  # we read no more: another instance may start reading
                self._wakeup.wait(min(_POLL_SECONDS, self._pace.lease / 4, _nap(idle)))

    def _status(self, record: LoadRecord) -> LoadStatus:
        status = self._task_store.status(record.plan.name)
        if status is None:
            raise LostGround("the task store no longer knows the load")
        if status.record.generation != record.generation:
            raise LostGround(f"load {record.plan.name} was restarted by another instance")
        if status.record.state in (LoadState.CANCELLED, LoadState.FAILED):
            reason = f": {status.record.reason}" if status.record.reason else ""
            raise LoadEnded(f"load {record.plan.name} was {status.record.state}{reason}")
        return status

    def _do(self, record: LoadRecord, lease: TaskLease, epoch: int, pipeline: ThreadedPipeline) -> None:
        if lease.token > _MOST_TAKES:
            raise LevadaError(f"a task was leased {_MOST_TAKES} times and never done: see its instances' logs")
        with ExitStack() as held:
            beat = partial(self._task_store.renew, lease, self._pace.lease)
            heartbeat = held.enter_context(self._heartbeat(self._pace.lease / 3).beating(beat))
            found = self._read(lease)
            if not isinstance(found, TaskResult):
                self._wait(self._pace.throttle.rest(len(found), self._clock.monotonic()))
            pipeline.empty()  # within our heartbeat: it must stop if the previous task failed
            pipeline.put(partial(self._deliver, record, lease, epoch, found, heartbeat, held.pop_all()))

    def _deliver(
        self,
        record: LoadRecord,
        lease: TaskLease,
        epoch: int,
        found: RowBatch | TaskResult,
        heartbeat: ThreadHeartbeat,
        held: ExitStack,
    ) -> None:
        """Write what was read to the map, and complete the task. Nothing of it counts if the lease was lost."""
        with suppress(LeaseLost):
            with held:
                if lease.token > 1:  # leased before: first stop the writes of its former holder
                    epoch = self._seen(lease, "move")
                if isinstance(found, TaskResult):
                    result = found
                else:
                    keys = self._write(record, lease, epoch, found, heartbeat) if len(found) else 0
                    result = TaskResult(len(found), keys, found.digest(), null_values=found.null_values)
            if not self._task_store.complete(lease, result):
                return
            self.rows += result.rows
            if result.parts:
                self._wakeup.notify()  # there are new tasks

    def _seen(self, lease: TaskLease, action: str) -> int:
        """The fence's epoch, while the task was ours: an instance that takes it later moves the fence again."""
        epoch = self._target.fence(lease.name, lease.generation, action)
        if not self._task_store.renew(lease, self._pace.lease):
            raise LeaseLost("the task was taken by another instance")
        if not epoch:
            raise LostGround("the target no longer has what was written")
        self._epoch = epoch
        return epoch

    def _read(self, lease: TaskLease) -> RowBatch | TaskResult:
        """The rows, or the result of a task without any: its parts if it is too big, or its number of NULL keys."""
        found = read_span(self._source, lease.span, self._pace.most_rows)
        if isinstance(found, list):
            return TaskResult(parts=tuple(found))
        return TaskResult(null_keys=found) if isinstance(found, int) else found

    def _write(
        self, record: LoadRecord, lease: TaskLease, epoch: int, batch: RowBatch, heartbeat: ThreadHeartbeat
    ) -> int:
        try:
            entries = batch.entries(record.plan.collect)
        except DuplicateKey as error:
            self._task_store.finish(lease.name, lease.generation, LoadState.FAILED, str(error))
            self._wakeup.notify()
            raise
        while heartbeat.alive and not self._target.write(lease.name, lease.generation, epoch, entries):
            epoch = self._seen(lease, "look")
        if not heartbeat.alive:
            raise LeaseLost("the task was taken by another instance")
        return len(entries)

    def _publish(self, status: LoadStatus) -> LoadStatus:
        record, done = status.record, status.done
        name, generation = record.plan.name, record.generation
        self._check_target(record)
        manifest = Manifest(
            record.plan,
            generation,
            (generation, *record.layers),
            record.key_kind,
            record.value_kind,
            done.keys,
            done.rows,
            done.digest,
            buckets=self._target.buckets,
            newest=record.newest,
            published_at=status.now,
        )
        if not self._target.publish(manifest):
            raise LostGround(f"generation {generation} of {name} was given up by others")
        self.published = True
        self._task_store.finish(name, generation, LoadState.PUBLISHED, "")
        self._wakeup.notify()
        published = self._task_store.status(name)
        return published if published is not None else status


class Patience(NamedTuple):
    """How often to retry."""

    restarts: int = 3  # restarts of the whole load, under a new generation
    tries: int = 6  # tries in a row, while a server is away
    seconds: float = 1.0  # between them


class Loaded(NamedTuple):
    """The end of a load."""

    status: LoadStatus
    began: bool  # whether this instance began it, at least once
    restarts: int
    published: bool = False  # by this instance


def run_load(
    opened: Callable[[], tuple[Starter, Instance, TaskStore]],
    watch: Callable[[LoadStatus], None],
    wait: Callable[[float], object],
    patience: Patience,
) -> Loaded:
    """Take part until the load is published. `opened` gives new connections: those that were cut are of no use."""
    restarts, away, lost, began = 0, 0, 0, False
    while True:
        instance: Instance | None = None
        try:
            starter, instance, task_store = opened()
            entered = starter.enter(lost)
            began = began or entered.began
            try:
                status = instance.work(entered.record, entered.offer, watch)
            except (Away, LostGround, LoadEnded):
                raise
            except LevadaError as error:
                task_store.finish(entered.record.plan.name, entered.record.generation, LoadState.FAILED, str(error))
                raise
            return Loaded(status, began, restarts, instance.published)
        except LostGround:
            lost, restarts = entered.record.generation, restarts + 1
            if restarts > patience.restarts:
                raise
        except Away:
            away = 1 if instance is not None and instance.rows else away + 1
            if away > patience.tries:
                raise
            wait(patience.seconds)
