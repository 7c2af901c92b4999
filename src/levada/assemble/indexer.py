"""The process that writes the search index, beside the crawl.

It follows the documents: woken by a line on its input, it takes in whatever is new. A line `q` means: finish
and end. If the input just closes, the crawl has died, and the next one will catch up. An index that cannot be
read is built anew from the documents.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

from levada.adapters.child_signals import leave_signals_to_parent, signals_held_back
from levada.adapters.sqlite import SqliteStore
from levada.adapters.tantivy_index import TantivyIndex
from levada.assemble.folder import DataFolder
from levada.assemble.parts import calm_collector
from levada.errors import LevadaError, StoreLocked
from levada.flow.index import catch_up

__all__ = ["IndexerChild", "main", "open_writer"]

_LOCK_SECONDS = 20.0
_GATHER_SECONDS = 1.5  # between commits: each costs tens of milliseconds, and merges later on


class IndexerChild:
    """The crawl's end of it: `wake` costs a byte, `finish` waits until everything is searchable."""

    def __init__(self, folder: DataFolder, batch: int, heap: int) -> None:
        command = [sys.executable, "-I", "-m", "levada.assemble.indexer", str(folder.path), str(batch), str(heap)]
        with signals_held_back():
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603

    def wake(self) -> None:
        self._say(b"\n")

    def finish(self) -> str | None:
        """Wait for the last document; a sentence if the index could not be written."""
        self._say(b"q\n")
        _, said = self._process.communicate()
        if self._process.returncode == 0:
            return None
        return (
            said.decode("utf-8", "replace").strip() or f"the indexer ended with status {self._process.returncode}"
        )

    def _say(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # it has ended; `finish` says why


def open_writer(folder: DataFolder, heap: int) -> TantivyIndex:
    """The index to write to; waited for if a dying writer still holds it."""
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return TantivyIndex(folder.index, writer=True, heap_bytes=heap)
        except StoreLocked:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def main(arguments: list[str]) -> None:
    path, batch, heap = arguments
    leave_signals_to_parent()
    calm_collector()
    os.nice(10)  # pages come first: what is indexed a little later is indexed in larger batches
    folder = DataFolder(Path(path))
    store = SqliteStore.open_reader(folder.database)
    try:
        index = open_writer(folder, int(heap))
        _follow(store, index, int(batch))
        index.close()
    finally:
        store.close()


def _follow(store: SqliteStore, index: TantivyIndex, batch: int) -> None:
    said = b"\n"
    while said:
        catch_up(store, index, batch)
        if b"q" in said:
            return
        said = _next_words()


def _next_words() -> bytes:
    """What the crawl says, once some documents have gathered or it is about to end; nothing if it has died."""
    said = b""
    until = time.monotonic() + _GATHER_SECONDS
    while b"q" not in said:
        left = until - time.monotonic() if said else None
        if left is not None and (left <= 0 or not select.select([sys.stdin], [], [], left)[0]):
            break
        heard = os.read(sys.stdin.fileno(), 65536)
        if not heard:
            return b""
        said += heard
    return said


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except LevadaError as error:
        sys.exit(str(error))
