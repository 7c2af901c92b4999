"""The index in memory: the reference that every other index must match."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import partial

import msgspec

from levada.core.clock import SystemClock
from levada.core.records import Change, Document
from levada.core.search_records import FacetName, Facets, Hits, Posting, Query
from levada.pages.change import sketch_of
from levada.pages.folding import is_indexed, words
from levada.search.best_match import Match, best_match
from levada.search.hits import TIMES, HitSources, HitSummary, PageFacts, facet_counts, hits_of, pages_wanted
from levada.search.properties import Properties, RangeOf, WordsOf, properties_of_page
from levada.search.query import one_word, parse_page_of_hits
from levada.search.stemming import LANGUAGES, word_forms, word_stems
from levada.search.terms import (
    Ask,
    Language,
    Pages,
    Since,
    SiteFilter,
    Term,
    Until,
    UrlWords,
    Words,
    site_names,
    words_of_url,
)
from levada.search.typos import OneByOne
from levada.store.rules import nth_of

_TITLE_BOOST = 2.5
_STEM_WEIGHT = 0.6


class _Page(msgspec.Struct):
    document: Document
    title: list[str]
    text: list[str]
    counts: Counter[str]
    names: frozenset[str]
    properties: Properties
    url: list[str]

    @property
    def summary(self) -> HitSummary:
        about = self.document
        return HitSummary(about.url, about.site, about.title, about.language, about.fetched_at)


class MemoryIndex:
    """`levada.core.protocols.Index`, lost when the process ends."""

    def __init__(self) -> None:
        self._pages: dict[int, _Page] = {}
        self._sites: dict[str, int] = {}
        self._forms = _Forms()
        self._position = 0

    def apply(self, changes: Iterable[Change]) -> int:
        changes = list(changes)
        for change in changes:
            self._pages.pop(change.page_id, None)
            document = change.document
            if document:
                self._sites.setdefault(document.site, len(self._sites) + 1)
                if document.searchable and not document.gone:
                    self._pages[change.page_id] = _page(document)
                    self._forms.meet(document)
        if changes:
            self._position = max(self._position, changes[-1].seq)
        return len(changes)

    def position(self) -> int:
        return self._position

    def search(self, query: Query) -> Hits:
        ask = parse_page_of_hits(query)
        facts = _Facts(self._pages, self._forms)
        run = partial(self._run, by_time=query.sort == "changed")
        match = best_match(ask, query, facts, pages_wanted(query), run, lambda page: page.document.page_id)
        found = [(score, page.summary) for score, page in match.found]
        stored = {page.document.url: page.document for _, page in match.found}
        sources = HitSources(lambda url: stored[url].text, lambda url: _facts_of(stored[url]))
        summarized = Match(match.total, found, match.ask, match.corrected)
        return hits_of(query, ask, summarized, sources, self._facets(match.ask, query))

    def _run(self, ask: Ask, wanted: int, *, by_time: bool) -> tuple[int, list[tuple[float, _Page]]]:
        answers = [page for page in self._pages.values() if self._answers(page, ask)]
        if by_time or not ask.words():
            answers.sort(key=lambda page: (-page.document.fetched_at, page.document.page_id))
            return len(answers), [(0.0, page) for page in answers[:wanted]]
        found = [(self._score(ask, page), page) for page in answers]
        found.sort(key=lambda scored: (-scored[0], scored[1].document.page_id))
        return len(found), found[:wanted]

    def _score(self, ask: Ask, page: _Page) -> float:
        terms = (term for group in (*ask.must, *ask.may) for term in group)
        return sum(self._term_score(term, page, ask.languages()) for term in terms)

    def _term_score(self, term: Term, page: _Page, languages: frozenset[str] | None) -> float:
        if isinstance(term, Ask):
            return self._score(term, page) if self._has(page, term, languages) else 0.0
        return self._weight(term, page) if isinstance(term, Words) else 0.0

    def _facets(self, ask: Ask, query: Query) -> Facets:
        now = SystemClock().now() if query.now is None else query.now
        pages = [page for page in self._pages.values() if query.facets and self._answers(page, ask)]
        return {name: facet_counts(name, Counter(_values(name, pages, now))) for name in query.facets}

    def postings(self, word: str, limit: int) -> list[Posting]:
        folded = one_word(word)
        found = [
            Posting(self._sites[page.document.site], nth_of(number), page.counts[folded], page.document.url)
            for number, page in self._pages.items()
            if page.counts[folded]
        ]
        return sorted(found, key=lambda posting: (posting.site, posting.page))[: max(limit, 0)]

    def clear(self) -> None:
        """Remove everything except the numbers of sites."""
        self._pages.clear()
        self._forms = _Forms()
        self._position = 0

    def close(self) -> None:
        pass

    def _weight(self, words: Words, page: _Page) -> float:
        """How rare the words are, times how much the page uses them."""
        holders = sum(self._has_words(other, words, None) for other in self._pages.values())
        rarity = words.times * words.worth * math.log(1 + len(self._pages) / max(holders, 1))
        if _occur(words, page.title):
            return rarity * _TITLE_BOOST
        often = min(page.counts[word] for word in words.folded)
        return rarity * (often / (often + 1) if often else _STEM_WEIGHT / 2)

    def _answers(self, page: _Page, ask: Ask) -> bool:
        languages = ask.languages()
        wanted = all(any(self._has(page, term, languages) for term in group) for group in ask.must)
        return wanted and not any(self._has(page, term, languages) for term in ask.must_not)

    def _has(self, page: _Page, term: Term, languages: frozenset[str] | None) -> bool:
        match term:
            case SiteFilter(host):
                return host in page.names
            case Language(code):
                return page.document.language == code
            case Since(at):
                return page.document.fetched_at >= at
            case Until(at):
                return page.document.fetched_at <= at
            case UrlWords(folded, prefix):
                return _occur(Words(folded, "", prefix=prefix), page.url)
            case Ask():
                return self._answers(page, term)
            case WordsOf() | RangeOf():
                return page.properties.has(term)
            case Pages(ids):
                return page.document.page_id in ids
            case Words():
                return self._has_words(page, term, languages)

    def _has_words(self, page: _Page, words: Words, languages: frozenset[str] | None) -> bool:
        if words.between is not None:
            return any(_are_near(words, where) for where in ([page.title] if words.field else [page.title, page.text]))
        if _occur(words, page.title) or (not words.field and _occur(words, page.text)):
            return True
        if not words.has_forms():
            return False
        counts = Counter(page.title) if words.field else page.counts
        wanted = self._forms.languages() if languages is None else self._forms.languages() & languages
        return any(counts[form] for language in wanted for form in self._forms.of(language, words.typed))


class _Forms:
    """The folded words seen as forms of each stem, by language. Forms of deleted pages stay."""

    def __init__(self) -> None:
        self._forms: dict[tuple[str, str], set[str]] = {}
        self._seen: set[tuple[str, str]] = set()

    def meet(self, document: Document) -> None:
        language = document.language
        if language not in LANGUAGES:
            return
        chunks = {(language, chunk) for chunk in f"{document.title} {document.text}".split()}
        for _, chunk in chunks - self._seen:
            for stem, form in word_forms(language, chunk):
                self._forms.setdefault((language, stem), set()).add(form)
        self._seen |= chunks

    def languages(self) -> frozenset[str]:
        return frozenset(language for language, _ in self._forms)

    def of(self, language: str, typed: str) -> frozenset[str]:
        if language not in LANGUAGES:
            return frozenset()
        stems = word_stems(language, typed)
        return stems.union(form for stem in stems for form in self._forms.get((language, stem), ()))


class _Facts(OneByOne):
    """What this index knows about words."""

    def __init__(self, pages: dict[int, _Page], forms: _Forms) -> None:
        self._pages = pages
        self._forms = forms
        self._holders: Counter[str] = Counter()
        self._sorted: list[str] = []

    def pages(self) -> int:
        return len(self._pages)

    def holders(self, word: str) -> int:
        if not self._holders:
            self._holders.update(each for page in self._pages.values() for each in set(page.text))
        return self._holders[word]

    def beginning(self, start: str, limit: int) -> list[tuple[str, int]]:
        self.holders("")
        if not self._sorted:
            self._sorted = sorted(self._holders)
        begins, ends = bisect_left(self._sorted, start), bisect_left(self._sorted, f"{start}\U0010ffff")
        found = {word: self._holders[word] for word in self._sorted[begins:ends]}
        return sorted(found.items(), key=lambda each: (-each[1], each[0]))[:limit]

    def languages(self) -> list[str]:
        return sorted(self._forms.languages())


def _page(document: Document) -> _Page:
    title, text = words(document.title), words(document.text)
    return _Page(
        document=document,
        title=title,
        text=text,
        counts=Counter(word for word in title + text if is_indexed(word)),
        names=frozenset(site_names(document.site)),
        properties=properties_of_page(document),
        url=words_of_url(document.url).split(),
    )


def _occur(words: Words, where: list[str]) -> bool:
    """Whether these words occur there, one after the other."""
    if not all(map(is_indexed, words.folded)):
        return False
    length = len(words.folded)
    found = (where[start : start + length] for start in range(len(where) - length + 1))
    return any(words.matches(some) and is_indexed(some[-1]) for some in found)


def _are_near(words: Words, where: list[str]) -> bool:
    """Whether both words of each pair occur with few enough others between them, in any order."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, word in enumerate(where):
        places[word].append(place)
    most = (words.between or 0) + 1
    return all(
        any(abs(one - other) <= most for one in places[first] for other in places[second])
        for first, second in words.pairs()
    )


def _facts_of(document: Document) -> PageFacts:
    vocabulary = {word.encode("utf-8", "replace") for word in document.text.split()}
    return PageFacts(document.checked_at, sketch_of(vocabulary))


def _values(name: FacetName, pages: Iterable[_Page], now: float) -> Iterator[str]:
    for page in pages:
        match name:
            case "site":
                yield page.document.site
            case "language":
                yield page.document.language
            case "type":
                yield from page.properties.types
            case "time":
                yield from (each for each, seconds in TIMES if page.document.fetched_at >= now - seconds)
