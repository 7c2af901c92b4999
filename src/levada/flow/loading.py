"""How does one instance take part in a load? It leases, reads, writes and settles tasks until all are done.

Nobody knows how many instances there are. Each may join late, be killed or stall at any instant: a task whose lease
runs out is taken again, the gate of the generation keeps what the stalled one still writes out, and its late "done"
is refused. When every task is done, whoever notices first swaps the pointer.

A write is taken under the epoch of the gate that was seen before the task was leased: had another instance taken
the task since, it would have moved the gate first. So the usual task costs no look at the gate.

An instance has two tasks in hand: one is read here, while the one before is written and settled on the lane. Source
and book may be asked from either side, the target only from the lane as long as there is something on it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from functools import partial

from levada.bulk.collecting import DuplicateKey
from levada.bulk.generations import Manifest
from levada.bulk.ports import Bell, MapTarget, RowBatch, TableSource, TaskBook
from levada.bulk.spans import parts_of
from levada.bulk.tasks import LoadRecord, LoadState, Standing, TaskLease, TaskResult
from levada.bulk.throttle import Throttle
from levada.bulk.trouble import LeaseLost, LoadEnded, LostGround
from levada.errors import LevadaError
from levada.flow.loading_bell import NoBell
from levada.flow.loading_heart import Heart, Pulse
from levada.flow.loading_lane import Beside, Lane
from levada.ports import Clock

__all__ = ["Instance", "Pace"]

_SAMPLE = 1_000
_MOST_TAKES = 50  # then it is the task that ends its instances
_LOOK = 0.5  # seconds between two looks into the book, while there is work


class Pace:
    """How fast an instance may go, and how long a lease lasts."""

    def __init__(self, *, lease: float = 30.0, most_rows: int = 200_000, rows_per_second: float = 0.0) -> None:
        self.lease = lease
        self.most_rows = most_rows
        self.throttle = Throttle(rows_per_second)


def _nap(idle: int) -> float:
    """Seconds, after so many looks in vain: a quarter of what was waited, so that little is lost at the end."""
    return 0.002 * 1.25 ** min(idle, 60)


class Instance:
    """One worker of one generation of a load."""

    def __init__(
        self,
        source: TableSource,
        book: TaskBook,
        target: MapTarget,
        clock: Clock,
        owner: str,
        *,
        pace: Pace,
        wait: Callable[[float], object],
        bell: Bell | None = None,
        heart: Callable[[float], Heart] = Pulse,
        lane: Callable[[], Lane] = Beside,
    ) -> None:
        self._source, self._book, self._target, self._clock = source, book, target, clock
        self._owner, self._pace, self._wait, self._heart, self._lane = owner, pace, wait, heart, lane
        self._bell = bell or NoBell(wait)
        self._epoch = 0  # of the gate, as last seen
        self.rows = 0
        self.published = False  # by us

    def work(self, record: LoadRecord, offer: str, watch: Callable[[Standing], None]) -> Standing:
        """Until the generation is published, by us or by another."""
        if self._target.fingerprint() != record.fingerprint:
            raise LostGround("the target was restarted and may have lost what was written")
        self._epoch = self._target.gate(record.plan.name, record.generation, "look")
        with closing(self._lane()) as lane:
            standing = self._until_done(record, offer, watch, lane)
        return standing if standing.record.state is LoadState.PUBLISHED else self._publish(standing)

    def _until_done(
        self, record: LoadRecord, offer: str, watch: Callable[[Standing], None], lane: Lane
    ) -> Standing:
        name, generation = record.plan.name, record.generation
        look_at, idle = 0.0, 0
        while True:
            epoch = self._epoch  # from before the lease, whatever the lane sees while we read
            lease = self._book.lease(name, generation, self._owner, self._pace.lease, offer)
            idle = idle + 1 if lease is None else 0
            if lease is not None:
                self._do(record, lease, epoch, lane)
                if self._clock.monotonic() < look_at:
                    continue
            else:
                lane.empty()  # what we still write may be the last that is waited for
            standing = self._standing(record)
            watch(standing)
            look_at = self._clock.monotonic() + _LOOK
            if standing.record.state is LoadState.PUBLISHED or standing.finished:
                return standing
            if lease is None:
                if idle == 1:
                    self._bell.ring()  # we read no more: there may be room for another
                self._bell.wait(min(_LOOK, self._pace.lease / 4, _nap(idle)))

    def _standing(self, record: LoadRecord) -> Standing:
        standing = self._book.standing(record.plan.name)
        if standing is None:
            raise LostGround("the task book no longer knows the load")
        if standing.record.generation != record.generation:
            raise LostGround(f"load {record.plan.name} was begun again by another instance")
        if standing.record.state in (LoadState.CANCELLED, LoadState.FAILED):
            said = f": {standing.record.reason}" if standing.record.reason else ""
            raise LoadEnded(f"load {record.plan.name} was {standing.record.state}{said}")
        return standing

    def _do(self, record: LoadRecord, lease: TaskLease, epoch: int, lane: Lane) -> None:
        if lease.token > _MOST_TAKES:
            raise LevadaError(f"a task was taken {_MOST_TAKES} times and never done: see the logs of its instances")
        with ExitStack() as held:
            beat = partial(self._book.renew, lease, self._pace.lease)
            heart = held.enter_context(self._heart(self._pace.lease / 3).beating(beat))
            found = self._read(lease)
            if not isinstance(found, TaskResult):
                self._wait(self._pace.throttle.rest(len(found), self._clock.monotonic()))
            lane.empty()  # while our heart is still held: it stops, should the task before have failed
            lane.put(partial(self._deliver, record, lease, epoch, found, heart, held.pop_all()))

    def _deliver(
        self,
        record: LoadRecord,
        lease: TaskLease,
        epoch: int,
        found: RowBatch | TaskResult,
        heart: Heart,
        held: ExitStack,
    ) -> None:
        """What was read becomes part of the map, and is settled; nothing of it counts if the lease was lost."""
        with suppress(LeaseLost):
            with held:
                if lease.token > 1:  # it was another's before: first of all, whoever had it may write no more
                    epoch = self._seen(lease, "move")
                result = found
                if not isinstance(result, TaskResult):
                    result = self._written(record, lease, epoch, result, heart)
            if not self._book.settle(lease, result):
                raise LeaseLost("the task was taken by another instance")
            self.rows += result.rows
            if result.parts:
                self._bell.ring()  # there are tasks again

    def _seen(self, lease: TaskLease, action: str) -> int:
        """The gate's epoch, while the task was ours: whoever takes it after this moves the gate again."""
        epoch = self._target.gate(lease.name, lease.generation, action)
        if not self._book.renew(lease, self._pace.lease):
            raise LeaseLost("the task was taken by another instance")
        if not epoch:
            raise LostGround("the target no longer has what was written")
        self._epoch = epoch
        return epoch

    def _read(self, lease: TaskLease) -> RowBatch | TaskResult:
        """The rows, or what is known without them."""
        batch = self._source.read(lease.span, self._pace.most_rows)
        if batch is None:
            parts = parts_of(lease.span, self._source.sample(lease.span, _SAMPLE))
            if len(parts) > 1:
                return TaskResult(parts=tuple(parts))
            batch = self._source.read(lease.span, None)  # one key, however heavy
        if isinstance(batch, int):
            return TaskResult(null_keys=batch)
        if batch is None:
            raise LevadaError("a source must read a span that cannot be divided")
        return batch

    def _written(
        self, record: LoadRecord, lease: TaskLease, epoch: int, batch: RowBatch, heart: Heart
    ) -> TaskResult:
        keys = self._write(record, lease, epoch, batch, heart) if len(batch) else 0
        return TaskResult(len(batch), keys, batch.digest(), null_values=batch.null_values)

    def _write(self, record: LoadRecord, lease: TaskLease, epoch: int, batch: RowBatch, heart: Heart) -> int:
        try:
            entries = batch.entries(record.plan.collect)
        except DuplicateKey as error:
            self._book.finish(lease.name, lease.generation, LoadState.FAILED, str(error))
            self._bell.ring()
            raise
        while heart.alive and not self._target.write(lease.name, lease.generation, epoch, entries):
            epoch = self._seen(lease, "look")
        if not heart.alive:
            raise LeaseLost("the task was taken by another instance")
        return len(entries)

    def _publish(self, standing: Standing) -> Standing:
        record, done = standing.record, standing.done
        name, generation = record.plan.name, record.generation
        if self._target.fingerprint() != record.fingerprint:
            raise LostGround("the target was restarted and may have lost what was written")
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
            published_at=standing.now,
        )
        if not self._target.publish(manifest):
            raise LostGround(f"generation {generation} of {name} was given up by others")
        self.published = True
        self._book.finish(name, generation, LoadState.PUBLISHED, "")
        self._bell.ring()
        published = self._book.standing(name)
        return published if published is not None else standing
