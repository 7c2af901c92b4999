"""How does what the shards hold get into a map that answers in microseconds?

`levada warm` is a load like any other, from the collection's own shards: the same tasks, generations and reader.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from levada.adapters.bulk.levada_source import LevadaSource, since_in
from levada.assemble.folder import DataFolder
from levada.assemble.loading import LoadRequest, load
from levada.assemble.loading_notes import note_load
from levada.assemble.loading_urls import open_reader, redacted
from levada.assemble.stores import shard_places
from levada.bulk.generations import LoadPlan
from levada.bulk.tasks import Standing
from levada.errors import LevadaError, UsageError
from levada.hashing import content_digest

if TYPE_CHECKING:
    from levada.adapters.postgresql.cards import PostgresqlCards
    from levada.adapters.sqlite.cards import SqliteCards

__all__ = [
    "CARDS",
    "MAPS",
    "Warmed",
    "is_embedded",
    "maps_of",
    "open_cards",
    "open_shelf",
    "shelf_names",
    "warm",
    "warm_request",
]

MAPS = Path("levada-maps")  # where `levada load` notes its loads, unless told otherwise
CARDS = "pages"  # the map's name, unless another is given
_SCHEME = "levada://"
_TABLE, _KEY, _VALUE, _WATERMARK = "pages", "url", "card", "met_at"
_WHOLE = "levada.db"  # the name of the only shard, where a collection is one file
_TASK_PAGES = 10_000
_MEMORY = 16_000_000  # a card takes about four times what a load counts for a row
_KEEP_OLD = 5.0  # seconds, for readers on other machines


class Warmed(msgspec.Struct, frozen=True):
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
    embedded = not target or "://" not in target
    return LoadRequest(
        f"{_SCHEME}{folder.path.resolve()}",
        _TABLE,
        _KEY,
        _VALUE,
        name,
        target or str(maps_of(folder).resolve()),
        watermark=_WATERMARK,
        task_rows=_TASK_PAGES,
        memory=_MEMORY,
        # An embedded map checks the pointer in the same instant: nobody needs the old one for a while.
        keep_old=0.0 if embedded else _KEEP_OLD,
        replace=replace or not target,  # the folder may have moved, and its own map is nobody else's
    )


def is_embedded(request: LoadRequest) -> bool:
    """Whether it fills a map of pages in a file: one on a server is for others, to ask it and the store would take
    longer than to ask the store."""
    return request.source.startswith(_SCHEME) and "://" not in request.target


def warm(folder: DataFolder, request: LoadRequest, watch: Callable[[Standing], None]) -> Warmed:
    """Fill the map of the request; whatever goes wrong is noted where `levada load resume` looks."""
    folder.must_exist()
    noted: list[bool] = []

    def watched(standing: Standing) -> None:
        if not noted:
            noted.append(True)
            note_load(maps_of(folder), request)
        watch(standing)

    loaded = load(request, watched)
    with closing(open_reader(request.target)) as reader:
        manifest = reader.manifest(request.name)
    if manifest is None:
        raise LevadaError(f"map {request.name} was removed while it was filled: warm it again")
    record, pages = loaded.standing.record, loaded.standing.done.rows
    seconds = max(1e-6, (record.ended_at or loaded.standing.now) - record.started_at)
    return Warmed(
        request.name,
        redacted(request.target),
        record.generation,
        pages,
        since_in(record.since, _layout(folder)) is None,
        len(manifest.layers),
        seconds,
        pages / seconds,
    )


def open_cards(url: str, plan: LoadPlan) -> LevadaSource:
    """The source that `levada:///PATH` names; it has one table, of a key, a value and a watermark."""
    folder = DataFolder(Path(url.removeprefix(_SCHEME)))
    folder.must_exist()
    asked = (plan.table, plan.key, plan.value, plan.watermark or _WATERMARK)
    if asked != (_TABLE, _KEY, _VALUE, _WATERMARK):
        raise UsageError(f"a collection is read as --table {_TABLE} --key {_KEY} --value {_VALUE}: see levada warm")
    with ExitStack() as opened:
        shelves = [opened.enter_context(closing(open_shelf(folder, name))) for name in shelf_names(folder)]
        opened.pop_all()  # the source closes them
    return LevadaSource(shelves, _layout(folder))


def _layout(folder: DataFolder) -> str:
    try:
        return content_digest(folder.placement.read_bytes()).hex()
    except OSError:
        return ""


def shelf_names(folder: DataFolder) -> list[str]:
    """How the cards of a collection name its shards."""
    return [place.folder for place in shard_places(folder)] or [_WHOLE]


def open_shelf(folder: DataFolder, name: str) -> SqliteCards | PostgresqlCards:
    from levada.adapters.sqlite.cards import SqliteCards

    place = next((each for each in shard_places(folder) if each.folder == name), None)
    if place is not None and place.server:
        from levada.adapters.postgresql.cards import PostgresqlCards

        return PostgresqlCards(place.server, place.schema, name)
    shard = DataFolder(folder.path / place.folder) if place is not None else folder
    return SqliteCards(shard.database, name)
