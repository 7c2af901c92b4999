"""Answers from the warm map are those of the store, and every load that is known is shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser
from starlette.testclient import TestClient

from levada.bulk.loads import LoadRequest, LoadWatch, load_status, note_load
from levada.collection.warm_map import WarmPages, maps_of, warm, warm_request
from levada.core.errors import LevadaError
from levada.core.folder import DataFolder
from levada.core.records import Outcome
from levada.store.sqlite import SqliteStore
from tests.cli.collection import BLOCKED, DOWN, ESCAPE, FRONT, GONE, NEW, NOW, PLAIN, SCRIPT, VAPUR, settle, version
from tests.manual_clock import ManualClock
from tests.needs import missing
from tests.serve.browser_session import Walk, browser, chromium, open_page
from tests.serve.conftest import Open
from tests.serve.served import served

V1 = "/api/v1"
PAGES = (FRONT, VAPUR, SCRIPT, GONE, BLOCKED, DOWN, NEW, ESCAPE, PLAIN)
TYPED = ("example.org", "EXAMPLE.org/vapur", "plain.example:8080", "https://example.org/none", "ftp://x", "%")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads are also looked for beside whoever started the server."""
    monkeypatch.chdir(tmp_path)


def filled(data: Path, **more: Any) -> None:
    folder = DataFolder(data)
    warm(folder, msgspec.structs.replace(warm_request(folder), **more), lambda status: None)


def answers(server: TestClient) -> list[tuple[int, bytes, str | None]]:
    told = [server.get(f"{V1}/page", params={"url": url}) for url in (*PAGES, *TYPED)]
    return [(answer.status_code, answer.content, answer.headers.get("etag")) for answer in told]


def test_a_warm_answer_is_the_very_same(open_server: Open, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cold = answers(open_server(data))
    filled(data)
    given: list[str] = []
    asked = WarmPages.summary

    def counted(self: WarmPages, url: str) -> Any:
        summary = asked(self, url)
        given.extend([url] if summary else [])
        return summary

    monkeypatch.setattr(WarmPages, "summary", counted)
    server = open_server(data)
    assert answers(server) == cold
    assert answers(server) == cold  # also from what was found right before
    assert set(given) == {*PAGES} - {NEW}


def test_what_was_visited_since_is_told_at_once(open_server: Open, data: Path) -> None:
    filled(data)
    server = open_server(data)
    assert server.get(f"{V1}/page", params={"url": PLAIN}).json()["visits"] == 1
    with closing(SqliteStore(data / "levada.db")) as store:
        settle(store, PLAIN, NOW + 1, Outcome.CHANGED, new=version("Other", "all other words", 0.1))
    told = server.get(f"{V1}/page", params={"url": PLAIN}).json()
    assert (told["visits"], told["title"], told["version"]) == (2, "Other", 2)


def test_a_map_that_is_broken_changes_no_answer(open_server: Open, data: Path) -> None:
    cold = answers(open_server(data))
    filled(data)
    (maps_of(DataFolder(data)) / "pages" / "data.mdb").write_bytes(b"no map" * 1000)
    assert answers(open_server(data)) == cold


def test_without_a_load_there_is_none(api: TestClient) -> None:
    told = api.get(f"{V1}/loads").json()
    assert told["loads"] == []
    assert len(told["folders"]) == 2


def test_a_warm_map_is_a_load_that_is_published(open_server: Open, data: Path) -> None:
    filled(data, task_rows=3)
    (told,) = open_server(data).get(f"{V1}/loads").json()["loads"]
    assert (told["name"], told["state"], told["trouble"], told["generation"]) == ("pages", "published", "", 1)
    assert (told["rows"], told["share"], told["seconds_left"]) == (8, 1.0, None)
    assert told["tasks"]["done"] > 1
    assert told["tasks"]["waiting"] == told["tasks"]["leased"] == 0
    assert sum(each["rows"] for each in told["instances"]) == 8
    assert told["published"]["keys"] == 8
    assert told["source"] == f"levada://{data.resolve()}"


def test_a_load_under_way_says_how_far_it_is(open_server: Open, data: Path) -> None:
    half_way(data)
    (told,) = open_server(data).get(f"{V1}/loads").json()["loads"]
    assert told["state"] == "running"
    assert 0 < told["share"] < 1
    assert told["seconds_left"] > 0
    assert told["published"] is None


def half_way(data: Path) -> None:
    class Stop(Exception):
        pass

    def stop(status: Any) -> None:
        if status.done.tasks and status.waiting + status.leased:
            raise Stop

    folder = DataFolder(data)
    slowly = msgspec.structs.replace(warm_request(folder), task_rows=2, rows_per_second=5.0)
    with pytest.raises(Stop):
        warm(folder, slowly, stop)


def test_loads_noted_beside_the_server_are_shown_and_passwords_are_not(open_server: Open, data: Path) -> None:
    away = "redis://me:hunter2@127.0.0.1:1/0"
    note_load(Path("levada-maps"), LoadRequest("postgresql://a:s3cret@db/x", "t", "k", "v", "names", away))
    note_load(Path("levada-maps"), LoadRequest("sqlite:///shop.db", "t", "k", "v", "empty", "levada-maps"))
    answer = open_server(data).get(f"{V1}/loads")
    empty, names = answer.json()["loads"]
    assert (empty["name"], empty["state"], empty["trouble"]) == ("empty", "unknown", "")
    assert (names["name"], names["state"], names["source"]) == ("names", "unknown", "postgresql://db/x")
    assert names["trouble"]
    assert "hunter2" not in answer.text
    assert "s3cret" not in answer.text


def test_notes_that_are_damaged_are_told_and_do_not_hide_the_others(open_server: Open, data: Path) -> None:
    filled(data)
    Path("levada-maps").mkdir()
    Path("levada-maps/loads.json").write_text("{")
    damaged, known = open_server(data).get(f"{V1}/loads").json()["loads"]
    assert (damaged["state"], known["name"]) == ("unknown", "pages")
    assert "is damaged" in damaged["trouble"]


def test_while_one_asks_others_are_told_what_was_known(data: Path) -> None:
    filled(data)
    clock = ManualClock(0.0)
    watch = LoadWatch([maps_of(DataFolder(data))], clock)
    (known,) = watch.poll()
    clock.advance(10.0)
    assert watch._asking.acquire(blocking=False)
    assert watch.poll() == [known]


def test_a_broken_off_warm_is_found_by_its_name(data: Path) -> None:
    half_way(data)
    status, manifest = load_status(warm_request(DataFolder(data)))
    assert status is not None
    assert manifest is None
    filled(data, task_rows=2)
    status, manifest = load_status(warm_request(DataFolder(data)))
    assert manifest is not None
    assert manifest.generation == 1


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    if chromium() is None:
        missing("no Chromium is installed: run tests/servers/install.sh as root, or install it yourself")
    with browser() as started:
        yield started


@pytest.mark.timeout(120)
def test_the_view_says_what_to_do_and_then_shows_the_loads(opened: Browser, data: Path) -> None:
    with served(data) as address:
        with open_page(opened, "wide") as page:
            walk = Walk(page, address)
            walk.go("loads")
            page.wait_for_selector("main .note")
            assert "levada warm" in page.locator("main").inner_text()
            assert walk.complaints == []
        filled(data)
        away = LoadRequest("sqlite:///shop.db", "t", "k", "v", "names", "redis://127.0.0.1:1/0")
        note_load(maps_of(DataFolder(data)), away)
        for size in ("wide", "narrow"):
            with open_page(opened, size, "dark" if size == "narrow" else "light") as page:
                walk = Walk(page, address)
                walk.go("loads")
                page.wait_for_function("() => document.querySelectorAll('main .card').length === 2")
                assert "whole: everybody reads it" in page.locator("main").inner_text()
                assert page.locator(".cells i.busy").count() > 0
                assert page.locator(".card .note.error").count() == 1
                assert not walk.is_too_wide()
                if wanted := os.environ.get("LEVADA_PICTURES"):
                    walk.picture(Path(wanted) / f"loads-{size}.png")
                assert walk.complaints == []


def test_errors_of_the_map_never_reach_who_asks(open_server: Open, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(data)

    def fails(*_: object) -> None:
        raise LevadaError("no")

    monkeypatch.setattr("levada.collection.warm_map.open_page_summaries", fails)
    assert open_server(data).get(f"{V1}/page", params={"url": VAPUR}).status_code == 200
