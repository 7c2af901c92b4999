"""What does the warm map say of a page, if that is still so?

A card is given out only if the shard's own stamp of the page is the card's: one row by its number, instead of
joins, history and versions. So a page that was visited since, planned anew or moved to another shard is asked of
the store, and the map never gives an older answer than the store would. What was found right stays right as long
as nobody has written in its shard.
"""

from __future__ import annotations

from threading import Lock

import msgspec

from levada.adapters.page_cards import PageCard, Stamps
from levada.assemble.folder import DataFolder
from levada.assemble.loading_notes import noted_loads
from levada.assemble.loading_urls import open_reader
from levada.assemble.warming import is_embedded, maps_of, open_shelf, shelf_names
from levada.bulk.encoding import encoded_key
from levada.bulk.generations import Manifest
from levada.bulk.ports import MapReader
from levada.errors import LevadaError
from levada.ports import Clock

__all__ = ["WarmPages"]

_LOOK_AGAIN = 2.0  # seconds, for a map that was not there
_KEPT = 20_000  # cards that were found right
_decode = msgspec.msgpack.Decoder(list[PageCard]).decode


class WarmPages:
    """Opened when it is first needed, and again after it failed. Threads may share it."""

    def __init__(self, folder: DataFolder, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._lock = Lock()
        self._reader: MapReader | None = None
        self._manifest: Manifest | None = None
        self._shards: dict[str, Stamps] = {}
        self._left: set[str] = set()  # shards that are no more
        self._marks: dict[str, int | None] = {}  # as last seen: an old one only makes us look again
        self._right: dict[str, tuple[PageCard, int]] = {}  # at which mark of its shard
        self._not_before = 0.0

    def card(self, url: str) -> PageCard | None:
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

    def _kept(self, url: str) -> PageCard | None:
        card, mark = self._right.get(url, (None, 0))
        if card is None:
            return None
        now = self._marks[card.shard] = self._shards[card.shard].mark()
        if now == mark:
            return card
        del self._right[url]
        return None

    def _looked_up(self, url: str) -> PageCard | None:
        value = self._found(encoded_key(url, "text"))
        if value is None:
            return None
        (card,) = _decode(value)
        shard = self._shard(card.shard)
        if shard is None or shard.stamp(card.id) != card.stamp:
            return None
        mark = self._marks[card.shard]
        if mark is not None:
            if len(self._right) >= _KEPT:
                self._right.clear()
            self._right[url] = (card, mark)
        return card

    def _shard(self, name: str) -> Stamps | None:
        """None if the collection has no such shard any more."""
        if name not in self._shards and name not in self._left:
            if name not in shelf_names(self._folder):
                self._left.add(name)
                return None
            shard = self._shards[name] = open_shelf(self._folder, name)
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
        noted = [each for each in noted_loads(maps_of(self._folder)).values() if is_embedded(each)]
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
