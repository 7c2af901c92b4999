"""Link filter: which links of a page are kept, and their priority.

Scope, depth, robots.txt, traps and nofollow are checked here, before a link reaches the frontier. A known link is
skipped at once: a page has about fifty links, and nearly all of them are known. A link becomes known when it is on
its way to the store; if the store refuses the visit, the link is withdrawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, filterfalse

from msgspec.structs import replace

from levada.core.reasons import Reason
from levada.core.records import DiscoveredBy, FoundUrl, Link, PageKind, PageRecord, Refusal
from levada.core.settings import CrawlSettings
from levada.core.site_rules.rules import NO_RULES, SiteRules
from levada.pages.urls import TrapLimits, front_page, site_of, trap

# The urgency of a page never visited, besides its depth: a feed lists what is new, a sitemap everything.
_URGENCY = {
    DiscoveredBy.SEED: 0,
    DiscoveredBy.FRONT: 0,
    DiscoveredBy.REDIRECT: 1,
    DiscoveredBy.CANONICAL: 1,
    DiscoveredBy.FEED: 2,
    DiscoveredBy.LINK: 5,
    DiscoveredBy.SITEMAP: 8,
}


FAR = 1 << 30
"""The depth of a page of which nobody knows how many links lead to it."""


def priority(how: DiscoveredBy, depth: int, kind: PageKind = PageKind.PAGE) -> int:
    """The lowest goes first: front pages, then lists of pages, then the near before the far."""
    if kind is not PageKind.PAGE:
        return 1
    return _URGENCY[how] + 10 * depth


def page_kept_out(rules: SiteRules, page: PageRecord) -> str:
    """The key of the rules that keeps a known page out; "" if none does."""
    is_sitemap = page.kind is PageKind.SITEMAP
    return rules.kept_out(page.url, page.depth, named=page.how is DiscoveredBy.SEED, sitemap=is_sitemap)


class LinkFilter:
    """Turns the links of a page into URLs for the frontier and refusals."""

    def __init__(
        self,
        settings: CrawlSettings,
        admitted: Iterable[str],
        closes: Callable[[str], bool] = lambda url: False,
        most_known: int = 200_000,
        *,
        rules: SiteRules = NO_RULES,
    ) -> None:
        self.settings_changed(settings, rules)
        self.admitted = set(admitted)
        self._closes = closes
        self._fronts: set[str] = set()
        self._known: set[str] = set()
        self._reported: set[str] = set()  # refusals: the menu of every page may have the same ones
        self._most_known = most_known

    def settings_changed(self, settings: CrawlSettings, rules: SiteRules) -> None:
        """Use these from now on. Links that were refused before are judged anew when a page has them again."""
        self._settings = settings
        self.rules = rules
        self._limits = TrapLimits(max_length=settings.max_url_length, max_depth=settings.max_depth)

    def select(
        self, page: PageRecord, links: Iterable[str], marked: Iterable[Link], nofollow: bool
    ) -> tuple[list[FoundUrl], list[Refusal]]:
        """The new URLs and the refusals; a repeated refusal is reported once.

        `links` and `marked` are those of a `ParsedPage`.
        """
        found: list[FoundUrl] = []
        refused: list[Refusal] = []
        known, reported = self._known, self._reported
        # The feeds of a page go first, as in its head. Lookups are lazy: a link just taken is known.
        new: Iterable[Link] = chain(
            (link for link in marked if link.url not in known), map(Link, filterfalse(known.__contains__, links))
        )
        if self.rules:
            new = self._tidied(new)
        for link in new:
            reason = self._refuses(link, page, nofollow)
            if reason is None:
                known.add(link.url)
                found.extend(self._hold(link, page))
            elif link.url not in reported:
                reported.add(link.url)
                refused.append(Refusal(link.url, page.site, reason))
        return found, refused

    def _tidied(self, links: Iterable[Link]) -> Iterator[Link]:
        """These links without the parameters that do not count by the rules of their sites."""
        for link in links:
            url = self.rules.tidied(link.url)
            if url == link.url:
                yield link
            elif url not in self._known:
                yield replace(link, url=url)

    def accepts(self, page: PageRecord, link: Link) -> bool:
        """Whether this link is known or would be kept."""
        return link.url in self._known or self._refuses(link, page, nofollow=False) is None

    def goes_to(self, site: str) -> bool:
        return self._settings.scope == "any" or site in self.admitted

    def stored(self, found: Iterable[FoundUrl]) -> None:
        """Remember that these are committed."""
        self._fronts.update(item.site for item in found if item.how is DiscoveredBy.FRONT)
        for memory in (self._known, self._fronts, self._reported):
            if len(memory) > self._most_known:
                memory.clear()

    def withdraw(self, found: Iterable[FoundUrl]) -> None:
        """Forget these, which were not committed: the next page that links to them adds them."""
        self._known.difference_update(item.url for item in found)

    def _refuses(self, link: Link, page: PageRecord, nofollow: bool) -> Reason | None:
        if nofollow or link.nofollow:
            return Reason.NOFOLLOW
        if not self._in_scope(link, page):
            return Reason.SCOPE
        if self.rules and self._keeps_out(link, page):
            return Reason.RULE
        if link.how is DiscoveredBy.REDIRECT and page.hops >= self._settings.max_redirects:
            return Reason.REDIRECTS
        if self._closes(link.url):  # saves a place in the frontier and a turn of the site
            return Reason.ROBOTS
        return trap(link.url, self._depth(link, page), self._limits)

    def _in_scope(self, link: Link, page: PageRecord) -> bool:
        if self.goes_to(site_of(link.url)):
            return True
        # A start URL that redirects (to https, to www) takes its scope along.
        return link.how is DiscoveredBy.REDIRECT and page.how is DiscoveredBy.SEED

    def _keeps_out(self, link: Link, page: PageRecord) -> bool:
        """Whether a rule of its site keeps this link out."""
        is_start = link.how is DiscoveredBy.REDIRECT and page.how is DiscoveredBy.SEED
        is_listed = link.how is DiscoveredBy.SITEMAP and page.how is not DiscoveredBy.SEED
        depth = FAR if is_listed else self._depth(link, page)  # a sitemap does not say how far its pages are away
        is_sitemap = link.kind is PageKind.SITEMAP
        return bool(self.rules.kept_out(link.url, depth, named=is_start, sitemap=is_sitemap))

    def _depth(self, link: Link, page: PageRecord) -> int:
        return page.depth if link.how in (DiscoveredBy.REDIRECT, DiscoveredBy.CANONICAL) else page.depth + 1

    def _hold(self, link: Link, page: PageRecord) -> Iterable[FoundUrl]:
        site = site_of(link.url)
        redirect = link.how is DiscoveredBy.REDIRECT
        leads_on = redirect and page.how is DiscoveredBy.SEED
        if leads_on:
            self.admitted.add(site)
        depth = self._depth(link, page)
        if site != page.site and site not in self._fronts and not self.rules.kept_out(front_page(link.url), depth):
            yield FoundUrl(front_page(link.url), site, how=DiscoveredBy.FRONT, admit=leads_on)
        kind = page.kind if redirect else link.kind
        how = DiscoveredBy.SEED if leads_on else link.how
        hops = page.hops + 1 if redirect else 0
        yield FoundUrl(link.url, site, kind, how, depth, hops, priority(how, depth, kind), admit=leads_on)
