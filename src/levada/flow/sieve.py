"""Which of a page's links are worth holding, and how urgent is each?

Scope, depth, robots, traps and nofollow are decided here, before anything reaches the frontier. A link that was
taken before is passed over at once: a page names some fifty addresses, and nearly all of them were named
before. Taken means on its way to the store; should the store refuse the visit that named it, it is withdrawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, filterfalse

from levada.flow.settings import CrawlSettings
from levada.pages.traps import TrapLimits, trap
from levada.pages.urls import front_page, site_of
from levada.reasons import Reason
from levada.records import Found, How, Link, PageKind, PageRecord, Refusal

__all__ = ["LinkSieve", "priority"]

# How urgent a page never visited is, beside its depth: a feed names what is new, a sitemap names everything.
_URGENCY = {How.SEED: 0, How.FRONT: 0, How.REDIRECT: 1, How.CANONICAL: 1, How.FEED: 2, How.LINK: 5, How.SITEMAP: 8}


def priority(how: How, depth: int, kind: PageKind = PageKind.PAGE) -> int:
    """The lowest goes first: front pages, then what leads to many pages, then the near before the far."""
    if kind is not PageKind.PAGE:
        return 1
    return _URGENCY[how] + 10 * depth


class LinkSieve:
    """Turns the links of a page into what the frontier should hold, and says what it left out and why."""

    def __init__(
        self,
        settings: CrawlSettings,
        admitted: Iterable[str],
        closes: Callable[[str], bool] = lambda url: False,
        most_known: int = 200_000,
    ) -> None:
        self._settings = settings
        self._limits = TrapLimits(max_length=settings.max_url_length, max_depth=settings.max_depth)
        self.admitted = set(admitted)
        self._closes = closes
        self._fronts: set[str] = set()
        self._known: set[str] = set()
        self._told: set[str] = set()  # refused, and said so: the menu of every page may name the same ones
        self._most_known = most_known

    def sift(
        self, page: PageRecord, links: Iterable[str], marked: Iterable[Link], now: float, nofollow: bool
    ) -> tuple[list[Found], list[Refusal]]:
        """What to hold, and what not and why; an address that is refused again and again is told once.

        `links` and `marked` are those of a `ParsedPage`.
        """
        found: list[Found] = []
        refused: list[Refusal] = []
        known, told = self._known, self._told
        # The feeds of a page go first, as in its head. Each is looked up in its turn: what was just taken is known.
        new = chain(
            (link for link in marked if link.url not in known), map(Link, filterfalse(known.__contains__, links))
        )
        for link in new:
            reason = self._refuses(link, page, now, nofollow)
            if reason is None:
                known.add(link.url)
                found.extend(self._hold(link, page))
            elif link.url not in told:
                told.add(link.url)
                refused.append(Refusal(link.url, page.site, reason))
        return found, refused

    def would_take(self, page: PageRecord, link: Link, now: float) -> bool:
        """Whether this link is taken, or would be."""
        return link.url in self._known or self._refuses(link, page, now, nofollow=False) is None

    def goes_to(self, site: str) -> bool:
        return self._settings.scope == "any" or site in self.admitted

    def stored(self, found: Iterable[Found]) -> None:
        """These are committed."""
        self._fronts.update(item.site for item in found if item.how is How.FRONT)
        for memory in (self._known, self._fronts, self._told):
            if len(memory) > self._most_known:
                memory.clear()

    def withdraw(self, found: Iterable[Found]) -> None:
        """These were not committed: whoever names them next may bring them."""
        self._known.difference_update(item.url for item in found)

    def _refuses(self, link: Link, page: PageRecord, now: float, nofollow: bool) -> Reason | None:
        if nofollow or link.nofollow:
            return Reason.NOFOLLOW
        if not self._in_scope(link, page):
            return Reason.SCOPE
        if link.how is How.REDIRECT and page.hops >= self._settings.max_redirects:
            return Reason.REDIRECTS
        if self._closes(link.url):  # spares a place in the frontier, and a turn of the site
            return Reason.ROBOTS
        return trap(link.url, now, self._depth(link, page), self._limits)

    def _in_scope(self, link: Link, page: PageRecord) -> bool:
        if self.goes_to(site_of(link.url)):
            return True
        # A start address that redirects (to https, to www) takes its scope along.
        return link.how is How.REDIRECT and page.how is How.SEED

    def _depth(self, link: Link, page: PageRecord) -> int:
        return page.depth if link.how in (How.REDIRECT, How.CANONICAL) else page.depth + 1

    def _hold(self, link: Link, page: PageRecord) -> Iterable[Found]:
        site = site_of(link.url)
        redirect = link.how is How.REDIRECT
        leads_on = redirect and page.how is How.SEED
        if leads_on:
            self.admitted.add(site)
        if site != page.site and site not in self._fronts:
            yield Found(front_page(link.url), site, how=How.FRONT, admit=leads_on)
        kind = page.kind if redirect else link.kind
        depth = self._depth(link, page)
        how = How.SEED if leads_on else link.how
        hops = page.hops + 1 if redirect else 0
        yield Found(link.url, site, kind, how, depth, hops, priority(how, depth, kind), admit=leads_on)
