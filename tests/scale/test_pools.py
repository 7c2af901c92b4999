"""Workers as processes: started, stopped gently, killed late, replaced, and not started again and again."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from levada.core.clock import SystemClock
from levada.core.errors import UsageError
from levada.core.protocols import Clock
from levada.scale.pools import LocalProcesses, OneOfSeveral, RemoteWorkers, parse_command
from levada.scale.statistics import PoolStatistics
from tests.manual_clock import ManualClock

_PATIENT = "import signal,sys,time; signal.signal(15, lambda *a: sys.exit(0)); print('up'); time.sleep(60)"
_DEAF = "import signal,sys,time; signal.signal(15, signal.SIG_IGN); open(sys.argv[1], 'x').close(); time.sleep(60)"


def processes(script: str, clock: Clock | None = None, **options: object) -> LocalProcesses:
    return LocalProcesses("s", [sys.executable, "-c", script], clock or SystemClock(), **options)  # type: ignore[arg-type]


async def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def ended(workers: LocalProcesses) -> None:
    async with asyncio.timeout(20.0):
        while (await workers.poll()).on:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def test_as_many_run_as_are_wanted_and_all_end_at_the_end() -> None:
    async def story() -> None:
        workers = processes(_PATIENT)
        await workers.resize(3)
        pids = workers.pids
        assert (await workers.poll()).on == len(pids) == 3
        await workers.resize(1)
        assert (await workers.poll()).on == 1
        await workers.close()
        assert (await workers.poll()).on == 0
        for pid in pids:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)

    asyncio.run(story())


def test_one_that_is_killed_is_replaced() -> None:
    async def story() -> None:
        clock = ManualClock()
        workers = processes(_PATIENT, clock)
        await workers.resize(1)
        clock.advance(60.0)
        (pid,) = workers.pids
        os.kill(pid, signal.SIGKILL)
        await ended(workers)
        await workers.resize(1)
        assert workers.pids != [pid]
        assert len(workers.pids) == 1
        await workers.close()

    asyncio.run(story())


def test_one_that_does_not_listen_is_killed_after_its_grace_and_not_before(tmp_path: Path) -> None:
    async def story() -> None:
        clock, deaf = ManualClock(), tmp_path / "deaf"
        workers = LocalProcesses("s", [sys.executable, "-c", _DEAF, str(deaf)], clock, grace=30.0)
        await workers.resize(1)
        (pid,) = workers.pids
        await until(deaf.exists)
        await workers.resize(0)
        clock.advance(29.0)
        await workers.resize(0)
        # Had it been killed, it would be dead before one that was started afterwards has ended.
        await (await asyncio.create_subprocess_exec(sys.executable, "-c", "")).wait()
        os.kill(pid, 0)
        assert (await workers.poll()).stopping == 1
        clock.advance(2.0)
        await workers.resize(0)
        async with asyncio.timeout(20.0):
            while (await workers.poll()).stopping:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    asyncio.run(story())


def test_a_command_that_ends_at_once_is_tried_later_and_later_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "levada")

    async def story() -> list[float]:
        clock, begun = ManualClock(), []
        workers = LocalProcesses("s", ["/bin/false"], clock)
        for _ in range(120):
            await workers.resize(1)
            if workers.pids:
                begun.append(clock.now())
                await ended(workers)
            clock.advance(1.0)
        return begun

    begun = asyncio.run(story())
    pauses = [later - earlier for earlier, later in pairwise(begun)]
    assert len(begun) <= 9
    assert pauses == sorted(pauses)
    assert len(caplog.records) == 1


def test_an_idle_one_goes_first() -> None:
    async def story() -> None:
        busy: set[str] = set()
        workers = processes(_PATIENT, is_busy=lambda name: name in busy)
        await workers.resize(2)
        names = [worker.name for worker in workers._workers]
        busy.add(names[1])  # the younger, who would go first if both were idle
        await workers.resize(1)
        assert [worker.name for worker in workers._workers if worker.kill_at is None] == [names[1]]
        await workers.close()

    asyncio.run(story())


def test_a_process_knows_its_stage_and_its_name(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = f"import os; open({str(out)!r}, 'w').write(os.environ['LEVADA_STAGE'] + os.environ['LEVADA_WORKER'])"

    async def story() -> None:
        workers = processes(script)
        await workers.resize(1)
        await until(lambda: out.exists() and bool(out.read_text()))
        await workers.close()

    asyncio.run(story())
    assert out.read_text().startswith("ss-")


@pytest.mark.parametrize("text", ["", "   ", "there-is-no-such-program --at all", "'unclosed"])
def test_a_command_that_is_none_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_command(text)
    assert "\n" not in str(refused.value)


def test_a_command_is_words_and_no_shell_reads_them() -> None:
    assert parse_command(f'{sys.executable} -c "a; b" $HOME') == [sys.executable, "-c", "a; b", "$HOME"]


def test_of_several_processes_that_see_a_pool_the_one_that_leads_resizes_it() -> None:
    told: list[int] = []

    class Pool:
        async def poll(self) -> PoolStatistics:
            return PoolStatistics(3)

        async def resize(self, wanted: int) -> None:
            told.append(wanted)

        async def close(self) -> None: ...

    async def story() -> None:
        leads = False
        pool = OneOfSeveral(Pool(), lambda: leads)
        await pool.resize(7)
        assert (await pool.poll()).on == 3
        leads = True
        await pool.resize(8)
        await pool.close()

    asyncio.run(story())
    assert told == [8]


def test_workers_of_others_are_counted_and_left_alone() -> None:
    async def story() -> None:
        pool = RemoteWorkers(lambda: 5)
        await pool.resize(9)
        assert (await pool.poll()).on == 5

    asyncio.run(story())
