"""Several indexes searched as one.

First every index reports how often it holds the query's words; then those that can hold a hit are searched with the
weights of all together. A query that names a site goes only to the shards with pages of it. The word statistics of
the other shards can then come from the term counts (`Trends`), if these are up to date.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush, merge

from levada.core.errors import StoreError
from levada.core.records import Change
from levada.core.search_records import Facets, Hits, Posting, Query
from levada.search.best_match import Match, best_match
from levada.search.hits import HitSources, HitSummary, PageFacts, facet_counts, hits_of, pages_wanted
from levada.search.hybrid.fusion import Near, with_near_pages
from levada.search.links import LinkReader
from levada.search.query import one_word, parse_page_of_hits
from levada.search.ranking import reranked
from levada.search.tantivy.reader import Candidate, ScoredHit, TantivyShard
from levada.search.terms import Ask, SiteFilter, site_names
from levada.search.typos import OneByOne
from levada.search.weights import FIELDS, Forms, IndexTotals, TermStatistics, WordWeights, any_ending
from levada.sharding.page_keys import search_filter
from levada.store.sharded.plan import PlanSource

_MOST_POSTINGS = 1 << 24
Counted = Callable[[int, str], int]
"""The number of documents of a shard with a folded word; for "" the number of all its documents."""


class ShardedIndex:
    """`levada.core.protocols.Index` for reading. Each index is written by the follower of its shard. `counted` is
    given where the term counts of all shards are up to date. `text_of` and `page_facts` give what hits show of stored
    pages, see `levada.search.hits.HitSources`. `near` makes searches hybrid."""

    def __init__(
        self,
        shards: Sequence[TantivyShard],
        plan: PlanSource,
        *,
        text_of: Callable[[str], str] | None = None,
        page_facts: Callable[[str], PageFacts | None] | None = None,
        counted: Counted | None = None,
        near: Near | None = None,
        expect: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        self._shards = shards
        self._plan = plan
        self._sources = HitSources(text_of, page_facts, expect)
        self._counted = counted
        self._near = near
        self._linked = LinkReader([shard.links for shard in shards])

    def search(self, query: Query) -> Hits:
        ask = parse_page_of_hits(query)
        touched = self._touched(ask)
        by_time = query.sort == "changed"

        def run(ask: Ask, wanted: int) -> tuple[int, list[tuple[float, HitSummary]]]:
            answers = [
                self._shards[place].candidates(ask, wanted, weights, by_time=by_time)
                for place, weights in self._weights(ask, touched).items()
            ]
            best, twice = _best([candidates for _, candidates in answers], wanted)
            ranked = bool(ask.words()) and not by_time
            found = [(each.score if ranked else 0.0, each.summary) for each in best[:wanted]]
            return sum(count for count, _ in answers) - twice, found

        facts = _SearchedShards(self._shards, self._queried(touched), self._counted)
        best_first = reranked(run, lambda summary: summary, self._linked.facts)

        def best(wanted: int) -> Match[HitSummary]:
            return best_match(ask, query, facts, wanted, best_first, lambda summary: summary.url)

        match = with_near_pages(ask, query, self._near, pages_wanted(query), best, run)
        return hits_of(query, ask, match, self._sources, self._facets(match.ask, query, touched))

    def _facets(self, ask: Ask, query: Query, touched: Sequence[int]) -> Facets:
        values = [self._shards[place].facet_values(ask, query) for place in touched] if query.facets else []
        return {
            name: facet_counts(name, sum((each.get(name, Counter()) for each in values), Counter[str]()))
            for name in query.facets
        }

    def postings(self, word: str, limit: int) -> list[Posting]:
        """A site has the number that its first shard gives it; its pages take numbers from each shard in turn."""
        folded = one_word(word)
        numbers: dict[str, int] = {}
        names: list[dict[int, str]] = []
        for place, shard in enumerate(self._shards):
            sites = shard.sites()
            names.append({number: site for site, number in sites.items()})
            for site, number in sites.items():
                numbers.setdefault(site, (number - 1) * len(self._shards) + place + 1)
        with self._plan.steady() as plan:
            whole = plan.keeps_sites_whole
        found: dict[str, Posting] = {}
        for place, shard in enumerate(self._shards):
            # A shard's own order of sites is not the order over all: it gives everything it has.
            for each in shard.postings(folded, _MOST_POSTINGS):
                number = numbers[names[place][each.site]]
                nth = each.page if whole else (each.page - 1) * len(self._shards) + place + 1
                found.setdefault(each.url, Posting(number, nth, each.count, each.url))
        return sorted(found.values(), key=lambda each: (each.site, each.page))[: max(0, limit)]

    def position(self) -> int:
        """The position of the shard that is furthest behind."""
        return min(shard.position() for shard in self._shards)

    def apply(self, changes: Iterable[Change]) -> int:
        raise StoreError("an index of several shards is written shard by shard")

    def clear(self) -> None:
        raise StoreError("an index of several shards is cleared shard by shard")

    def close(self) -> None:
        self._linked.close()
        for shard in self._shards:
            shard.close()

    def touched(self, query: Query) -> list[int]:
        """The shards that this query searches for hits."""
        return self._touched(parse_page_of_hits(query))

    def _touched(self, ask: Ask) -> list[int]:
        groups = self._named_sites(ask)
        if not all(groups):
            return []  # no shard has a page of this site
        with self._plan.steady() as plan:
            return [place for place in plan.touched(search_filter(groups)) if place < len(self._shards)]

    def _named_sites(self, ask: Ask) -> list[list[str]]:
        """The known sites that each `site:` means, with those below the host."""
        named = [
            {term.host for term in group if isinstance(term, SiteFilter)}
            for group in ask.must
            if all(isinstance(term, SiteFilter) for term in group)
        ]
        known = {site for shard in self._shards for site in shard.sites()} if named else ()
        return [[site for site in known if hosts & set(site_names(site))] for hosts in named]

    def _queried(self, touched: Sequence[int]) -> Sequence[int]:
        return range(len(self._shards)) if self._counted is None else touched

    def _weights(self, ask: Ask, touched: Sequence[int]) -> dict[int, WordWeights]:
        queried = self._queried(touched)
        forms = _union([self._shards[place].forms(ask) for place in queried])
        counts = {place: self._shards[place].statistics(ask, forms) for place in queried}
        every = [*counts.values(), *self._estimated(ask, forms, list(counts.values()), touched)]
        weights = {place: self._shards[place].weights(every, counts[place], forms) for place in touched}
        return {place: each for place, each in weights.items() if each is not None}

    def _estimated(
        self, ask: Ask, forms: Forms, own: list[TermStatistics], touched: Sequence[int]
    ) -> list[TermStatistics]:
        """The statistics of the shards that are not searched, from the term counts. These count whole documents;
        the share of words in titles and the length of pages are taken from the searched shards."""
        if self._counted is None or not own:
            return []
        others = [place for place in range(len(self._shards)) if place not in touched]
        return [_estimate(ask, forms, own, place, self._counted) for place in others]


class _SearchedShards(OneByOne):
    """What all shards together know about words."""

    def __init__(self, shards: Sequence[TantivyShard], queried: Sequence[int], counted: Counted | None) -> None:
        self._known = [known for place in queried if (known := shards[place].words())]
        self._others = [place for place in range(len(shards)) if place not in queried]
        self._counted = counted

    def pages(self) -> int:
        return sum(each.pages() for each in self._known) + self._elsewhere("")

    def holders(self, word: str) -> int:
        return sum(each.holders(word) for each in self._known) + self._elsewhere(word)

    def beginning(self, start: str, limit: int) -> list[tuple[str, int]]:
        found: Counter[str] = Counter()
        for each in self._known:
            found.update(dict(each.beginning(start, limit)))
        return found.most_common(limit)

    def languages(self) -> list[str]:
        return sorted({code for each in self._known for code in each.languages()})

    def _elsewhere(self, word: str) -> int:
        counted = self._counted
        return 0 if counted is None else sum(counted(place, word) for place in self._others)


def _best(answers: list[Iterator[Candidate]], wanted: int) -> tuple[list[ScoredHit], int]:
    """The best `wanted`, each page once, and how many were found twice: pages that move to another shard. Hits are
    scored in the order of the highest score they can have, until none that is left can be among the best."""
    found: dict[str, ScoredHit] = {}
    best: list[float] = []  # a heap of the best scores
    twice = 0
    for at_most, weigh in merge(*answers, key=lambda each: -each[0]):
        if len(best) >= wanted and (not wanted or best[0] >= at_most):
            break
        hit = weigh()
        if hit.summary.url in found:
            twice += 1
            continue
        found[hit.summary.url] = hit
        heappush(best, hit.score)
        if len(best) > wanted:
            heappop(best)
    return sorted(found.values(), key=lambda each: (-each.score, each.summary.url)), twice


def _union(every: list[Forms]) -> Forms:
    forms: dict[str, frozenset[str]] = {}
    for each in every:
        for typed, known in each.items():
            forms[typed] = forms.get(typed, frozenset()) | known
    return forms


def _estimate(ask: Ask, forms: Forms, own: list[TermStatistics], place: int, counted: Counted) -> TermStatistics:
    documents = counted(place, "")
    here = sum(each.totals.documents for each in own) or 1
    lengths = {field: sum(each.totals.words.get(field, 0.0) for each in own) / here for field in FIELDS}
    totals = IndexTotals(documents, documents, {field: length * documents for field, length in lengths.items()})
    holders: dict[tuple[str, str], int] = {}
    for start in {each.folded[-1] for each in ask.every_word() if each.prefix}:  # as often as on the searched shards
        for field in FIELDS:
            known_here = sum(each.holders.get((field, any_ending(start)), 0) for each in own)
            holders[field, any_ending(start)] = round(documents * known_here / here)
    for word in {word for each in ask.every_word() for word in each.folded}.union(*forms.values()):
        known = {field: sum(each.holders.get((field, word), 0) for each in own) for field in FIELDS}
        there = counted(place, word)
        for field in FIELDS:
            holders[field, word] = round(there * known[field] / (max(known.values()) or 1))
    return TermStatistics(totals, holders)
