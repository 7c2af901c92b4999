"""What does somebody hear whose start addresses led nowhere?"""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.adapters.sqlite import SqliteStore
from levada.assemble.folder import DataFolder
from levada.cli.start_trouble import tell_trouble
from levada.errors import LevadaError, Refused
from levada.flow.settings import Settings
from levada.reasons import Reason
from levada.records import Found, How, Outcome, PageState, Refusal
from tests.cli.collection import NOW, settle, version

START = Found("https://example.org/a?b=c&d=e", "example.org", how=How.SEED, admit=True)


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
        tell_trouble(folder, [START])


def found(path: str) -> Found:
    return Found(f"https://example.org{path}", "example.org", how=How.SEED, admit=True)


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


def _leads(store: SqliteStore, start: Found, end: Found) -> None:
    away = {"state": PageState.ELSEWHERE, "reason": Reason.REDIRECTED}
    settle(store, start.url, NOW, Outcome.FIRST, leads_to=end.url, **away)  # type: ignore[arg-type]


def _settled(folder: DataFolder, state: PageState, reason: Reason | None) -> None:
    store = SqliteStore(folder.database)
    store.add([LOGIN], [], NOW)
    settle(store, LOGIN.url, NOW, Outcome.REFUSED, state=state, reason=reason)
    store.close()


def test_a_start_that_redirects_to_what_is_refused_is_told_of(
    folder: DataFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    _settled(folder, PageState.REFUSED, Reason.HTTP_4XX)
    tell_trouble(folder, [HOME, NEWS])
    assert FORBIDDEN in capsys.readouterr().err
    with pytest.raises(Refused) as caught:
        tell_trouble(folder, [NEWS])
    assert str(caught.value).startswith(FORBIDDEN)


def test_a_start_that_redirects_to_a_page_is_no_trouble(
    folder: DataFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    _settled(folder, PageState.LIVE, None)
    tell_trouble(folder, [HOME, NEWS])
    tell_trouble(folder, [NEWS])
    assert capsys.readouterr().err == ""


def test_a_start_that_redirects_in_a_circle_is_told_of(folder: DataFolder) -> None:
    store = SqliteStore(folder.database)
    store.add([LOGIN], [], NOW)
    _leads(store, LOGIN, NEWS)
    store.close()
    with pytest.raises(Refused, match=r"stored of https://example\.org/news \(redirects\): it leads in a circle"):
        tell_trouble(folder, [NEWS])


def test_a_start_that_redirects_to_what_is_kept_out_says_by_what(folder: DataFolder) -> None:
    store = SqliteStore(folder.database)
    store.add([], [Refusal(LOGIN.url, LOGIN.site, Reason.ROBOTS)], NOW)
    store.close()
    with pytest.raises(Refused, match=r"which leads to \S+/login: it was refused when it was found: robots"):
        tell_trouble(folder, [NEWS])
