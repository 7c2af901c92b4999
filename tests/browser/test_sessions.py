"""An application behind a login: its scripts have the session of the crawl, and no login form is ever stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.browser.tab import setup
from tests.fetch.servers import Answer, Exchange, WebServer, answer, web
from tests.story.commands import contents
from tests.story.secrets_planted import leaks, run

HTML, JSON = "Content-Type: text/html; charset=utf-8", "Content-Type: application/json"
TOKEN, PASSWORD = "session-5d1f8a", "hush-77c1-of-the-club"
SHELL = (
    "<!doctype html><title>The club</title><noscript>JavaScript, please</noscript><div id=app></div><script>"
    "fetch('/api' + location.pathname).then((r) => r.ok ? r.json() : {login: true}).then((told) => {"
    "  app.innerHTML = told.login ? '<form action=/login method=post><h1>Log in</h1><input name=user>"
    "<input name=password type=password></form>' : `<main><h1>${told.title}</h1><p>${told.text}</p>"
    "<a class=out href=/logout>Log out</a> <a href=/minutes>Minutes</a></main>`; });</script>"
)


class Club:
    """It forgets its members after so many questions."""

    def __init__(self, questions: int) -> None:
        self.questions, self.left, self.logins = questions, 0, 0

    def answers(self) -> dict[str, Answer]:
        return {
            "/": answer(SHELL.encode(), HTML),
            "/minutes": answer(SHELL.encode(), HTML),
            "/api/": self._api,
            "/api/minutes": self._api,
            "/login": self._login,
        }

    def _api(self, exchange: Exchange) -> None:
        if TOKEN not in (exchange.header("cookie") or "") or not self.left:
            exchange.send(answer(b'{"login": true}', JSON, status="401 Unauthorized"))
            return
        self.left -= 1
        told = {
            "title": f"Members at {exchange.path}",
            "text": "What only members of the club may read of the levada.",
        }
        exchange.send(answer(json.dumps(told).encode(), JSON))

    def _login(self, exchange: Exchange) -> None:
        if exchange.head.startswith("POST"):
            self.left, self.logins = self.questions, self.logins + 1
            exchange.send(
                answer(b"", f"Set-Cookie: club={TOKEN}; Path=/; HttpOnly", "Location: /", status="303 See Other")
            )
            return
        form = b"<form action=/login method=post><input name=user><input name=password type=password></form>"
        exchange.send(answer(form, HTML))


def settings(server: WebServer) -> str:
    return (
        f'[guard]\nallow = ["{server.address}"]\n[politeness]\ndelay = 0\nmax_concurrent = 1\n'
        f'[[site]]\nmatch = "{server.address}"\nrender = "always"\nplain_http = true\n'
        'login = { url = "/login", fields = { user = "ada", password = "env:CLUB_PASSWORD" }, check = "a.out" }\n'
    )


@pytest.mark.timeout(300)
def test_scripts_have_the_session_and_an_expired_one_is_renewed(tmp_path: Path) -> None:
    setup()
    club = Club(questions=2)
    with web(club.answers()) as server:
        (tmp_path / "levada.toml").write_text(settings(server))
        secret = {"CLUB_PASSWORD": PASSWORD}
        done = run(tmp_path, "crawl", f"{server.url}/", "--once", env=secret)
        assert done.returncode == 0, done.stderr
        for _ in range(2):
            again = run(tmp_path, "check", "--all", env=secret)
            assert again.returncode == 0, again.stderr
    stored = contents(tmp_path / "levada-data")
    assert set(stored) == {f"{server.url}/", f"{server.url}/minutes"}
    for version, text in stored.values():
        assert version == 1
        assert "What only members of the club may read" in text
        assert "Log in" not in text
    assert club.logins >= 2
    assert leaks(tmp_path, {"the password": PASSWORD, "the session": TOKEN}, done.stdout + done.stderr) == []
