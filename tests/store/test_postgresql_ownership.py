"""The owners of the slices of sites, on a real server."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from levada.core.commands import ChangeBudget, ControlCommand, DesiredState, Pause
from levada.core.errors import StoreAway
from levada.core.records import FoundUrl
from levada.store.base import Sliced
from levada.store.memory import MemoryStore
from levada.store.ownership import SLICES, slice_of
from levada.store.postgresql import PostgresqlStore
from levada.store.postgresql.ownership import PostgresqlOwnership
from levada.store.postgresql.shared_commands import PostgresqlCommandQueue
from tests.servers.private import free_ports

pytest_plugins = ["tests.servers.fixtures"]

SITES = [f"s{number}.example" for number in range(200)] + ["münchen.example", "a", "x" * 200]


@pytest.fixture
def tables(postgresql: str) -> Iterator[tuple[PostgresqlOwnership, PostgresqlOwnership]]:
    name = secrets.token_hex(8)
    with closing(PostgresqlOwnership(postgresql, name)) as one, closing(PostgresqlOwnership(postgresql, name)) as other:
        yield one, other


def die(postgresql: str, name: str) -> None:
    """The hold of this scheduler ends, by the server's clock."""
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("UPDATE levada_shared.controls SET until = now() WHERE control = %s", (name,))


def test_slices_change_hands_by_the_servers_clock(
    postgresql: str, tables: tuple[PostgresqlOwnership, PostgresqlOwnership]
) -> None:
    one, other = tables
    a, b = secrets.token_hex(4), "z" + secrets.token_hex(4)
    first = one.renew(a, (), 60.0)
    assert (set(first.owned), first.schedulers) == (set(range(SLICES)), 1)
    assert set(first.orphaned) == set(range(SLICES)), "whoever leased pages of them before is gone"
    assert other.renew(b, (), 60.0).owned == {}, "nothing is taken from one who is there"
    shared = one.renew(a, (), 60.0)
    assert set(shared.give) == set(range(32, SLICES))
    assert set(one.renew(a, shared.give, 60.0).owned) == set(range(32))
    second = other.renew(b, (), 60.0)
    assert (set(second.owned), list(second.orphaned)) == (set(range(32, SLICES)), [])
    assert all(second.owned[number] > first.owned[number] for number in second.owned)
    die(postgresql, a)
    third = other.renew(b, (), 60.0)
    assert (set(third.owned), set(third.orphaned)) == (set(range(SLICES)), set(range(32)))
    assert one.renew(a, (), 60.0).owned == {}, "back from the dead it owns nothing"
    other.leave(b)
    assert set(one.renew(a, (), 60.0).owned) == set(range(SLICES))


def test_a_hold_that_nobody_took_over_goes_on_in_its_epoch(
    postgresql: str, tables: tuple[PostgresqlOwnership, PostgresqlOwnership]
) -> None:
    one, _ = tables
    name = secrets.token_hex(4)
    before = one.renew(name, (), 60.0).owned
    die(postgresql, name)
    assert one.renew(name, (), 60.0).owned == before


def test_a_server_that_is_away_is_said() -> None:
    (port,) = free_ports(1)
    with closing(PostgresqlOwnership(f"postgresql://127.0.0.1:{port}/none", "x")) as table, pytest.raises(StoreAway):
        table.renew("a", (), 1.0)


def test_a_command_reaches_all_controls_in_its_order(postgresql: str) -> None:
    name = secrets.token_hex(8)

    def control(collection: str = name) -> closing[PostgresqlCommandQueue]:
        return closing(PostgresqlCommandQueue(postgresql, collection, executing=True))

    def commands(queue: PostgresqlCommandQueue) -> list[ControlCommand]:
        return [command for _, command in queue.pending()]

    with closing(PostgresqlCommandQueue(postgresql, name)) as serving:
        serving.submit(Pause())
        with control() as one, control() as other, control(secrets.token_hex(8)) as stranger:
            assert commands(one) == [Pause()], "it was given while nobody crawled"
            serving.submit(ChangeBudget(360))
            assert commands(one) == commands(other) == [Pause(), ChangeBudget(360)]
            assert commands(stranger) == []
            (first, _), (second, _) = one.pending()
            other.mark_done(second, DesiredState(True, 360))
            assert serving.pending() == [], "one of them has executed all"
            one.mark_done(first, DesiredState(True))
            assert one.desired_state() == other.desired_state() == DesiredState(True, 360), "the later one stays"
            assert other.pending() == []
            assert [number for number, _ in one.pending()] == [second]
            with control() as late:
                assert late.pending() == []
                assert late.desired_state() == DesiredState(True, 360)


def stores(postgresql: str) -> list[MemoryStore | PostgresqlStore]:
    return [MemoryStore(), PostgresqlStore(postgresql, schema=f"slices {secrets.token_hex(4)}")]


def test_only_pages_of_owned_slices_are_leased(postgresql: str) -> None:
    for store in stores(postgresql):
        store.add([FoundUrl(f"http://{site}/", site) for site in SITES], [], 0.0)
        owned = frozenset(range(0, SLICES, 2))
        store.own(owned)
        leased = {lease.page.site for lease in store.lease(1.0, 1_000, 60.0)}
        assert leased == {site for site in SITES if slice_of(site) in owned}
        store.own(None)
        assert {lease.page.site for lease in store.lease(1.0, 1_000, 60.0)} == set(SITES) - leased
        store.close()


def test_leases_of_one_that_is_gone_end_soon_and_others_do_not(postgresql: str) -> None:
    for store in stores(postgresql):
        store.add([FoundUrl(f"http://{site}/", site) for site in SITES], [], 0.0)
        assert len(store.lease(1.0, 1_000, 600.0)) == len(SITES)
        gone: frozenset[int] = frozenset(range(32))
        sliced: Sliced = store
        sliced.end_leases_by(gone, 20.0)
        assert store.lease(19.0, 1_000, 60.0) == []
        again = {lease.page.site for lease in store.lease(21.0, 1_000, 600.0)}
        assert again == {site for site in SITES if slice_of(site) in gone}
        store.close()
