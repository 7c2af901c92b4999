"""Records that every part shares: page, visit, version, site, change.

Records are immutable. Points in time are float epoch seconds, durations float seconds, sizes bytes.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag, StrEnum

import msgspec

from levada.core.reasons import Reason
from levada.core.site_rules.routes import ProxyAddress
from levada.core.site_rules.visit import ReadingRule, RenderRule, RequestRule
from levada.core.structured import StructuredData, unpack_data


class PageKind(StrEnum):
    PAGE = "page"
    SITEMAP = "sitemap"
    FEED = "feed"


class DiscoveredBy(StrEnum):
    """How a URL became known."""

    SEED = "seed"
    FRONT = "front"  # the front page of a site that a link led to
    LINK = "link"
    SITEMAP = "sitemap"
    FEED = "feed"
    CANONICAL = "canonical"
    REDIRECT = "redirect"


class PageState(StrEnum):
    NEW = "new"  # never visited
    LIVE = "live"  # its latest version is stored
    FAILED = "failed"  # never stored; the last visits failed, another will be made
    GONE = "gone"  # the site says that it no longer exists
    REFUSED = "refused"  # robots.txt, the guard or a limit forbids the fetch
    ELSEWHERE = "elsewhere"  # a redirect, or a copy of the page that it names canonical
    QUARANTINED = "quarantined"  # killed the parser too often; not visited again


class Outcome(IntEnum):
    """The outcome of a visit. 1 and 2 are the paper's numbers; the others are not outcomes there."""

    FIRST = 0
    UNCHANGED = 1
    CHANGED = 2
    FAILED = 3
    REFUSED = 4
    GONE = 5


class Signals(IntFlag):
    """What a server, sitemap or feed said about a change, to be compared with the outcome of the visit."""

    NOTHING = 0
    NOT_MODIFIED = 1  # the server answered 304
    SAME_TAG = 2  # it sent the whole page with the stored entity tag, or the stored date if there is no tag
    DATED = 4  # it sent a Last-Modified
    DATE_MOVED = 8  # which differs from the one of the visit before
    SITEMAP = 16  # a sitemap reported a change since the visit before
    FEED = 32  # a feed did
    EARLY = 64  # the visit was brought forward for it


class Visit(msgspec.Struct, frozen=True, array_like=True):
    at: float
    outcome: Outcome
    similarity: float = 1.0  # to the stored version: 1 the same words, 0 none in common
    said: Signals = Signals.NOTHING


class Plan(msgspec.Struct, frozen=True):
    """When to visit again, and what the policy remembers of the page until then."""

    interval: float
    memory: bytes = b""


class ChangeHint(msgspec.Struct, frozen=True):
    """A sitemap or a feed says that a page changed at that time."""

    url: str
    at: float
    said: Signals


class Link(msgspec.Struct, frozen=True, array_like=True):
    """A link of a page: the canonical URL, and what the page says about it."""

    url: str
    how: DiscoveredBy = DiscoveredBy.LINK
    nofollow: bool = False
    lastmod: float | None = None  # as a sitemap or feed states it
    kind: PageKind = PageKind.PAGE  # expected


class FoundUrl(msgspec.Struct, frozen=True):
    """A URL to add to the frontier; a known one is left as it is."""

    url: str
    site: str
    kind: PageKind = PageKind.PAGE
    how: DiscoveredBy = DiscoveredBy.LINK
    depth: int = 0
    hops: int = 0  # redirects in a row that led here
    priority: int = 0  # among pages never visited: the lowest first
    admit: bool = False  # the user asked for its site


class OutboxLink(msgspec.Struct, frozen=True):
    """A URL that belongs to another shard: the shard of the visit keeps it until that one has it."""

    id: int
    found: FoundUrl
    found_on: int
    at: float


class PageText(msgspec.Struct, frozen=True):
    """A text that a page of a site has."""

    site: str
    digest: bytes  # a text digest (`levada.pages.change`), of which only the part for the text counts


class Refusal(msgspec.Struct, frozen=True, array_like=True):
    """A URL that was not fetched or not kept, and the reason."""

    url: str
    site: str
    reason: Reason
    count: int = 1  # how many the page has of this reason, this one and those that are not named


class PageRecord(msgspec.Struct, frozen=True):
    """All that the frontier knows about one URL."""

    id: int
    url: str
    site: str
    kind: PageKind
    state: PageState
    how: DiscoveredBy
    depth: int
    hops: int
    found_at: float
    found_on: int | None = None  # the page that links to it
    reason: Reason | None = None  # of the last visit, if it stored nothing
    visits: int = 0
    history: tuple[Visit, ...] = ()  # the latest ten, oldest first
    interval: float | None = None
    next_visit: float | None = None  # None: never again
    failures: int = 0  # in a row
    version: int = 0  # of the stored document; 0: none
    etag: str | None = None
    last_modified: str | None = None
    body_digest: bytes | None = None
    text_digest: bytes | None = None  # of its text, title and noindex (`levada.pages.change`)
    sketch: bytes | None = None
    memory: bytes = b""  # what the revisit policy remembers of it
    told: Signals = Signals.NOTHING  # who reported a change since the last visit
    leads_to: str | None = None  # where its content lives, if it is ELSEWHERE


class PlanSelection(msgspec.Struct, frozen=True):
    """Which visited pages are wanted, by their next visit; by default all that will be visited again."""

    site: str = ""  # "": of all sites
    later_than: float = float("-inf")  # the next visit is after this
    until: float = float("inf")  # and not after this
    failing: bool = False  # only those whose last visit failed or was refused


class Lease(msgspec.Struct, frozen=True):
    """The right to visit a page until `expires_at`; only the newest token of a page may commit."""

    page: PageRecord
    token: int
    expires_at: float


class RouteTrouble(StrEnum):
    """Whose fault it is that a proxy led nowhere."""

    PROXY = "proxy"  # it does not work
    REFUSAL = "refusal"  # it does not connect to this site


class Route:
    """The way of one exchange, with what is needed for it. It has no representation, because it holds secrets."""

    __slots__ = ("address", "certificate", "key", "key_password", "proxy", "trouble")

    def __init__(
        self,
        proxy: ProxyAddress | None = None,
        address: str = "",
        certificate: str = "",
        key: str = "",
        key_password: str = "",
    ) -> None:
        self.proxy = proxy
        self.address = address  # of the site, checked: what the proxy is told; "": its name
        self.certificate = certificate
        self.key = key
        self.key_password = key_password
        self.trouble: RouteTrouble | None = None  # what the fetcher found out


class Request(msgspec.Struct, frozen=True):
    """One HTTP exchange to make; the fetcher does not follow redirects."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()  # with an Accept-Encoding, the body is not decoded
    keep_bytes: int | None = None  # read and keep at most this many; None: the fetcher's limits
    body: bytes | None = None  # sent by POST; None: GET
    rule: RequestRule | None = None  # what the rules of the site say, beside headers
    route: Route | None = None  # the proxy and the client certificate of this exchange; None: neither
    render: RenderRule | None = None  # how a browser renders the answer; None: it does not


class Response(msgspec.Struct, frozen=True):
    """The answer to a request, or the reason why there is none. `status` is 0 if no answer came."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...] = ()  # names in lower case, in the order received
    body: bytes = b""  # decoded
    reason: Reason | None = None
    detail: str = ""  # one sentence about `reason`, for a person
    address: str = ""  # the IP address that was dialled
    wire_bytes: int = 0
    seconds: float = 0.0
    http_version: str = ""
    screenshot: bytes = b""  # of the rendered page, JPEG; b"": none was asked for

    def header(self, name: str) -> str | None:
        """The first header of this (lower-case) name."""
        for key, value in self.headers:
            if key == name:
                return value
        return None


class RawPage(msgspec.Struct, frozen=True, array_like=True):
    """A fetched page for the parser."""

    url: str
    body: bytes
    content_type: str = ""
    kind: PageKind = PageKind.PAGE
    known_text: bytes | None = None  # text digest of the stored version: if it is the same, nothing is compressed
    noindex: bool = False  # the headers of the answer ask for it
    rule: ReadingRule | None = None  # what the rules of the site say
    changes: int = 0  # visits up to now that met a change, each soon after the one before


class ReadPage(msgspec.Struct, frozen=True, kw_only=True):
    """What a `PageReader` found in a body."""

    title: str = ""
    text: str = ""  # a form feed between two pages, where the document has pages
    links: tuple[str, ...] = ()  # relative to the page's address, or absolute
    language: str = ""  # ISO 639-1; "": it is guessed from the text
    published: float | None = None  # epoch seconds; where the server sends no date, the revisit policy sees this one
    author: str = ""
    modified: float | None = None  # epoch seconds; as `published`, and preferred to it
    pages: int = 0  # how many the document has, if it has any
    left_out: str = ""  # what of it is not in the text: "2,000 of 5,000 pages"


class DocumentFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a document that is no web page says about itself; kept with each version.

    >>> news.page(start).facts is None  # of HTML
    True
    """

    author: str = ""
    published: float | None = None  # epoch seconds
    modified: float | None = None  # epoch seconds
    pages: int = 0  # 0: it has no pages
    left_out: str = ""  # what is not in the text; "": nothing


class PluginFailure(msgspec.Struct, frozen=True, array_like=True):
    """A plug-in that raised or returned nonsense on a page; the built-in result took its place, if there is one."""

    group: str
    name: str
    said: str


class ParsedPage(msgspec.Struct, frozen=True, array_like=True):
    """The content of a page.

    Nearly all links are only a URL, and known already. Therefore `links` are bare URLs, and only links with more
    information are `Link` records. No URL is in both.
    """

    kind: PageKind
    title: str = ""
    language: str = ""  # ISO 639-1, "" if unknown
    charset: str = "utf-8"
    text_digest: bytes = b""
    content_zstd: bytes = b""  # main text in UTF-8, and body (`levada.pages.compression`)
    sketch: bytes = b""
    words: int = 0
    distinct_words: int = 0
    links: tuple[str, ...] = ()  # canonical, each once, in the order of the page
    marked: tuple[Link, ...] = ()  # links with more information: nofollow, a feed, an entry of a sitemap or feed
    refused: tuple[Refusal, ...] = ()  # links whose URL may not be fetched
    canonical: str | None = None
    noindex: bool = False
    nofollow: bool = False
    reason: Reason | None = None  # why there is no content, if there is none
    published: float | None = None  # found by a page reader
    plugin_failures: tuple[PluginFailure, ...] = ()
    facts: DocumentFacts | None = None  # of a document that is no web page
    told: bool = True  # False: the rule has triggers, and none of them is met
    data: bytes = b""  # structured data, packed (`levada.core.structured`)
    gist: int = 0  # of a page never stored: a checksum of its words without those with digits
    is_thin: bool = False  # its main text is so little of it that different pages may have the same one


class NewVersion(msgspec.Struct, frozen=True):
    """A version of a page's content to store."""

    title: str
    language: str
    charset: str
    status: int
    headers: tuple[tuple[str, str], ...]
    content_zstd: bytes  # as in `ParsedPage`
    sketch: bytes
    words: int
    distinct_words: int
    similarity: float  # to the version before; 0 for the first
    searchable: bool = True  # False: noindex
    facts: DocumentFacts | None = None  # of a document that is no web page
    data: bytes = b""  # structured data, packed (`levada.core.structured`)
    gist: int = 0  # as in `ParsedPage`, and not stored, as the next
    is_thin: bool = False


class VisitResult(msgspec.Struct, frozen=True):
    """The result of one visit: committed as a whole or not at all."""

    lease: Lease
    visit: Visit
    state: PageState
    interval: float | None
    next_visit: float | None
    kind: PageKind = PageKind.PAGE
    reason: Reason | None = None
    failures: int = 0
    leads_to: str | None = None  # where the content lives, if the state is ELSEWHERE
    etag: str | None = None
    last_modified: str | None = None
    body_digest: bytes | None = None
    text_digest: bytes | None = None
    version: NewVersion | None = None  # None: keep the stored version (GONE removes it from search)
    found: tuple[FoundUrl, ...] = ()
    more: tuple[str, ...] = ()  # links of a page with very many: added before this result is committed
    nofollow: bool = False  # of `more`
    elsewhere: tuple[FoundUrl, ...] = ()  # found URLs of other shards: kept in the outbox (`OutboxLink`)
    refused: tuple[Refusal, ...] = ()
    memory: bytes = b""
    is_original: bool = False  # not committed if another page of the site has the text of its version by now
    near_runs: bytes = b""  # near-duplicate runs of the site from now on; b"": as they are
    proves: str = ""  # not committed: the URL pattern that was hopeless and brings something new
    hints: tuple[ChangeHint, ...] = ()  # not committed: the next reading of the sitemap repeats them
    told: bool = True  # False: a new version is stored without an entry in the change log


class Document(msgspec.Struct, frozen=True):
    """A stored version of a page, with its content.

    >>> page = news.page(start)
    >>> page.version, page.status, page.language
    (1, 200, 'tr')
    """

    page_id: int
    url: str
    site: str
    version: int
    title: str
    language: str
    charset: str
    text: str
    body: bytes
    status: int
    headers: tuple[tuple[str, str], ...]
    fetched_at: float  # when this version was stored
    checked_at: float  # the last visit that saw this version
    words: int
    similarity: float
    searchable: bool
    gone: bool = False
    facts: DocumentFacts | None = None  # of a document that is no web page
    packed_data: bytes = b""  # as `data` gives it
    screenshot: bytes = b""  # JPEG, of a page that a browser rendered; b"": none
    packed_anchors: bytes = b""  # of a change: what the page calls others and its parts (`levada.pages.links`)

    @property
    def data(self) -> StructuredData:
        """Its structured data."""
        return unpack_data(self.packed_data)


class StoredPage(msgspec.Struct, frozen=True):
    """A version of a page that was just stored, for a `PageHook`."""

    url: str
    site: str
    at: float  # of the visit
    outcome: Outcome  # FIRST or CHANGED; UNCHANGED if only its title, its offers, or whether it may be found is another
    version: int = 1
    status: int = 200  # of the answer
    title: str = ""
    language: str = ""
    text: str = ""


class VersionInfo(msgspec.Struct, frozen=True):
    """One line of a page's version history.

    >>> [(each.version, each.words > 0) for each in news.versions(start)]
    [(1, True)]
    """

    version: int
    fetched_at: float
    title: str
    words: int
    similarity: float
    packed_data: bytes = b""  # as `data` gives it

    @property
    def data(self) -> StructuredData:
        """Its structured data."""
        return unpack_data(self.packed_data)


class Change(msgspec.Struct, frozen=True):
    """A change of a document for a follower; `document` is None if it was removed."""

    seq: int
    page_id: int
    url: str
    site: str
    document: Document | None
    arrived: int = 0  # versions up to this one came from another shard: they are not new


class ChangeKind(StrEnum):
    """What happened to a stored document."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"
    BACK = "back"  # after it was gone; the content is the same or changed


class ChangeEvent(msgspec.Struct, frozen=True):
    """One entry of the change log.

    >>> change = next(news.changes())
    >>> change.what.value, change.url.startswith("http")
    ('new', True)
    """

    seq: int
    at: float
    what: ChangeKind
    page_id: int
    url: str
    site: str
    version: int
    similarity: float  # to the version before; 1 if the content is the same
    title: str = ""  # "" once the version is no longer kept
    shard: int = 0  # whose log it stands in: with `seq`, the change's own number


class DiffLine(msgspec.Struct, frozen=True):
    """`sign` is " " (in both), "-" (only before) or "+" (only after); True marks the pieces that differ."""

    sign: str
    pieces: tuple[tuple[str, bool], ...]

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.pieces)


class ChangeFacts(msgspec.Struct, frozen=True):
    """One change for people and programs: what happened, what came and went in short, and where to read more.

    The fields are the keys of the JSON in the API, in events, in webhooks and in `levada changes --json`.

    >>> facts = news.facts(next(news.changes()))
    >>> facts.what, facts.added > 0, facts.lines[0].sign
    ('new', True, '+')
    """

    id: str  # never given to another change
    at: str  # ISO 8601
    what: str  # new, changed, gone, back
    url: str
    site: str
    title: str
    version: int
    changed: float  # share of the page's words
    link: str = ""  # this change on the dashboard if its address is known, else the page
    added: int | None = None  # lines that came; None: not known
    removed: int | None = None  # lines that went; None: not known
    diff: str = ""  # those lines in short, each with its sign
    lines: tuple[DiffLine, ...] = ()  # the same, with the words that differ marked
    note: str = ""  # that the diff was cut, or why there is none


class ChangeSelection(msgspec.Struct, frozen=True):
    """Which changes are wanted; by default all."""

    site: str = ""  # this host or a subdomain
    words: str = ""  # all of these are on the page
    least: float = 0.0  # share of the page's words that must differ: 0 any change, 1 a new text
    kinds: tuple[ChangeKind, ...] = ()  # any of these; none: all


class RobotsRecord(msgspec.Struct, frozen=True):
    """The robots.txt of an origin, or why it could not be fetched."""

    text: str
    fetched_at: float
    expires_at: float
    trouble: Reason | None = None  # why it could not be fetched: then all is refused until it expires


FOREVER = 1e14
"""The end of the backoff of a dropped site."""


class SiteRecord(msgspec.Struct, frozen=True):
    """All that is known about one site (host and port).

    >>> any(site.admitted and site.pages > 0 for site in news.sites())
    True
    """

    site: str
    admitted: bool = False
    pages: int = 0
    failures: int = 0  # in a row
    rest_until: float = 0.0
    delay: float | None = None  # that the site asks for
    robots: tuple[tuple[str, RobotsRecord], ...] = ()  # by scheme
    refused: tuple[tuple[Reason, int, str], ...] = ()  # reason, how many, one example

    @property
    def dropped(self) -> bool:
        """Whether its pages are visited no more, until somebody adds it again."""
        return self.rest_until >= FOREVER


class CollectionStats(msgspec.Struct, frozen=True):
    """Collection statistics.

    >>> stats = news.stats()
    >>> stats.known >= stats.stored > 0
    True
    """

    sites: int = 0
    known: int = 0
    unvisited: int = 0
    due: int = 0  # visited before and due now
    leased: int = 0
    stored: int = 0
    versions: int = 0
    next_due: float | None = None
    workable: bool = False  # a page is unvisited or due on a site that is not in backoff
    states: dict[str, int] = {}
    refused: dict[str, int] = {}
    bytes: int = 0
