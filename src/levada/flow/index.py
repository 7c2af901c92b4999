"""The index step: whatever the documents say and the index does not know yet, it is told.

The documents are the truth. The index remembers how far it has come, so catching up after a crash, a rebuild and
the everyday step are the same loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from levada.errors import StoreDamaged
from levada.ports import Documents, Index
from levada.records import Change

__all__ = ["catch_up"]

_READ_TOGETHER = 32  # documents: a commit may have thousands, and some of them may be long


def catch_up(
    documents: Documents, index: Index, batch: int, on_progress: Callable[[int], None] = lambda seq: None
) -> int:
    """Bring the index up to date, from the beginning if it is damaged; how many changes that took.

    What is committed meanwhile may be left for the next time: it would make a small commit, and those are dear.
    """
    try:
        return _follow(documents, index, batch, on_progress)
    except StoreDamaged:
        index.clear()  # nothing is lost: the documents are the truth
        return _follow(documents, index, batch, on_progress)


def _follow(documents: Documents, index: Index, batch: int, on_progress: Callable[[int], None]) -> int:
    taken = 0
    while newly := index.apply(_changes(documents, index.position(), batch)):
        taken += newly
        on_progress(index.position())
        if newly < batch:
            break
    return taken


def _changes(documents: Documents, after: int, most: int) -> Iterator[Change]:
    """What the documents say after `after`, up to what there is now."""
    while wanted := min(most, _READ_TOGETHER):
        changes = documents.changes(after, wanted)
        yield from changes
        if len(changes) < wanted:
            return
        after, most = changes[-1].seq, most - wanted
