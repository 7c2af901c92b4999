"""The lock under which pages move between shards, for all machines that have a collection on servers.

The kernel's lock in the data folder excludes the processes of one machine. Where shards are on servers, an advisory
lock of the first server is held beside it, by a session of its own: it excludes processes that have another data
folder, and ends with its process. A session that was cut has lost it, so a mover looks before each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from levada.core.errors import StoreLocked
from levada.core.folder import DataFolder, nobody_moves, only_mover
from levada.store.opening import collection_name, plan_of
from levada.store.sharded.plan import PlacementRecord

Check = Callable[[], None]
_TRIES = 3


@contextmanager
def only_mover_anywhere(folder: DataFolder) -> Iterator[Check]:
    """Move pages, alone. What is given raises if the lock was lost."""
    with only_mover(folder), _on_first_server(folder, alone=True) as check:
        yield check


@contextmanager
def nobody_moves_anywhere(folder: DataFolder) -> Iterator[Check]:
    """Keep each page on its shard: nobody moves pages in the meantime. What is given raises if the lock was lost."""
    with nobody_moves(folder), _on_first_server(folder, alone=False) as check:
        yield check


@contextmanager
def _on_first_server(folder: DataFolder, *, alone: bool) -> Iterator[Check]:
    for _ in range(_TRIES):
        server = first_server(folder)
        if not server:
            yield _nothing
            return
        from levada.store.postgresql.shared_plan import MovingLock

        with closing(MovingLock(server, collection_name(folder), alone=alone)) as lock:
            if first_server(folder) == server:  # not if a move ended between the two looks
                yield lock.check
                return
    raise StoreLocked(f"the shards of {folder.path} are changing: try again")


def first_server(folder: DataFolder) -> str:
    """The server whose lock counts; "" if no shard is on a server."""
    file = plan_of(folder)
    if file is None:
        return ""
    with closing(file):
        return _first(file.read())


def _first(record: PlacementRecord) -> str:
    servers = (record.shards[number].server for number in sorted(record.plan.holders))
    return record.home or next(filter(None, servers), "")


def _nothing() -> None:
    pass
