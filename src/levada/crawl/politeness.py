"""Politeness queue: which leased pages may be fetched now, by delay, budget and active hours."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush

import msgspec

from levada.core.records import FOREVER, Lease
from levada.core.site_rules.pace import SitePaces


class BudgetPacer:
    """Spreads `per_hour` fetches evenly, by the generic cell rate algorithm.

    Unused fetches are not saved up, beyond a burst of `burst` fetches.
    """

    def __init__(self, per_hour: float, burst: float = 1.0) -> None:
        self._gap = 3600.0 / per_hour if per_hour > 0 else 0.0
        self._tolerance = self._gap * (burst - 1.0)
        self._next = float("-inf")

    def ready_at(self) -> float:
        """The earliest time of the next fetch."""
        return self._next - self._tolerance if self._gap else float("-inf")

    def spend(self, now: float) -> None:
        if self._gap:
            self._next = max(self._next, now) + self._gap


class ClosedSite(msgspec.Struct, frozen=True):
    """A site outside its active hours, until when, and the pages that waited."""

    site: str
    until: float
    waiting: list[Lease]


class _Line(msgspec.Struct, eq=False):
    """The pages of one site that wait, and when the site may be fetched next."""

    delay: float
    pacer: BudgetPacer
    least: float  # the delay of its pace
    per_hour: float  # the budget of its pace
    asked: float = 0.0  # the delay that the site asks for
    opens_at: float | None = None  # until when it is held because of its active hours
    ready_before: float = float("-inf")  # when it might have been fetched, had it not been held
    waiting: deque[Lease] = msgspec.field(default_factory=deque)
    under_way: int = 0
    next_start: float = float("-inf")
    queued: bool = False  # it is in the heap

    def ready_at(self) -> float:
        return max(self.next_start, self.pacer.ready_at())


class PolitenessQueue:
    """The leased pages of each site, in order.

    A site may be fetched within its active hours when its delay has passed, fewer than `at_once` of its requests are
    under way, and both budgets allow it. Of these sites, the one that has been ready longest goes first. Every
    operation takes O(log sites).
    """

    def __init__(
        self,
        paces: SitePaces,
        at_once: int,
        *,
        per_hour: float = 0,
        instant: float = 0.0,
        most_idle: int = 10_000,
    ) -> None:
        self.since: Callable[[str], float] = lambda site: float("-inf")  # when this process may have begun to ask it
        self._share = 1.0  # of the budget
        self._paces = paces
        self._at_once = at_once
        self._instant = instant  # the burst of the budget, in seconds
        self.set_budget(per_hour)
        self._most_idle = most_idle
        self._lines: dict[str, _Line] = {}
        self._ready: list[tuple[float, int, str]] = []
        self._order = 0
        self._waiting = 0
        self._stale: list[Lease] = []
        self._closed: list[ClosedSite] = []
        self._urgent: dict[str, int] = {}  # by site: how many pages at the front of its line go before all others
        self._urgent_turns: dict[str, int] = {}  # by site: the last of them whose turn began

    def __len__(self) -> int:
        return self._waiting

    def put(self, lease: Lease) -> None:
        line = self._line(lease.page.site)
        line.waiting.append(lease)
        self._waiting += 1
        self._queue(lease.page.site, line)

    def put_first(self, lease: Lease) -> None:
        """Add a page that goes before all others as soon as its site and the budget allow it."""
        site = lease.page.site
        line, before = self._line(site), self._urgent.get(site, 0)
        line.waiting.insert(before, lease)
        self._urgent[site] = before + 1
        self._waiting += 1
        self._queue(site, line)

    def hurry(self, page_id: int, site: str) -> None:
        """Move this page, if it waits, before all others."""
        line = self._lines.get(site)
        waiting = next((lease for lease in line.waiting if lease.page.id == page_id), None) if line else None
        if line is not None and waiting is not None:
            place = line.waiting.index(waiting)
            if place >= self._urgent.get(site, 0):
                del line.waiting[place]
                self._waiting -= 1
                self.put_first(waiting)

    def take(self, now: float) -> Lease | None:
        """A page that may be fetched at `now`; the caller reports its end with `finished`."""
        if self._budget.ready_at() > now:
            return None
        for site in tuple(self._urgent):
            line = self._lines[site]
            if line.waiting and line.waiting[0].expires_at <= now:
                self._drop_stale(now)
            if self._is_closed(site, line, now):
                continue
            if site in self._urgent and line.under_way < self._at_once and line.ready_at() <= now:
                return self._start(site, line, now)
        while self._ready and self._ready[0][0] <= now:
            _, _, site = heappop(self._ready)
            line = self._lines[site]
            line.queued = False
            if line.waiting and line.waiting[0].expires_at <= now:
                self._drop_stale(now)
            if not line.waiting or line.under_way >= self._at_once or self._is_closed(site, line, now):
                continue
            if line.ready_at() > now:  # its time was moved after it had been queued
                self._queue(site, line)
                continue
            return self._start(site, line, now)
        return None

    def finished(self, site: str, now: float) -> None:
        line = self._lines[site]
        line.under_way -= 1
        self._urgent_turns.pop(site, None)
        if line.waiting:
            self._queue(site, line)
        elif len(self._lines) > self._most_idle:
            self._forget_idle(now)

    def postpone(self, lease: Lease, now: float) -> None:
        """Put a page back that was not fetched in its turn: it comes next, after the delay."""
        site = lease.page.site
        line = self._lines[site]
        line.under_way -= 1
        line.waiting.appendleft(lease)
        self._waiting += 1
        if site in self._urgent or self._urgent_turns.pop(site, None) == lease.page.id:
            self._urgent[site] = self._urgent.get(site, 0) + 1
        line.next_start = max(line.next_start, now + line.delay)
        self._queue(site, line)

    def stale(self) -> list[Lease]:
        """The pages whose lease ended while they waited: another process may have them now."""
        stale, self._stale = self._stale, []
        return stale

    def closed(self) -> list[ClosedSite]:
        """The sites with pages that waited when their active hours were over. They are held until the next ones."""
        closed, self._closed = self._closed, []
        return closed

    def set_delay(self, site: str, delay: float | None) -> None:
        """Set the delay that a site asks for; the delay of its pace is the minimum."""
        line = self._line(site)
        line.asked = delay or 0.0
        wanted = max(line.least, line.asked)
        line.next_start += max(0.0, wanted - line.delay)
        line.delay = wanted

    def delay(self, site: str) -> float:
        """Seconds between two requests to a site with a request under way."""
        return self._lines[site].delay

    def set_budget(self, per_hour: float) -> None:
        """Set the budget of all sites together; 0: no limit."""
        self._per_hour = per_hour
        per_hour *= self._share
        self._budget = BudgetPacer(per_hour, 1.0 + self._instant * per_hour / 3600.0)

    def set_share(self, share: float, now: float) -> None:
        """Spend this share of the budget from now on: others spend the rest. It has none left over from before."""
        self._share = max(share, 1e-9)
        self.set_budget(self._per_hour)
        self._budget.spend(now)

    def withdraw(self, is_lost: Callable[[str], bool]) -> list[Lease]:
        """Remove and return the pages that wait of these sites."""
        lost = [site for site, line in self._lines.items() if line.waiting and is_lost(site)]
        return [lease for site in lost for lease in self.hold(site, float("-inf"))]

    def start_anew(self, is_gained: Callable[[str], bool], now: float) -> None:
        """Ask these sites after their delay at the earliest: another process may have asked them until now."""
        for site, line in self._lines.items():
            if is_gained(site) and line.next_start < now + line.delay:
                line.next_start = now + line.delay

    def set_limits(self, paces: SitePaces, at_once: int) -> None:
        """Set the limits of every site from now on; a site that waits already waits as long as it must now."""
        self._at_once, self._paces = at_once, paces
        self._ready = []
        for site, line in self._lines.items():
            pace = paces(site)
            wanted = max(pace.delay, line.asked)
            if line.next_start == line.opens_at:  # other hours may hold now
                line.next_start = line.ready_before
            line.opens_at = None
            if line.next_start < FOREVER:
                line.next_start += wanted - line.delay
            line.delay, line.least = wanted, pace.delay
            if pace.per_hour != line.per_hour:
                line.pacer, line.per_hour = BudgetPacer(pace.per_hour), pace.per_hour
            line.queued = False
            if line.waiting:
                self._queue(site, line)

    def readmit(self, site: str) -> None:
        """End the hold of a dropped site."""
        line = self._line(site)
        if line.next_start >= FOREVER:
            line.next_start = float("-inf")
            self._queue(site, line)

    def hold(self, site: str, until: float) -> list[Lease]:
        """Fetch nothing from a site for a while; returns its waiting pages."""
        line = self._line(site)
        line.next_start = max(line.next_start, until)
        held = list(line.waiting)
        line.waiting.clear()
        self._urgent.pop(site, None)
        self._waiting -= len(held)
        return held

    def lift(self, site: str, now: float) -> None:
        """End the hold of a site after failures; its delay holds."""
        line = self._line(site)
        if now + line.delay < line.next_start < FOREVER:
            line.next_start = now + line.delay
            self._queue_anew(site, line)

    def next_start(self, site: str) -> float:
        """When a request to this site may begin, as far as its delay goes."""
        line = self._lines.get(site)
        return float("-inf") if line is None else line.next_start

    def spend(self, site: str, now: float) -> None:
        """Note a request to this site that is no visit."""
        line = self._line(site)
        line.next_start = max(line.next_start, now + line.delay)

    def next_ready(self) -> float | None:
        """When `take` may succeed if nothing else happens; None if no page waits only for time."""
        if not self._ready:
            return None
        return max(self._ready[0][0], self._budget.ready_at())

    def startable(self, now: float) -> int:
        """How many pages could be fetched now."""
        if self._budget.ready_at() > now:
            return 0
        lines = (self._lines[site] for at, _, site in self._ready if at <= now)
        return sum(min(len(line.waiting), 1 if line.delay else self._at_once - line.under_way) for line in lines)

    def lengths(self) -> Iterator[tuple[str, int, int]]:
        """Per site: the name, the pages that wait, the requests under way."""
        for site, line in self._lines.items():
            if line.waiting or line.under_way:
                yield site, len(line.waiting), line.under_way

    def drain(self) -> list[Lease]:
        """Remove and return all pages that wait."""
        leases = [lease for line in self._lines.values() for lease in line.waiting]
        for line in self._lines.values():
            line.waiting.clear()
        self._urgent.clear()
        self._waiting = 0
        return leases

    def _drop_stale(self, now: float) -> None:
        """Drop all ended leases: where one has ended, others have, and they take the room of fresh ones."""
        for site, line in self._lines.items():
            while line.waiting and line.waiting[0].expires_at <= now:
                self._stale.append(self._pop(site, line))

    def _is_closed(self, site: str, line: _Line, now: float) -> bool:
        """Whether it is outside the active hours of a site; then its pages no longer wait here."""
        opens_at = self._paces(site).opens_at(now) if self._paces else now
        if opens_at <= now:
            return False
        if line.opens_at is None:
            line.ready_before = line.next_start
        self._closed.append(ClosedSite(site, opens_at, self.hold(site, opens_at)))
        line.opens_at = opens_at
        return True

    def _line(self, site: str) -> _Line:
        line = self._lines.get(site)
        if line is None:
            pace = self._paces(site)
            line = self._lines[site] = _Line(pace.delay, BudgetPacer(pace.per_hour), pace.delay, pace.per_hour)
            line.next_start = self.since(site) + line.delay
        return line

    def _queue(self, site: str, line: _Line) -> None:
        if not line.queued and line.under_way < self._at_once:
            line.queued = True
            self._order += 1
            heappush(self._ready, (line.ready_at(), self._order, site))

    def _start(self, site: str, line: _Line, now: float) -> Lease:
        if site in self._urgent:
            self._urgent_turns[site] = line.waiting[0].page.id
        lease = self._pop(site, line)
        line.under_way += 1
        line.next_start = now + line.delay
        line.pacer.spend(now)
        self._budget.spend(now)
        if line.waiting:
            self._queue(site, line)
        return lease

    def _pop(self, site: str, line: _Line) -> Lease:
        """The first page of a line; it may have been urgent."""
        urgent = self._urgent.pop(site, 0)
        if urgent > 1:
            self._urgent[site] = urgent - 1
        self._waiting -= 1
        return line.waiting.popleft()

    def _queue_anew(self, site: str, line: _Line) -> None:
        """Queue a line although it is queued for later."""
        line.queued = False
        if line.waiting:
            self._queue(site, line)

    def _forget_idle(self, now: float) -> None:
        idle = [
            site
            for site, line in self._lines.items()
            if not line.waiting and not line.under_way and not line.queued and line.ready_at() <= now
        ]
        for site in idle:
            del self._lines[site]
