"""Links of a page: resolved, canonical, each once.

An href that is not meant as a page (mail, script) is ignored. An href that may not be fetched is refused with a
reason, and so are those beyond a number of bytes, which the index of a real site hardly reaches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from levada.core.errors import BadUrl
from levada.core.reasons import Reason
from levada.core.records import DiscoveredBy, Link, PageKind, Refusal
from levada.pages.charset import UNREAD
from levada.pages.urls import Resolver, scheme_of

CACHED_LINKS = 500  # of a site, or of one of its directories
CACHED_SITES = CACHED_DIRECTORIES = 64
CACHED_LENGTH = 160  # longer hrefs are rarely repeated, and could fill the memory
SHOWN = 300  # characters kept of a refused URL
RECORD_BYTES = 100  # what a link takes beside its address
_NO_PAGES = "javascript mailto tel sms fax callto skype whatsapp viber tg geo maps market intent about"
SILENT = frozenset(_NO_PAGES.split())


class LinkCollector:
    """The links of one page, each once, in document order, in bounded memory.

    Most are plain: only a URL, without a `Link` record. The others are marked. No URL is both. Beyond `max_bytes` of
    addresses and records, links are refused. Of refused links every one is counted, and `max_refused` are named; one
    that is not named counts as often as it is on the page.
    """

    def __init__(self, base: str, site: str, *, max_bytes: int, max_refused: int, max_length: int) -> None:
        self._site = site
        self._room = max_bytes
        self._max_refused = max_refused
        self._max_length = max_length
        self._use_base(Resolver(base))
        self._plain: dict[str, None] = {}  # in order, each once
        self._marked: dict[str, Link] = {}
        self._refused: dict[tuple[str, Reason], Refusal] = {}
        self._unnamed: Counter[Reason] = Counter()
        self._named: set[Reason] = set()
        self.are_garbled = False  # a URL had letters that could not be decoded

    def rebase(self, href: str) -> None:
        """Resolve the following hrefs against `href`, if that is an http or https URL."""
        base = self.address(href)
        if base is not None:
            self._use_base(Resolver(base))
        else:
            self.add(href)

    def add_all(self, hrefs: Iterable[str]) -> None:
        """Take hrefs in order, as long as there is room."""
        plain, marked, met_on_site, met_nearby = self._plain, self._marked, self._on_site.get, self._nearby.get
        for href in hrefs:
            url = met_on_site(href) or met_nearby(href)
            if url is None or url in marked or self._room <= 0:
                self.add(href)
            elif url not in plain:
                plain[url] = None
                self._room -= len(url) + RECORD_BYTES

    def add(
        self,
        href: str,
        how: DiscoveredBy = DiscoveredBy.LINK,
        *,
        nofollow: bool = False,
        lastmod: float | None = None,
        kind: PageKind = PageKind.PAGE,
    ) -> None:
        """Take one href as it is written on the page, with what else is known about it."""
        url = self._find_or_refuse(href)
        if url is not None:
            plain = how is DiscoveredBy.LINK and not nofollow and lastmod is None and kind is PageKind.PAGE
            self._take(url, None if plain else Link(url, how, nofollow, lastmod, kind))

    def links(self) -> tuple[str, ...]:
        """The plain links."""
        return tuple(self._plain)

    def marked(self) -> tuple[Link, ...]:
        """The links with more information."""
        return tuple(self._marked.values())

    def refused(self) -> tuple[Refusal, ...]:
        unnamed = Counter(self._unnamed)
        return tuple(
            Refusal(each.url, each.site, each.reason, 1 + unnamed.pop(each.reason, 0))
            for each in self._refused.values()
        )

    @property
    def are_cut(self) -> bool:
        """Whether the page has more links than were taken."""
        return self._room <= 0 and any(each.reason is Reason.LINKS for each in self._refused.values())

    def address(self, href: str) -> str | None:
        """The http or https URL of `href`, if it is one."""
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
        fragment = href.find("#")
        if 0 < fragment < len(href) <= CACHED_LENGTH and href[fragment - 1] > " " and UNREAD not in href:
            # The same page as without the fragment, of which there may be many.
            found = self._find(href[:fragment])
            if found is not None and not isinstance(found, Reason):
                return found
        found = _read(href, self._resolve, self._max_length)
        if UNREAD in href:
            self.are_garbled = True
        elif found is not None and not isinstance(found, Reason) and len(href) <= CACHED_LENGTH:
            self._remember(href, found)
        return found

    def _use_base(self, resolve: Resolver) -> None:
        self._resolve = resolve
        self._on_site = _with_room(_met_on_site(resolve.origin, self._max_length))
        self._nearby = _with_room(_met_nearby(resolve.directory, self._max_length))

    def _remember(self, href: str, url: str) -> None:
        scope = self._resolve.scope(href)
        if scope is None:
            return
        met = self._on_site if scope == self._resolve.origin else self._nearby
        if len(met) <= CACHED_LINKS:  # a sitemap has thousands
            met[href] = url

    def _take(self, url: str, link: Link | None) -> None:
        known = self._marked.get(url)
        if known is not None and known.nofollow and not (link and link.nofollow):
            del self._marked[url]  # one link without nofollow is enough
        elif known is not None or url in self._plain:
            return
        elif self._room <= 0:
            self._refuse(url, Reason.LINKS)
            return
        else:
            self._room -= len(url) + RECORD_BYTES
        if link is None:
            self._plain[url] = None
        else:
            self._marked[url] = link

    def _refuse(self, url: str, reason: Reason) -> None:
        shown = url.strip()[:SHOWN].encode("utf-8", "replace").decode()
        if (shown, reason) in self._refused:
            return
        if len(self._refused) < self._max_refused or reason not in self._named:
            self._refused[shown, reason] = Refusal(shown, self._site, reason)
            self._named.add(reason)
        else:
            self._unnamed[reason] += 1


def _read(href: str, resolve: Resolver, max_length: int) -> str | Reason | None:
    """The URL of an href, the reason why it is refused, or None if it is not meant as a page."""
    if len(href) > max_length:
        return None if _is_silent(href) else Reason.URL_LENGTH
    try:
        url = resolve(href)
    except BadUrl:
        return None if _is_silent(href) else Reason.BAD_URL
    if not url.startswith(("http://", "https://")):
        return None if _is_silent(url) else Reason.SCHEME
    return url if len(url) <= max_length else Reason.URL_LENGTH


# Resolved hrefs that mean the same on every page of a site or directory (`Resolver.scope`). Two caches: the many
# directories of a site would push out its own entries.
def _nothing_met(scope: str, max_length: int) -> dict[str, str]:
    return {}


_met_on_site = lru_cache(maxsize=CACHED_SITES)(_nothing_met)
_met_nearby = lru_cache(maxsize=CACHED_DIRECTORIES)(_nothing_met)


def _with_room(met: dict[str, str]) -> dict[str, str]:
    if len(met) > CACHED_LINKS:
        met.clear()
    return met


def _is_silent(href: str) -> bool:
    return scheme_of(href.lstrip()) in SILENT


_Named = tuple[tuple[int, str], ...]
_decode = msgspec.msgpack.Decoder(_Named).decode
OWN_PARTS = 0
"""In place of the number of an address: what the page calls its own parts. No address has it (`term_number`)."""


def names_in(packed: bytes) -> _Named:
    """What a page calls others: the number of each address (`levada.core.hashing.term_number`), and the text of the
    link; and its headings, with `OWN_PARTS` as the number. None if that cannot be read: it only helps to rank."""
    try:
        return _decode(packed) if packed else ()
    except msgspec.MsgspecError:
        return ()


def anchors_in(packed: bytes) -> _Named:
    """What a page calls others: the number of each address, and the text of the link."""
    return tuple(each for each in names_in(packed) if each[0] != OWN_PARTS)


def headings_in(packed: bytes) -> list[str]:
    """What a page calls its parts. A version that was stored before headings were kept has none."""
    return [text for number, text in names_in(packed) if number == OWN_PARTS]
