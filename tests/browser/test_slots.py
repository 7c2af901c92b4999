"""Render slots: never more pages at once than there are slots, and never a page that waits for nobody."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from levada.browser.slots import RenderSlots
from tests.browser.shop import SHOP_BLOCK, shop_files
from tests.browser.tab import setup
from tests.servers.nginx import nginx
from tests.story.secrets_planted import run


@given(st.lists(st.one_of(st.integers(0, 6), st.sampled_from(["begin", "end", "cancel"])), max_size=60))
def test_slots_are_never_exceeded_and_no_page_waits_while_one_is_free(steps: list[int | str]) -> None:
    async def story() -> None:
        slots = RenderSlots(4)
        running: list[asyncio.Event] = []
        tasks: list[asyncio.Task[None]] = []

        async def job() -> None:
            async with slots.turn():
                done = asyncio.Event()
                running.append(done)
                try:
                    await done.wait()
                finally:
                    running.remove(done)

        for step in steps:
            before = len(running)
            if step == "begin":
                tasks.append(asyncio.create_task(job()))
            elif step == "end" and running:
                running[0].set()
            elif step == "cancel" and tasks:
                tasks.pop(0).cancel()
            elif isinstance(step, int):
                slots.resize(step)
            for _ in range(5):
                await asyncio.sleep(0)
            now = slots.poll()
            assert now.busy == len(running) <= max(slots.limit, before)
            assert not now.queue or now.busy >= slots.limit >= 1
        while running:
            running[0].set()
            for _ in range(5):
                await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (slots.poll().busy, slots.poll().queue) == (0, 0)
        assert slots.poll().arrived >= slots.poll().done

    asyncio.run(story())


def test_the_browser_ends_with_the_last_slot_and_a_page_gives_one_back() -> None:
    async def story() -> None:
        slots, ended = RenderSlots(2), []
        slots.on_empty = lambda: ended.append(True)
        async with slots.turn():
            slots.resize(0)
            assert (slots.limit, ended) == (1, [])
        slots.resize(0)
        slots.resize(0)
        assert (slots.limit, ended) == (0, [True])
        async with slots.turn():
            assert slots.limit == 1

    asyncio.run(story())


def test_a_crawl_that_renders_shows_the_stage_and_one_that_does_not_has_none(tmp_path: Path) -> None:
    setup()
    shop_files(tmp_path / "files")
    with nginx(tmp_path / "shop", SHOP_BLOCK.format(root=tmp_path / "files")) as port:
        settings = f'[guard]\nallow = ["127.0.0.1:{port}"]\n[politeness]\ndelay = 0\n'
        for name, rule in (("renders", f'[[site]]\nmatch = "127.0.0.1:{port}"\nrender = "auto"\n'), ("plain", "")):
            home = tmp_path / name
            home.mkdir()
            (home / "levada.toml").write_text(settings + rule)
            done = run(home, "crawl", f"http://127.0.0.1:{port}/", "--once", "--json")
            assert ('"name":"render"' in done.stdout.replace(" ", "")) is bool(rule), done.stdout
