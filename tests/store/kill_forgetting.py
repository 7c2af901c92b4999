"""Kills a forget before every single statement that it writes, and finishes it; prints how many times that was.

`python -m tests.store.kill_forgetting FOLDER` does it on three shards in files, split by URL, and
`python -m tests.store.kill_forgetting FOLDER DSN` on PostgreSQL. Run as a program of its own: it forks, which a test
process with threads must not.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from levada.core.reasons import Reason
from levada.core.records import FoundUrl, PageState, Refusal
from levada.pages.urls import NearDuplicateRuns
from levada.store.base import Forgetting, Store, StoreLimits
from levada.store.postgresql.database import PostgresqlWrite
from levada.store.sqlite.database import SqliteWrite
from levada.testing.store.forgetting import forget
from levada.testing.store.visits import changed, first, unchanged
from tests.invariants import check_invariants
from tests.schemas import Schemas
from tests.sharded import sharded_sqlite

GOING = [f"http://blog.example/{number}" for number in range(4)]
STAYING = [f"http://other.example/{number}" for number in range(3)]


def fill(store: Store) -> None:
    """Two sites with versions; a page that leads to a forgotten one, an example of a refusal, and runs of near
    duplicates."""
    urls = [*GOING, *STAYING]
    store.add([FoundUrl(url, url.split("/")[2], admit=True) for url in urls], [], 0.0)
    store.add([], [Refusal("http://blog.example/deep", "blog.example", Reason.DEPTH)], 0.0)
    runs = NearDuplicateRuns()
    runs.observe(GOING[0], b"s" * 128, 0)
    for step, result in enumerate((first, changed, changed)):
        visited: set[str] = set()
        for now in range(100 + step * 1_000, 900 + step * 1_000, 10):
            for lease in store.lease(float(now), 10, 60.0):
                told = replace(result(lease, float(now), f"text {step}", interval=1_000.0), near_runs=runs.packed())
                store.commit([told])
                visited.add(lease.page.url)
            if len(visited) == len(urls):
                break
    (lease,) = (each for each in store.lease(9_000.0, 100, 60.0) if each.page.url == STAYING[0])
    store.commit([replace(unchanged(lease, 9_000.0), state=PageState.ELSEWHERE, leads_to=GOING[0])])


def forget_all(store: Store) -> None:
    forget(cast("Forgetting", store), sites=("blog.example",))


def is_forgotten(store: Store) -> None:
    check_invariants(store)
    assert [store.page(url) for url in GOING] == [None] * len(GOING)
    assert store.site("blog.example") is None
    assert all(shard.near_runs(["blog.example"]) == {} for shard in store.shards)
    assert {event.site for event in store.change_log(0, 1_000)} == {"other.example"}
    assert store.add([FoundUrl(url, "blog.example") for url in GOING], [], 9e9) == 0
    staying = [store.page(url) for url in STAYING]
    assert [page.version if page else 0 for page in staying] == [3, 3, 3]
    assert staying[0] is not None
    assert staying[0].leads_to is None


def killed_before(statement: int, open_store: Callable[[], Store]) -> bool:
    """Whether the forget came so far, and died there."""
    child = os.fork()
    if child == 0:
        try:
            store = open_store()
            _die_at(statement)
            forget_all(store)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    end = os.waitstatus_to_exitcode(status)
    assert end in (0, -signal.SIGKILL), end
    return end != 0


def _die_at(statement: int) -> None:
    """From now on, the statements of all write transactions of this process are counted."""
    numbers = count(1)

    def counted(run: Callable[..., Any]) -> Callable[..., Any]:
        def ran(*given: Any) -> Any:
            if next(numbers) == statement:
                os.kill(os.getpid(), signal.SIGKILL)
            return run(*given)

        return ran

    for kind in (SqliteWrite, PostgresqlWrite):
        begin = kind.__init__

        def begun(write: Any, *given: Any, begin: Callable[..., None] = begin) -> None:
            begin(write, *given)
            for name in ("execute", "executemany"):
                setattr(write, name, counted(getattr(write, name)))

        setattr(kind, "__init__", begun)  # noqa: B010  only in this child


def kill_on_shards(folder: Path) -> int:
    with closing(sharded_sqlite(_made(folder / "filled"), StoreLimits(), 3, "url")) as store:
        fill(store)
    for statement in count(1):
        copy = Path(shutil.copytree(folder / "filled", folder / "copy"))

        def opened(copy: Path = copy) -> Store:
            return sharded_sqlite(copy, StoreLimits(), 3, "url")

        died = killed_before(statement, opened)
        with closing(opened()) as again:
            forget_all(again)
            is_forgotten(again)
        shutil.rmtree(copy)
        if not died:
            return statement - 1
    raise AssertionError


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def kill_on_server(dsn: str) -> int:
    with closing(Schemas(dsn)) as schemas:
        for statement in count(1):
            with closing(schemas.open()) as store:
                fill(store)
            schemas.take_back(store.schema)
            died = killed_before(statement, lambda name=store.schema: _on(schemas, name))  # type: ignore[misc]
            with closing(_on(schemas, store.schema)) as again:
                forget_all(again)
                is_forgotten(again)
            if not died:
                return statement - 1
    raise AssertionError


def _on(schemas: Schemas, name: str) -> Store:
    from levada.store.postgresql import PostgresqlStore

    return PostgresqlStore(schemas.address, schema=name)


if __name__ == "__main__":
    print(kill_on_server(sys.argv[2]) if len(sys.argv) > 2 else kill_on_shards(Path(sys.argv[1])))
