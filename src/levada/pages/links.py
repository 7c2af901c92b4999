"""Which of the addresses that a page names may be asked for at all?

What is no address of a page (a mail, a script) is silently no link; what could lead somewhere that we must not go
is refused with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from levada.errors import BadUrl
from levada.pages.charset import UNREAD
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
    """The links of one page, each once, in document order, in bounded number.

    Most are plain, an address and nothing more, and no `Link` is made of them; the others are marked. None is both.
    """

    def __init__(self, base: str, site: str, *, max_links: int, max_refused: int, max_length: int) -> None:
        self._site = site
        self._max_links = max_links
        self._max_refused = max_refused
        self._max_length = max_length
        self._settle(Resolver(base))
        self._plain: dict[str, None] = {}  # in order, each once
        self._marked: dict[str, Link] = {}
        self._refused: dict[tuple[str, Reason], Refusal] = {}
        self.are_garbled = False  # an address had letters that could not be read

    def rebase(self, href: str) -> None:
        """From here on addresses are relative to `href`, if that is an http or https address."""
        base = self.address(href)
        if base is not None:
            self._settle(Resolver(base))
        else:
            self.add(href)

    def add(self, href: str) -> None:
        """Take one address as it is written on the page."""
        url = self._find_or_refuse(href)
        if url is not None:
            self._take(url, None)

    def add_all(self, hrefs: Iterable[str]) -> None:
        """Take addresses in their order, until there is no room for more."""
        plain, marked, met_on_site, met_nearby = self._plain, self._marked, self._on_site.get, self._nearby.get
        room = self._max_links - len(marked)
        for href in hrefs:
            if len(plain) >= room:
                break
            url = met_on_site(href) or met_nearby(href)
            if url is None or url in marked:
                self.add(href)
                room = self._max_links - len(marked)  # one that was marked may be plain now
            else:
                plain[url] = None

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
        url = self._find_or_refuse(href)
        if url is not None:
            plain = how is How.LINK and not nofollow and lastmod is None and kind is PageKind.PAGE
            self._take(url, None if plain else Link(url, how, nofollow, lastmod, kind))

    @property
    def full(self) -> bool:
        return len(self._plain) + len(self._marked) >= self._max_links

    def links(self) -> tuple[str, ...]:
        """The plain ones."""
        return tuple(self._plain)

    def marked(self) -> tuple[Link, ...]:
        """Those of which more is known."""
        return tuple(self._marked.values())

    def refused(self) -> tuple[Refusal, ...]:
        return tuple(self._refused.values())

    def address(self, href: str) -> str | None:
        """The http or https address that `href` stands for, if it is one."""
        found = self._find(href)
        return None if isinstance(found, Reason) else found

    def _find_or_refuse(self, href: str) -> str | None:
        found = self._find(href)
        if not isinstance(found, Reason):
            return found
        self._refuse(href, found)
        return None

    def _find(self, href: str) -> str | Reason | None:
        url = self._on_site.get(href) or self._nearby.get(href)
        if url is not None:
            return url
        found = _read(href, self._resolve, self._max_length)
        if UNREAD in href:
            self.are_garbled = True
        elif found is not None and not isinstance(found, Reason) and len(href) <= CACHED_LENGTH:
            self._remember(href, found)
        return found

    def _settle(self, resolve: Resolver) -> None:
        self._resolve = resolve
        self._on_site = _with_room(_met_on_site(resolve.origin, self._max_length))
        self._nearby = _with_room(_met_nearby(resolve.directory, self._max_length))

    def _remember(self, href: str, url: str) -> None:
        scope = self._resolve.scope(href)
        if scope is None:
            return
        met = self._on_site if scope == self._resolve.origin else self._nearby
        if len(met) <= CACHED_LINKS:  # a sitemap names thousands
            met[href] = url

    def _take(self, url: str, link: Link | None) -> None:
        known = self._marked.get(url)
        if known is not None and known.nofollow and not (link and link.nofollow):
            del self._marked[url]  # one link that vouches for the page is enough
        elif known is not None or url in self._plain or self.full:
            return
        if link is None:
            self._plain[url] = None
        else:
            self._marked[url] = link

    def _refuse(self, url: str, reason: Reason) -> None:
        if len(self._refused) < self._max_refused:
            shown = url.strip()[:SHOWN].encode("utf-8", "replace").decode()
            self._refused.setdefault((shown, reason), Refusal(shown, self._site, reason))


def _read(href: str, resolve: Resolver, max_length: int) -> str | Reason | None:
    """The address that an href stands for, the reason why it is none, or None where it never meant to be one."""
    if len(href) > max_length:
        return None if _is_silent(href) else Reason.URL_LENGTH
    try:
        url = resolve(href)
    except BadUrl:
        return None if _is_silent(href) else Reason.BAD_URL
    if not url.startswith(("http://", "https://")):
        return None if _is_silent(url) else Reason.SCHEME
    return url if len(url) <= max_length else Reason.URL_LENGTH


# What hrefs that pages share have turned out to mean, where they mean the same on each (`Resolver.scope`). Kept
# apart: a site has many directories, which would soon crowd it out.
@lru_cache(maxsize=CACHED_SITES)
def _met_on_site(origin: str, max_length: int) -> dict[str, str]:
    return {}


@lru_cache(maxsize=CACHED_DIRECTORIES)
def _met_nearby(directory: str, max_length: int) -> dict[str, str]:
    return {}


def _with_room(met: dict[str, str]) -> dict[str, str]:
    if len(met) > CACHED_LINKS:
        met.clear()
    return met


def _is_silent(href: str) -> bool:
    return scheme_of(href.lstrip()) in SILENT
