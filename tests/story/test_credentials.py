"""Crawls of a site that asks for a password: nginx, over TLS, and a secret that must not be found anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from levada.core.settings import parse_settings
from tests.fetch.certificates import Authority
from tests.fetch.servers import WebServer, answer, web
from tests.servers.nginx import nginx
from tests.story.commands import contents
from tests.story.guides import guide_commands, guide_settings, typed
from tests.story.secrets_planted import leaks, run

PASSWORD = "hush-8f1c-only-for-the-blog"
PAGE = "<!doctype html><title>{0}</title><main><h1>{0}</h1><p>{1}</p></main>"


@pytest.fixture
def elsewhere() -> Iterator[WebServer]:
    with web({"/": answer(PAGE.format("Elsewhere", "Nothing secret.").encode(), "Content-Type: text/html")}) as server:
        yield server


@pytest.fixture
def blog(tmp_path: Path, elsewhere: WebServer) -> Iterator[int]:
    """An nginx that shows its pages to `me` only, and one that leads elsewhere."""
    root = tmp_path / "blog"
    root.mkdir()
    links = '<a href="/walk.html">A walk</a> <a href="/away">Away</a>'
    (root / "index.html").write_text(PAGE.format("A blog", f"Walks and channels. {links}"))
    (root / "walk.html").write_text(PAGE.format("A walk", "The path along the levada is closed until March."))
    (tmp_path / "users").write_text(f"me:{{PLAIN}}{PASSWORD}\n")
    certificate = Authority(tmp_path, "authority").files("127.0.0.1")
    block = (
        f"ssl_certificate {certificate};\nssl_certificate_key {certificate};\nroot {root};\n"
        f'auth_basic "the blog";\nauth_basic_user_file {tmp_path}/users;\n'
        f"location = /away {{ return 302 {elsewhere.url}/; }}\n"
    )
    with nginx(tmp_path / "nginx", block, tls=True) as port:
        yield port


@pytest.fixture
def home(tmp_path: Path, blog: int, elsewhere: WebServer) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "levada.toml").write_text(
        f'[guard]\nallow = ["127.0.0.1:{blog}", "{elsewhere.address}"]\n[politeness]\ndelay = 0\n'
        f'[fetch]\nca_file = "{tmp_path}/authority.pem"\n[crawl]\nscope = "any"\n'
        f'[[site]]\nmatch = "127.0.0.1:{blog}"\nuser = "me"\npassword = "env:BLOG_PASSWORD"\n'
    )
    return folder


@pytest.mark.timeout(300)
def test_a_site_with_a_password_is_crawled_and_nobody_else_learns_it(
    home: Path, blog: int, elsewhere: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLOG_PASSWORD", PASSWORD)
    start = f"https://127.0.0.1:{blog}/"
    done = run(home, "--log", "json", "crawl", start, "--once")
    assert done.returncode == 0, done.stderr
    assert {start, f"{start}walk.html", f"{elsewhere.url}/"} <= set(contents(home / "levada-data"))
    assert [each.head for each in elsewhere.exchanges if "uthorization" in each.head] == []
    assert elsewhere.exchanges
    assert leaks(home, {"the password": PASSWORD}, done.stdout + done.stderr) == []


@pytest.mark.parametrize(
    ("given", "told", "reason"),
    [
        ({}, "the variable BLOG_PASSWORD is not set: set it for the process that fetches", "credentials"),
        ({"BLOG_PASSWORD": "wrong-guess"}, "does not accept the user and password (status 401)", "login-failed"),
    ],
)
def test_without_the_right_password_the_site_rests(
    home: Path, blog: int, given: dict[str, str], told: str, reason: str
) -> None:
    start = f"https://127.0.0.1:{blog}/"
    done = run(home, "crawl", start, "--once", env=given)
    assert told in done.stderr
    assert "wrong-guess" not in done.stderr + done.stdout
    assert contents(home / "levada-data") == {}
    assert reason in run(home, "why", start).stdout


@pytest.mark.timeout(300)
def test_a_token_and_a_key_in_a_header_go_to_their_site_and_nobody_else_learns_them(
    tmp_path: Path, elsewhere: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, key = "hush-51ea-a-bearer-token", "hush-6d90-a-key-in-a-header"
    monkeypatch.setenv("TOKEN", token)
    (tmp_path / "key").write_text(key + "\n")
    root = tmp_path / "root"
    root.mkdir()
    (root / "index.html").write_text(PAGE.format("In", 'By the levada. <a href="/away">Away</a>'))
    certificate = Authority(tmp_path, "authority").files("127.0.0.1")
    block = (
        f"ssl_certificate {certificate};\nssl_certificate_key {certificate};\nroot {root};\n"
        f'if ($http_authorization != "Bearer {token}") {{ return 401; }}\n'
        f'if ($http_x_api_key != "{key}") {{ return 403; }}\n'
        f"location = /away {{ return 302 {elsewhere.url}/; }}\n"
    )
    home = tmp_path / "home"
    home.mkdir()
    with nginx(tmp_path / "nginx", block, tls=True) as port:
        start = f"https://127.0.0.1:{port}/"
        (home / "levada.toml").write_text(
            f'[guard]\nallow = ["127.0.0.1:{port}", "{elsewhere.address}"]\n[politeness]\ndelay = 0\n'
            f'[fetch]\nca_file = "{tmp_path}/authority.pem"\n[crawl]\nscope = "any"\n'
            f'[[site]]\nmatch = "127.0.0.1:{port}"\nbearer = "env:TOKEN"\n'
            f'headers = {{ X-Api-Key = "file:{tmp_path}/key" }}\n'
        )
        done = run(home, "--log", "json", "crawl", start, "--once")
        assert done.returncode == 0, done.stderr
        assert {start, f"{elsewhere.url}/"} <= set(contents(home / "levada-data"))
        heads = [each.head.lower() for each in elsewhere.exchanges]
        assert heads
        assert not any("authorization" in head or "x-api-key" in head for head in heads)
        assert leaks(home, {"the token": token, "the key": key}, done.stdout + done.stderr) == []


def test_the_guide_does_what_it_says(home: Path, blog: int, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = guide_settings("log-in")[0]
    settings = (home / "levada.toml").read_text().partition("[[site]]")[0]
    (home / "levada.toml").write_text(settings + theirs.replace("blog.example.org", f"127.0.0.1:{blog}"))
    done = [
        typed(command, home, {"'...'": PASSWORD, "blog.example.org": f"127.0.0.1:{blog}"})
        for command in ("; ".join(guide_commands("log-in")[:2]), *guide_commands("log-in")[2:])
    ]
    assert [each.returncode for each in done] == [0, 0], done
    assert f"https://127.0.0.1:{blog}/walk.html" in contents(home / "levada-data")
    assert f'site.127.0.0.1:{blog}.password  "env:BLOG_PASSWORD"' in done[1].stdout


@pytest.mark.parametrize("place", range(len(guide_settings("log-in"))))
def test_every_rule_of_the_guide_can_be_written(place: int) -> None:
    assert parse_settings(guide_settings("log-in")[place], "the guide").site
