"""Bodies outside of the database: moving them, finding those that are lost, and deleting what no version names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import cast

import msgspec

from levada.collection.storage.backup import OnProgress
from levada.collection.storage.move import alone
from levada.core.clock import SystemClock
from levada.core.errors import StoreDamaged, StoreError, UsageError
from levada.core.folder import DataFolder, nobody_moves
from levada.core.protocols import Faults
from levada.core.settings import StoreSettings, check_bodies
from levada.store.base import Capability, Shard, Store, StoreLimits, WithBodies
from levada.store.bodies import Bodies, Reference
from levada.store.bodies.opening import (
    HeldPlace,
    held_place,
    keep_place,
    make_bodies,
    open_place,
    reading_bodies,
    same_place,
    take_place,
)
from levada.store.bodies.places import DRAFT, MARKER, Listed
from levada.store.bodies.references import keyed, references_in
from levada.store.faults import NoFaults
from levada.store.opening import open_reading_store, open_store, plan_of

ROWS = "rows"
_PAGES_AT_ONCE = 64
_TOLD = 200  # lost bodies that are listed, at most


class BodiesMoved(msgspec.Struct, frozen=True):
    """Where texts and bodies lie now."""

    place: str  # `rows`, or an address
    moved: int  # versions
    kept: str  # where the old copies lie; "" if there are none


class Swept(msgspec.Struct, frozen=True):
    """What a sweep found."""

    place: str
    objects: int
    deleted: int
    bytes: int  # of those that were deleted
    waiting: int  # that no version names, and are too young to be deleted


class LostBody(msgspec.Struct, frozen=True):
    """A version whose body cannot be read."""

    url: str
    version: int
    trouble: str


def move_bodies(
    folder: DataFolder,
    target: str,
    *,
    remove: bool = False,
    on_progress: OnProgress = lambda what, done, total: None,
    faults: Faults | None = None,
) -> BodiesMoved:
    """Bring all texts and bodies to this place, or into the rows. A run that is cut short leaves a collection that
    can be read, and the next one goes on."""
    folder.must_exist()
    if target != ROWS:
        try:
            check_bodies(target)
        except ValueError as error:
            raise UsageError(f"--{error}, or rows") from None
    with alone(folder):
        return _Move(folder, target, remove, on_progress, faults or NoFaults()).run()


class _Move:
    def __init__(self, folder: DataFolder, target: str, remove: bool, on_progress: OnProgress, faults: Faults) -> None:
        self._folder = folder
        self._target = target
        self._remove = remove
        self._on_progress = on_progress
        self._faults = faults
        self._now = SystemClock().now()
        self._moved = 0

    def run(self) -> BodiesMoved:
        held, kept = held_place(self._folder), ""
        _others_gone(self._folder)
        if held is not None and held.made and self._target != ROWS and not same_place(held.place, self._target):
            self._to_other_place(held)
            kept = "" if self._remove else held.place
        if self._target == ROWS:
            if held is not None:
                self._into_rows()
                kept = "" if self._remove else held.place
        else:
            self._out_of_rows()
        if self._folder.kept_settings().get("store.bodies") is not None:
            self._folder.change_settings(
                {"store.bodies": None if self._target == ROWS else self._target}, "levada move"
            )
        return BodiesMoved(self._target, self._moved, kept)

    def _opened(self, asked: str) -> Store:
        store = open_store(self._folder, StoreSettings(engine=self._folder.engine(), bodies=asked), StoreLimits())
        if Capability.BODIES not in store.shards[0].capabilities:
            store.close()
            raise UsageError(f"the collection in {self._folder.path} is kept by a plug-in, which has bodies of its own")
        return store

    def _contents(self, store: Store, doing: str) -> Iterator[tuple[WithBodies, list[tuple[int, int, bytes]]]]:
        total, done = store.stats(self._now).versions, 0
        for shard in store.shards:
            after: int | None = 0
            while after is not None:
                after, contents = cast(WithBodies, shard).contents(after, _PAGES_AT_ONCE)
                yield cast(WithBodies, shard), contents
                done += len(contents)
                self._on_progress(doing, min(done, total), total)

    def _to_other_place(self, held: HeldPlace) -> None:
        """Copy the objects that rows name, then say that they lie there. No row changes."""
        settings = self._folder.settings().bodies
        there = open_place(self._target, settings)
        take_place(self._folder, HeldPlace(self._target, held.owner), there, keep=False)
        with closing(self._opened("")) as store, closing(make_bodies(there, settings)) as target:
            source = reading_bodies(self._folder)
            assert source is not None
            with closing(source):
                for shard in store.shards:
                    cast(WithBodies, shard).delete_unused_bodies(float("inf"))
                for _, contents in self._contents(store, "copying bodies"):
                    references = references_in(content for *_, content in contents)
                    sizes = target.map(lambda each: there.size(each.key), references)
                    missing = [each for each, size in zip(references, sizes, strict=True) if size != each.size]
                    frames = _all_of(source, missing)
                    target.map(lambda each: there.put(each[0].key, each[1]), list(frames.items()))
                    self._moved += len(missing)
                    self._faults.reach("move-bodies.copied")
                keep_place(self._folder, HeldPlace(self._target, held.owner, made=True))
                self._faults.reach("move-bodies.placed")
                if self._remove:
                    for _, contents in self._contents(store, "deleting old copies"):
                        source.delete(references_in(content for *_, content in contents))
                    source.place.delete([MARKER])

    def _out_of_rows(self) -> None:
        with closing(self._opened(self._target)) as store, closing(_bodies_of(self._folder)) as bodies:
            for shard, contents in self._contents(store, "moving bodies"):
                going = [each for each in contents if bodies.is_outside(each[2])]
                if going:
                    references = bodies.put(going, token=0)  # no lease has this number
                    self._faults.reach("move-bodies.put")
                    shard.replace_contents(references, self._now)
                    self._faults.reach("move-bodies.replaced")
                    self._moved += len(going)

    def _into_rows(self) -> None:
        with closing(self._opened("")) as store, closing(_bodies_of(self._folder)) as bodies:
            for shard, contents in self._contents(store, "moving bodies"):
                references = {each: (each.page_id, each.version) for each in references_in(row[2] for row in contents)}
                frames = _all_of(bodies, list(references))
                if frames:
                    shard.replace_contents([(*references[each], frame) for each, frame in frames.items()], self._now)
                    self._faults.reach("move-bodies.replaced")
                    self._moved += len(frames)
            if self._remove:
                for each in store.shards:
                    cast(WithBodies, each).delete_unused_bodies(float("inf"))
            bodies.place.delete([MARKER])
            keep_place(self._folder, None)
            self._faults.reach("move-bodies.placed")


def _bodies_of(folder: DataFolder) -> Bodies:
    bodies = reading_bodies(folder)
    assert bodies is not None
    return bodies


def _all_of(bodies: Bodies, references: Sequence[Reference]) -> dict[Reference, bytes]:
    found: dict[Reference, bytes] = {}
    for reference, frame in bodies.frames(references).items():
        if isinstance(frame, str):
            raise StoreDamaged(f"{bodies.name}/{reference.key} {frame}: 'levada doctor' says which page needs it")
        found[reference] = frame
    return found


def _others_gone(folder: DataFolder) -> None:
    """Raise if a process on another machine has the collection open."""
    from levada.collection.storage.placing import nobody_has_open

    nobody_has_open(folder)


def lost_bodies(store: Store, bodies: Bodies) -> tuple[int, list[LostBody]]:
    """How many bodies versions name, and which are not there or of another size. What they hold is compared when they
    are read."""
    lost: list[LostBody] = []
    seen = 0
    for shard in store.shards:
        after = 0
        while walked := cast(Shard, shard).urls_after(after, _PAGES_AT_ONCE):
            after, urls = walked[-1][0], dict(walked)
            references = references_in(cast(WithBodies, shard).references(list(urls)))
            for each, trouble in zip(references, bodies.map(bodies.trouble, references), strict=True):
                if trouble and len(lost) < _TOLD:
                    lost.append(LostBody(urls[each.page_id], each.version, f"{bodies.name}/{each.key} {trouble}"))
            seen += len(references)
    return seen, lost


def sweep(folder: DataFolder, on_progress: Callable[[int], None] = lambda seen: None) -> Swept:
    """Delete the objects that no version names and that are older than a day. A crawl may go on meanwhile."""
    folder.must_exist()
    bodies = reading_bodies(folder)
    if bodies is None:
        raise UsageError(f"the bodies of the collection in {folder.path} lie with its rows: there is nothing to sweep")
    oldest = SystemClock().now() - bodies.grace
    objects = deleted = gone = waiting = 0
    with closing(bodies), nobody_moves(folder), closing(open_reading_store(folder)) as store:
        _must_show_all(store)
        _must_be_at_rest(folder)
        must_be_ours(folder, bodies)
        for listed in bodies.place.list():
            objects += sum(keyed(each.key) is not None for each in listed)
            unnamed = [each for each, _ in _unnamed(store, listed)]
            unnamed += [each for each in listed if each.key.endswith(DRAFT)]
            going = [each for each in unnamed if each.modified < oldest]
            if going:
                bodies.place.delete([each.key for each in going])
            deleted += len(going)
            gone += sum(each.size for each in going)
            waiting += len(unnamed) - len(going)
            on_progress(objects)
    return Swept(bodies.name, objects, deleted, gone, waiting)


def delete_bodies_of_gone_pages(folder: DataFolder, store: Store) -> int:
    """Delete the objects of pages that the collection does not know any more, whatever their age: no commit can name
    them. Crashed commits may have left some; those of versions go by their notes."""
    bodies = reading_bodies(folder)
    if bodies is None:
        return 0
    deleted = 0
    with closing(bodies):
        _must_show_all(store)
        must_be_ours(folder, bodies)
        for listed in bodies.place.list():
            going = [each.key for each, is_page_known in _unnamed(store, listed) if not is_page_known]
            if going:
                bodies.place.delete(going)
            deleted += len(going)
    return deleted


def unnamed_frames(store: Store, bodies: Bodies) -> Iterator[tuple[str, bytes]]:
    """The objects that no version names, with their frames."""
    for listed in bodies.place.list():
        keys = [each.key for each, _ in _unnamed(store, listed)]
        for key, frame in zip(keys, bodies.map(bodies.place.get, keys), strict=True):
            if frame is not None:
                yield key, frame


def _unnamed(store: Store, listed: Sequence[Listed]) -> list[tuple[Listed, bool]]:
    """The objects among these that no version names, and whether the page of each is known."""
    ours = {each.key: (each, found.page_id) for each in listed if (found := keyed(each.key)) is not None}
    pages = sorted({page_id for _, page_id in ours.values()})
    if not pages:
        return []
    known: set[int] = set()
    named: set[str] = set()
    for shard in store.shards:
        known |= cast(WithBodies, shard).pages_there(pages)
        named |= {each.key for each in references_in(cast(WithBodies, shard).references(pages))}
    return [(each, page_id in known) for key, (each, page_id) in ours.items() if key not in named]


def _must_show_all(store: Store) -> None:
    if store.away:
        raise StoreError(f"{next(iter(store.away.values()))}: what it holds is not known, so nothing was deleted")


def _must_be_at_rest(folder: DataFolder) -> None:
    """Raise while pages move between shards, which another machine may be doing."""
    file = plan_of(folder)
    if file is not None:
        with closing(file):
            if file.read().plan.following is not None:
                raise UsageError("pages are moving between shards: finish that first with 'levada shard apply'")


def must_be_ours(folder: DataFolder, bodies: Bodies) -> None:
    """Raise unless the place can be read, and holds the bodies of this collection."""
    held = held_place(folder)
    assert held is not None
    take_place(folder, held, bodies.place)
