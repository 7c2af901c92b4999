"""The words of search: what is asked, and what is answered."""

from __future__ import annotations

import msgspec

__all__ = ["Hit", "Hits", "Posting", "Query"]


class Query(msgspec.Struct, frozen=True):
    """A question as the user typed it: words, "phrases", site:, lang:, since:, -word."""

    text: str
    limit: int = 10
    offset: int = 0
    now: float | None = None  # what `since:7d` counts back from


class Hit(msgspec.Struct, frozen=True):
    url: str
    site: str
    title: str
    score: float
    language: str
    changed_at: float
    snippet: tuple[tuple[str, bool], ...] = ()  # pieces of text, and whether each was asked for


class Hits(msgspec.Struct, frozen=True):
    total: int
    hits: tuple[Hit, ...]


class Posting(msgspec.Struct, frozen=True):
    """The paper's view of the inverted index: a word stands `count` times in the `page`th URL of `site`."""

    site: int
    page: int
    count: int
    url: str
