"""From the pages that match to hits: their order, one for several, snippets, and what was probably meant.

An index finds and ranks pages. Sorting by the last visit, and putting pages with nearly the same text together, need
what the store knows of them (`page_facts`); these look at the best `MOST_ARRANGED` pages only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from levada.core.search_records import FacetCount, FacetName, Facets, Hit, Hits, Query
from levada.pages.change import are_alike
from levada.pages.folding import lowercase, words
from levada.search.best_match import Match
from levada.search.snippets import Excerpt, TitleMarker, excerpt
from levada.search.stemming import same_stem
from levada.search.terms import Ask, Words

MOST_ARRANGED = 1_000  # pages that are sorted by their last visit, or put together
MOST_OTHERS = 10  # pages that are shown beside the one that stands for them
MOST_VALUES = 20  # of a facet
_ALIKE = 0.9  # the share of common words from which two texts are copies
TIMES = (("1h", 3_600.0), ("24h", 86_400.0), ("7d", 604_800.0), ("30d", 2_592_000.0), ("365d", 31_536_000.0))


class HitSummary(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What an index stores of a page for its hits."""

    url: str
    site: str
    title: str
    language: str
    changed_at: float
    headings: str = ""  # the folded words of its headings, each between spaces: they rank it


class PageFacts(msgspec.Struct, frozen=True):
    """What the store knows of a page beside its text."""

    checked_at: float
    sketch: bytes  # of its words, see `levada.pages.change`


class HitSources(msgspec.Struct, frozen=True):
    """Where the facts of hits come from; each may be missing.

    Without `text_of`, the main text of a URL, hits have no snippet. Without `page_facts`, a page was last visited when
    it changed, and has no copies. `expect` is told for which URLs `text_of` will be asked, so that slow sources can
    read them at the same time.
    """

    text_of: Callable[[str], str] | None = None
    page_facts: Callable[[str], PageFacts | None] | None = None
    expect: Callable[[Sequence[str]], None] | None = None


def pages_wanted(query: Query) -> int:
    """How many of the best pages an index must find to answer `query`."""
    wanted = query.offset + query.limit
    return max(wanted, MOST_ARRANGED) if query.one_per or query.sort == "checked" else wanted


class _Shown(msgspec.Struct):
    score: float
    summary: HitSummary
    facts: PageFacts | None = None
    others: list[_Shown] = []


def hits_of(
    query: Query,
    ask: Ask,
    match: Match[HitSummary],
    sources: HitSources,
    facets: Facets,
) -> Hits:
    """The requested hits; `match.found` are the best `pages_wanted`, those before `query.offset` among them."""
    shown = _arranged([_Shown(score, summary) for score, summary in match.found], query, sources)
    every = match.ask.words()
    titles = TitleMarker(every)
    page = shown[query.offset : query.offset + query.limit]
    if sources.expect is not None and len(page) > 1:
        sources.expect([each.summary.url for each in page])
    hits = tuple(_hit(each, every, titles, query, sources) for each in page)
    return Hits(match.total, hits, _meant(query.text, match.corrected, hits), ask.notes, facets)


def _arranged(found: list[_Shown], query: Query, sources: HitSources) -> list[_Shown]:
    if sources.page_facts is not None and (query.sort == "checked" or query.one_per == "copies"):
        for each in found:
            each.facts = sources.page_facts(each.summary.url)
    if query.sort == "checked":
        found.sort(key=lambda each: (-_checked_at(each), each.summary.url))
    if query.one_per == "site":
        return _by_site(found)
    return _without_copies(found) if query.one_per == "copies" else found


def _checked_at(each: _Shown) -> float:
    return each.facts.checked_at if each.facts else each.summary.changed_at


def _by_site(found: list[_Shown]) -> list[_Shown]:
    first: dict[str, _Shown] = {}
    for each in found:
        if (before := first.setdefault(each.summary.site, each)) is not each:
            before.others.append(each)
    return list(first.values())


def _without_copies(found: list[_Shown]) -> list[_Shown]:
    """The first of each pages with nearly the same text. Only pages that share one of a sketch's first hashes are
    compared, so a thousand different pages cost no million comparisons."""
    first: list[_Shown] = []
    by_hash: dict[bytes, list[_Shown]] = {}
    for each in found:
        sketch = each.facts.sketch if each.facts else b""
        hashes = [sketch[at : at + 4] for at in range(0, min(len(sketch), 16), 4)]
        near = (one for part in hashes for one in by_hash.get(part, ()))
        before = next((one for one in near if one.facts and are_alike(one.facts.sketch, sketch, _ALIKE)), None)
        if before is not None:
            before.others.append(each)
            continue
        first.append(each)
        for part in hashes:
            by_hash.setdefault(part, []).append(each)
    return first


def _hit(each: _Shown, every: Sequence[Words], titles: TitleMarker, query: Query, sources: HitSources) -> Hit:
    summary, is_form = each.summary, same_stem(each.summary.language)
    found = Excerpt()
    if sources.text_of is not None:
        found = excerpt(sources.text_of(summary.url), [word for word in every if not word.field], is_form)
    return replace(
        _plain(each),
        snippet=found.pieces,
        page=found.page,
        title_pieces=titles.marked(summary.title, is_form),
        checked_at=_checked_at(each) if query.sort == "checked" else None,
        more=len(each.others),
        others=tuple(map(_plain, each.others[:MOST_OTHERS])),
    )


def _plain(each: _Shown) -> Hit:
    summary = each.summary
    return Hit(summary.url, summary.site, summary.title, each.score, summary.language, summary.changed_at)


def _meant(typed: str, corrected: dict[str, str], hits: Sequence[Hit]) -> str:
    """The query with its misspelt words corrected, as the best hits write them."""
    meant = typed
    for wrong, right in corrected.items():
        pieces = ((piece, hit.language) for hit in hits for piece, asked in (*hit.title_pieces, *hit.snippet) if asked)
        written = next((lowercase(*piece) for piece in pieces if words(piece[0]) == [right]), right)
        meant = re.sub(rf"(?<![\w:.]){re.escape(wrong)}(?!\w)", written, meant)
    return meant if meant != typed else ""


def facet_counts(name: FacetName, values: dict[str, int]) -> tuple[FacetCount, ...]:
    """The most frequent values of a facet; for "time" `values` are by the names of `TIMES`, and all are given."""
    if name == "time":
        return tuple(FacetCount(each, values.get(each, 0), f"since:{each}") for each, _ in TIMES)
    field = {"site": "site", "language": "lang", "type": "type"}[name]
    ranked = sorted(((-count, value) for value, count in values.items() if count and value))
    return tuple(FacetCount(value, -few, f"{field}:{_quoted(value)}") for few, value in ranked[:MOST_VALUES])


def _quoted(value: str) -> str:
    return f'"{value}"' if any(letter in value for letter in ' ()"') else value
