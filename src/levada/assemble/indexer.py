"""The process that writes the search index, beside the crawl.

It follows the documents. An index that cannot be read is built anew from them.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from levada.assemble.folder import DataFolder
from levada.assemble.following import Follower, begin_following, follow
from levada.assemble.stores import open_shard_reader
from levada.errors import LevadaError, StoreLocked
from levada.flow.index import catch_up

if TYPE_CHECKING:
    from levada.adapters.tantivy_index import TantivyIndex
    from levada.flow.settings import IndexSettings

__all__ = ["IndexerChild", "main", "open_writer"]

_LOCK_SECONDS = 20.0


class IndexerChild(Follower):
    """The crawl's end of it: `wake` costs a byte, `finish` waits until everything is searchable."""

    def __init__(self, folder: DataFolder, settings: IndexSettings) -> None:
        how = (settings.batch, settings.heap, settings.gather_seconds)
        super().__init__("levada.assemble.indexer", str(folder.path), *map(str, how))


def open_writer(folder: DataFolder, heap: int) -> TantivyIndex:
    """The index to write to; waited for if a dying writer still holds it."""
    # Here: the crawl, which starts this process, never writes the index itself.
    from levada.adapters.tantivy_index import TantivyIndex

    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return TantivyIndex(folder.index, writer=True, heap_bytes=heap)
        except StoreLocked:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def main(arguments: list[str]) -> None:
    path, batch, heap, gather_seconds = arguments
    begin_following()
    folder = DataFolder(Path(path))
    store = open_shard_reader(folder)
    try:
        index = open_writer(folder, int(heap))
        follow(lambda on_progress: catch_up(store, index, int(batch), on_progress), float(gather_seconds))
        index.close()
    finally:
        store.close()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except LevadaError as error:
        sys.exit(str(error))
