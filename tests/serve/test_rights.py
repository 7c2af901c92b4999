"""Every operation and page of the server, asked by every role and scope: the table of rights is what happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

from levada.accounts.accounts import Accounts, Actor, KeyOptions
from levada.accounts.records import ROLE_RIGHTS, ROLES, SCOPE_RIGHTS, Right
from levada.serve.access import Access, Tokens
from levada.serve.app import OPERATIONS, make_app, make_shared_app
from levada.serve.operations import API
from levada.serve.rights import NEEDS, right_for
from levada.serve.view import View

BY = Actor("tester", "command line", "here")
PASSWORD = "correct horse battery"
HERE = {"host": "127.0.0.1:8400"}
# What each may do, written out a second time: a change of the table of roles must be wanted here too.
MAY = {
    "reader": {"search", "read", "metrics"},
    "editor": {"search", "read", "metrics", "control"},
    "admin": {"search", "read", "metrics", "control", "admin"},
}
SCOPES = {
    "search": {"search"},
    "read": {"search", "read", "metrics"},
    "metrics": {"metrics"},
    "control": {"control"},
    "admin": {"search", "read", "metrics", "control", "admin"},
}


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Accounts:
    made = Accounts(tmp_path_factory.mktemp("access") / "access.db")
    for role in ROLES:
        made.add_user(role, role, BY, openid=f"{role}@example.org")
    return made


def routes(app: object) -> set[str]:
    found = app._app.routes  # type: ignore[attr-defined]
    return {
        f"{method} {route.path}"
        for route in found
        if isinstance(route, Route)
        for method in (route.methods or {"GET"}) - {"HEAD"}
    }


def test_the_table_names_every_route_and_no_other() -> None:
    access = Access(Tokens(), frozenset(), lambda: 0.0)
    whole = routes(make_app(View(Path("nowhere")), access))
    shared = routes(make_shared_app({"a": View(Path("a")), "b": View(Path("b"))}, access))
    openid = {"GET /login/openid", "GET /login/openid/callback"}
    assert whole | shared | openid == set(NEEDS)
    assert {f"{each.method} {API}{each.path}" for each in OPERATIONS} <= set(NEEDS)


def test_what_is_not_in_the_table_is_for_administrators() -> None:
    assert right_for("GET", "/api/v1/forgotten") is Right.ADMIN
    assert right_for("DELETE", "/api/v1/search") is Right.ADMIN
    assert right_for("HEAD", "/api/v1/search") is Right.SEARCH


def test_roles_and_scopes_have_exactly_these_rights() -> None:
    def names(rights: frozenset[Right]) -> set[str]:
        return {right.value for right in rights} - {"open"}

    assert {name: names(ROLE_RIGHTS[role]) for name, role in ROLES.items()} == MAY
    assert {name: names(rights) for name, rights in SCOPE_RIGHTS.items()} == SCOPES


@pytest.mark.parametrize("operation", sorted(NEEDS))
def test_each_is_open_to_those_with_the_right_and_to_nobody_else(accounts: Accounts, operation: str) -> None:
    method, path = operation.split()
    need = NEEDS[operation].value
    door = Access(Tokens(), frozenset(), lambda: 0.0, accounts)

    def status(headers: dict[str, str], client: str) -> int:
        refused = door.decide(method, path, HERE | headers, client).refused
        return refused.status if refused else 200

    for role, rights in MAY.items():
        session = accounts.log_in_identity([f"{role}@example.org"], "here")
        wanted = 200 if need in rights or need == "open" else 403
        assert status({"cookie": f"levada_session={session}"}, "a") == wanted, role
    for scope, rights in SCOPES.items():
        name = f"{scope}-{method}-{path.strip('/{}').replace('/', '-').replace('{', '')}"
        _, secret = accounts.add_key(name, KeyOptions(scopes=[scope]), BY)
        wanted = 200 if need in rights or need == "open" else 403
        assert status({"authorization": f"Bearer {secret}"}, "b") == wanted, scope
    is_open = need == "open" and operation != "POST /logout"  # which only those who are logged in can ask for
    assert status({}, "c") == (200 if is_open else 401)


def served(path: Path, accounts: Accounts, *, now: float = 0.0, **views: Path) -> TestClient:
    clock = lambda: now  # noqa: E731
    if views:
        shown = {name: View(where, name=name, accounts=accounts) for name, where in views.items()}
        app = make_shared_app(shown, Access(Tokens(), frozenset(), clock, accounts, tuple(shown)))
    else:
        app = make_app(View(path, accounts=accounts), Access(Tokens(), frozenset(), clock, accounts, (path.name,)))
    return TestClient(app, base_url="http://127.0.0.1:8400", raise_server_exceptions=False)


def people(folder: Path) -> Accounts:
    made = Accounts(folder / "access.db")
    made.add_user("ada", "admin", BY, password=PASSWORD)
    made.add_user("eve", "reader", BY, password=PASSWORD)
    return made


def log_in(client: TestClient, name: str) -> None:
    form = {"name": name, "password": PASSWORD}
    assert client.post("/login", data=form, follow_redirects=False).status_code == 303


def test_a_user_logs_in_by_a_page_works_and_logs_out(data: Path) -> None:
    with served(data, people(data)) as client:
        page = client.get("/", headers={"accept": "text/html"})
        assert (page.status_code, "Log in to go on." in page.text, "<script" in page.text) == (401, True, False)
        wrong = client.post("/login", data={"name": "eve", "password": "something else"})
        assert (wrong.status_code, "That name or password is not right." in wrong.text) == (401, True)
        log_in(client, "eve")
        me = client.get("/api/v1/me").json()
        assert (me["name"], me["kind"], me["role"]) == ("eve", "user", "reader")
        refused = client.post("/api/v1/pause").json()["error"]
        assert refused == {"code": "no-right", "message": "eve is a reader, and this needs an editor"}
        assert client.post("/logout", follow_redirects=False).status_code == 303
        assert client.get("/api/v1/me").status_code == 401


def test_a_session_outlives_the_server_and_ends_with_the_password(data: Path) -> None:
    accounts = people(data)
    with served(data, accounts) as first:
        log_in(first, "eve")
        cookie = first.cookies["levada_session"]
    again = Accounts(data / "access.db")
    with served(data, again) as second:
        second.cookies.set("levada_session", cookie)
        assert second.get("/api/v1/me").json()["name"] == "eve"
        accounts.set_role("eve", "editor", BY)
        assert second.get("/api/v1/me").json()["role"] == "editor"
        accounts.set_password("eve", "another horse battery", BY)
        assert second.get("/api/v1/me").status_code == 401


def test_what_is_done_is_in_the_log_without_secrets(data: Path) -> None:
    accounts = people(data)
    with served(data, accounts) as client:
        log_in(client, "ada")
        asked = {"urls": ["https://example.org/path?token=hidden"]}
        client.post("/api/v1/seeds", json=asked)
        client.post("/api/v1/page/try", json={"url": "https://example.org/", "live": False})  # changes nothing
        made = client.post("/api/v1/keys", json={"name": "deploy", "scopes": ["control"]}).json()
        client.post("/api/v1/pause", headers={"authorization": f"Bearer {made['secret']}"})
        log_in(client, "eve")
        client.put("/api/v1/budget", json={"per_hour": 5})
        log_in(client, "ada")
        lines = client.get("/api/v1/audit").json()["entries"]
    told = [(line["who"], line["action"], line["object"], line["outcome"]) for line in reversed(lines)][3:-1]
    assert told == [
        ("ada", "POST /seeds", "https://example.org/path", "done"),
        ("ada", "key added", "deploy (control)", "done"),
        ("deploy", "POST /pause", "", "done"),
        ("eve", "log in", "", "done"),
        ("eve", "PUT /budget", "", "refused: no-right"),
    ]
    assert "hidden" not in str(lines)
    assert made["secret"] not in str(lines)
    assert {line["origin"] for line in lines} == {"here", "testclient"}


def test_users_and_keys_are_managed_over_http(data: Path) -> None:
    with served(data, people(data)) as client:
        log_in(client, "ada")
        added = client.post("/api/v1/users", json={"name": "bob", "role": "editor", "password": PASSWORD})
        assert (added.status_code, added.json()["role"]) == (201, "editor")
        twice = client.post("/api/v1/users", json={"name": "Bob", "password": PASSWORD})
        assert (twice.status_code, "there is a user Bob already" in twice.json()["error"]["message"]) == (400, True)
        wrong = client.put("/api/v1/users", json={"name": "bob", "role": "king"})
        assert wrong.json()["error"]["message"] == 'there is no role "king": choose reader, editor, admin'
        assert client.put("/api/v1/users", json={"name": "bob", "role": "reader"}).json()["role"] == "reader"
        assert len(client.delete("/api/v1/users?name=bob").json()["users"]) == 2
        assert client.delete("/api/v1/users?name=bob").status_code == 404
        made = client.post("/api/v1/keys", json={"name": "k", "scopes": ["read"], "days": 1}).json()
        bearer = {"authorization": f"Bearer {made['secret']}"}
        client.cookies.clear()
        assert client.get("/api/v1/sites", headers=bearer).status_code == 200
        log_in(client, "ada")
        assert client.delete("/api/v1/keys?name=k").json() == {"keys": []}
        client.cookies.clear()
        assert client.get("/api/v1/sites", headers=bearer).json()["error"]["code"] == "wrong-key"


def test_three_collections_behind_one_server(data: Path, tmp_path: Path) -> None:
    accounts = people(tmp_path)
    accounts.add_user("bob", "editor", BY, password=PASSWORD, collections=["blog"])
    _, secret = accounts.add_key("shop", KeyOptions(scopes=["read"], collections=["shop"]), BY)
    with served(data, accounts, blog=data, shop=data, law=tmp_path / "none") as client:
        assert client.get("/c/blog/", headers={"accept": "text/html"}).status_code == 401
        log_in(client, "bob")
        assert [each["path"] for each in client.get("/api/v1/collections").json()["collections"]] == ["/c/blog/"]
        assert "static/app.js" in client.get("/c/blog/").text
        assert client.get("/c/blog/api/v1/search?q=vapur").json()["total"] > 0
        assert client.post("/c/blog/api/v1/pause").status_code == 202
        refused = client.get("/c/shop/api/v1/search?q=vapur")
        assert refused.json()["error"]["message"] == "bob may not use the collection shop"
        log_in(client, "ada")
        assert len(client.get("/api/v1/collections").json()["collections"]) == 3
        assert "collections.js" in client.get("/").text
        assert client.get("/c/none/api/v1/status").status_code == 404
        client.cookies.clear()
        bearer = {"authorization": f"Bearer {secret}"}
        assert client.get("/c/shop/api/v1/search?q=vapur", headers=bearer).status_code == 200
        assert client.get("/c/blog/api/v1/search?q=vapur", headers=bearer).status_code == 403


def test_a_limited_admin_does_not_manage_the_whole_server(data: Path, tmp_path: Path) -> None:
    accounts = people(tmp_path)
    accounts.add_user("bob", "admin", BY, password=PASSWORD, collections=["blog"])
    with served(data, accounts, blog=data, shop=data) as client:
        log_in(client, "bob")
        assert client.get("/c/blog/api/v1/webhooks").status_code == 200
        for path in ("/api/v1/users", "/c/blog/api/v1/users", "/c/blog/api/v1/keys", "/api/v1/audit"):
            assert client.get(path).status_code == 403, path


def test_a_server_that_was_closed_once_stays_closed(data: Path) -> None:
    accounts = Accounts(data / "access.db")
    with served(data, accounts, now=5.0) as client:
        assert client.get("/api/v1/sites").status_code == 200
    accounts = Accounts(data / "access.db")
    accounts.add_user("ada", "admin", BY, openid="ada")
    with served(data, accounts, now=5.0) as client:
        assert client.get("/api/v1/sites").status_code == 401
        accounts.remove_user("ada", BY)
        assert client.get("/api/v1/sites").status_code == 401


def test_where_users_cannot_be_read_nobody_is_let_in(data: Path) -> None:
    path = data / "access.db"
    made = people(data)
    with served(data, made) as client:
        log_in(client, "ada")
        cookie = client.cookies["levada_session"]
    made.close()
    for each in data.glob("access.db-*"):
        each.unlink()
    path.write_bytes(b"no database at all" * 1000)
    door = Access(Tokens(), frozenset(), lambda: 0.0, Accounts(path), closed=True)
    decision = door.decide("GET", "/", HERE | {"cookie": f"levada_session={cookie}"}, "c")
    assert decision.refused is not None
    assert (decision.refused.status, "nobody can log in" in decision.refused.message) == (503, True)


@pytest.mark.parametrize("then", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_a_login_leads_nowhere_else(data: Path, then: str) -> None:
    with served(data, people(data)) as client:
        form = {"name": "ada", "password": PASSWORD, "next": then}
        assert client.post("/login", data=form, follow_redirects=False).headers["location"] == "/"
