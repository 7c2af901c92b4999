"""Search, a page, its versions and differences, and why it is visited then: what is asked for by reading."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from levada.adapters.page_cards import PageCard, card_of
from levada.dashboard.operations import Operation
from levada.dashboard.view import View
from levada.errors import NotFound, UsageError
from levada.records import PageRecord, VersionInfo
from levada.searching import Hit, Query
from levada.telling.addresses import known_page, spellings
from levada.telling.duration import iso
from levada.telling.line_changes import Hunk
from levada.telling.page_diff import hunks_between, lines_changed
from levada.telling.why_facts import page_facts

__all__ = ["READING", "Limit", "Url"]

Url = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, description="The page; https:// may be left out.")]
Limit = Annotated[int, msgspec.Meta(ge=1, le=100, description="How many at most.")]
Version = Annotated[int, msgspec.Meta(ge=1, le=2**62, description="A number of a stored version.")]
Offset = Annotated[int, msgspec.Meta(ge=0, le=10_000, description="How many to leave out first.")]


class SearchAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    q: Annotated[str, msgspec.Meta(max_length=2_000, description='Words, "phrases", site:, lang:, since:, -word.')]
    limit: Limit = 10
    offset: Offset = 0


class Piece(msgspec.Struct, frozen=True):
    text: str
    asked: bool  # the words that were searched for


class HitFacts(msgspec.Struct, frozen=True):
    url: str
    site: str
    title: str
    language: str
    score: float
    changed_at: str
    snippet: list[Piece]


class SearchAnswer(msgspec.Struct, frozen=True):
    total: int
    hits: list[HitFacts]
    next_offset: int | None


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


class TextAnswer(msgspec.Struct, frozen=True):
    url: str
    version: int
    title: str
    language: str
    fetched_at: str
    text: str


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


def _search(view: View, ask: SearchAsk) -> SearchAnswer:
    if not ask.q.strip():
        raise UsageError("q is empty: write the words to look for")
    now = view.collection().clock.now()
    query = Query(ask.q, ask.limit, ask.offset, now)
    found = view.index().search(query)
    if capture := view.capture():
        capture.search(query)
    seen = ask.offset + len(found.hits)
    more = seen if found.hits and seen < found.total else None
    return SearchAnswer(found.total, [_hit(hit) for hit in found.hits], more)


def _hit(hit: Hit) -> HitFacts:
    pieces = [Piece(text, asked) for text, asked in hit.snippet]
    return HitFacts(hit.url, hit.site, hit.title, hit.language, hit.score, str(iso(hit.changed_at)), pieces)


def _page(view: View, ask: PageAsk) -> PageAnswer:
    """From the warm map if it is right; else, or where the address may mean another, from the store."""
    addresses = spellings(ask.url)
    card = view.warm().card(addresses[0]) or _shelved(view, addresses[0])
    answer = _answer(addresses[0], card) if card else _stored_page(view, addresses)
    if capture := view.capture():
        capture.page(answer.url, view.collection().clock.now())
    return answer


def _shelved(view: View, url: str) -> PageCard | None:
    shelf = view.shelf()
    return next((card for _, card in shelf.cards(url, f"{url}\0", 1, None)), None) if shelf else None


def _stored_page(view: View, addresses: list[str]) -> PageAnswer:
    collection = view.collection()
    page = known_page(collection, addresses)
    newest = next(iter(collection.store.versions(page.url)), None) if page.version else None
    told = (newest.title, newest.words, newest.fetched_at) if newest else (None, None, None)
    return _answer(page.url, card_of(page, *told))


def _answer(url: str, card: PageCard) -> PageAnswer:
    return PageAnswer(
        url=url,
        site=card.site,
        kind=card.kind,
        state=card.state,
        reason=card.reason,
        leads_to=card.leads_to,
        title=card.title,
        words=card.words,
        version=card.version,
        fetched_at=iso(card.fetched_at),
        checked_at=iso(card.checked_at),
        next_visit=iso(card.next_visit),
        visits=card.visits,
    )


def _text(view: View, ask: TextAsk) -> TextAnswer:
    collection = view.collection()
    page = known_page(collection, spellings(ask.url))
    stored = collection.store.document(page.url, ask.version)
    if stored is None:
        raise NotFound(f"no such version of {page.url} is kept")
    return TextAnswer(
        page.url, stored.version, stored.title, stored.language, str(iso(stored.fetched_at)), stored.text
    )


def _versions(view: View, ask: PageAsk) -> VersionsAnswer:
    page = known_page(view.collection(), spellings(ask.url))
    return VersionsAnswer(page.url, [_version(each) for each in view.collection().store.versions(page.url)])


def _diff(view: View, ask: DiffAsk) -> DiffAnswer:
    collection = view.collection()
    page = known_page(collection, spellings(ask.url))
    pair = _pair(page, collection.store.versions(page.url), ask)
    hunks = hunks_between(collection, page, pair, ask.context)
    return DiffAnswer(page.url, _version(pair[0]), _version(pair[1]), *lines_changed(hunks), hunks)


def _pair(page: PageRecord, kept: list[VersionInfo], ask: DiffAsk) -> tuple[VersionInfo, VersionInfo]:
    after = next((each for each in kept if ask.after in (None, each.version)), None)
    older = [each for each in kept if after is not None and each.version < after.version]
    before = next((each for each in older if ask.before in (None, each.version)), None)
    if after is None or before is None:
        there = ", ".join(str(each.version) for each in kept) or "none"
        raise NotFound(f"{page.url} has no such two versions to compare; kept: {there}")
    return before, after


def _version(each: VersionInfo) -> VersionFacts:
    return VersionFacts(each.version, str(iso(each.fetched_at)), each.title, each.words, each.similarity)


def _why(view: View, ask: PageAsk) -> dict[str, Any]:
    return page_facts(view.collection(), known_page(view.collection(), spellings(ask.url)))


READING = [
    Operation(
        method="GET",
        path="/search",
        summary="Search the pages",
        handle=_search,
        asks=SearchAsk,
        answer=SearchAnswer,
        slow=True,
        errors=(404,),
    ),
    Operation(
        method="GET",
        path="/page",
        summary="What is known of a page",
        handle=_page,
        asks=PageAsk,
        answer=PageAnswer,
        errors=(404,),
    ),
    Operation(
        method="GET",
        path="/page/text",
        summary="The main text of a page, now or in an earlier version",
        handle=_text,
        asks=TextAsk,
        answer=TextAnswer,
        errors=(404,),
    ),
    Operation(
        method="GET",
        path="/page/versions",
        summary="The stored versions of a page",
        handle=_versions,
        asks=PageAsk,
        answer=VersionsAnswer,
        errors=(404,),
    ),
    Operation(
        method="GET",
        path="/page/diff",
        summary="What changed between two versions",
        handle=_diff,
        asks=DiffAsk,
        answer=DiffAnswer,
        slow=True,
        errors=(404,),
    ),
    Operation(
        method="GET",
        path="/why",
        summary="Why a page is visited again just then",
        handle=_why,
        asks=PageAsk,
        answer=dict[str, Any],
        slow=True,
        errors=(404,),
    ),
]
