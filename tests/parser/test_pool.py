"""Pages are read in children that may die; the crawler does not."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from levada.collection.components import make_parser
from levada.core.errors import LevadaError, ParserDied
from levada.core.reasons import Reason
from levada.core.records import ParsedPage, RawPage
from levada.core.settings import parse_settings
from levada.parser.inline import InlineParser
from levada.parser.pool import ParserPool

ODD = (str(Path(__file__).with_name("odd_child.py")),)


def raw(name: str) -> RawPage:
    return RawPage(f"http://a.test/{name}", f"<title>{name}</title><p>words of {name}</p>".encode(), "text/html")


def in_pool(work: Callable[[ParserPool], Awaitable[None]], pool: Callable[[], ParserPool]) -> None:
    """Run with a pool, and see that it leaves no process behind."""

    async def run() -> list[int]:
        parser = pool()
        try:
            await work(parser)
            return parser.pids()
        finally:
            await parser.close()

    for pid in asyncio.run(run()):
        assert not is_alive(pid)


def odd(children: int = 1, cpu_seconds: float = 5.0) -> Callable[[], ParserPool]:
    return lambda: ParserPool(children, cpu_seconds=cpu_seconds, program=ODD)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def outcomes(pool: ParserPool, *names: str) -> list[ParsedPage | BaseException]:
    return await asyncio.gather(*(pool.parse(raw(name)) for name in names), return_exceptions=True)


def test_a_child_reads_a_page_as_this_process_would() -> None:
    async def work(pool: ParserPool) -> None:
        assert await pool.parse(raw("one")) == await InlineParser().parse(raw("one"))

    in_pool(work, ParserPool)


def test_a_child_knows_for_whom_it_reads() -> None:
    page = RawPage("http://example.org/", b"<meta name=mybot content=noindex><p>text", "text/html")

    async def work(pool: ParserPool) -> None:
        assert (await pool.parse(page)).noindex

    in_pool(work, lambda: make_parser(parse_settings('[politeness]\nagent = "mybot"', "the test")))


def test_many_pages_are_answered_each_to_its_asker() -> None:
    async def work(pool: ParserPool) -> None:
        names = [f"page{n}" for n in range(200)]
        answers = await outcomes(pool, *names)
        assert [answer.title for answer in answers if isinstance(answer, ParsedPage)] == names
        assert len(pool.pids()) == 2

    in_pool(work, lambda: ParserPool(2))


def test_a_page_that_kills_its_child_is_blamed_and_no_other() -> None:
    async def work(pool: ParserPool) -> None:
        names = ["a", "b", "kill", "c", "d", "kill2", "e"]
        answers = await outcomes(pool, *names)
        dead = [name for name, answer in zip(names, answers, strict=True) if isinstance(answer, ParserDied)]
        assert dead == ["kill", "kill2"]
        assert [answer.title for answer in answers if isinstance(answer, ParsedPage)] == ["a", "b", "c", "d", "e"]
        assert {answer.cause for answer in answers if isinstance(answer, ParserDied)} == {"parser-died"}

    in_pool(work, odd())


def test_a_page_is_blamed_though_the_answers_before_it_were_not_sent_yet() -> None:
    async def work(pool: ParserPool) -> None:
        await pool.parse(raw("first"))
        names = [*(f"page {n}" for n in range(10)), "kill", *(f"page {n}" for n in range(10, 15))]
        answers = await outcomes(pool, *names)  # handed out together, and so answered together
        assert [type(answer) for answer in answers] == [*[ParsedPage] * 10, ParserDied, *[ParsedPage] * 5]
        assert [answer.title for answer in answers if isinstance(answer, ParsedPage)] == [
            f"page {n}" for n in range(15)
        ]

    in_pool(work, odd())


def test_large_and_small_pages_are_read_alike() -> None:
    async def work(pool: ParserPool) -> None:
        pages = [
            RawPage("http://a.test/", b"<title>%d</title><p>" % size + b"word " * size, "text/html")
            for size in (1, 300_000, 7, 100_000, 110_000, 2, 3)
        ]
        expected = [await InlineParser().parse(page) for page in pages]
        assert await asyncio.gather(*map(pool.parse, pages)) == expected

    in_pool(work, ParserPool)


def test_many_deaths_in_a_row_are_the_pages_fault_as_long_as_children_start() -> None:
    async def work(pool: ParserPool) -> None:
        answers = await outcomes(pool, *(f"kill{n}" for n in range(6)), "fine")
        assert [type(answer) for answer in answers] == [ParserDied] * 6 + [ParsedPage]

    in_pool(work, odd(2))


def test_a_child_killed_from_outside_costs_only_the_page_that_it_reads() -> None:
    async def work(pool: ParserPool) -> None:
        await pool.parse(raw("first"))
        names = ["wait", *(f"page {n}" for n in range(20))]  # enough to be handed out at once
        asked = asyncio.gather(*(pool.parse(raw(name)) for name in names), return_exceptions=True)
        await asyncio.sleep(0)
        os.kill(pool.pids()[0], signal.SIGKILL)
        answers = await asked
        assert [type(answer) for answer in answers] == [ParserDied, *[ParsedPage] * 20]

    in_pool(work, odd())


def test_a_page_that_takes_too_much_cpu_is_ended() -> None:
    async def work(pool: ParserPool) -> None:
        stuck, fine = await outcomes(pool, "loop", "fine")
        assert isinstance(stuck, ParserDied)
        assert stuck.cause == Reason.PARSE_SECONDS
        assert isinstance(fine, ParsedPage)

    in_pool(work, odd(cpu_seconds=0.2))


def test_a_page_that_takes_too_much_memory_is_said_so() -> None:
    async def work(pool: ParserPool) -> None:
        greedy, fine = await outcomes(pool, "eat", "fine")
        assert isinstance(greedy, ParsedPage)
        assert greedy.reason is Reason.PARSE_MEMORY
        assert isinstance(fine, ParsedPage)
        assert fine.title == "fine"

    in_pool(work, odd())


@pytest.mark.parametrize("how", ["lie", "garble"])
def test_a_child_that_no_longer_speaks_our_language_is_ended(how: str) -> None:
    async def work(pool: ParserPool) -> None:
        odd_one, fine = await outcomes(pool, how, "fine")
        assert isinstance(odd_one, ParserDied)
        assert isinstance(fine, ParsedPage)

    in_pool(work, odd())


@pytest.mark.parametrize("program", [("-c", "raise SystemExit(3)"), ("-m", "levada.no_such_module"), ("-c", "")])
def test_children_that_cannot_start_are_one_clear_error(program: tuple[str, ...], capfd: object) -> None:
    async def work(pool: ParserPool) -> None:
        answers = await outcomes(pool, "a", "b", "c")
        assert {type(answer) for answer in answers} == {LevadaError}
        assert {str(answer)[:38] for answer in answers} == {"the parser child does not start (statu"}
        with pytest.raises(LevadaError, match="does not start"):
            await pool.parse(raw("d"))
        assert pool.pids() == []

    in_pool(work, lambda: ParserPool(2, program=program))


def test_a_memory_limit_too_small_to_start_is_the_same_error(capfd: object) -> None:
    async def work(pool: ParserPool) -> None:
        with pytest.raises(LevadaError, match="does not start"):
            await pool.parse(raw("a"))

    in_pool(work, lambda: ParserPool(memory=1024))


def test_an_interpreter_that_is_not_there_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")

    async def work(pool: ParserPool) -> None:
        with pytest.raises(LevadaError, match="cannot be started"):
            await pool.parse(raw("a"))

    in_pool(work, ParserPool)


def test_no_room_for_the_desk_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("levada.parser.pool.SharedPageBuffer", no_room)

    async def work(pool: ParserPool) -> None:
        with pytest.raises(LevadaError, match=r"cannot be started: .*No space left"):
            await pool.parse(raw("a"))

    in_pool(work, ParserPool)


def test_an_asker_that_is_cancelled_holds_nobody_up() -> None:
    async def work(pool: ParserPool) -> None:
        askers = [asyncio.create_task(pool.parse(raw(f"page{n}"))) for n in range(20)]
        await asyncio.sleep(0)
        for asker in askers[::2]:
            asker.cancel()
        answers = await asyncio.gather(*askers, return_exceptions=True)
        assert [type(answer) for answer in answers] == [asyncio.CancelledError, ParsedPage] * 10

    in_pool(work, ParserPool)


def test_closing_answers_everybody_and_leaves_no_process() -> None:
    async def run() -> list[int]:
        pool = ParserPool(2, program=ODD)
        await outcomes(pool, *(f"page{n}" for n in range(20)))
        pids = pool.pids()
        asked = asyncio.gather(*(pool.parse(raw(f"wait{n}")) for n in range(20)), return_exceptions=True)
        await asyncio.sleep(0)
        await pool.close()
        assert {type(answer) for answer in await asked} == {LevadaError}
        with pytest.raises(LevadaError, match="closed"):
            await pool.parse(raw("late"))
        await pool.close()
        return pids

    pids = asyncio.run(run())
    assert pids
    assert not any(map(is_alive, pids))


def test_closing_while_a_child_starts_leaves_no_process() -> None:
    async def run() -> None:
        pool = ParserPool()
        asked = asyncio.ensure_future(pool.parse(raw("a")))
        await asyncio.sleep(0)
        await pool.close()
        with pytest.raises(LevadaError, match="closed"):
            await asked
        assert pool.pids() == []

    asyncio.run(run())


PARENT = """
import asyncio, sys
from levada.parser.pool import ParserPool
from levada.core.records import RawPage

async def main():
    pool = ParserPool(1)
    await pool.parse(RawPage("http://a.test/", b"<p>hello"))
    print(pool.pids()[0], flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_a_child_never_outlives_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        try:
            parent.kill()
            assert _ended(child)
        finally:
            os.close(child)


def _ended(pidfd: int) -> bool:
    """Waits for the process itself, not for a time; ten seconds are only so that a failure ends."""
    import select

    return bool(select.select([pidfd], [], [], 10.0)[0])


def test_a_child_that_dies_before_it_is_met_is_a_failed_start_and_holds_nobody_up() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        connect = loop.create_connection

        async def met_late(*args: object, **named: object) -> object:
            made = await connect(*args, **named)  # type: ignore[call-overload]
            await made[1].ended  # a busy machine: the child is gone before anybody looks
            return made

        loop.create_connection = met_late  # type: ignore[method-assign,assignment]
        pool = ParserPool(program=("-c", "pass"))
        async with asyncio.timeout(60):
            with pytest.raises(LevadaError, match="does not start"):
                await pool.parse(raw("page"))
            await pool.close()

    asyncio.run(run())


def test_a_parser_without_its_model_of_languages_says_so() -> None:
    async def work(pool: ParserPool) -> None:
        with pytest.raises(LevadaError, match=r"^/nowhere/languages.bin: the model .* install Levada again$"):
            await pool.parse(raw("a"))

    program = (str(Path(__file__).with_name("child_without_model.py")),)
    in_pool(work, lambda: ParserPool(1, program=program))
