"""The index of a collection in OpenSearch: any number of processes read it, and each change log has a writer."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import msgspec

from levada.core.clock import SystemClock
from levada.core.errors import IndexAway, StoreError
from levada.core.records import Change
from levada.core.search_records import FacetName, Facets, Hits, Posting, Query
from levada.search.best_match import best_match
from levada.search.hits import TIMES, HitSources, HitSummary, PageFacts, facet_counts, hits_of, pages_wanted
from levada.search.opensearch.connection import Connection, options_of
from levada.search.opensearch.generations import Generation, Generations
from levada.search.opensearch.links import link_facts
from levada.search.opensearch.mapping import lines_of_forms, lines_of_page, shown
from levada.search.opensearch.queries import EVERY_PAGE, most_forms, query_of, term
from levada.search.opensearch.sites import SiteNumbers
from levada.search.opensearch.words import SearchedWords
from levada.search.query import one_word, parse_page_of_hits
from levada.search.ranking import reranked
from levada.search.stemming import LANGUAGES
from levada.search.tantivy.schema import KnownForms
from levada.search.terms import Ask
from levada.search.weights import WordWeights

log = logging.getLogger(__name__)

_PORTION = 4_000_000  # bytes of one bulk request
_IN_MEMORY = 16_000_000  # bytes of a batch; the rest of a larger one waits in a temporary file
_TOGETHER = 256  # changes whose sites and word forms are looked up at once
_MOST_VALUES = 1_000  # of a facet
_POSTINGS_AT_ONCE = 500
_GONE = 404
_BUSY = 429
_TRIES = 3  # of a bulk request that a busy server refuses
_LEGACY = 3  # before this version the server's BM25 has the factor k1 + 1 itself
_K1_AND_ONE = 2.2
_FACETS: Mapping[FacetName, str] = {"site": "site", "language": "language", "type": "type"}
_IN_SERVERS_WORDS = {"filter_path": "errors,items.*.error.type,items.*.error.reason"}
_json = msgspec.json.Encoder().encode


class OpenSearchIndex:
    """`levada.core.protocols.Index` in OpenSearch.

    `options` is the table `[plugins.opensearch]`. The index is that of the `collection` of this name; without one, of
    the folder `path`. `shard` is the number of the change log that this one follows. `text_of`, `page_facts` and
    `expect` give what hits show of stored pages, see `levada.search.hits.HitSources`.
    """

    def __init__(
        self,
        options: Mapping[str, Any] | None = None,
        *,
        collection: str = "",
        path: Path | str = "",
        shard: int = 0,
        writer: bool = False,
        text_of: Callable[[str], str] | None = None,
        page_facts: Callable[[str], PageFacts | None] | None = None,
        expect: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        self.connection = Connection(options_of(options))
        self.generations = Generations(self.connection, collection or _name_of(path))
        self._log = shard
        self._may_write = writer
        self._sources = HitSources(text_of, page_facts, expect)
        self._sites = SiteNumbers(self.connection, self.generations.base)
        self._forms = KnownForms()
        self._formed_in = ""  # the index that the known forms are in
        self._written: Generation | None = None  # whose position was asked for last: what follows it goes there

    # Writing

    def apply(self, changes: Iterable[Change]) -> int:
        if not self._may_write:
            raise StoreError(f"the index {self.generations.base} was opened for reading only")
        with SpooledTemporaryFile(max_size=_IN_MEMORY) as batch:
            made: Generation | None = None
            taken = position = 0
            try:
                for portion in _portions(changes):
                    made = made or self._opened()
                    self._render(portion, batch)
                    taken += len(portion)
                    position = max(position, portion[-1].seq)
                if made is None:
                    self.generations.swap_if_even(self._log)
                else:
                    batch.seek(0)
                    self._send(batch, made)
                    self._finish(made, position)
            except BaseException:
                self._forms.forget()
                self._written = None
                raise
        return taken

    def position(self) -> int:
        self._written = None
        made = self.generations.written()
        if made is None:
            return 0
        self.generations.check(made, writing=self._may_write)
        self._written = made
        return self.generations.position(made, self._log)

    def clear(self) -> None:
        if not self._may_write:
            raise StoreError(f"the index {self.generations.base} was opened for reading only")
        self._forms.forget()
        self._sites.forget()
        self._written = None
        self.generations.renew()

    def close(self) -> None:
        self.connection.close()

    def ask_for_rebuild(self) -> None:
        """Have the next writer build the index anew, beside this one: it holds words of deleted pages until then."""
        self.generations.ask_for_rebuild()

    def is_to_be_rebuilt(self) -> bool:
        searched, _ = self.generations.current()
        return searched is not None and searched.to_rebuild

    def _opened(self) -> Generation:
        made = self._written = self._written or self.generations.begin()
        if made.name != self._formed_in:
            self._forms.forget()
            self._sites.forget()
            self._formed_in = made.name
        return made

    def _render(self, portion: Sequence[Change], batch: IO[bytes]) -> None:
        documents = [document for change in portion if (document := change.document) is not None]
        numbers = self._sites.numbers({document.site: None for document in documents}.keys())
        texts: dict[str, list[str]] = {}
        for change in portion:
            site = change.document.site if change.document else ""
            batch.write(lines_of_page(change, numbers.get(site, 0)))
            document = shown(change)
            if document is not None and document.language in LANGUAGES:
                texts.setdefault(document.language, []).append(f"{document.title}\n{document.text}")
        for language, of_one in texts.items():
            terms = (term.split("\x1f") for term in self._forms.new_terms(language, of_one, None))
            batch.writelines(lines_of_forms((stem, spoken, form) for stem, spoken, form in terms))

    def _send(self, batch: IO[bytes], made: Generation) -> None:
        portion: list[bytes] = []
        size = 0
        while action := batch.readline():
            entry = batch.readline()
            portion += [action, entry]
            size += len(action) + len(entry)
            if size >= _PORTION:
                self._bulk(b"".join(portion), made)
                portion, size = [], 0
        if portion:
            self._bulk(b"".join(portion), made)

    def _bulk(self, lines: bytes, made: Generation, tries: int = _TRIES) -> None:
        params = {**_IN_SERVERS_WORDS, "require_alias": "true"}
        with self.connection.translated():
            answer = self.connection.client().bulk(body=lines, index=made.write, params=params)
        errors = [item["error"] for entry in answer.get("items", ()) for item in entry.values() if "error" in item]
        # A newer version is there, or the same form of a word: that is as good.
        errors = [each for each in errors if each["type"] != "version_conflict_engine_exception"]
        if errors and tries > 1 and all("rejected_execution" in each["type"] for each in errors):
            self._bulk(lines, made, tries - 1)  # the server answers when it has worked off what it took
        elif errors:
            raise self.connection.refusal(400, errors[0]["type"], " ".join(errors[0]["reason"].split())[:200])

    def _finish(self, made: Generation, position: int) -> None:
        """Show the batch, and then note that it is there."""
        with self.connection.translated():
            self.connection.client().indices.refresh(index=made.name)
        self.generations.put_position(made, self._log, position)
        self.generations.swap_if_even()

    # Reading

    def search(self, query: Query) -> Hits:
        ask = parse_page_of_hits(query)
        facts = SearchedWords(self._answers)
        facts.learn(ask)  # by one request, what would take several if it was asked for piece by piece
        by_time = query.sort == "changed"

        def run(ask: Ask, wanted: int) -> tuple[int, list[tuple[float, HitSummary]]]:
            return self._run(ask, wanted, facts, by_time=by_time)

        best_first = reranked(run, lambda summary: summary, lambda urls: link_facts(self._answers, urls))
        match = best_match(ask, query, facts, pages_wanted(query), best_first, lambda summary: summary.url)
        return hits_of(query, ask, match, self._sources, self._facets(match.ask, query, facts))

    def postings(self, word: str, limit: int) -> list[Posting]:
        folded = one_word(word)
        either = [term("text", folded), term("title", folded)]
        found: list[Posting] = []
        after: list[int] | None = None
        while len(found) < limit:
            asked: dict[str, Any] = {
                "size": min(limit - len(found), _POSTINGS_AT_ONCE),
                "query": {"bool": {"should": either, "filter": [EVERY_PAGE], "minimum_should_match": 1}},
                "sort": [{"site_number": "asc"}, {"nth": "asc"}, {"page": "asc"}],
                "explain": True,
                "track_total_hits": False,
            }
            if after is not None:
                asked["search_after"] = after
            (answer,) = self._answers([asked])
            hits = answer["hits"]["hits"]
            for hit in hits:
                site, nth, _ = after = hit["sort"]
                found.append(Posting(site, nth, _frequency(hit["_explanation"]), hit["_source"]["card"][0]))
            if len(hits) < asked["size"]:
                break
        return found

    def _run(
        self, ask: Ask, wanted: int, facts: SearchedWords, *, by_time: bool
    ) -> tuple[int, list[tuple[float, HitSummary]]]:
        # Without words there is nothing to rank by: the newest come first.
        order = "changed_at" if by_time or not ask.words() else "_score"
        asked = {
            "size": wanted,
            "query": self._query(ask, facts),
            "track_total_hits": True,
            "sort": [{order: "desc"}, {"page": "asc"}],
            "_source": ["card", "changed_at"],
        }
        (answer,) = self._answers([asked])
        hits = answer["hits"]
        found: dict[str, tuple[float, HitSummary]] = {}
        for hit in hits["hits"]:
            summary = _summary(hit["_source"])
            found.setdefault(summary.url, (hit["_score"] or 0.0, summary))
        twice = len(hits["hits"]) - len(found)  # pages that move to another shard, and are in both logs for a while
        return hits["total"]["value"] - twice, list(found.values())

    def _query(self, ask: Ask, facts: SearchedWords) -> dict[str, Any]:
        facts.learn(ask)
        own = facts.statistics()
        weights = WordWeights([own], own, facts.forms(ask), most_forms(ask))
        return query_of(ask, weights, 1.0 if self.connection.major < _LEGACY else _K1_AND_ONE)

    def _facets(self, ask: Ask, query: Query, facts: SearchedWords) -> Facets:
        if not query.facets:
            return {}
        now = SystemClock().now() if query.now is None else query.now
        since = {name: {"range": {"changed_at": {"gte": now - seconds}}} for name, seconds in TIMES}
        aggregations = {
            name: {"filters": {"filters": since}}
            if name == "time"
            else {"terms": {"field": _FACETS[name], "size": _MOST_VALUES}}
            for name in query.facets
        }
        asked = {"size": 0, "query": self._query(ask, facts), "aggs": aggregations, "track_total_hits": False}
        (answer,) = self._answers([asked])
        found = answer.get("aggregations", {})
        return {name: facet_counts(name, _counted(found.get(name, {}).get("buckets", []))) for name in query.facets}

    def _answers(self, asked: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The answers to search requests, sent as one; each as of an empty index where there is none."""
        # All shards count the words of a page by the same numbers: with one shard they do so by themselves.
        kind = "query_then_fetch" if self.connection.options.shards == 1 else "dfs_query_then_fetch"
        head = _json({"index": self.generations.base, "search_type": kind})
        lines = b"".join(b"%b\n%b\n" % (head, _json(each)) for each in asked)
        with self.connection.translated():
            answer = self.connection.client().msearch(body=lines)
        return [self._checked(each) for each in answer["responses"]]

    def _checked(self, answer: dict[str, Any]) -> dict[str, Any]:
        if (error := answer.get("error")) is not None:
            if answer.get("status") == _GONE and error.get("type") == "index_not_found_exception":
                return {"hits": {"total": {"value": 0}, "hits": []}}
            causes = error.get("root_cause") or [error]
            raise self.connection.refusal(answer.get("status", 500), error["type"], str(causes[0].get("reason")))
        shards = answer["_shards"]
        if shards["failed"]:
            raise IndexAway(
                f"{shards['failed']} of {shards['total']} parts of the index {self.generations.base} in OpenSearch at "
                f"{self.connection.place} cannot be searched: bring its nodes back"
            )
        return answer


def _name_of(path: Path | str) -> str:
    """A name for the index of a folder that is no collection."""
    from hashlib import sha256

    return sha256(str(Path(path).absolute()).encode()).hexdigest()[:16]


def _portions(changes: Iterable[Change]) -> Iterator[list[Change]]:
    portion: list[Change] = []
    for change in changes:
        portion.append(change)
        if len(portion) >= _TOGETHER:
            yield portion
            portion = []
    if portion:
        yield portion


def _summary(source: Mapping[str, Any]) -> HitSummary:
    url, site, title, language, headings = source["card"]
    return HitSummary(url, site, title, language, source["changed_at"], headings)


def _counted(buckets: Any) -> Counter[str]:
    if isinstance(buckets, Mapping):
        return Counter({name: bucket["doc_count"] for name, bucket in buckets.items()})
    return Counter({str(bucket["key"]): bucket["doc_count"] for bucket in buckets})


def _frequency(explanation: Mapping[str, Any]) -> int:
    """How often the words occur in the page, which the server shows where it explains a score."""
    if str(explanation["description"]).startswith("freq, occurrences"):
        return int(explanation["value"])
    return sum(map(_frequency, explanation.get("details", ())))
