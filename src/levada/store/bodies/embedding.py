"""Bringing the bodies that lie elsewhere into a copy of a store, so that the copy is whole by itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import cast

from levada.core.errors import StoreDamaged
from levada.store.base import Capability, Shard, Store, WithBodies
from levada.store.bodies.bodies import Bodies
from levada.store.bodies.references import MARK, Reference, references_in
from levada.store.sqlite.connection import translated

_AT_ONCE = 64
_PAGES_AT_ONCE = 1_000
_NEXT = """SELECT page_id, version, content_zstd FROM versions
    WHERE (page_id, version) > (?, ?) AND substr(content_zstd, 1, 4) = ? ORDER BY page_id, version LIMIT ?"""
_REPLACE = "UPDATE versions SET content_zstd = ? WHERE page_id = ? AND version = ?"


def bytes_elsewhere(store: Store) -> int:
    """The size of all frames that the rows of a store refer to."""
    total = 0
    for shard in store.shards:
        after = 0
        while Capability.BODIES in shard.capabilities and (
            walked := cast(Shard, shard).urls_after(after, _PAGES_AT_ONCE)
        ):
            after = walked[-1][0]
            found = references_in(cast(WithBodies, shard).references([id for id, _ in walked]))
            total += sum(each.size for each in found)
    return total


def embed_bodies(copy: Path, bodies: Bodies, told: Callable[[int], None] = lambda done: None) -> None:
    """Put frames into this copy of a SQLite store in the place of references. Nobody else has it open."""
    try:
        with closing(sqlite3.connect(copy, isolation_level=None)) as store:
            store.execute("PRAGMA journal_mode = DELETE")
            store.execute("PRAGMA synchronous = OFF")
            store.execute("BEGIN")
            _embed(store, bodies, told)
            store.execute("DELETE FROM unused_bodies")
            store.execute("COMMIT")
            store.execute("PRAGMA journal_mode = WAL")
    except (sqlite3.Error, OSError) as error:
        raise translated(error, copy) from error


def _embed(store: sqlite3.Connection, bodies: Bodies, told: Callable[[int], None]) -> None:
    last, done = (-1, -1), 0
    while rows := store.execute(_NEXT, (*last, MARK, _AT_ONCE)).fetchall():
        last = rows[-1][:2]
        references = references_in(row[2] for row in rows)
        frames = bodies.frames(references)
        store.executemany(
            _REPLACE, [(_whole(bodies, each, frames[each]), each.page_id, each.version) for each in references]
        )
        done += sum(each.size for each in references)
        told(done)


def _whole(bodies: Bodies, reference: Reference, frame: bytes | str) -> bytes:
    if isinstance(frame, str):
        raise StoreDamaged(
            f"{bodies.name}/{reference.key} {frame}: run the command again if pages were forgotten meanwhile; else see "
            "'levada doctor'"
        )
    return frame
