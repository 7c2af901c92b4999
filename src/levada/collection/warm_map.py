"""Warm map: page summaries from the shards in a map that answers in microseconds.

A card is given out only if the shard's own stamp of the page is the card's: one row by its number, instead of
joins, history and versions. So a page that was visited since, planned anew or moved to another shard is asked of
the store, and the map never gives an older answer than the store would. What was found right stays right as long
as nobody has written in its shard.

`levada warm` is a load like any other, from the collection's own shards: the same tasks, generations and reader.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Lock

import msgspec

from levada.bulk.engines import open_reader, redacted
from levada.bulk.entries import encoded_key
from levada.bulk.loads import LoadRequest, load, note_load, noted_loads
from levada.bulk.protocols import MapReader
from levada.bulk.sources.collection import (
    KEY,
    SCHEME,
    TABLE,
    VALUE,
    WATERMARK,
    layout_of,
    open_page_summaries,
    page_summary_names,
    since_in,
)
from levada.bulk.tasks import LoadStatus, Manifest
from levada.core.errors import LevadaError
from levada.core.folder import DataFolder
from levada.core.protocols import Clock
from levada.store.sql.reading import PageSummaries
from levada.store.summaries import PageSummary

_LOOK_AGAIN = 2.0  # seconds, for a map that was not there
_KEPT = 20_000  # cards that were found right
_decode = msgspec.msgpack.Decoder(list[PageSummary]).decode


class WarmPages:
    """Opened when it is first needed, and again after it failed. Threads may share it."""

    def __init__(self, folder: DataFolder, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._lock = Lock()
        self._reader: MapReader | None = None
        self._manifest: Manifest | None = None
        self._shards: dict[str, PageSummaries] = {}
        self._left: set[str] = set()  # shards that are no more
        self._marks: dict[str, int | None] = {}  # as last seen: an old one only makes us look again
        self._right: dict[str, tuple[PageSummary, int]] = {}  # at which mark of its shard
        self._not_before = 0.0

    def summary(self, url: str) -> PageSummary | None:
        """None where the store must be asked."""
        with self._lock:
            try:
                return self._kept(url) or self._looked_up(url)
            except (LevadaError, msgspec.MsgspecError):
                self._give_up()
                return None

    def close(self) -> None:
        with self._lock:
            self._give_up()

    def _kept(self, url: str) -> PageSummary | None:
        summary, mark = self._right.get(url, (None, 0))
        if summary is None:
            return None
        now = self._marks[summary.shard] = self._shards[summary.shard].mark()
        if now == mark:
            return summary
        del self._right[url]
        return None

    def _looked_up(self, url: str) -> PageSummary | None:
        value = self._found(encoded_key(url, "text"))
        if value is None:
            return None
        (summary,) = _decode(value)
        shard = self._shard(summary.shard)
        if shard is None or shard.summary_version(summary.id) != summary.summary_version:
            return None
        mark = self._marks[summary.shard]
        if mark is not None:
            if len(self._right) >= _KEPT:
                self._right.clear()
            self._right[url] = (summary, mark)
        return summary

    def _shard(self, name: str) -> PageSummaries | None:
        """None if the collection has no such shard any more."""
        if name not in self._shards and name not in self._left:
            if name not in page_summary_names(self._folder):
                self._left.add(name)
                return None
            shard = self._shards[name] = open_page_summaries(self._folder, name)
            self._marks[name] = shard.mark()
        return self._shards.get(name)

    def _found(self, key: bytes) -> bytes | None:
        if self._manifest is None or self._reader is None:
            self._open()
        while self._manifest is not None and self._reader is not None:
            (value,), current = self._reader.get(self._manifest, [key])
            if current:
                return value
            self._manifest = self._reader.manifest(self._manifest.plan.name)
            self._left.clear()
        return None

    def _open(self) -> None:
        if self._clock.monotonic() < self._not_before:
            return
        self._not_before = self._clock.monotonic() + _LOOK_AGAIN
        noted = [
            each
            for each in noted_loads(maps_of(self._folder)).values()
            # A map on a server is for others: to ask it and the store takes longer than to ask the store.
            if each.source.startswith(SCHEME) and "://" not in each.target
        ]
        if noted:
            self._reader = self._reader or open_reader(noted[-1].target)
            self._manifest = self._reader.manifest(noted[-1].name)

    def _give_up(self) -> None:
        """What is asked for next is looked for anew."""
        self._not_before = self._clock.monotonic() + _LOOK_AGAIN
        for shard in self._shards.values():
            shard.close()
        self._shards.clear()
        self._marks.clear()
        self._left.clear()
        self._right.clear()
        self._manifest = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None


MAPS = Path("levada-maps")  # where `levada load` notes its loads, unless told otherwise
CARDS = "pages"  # the map's name, unless another is given
_TASK_PAGES = 10_000
_MEMORY = 16_000_000  # a card takes about four times what a load counts for a row
_KEEP_OLD = 5.0  # seconds, for readers on other machines


class WarmMapResult(msgspec.Struct, frozen=True):
    name: str
    target: str
    generation: int
    pages: int  # read this time
    whole: bool  # False: only what was visited since the last time
    layers: int
    seconds: float
    pages_per_second: float


def maps_of(folder: DataFolder) -> Path:
    """Where the maps of a collection lie that were not put elsewhere, and where its loads are noted."""
    return folder.path / "maps"


def warm_request(folder: DataFolder, target: str = "", name: str = CARDS, *, replace: bool = False) -> LoadRequest:
    return LoadRequest(
        f"{SCHEME}{folder.path.resolve()}",
        TABLE,
        KEY,
        VALUE,
        name,
        target or str(maps_of(folder).resolve()),
        watermark=WATERMARK,
        task_rows=_TASK_PAGES,
        memory=_MEMORY,
        # An embedded map checks the pointer in the same instant: nobody needs the old one for a while.
        keep_old=_KEEP_OLD if "://" in target else 0.0,
        replace=replace or not target,  # the folder may have moved, and its own map is nobody else's
    )


def warm(folder: DataFolder, request: LoadRequest, watch: Callable[[LoadStatus], None]) -> WarmMapResult:
    """Fill the map of the request; whatever goes wrong is noted where `levada load resume` looks."""
    folder.must_exist()
    noted: list[bool] = []

    def watched(status: LoadStatus) -> None:
        if not noted:
            noted.append(True)
            note_load(maps_of(folder), request)
        watch(status)

    loaded = load(request, watched)
    with closing(open_reader(request.target)) as reader:
        manifest = reader.manifest(request.name)
    if manifest is None:
        raise LevadaError(f"map {request.name} was removed while it was filled: warm it again")
    record, pages = loaded.status.record, loaded.status.done.rows
    seconds = max(1e-6, (record.ended_at or loaded.status.now) - record.started_at)
    return WarmMapResult(
        request.name,
        redacted(request.target),
        record.generation,
        pages,
        since_in(record.since, layout_of(folder)) is None,
        len(manifest.layers),
        seconds,
        pages / seconds,
    )
