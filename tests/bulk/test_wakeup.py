"""An instance that waits is woken by RabbitMQ; where that is away, it looks by itself and the load goes on."""

from __future__ import annotations

import socket
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest

from levada.bulk.entries import PlainRows
from levada.bulk.instance import Instance, Pace
from levada.bulk.loads import LoadRequest, load, verify_load
from levada.bulk.protocols import Wakeup
from levada.bulk.splitting import Span
from levada.bulk.start import Splitting, Starter
from levada.bulk.tasks import LoadPlan, LoadState
from levada.bulk.wakeup import RabbitmqWakeup
from levada.core.clock import SystemClock
from levada.core.errors import UsageError
from tests.bulk.memory import DirectPipeline, MemoryMaps, MemoryTable, MemoryTaskStore
from tests.servers.private import free_ports

pytest_plugins = ["tests.servers.fixtures"]

DEADLINE = 30.0
PLAN = LoadPlan("woken", "memory", "t", "k", "v", collect=True)
_names = count(1)


@pytest.fixture
def hung(rabbitmq: str) -> Iterator[Callable[[str], RabbitmqWakeup]]:
    """Bells that hang at the broker: they hear from now on."""
    with ExitStack() as open_bells:

        def wakeup(name: str) -> RabbitmqWakeup:
            made = open_bells.enter_context(closing(RabbitmqWakeup(rabbitmq, name, pytest.fail)))
            assert made.wait(DEADLINE)
            return made

        yield wakeup


@pytest.fixture
def name() -> str:
    return f"wake-{next(_names)}"


@pytest.fixture
def request_of(tmp_path: Path, name: str) -> Callable[[str], LoadRequest]:
    table = tmp_path / "table.db"
    with closing(sqlite3.connect(table)) as line, line:
        line.execute("CREATE TABLE t (k INTEGER, v INTEGER)")
        line.executemany("INSERT INTO t VALUES (?, ?)", [(n % 50, n) for n in range(500)])

    def request(wake: str) -> LoadRequest:
        target = str(tmp_path / "maps")
        return LoadRequest(
            f"sqlite://{table}", "t", "k", "v", name, target, collect=True, task_rows=50, keep_old=0.0, wake=wake
        )

    return request


def test_whoever_waits_is_woken_when_another_rings(hung: Callable[[str], RabbitmqWakeup], name: str) -> None:
    bells = [hung(name) for _ in range(3)]
    bells[0].notify()
    assert [wakeup.wait(DEADLINE) for wakeup in bells[1:]] == [True, True]


def test_nobody_hears_himself_nor_the_bell_of_another_load(hung: Callable[[str], RabbitmqWakeup], name: str) -> None:
    own, other, elsewhere = hung(name), hung(name), hung(f"{name}-elsewhere")
    own.notify()
    assert other.wait(DEADLINE)  # so the message has arrived
    assert not own.wait(0.0)
    assert not elsewhere.wait(0.0)


def test_the_last_ring_goes_out_before_the_bell_is_closed(
    hung: Callable[[str], RabbitmqWakeup], rabbitmq: str, name: str
) -> None:
    left = hung(name)
    with closing(RabbitmqWakeup(rabbitmq, name, pytest.fail)) as going:
        going.notify()
    assert left.wait(DEADLINE)


class Patient:
    """Whatever nap is asked for, it lasts until somebody rings: only a message can end it."""

    def __init__(self, wakeup: Wakeup, naps: Event) -> None:
        self._wakeup, self._naps = wakeup, naps

    def notify(self) -> None:
        self._wakeup.notify()

    def wait(self, seconds: float) -> bool:
        self._naps.set()
        woken = self._wakeup.wait(DEADLINE)
        assert woken
        return woken

    def close(self) -> None:
        self._wakeup.close()


class Slow(MemoryTable):
    """Something happens while it is read."""

    def __init__(self, rows: Sequence[tuple[int, int]], meanwhile: Callable[[], None]) -> None:
        super().__init__(rows)
        self._meanwhile = meanwhile

    def read(self, span: Span, limit: int | None) -> PlainRows | int | None:
        self._meanwhile()
        return super().read(span, limit)


def test_an_instance_without_a_task_sleeps_until_the_load_is_published(
    hung: Callable[[str], RabbitmqWakeup],
) -> None:
    rows = [(n, n) for n in range(3)]
    book, maps, asleep, seen = MemoryTaskStore(SystemClock()), MemoryMaps(), Event(), list[LoadState]()
    entered = Starter(PLAN, MemoryTable(rows), book, maps, maps, splitting=Splitting()).enter()

    def work(owner: str, table: MemoryTable, wakeup: Wakeup) -> None:
        pace = Pace(lease=DEADLINE)
        instance = Instance(
            table,
            book,
            maps,
            SystemClock(),
            owner,
            pace=pace,
            wait=time.sleep,
            wakeup=wakeup,
            pipeline=DirectPipeline,
        )
        seen.append(instance.work(entered.record, "", lambda status: None).record.state)

    waiting = ("waiting", MemoryTable(rows), Patient(hung(PLAN.name), asleep))
    sleeper = Thread(target=work, args=waiting, daemon=True)

    def another_comes() -> None:
        if not asleep.is_set():
            sleeper.start()
            assert asleep.wait(DEADLINE)

    work("working", Slow(rows, another_comes), hung(PLAN.name))
    sleeper.join(DEADLINE)
    assert seen == [LoadState.PUBLISHED, LoadState.PUBLISHED]


def test_a_load_is_whole_with_a_bell(rabbitmq: str, request_of: Callable[[str], LoadRequest]) -> None:
    request = request_of(rabbitmq)
    assert load(request, lambda status: None).status.done.rows == 500
    assert verify_load(request).current


def test_a_broker_that_is_away_is_told_once_and_the_load_finishes(
    request_of: Callable[[str], LoadRequest],
) -> None:
    request = request_of(f"amqp://guest:secret@127.0.0.1:{free_ports(1)[0]}/")
    told: list[str] = []
    assert load(request, lambda status: None, say=told.append).status.done.rows == 500
    assert verify_load(request).current
    assert len(told) == 1
    assert "does not answer" in told[0]
    assert "secret" not in told[0]


def test_a_broker_that_refuses_is_told_once_and_whoever_waits_looks_again(rabbitmq: str, name: str) -> None:
    told: list[str] = []
    with closing(RabbitmqWakeup(rabbitmq.replace("guest:guest", "guest:wrong"), name, told.append)) as wakeup:
        wakeup._thread.join(DEADLINE)
        wakeup.notify()
        assert not wakeup.wait(0.0)
    assert len(told) == 1
    assert "refused the user" in told[0]


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x01\x00\x00" + b"\xff" * 40])
def test_something_else_behind_the_address_is_told_once_however_often_it_is_dialled(answer: bytes, name: str) -> None:
    told: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE)
        with closing(RabbitmqWakeup(f"amqp://127.0.0.1:{server.getsockname()[1]}/", name, told.append)) as wakeup:
            for _ in range(3):
                wakeup.notify()
                line, _ = server.accept()
                with line:
                    line.sendall(answer)
            assert not wakeup.wait(0.0)
    assert len(told) == 1


def test_an_address_of_something_else_is_refused_before_anything_is_written(
    request_of: Callable[[str], LoadRequest],
) -> None:
    request = request_of("redis://127.0.0.1/")
    with pytest.raises(UsageError, match="amqp://"):
        load(request, lambda status: None)
    assert not Path(request.target).exists()
