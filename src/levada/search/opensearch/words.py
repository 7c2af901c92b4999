"""What OpenSearch knows about words: how many pages have each, their forms, and words like them.

Each question costs a round trip, so the words of a query are asked about together, and what was answered is kept for
the length of one search.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from levada.search.opensearch.queries import EVERY_PAGE, begins, clean, term
from levada.search.stemming import LANGUAGES, goes_on, may_go_on, word_stems
from levada.search.terms import Ask, Words
from levada.search.weights import FIELDS, Forms, IndexTotals, TermStatistics, any_ending

Answers = Callable[[Sequence[dict[str, Any]]], list[dict[str, Any]]]
"""Gives the answers to several search requests, which are sent as one."""

_TEXT = "text"
_MOST_LANGUAGES = 200
_MOST_FORMS = 2_000  # forms of the words of a query
_MOST_LONGER = 4  # words that go on from one
_MOST_LIKE = 50  # words with two errors
_LEAST_LIKENESS = 0.3  # of a word with two errors, by its length
_NO_LIMIT = 1_000_000_000  # pages that may have a word for which others are looked up
_Key = tuple[str, str]  # field and word; a star stands for any ending


class SearchedWords:
    """`levada.search.best_match.WordFacts` for one search."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._pages = 0
        self._having: dict[str, int] = {}  # pages with any word in a field
        self._languages: list[str] | None = None
        self._holders: dict[_Key, int] = {}
        self._stems: dict[str, list[tuple[str, str]]] = {}  # stem: languages and forms
        self._longer: dict[str, list[tuple[str, int]]] = {}

    def pages(self) -> int:
        if self._languages is None:
            self._learn((), (), ())
        return self._pages

    def languages(self) -> list[str]:
        if self._languages is None:
            self._learn((), (), ())
        assert self._languages is not None
        return self._languages

    def holders(self, word: str) -> int:
        return self.holders_of([word]).get(word, 0)

    def holders_of(self, words: Collection[str]) -> Mapping[str, int]:
        self._learn([(_TEXT, word) for word in words], (), ())
        return {word: self._holders[_TEXT, word] for word in words}

    def beginning_with(self, starts: Collection[str]) -> Mapping[str, int]:
        keys = {start: (_TEXT, any_ending(start)) for start in starts}
        self._learn(keys.values(), (), ())
        return {start: self._holders[key] for start, key in keys.items() if self._holders[key]}

    def like(self, word: str, same: int) -> Sequence[tuple[str, int]]:
        asked = _suggestion(word, same, _MOST_LIKE)
        (answer,) = self._answers([{"size": 0, "suggest": {"like": asked}}])
        return _suggested(answer, "like")

    def learn(self, ask: Ask) -> None:
        """Look up everything that the query of `ask` needs, at once where that is possible."""
        every = ask.every_word()
        keys = [(field, word) for each in every for word in each.folded for field in FIELDS]
        keys += [(field, any_ending(each.folded[-1])) for each in every if each.prefix for field in FIELDS]
        with_forms = [each for each in every if each.has_forms()]
        # In every language: which of them the pages have is known by the same answer only.
        stems = {stem for each in with_forms for code in LANGUAGES for stem in word_stems(code, each.typed)}
        longer = [each.folded[0] for each in with_forms if not each.prefix and may_go_on(each.folded[0])]
        self._learn(keys, stems, longer)
        forms = self.forms(ask)
        self._learn([(field, word) for known in forms.values() for word in known for field in FIELDS], (), ())

    def forms(self, ask: Ask) -> Forms:
        """The other forms of the query's words that pages of its languages have; known once it was learnt."""
        wanted = ask.languages()
        languages = [code for code in self.languages() if wanted is None or code in wanted]
        return {each.typed: self._forms_of(each, languages) for each in ask.every_word() if each.has_forms()}

    def statistics(self) -> TermStatistics:
        return TermStatistics(IndexTotals(self._pages, self._pages, having=self._having), self._holders)

    def _forms_of(self, each: Words, languages: Sequence[str]) -> frozenset[str]:
        found: set[str] = set()
        for language in languages:
            stems = word_stems(language, each.typed)
            if len(stems) > 1:  # a stem as a word may have another stem: ciudades has ciudad, which has ciud
                found |= stems
            for stem in stems:
                found.update(form for spoken, form in self._stems.get(stem, ()) if spoken == language)
        word = each.folded[0]
        if not each.prefix:
            own = self._holders.get((_TEXT, word), 0)
            known = self._longer.get(word, ()) if own else ()
            found.update(longer for longer, pages in known if pages >= own and goes_on(word, longer))
        return frozenset(found - {word})

    def _learn(self, keys: Iterable[_Key], stems: Iterable[str], longer: Iterable[str]) -> None:
        new = list(dict.fromkeys(key for key in keys if key not in self._holders))
        new_stems = [stem for stem in dict.fromkeys(stems) if stem not in self._stems]
        new_longer = [word for word in dict.fromkeys(longer) if word not in self._longer]
        if not new and not new_stems and not new_longer and self._languages is not None:
            return
        requests = [_counting(new, first=self._languages is None, longer=new_longer)]
        if new_stems:
            requests.append(_forms_with(new_stems))
        first, *others = self._answers(requests)
        self._take_in(first, new, new_longer)
        self._stems |= {stem: [] for stem in new_stems}
        for answer in others:
            for hit in answer["hits"]["hits"]:
                entry = hit["_source"]
                self._stems.setdefault(entry["stem"], []).append((entry["form_language"], entry["form"]))

    def _take_in(self, answer: dict[str, Any], keys: list[_Key], longer: list[str]) -> None:
        found = answer.get("aggregations", {})
        if self._languages is None:
            spoken = {bucket["key"] for bucket in found.get("languages", {}).get("buckets", ())}
            self._languages = [code for code in LANGUAGES if code in spoken]
            self._pages = found.get("pages", {}).get("doc_count", 0)
            self._having = {field: found.get(f"with {field}", {}).get("doc_count", 0) for field in FIELDS}
        buckets = found.get("words", {}).get("buckets", {})
        for number, key in enumerate(keys):
            self._holders[key] = buckets.get(str(number), {}).get("doc_count", 0)
        for number, word in enumerate(longer):
            self._longer[word] = _suggested(answer, str(number))


def _counting(keys: list[_Key], *, first: bool, longer: list[str]) -> dict[str, Any]:
    counted: dict[str, Any] = {}
    if first:
        counted["pages"] = {"filter": EVERY_PAGE}
        counted |= {f"with {field}": {"filter": {"exists": {"field": field}}} for field in FIELDS}
        counted["languages"] = {"terms": {"field": "language", "size": _MOST_LANGUAGES}}
    if keys:
        filters = {str(number): _holding(*key) for number, key in enumerate(keys)}
        counted["words"] = {"filters": {"filters": filters}}
    request: dict[str, Any] = {"size": 0, "track_total_hits": False, "aggs": counted}
    if longer:
        request["suggest"] = {
            str(number): _suggestion(word, len(word), _MOST_LONGER) for number, word in enumerate(longer)
        }
    return request


def _holding(field: str, word: str) -> dict[str, Any]:
    return begins(field, word[:-1]) if word.endswith("*") else term(field, word)


def _forms_with(stems: list[str]) -> dict[str, Any]:
    query = {"bool": {"filter": [{"terms": {"stem": list(map(clean, stems))}}]}}
    return {"size": _MOST_FORMS, "query": query, "track_total_hits": False}


def _suggestion(word: str, same: int, most: int) -> dict[str, Any]:
    """Words with at most two errors that begin with the same so many letters."""
    return {
        "text": clean(word),
        "term": {
            "field": _TEXT,
            "suggest_mode": "always",
            "max_edits": 2,
            "prefix_length": same,
            "size": most,
            "sort": "frequency",
            "string_distance": "damerau_levenshtein",
            "accuracy": _LEAST_LIKENESS,
            "max_term_freq": _NO_LIMIT,
        },
    }


def _suggested(answer: dict[str, Any], name: str) -> list[tuple[str, int]]:
    return [
        (option["text"], option["freq"])
        for word in answer.get("suggest", {}).get(name, ())
        for option in word["options"]
    ]
