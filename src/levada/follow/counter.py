"""Term counts of a collection: opened, caught up, or followed by a process beside the crawl.

The count step counts what the change log holds and the counts do not, exactly once. Each round takes some changed
documents, tells which terms each gained and lost, shares these records out over the count workers by a grouping,
merges what they hold at the barrier, and commits the counts with the position. After a crash, the round that was
under way is simply counted again.

Every version that the store still holds is a step, in order, so that counting late gives what counting at once
would have given. Only versions after the first are news. A page that leaves the collection removes its terms, and
one that comes back adds them: neither is news. Nor is a page that arrives from another shard.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from levada.core.balance import CountReport, LoadMeter, MethodLoad
from levada.core.errors import NotFound, StoreDamaged
from levada.core.folder import DataFolder
from levada.core.hashing import term_number
from levada.core.processes import tune_allocator
from levada.core.protocols import Documents, Faults, Trends
from levada.core.records import Change, Document
from levada.core.search_records import (
    EVERY,
    CountedRound,
    FrequencyKey,
    NewsKey,
    PageTerms,
    packed_terms,
    unpacked_terms,
)
from levada.core.settings import DAY, Settings, TrendsSettings
from levada.follow.epochs import common_step, epochs_of
from levada.follow.feed import Feed
from levada.follow.process import Follower, begin_following, follow, run_child
from levada.grouping.counting import TwoPhaseCount
from levada.grouping.keys import Hasher, KeyedHash
from levada.grouping.methods import grouping_named
from levada.grouping.routing import Routing
from levada.pages.folding import is_indexed, words
from levada.search.term_counts.sharded import ForgottenTrends, ShardedTrends
from levada.search.term_counts.sqlite import SqliteTrends
from levada.store.opening import collection_folder, open_shard_reader, shard_folders
from levada.store.reading import OpenedCollection, open_collection

if TYPE_CHECKING:
    from levada.store.base import Shard

TermKey: TypeAlias = FrequencyKey | NewsKey
_MOST_REMEMBERED = 1 << 17  # words whose number is kept: pages repeat them
_LONGEST_REMEMBERED = 40


class Shown(NamedTuple):
    """The counted terms of a version."""

    version: int
    language: str
    terms: set[int]


class TermStep(NamedTuple):
    """One shown version (None: none) and the next; `at` is the time of the change, None if it is not news."""

    before: Shown | None
    after: Shown | None
    at: float | None


class _Numbers(dict[str, int]):
    def __missing__(self, word: str) -> int:
        number = term_number(word) if is_indexed(word) else 0
        if len(word) <= _LONGEST_REMEMBERED:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[word] = number
        return number


class TermReader:
    """The terms of documents, at most `most` of each: those with the smallest numbers, the same in all versions."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._numbers = _Numbers()
        self.words: dict[int, str] = {}

    def shown(self, document: Document) -> Shown:
        """The term numbers of a document; its words are added to `words`."""
        numbers = self._numbers
        met = {numbers[word]: word for word in set(words(f"{document.title}\n{document.text}"))}
        met.pop(0, None)
        if len(met) > self._most:
            met = {number: met[number] for number in sorted(met)[: self._most]}
        self.words |= met
        return Shown(document.version, document.language, set(met))

    def remembered(self) -> dict[int, str]:
        """Recently seen words, by number."""
        return {number: word for word, number in self._numbers.items()}


def page_steps(
    change: Change, counted: PageTerms | None, documents: Documents, reader: TermReader
) -> Iterator[TermStep]:
    before = None
    if counted is not None and counted.terms is not None:
        before = Shown(counted.version, counted.language, unpacked_terms(counted.terms))
    if change.document is None:
        if before is not None:
            yield TermStep(before, None, None)
        return
    known = counted.version if counted else 0
    if before is None and change.arrived > known:
        known = change.arrived  # the shard that it came from has told what was new until then
        if (arrived := _held(known, change.document, documents)) is not None:
            before = reader.shown(arrived)
            yield TermStep(None, before, None)
    for document in _versions_since(known, change.document, documents):
        after = reader.shown(document)
        yield TermStep(before, after, None if before is None else document.fetched_at)
        before = after
    if before is None:  # it is back as it was
        yield TermStep(None, reader.shown(change.document), None)


def terms_after(step: TermStep) -> PageTerms:
    """The page's terms to keep after its last step."""
    if step.after is not None:
        return PageTerms(step.after.version, step.after.language, packed_terms(step.after.terms))
    # The version stays, so that a page which comes back does not tell its old news again.
    return PageTerms(step.before.version if step.before else 0, "", None)


def _held(version: int, current: Document, documents: Documents) -> Document | None:
    """The version, if it is still stored and shown."""
    if version == current.version:
        return current
    document = documents.document(current.url, version)
    return document if document is not None and document.searchable else None


def _versions_since(known: int, current: Document, documents: Documents) -> Iterator[Document]:
    """The versions that are still stored and shown, oldest first."""
    if current.version > known + 1:
        for version in sorted(info.version for info in documents.versions(current.url)):
            if known < version < current.version and (document := _held(version, current, documents)) is not None:
                yield document
    if current.version > known:
        yield current


class Draft:
    """A round under construction. `terms` and `counts` are its records: the key of each, and what it adds."""

    def __init__(self, after: int, window: float, words: Mapping[int, str]) -> None:
        self.after = self.position = after
        self.changes = 0
        self.newest = 0.0  # when the latest version was met
        self.terms: list[int] = []
        self.counts: list[tuple[TermKey, int]] = []
        self._window = window
        self._words = words
        self._pages: dict[int, PageTerms] = {}
        # How many documents and changes there are in all is not shared out: it would be one key for everything.
        self._documents: Counter[FrequencyKey] = Counter()
        self._news: Counter[NewsKey] = Counter()

    def take(self, change: Change, steps: Iterable[TermStep]) -> None:
        """Turn the steps of a change into records, and move the position."""
        for step in steps:
            self._frequencies(step.before, step.after)
            if step.at is not None and step.before and step.after:
                self._tell(step.at, change.site, step.after, step.after.terms - step.before.terms)
            self._pages[change.page_id] = terms_after(step)
        if change.document is not None:
            self.newest = max(self.newest, change.document.fetched_at)
        self.position = change.seq
        self.changes += 1

    def counted(self, merged: Mapping[TermKey, int]) -> CountedRound:
        """The round to commit, once the counts of the workers are merged."""
        frequencies, news = dict(self._documents), dict(self._news)
        for key, amount in merged.items():
            if len(key) == 2:
                frequencies[key] = amount
            else:
                news[key] = amount
        used = {key[-1]: self._words[key[-1]] for key in merged if key[-1] in self._words}
        return CountedRound(self.after, self.position, frequencies, news, used, self._pages)

    def _frequencies(self, before: Shown | None, after: Shown | None) -> None:
        if before and after and before.language == after.language:
            self._add(after.language, after.terms - before.terms, 1)
            self._add(before.language, before.terms - after.terms, -1)
            return
        for shown, amount in ((before, -1), (after, 1)):
            if shown:
                self._add(shown.language, shown.terms, amount)
                self._documents[shown.language, EVERY] += amount

    def _add(self, language: str, terms: set[int], amount: int) -> None:
        self.terms += terms
        self.counts += [((language, term), amount) for term in terms]

    def _tell(self, at: float, site: str, after: Shown, added: set[int]) -> None:
        window = int(at // self._window * self._window)
        told = [term for term in added if _tells(self._words[term])]
        self.terms += told
        self.counts += [((window, site, after.language, term), 1) for term in told]
        self._news[window, site, after.language, EVERY] += 1


def _tells(word: str) -> bool:
    """Whether a term is worth counting: no numbers, no single ASCII letters."""
    return not word.isnumeric() and (len(word) > 1 or not word.isascii())


MakeRouting = Callable[[str], Routing]
_MOST_RECORDS = 500_000  # in a round: a few hostile pages must not fill the memory
_BATCH_FROM = 300_000  # records after which deciding by the array has earned the time to load it
_RARE_AFTER = 2 * DAY
_HOT = 10


class CountStage:
    """Counts rounds. `routing` makes a sender for a method; `shadows` are methods whose loads are measured too."""

    def __init__(
        self,
        documents: Documents,
        trends: Trends,
        settings: TrendsSettings,
        routing: MakeRouting,
        shadows: Sequence[str] = (),
    ) -> None:
        self._documents = documents
        self._trends = trends
        self._settings = settings
        self._reader = TermReader(settings.page_terms)
        self._count: TwoPhaseCount[TermKey] = TwoPhaseCount(routing(settings.grouping))
        self._meter = LoadMeter(settings.grouping, settings.workers)
        self._shadows = [(routing(name), LoadMeter(name, settings.workers)) for name in shadows]
        self._counted = CountReport()

    def catch_up(self, on_progress: Callable[[int], None] = lambda seq: None) -> CountReport:
        """Count what is new, and forget what is too old."""
        newest = 0.0
        while draft := self._next_round():
            newest = max(newest, draft.newest)
            on_progress(draft.position)
        if newest:
            self._trends.tidy(newest - self._settings.keep, newest - _RARE_AFTER, self._settings.rare)
        return self.report()

    def report(self) -> CountReport:
        remembered = self._reader.remembered()
        meters = [self._meter, *(meter for _, meter in self._shadows)]
        balance = tuple(meter.load(remembered, _HOT) for meter in meters)
        return replace(self._counted, position=self._trends.position(), balance=balance)

    def _next_round(self) -> Draft | None:
        """The committed round; None if there is nothing to count. If another process was faster, its own counts."""
        after = self._trends.position()
        changes = self._documents.changes(after, self._settings.batch)
        if not changes:
            return None
        counted = self._trends.counted([change.page_id for change in changes])
        self._reader.words = {}
        draft = Draft(after, self._settings.window, self._reader.words)
        for change in changes:
            draft.take(change, page_steps(change, counted.get(change.page_id), self._documents, self._reader))
            if len(draft.terms) >= _MOST_RECORDS:
                break
        self._commit(draft)
        return draft

    def _commit(self, draft: Draft) -> None:
        batch = self._counted.records >= _BATCH_FROM and find_spec("numba") is not None
        chosen = self._count.send(draft.terms, draft.counts, batch=batch)
        held, memory = self._count.held, self._count.held_bytes
        merged = self._count.barrier()
        if not self._trends.commit(draft.counted(merged)):
            return
        self._meter.observe(draft.terms, chosen)
        for routing, meter in self._shadows:
            meter.observe(draft.terms, routing.route(draft.terms, batch=batch))
        counted = self._counted
        self._counted = replace(
            counted,
            changes=counted.changes + draft.changes,
            records=counted.records + len(chosen),
            rounds=counted.rounds + 1,
            terms=counted.terms + len(self._reader.words),
            most_held=max(counted.most_held, held),
            memory_bytes=max(counted.memory_bytes, memory),
        )


_GATHER_SECONDS = 3.0
_MOST_SHARDS = 1_024


class CountChild(Follower):
    """The crawl's side: `wake` costs one byte, `finish` waits until everything is counted."""

    def __init__(self, folder: DataFolder) -> None:
        super().__init__("levada.follow.counter", str(folder.path))


class _Hashes:
    """Hash functions: the first is keyed by a secret, the others are public."""

    def __init__(self, secret: bytes) -> None:
        self.first: Hasher = KeyedHash(b"first")
        self.second: Hasher = KeyedHash(b"second")
        self.keyed: Hasher = KeyedHash(secret)


@contextmanager
def open_trends(
    folder: DataFolder, on_progress: Callable[[int], None] = lambda seq: None
) -> Iterator[tuple[OpenedCollection, Trends, CountReport]]:
    """The stored pages, their counts (caught up if the folder can be written), and the latest report."""
    tune_allocator()
    with open_collection(folder) as collection, ExitStack() as opened:
        shards = [_shard_trends(shard, collection.settings, on_progress, opened) for shard in shard_folders(folder)]
        report = max(map(_kept_report, shards), key=lambda report: report.records)
        yield collection, shards[0] if len(shards) == 1 else ShardedTrends(shards), report


def _shard_trends(
    shard: DataFolder, settings: Settings, on_progress: Callable[[int], None], opened: ExitStack
) -> SqliteTrends:
    if os.access(shard.path, os.W_OK):
        store = open_shard_reader(shard)
        opened.callback(store.close)
        trends, _ = count_up(shard.trends, store, settings.trends, on_progress, table=_table(settings))
    elif not shard.trends.exists():
        raise NotFound(f"nothing was counted in {shard.path} yet, and it may not be written: count as its owner")
    else:
        trends = SqliteTrends(shard.trends, read_only=True)
    opened.callback(trends.close)
    return trends


def latest_change(collection: OpenedCollection) -> float:
    """Time of the newest stored version. Trends end there, not when the command runs."""
    store = collection.store
    feed = Feed(store.logs)
    last = tuple(max(0, step - 1) for step in feed.newest())  # not by the log that indexes follow: pages move there
    return max((change.at for _, change in feed.read(last, _MOST_SHARDS).changes), default=collection.clock.now())


def count_up(
    path: Path,
    store: Shard,
    settings: TrendsSettings,
    on_progress: Callable[[int], None] = lambda seq: None,
    faults: Faults | None = None,
    table: Mapping[str, Any] | None = None,
) -> tuple[SqliteTrends, CountStage]:
    """The counts, up to date, and their counter. Counts that are damaged or of another collection are made anew."""

    def counted(trends: SqliteTrends) -> tuple[SqliteTrends, CountStage]:
        try:
            return trends, _counted_on(trends, _stage(store, trends, settings, table=table), on_progress)
        except BaseException:
            trends.close()
            raise

    try:
        return counted(_opened(path, store, faults))
    except StoreDamaged:
        _delete(path)
        return counted(SqliteTrends(path, faults=faults))


def _opened(path: Path, store: Shard, faults: Faults | None) -> SqliteTrends:
    try:
        trends = SqliteTrends(path, faults=faults)
        # In this order: another process may count on in between, but never past the newest change.
        position = trends.position()
        if position <= store.newest_seq() and not _has_lost(path, store, position):
            return trends
        trends.close()
    except StoreDamaged:
        pass
    _delete(path)
    return SqliteTrends(path, faults=faults)


def _counted_on(trends: SqliteTrends, stage: CountStage, on_progress: Callable[[int], None]) -> CountStage:
    """The stage, after it has counted what is new and reported."""
    report = stage.catch_up(on_progress)
    if report.changes:
        trends.keep_report(msgspec.json.encode(report))
    return stage


def _kept_report(trends: SqliteTrends) -> CountReport:
    try:
        return msgspec.json.decode(trends.report() or b"{}", type=CountReport)
    except msgspec.MsgspecError:
        return CountReport()  # of another Levada


def _balance(trends: SqliteTrends) -> MethodLoad | None:
    """Load balance of the latest counting, without the terms."""
    load = next(iter(_kept_report(trends).balance), None)
    return None if load is None else replace(load, hot=())


def measure_balance(
    collection: OpenedCollection,
    shadows: Sequence[str],
    on_progress: Callable[[int], None] = lambda seq: None,
    latest: int | None = None,
) -> CountReport:
    """The stream once more, from its beginning or the latest changes of it, through the grouping of the settings
    and these others."""
    start = 0 if latest is None else max(0, collection.store.newest_seq() - latest)
    stage = _stage(
        collection.store, ForgottenTrends(start), collection.settings.trends, shadows, _table(collection.settings)
    )
    return stage.catch_up(on_progress)


def _stage(
    documents: Documents,
    trends: Trends,
    settings: TrendsSettings,
    shadows: Sequence[str] = (),
    table: Mapping[str, Any] | None = None,
) -> CountStage:
    hashes = _Hashes(secrets.token_bytes(16))

    def routing(method: str) -> Routing:
        own = table if method == settings.grouping else None
        return Routing(lambda workers: grouping_named(method, workers, hashes, options=own), range(settings.workers))

    return CountStage(documents, trends, settings, routing, shadows)


def _table(settings: Settings) -> Mapping[str, Any] | None:
    """The options of the grouping, if it is a plug-in that has some."""
    return settings.plugins.get(settings.trends.grouping)


def _has_lost(path: Path, store: Shard, position: int) -> bool:
    """Whether changes were counted that the store has lost since. Its epoch is kept beside the counts."""
    epochs = epochs_of(store)
    if not epochs:
        return False
    kept, newest = path.with_name(f"{path.name}-epoch"), epochs[-1].name
    known = kept.read_text(encoding="ascii") if kept.exists() else newest
    common = common_step(known, epochs)
    lost = known != newest and (common is None or position > common)
    if not lost or not position:
        kept.write_text(newest, encoding="ascii")
        return False
    return True


def _delete(path: Path) -> None:
    for part in path.parent.glob(f"{path.name}*"):
        part.unlink()


def main(arguments: list[str]) -> None:
    begin_following()
    folder = DataFolder(Path(arguments[0]))
    with closing(open_shard_reader(folder)) as store:
        settings = collection_folder(folder).settings()
        trends, stage = count_up(folder.trends, store, settings.trends, table=_table(settings))
        with closing(trends):
            follow(lambda said: _counted_on(trends, stage, said), _GATHER_SECONDS, lambda: _balance(trends))


if __name__ == "__main__":
    run_child(main)
