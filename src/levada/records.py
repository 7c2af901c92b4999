"""The words that every part of Levada shares: what is known of a page, a visit, a version.

Records are immutable facts. Points in time are float epoch seconds, durations float seconds, sizes bytes.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag, StrEnum

import msgspec

from levada.reasons import Reason

__all__ = [
    "FOREVER",
    "Change",
    "ChangeFilter",
    "Crew",
    "Document",
    "Forwarded",
    "Found",
    "Happened",
    "Happening",
    "Hook",
    "How",
    "Lease",
    "Link",
    "NewVersion",
    "Notice",
    "Outcome",
    "PageKind",
    "PageRecord",
    "PageState",
    "ParsedPage",
    "Plan",
    "RawPage",
    "Refusal",
    "Request",
    "Response",
    "RobotsRecord",
    "Said",
    "Settled",
    "SiteRecord",
    "Standing",
    "VersionInfo",
    "Visit",
]


class PageKind(StrEnum):
    PAGE = "page"
    SITEMAP = "sitemap"
    FEED = "feed"


class How(StrEnum):
    """How a URL came to be known."""

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
    GONE = "gone"  # the site says that it is no longer there
    REFUSED = "refused"  # robots, the guard or a limit keeps us from it
    ELSEWHERE = "elsewhere"  # a redirect, or a copy of the page that it names canonical
    QUARANTINED = "quarantined"  # killed the parser too often; not visited again


class Outcome(IntEnum):
    """What a visit met. 1 and 2 are the numbers of the paper; the others do not count as outcomes there."""

    FIRST = 0
    UNCHANGED = 1
    CHANGED = 2
    FAILED = 3
    REFUSED = 4
    GONE = 5


class Said(IntFlag):
    """What others said of a page's changes, to be compared with what the visit met."""

    NOTHING = 0
    NOT_MODIFIED = 1  # the server answered 304
    SAME_TAG = 2  # it sent the whole page, under the entity tag that we hold, or the date where there is no tag
    DATED = 4  # it sent a Last-Modified
    DATE_MOVED = 8  # and another one than at the visit before
    SITEMAP = 16  # a sitemap told of a change since the visit before
    FEED = 32  # a feed did
    EARLY = 64  # and therefore the visit came before it was planned


class Visit(msgspec.Struct, frozen=True, array_like=True):
    at: float
    outcome: Outcome
    similarity: float = 1.0  # to what was stored before: 1 the same words, 0 none in common
    said: Said = Said.NOTHING


class Plan(msgspec.Struct, frozen=True):
    """When to come back, and what to remember of the page until then."""

    interval: float
    memory: bytes = b""


class Notice(msgspec.Struct, frozen=True):
    """A sitemap or a feed says that a page changed at that time."""

    url: str
    at: float
    said: Said


class Link(msgspec.Struct, frozen=True, array_like=True):
    """An address that a page names, already canonical, and what is known of it; by default, nothing."""

    url: str
    how: How = How.LINK
    nofollow: bool = False
    lastmod: float | None = None  # what a sitemap or feed claims
    kind: PageKind = PageKind.PAGE  # what is expected there


class Found(msgspec.Struct, frozen=True):
    """A URL that the frontier is asked to hold; one that it holds already is left as it is."""

    url: str
    site: str
    kind: PageKind = PageKind.PAGE
    how: How = How.LINK
    depth: int = 0
    hops: int = 0  # redirects in a row that led here
    priority: int = 0  # among pages never visited: the lowest first
    admit: bool = False  # its site is one that the user asked for


class Forwarded(msgspec.Struct, frozen=True):
    """A URL that a visit found for another shard: the visit's own shard keeps it until that one has it."""

    id: int
    found: Found
    found_on: int
    at: float


class Refusal(msgspec.Struct, frozen=True, array_like=True):
    """Something that was not fetched or not kept, and why."""

    url: str
    site: str
    reason: Reason


class PageRecord(msgspec.Struct, frozen=True):
    """All that the frontier knows of one URL."""

    id: int
    url: str
    site: str
    kind: PageKind
    state: PageState
    how: How
    depth: int
    hops: int
    found_at: float
    found_on: int | None = None  # the page that named it
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
    text_digest: bytes | None = None  # of its text, title and whether it may be found (`levada.pages.change`)
    sketch: bytes | None = None
    memory: bytes = b""  # what the revisit policy remembers of it
    told: Said = Said.NOTHING  # of a change since the last visit: by whom
    leads_to: str | None = None  # where its content lives instead, if it is ELSEWHERE


class Lease(msgspec.Struct, frozen=True):
    """The right to visit a page until `expires_at`; only the holder of the newest token may settle it."""

    page: PageRecord
    token: int
    expires_at: float


class Request(msgspec.Struct, frozen=True):
    """One HTTP exchange to make; redirects are not followed by the fetcher."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()  # with an Accept-Encoding, the body is not decoded
    keep_bytes: int | None = None  # read and keep at most this many; None: the fetcher's own limits
    body: bytes | None = None  # sent by POST; None: GET


class Response(msgspec.Struct, frozen=True):
    """One HTTP exchange that was made, or the reason why not. `status` is 0 if no answer came."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...] = ()  # names in lower case, in the order received
    body: bytes = b""  # decoded
    reason: Reason | None = None
    detail: str = ""  # one sentence about `reason`, for a person
    address: str = ""  # really dialled
    wire_bytes: int = 0
    seconds: float = 0.0
    http_version: str = ""

    def header(self, name: str) -> str | None:
        """The first header of this (lower case) name."""
        for key, value in self.headers:
            if key == name:
                return value
        return None


class RawPage(msgspec.Struct, frozen=True, array_like=True):
    """Bytes from outside, for the parser."""

    url: str
    body: bytes
    content_type: str = ""
    kind: PageKind = PageKind.PAGE
    known_text: bytes | None = None  # digest of what is stored: if it is still that, nothing is compressed
    noindex: bool = False  # its answer asks not to be found, whatever stands on the page


class ParsedPage(msgspec.Struct, frozen=True, array_like=True):
    """What is on a page.

    Of nearly all addresses that a page names nothing more is known, and nearly all of them were named before:
    `links` are therefore bare addresses, and only what is more than that is a `Link`. No address is in both.
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
    marked: tuple[Link, ...] = ()  # the same, where more is known: nofollow, a feed, an entry of a sitemap or feed
    refused: tuple[Refusal, ...] = ()  # links that are not even addresses we may ask
    canonical: str | None = None
    noindex: bool = False
    nofollow: bool = False
    reason: Reason | None = None  # why there is nothing, if there is nothing


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


class Settled(msgspec.Struct, frozen=True):
    """The whole result of one visit: everything here is committed together, or nothing is."""

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
    version: NewVersion | None = None  # None: keep what is stored (GONE removes it from search)
    found: tuple[Found, ...] = ()
    elsewhere: tuple[Found, ...] = ()  # found too, but other shards hold them: kept in the outbox (`Forwarded`)
    refused: tuple[Refusal, ...] = ()
    memory: bytes = b""
    notices: tuple[Notice, ...] = ()  # not committed: hints, that the next reading of the sitemap repeats


class Document(msgspec.Struct, frozen=True):
    """A stored version of a page, with its content."""

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
    checked_at: float  # the last visit that met it
    words: int
    similarity: float
    searchable: bool
    gone: bool = False


class VersionInfo(msgspec.Struct, frozen=True):
    """One line of a page's history of versions."""

    version: int
    fetched_at: float
    title: str
    words: int
    similarity: float


class Change(msgspec.Struct, frozen=True):
    """A step in the order in which documents changed: `document` is None where one was removed."""

    seq: int
    page_id: int
    url: str
    site: str
    document: Document | None
    arrived: int = 0  # versions up to this one came with the page from another shard: they are not news


class Happened(StrEnum):
    """What became of a stored document."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"
    BACK = "back"  # after it was gone, the same or changed


class Happening(msgspec.Struct, frozen=True):
    """One entry of the log of everything that ever happened to documents."""

    seq: int
    at: float
    what: Happened
    page_id: int
    url: str
    site: str
    version: int
    similarity: float  # to the version before; 1 where the content is as it was
    title: str = ""  # "" once the version is no longer kept


class ChangeFilter(msgspec.Struct, frozen=True):
    """Which changes are wanted; by default all."""

    site: str = ""  # this host, or one below it
    words: str = ""  # all of these stand on the page
    least: float = 0.0  # share of a page's words that must be others: 0 any change, 1 a new text


class Hook(msgspec.Struct, frozen=True):
    """Somebody who wants to be told of changes."""

    id: str
    url: str
    secret: str
    wanted: ChangeFilter = ChangeFilter()
    after: tuple[int, ...] = ()  # up to there it was told: a step of each shard's log
    failures: int = 0  # in a row
    trouble: str = ""  # at the last try
    told: int = 0  # changes, in all


class RobotsRecord(msgspec.Struct, frozen=True):
    """What a site's robots.txt said, or that it could not be had."""

    text: str
    fetched_at: float
    expires_at: float
    trouble: Reason | None = None  # why it could not be had: then all is refused until it expires


FOREVER = 1e14
"""A site that rests until then was dropped."""


class SiteRecord(msgspec.Struct, frozen=True):
    """All that is known of one site (host and port)."""

    site: str
    admitted: bool = False
    pages: int = 0
    failures: int = 0  # in a row
    rest_until: float = 0.0
    delay: float | None = None  # asked for by the site
    robots: tuple[tuple[str, RobotsRecord], ...] = ()  # by scheme
    refused: tuple[tuple[Reason, int, str], ...] = ()  # reason, how many, one example


class Standing(msgspec.Struct, frozen=True):
    """Where the whole collection stands."""

    sites: int = 0
    known: int = 0
    unvisited: int = 0
    due: int = 0  # visited before, and due now
    leased: int = 0
    stored: int = 0
    versions: int = 0
    next_due: float | None = None
    workable: bool = False  # something is unvisited or due on a site that does not rest
    states: dict[str, int] = {}
    refused: dict[str, int] = {}
    bytes: int = 0


class Crew(msgspec.Struct, frozen=True, kw_only=True):
    """The workers of one stage at a glance; counts of jobs run from the beginning."""

    queue: float  # jobs that wait for a worker
    on: float  # workers told to run, those that are still starting too
    busy: float  # workers that have a job now
    starting: float = 0.0
    arrived: float = 0.0
    done: float = 0.0
    work: float = 0.0  # seconds of the wall that workers spent on jobs, in all
    capacity: float = float("inf")  # jobs that may wait
