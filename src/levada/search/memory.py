"""The index in memory: the reference that every other index must match."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import msgspec

from levada.core.records import Change, Document
from levada.core.search_records import Hit, Hits, Posting, Query
from levada.pages.folding import is_indexed, words
from levada.search.best_match import best_match
from levada.search.properties import Properties, RangeOf, WordsOf, properties_of
from levada.search.query import (
    Ask,
    Language,
    Since,
    SiteFilter,
    Term,
    Words,
    one_word,
    parse_page_of_hits,
    site_names,
)
from levada.search.snippets import excerpt
from levada.search.stemming import LANGUAGES, same_stem, word_forms, word_stems
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
        total, found = best_match(ask, facts, query.offset + query.limit, self._run, lambda page: page.document.page_id)
        return Hits(total, tuple(_hit(page.document, ask, score) for score, page in found[query.offset :]))

    def _run(self, ask: Ask, wanted: int) -> tuple[int, list[tuple[float, _Page]]]:
        answers = (page for page in self._pages.values() if self._answers(page, ask))
        found = [(sum(self._weight(each, page) for each in ask.words()), page) for page in answers]
        if ask.words():
            found.sort(key=lambda scored: (-scored[0], scored[1].document.page_id))
        else:
            found.sort(key=lambda scored: (-scored[1].document.fetched_at, scored[1].document.page_id))
        return len(found), found[:wanted]

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
        rarity = words.times * math.log(1 + len(self._pages) / max(holders, 1))
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
            case WordsOf() | RangeOf():
                return page.properties.has(term)
            case Words():
                return self._has_words(page, term, languages)

    def _has_words(self, page: _Page, words: Words, languages: frozenset[str] | None) -> bool:
        if _occur(words, page.text) or _occur(words, page.title):
            return True
        if not words.has_forms():
            return False
        wanted = self._forms.languages() if languages is None else self._forms.languages() & languages
        return any(page.counts[form] for language in wanted for form in self._forms.of(language, words.typed))


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


class _Facts:
    """What this index knows about words."""

    def __init__(self, pages: dict[int, _Page], forms: _Forms) -> None:
        self._pages = pages
        self._forms = forms

    def pages(self) -> int:
        return len(self._pages)

    def holders(self, word: str) -> int:
        return sum(word in page.text for page in self._pages.values())

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
        properties=properties_of(document.data),
    )


def _occur(words: Words, where: list[str]) -> bool:
    """Whether these words occur there, one after the other."""
    if not all(map(is_indexed, words.folded)):
        return False
    length = len(words.folded)
    found = (where[start : start + length] for start in range(len(where) - length + 1))
    return any(words.matches(some) and is_indexed(some[-1]) for some in found)


def _hit(document: Document, ask: Ask, score: float) -> Hit:
    found = excerpt(document.text, ask.words(), same_stem(document.language))
    return Hit(document.url, document.site, document.title, score, document.language, document.fetched_at, *found)
