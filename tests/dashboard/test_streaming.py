"""Events: what a watcher gets first, and who gets none."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient


@pytest.mark.parametrize("path", ["/api/v1/live/stream", "/api/v1/changes/stream"])
def test_whoever_asks_only_for_the_head_of_a_stream_gets_no_events(api: TestClient, path: str) -> None:
    answer = api.head(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.content == b""
