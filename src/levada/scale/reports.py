"""Worker reports: the jobs that each worker took and did, summed over workers that come and go.

A worker that stops reporting counts as dead: its unfinished jobs are in the queue again and no longer count as
taken.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from levada.scale.statistics import JobStatistics

_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Count = Annotated[int, Meta(ge=0, le=10**15)]
_MOST_WORKERS = 20_000
_MOST_BYTES = 2_000

FORMAT = 1


class WorkerReport(msgspec.Struct, frozen=True):
    """`taken` and `done` count a worker's jobs from its start; the difference is in progress.

    One that does several jobs at once says which share of it was in use (`used`) since its last report.
    """

    format: int
    stage: _Name
    worker: _Name
    taken: _Count
    done: _Count
    used: Annotated[float, Meta(ge=0, le=1)] | None = None


_from_json = msgspec.json.Decoder(WorkerReport).decode
_from_pack = msgspec.msgpack.Decoder(WorkerReport).decode


def read_report(body: bytes) -> WorkerReport | None:
    """A report in MessagePack or JSON; None if it is neither, too long or of another format."""
    if len(body) > _MOST_BYTES:
        return None
    try:
        report = _from_json(body) if body[:1] == b"{" else _from_pack(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return report if report.format == FORMAT and report.done <= report.taken else None


class _Worker(msgspec.Struct):
    """The last report of a worker. Jobs done before its first report do not count; jobs in progress do."""

    taken: int
    done: int
    at: float = 0.0
    used: float | None = None

    @property
    def jobs(self) -> int:
        return self.taken - self.done

    @property
    def busy(self) -> float:
        return self.jobs if self.used is None else self.used


class _Stage(msgspec.Struct):
    workers: dict[str, _Worker] = {}
    taken: int = 0
    done: int = 0

    def forget(self, worker: str) -> None:
        last = self.workers.pop(worker, None)
        if last is not None:
            self.taken -= last.jobs


class WorkerReports:
    """The reports of several stages; a worker without a report for `silence` seconds counts as dead."""

    def __init__(self, silence: float = 10.0) -> None:
        self._silence = silence
        self._stages: dict[str, _Stage] = {}

    def expect(self, stage: str) -> None:
        """Accept reports of this stage; those of any other are ignored."""
        self._stages.setdefault(stage, _Stage())

    def add(self, report: WorkerReport, at: float) -> None:
        stage = self._stages.get(report.stage)
        if stage is None:
            return
        last = stage.workers.get(report.worker)
        if last is not None and report.taken < last.taken:  # another worker of the same name
            stage.forget(report.worker)
            last = None
        if last is None:
            if len(stage.workers) >= _MOST_WORKERS:
                return
            last = stage.workers[report.worker] = _Worker(report.done, report.done)
        stage.taken += report.taken - last.taken
        stage.done += max(0, report.done - last.done)
        last.at, last.taken, last.done = at, report.taken, max(report.done, last.done)
        last.used = report.used

    def ended(self, stage: str, worker: str) -> None:
        """Forget a worker that is known to have ended."""
        if stage in self._stages:
            self._stages[stage].forget(worker)

    def is_busy(self, stage: str, worker: str) -> bool:
        last = self._stages[stage].workers.get(worker) if stage in self._stages else None
        return last is not None and last.jobs > 0

    def workers(self, stage: str) -> int:
        """How many workers of a stage report."""
        return len(self._stages[stage].workers) if stage in self._stages else 0

    def statistics(self, stage: str, at: float) -> JobStatistics | None:
        """The sums of a stage; None until a worker has reported."""
        known = self._stages.get(stage)
        if known is None:
            return None
        for worker in [name for name, last in known.workers.items() if at - last.at > self._silence]:
            known.forget(worker)
        if not known.workers and not known.taken:
            return None
        busy = sum(last.busy for last in known.workers.values())
        return JobStatistics(busy, known.taken, known.done, len(known.workers))
