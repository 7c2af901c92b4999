"""What a forget has yet to do, in a file of the data folder that names nothing of what is forgotten.

The file is written before the first page goes and deleted when everything is done. So whoever comes after a process
that was killed sees that something is left, and the running crawl knows what was asked of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from levada.core.errors import StoreError
from levada.core.files import sync_folder, write_durably
from levada.core.folder import DataFolder, writing
from levada.store.base import Capability, Store
from levada.store.opening import shard_folders
from levada.store.sqlite.copying import database_bytes, must_have_room


class Unfinished(msgspec.Struct, frozen=True):
    """The steps that are left."""

    pages: bool = True  # some pages with a tombstone may still be stored
    compact: bool = True  # the files of the store may still hold bytes
    trouble: str = ""  # why the crawl could not make them small


def unfinished(folder: DataFolder) -> Unfinished | None:
    """What is left of a forget; None if nothing is."""
    try:
        return msgspec.json.decode(folder.unfinished.read_bytes(), type=Unfinished)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError):
        return Unfinished()  # in doubt, all of it


def note_unfinished(folder: DataFolder, left: Unfinished | None) -> None:
    with writing(folder.path):
        if left is None:
            folder.unfinished.unlink(missing_ok=True)
        else:
            draft = folder.unfinished.with_suffix(".new")
            write_durably(draft, msgspec.json.encode(left), os.O_TRUNC)
            draft.replace(folder.unfinished)
        sync_folder(folder.path)


def compact_store(folder: DataFolder, store: Store) -> None:
    """Leave no byte of what was deleted in the store's files. SQLite writes each anew, and its log: that takes twice
    its size."""
    if Capability.FORGET not in store.capabilities:
        return
    for shard in shard_folders(folder):
        if shard.database.exists():
            must_have_room(
                shard.path,
                2 * database_bytes(shard.database),
                "compacting the store",
                "what was asked is forgotten, but its bytes are still in the file; make room and run 'levada forget'",
            )
    store.compact()  # type: ignore[attr-defined]  # as its capability says


def compact_for(folder: DataFolder, store: Store, wake: Callable[[], None]) -> None:
    """Compact the store of a running crawl for another process that forgets, and let its indexer look."""
    left = unfinished(folder)
    if left is None:
        return
    try:
        compact_store(folder, store)
    except StoreError as error:  # the crawl goes on: who forgets is told
        note_unfinished(folder, msgspec.structs.replace(left, trouble=str(error)))
    else:
        note_unfinished(folder, msgspec.structs.replace(left, compact=False, trouble=""))
    wake()
