"""Records of search and term counts: queries, hits, counted rounds.

A term is a folded word (`levada.pages.folding`). Counts use its number (`levada.core.hashing.term_number`). The
empty term is in every document and every change: its count is the number of documents or changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import pack, unpack
from typing import Literal, cast, get_args

import msgspec

from levada.core.errors import UsageError

Sort = Literal["relevance", "changed", "checked"]
OnePer = Literal["", "site", "copies"]
FacetName = Literal["site", "language", "type", "time"]
FACETS: tuple[FacetName, ...] = ("site", "language", "type", "time")


def facet_names(typed: str) -> tuple[FacetName, ...]:
    """The facets that `"site,type"` names; `"all"` names all of them."""
    if typed.strip() == "all":
        return FACETS
    names = dict.fromkeys(each.strip() for each in typed.split(",") if each.strip())
    for each in names:
        if each not in FACETS:
            raise UsageError(f"facets must be {', '.join(FACETS)} or all, not {each[:50]!r}")
    return tuple(name for name in FACETS if name in names)


def search_query(
    text: str,
    *,
    limit: int = 10,
    offset: int = 0,
    now: float | None = None,
    as_you_type: bool = False,
    sort: str = "relevance",
    facets: str = "",
    one_per: str = "",
) -> Query:
    """A query from what a user gave; `UsageError` says what is wrong with it."""
    if not text.strip():
        raise UsageError("the query is empty: write the words to look for")
    if sort not in get_args(Sort):
        raise UsageError(f'sort must be "relevance", "changed" or "checked", not {sort[:50]!r}')
    if one_per not in get_args(OnePer):
        raise UsageError(f'one_per must be "site", "copies" or "", not {one_per[:50]!r}')
    return Query(text, limit, offset, now, as_you_type, cast(Sort, sort), facet_names(facets), cast(OnePer, one_per))


class Query(msgspec.Struct, frozen=True):
    """A query as the user typed it, and how it is to be answered."""

    text: str
    limit: int = 10
    offset: int = 0
    now: float | None = None  # what `since:7d` counts back from
    as_you_type: bool = False  # the last word may be half typed
    sort: Sort = "relevance"  # the best, the last changed, or the last checked page first
    facets: tuple[FacetName, ...] = ()  # what the matching pages are counted by
    one_per: OnePer = ""  # one hit of each site, or of pages with nearly the same text
    synonyms: Mapping[str, tuple[str, ...]] = {}  # of folded words; see `levada.search.synonyms`


Pieces = tuple[tuple[str, bool], ...]
"""A text in pieces, and whether each matches the query."""


class Hit(msgspec.Struct, frozen=True):
    """One page that matches a search.

    >>> hit = news.search("termos").hits[0]
    >>> hit.url.startswith("http") and hit.score > 0
    True
    """

    url: str
    site: str
    title: str
    score: float
    language: str
    changed_at: float
    snippet: Pieces = ()
    page: int = 0  # of a PDF or another document with pages: the one that the snippet is from; 0: it has none
    title_pieces: Pieces = ()
    checked_at: float | None = None  # the last visit; None unless the hits are sorted by it
    more: int = 0  # pages of the same site, or with nearly the same text, that this hit stands for
    others: tuple[Hit, ...] = ()  # the best of them, without snippets

    @property
    def excerpt(self) -> str:
        """The part of the page's text that was found."""
        return "".join(text for text, _ in self.snippet)


class FacetCount(msgspec.Struct, frozen=True):
    """How many of the matching pages have a value.

    >>> [(each.value, each.filter) for each in news.search("termos", facets="language").facets["language"]]
    [('tr', 'lang:tr')]
    """

    value: str
    count: int
    filter: str  # added to the query, finds these pages only


Facets = dict[str, tuple[FacetCount, ...]]
"""The counts of each facet, the most frequent values first."""


class Hits(msgspec.Struct, frozen=True):
    """The result of a search: how many pages match, and the requested ones, best first.

    >>> hits = news.search("termos", limit=2)
    >>> len(hits) == len(list(hits)) <= 2
    True
    """

    total: int
    hits: tuple[Hit, ...]
    did_you_mean: str = ""  # the query with its misspelt words corrected; "": none seems to be
    notes: tuple[str, ...] = ()  # what of the query was not taken as it might be meant
    facets: Facets = {}  # those that were asked for

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


class Posting(msgspec.Struct, frozen=True):
    """The paper's view of the inverted index: a word is `count` times in the `page`th URL of `site`."""

    site: int
    page: int
    count: int
    url: str


EVERY = 0
"""The number of the empty term."""
FrequencyKey = tuple[str, int]  # language, term
NewsKey = tuple[int, str, str, int]  # start of the window, site, language, term


class PageTerms(msgspec.Struct, frozen=True):
    """The counted version of a page and its terms; None while the page is not in search."""

    version: int
    language: str
    terms: bytes | None


class CountedRound(msgspec.Struct, frozen=True):
    """The result of one round of counting: committed together, or not at all."""

    after: int  # the position where it began
    position: int  # the position in the change log up to which it counts
    frequencies: dict[FrequencyKey, int]  # increase or decrease of the document count
    news: dict[NewsKey, int]  # changes that added the term
    words: dict[int, str]  # the words of the term numbers used here
    pages: dict[int, PageTerms]  # the new counts


class TrendQuery(msgspec.Struct, frozen=True):
    """Compares the windows in [since, until) with those in [past, since); of one site or language, or all."""

    past: float
    since: float
    until: float
    site: str | None = None
    language: str | None = None
    least: int = 1  # changes since `since`: terms that fewer changes added are left out


class TermGrowth(msgspec.Struct, frozen=True):
    """How many changes added a term, now and in the past; for the term "" the number of changes."""

    term: str
    language: str
    now: int
    past: int
    sites: int  # now


def packed_terms(numbers: set[int]) -> bytes:
    """Term numbers as bytes: eight each, ascending."""
    return pack(f"<{len(numbers)}q", *sorted(numbers))


def unpacked_terms(packed: bytes) -> set[int]:
    count = len(packed) // 8
    return set(unpack(f"<{count}q", packed[: 8 * count]))


class Trend(msgspec.Struct, frozen=True):
    """A term that was added to pages more often than before.

    >>> [trend.term for trend in news.trends("24h")]  # too little has changed yet
    []
    """

    term: str
    language: str
    score: float
    now: int  # changes in the window that added it
    changes: int  # in the window, in all
    past: int  # changes before, or documents, as `against` says
    past_changes: int
    against: Literal["changes", "documents"]
    sites: int  # that added it
    documents: int  # that hold it now, in this language
