"""How is it going? Counts that the screen, the plain lines and the final report all read."""

from __future__ import annotations

from collections import Counter, deque

import msgspec

from levada.flow.parse import Visited
from levada.ports import Beliefs
from levada.records import Outcome, Settled, Standing

__all__ = ["Progress", "Report", "StageSummary"]


class StageSummary(msgspec.Struct, frozen=True):
    """How a stage was staffed, from the beginning to the end."""

    name: str
    jobs: int  # done
    least: int  # workers, at a look
    mean: float
    most: int
    longest_queue: int
    decisions: int  # to have more or fewer
    queue: int = 0  # this and what follows: at the last look
    busy: int = 0
    on: int = 0
    wanted: int = 0
    why: str = ""


class Report(msgspec.Struct, frozen=True):
    """What a crawl did, in the end."""

    pages: int  # stored, in all
    fetched: int  # exchanges that brought an answer
    new: int
    changed: int
    unchanged: int
    gone: int
    failed: dict[str, int]  # by reason
    refused: dict[str, int]  # by reason
    found: int
    unvisited: int  # addresses that are left
    bytes: int
    seconds: float
    believed_current: float | None
    stopped: str  # done, limit, interrupted
    stages: tuple[StageSummary, ...] = ()


class Progress:
    """Counted as visits are committed: what is shown is stored."""

    def __init__(self, started: float, beliefs: Beliefs) -> None:
        self.started = started
        self.beliefs = beliefs
        self.fetched = 0
        self.wire_bytes = 0
        self.found = 0
        self.visits = 0
        self.outcomes: Counter[Outcome] = Counter()
        self.failed: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.recent: deque[tuple[float, str, str]] = deque(maxlen=8)  # when, what, url
        self._pace: deque[tuple[float, int]] = deque(maxlen=64)

    def answered(self, visited: Visited) -> None:
        response = visited.fetched.response
        if response is not None:
            self.fetched += 1
            self.wire_bytes += response.wire_bytes

    def committed(self, settled: Settled) -> None:
        page, visit = settled.lease.page, settled.visit
        self.visits += 1
        self.outcomes[visit.outcome] += 1
        self.found += len(settled.found)
        if visit.outcome is Outcome.FAILED and settled.reason:
            self.failed[settled.reason] += 1
        for refusal in settled.refused:
            self.refused[refusal.reason] += 1
        what = settled.reason or visit.outcome.name.lower()
        self.recent.append((visit.at, what, page.url))

    def pace(self, now: float) -> float:
        """Visits per second over the last few looks."""
        self._pace.append((now, self.visits))
        (then, before), (last, visits) = self._pace[0], self._pace[-1]
        return (visits - before) / (last - then) if last > then else 0.0

    def report(
        self, standing: Standing, now: float, seconds: float, stopped: str, stages: tuple[StageSummary, ...] = ()
    ) -> Report:
        return Report(
            pages=standing.stored,
            fetched=self.fetched,
            new=self.outcomes[Outcome.FIRST],
            changed=self.outcomes[Outcome.CHANGED],
            unchanged=self.outcomes[Outcome.UNCHANGED],
            gone=self.outcomes[Outcome.GONE],
            failed=dict(self.failed.most_common()),
            refused=dict(self.refused.most_common()),
            found=self.found,
            unvisited=standing.unvisited,
            bytes=self.wire_bytes,
            seconds=seconds,
            believed_current=self.beliefs.share(now),
            stopped=stopped,
            stages=stages,
        )
