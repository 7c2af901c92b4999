"""Events: what a watcher gets first, and who gets none."""

from __future__ import annotations

import asyncio

import pytest
from starlette.testclient import TestClient

from levada.serve.status import LiveAnswer, LiveLine, StatusAnswer


@pytest.mark.parametrize("path", ["/api/v1/live/stream", "/api/v1/changes/stream"])
def test_whoever_asks_only_for_the_head_of_a_stream_gets_no_events(api: TestClient, path: str) -> None:
    answer = api.head(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.content == b""


def test_a_new_watcher_is_not_told_how_it_was_when_somebody_watched_before() -> None:
    world = ["long ago"]

    def look() -> LiveAnswer:
        return LiveAnswer(StatusAnswer("1", world[0], "levada-data", False, None, None), [])

    async def watched() -> list[bytes]:
        line = LiveLine(look)
        running = asyncio.create_task(line.run())
        for now in ("long ago", "today"):
            world[0] = now
            events = line.listen()
            seen = [await anext(events), await anext(events)]
            await events.aclose()
        running.cancel()
        return seen

    seen = asyncio.run(watched())
    assert b"long ago" not in seen[0]
    assert b"today" in seen[1]
