"""Messages for start URLs that led nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from levada.collection.starts import check_starts
from levada.core.errors import LevadaError, Refused
from levada.core.folder import DataFolder
from levada.core.reasons import Reason
from levada.core.records import DiscoveredBy, FoundUrl, Outcome, PageState, Refusal
from levada.core.settings import Settings
from levada.pages.compression import pack_content
from levada.store.sqlite import SqliteStore
from tests.cli.collection import NOW, settle, version

START = FoundUrl("https://example.org/a?b=c&d=e", "example.org", how=DiscoveredBy.SEED, admit=True)


@pytest.mark.parametrize(
    ("state", "reason", "told"),
    [
        (PageState.FAILED, Reason.SECONDS, r"nothing is stored of \S+ \(seconds\): "),
        (PageState.ELSEWHERE, Reason.REDIRECTED, "the start addresses lead on, but nothing could be stored: "),
    ],
)
def test_a_command_that_says_more_names_the_address_and_the_folder(
    tmp_path: Path, state: PageState, reason: Reason, told: str
) -> None:
    folder = DataFolder(tmp_path / "my data")
    folder.make()
    folder.save_settings(Settings())
    store = SqliteStore(folder.database)
    try:
        store.add([START], [], NOW)
        settle(store, START.url, NOW, Outcome.FIRST, state=state, reason=reason)
    finally:
        store.close()
    typed = rf"levada why '{START.url.replace('?', '[?]')}' --data '{folder.path}' says more$"
    with pytest.raises(LevadaError, match=told + typed):
        check_starts(folder.path, [START])


def found(path: str) -> FoundUrl:
    return FoundUrl(f"https://example.org{path}", "example.org", how=DiscoveredBy.SEED, admit=True)


HOME, NEWS, LOGIN = found("/"), found("/news"), found("/login")
FORBIDDEN = "nothing is stored of https://example.org/news, which leads to https://example.org/login (http-4xx): "


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """`/news` is a redirect to what each test makes of it."""
    folder = DataFolder(tmp_path / "data")
    folder.make()
    folder.save_settings(Settings())
    store = SqliteStore(folder.database)
    store.add([HOME, NEWS], [], NOW)
    settle(store, HOME.url, NOW, Outcome.FIRST, new=version("home", "some words"))
    _leads(store, NEWS, LOGIN)
    store.close()
    return folder


def _leads(store: SqliteStore, start: FoundUrl, end: FoundUrl) -> None:
    away = {"state": PageState.ELSEWHERE, "reason": Reason.REDIRECTED}
    settle(store, start.url, NOW, Outcome.FIRST, leads_to=end.url, **away)  # type: ignore[arg-type]


def _result_of(folder: DataFolder, state: PageState, reason: Reason | None) -> None:
    store = SqliteStore(folder.database)
    store.add([LOGIN], [], NOW)
    settle(store, LOGIN.url, NOW, Outcome.REFUSED, state=state, reason=reason)
    store.close()


def test_a_start_that_redirects_to_what_is_refused_is_told_of(folder: DataFolder) -> None:
    _result_of(folder, PageState.REFUSED, Reason.HTTP_4XX)
    (sentence,) = check_starts(folder.path, [HOME, NEWS])
    assert sentence.startswith(FORBIDDEN)
    with pytest.raises(Refused) as caught:
        check_starts(folder.path, [NEWS])
    assert str(caught.value).startswith(FORBIDDEN)


def test_a_start_that_redirects_to_a_page_is_no_trouble(folder: DataFolder) -> None:
    _result_of(folder, PageState.LIVE, None)
    assert check_starts(folder.path, [HOME, NEWS]) == []
    assert check_starts(folder.path, [NEWS]) == []


def test_a_start_that_redirects_in_a_circle_is_told_of(folder: DataFolder) -> None:
    store = SqliteStore(folder.database)
    store.add([LOGIN], [], NOW)
    _leads(store, LOGIN, NEWS)
    store.close()
    with pytest.raises(Refused, match=r"stored of https://example\.org/news \(redirects\): it leads in a circle"):
        check_starts(folder.path, [NEWS])


def test_a_start_that_redirects_to_what_is_kept_out_says_by_what(folder: DataFolder) -> None:
    store = SqliteStore(folder.database)
    store.add([], [Refusal(LOGIN.url, LOGIN.site, Reason.ROBOTS)], NOW)
    store.close()
    with pytest.raises(Refused, match=r"which leads to \S+/login: it was refused when it was found: robots"):
        check_starts(folder.path, [NEWS])


def test_a_start_that_only_scripts_fill_is_told_of_unless_a_rule_says_how_it_is_read(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    folder.make()
    folder.save_settings(Settings())
    store = SqliteStore(folder.database)
    shell = b"<!doctype html><title>Shop</title><div id=app></div><script src=/app.js></script>"
    store.add([HOME], [], NOW)
    settle(
        store, HOME.url, NOW, Outcome.FIRST, new=replace(version("shop", ""), content_zstd=pack_content(b"", shell, 3))
    )
    store.close()
    (sentence,) = check_starts(folder.path, [HOME])
    assert sentence == (
        "https://example.org/ is empty until scripts fill it: levada sites set example.org render=auto "
        f"--data {folder.path}, then levada check https://example.org/ --data {folder.path}"
    )
    for render in ("never", "auto"):
        folder.save_settings(Settings().replace({"site.example.org.render": render}))
        assert check_starts(folder.path, [HOME]) == []
