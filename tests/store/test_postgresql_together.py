"""Several processes on one store at once: no page is leased twice, no change is missed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from levada.core.errors import StoreLocked
from levada.core.records import Lease
from levada.store.base import StoreLimits
from levada.store.postgresql import PostgresqlStore
from levada.testing.store.visits import first, links
from tests.invariants import check_invariants
from tests.schemas import Schemas
from tests.store.several_on_server import EXPECTED, LIMITS, SEEDS

pytest_plugins = ["tests.servers.fixtures"]

ROOT = Path(__file__).parents[2]
PROCESSES = 3
OPEN = """
import sys
from levada.store.postgresql import PostgresqlStore
PostgresqlStore(sys.argv[1], schema=sys.argv[2]).close()
"""


class Meanwhile:
    """Does something else just when a write has come so far."""

    def __init__(self, point: str) -> None:
        self.point = point
        self.do: Callable[[], object] = lambda: None

    def reach(self, point: str) -> None:
        if point == self.point:
            do, self.do = self.do, lambda: None
            do()


@pytest.fixture(scope="module")
def schemas(postgresql: str) -> Iterator[Schemas]:
    with closing(Schemas(postgresql)) as lent:
        yield lent


@pytest.fixture
def schema(schemas: Schemas) -> Iterator[str]:
    name = schemas.lend()
    yield name
    schemas.take_back(name)


def follow(store: PostgresqlStore, seen: dict[str, int], after: int) -> int:
    """A few changes more, as an indexer takes them."""
    for change in store.changes(after, 7):
        assert change.seq > after
        after = change.seq
        seen[change.url] = seen.get(change.url, 0) + 1
    return after


def test_processes_share_the_work_and_whoever_follows_misses_nothing(postgresql: str, schema: str) -> None:
    with closing(PostgresqlStore(postgresql, schema=schema, limits=LIMITS)) as store:
        store.add(SEEDS, [], 0.0)
        command = [sys.executable, "-m", "tests.store.several_on_server", postgresql, schema]
        crowd = [
            subprocess.Popen([*command, str(seed)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
            for seed in range(PROCESSES)
        ]
        seen: dict[str, int] = {}
        after = 0
        while any(each.poll() is None for each in crowd):
            after = follow(store, seen, after)
        while after < store.newest_seq():
            after = follow(store, seen, after)
        done = [tuple(each) for process in crowd for each in json.loads(process.communicate()[0])]
        assert [process.returncode for process in crowd] == [0] * PROCESSES
        assert len(done) == len({page for page, _ in done}) == len({token for _, token in done}) == len(EXPECTED)
        assert seen == dict.fromkeys(EXPECTED, 1)
        assert all(len(store.versions(url)) == 1 for url in EXPECTED)
        check_invariants(store)


def test_a_store_that_several_open_first_is_made_once(postgresql: str, schemas: Schemas) -> None:
    name = f"{schemas.lend()} at once"
    crowd = [subprocess.Popen([sys.executable, "-c", OPEN, postgresql, name], cwd=ROOT) for _ in range(4)]
    assert [process.wait(60.0) for process in crowd] == [0] * 4
    schemas.take_back(name)


def test_a_lease_passes_over_the_sites_that_another_is_leasing_from(postgresql: str, schema: str) -> None:
    meanwhile = Meanwhile("lease.before-commit")
    with (
        closing(PostgresqlStore(postgresql, schema=schema, faults=meanwhile)) as one,
        closing(PostgresqlStore(postgresql, schema=schema)) as other,
    ):
        one.add([*links("a", 3), *links("b", 3)], [], 0.0)
        taken: list[Lease] = []
        meanwhile.do = lambda: taken.extend(other.lease(1.0, 6, 60.0))
        mine = one.lease(1.0, 1, 60.0)
        assert {lease.page.site for lease in mine} == {"a"}
        assert [lease.page.url for lease in taken] == [found.url for found in links("b", 3)]
        assert not {lease.token for lease in mine} & {lease.token for lease in taken}


def test_a_sites_turns_are_kept_whoever_asks(postgresql: str, schema: str) -> None:
    limits = StoreLimits(delay=10.0)
    with (
        closing(PostgresqlStore(postgresql, schema=schema, limits=limits)) as one,
        closing(PostgresqlStore(postgresql, schema=schema, limits=limits)) as other,
    ):
        one.add(links("a", 6), [], 0.0)
        assert len(one.lease(0.0, 2, 60.0)) == 2
        assert other.lease(19.0, 2, 60.0) == []
        assert len(other.lease(20.0, 1, 60.0)) == 1
        assert one.lease(29.0, 2, 60.0) == []
        assert len(one.lease(30.0, 1, 60.0)) == 1


def test_nobody_takes_a_later_step_before_ours_can_be_seen(postgresql: str, schema: str) -> None:
    meanwhile = Meanwhile("settle.before-commit")
    impatient = StoreLimits(busy_seconds=0.0)
    with (
        closing(PostgresqlStore(postgresql, schema=schema, faults=meanwhile)) as one,
        closing(PostgresqlStore(postgresql, schema=schema, limits=impatient)) as other,
    ):
        one.add([*links("a", 1), *links("b", 1)], [], 0.0)
        mine, theirs = one.lease(0.0, 1, 60.0), other.lease(0.0, 1, 60.0)

        def settle_too() -> None:
            one._database._connection.execute("SELECT 1").fetchone()  # what was written until now has arrived
            assert other.changes(0, 9) == []
            with pytest.raises(StoreLocked):
                other.commit([first(theirs[0], 1.0, "theirs")])

        meanwhile.do = settle_too
        assert one.commit([first(mine[0], 1.0, "mine")]) == [True]
        assert other.commit([first(theirs[0], 1.0, "theirs")]) == [True]
        assert [(change.seq, change.url) for change in one.changes(0, 9)] == [(1, "http://a/0"), (2, "http://b/0")]


def test_only_the_newest_lease_counts_whoever_holds_it(postgresql: str, schema: str) -> None:
    with (
        closing(PostgresqlStore(postgresql, schema=schema)) as one,
        closing(PostgresqlStore(postgresql, schema=schema)) as other,
    ):
        one.add(links("a", 1), [], 0.0)
        late = one.lease(0.0, 1, 5.0)
        newest = other.lease(6.0, 1, 5.0)
        assert one.commit([first(late[0], 7.0, "late", tuple(links("never", 1)))]) == [False]
        assert one.site("never") is None
        assert other.commit([first(newest[0], 7.0, "newest")]) == [True]


def test_urls_that_another_has_added_are_not_added_again(postgresql: str, schema: str) -> None:
    with (
        closing(PostgresqlStore(postgresql, schema=schema)) as one,
        closing(PostgresqlStore(postgresql, schema=schema)) as other,
    ):
        assert one.add(links("a", 3), [], 0.0) == 3
        assert other.add(links("a", 5), [], 0.0) == 2
        assert one.add(links("a", 6), [], 0.0) == 1
        check_invariants(one)
