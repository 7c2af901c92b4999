"""Pages that wait to be read, shared out fairly between their sites.

Most pages take a millisecond or two. A site whose pages each burn the limit of five CPU seconds would leave nothing for
the others, so sites take turns, and a site whose pages are slow waits in a queue of its own: while pages of others
wait, that queue gets half of the reading time, and a child that reads one of its pages reads nothing else meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

SLOW = 0.25  # seconds per page from which a site is slow
_MOST_SLOW = 10_000  # sites that are remembered


class OfSite(Protocol):
    @property
    def site(self) -> str: ...


T = TypeVar("T", bound=OfSite)


class _FairQueue(Generic[T]):
    """Pages by site; the sites take turns."""

    def __init__(self) -> None:
        self.sites: OrderedDict[str, deque[T]] = OrderedDict()
        self.spent = 0.0  # seconds of reading

    def add(self, page: T, other: _FairQueue[T], *, first: bool = False) -> None:
        if not self.sites:
            self.spent = max(self.spent, other.spent)  # nobody saves up time by not needing it
        waiting = self.sites.get(page.site)
        if waiting is None:
            self.sites[page.site] = deque((page,))
        elif first:
            waiting.appendleft(page)
        else:
            waiting.append(page)

    def take(self) -> T | None:
        if not self.sites:
            return None
        site, waiting = next(iter(self.sites.items()))
        page = waiting.popleft()
        if waiting:
            self.sites.move_to_end(site)
        else:
            del self.sites[site]
        return page


class WaitingPages(Generic[T]):
    def __init__(self) -> None:
        self._quick, self._slow = _FairQueue[T](), _FairQueue[T]()
        self._means: OrderedDict[str, float] = OrderedDict()  # of the slow sites: seconds per page
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, page: T) -> None:
        self._count += 1
        queue, other = self._queues(page.site)
        queue.add(page, other)

    def add_back(self, pages: Sequence[T]) -> None:
        """Add pages that had been taken, before the others of their sites."""
        for page in reversed(pages):
            self._count += 1
            queue, other = self._queues(page.site)
            queue.add(page, other, first=True)

    def take_quick(self) -> T | None:
        return self._counted(self._quick.take())

    def take_slow(self) -> T | None:
        return self._counted(self._slow.take())

    def take_all(self) -> list[T]:
        return list(iter(lambda: self.take_quick() or self.take_slow(), None))

    @property
    def is_turn_of_slow(self) -> bool:
        return bool(self._slow.sites) and (not self._quick.sites or self._slow.spent < self._quick.spent)

    @property
    def has_quick(self) -> bool:
        return bool(self._quick.sites)

    def spent(self, sites: Sequence[str], seconds: float) -> None:
        """One child has read a page of each of these sites, one after the other, in so many seconds in all."""
        mean = seconds / len(sites)
        if mean >= SLOW:
            for site in set(sites):
                self._keep(site, mean)
        queue, other = self._queues(sites[0])
        queue.spent += seconds
        if mean < SLOW and queue is self._slow:
            mean = (self._means[sites[0]] + mean) / 2
            if mean < SLOW / 2:
                del self._means[sites[0]]
                self._move(sites[0], queue, other)
            else:
                self._means[sites[0]] = mean

    def _queues(self, site: str) -> tuple[_FairQueue[T], _FairQueue[T]]:
        return (self._slow, self._quick) if site in self._means else (self._quick, self._slow)

    def _keep(self, site: str, mean: float) -> None:
        before = self._means.pop(site, mean)
        if len(self._means) >= _MOST_SLOW:
            oldest, _ = self._means.popitem(last=False)
            self._move(oldest, self._slow, self._quick)
        self._means[site] = (before + mean) / 2
        self._move(site, self._quick, self._slow)

    @staticmethod
    def _move(site: str, queue: _FairQueue[T], other: _FairQueue[T]) -> None:
        for page in queue.sites.pop(site, ()):
            other.add(page, queue)

    def _counted(self, page: T | None) -> T | None:
        self._count -= page is not None
        return page
