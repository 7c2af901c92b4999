"""Crawls of a web application with a login, whose sessions end again and again."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from levada.store.sqlite import SqliteStore
from tests.fetch.certificates import Authority
from tests.servers.member_site import FORM, MemberSite, member_site
from tests.story.commands import contents
from tests.story.guides import guide_settings
from tests.story.secrets_planted import leaks, run
from tests.story.test_several_processes import process, wait_for

pytest_plugins = ["tests.servers.fixtures"]

PASSWORD = "hush-77c2-only-for-members"


def home_of(tmp_path: Path, site: MemberSite, *more: str, check: str = "a.log-out") -> Path:
    """A folder with the recipe of the guide, for this site and with this check."""
    folder = tmp_path / "home"
    folder.mkdir(exist_ok=True)
    (login,) = (block for block in guide_settings("log-in") if "login = " in block)
    assert ', check = "a.log-out"' in login
    login = login.replace("members.example.org", f"127.0.0.1:{site.port}")
    login = login.replace(', check = "a.log-out"', f", check = {check!r}" if check else "")
    (folder / "levada.toml").write_text(
        f'[guard]\nallow = ["127.0.0.1:{site.port}"]\n[politeness]\ndelay = 0\n'
        f'[fetch]\nca_file = "{tmp_path}/authority.pem"\n' + login + "\n".join(more)
    )
    return folder


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return Authority(tmp_path, "authority").files("127.0.0.1")


def everything_stored(data: Path) -> str:
    store = SqliteStore.open_reader(data / "levada.db")
    try:
        urls = list(contents(data))
        return "".join(repr(version) for url in urls for version in store.versions(url)) + repr(contents(data))
    finally:
        store.close()


@pytest.mark.parametrize("in_place", [False, True], ids=["by redirect", "in place"])
@pytest.mark.parametrize("check", ["", "a.log-out", "text:Log out"])
def test_sessions_that_end_are_renewed_and_no_login_form_is_stored(
    in_place: bool, check: str, tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMBER_PASSWORD", PASSWORD)
    with member_site(certificate, password=PASSWORD, in_place=in_place) as site:
        home = home_of(tmp_path, site, check=check)
        done = run(home, "crawl", f"{site.url}/", "--once")
        assert done.returncode == 0, done.stderr
        stored = contents(home / "levada-data")
        assert set(stored) == {f"{site.url}/"} | {f"{site.url}/page/{number}" for number in range(60)}
        assert FORM not in everything_stored(home / "levada-data")
        assert site.ended >= 2
        assert site.logins <= site.ended + 2  # and one more for the page that no login opens
        assert site.wrong == 0
        why = run(home, "why", f"{site.url}/vault")
        assert "login-failed" in why.stdout
        assert "rule" in run(home, "why", f"{site.url}/logout").stdout


@pytest.mark.timeout(300)
def test_a_session_goes_on_in_the_next_crawl_and_nobody_else_reads_it(
    tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMBER_PASSWORD", PASSWORD)
    with member_site(certificate, password=PASSWORD, pages=5, lasts=1_000) as site:
        home = home_of(tmp_path, site, 'exclude = ["/vault"]')
        first = run(home, "--log", "json", "crawl", f"{site.url}/", "--once")
        second = run(home, "check", f"{site.url}/page/1")
        assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
        assert site.logins == 1
        (file,) = (home / "levada-data" / "cookies").iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        secrets = {"the password": PASSWORD} | {f"cookie {at}": each for at, each in enumerate(site.cookies) if each}
        assert len(secrets) > 2
        assert leaks(home, secrets, first.stdout + first.stderr + second.stdout + second.stderr) == []


@pytest.mark.parametrize(
    ("given", "check", "said", "reason"),
    [
        ("wrong-guess", "", "the site shows the login form again: check the fields username, password", "login-failed"),
        ("", "", "the variable MEMBER_PASSWORD is not set", "credentials"),
        (PASSWORD, ".nowhere", "does not show .nowhere: correct it, or the fields", "login-failed"),
    ],
)
def test_a_login_that_fails_lets_the_site_rest(
    given: str, check: str, said: str, reason: str, tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMBER_PASSWORD", given)
    with member_site(certificate, password=PASSWORD) as site:
        home = home_of(tmp_path, site, check=check)
        done = run(home, "crawl", f"{site.url}/", "--once")
        assert said in done.stderr
        assert contents(home / "levada-data") == {}
        assert reason in run(home, "why", f"{site.url}/").stdout
        assert (site.wrong + site.logins) <= 1  # it is not hammered
        if given:
            assert given not in done.stderr + done.stdout


def test_several_workers_log_in_each_for_itself(
    tmp_path: Path, certificate: Path, rabbitmq: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMBER_PASSWORD", PASSWORD)
    monkeypatch.setenv("LEVADA_RABBITMQ", rabbitmq)
    with member_site(certificate, password=PASSWORD, pages=40) as site:
        home = home_of(tmp_path, site, 'exclude = ["/vault"]')
        words = ("control", "--data", "levada-data", "--fetch", "2,2", "--catalog", "1,1", "--start", f"{site.url}/")
        with process(*words, folder=home):
            wait_for(home / "levada-data" / "levada.db", 41, whole=True)
        assert FORM not in everything_stored(home / "levada-data")
        assert len(contents(home / "levada-data")) == 41
        assert site.ended >= 1
        assert site.wrong == 0
        assert not list((home / "levada-data").glob("cookies/*"))
