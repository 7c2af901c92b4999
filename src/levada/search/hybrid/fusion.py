"""Pages near a query in meaning and pages with its words, in one list by reciprocal rank fusion.

A page gets `1 / (CONSTANT + place)` for its place among the pages with the words, and a share of that for its place
among the pages near in meaning (Cormack, Clarke and Büttcher 2009). Both figures were tuned on one half of Cranfield,
CISI and CACM; docs/design.md has the table.

The first `DEPTH` pages of both lists are fused, always as many, so that each part of the hits comes from the same list.
Filters, quoted words, words joined by AND and excluded ones bind pages near in meaning too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from levada.core.search_records import Query
from levada.search.best_match import Match, Run, is_loose
from levada.search.hits import HitSummary
from levada.search.terms import Ask, Pages

DEPTH = 100  # pages of each list
CONSTANT = 5
WEIGHT = 0.5  # of a place among the pages near in meaning


class NearPage(msgspec.Struct, frozen=True):
    """A page near a text in meaning."""

    page_id: int
    url: str
    similarity: float


Near = Callable[[str], Sequence[NearPage]]
"""Gives the pages nearest to a text in meaning, at most `DEPTH`, the nearest first."""


def with_near_pages(
    ask: Ask,
    query: Query,
    near: Near | None,
    wanted: int,
    best: Callable[[int], Match[HitSummary]],
    run: Run[HitSummary],
) -> Match[HitSummary]:
    """The best `wanted` pages for a query: those that `best` finds by words, and those that `near` finds.

    `run` finds the pages of an `Ask`. Only hits that are sorted by relevance and have words that do not bind are fused.
    """
    text = loose_text(ask)
    if near is None or not text or query.sort != "relevance" or query.as_you_type:
        return best(wanted)
    match = best(max(wanted, DEPTH))
    pages = near(text)[:DEPTH]
    if not pages:
        return replace(match, found=match.found[:wanted])
    one_of = (Pages(frozenset(page.page_id for page in pages)),)
    binding = tuple(group for group in ask.must if not is_loose(group))
    total, found = run(replace(ask, must=(*binding, one_of), may=()), len(pages))
    with_words, _ = run(replace(match.ask, must=(*match.ask.must, one_of)), 1)
    known = {summary.url: summary for _, summary in found}
    order = [known[page.url] for page in pages if page.url in known]
    fused = fuse([summary for _, summary in match.found], order)
    return replace(match, total=match.total + total - with_words, found=fused[:wanted])


def loose_text(ask: Ask) -> str:
    """The words of a query that a page may lack, as they were typed."""
    groups = tuple(group for group in ask.must if is_loose(group))
    return " ".join(dict.fromkeys(word.typed for word in Ask(groups).words() if word.worth >= 1))


def fuse(by_words: Sequence[HitSummary], by_meaning: Sequence[HitSummary]) -> list[tuple[float, HitSummary]]:
    """Both lists as one, each page once, with scores that never rise. Pages with the words beyond the first `DEPTH`
    follow in their order."""
    scores: dict[str, float] = {}
    for weight, pages in ((1.0, by_words[:DEPTH]), (WEIGHT, by_meaning[:DEPTH])):
        for place, page in enumerate(pages, 1):
            scores[page.url] = scores.get(page.url, 0.0) + weight / (CONSTANT + place)
    by_url = {page.url: page for page in (*by_meaning[:DEPTH], *by_words[:DEPTH])}
    fused = sorted(((score, by_url[url]) for url, score in scores.items()), key=lambda each: (-each[0], each[1].url))
    least = fused[-1][0] if fused else 0.0
    rest = enumerate(by_words[DEPTH:], DEPTH + 1)
    return [*fused, *((least * DEPTH / place, page) for place, page in rest if page.url not in scores)]
