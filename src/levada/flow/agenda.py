"""Which of the leased pages may be asked for now? Politeness and budget, decided without waiting.

Pages wait in one line per site. A site may be asked when its delay has passed, fewer than `at_once` of its
requests are under way, and both budgets allow it; of the sites that may, the one that has been ready longest goes
first. Every operation costs O(log sites).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush

from levada.flow.allowance import Allowance
from levada.records import FOREVER, Lease

__all__ = ["Agenda"]


class _Line:
    """The pages of one site that wait, and what the site has been asked so far."""

    __slots__ = ("allowance", "delay", "next_start", "queued", "under_way", "waiting")

    def __init__(self, delay: float, allowance: Allowance) -> None:
        self.waiting: deque[Lease] = deque()
        self.delay = delay
        self.allowance = allowance
        self.under_way = 0
        self.next_start = float("-inf")
        self.queued = False  # stands in the heap

    def ready_at(self) -> float:
        return max(self.next_start, self.allowance.ready_at())


class Agenda:
    def __init__(
        self,
        delay: float,
        at_once: int,
        *,
        per_hour: float = 0,
        per_site_per_hour: float = 0,
        instant: float = 0.0,
        most_idle: int = 10_000,
    ) -> None:
        self._delay = delay
        self._at_once = at_once
        self._instant = instant  # seconds whose fetches may be made at once
        self.set_budget(per_hour)
        self._per_site_per_hour = per_site_per_hour
        self._most_idle = most_idle
        self._lines: dict[str, _Line] = {}
        self._ready: list[tuple[float, int, str]] = []
        self._order = 0
        self._waiting = 0
        self._stale: list[Lease] = []

    def __len__(self) -> int:
        return self._waiting

    def put(self, lease: Lease) -> None:
        line = self._line(lease.page.site)
        line.waiting.append(lease)
        self._waiting += 1
        self._queue(lease.page.site, line)

    def take(self, now: float) -> Lease | None:
        """A page that may be asked for at `now`; the caller says `finished` when that is over."""
        if self._budget.ready_at() > now:
            return None
        while self._ready and self._ready[0][0] <= now:
            _, _, site = heappop(self._ready)
            line = self._lines[site]
            line.queued = False
            if line.waiting and line.waiting[0].expires_at <= now:
                self._drop_stale(now)
            if not line.waiting:
                continue
            if line.ready_at() > now:  # it was held back after it had been queued
                self._queue(site, line)
                continue
            return self._start(site, line, now)
        return None

    def finished(self, site: str, now: float) -> None:
        line = self._lines[site]
        line.under_way -= 1
        if line.waiting:
            self._queue(site, line)
        elif len(self._lines) > self._most_idle:
            self._forget_idle(now)

    def postpone(self, lease: Lease, now: float) -> None:
        """Its site's turn was spent on something else: this page comes next, after the delay."""
        site = lease.page.site
        line = self._lines[site]
        line.under_way -= 1
        line.waiting.appendleft(lease)
        self._waiting += 1
        line.next_start = max(line.next_start, now + line.delay)
        self._queue(site, line)

    def stale(self) -> list[Lease]:
        """Pages whose lease ended while they waited: somebody else may have them by now."""
        stale, self._stale = self._stale, []
        return stale

    def set_delay(self, site: str, delay: float | None) -> None:
        """What the site itself asks for; never less than our own delay."""
        line = self._line(site)
        wanted = max(self._delay, delay or 0.0)
        line.next_start += max(0.0, wanted - line.delay)
        line.delay = wanted

    def set_budget(self, per_hour: float) -> None:
        """Of all sites together; 0: no limit."""
        self._budget = Allowance(per_hour, 1.0 + self._instant * per_hour / 3600.0)

    def take_up(self, site: str) -> None:
        """A site that was held for ever is not held any more."""
        line = self._line(site)
        if line.next_start >= FOREVER:
            line.next_start = float("-inf")
            self._queue(site, line)

    def hold(self, site: str, until: float) -> list[Lease]:
        """Leave a site alone for a while; its waiting pages come back to the caller."""
        line = self._line(site)
        line.next_start = max(line.next_start, until)
        held = list(line.waiting)
        line.waiting.clear()
        self._waiting -= len(held)
        return held

    def next_ready(self) -> float | None:
        """When `take` may succeed, if nothing else happens; None while nothing waits for time alone."""
        if not self._ready:
            return None
        return max(self._ready[0][0], self._budget.ready_at())

    def startable(self, now: float) -> int:
        """How many pages wait for nothing but somebody to ask for them."""
        if self._budget.ready_at() > now:
            return 0
        return sum(self._startable(self._lines[site]) for at, _, site in self._ready if at <= now)

    def lengths(self) -> Iterator[tuple[str, int, int]]:
        """Site, pages that wait, requests under way."""
        for site, line in self._lines.items():
            if line.waiting or line.under_way:
                yield site, len(line.waiting), line.under_way

    def drain(self) -> list[Lease]:
        """Everything that waits, given back."""
        leases = [lease for line in self._lines.values() for lease in line.waiting]
        for line in self._lines.values():
            line.waiting.clear()
        self._waiting = 0
        return leases

    def _startable(self, line: _Line) -> int:
        at_once = 1 if line.delay else self._at_once - line.under_way
        return min(len(line.waiting), at_once)

    def _drop_stale(self, now: float) -> None:
        """One lease has ended, so others have: together they would keep fresh ones out."""
        for line in self._lines.values():
            while line.waiting and line.waiting[0].expires_at <= now:
                self._stale.append(line.waiting.popleft())
                self._waiting -= 1

    def _line(self, site: str) -> _Line:
        line = self._lines.get(site)
        if line is None:
            line = self._lines[site] = _Line(self._delay, Allowance(self._per_site_per_hour))
        return line

    def _queue(self, site: str, line: _Line) -> None:
        if not line.queued and line.under_way < self._at_once:
            line.queued = True
            self._order += 1
            heappush(self._ready, (line.ready_at(), self._order, site))

    def _start(self, site: str, line: _Line, now: float) -> Lease:
        lease = line.waiting.popleft()
        self._waiting -= 1
        line.under_way += 1
        line.next_start = now + line.delay
        line.allowance.spend(now)
        self._budget.spend(now)
        if line.waiting:
            self._queue(site, line)
        return lease

    def _forget_idle(self, now: float) -> None:
        idle = [
            site
            for site, line in self._lines.items()
            if not line.waiting and not line.under_way and not line.queued and line.ready_at() <= now
        ]
        for site in idle:
            del self._lines[site]
