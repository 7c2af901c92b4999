"""The counts of a collection: opened, caught up, or followed by a process beside the crawl."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from levada.adapters.calm_memory import calm_memory
from levada.adapters.memory_trends import ForgottenTrends
from levada.adapters.sqlite_trends import SqliteTrends
from levada.assemble.folder import DataFolder
from levada.assemble.following import Follower, begin_following, follow
from levada.assemble.reading import Collection, open_collection
from levada.assemble.stores import collection_folder, open_shard_reader, shard_folders
from levada.errors import LevadaError, NotFound, StoreDamaged
from levada.flow.balance import CountReport, MethodLoad
from levada.flow.count import CountStage
from levada.flow.feed import Feed
from levada.flow.settings import TrendsSettings
from levada.grouping.keyed_hash import KeyedHash
from levada.grouping.keys import Hasher
from levada.grouping.methods import grouping_named
from levada.grouping.routing import Routing
from levada.ports import Documents, Faults, Trends

if TYPE_CHECKING:
    from levada.adapters.sharded.shard import Shard

__all__ = ["CountChild", "count_up", "latest_change", "main", "measure_balance", "open_trends"]

_GATHER_SECONDS = 3.0
_MOST_SHARDS = 1_024


class CountChild(Follower):
    """The crawl's end of it: `wake` costs a byte, `finish` waits until everything is counted."""

    def __init__(self, folder: DataFolder) -> None:
        super().__init__("levada.assemble.counting", str(folder.path))


class _Hashes:
    """Ours is under a secret; the others are what anybody would use."""

    def __init__(self, secret: bytes) -> None:
        self.first: Hasher = KeyedHash(b"first")
        self.second: Hasher = KeyedHash(b"second")
        self.keyed: Hasher = KeyedHash(secret)


@contextmanager
def open_trends(
    folder: DataFolder, on_progress: Callable[[int], None] = lambda seq: None
) -> Iterator[tuple[Collection, Trends, CountReport]]:
    """The stored pages and their counts, caught up if we may write there; and how the latest counting went."""
    calm_memory()
    with open_collection(folder) as collection, ExitStack() as closing:
        shards = [
            _shard_trends(shard, collection.settings.trends, on_progress, closing)
            for shard in shard_folders(folder)
        ]
        report = max(map(_kept_report, shards), key=lambda report: report.records)
        yield collection, shards[0] if len(shards) == 1 else _together(shards), report


def _shard_trends(
    shard: DataFolder, settings: TrendsSettings, on_progress: Callable[[int], None], closing: ExitStack
) -> SqliteTrends:
    if os.access(shard.path, os.W_OK):
        store = open_shard_reader(shard)
        closing.callback(store.close)
        trends, _ = count_up(shard.trends, store, settings, on_progress)
    else:
        trends = _read_only(shard)
    closing.callback(trends.close)
    return trends


def _together(shards: Sequence[SqliteTrends]) -> Trends:
    from levada.adapters.sharded_trends import ShardedTrends

    return ShardedTrends(shards)


def latest_change(collection: Collection) -> float:
    """When the newest stored version was met: trends end there, however long ago the crawl ended."""
    store = collection.store
    feed = Feed(getattr(store, "logs", None) or [store])
    last = tuple(max(0, step - 1) for step in feed.newest())  # not by the log that indexes follow: pages move there
    return max((change.at for _, change in feed.read(last, _MOST_SHARDS).changes), default=collection.clock.now())


def count_up(
    path: Path,
    store: Shard,
    settings: TrendsSettings,
    on_progress: Callable[[int], None] = lambda seq: None,
    faults: Faults | None = None,
) -> tuple[SqliteTrends, CountStage]:
    """The counts, up to date, and who counts on; counted anew if they are damaged, or of another collection."""
    trends = _opened(path, store, faults)
    try:
        return trends, _counted_on(trends, _stage(store, trends, settings), on_progress)
    except StoreDamaged:
        trends.close()
        _delete(path)
    except BaseException:
        trends.close()
        raise
    trends = SqliteTrends(path, faults=faults)
    try:
        return trends, _counted_on(trends, _stage(store, trends, settings), on_progress)
    except BaseException:
        trends.close()
        raise


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


def _counted_on(
    trends: SqliteTrends, stage: CountStage, on_progress: Callable[[int], None] = lambda seq: None
) -> CountStage:
    """The stage, once it has counted whatever was new and said how it went."""
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
    """How evenly the latest counting was shared out, without the terms."""
    load = next(iter(_kept_report(trends).balance), None)
    return None if load is None else msgspec.structs.replace(load, hot=())


def measure_balance(
    collection: Collection,
    shadows: Sequence[str],
    on_progress: Callable[[int], None] = lambda seq: None,
    latest: int | None = None,
) -> CountReport:
    """The stream once more, from its beginning or the latest changes of it, through the grouping of the settings
    and these others."""
    start = 0 if latest is None else max(0, collection.store.newest_seq() - latest)
    stage = _stage(collection.store, ForgottenTrends(start), collection.settings.trends, shadows)
    return stage.catch_up(on_progress)


def _stage(
    documents: Documents, trends: Trends, settings: TrendsSettings, shadows: Sequence[str] = ()
) -> CountStage:
    hashes = _Hashes(secrets.token_bytes(16))

    def routing(method: str) -> Routing:
        return Routing(lambda workers: grouping_named(method, workers, hashes), range(settings.workers))

    return CountStage(documents, trends, settings, routing, shadows)


def _read_only(folder: DataFolder) -> SqliteTrends:
    if not folder.trends.exists():
        raise NotFound(f"nothing was counted in {folder.path} yet, and it may not be written: count as its owner")
    return SqliteTrends(folder.trends, read_only=True)


def _delete(path: Path) -> None:
    for part in path.parent.glob(f"{path.name}*"):
        part.unlink()


def main(arguments: list[str]) -> None:
    begin_following()
    folder = DataFolder(Path(arguments[0]))
    store = open_shard_reader(folder)
    try:
        trends, stage = count_up(folder.trends, store, collection_folder(folder).settings().trends)
        try:
            follow(lambda said: _counted_on(trends, stage, said), _GATHER_SECONDS, lambda: _balance(trends))
        finally:
            trends.close()
    finally:
        store.close()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except LevadaError as error:
        sys.exit(str(error))
