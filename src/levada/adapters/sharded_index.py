"""How are several indexes searched as if they were one?

First every index says how often it holds the words that were asked for, then those that can hold a hit are searched
with the weights of all together. A query that names a site asks only the shards that hold pages of it; what the
others would say of the words can then come from the counts of terms (`Trends`), if these are up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush, merge

from levada.adapters.sharded.plan import PlanSource
from levada.adapters.stemming import same_stem
from levada.adapters.tantivy_shard import Candidate, Found, TantivyShard
from levada.adapters.tantivy_statistics import FIELDS, Forms, GlobalWeights, IndexTotals, TermStatistics
from levada.errors import StoreError
from levada.pages.query import Ask, Site, one_word, parse_page_of_hits, site_names
from levada.pages.snippet import snippet
from levada.records import Change
from levada.searching import Hit, Hits, Posting, Query
from levada.sharding.pages import search_filter

__all__ = ["Counted", "ShardedIndex"]

_MOST_POSTINGS = 1 << 24
Counted = Callable[[int, str], int]
"""In how many documents of a shard a folded word stands; "": how many documents there are."""


class ShardedIndex:
    """`levada.ports.Index` for reading; each index is written by whoever follows its shard.

    `counted` is given where the counts of all shards are up to date. `text_of(url)` gives the main text for
    snippets.
    """

    def __init__(
        self,
        shards: Sequence[TantivyShard],
        plan: PlanSource,
        *,
        text_of: Callable[[str], str] | None = None,
        counted: Counted | None = None,
    ) -> None:
        self._shards = shards
        self._plan = plan
        self._text_of = text_of
        self._counted = counted

    def search(self, query: Query) -> Hits:
        ask = parse_page_of_hits(query)
        wanted = query.offset + query.limit
        touched = self._touched(ask)
        answers = [
            self._shards[place].candidates(ask, wanted, weights)
            for place, weights in self._weights(ask, touched).items()
        ]
        best, twice = _best([candidates for _, candidates in answers], wanted)
        total = sum(count for count, _ in answers) - twice
        hits = best[query.offset : wanted]
        return Hits(total, tuple(self._hit(each, ask) for each in hits))

    def postings(self, word: str, limit: int) -> list[Posting]:
        """A site has the number that its first shard gives it, its pages one from each shard in turn."""
        folded = one_word(word)
        numbers: dict[str, int] = {}
        names: list[dict[int, str]] = []
        for place, shard in enumerate(self._shards):
            sites = shard.sites()
            names.append({number: site for site, number in sites.items()})
            for site, number in sites.items():
                numbers.setdefault(site, (number - 1) * len(self._shards) + place + 1)
        found: dict[str, Posting] = {}
        for place, shard in enumerate(self._shards):
            # A shard's own order of sites is not the one over all: it gives all that it has.
            for each in shard.postings(folded, _MOST_POSTINGS):
                number = numbers[names[place][each.site]]
                found.setdefault(each.url, Posting(number, self._nth(each.page, place), each.count, each.url))
        return sorted(found.values(), key=lambda each: (each.site, each.page))[: max(0, limit)]

    def position(self) -> int:
        """Of the shard that is furthest behind."""
        return min(shard.position() for shard in self._shards)

    def apply(self, changes: Iterable[Change]) -> int:
        raise StoreError("an index of several shards is written shard by shard")

    def clear(self) -> None:
        raise StoreError("an index of several shards is cleared shard by shard")

    def close(self) -> None:
        for shard in self._shards:
            shard.close()

    def touched(self, query: Query) -> list[int]:
        """The shards that this query asks for hits."""
        return self._touched(parse_page_of_hits(query))

    def _touched(self, ask: Ask) -> list[int]:
        groups = self._named_sites(ask)
        if not all(groups):
            return []  # a site that no shard has a page of
        with self._plan.steady() as plan:
            return [place for place in plan.touched(search_filter(groups)) if place < len(self._shards)]

    def _named_sites(self, ask: Ask) -> list[list[str]]:
        """The known sites that each `site:` means: a host means those below it too."""
        named = [
            {term.host for term in group if isinstance(term, Site)}
            for group in ask.must
            if all(isinstance(term, Site) for term in group)
        ]
        known = {site for shard in self._shards for site in shard.sites()} if named else ()
        return [[site for site in known if hosts & set(site_names(site))] for hosts in named]

    def _weights(self, ask: Ask, touched: Sequence[int]) -> dict[int, GlobalWeights]:
        asked = range(len(self._shards)) if self._counted is None else touched
        forms = _union([self._shards[place].forms(ask) for place in asked])
        counts = {place: self._shards[place].statistics(ask, forms) for place in asked}
        every = [*counts.values(), *self._estimated(ask, list(counts.values()), touched)]
        return {place: GlobalWeights(every, counts[place]) for place in touched}

    def _estimated(self, ask: Ask, own: list[TermStatistics], touched: Sequence[int]) -> list[TermStatistics]:
        """What the shards that are not asked hold of these words, by the counts of terms.

        These are of whole documents; words stand in titles, and pages are as long, as on the shards that are asked.
        """
        if self._counted is None or not own:
            return []
        others = [place for place in range(len(self._shards)) if place not in touched]
        return [_estimate(ask, own, place, self._counted) for place in others]

    def _nth(self, page: int, place: int) -> int:
        with self._plan.steady() as plan:
            whole = plan.keeps_sites_whole
        return page if whole else (page - 1) * len(self._shards) + place + 1

    def _hit(self, found: Found, ask: Ask) -> Hit:
        card = found.card
        score = found.score if ask.words() else 0.0
        text = self._text_of(card.url) if self._text_of else ""
        pieces = snippet(text, ask.words(), same_stem(card.language)) if self._text_of else ()
        return Hit(card.url, card.site, card.title, score, card.language, card.changed_at, pieces)


def _best(answers: list[Iterator[Candidate]], wanted: int) -> tuple[list[Found], int]:
    """The best `wanted`, each page once, and how many were met twice: pages on their way to another shard.

    Hits are weighed in the order of what they may be worth, until none that is left can be among the best.
    """
    found: dict[str, Found] = {}
    best: list[float] = []  # a heap of the best scores
    twice = 0
    for at_most, weigh in merge(*answers, key=lambda each: -each[0]):
        if len(best) >= wanted and (not wanted or best[0] >= at_most):
            break
        hit = weigh()
        if hit.card.url in found:
            twice += 1
            continue
        found[hit.card.url] = hit
        heappush(best, hit.score)
        if len(best) > wanted:
            heappop(best)
    return sorted(found.values(), key=lambda each: (-each.score, each.card.url)), twice


def _union(every: list[Forms]) -> Forms:
    forms: dict[tuple[str, str], frozenset[str]] = {}
    for each in every:
        for asked, known in each.items():
            forms[asked] = forms.get(asked, frozenset()) | known
    return forms


def _estimate(ask: Ask, own: list[TermStatistics], place: int, counted: Counted) -> TermStatistics:
    documents = counted(place, "")
    here = sum(each.totals.documents for each in own) or 1
    lengths = {field: sum(each.totals.words.get(field, 0.0) for each in own) / here for field in FIELDS}
    totals = IndexTotals(documents, documents, {field: length * documents for field, length in lengths.items()})
    holders: dict[tuple[str, str], int] = {}
    for word in {word for each in ask.words() for word in each.folded}:
        known = {field: sum(each.holders.get((field, word), 0) for each in own) for field in FIELDS}
        there = counted(place, word)
        for field in FIELDS:
            holders[field, word] = round(there * known[field] / (max(known.values()) or 1))
    return TermStatistics(totals, holders, {})
