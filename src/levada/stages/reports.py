"""What do a stage's workers tell of themselves? Jobs taken and done, summed over workers that come and go.

Whoever falls silent is dead: what it had in work is in its queue again, and no longer counts as taken.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from levada.stages.looks import WorkLook

__all__ = ["ReportBook", "WorkerReport", "read_report"]

_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Count = Annotated[int, Meta(ge=0, le=10**15)]
_MOST_WORKERS = 20_000
_MOST_BYTES = 2_000

FORMAT = 1


class WorkerReport(msgspec.Struct, frozen=True):
    """`taken` and `done` count a worker's jobs from its start; it has as many in work as they differ."""

    format: int
    stage: _Name
    worker: _Name
    taken: _Count
    done: _Count


_from_json = msgspec.json.Decoder(WorkerReport).decode
_from_pack = msgspec.msgpack.Decoder(WorkerReport).decode


def read_report(body: bytes) -> WorkerReport | None:
    """MessagePack, or JSON for whoever finds that easier; None if it is neither, too long or of another format."""
    if len(body) > _MOST_BYTES:
        return None
    try:
        report = _from_json(body) if body[:1] == b"{" else _from_pack(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return report if report.format == FORMAT and report.done <= report.taken else None


class _Told:
    __slots__ = ("at", "done", "taken")

    def __init__(self, done: int) -> None:
        """What it did before we listened counts for nothing, what it has in work does."""
        self.at = 0.0
        self.taken = self.done = done

    @property
    def busy(self) -> int:
        return self.taken - self.done


class _Stage:
    def __init__(self) -> None:
        self.workers: dict[str, _Told] = {}
        self.taken = self.done = 0

    def bury(self, worker: str) -> None:
        told = self.workers.pop(worker, None)
        if told is not None:
            self.taken -= told.busy


class ReportBook:
    """A worker that has told nothing for `silence` seconds is taken for dead."""

    def __init__(self, silence: float = 10.0) -> None:
        self._silence = silence
        self._stages: dict[str, _Stage] = {}

    def expect(self, stage: str) -> None:
        """Only stages that are expected are listened to."""
        self._stages.setdefault(stage, _Stage())

    def hear(self, report: WorkerReport, at: float) -> None:
        stage = self._stages.get(report.stage)
        if stage is None:
            return
        told = stage.workers.get(report.worker)
        if told is not None and report.taken < told.taken:  # another one under the same name
            stage.bury(report.worker)
            told = None
        if told is None:
            if len(stage.workers) >= _MOST_WORKERS:
                return
            told = stage.workers[report.worker] = _Told(report.done)
        stage.taken += report.taken - told.taken
        stage.done += max(0, report.done - told.done)
        told.at, told.taken, told.done = at, report.taken, max(report.done, told.done)

    def ended(self, stage: str, worker: str) -> None:
        """It is known to have ended."""
        if stage in self._stages:
            self._stages[stage].bury(worker)

    def is_busy(self, stage: str, worker: str) -> bool:
        told = self._stages[stage].workers.get(worker) if stage in self._stages else None
        return told is not None and told.busy > 0

    def look(self, stage: str, at: float) -> WorkLook | None:
        """None as long as nobody has ever told anything."""
        book = self._stages.get(stage)
        if book is None:
            return None
        for worker in [name for name, told in book.workers.items() if at - told.at > self._silence]:
            book.bury(worker)
        if not book.workers and not book.taken:
            return None
        busy = sum(told.busy for told in book.workers.values())
        return WorkLook(busy, book.taken, book.done, len(book.workers))
