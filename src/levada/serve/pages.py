"""Search, pages, versions, differences and explanations over HTTP."""

from __future__ import annotations

from base64 import b64encode
from typing import Annotated, Any

import msgspec

from levada.collection.addresses import known_page, spellings
from levada.collection.diff import Hunk, diff_of
from levada.collection.explain import why
from levada.collection.exports import as_markdown
from levada.core.durations import iso
from levada.core.errors import NotFound, UsageError
from levada.core.records import Document, DocumentFacts, VersionInfo
from levada.core.search_records import FacetCount, Hit, OnePer, Sort, search_query
from levada.core.structured import Item, price_series
from levada.serve.access import ASKED_BY
from levada.serve.operations import Operations, facts_of
from levada.serve.view import View

READING = Operations()
Url = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, description="The page; https:// may be left out.")]
Limit = Annotated[int, msgspec.Meta(ge=1, le=100, description="How many at most.")]
Version = Annotated[int, msgspec.Meta(ge=1, le=2**62, description="A number of a stored version.")]
Offset = Annotated[int, msgspec.Meta(ge=0, le=10_000, description="How many to leave out first.")]


class SearchAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    q: Annotated[
        str,
        msgspec.Meta(
            max_length=10_000,
            description='Words, "phrases", word*, AND, OR, (a b) OR c, title:, site:, lang:, type:pdf, since:, -a.',
        ),
    ]
    limit: Limit = 10
    offset: Offset = 0
    as_you_type: Annotated[bool, msgspec.Meta(description="The last word may be half typed.")] = False
    sort: Annotated[Sort, msgspec.Meta(description="The best, last changed or last visited page first.")] = "relevance"
    facets: Annotated[
        str, msgspec.Meta(max_length=100, description="What to count the pages by: site,language,type,time, or all.")
    ] = ""
    one_per: Annotated[OnePer, msgspec.Meta(description="One hit for a site, or for all copies of a text.")] = ""


class Piece(msgspec.Struct, frozen=True):
    text: str
    asked: bool  # the words that were searched for


class OtherHit(msgspec.Struct, frozen=True):
    url: str
    site: str
    title: str
    changed_at: str


class HitFacts(msgspec.Struct, frozen=True):
    url: str
    site: str
    title: str
    language: str
    score: float
    changed_at: str
    snippet: list[Piece]
    page: int | None  # of a document with pages, the one that the snippet is from
    title_pieces: list[Piece]
    checked_at: str | None  # the last visit, where hits are sorted by it
    more: int  # pages that this hit stands for, with one_per
    others: list[OtherHit]  # the best of them


class SearchAnswer(msgspec.Struct, frozen=True):
    total: int
    hits: list[HitFacts]
    next_offset: int | None
    did_you_mean: str | None  # the query with its misspelt words corrected
    notes: list[str]  # what of the query was not taken as it might be meant
    facets: dict[str, list[FacetCount]]  # those that were asked for
    partial: list[str] = []  # which shards do not answer: their hits may be old, and have no snippet


class PageAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: Url


class TextAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: Url
    version: Version | None = None  # by default the newest


class PageAnswer(msgspec.Struct, frozen=True):
    url: str
    site: str
    kind: str
    state: str
    reason: str | None
    leads_to: str | None  # where its content lives instead
    title: str
    words: int
    version: int  # 0: nothing is stored
    fetched_at: str | None  # when this version was stored
    checked_at: str | None  # the last remembered visit that met it
    next_visit: str | None
    visits: int


class AboutDocument(msgspec.Struct, frozen=True):
    author: str
    published: str | None
    modified: str | None
    pages: int  # 0: it has no pages
    left_out: str  # what is not in the text


class TextAnswer(msgspec.Struct, frozen=True):
    url: str
    version: int
    title: str
    language: str
    fetched_at: str
    text: str
    document: AboutDocument | None = None  # of a PDF, office file, e-book or data


class MarkdownAnswer(msgspec.Struct, frozen=True):
    url: str
    version: int
    title: str
    language: str
    fetched_at: str
    markdown: str  # headings, lists, tables, code and absolute links of the main content


class OfferFacts(msgspec.Struct, frozen=True):
    price: str  # an exact decimal number; "": not said
    currency: str
    availability: str  # of schema.org: "InStock"
    name: str  # of what is offered


class PriceFacts(msgspec.Struct, frozen=True):
    at: str  # when it was first seen
    price: str
    currency: str
    availability: str
    version: int


class DataAnswer(msgspec.Struct, frozen=True):
    url: str
    version: int
    fetched_at: str
    items: list[Item]  # names of types and properties are those of schema.org
    offers: list[OfferFacts]  # the main one first
    notes: list[str]  # what could not be read, or was left out
    prices: list[PriceFacts]  # the main offer over time, oldest first


class ScreenshotAnswer(msgspec.Struct, frozen=True):
    url: str
    version: int
    jpeg: str | None  # in base64; null: there is none of this version


class VersionFacts(msgspec.Struct, frozen=True):
    version: int
    fetched_at: str
    title: str
    words: int
    similarity: float


class VersionsAnswer(msgspec.Struct, frozen=True):
    url: str
    versions: list[VersionFacts]  # newest first


class DiffAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: Url
    before: Version | None = None  # by default the one before `after`
    after: Version | None = None  # by default the newest
    context: Annotated[int, msgspec.Meta(ge=0, le=100)] = 3


class DiffAnswer(msgspec.Struct, frozen=True):
    url: str
    before: VersionFacts
    after: VersionFacts
    removed: int  # lines
    added: int
    hunks: list[Hunk]


@READING.add("GET", "/search", "Search the pages", errors=(404,))
def _search(view: View, ask: SearchAsk) -> SearchAnswer:
    if not ask.q.strip():
        raise UsageError("q is empty: write the words to look for")
    most = ASKED_BY.get().results
    if most and ask.offset + ask.limit > most:
        raise UsageError(f"this key reaches the first {most} results: ask for fewer by limit and offset")
    now = view.collection().clock.now()
    query = search_query(
        ask.q,
        limit=ask.limit,
        offset=ask.offset,
        now=now,
        as_you_type=ask.as_you_type,
        sort=ask.sort,
        facets=ask.facets,
        one_per=ask.one_per,
    )
    found = view.search(query)
    if capture := view.capture():
        capture.search(query)
    seen = ask.offset + len(found.hits)
    more = seen if len(found.hits) == ask.limit and seen < found.total else None
    return SearchAnswer(
        total=found.total,
        hits=[_hit(hit) for hit in found.hits],
        next_offset=more,
        did_you_mean=found.did_you_mean or None,
        notes=list(found.notes),
        facets={name: list(counts) for name, counts in found.facets.items()},
        partial=[str(each) for each in view.away()],
    )


def _hit(hit: Hit) -> HitFacts:
    return HitFacts(
        url=hit.url,
        site=hit.site,
        title=hit.title,
        language=hit.language,
        score=hit.score,
        changed_at=str(iso(hit.changed_at)),
        snippet=[Piece(text, asked) for text, asked in hit.snippet],
        page=hit.page or None,
        title_pieces=[Piece(text, asked) for text, asked in hit.title_pieces],
        checked_at=iso(hit.checked_at),
        more=hit.more,
        others=[OtherHit(each.url, each.site, each.title, str(iso(each.changed_at))) for each in hit.others],
    )


@READING.add("GET", "/page", "What is known of a page", errors=(404,), quick=True)
def _page(view: View, ask: PageAsk) -> PageAnswer:
    url, summary = view.page_summary(spellings(ask.url))
    if capture := view.capture():
        capture.page(url, view.collection().clock.now())
    return PageAnswer(
        url=url,
        site=summary.site,
        kind=summary.kind,
        state=summary.state,
        reason=summary.reason,
        leads_to=summary.leads_to,
        title=summary.title,
        words=summary.words,
        version=summary.version,
        fetched_at=iso(summary.fetched_at),
        checked_at=iso(summary.checked_at),
        next_visit=iso(summary.next_visit),
        visits=summary.visits,
    )


@READING.add("GET", "/page/text", "The main text of a page, now or in an earlier version", errors=(404,), quick=True)
def _text(view: View, ask: TextAsk) -> TextAnswer:
    stored = _stored(view, ask)
    return TextAnswer(
        url=stored.url,
        version=stored.version,
        title=stored.title,
        language=stored.language,
        fetched_at=str(iso(stored.fetched_at)),
        text=stored.text,
        document=None if stored.facts is None else _about(stored.facts),
    )


def _stored(view: View, ask: TextAsk) -> Document:
    collection = view.collection()
    page = known_page(collection, spellings(ask.url))
    stored = collection.store.document(page.url, ask.version)
    if stored is None:
        raise NotFound(f"no such version of {page.url} is kept")
    return stored


@READING.add("GET", "/page/markdown", "The main content of a page as Markdown", errors=(404,))
def _markdown(view: View, ask: TextAsk) -> MarkdownAnswer:
    stored = _stored(view, ask)
    return MarkdownAnswer(
        url=stored.url,
        version=stored.version,
        title=stored.title,
        language=stored.language,
        fetched_at=str(iso(stored.fetched_at)),
        markdown=as_markdown(view.collection(), stored),
    )


@READING.add("GET", "/page/screenshot", "The picture of a version that a browser rendered", errors=(404,))
def _screenshot(view: View, ask: TextAsk) -> ScreenshotAnswer:
    stored = _stored(view, ask)
    jpeg = b64encode(stored.screenshot).decode() if stored.screenshot else None
    return ScreenshotAnswer(stored.url, stored.version, jpeg)


def _about(facts: DocumentFacts) -> AboutDocument:
    return AboutDocument(facts.author, iso(facts.published), iso(facts.modified), facts.pages, facts.left_out)


@READING.add("GET", "/page/data", "The structured data of a page, and its prices over time", errors=(404,))
def _data(view: View, ask: TextAsk) -> DataAnswer:
    stored = _stored(view, ask)
    data, versions = stored.data, reversed(view.collection().store.versions(stored.url))
    series = price_series((each.version, each.fetched_at, each.data) for each in versions)
    return DataAnswer(
        url=stored.url,
        version=stored.version,
        fetched_at=str(iso(stored.fetched_at)),
        items=list(data.items),
        offers=[OfferFacts(each.price, each.currency, each.availability, each.name) for each in data.offers],
        notes=list(data.notes),
        prices=[facts_of(PriceFacts, each, at=str(iso(each.at))) for each in series],
    )


@READING.add("GET", "/page/versions", "The stored versions of a page", errors=(404,), quick=True)
def _versions(view: View, ask: PageAsk) -> VersionsAnswer:
    page = known_page(view.collection(), spellings(ask.url))
    return VersionsAnswer(page.url, [_version(each) for each in view.collection().store.versions(page.url)])


@READING.add("GET", "/page/diff", "What changed between two versions", errors=(404,))
def _diff(view: View, ask: DiffAsk) -> DiffAnswer:
    collection = view.collection()
    diff = diff_of(collection.store, known_page(collection, spellings(ask.url)), ask.before, ask.after, ask.context)
    if diff.old is None:
        raise NotFound(f"{diff.url} has no two versions to compare; kept: {diff.new.version}")
    return DiffAnswer(diff.url, _version(diff.old), _version(diff.new), diff.removed, diff.added, list(diff.hunks))


def _version(each: VersionInfo) -> VersionFacts:
    return VersionFacts(each.version, str(iso(each.fetched_at)), each.title, each.words, each.similarity)


@READING.add("GET", "/why", "Why a page is visited again just then", errors=(404,))
def _why(view: View, ask: PageAsk) -> dict[str, Any]:
    return why(view.collection(), known_page(view.collection(), spellings(ask.url))).facts()
