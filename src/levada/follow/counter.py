"""Term counts of a collection: opened, caught up, or followed by a process beside the crawl."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from levada.core.balance import CountReport, MethodLoad
from levada.core.errors import NotFound, StoreDamaged
from levada.core.folder import DataFolder
from levada.core.processes import tune_allocator
from levada.core.protocols import Documents, Faults, Trends
from levada.core.settings import Settings, TrendsSettings
from levada.follow.count import CountStage
from levada.follow.feed import Feed
from levada.follow.process import Follower, begin_following, follow, run_child
from levada.grouping.keys import Hasher, KeyedHash
from levada.grouping.methods import grouping_named
from levada.grouping.routing import Routing
from levada.search.term_counts.memory import ForgottenTrends
from levada.search.term_counts.sqlite import SqliteTrends
from levada.store.opening import collection_folder, open_shard_reader, shard_folders
from levada.store.reading import OpenedCollection, open_collection

if TYPE_CHECKING:
    from levada.store.base import Shard

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
        together: Trends = shards[0]
        if len(shards) > 1:
            from levada.search.term_counts.sharded import ShardedTrends

            together = ShardedTrends(shards)
        yield collection, together, report


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
        if position <= store.newest_seq():
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
    return None if load is None else msgspec.structs.replace(load, hot=())


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
