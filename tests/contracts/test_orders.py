"""Orders from outside: kept until obeyed, in their order, whoever gave them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.adapters.memory_orders import MemoryOrders
from levada.adapters.sqlite_orders import SqliteOrders
from levada.errors import StoreDamaged, StoreError
from levada.orders import AddSeeds, ChangeBudget, DropSite, Order, Pause, Resume, Wishes
from levada.ports import Orders

EVERY: tuple[Order, ...] = (
    Pause(),
    AddSeeds(("http://a.test/", "https://ğ.test/")),
    ChangeBudget(1000),
    ChangeBudget(None),
    DropSite("a.test:8080"),
    Resume(),
)


@pytest.fixture(params=["memory", "sqlite"])
def orders(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Orders]:
    opened: Orders = MemoryOrders() if request.param == "memory" else SqliteOrders(tmp_path / "orders.db")
    yield opened
    opened.close()


def test_at_first_nothing_is_asked_for(orders: Orders) -> None:
    assert orders.pending() == []
    assert orders.wishes() == Wishes()


def test_every_order_comes_back_as_it_was_given_in_its_turn(orders: Orders) -> None:
    numbers = [orders.give(order) for order in EVERY]
    assert orders.pending() == list(zip(numbers, EVERY, strict=True))
    assert numbers == sorted(set(numbers))


def test_what_is_obeyed_is_gone_and_leaves_its_wishes(orders: Orders) -> None:
    numbers = [orders.give(order) for order in EVERY]
    orders.obeyed(numbers[2], Wishes(paused=True, per_hour=1000))
    assert [order for _, order in orders.pending()] == list(EVERY[3:])
    assert orders.wishes() == Wishes(paused=True, per_hour=1000)


def test_a_number_is_never_used_twice(orders: Orders) -> None:
    first = orders.give(Pause())
    orders.obeyed(first, Wishes())
    assert orders.give(Resume()) > first


def test_an_order_given_meanwhile_is_not_taken_for_obeyed(orders: Orders) -> None:
    first = orders.give(Pause())
    second = orders.give(Resume())
    orders.obeyed(first, Wishes(paused=True))
    assert orders.pending() == [(second, Resume())]


@given(st.lists(st.sampled_from(EVERY), max_size=6), st.integers(0, 6))
def test_the_reference_forgets_exactly_what_was_obeyed(given_orders: list[Order], upto: int) -> None:
    orders = MemoryOrders()
    numbers = [orders.give(order) for order in given_orders]
    orders.obeyed(upto, Wishes())
    assert [number for number, _ in orders.pending()] == [number for number in numbers if number > upto]


def test_orders_outlive_whoever_gave_them(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    code = (
        "import os, sys; from pathlib import Path; from levada.adapters.sqlite_orders import SqliteOrders; "
        "from levada.orders import Pause; SqliteOrders(Path(sys.argv[1])).give(Pause()); os._exit(9)"
    )
    ours = SqliteOrders(path)
    try:
        assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == 9
        assert [order for _, order in ours.pending()] == [Pause()]
    finally:
        ours.close()


def test_a_file_that_is_something_else_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    path.write_bytes(b"not a database at all, but long enough to be looked at" * 100)
    with pytest.raises(StoreError, match=r"orders\.db"):
        SqliteOrders(path)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (n)")
    connection.close()
    with pytest.raises(StoreError, match="no orders"):
        SqliteOrders(other)


def test_an_order_that_nobody_can_read_is_one_clear_error(tmp_path: Path) -> None:
    orders = SqliteOrders(tmp_path / "orders.db")
    try:
        orders._connection.execute("INSERT INTO orders (body) VALUES (?)", (b'{"type":"dance"}',))
        with pytest.raises(StoreDamaged, match="cannot be read"):
            orders.pending()
    finally:
        orders.close()


def test_a_folder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        SqliteOrders(tmp_path / "no" / "orders.db")
