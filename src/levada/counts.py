"""The words of counting: what a round brings, what is asked of the counts, and what is answered.

A term is a folded word (`levada.pages.folding`); where there are many, its number stands for it
(`levada.hashing.term_number`). The empty term stands in every document and in every change: how many there are.
"""

from __future__ import annotations

from struct import pack, unpack

import msgspec

__all__ = [
    "EVERY",
    "CountedRound",
    "FrequencyKey",
    "NewsKey",
    "PageTerms",
    "TermGrowth",
    "TrendQuery",
    "packed_terms",
    "unpacked_terms",
]

EVERY = 0
"""The number of the empty term."""

FrequencyKey = tuple[str, int]  # language, term
NewsKey = tuple[int, str, str, int]  # start of the window, site, language, term


class PageTerms(msgspec.Struct, frozen=True):
    """What was counted of a page: the version, and its terms; None while the page is not shown."""

    version: int
    language: str
    terms: bytes | None


class CountedRound(msgspec.Struct, frozen=True):
    """What one round of counting brings: committed together, or not at all."""

    after: int  # the position that it began at
    position: int  # of the documents' change log, up to which it counts
    frequencies: dict[FrequencyKey, int]  # documents more or fewer
    news: dict[NewsKey, int]  # changes that added the term
    words: dict[int, str]  # of the terms that are named here
    pages: dict[int, PageTerms]  # as counted now


class TrendQuery(msgspec.Struct, frozen=True):
    """Windows that begin in [since, until), beside those in [past, since); one site, one language, or all."""

    past: float
    since: float
    until: float
    site: str | None = None
    language: str | None = None
    least: int = 1  # changes since `since`: what was added less often is left out


class TermGrowth(msgspec.Struct, frozen=True):
    """How many changes added a term, now and in the past; of term "" how many changes there were."""

    term: str
    language: str
    now: int
    past: int
    sites: int  # now


def packed_terms(numbers: set[int]) -> bytes:
    """Eight bytes each, ascending."""
    return pack(f"<{len(numbers)}q", *sorted(numbers))


def unpacked_terms(packed: bytes) -> set[int]:
    count = len(packed) // 8
    return set(unpack(f"<{count}q", packed[: 8 * count]))
