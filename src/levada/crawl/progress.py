"""Progress of a crawl, counted as visits are committed."""

from __future__ import annotations

from collections import Counter, deque

from levada.core.plugins import failures
from levada.core.protocols import Estimates
from levada.core.records import CollectionStats, Outcome, VisitResult
from levada.core.reports import Report, StageSummary
from levada.crawl.visits import Visited


class CrawlProgress:
    """Counts of a running crawl, taken when visits are committed: what is shown is stored."""

    def __init__(self, started: float, estimates: Estimates) -> None:
        self.started = started
        self.estimates = estimates
        self.fetched = 0
        self.wire_bytes = 0
        self.found = 0
        self.visits = 0
        self.outcomes: Counter[Outcome] = Counter()
        self.failed: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.recent: deque[tuple[float, str, str]] = deque(maxlen=8)  # when, what, url
        self._failed_before = Counter(failures())
        self._pace: deque[tuple[float, int]] = deque(maxlen=64)

    def answered(self, visited: Visited) -> None:
        response = visited.fetched.response
        if response is not None:
            self.fetched += 1
            self.wire_bytes += response.wire_bytes

    def committed(self, result: VisitResult) -> None:
        page, visit = result.lease.page, result.visit
        self.visits += 1
        self.outcomes[visit.outcome] += 1
        self.found += len(result.found)
        if visit.outcome is Outcome.FAILED and result.reason:
            self.failed[result.reason] += 1
        for refusal in result.refused:
            self.refused[refusal.reason] += refusal.count
        what = result.reason or visit.outcome.name.lower()
        self.recent.append((visit.at, what, page.url))

    def plugin_failures(self) -> dict[str, int]:
        """Failures of plug-ins since the crawl began, by setting and name."""
        return dict((Counter(failures()) - self._failed_before).most_common())

    def pace(self, now: float) -> float:
        """Visits per second over the last calls."""
        self._pace.append((now, self.visits))
        (then, before), (last, visits) = self._pace[0], self._pace[-1]
        return (visits - before) / (last - then) if last > then else 0.0

    def report(self, stats: CollectionStats, now: float, stopped: str, stages: tuple[StageSummary, ...]) -> Report:
        return Report(
            pages=stats.stored,
            fetched=self.fetched,
            new=self.outcomes[Outcome.FIRST],
            changed=self.outcomes[Outcome.CHANGED],
            unchanged=self.outcomes[Outcome.UNCHANGED],
            gone=self.outcomes[Outcome.GONE],
            failed=dict(self.failed.most_common()),
            refused=dict(self.refused.most_common()),
            found=self.found,
            unvisited=stats.unvisited,
            bytes=self.wire_bytes,
            seconds=now - self.started,
            believed_current=self.estimates.share(now),
            stopped=stopped,
            stages=stages,
            plugin_failures=self.plugin_failures(),
        )
