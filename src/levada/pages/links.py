"""Which of the addresses that a page names may be asked for at all?

What is no address of a page (a mail, a script) is silently no link; what could lead somewhere that we must not go
is refused with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

from levada.errors import BadUrl
from levada.pages.urls import Resolver, scheme_of
from levada.reasons import Reason
from levada.records import How, Link, PageKind, Refusal

__all__ = ["LinkCollector"]

CACHED_LINKS = 500  # of a site, or of one of its directories
CACHED_SITES = CACHED_DIRECTORIES = 64
CACHED_LENGTH = 160  # longer hrefs are rarely met twice, and an outsider picks them
SHOWN = 300  # characters kept of an address that was refused
_NO_PAGES = "javascript mailto tel sms fax callto skype whatsapp viber tg geo maps market intent about"
SILENT = frozenset(_NO_PAGES.split())


class LinkCollector:
    """The links of one page, each once, in document order, in bounded number."""

    def __init__(self, base: str, site: str, *, max_links: int, max_refused: int, max_length: int) -> None:
        self._site = site
        self._max_links = max_links
        self._max_refused = max_refused
        self._max_length = max_length
        self._settle(Resolver(base))
        self._links: dict[str, Link] = {}
        self._refused: dict[tuple[str, Reason], Refusal] = {}

    def rebase(self, href: str) -> None:
        """From here on addresses are relative to `href`, if that is an http or https address."""
        base = self.address(href)
        if base is not None:
            self._settle(Resolver(base))
        else:
            self.add(href)

    def add(self, href: str) -> None:
        """Take one address as it is written on the page."""
        self._take(href, self._find(href))

    def add_all(self, hrefs: Iterable[str]) -> None:
        """Take addresses in their order, until there is no room for more."""
        links, met_on_site, met_nearby = self._links, self._on_site.get, self._nearby.get
        for href in hrefs:
            if len(links) >= self._max_links:
                break
            link = met_on_site(href) or met_nearby(href)
            if link is None:
                self.add(href)
            elif links.setdefault(link.url, link).nofollow:
                links[link.url] = link

    def add_as(
        self,
        href: str,
        how: How,
        *,
        nofollow: bool = False,
        lastmod: float | None = None,
        kind: PageKind = PageKind.PAGE,
    ) -> None:
        """Take one address of which more is known."""
        found = self._find(href)
        if isinstance(found, Link):
            found = Link(found.url, how, nofollow, lastmod, kind)
        self._take(href, found)

    @property
    def full(self) -> bool:
        return len(self._links) >= self._max_links

    def links(self) -> tuple[Link, ...]:
        return tuple(islice(self._links.values(), self._max_links))

    def refused(self) -> tuple[Refusal, ...]:
        return tuple(self._refused.values())

    def address(self, href: str) -> str | None:
        """The http or https address that `href` stands for, if it is one."""
        found = self._find(href)
        return found.url if isinstance(found, Link) else None

    def _find(self, href: str) -> Link | Reason | None:
        link = self._on_site.get(href) or self._nearby.get(href)
        if link is not None:
            return link
        found = _read(href, self._resolve, self._max_length)
        if isinstance(found, Link) and len(href) <= CACHED_LENGTH:
            self._remember(href, found)
        return found

    def _settle(self, resolve: Resolver) -> None:
        self._resolve = resolve
        self._on_site = _with_room(_met_on_site(resolve.origin, self._max_length))
        self._nearby = _with_room(_met_nearby(resolve.directory, self._max_length))

    def _remember(self, href: str, link: Link) -> None:
        scope = self._resolve.scope(href)
        if scope is None:
            return
        met = self._on_site if scope == self._resolve.origin else self._nearby
        if len(met) <= CACHED_LINKS:  # a sitemap names thousands
            met[href] = link

    def _take(self, href: str, found: Link | Reason | None) -> None:
        if isinstance(found, Reason):
            self._refuse(href, found)
        elif found is not None:
            known = self._links.get(found.url)
            # One link that vouches for the page is enough.
            if known is None or (known.nofollow and not found.nofollow):
                self._links[found.url] = found

    def _refuse(self, url: str, reason: Reason) -> None:
        if len(self._refused) < self._max_refused:
            shown = url.strip()[:SHOWN].encode("utf-8", "replace").decode()
            self._refused.setdefault((shown, reason), Refusal(shown, self._site, reason))


def _read(href: str, resolve: Resolver, max_length: int) -> Link | Reason | None:
    """The link that an href is, the reason why it is none, or None where it never meant to be one."""
    if len(href) > max_length:
        return None if _is_silent(href) else Reason.URL_LENGTH
    try:
        url = resolve(href)
    except BadUrl:
        return None if _is_silent(href) else Reason.BAD_URL
    if not url.startswith(("http://", "https://")):
        return None if _is_silent(url) else Reason.SCHEME
    return Link(url) if len(url) <= max_length else Reason.URL_LENGTH


# What hrefs that pages share have turned out to mean, where they mean the same on each (`Resolver.scope`). Kept
# apart: a site has many directories, which would soon crowd it out.
@lru_cache(maxsize=CACHED_SITES)
def _met_on_site(origin: str, max_length: int) -> dict[str, Link]:
    return {}


@lru_cache(maxsize=CACHED_DIRECTORIES)
def _met_nearby(directory: str, max_length: int) -> dict[str, Link]:
    return {}


def _with_room(met: dict[str, Link]) -> dict[str, Link]:
    if len(met) > CACHED_LINKS:
        met.clear()
    return met


def _is_silent(href: str) -> bool:
    return scheme_of(href.lstrip()) in SILENT
