"""Beyond the loopback nothing is answered without a token."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.routing import Route

from levada.serve.access import Access, Tokens
from levada.serve.app import make_app
from levada.serve.view import View
from tests.serve.conftest import Open

TOKENS = Tokens("admin-secret", "reader-secret")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
OPEN = ("/api/v1/health", "/embed/search.js")  # the script is the same for everybody, and holds nothing of ours


def paths() -> list[str]:
    app = make_app(View(Path("nowhere")), Access(TOKENS, frozenset(), lambda: 0.0))
    routes = app._app.routes  # type: ignore[attr-defined]
    return sorted({route.path.replace("{name}", "app.js") for route in routes if isinstance(route, Route)})


@pytest.mark.parametrize("path", paths())
def test_every_route_and_method_needs_a_token(open_server: Open, data: Path, path: str) -> None:
    server = open_server(data, TOKENS, "192.0.2.7")
    for method in METHODS:
        answer = server.request(method, path)
        is_open = path in OPEN and method in ("GET", "HEAD", "OPTIONS")
        assert is_open or answer.status_code in (401, 403), (method, path, answer.status_code)


def test_a_reader_reads_and_changes_nothing(open_server: Open, data: Path) -> None:
    server = open_server(data, TOKENS, "192.0.2.7")
    reader = {"authorization": "Bearer reader-secret"}
    assert server.get("/api/v1/sites", headers=reader).status_code == 200
    assert server.post("/api/v1/pause", headers=reader).status_code == 403
    assert server.post("/api/v1/pause", headers={"authorization": "Bearer admin-secret"}).status_code == 202


def test_a_person_logs_in_by_a_page_that_tells_nothing(open_server: Open, data: Path) -> None:
    server = open_server(data, TOKENS, "192.0.2.7")
    page = server.get("/", headers={"accept": "text/html"})
    assert page.status_code == 401
    assert "<script" not in page.text
    assert "This server needs a token." in page.text
    assert page.headers["referrer-policy"] == "same-origin"  # else browsers post the form with `Origin: null`
    wrong = server.post("/login", data={"token": "guess"}, follow_redirects=False)
    assert wrong.status_code == 401
    assert "That token is not right." in wrong.text
    right = server.post("/login", data={"token": "admin-secret"}, follow_redirects=False)
    assert right.status_code == 303
    cookie = right.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "admin-secret" not in cookie
    assert server.get("/", headers={"accept": "text/html"}).status_code == 200
    assert server.post("/logout", follow_redirects=False).status_code == 303
    assert server.get("/api/v1/status").status_code == 401


def test_a_login_form_of_many_fields_is_refused(open_server: Open, data: Path) -> None:
    answer = open_server(data, TOKENS, "192.0.2.7").post("/login", data=dict.fromkeys("abcde", "1"))
    assert answer.status_code == 400
    assert "at most 4 fields" in answer.text


def test_a_long_login_that_does_not_say_so_is_cut_off(open_server: Open, data: Path) -> None:
    pieces = (b"x" * 65_536 for _ in range(160))
    answer = open_server(data, TOKENS, "192.0.2.7").post("/login", content=pieces)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too-large")
