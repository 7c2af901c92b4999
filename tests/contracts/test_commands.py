"""Control commands: kept until they are executed, in order, whoever sent them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.commands import AddSeeds, ChangeBudget, ControlCommand, DesiredState, DropSite, Pause, Resume
from levada.core.errors import StoreDamaged, StoreError
from levada.core.protocols import CommandQueue
from levada.store.commands import SqliteCommandQueue
from levada.store.postgresql.shared_commands import PostgresqlCommandQueue
from tests.in_memory import MemoryCommandQueue

EVERY: tuple[ControlCommand, ...] = (
    Pause(),
    AddSeeds(("http://a.test/", "https://ğ.test/")),
    ChangeBudget(1000),
    ChangeBudget(None),
    DropSite("a.test:8080"),
    Resume(),
)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def commands(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CommandQueue]:
    opened: CommandQueue
    match request.param:
        case "memory":
            opened = MemoryCommandQueue()
        case "sqlite":
            opened = SqliteCommandQueue(tmp_path / "orders.db")
        case _:
            opened = PostgresqlCommandQueue(request.getfixturevalue("postgresql"), tmp_path.name)
    yield opened
    opened.close()


def test_at_first_nothing_is_asked_for(commands: CommandQueue) -> None:
    assert commands.pending() == []
    assert commands.desired_state() == DesiredState()


def test_every_order_comes_back_as_it_was_given_in_its_turn(commands: CommandQueue) -> None:
    numbers = [commands.submit(command) for command in EVERY]
    assert commands.pending() == list(zip(numbers, EVERY, strict=True))
    assert numbers == sorted(set(numbers))


def test_what_is_obeyed_is_gone_and_leaves_its_wishes(commands: CommandQueue) -> None:
    numbers = [commands.submit(command) for command in EVERY]
    commands.mark_done(numbers[2], DesiredState(paused=True, per_hour=1000))
    assert [command for _, command in commands.pending()] == list(EVERY[3:])
    assert commands.desired_state() == DesiredState(paused=True, per_hour=1000)


def test_a_number_is_never_used_twice(commands: CommandQueue) -> None:
    first = commands.submit(Pause())
    commands.mark_done(first, DesiredState())
    assert commands.submit(Resume()) > first


def test_an_order_given_meanwhile_is_not_taken_for_obeyed(commands: CommandQueue) -> None:
    first = commands.submit(Pause())
    second = commands.submit(Resume())
    commands.mark_done(first, DesiredState(paused=True))
    assert commands.pending() == [(second, Resume())]


@given(st.lists(st.sampled_from(EVERY), max_size=6), st.integers(0, 6))
def test_the_reference_forgets_exactly_what_was_obeyed(given_orders: list[ControlCommand], upto: int) -> None:
    commands = MemoryCommandQueue()
    numbers = [commands.submit(command) for command in given_orders]
    commands.mark_done(upto, DesiredState())
    assert [number for number, _ in commands.pending()] == [number for number in numbers if number > upto]


def test_orders_outlive_whoever_gave_them(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    code = (
        "import os, sys; from pathlib import Path; from levada.store.commands import SqliteCommandQueue; "
        "from levada.core.commands import Pause; SqliteCommandQueue(Path(sys.argv[1])).submit(Pause()); os._exit(9)"
    )
    ours = SqliteCommandQueue(path)
    try:
        assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == 9
        assert [command for _, command in ours.pending()] == [Pause()]
    finally:
        ours.close()


def test_a_file_that_is_something_else_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    path.write_bytes(b"not a database at all, but long enough to be looked at" * 100)
    with pytest.raises(StoreError, match=r"orders\.db"):
        SqliteCommandQueue(path)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (n)")
    connection.close()
    with pytest.raises(StoreError, match="no commands"):
        SqliteCommandQueue(other)


def test_an_order_that_nobody_can_read_is_one_clear_error(tmp_path: Path) -> None:
    commands = SqliteCommandQueue(tmp_path / "orders.db")
    try:
        commands._connection.execute("INSERT INTO orders (body) VALUES (?)", (b'{"type":"dance"}',))
        with pytest.raises(StoreDamaged, match="cannot be read"):
            commands.pending()
    finally:
        commands.close()


def test_a_folder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        SqliteCommandQueue(tmp_path / "no" / "orders.db")
