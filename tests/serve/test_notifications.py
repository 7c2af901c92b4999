"""Notifications over HTTP: set up, tested by a real mail server, paused, removed; secrets never come back."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from levada.core.folder import DataFolder
from levada.serve.access import Tokens
from tests.serve.conftest import Open
from tests.servers.mail import MailServer, mail_server

NOTIFICATIONS = "/api/v1/notifications"
READER = Tokens("a-token-for-everything-0123456789", "a-token-for-reading-0123456789")


@pytest.fixture
def mailbox(tmp_path: Path, data: Path) -> Iterator[MailServer]:
    """A mail server that this collection may reach."""
    with mail_server(tmp_path / "mail") as server:
        allow(data, server.place)
        yield server


def allow(data: Path, *places: str) -> None:
    folder = DataFolder(data)
    folder.save_settings(folder.settings().replace({"guard.allow": list(places)}))


def test_a_mail_is_set_up_tested_paused_and_removed(api: TestClient, mailbox: MailServer) -> None:
    asked = {
        "target": f"mailto://me:a-long-password@{mailbox.place}/?to=me@example.org",
        "name": "me",
        "came": ["price"],
        "least": 0.2,
        "least_words": 3,
        "digest": "daily",
        "at": "07:30",
        "zone": "Europe/Lisbon",
    }
    made = api.post(NOTIFICATIONS, json=asked)
    assert (made.status_code, made.json()["secret"]) == (201, "")
    told = made.json()["notification"]
    assert told["about"] == (
        'changes of at least 20% of the words of at least 3 words with "price" among the words that came,'
        " daily at 07:30 Europe/Lisbon"
    )
    assert told["target"] == f"mailto://me:***@{mailbox.place}/?to=me@example.org"
    assert api.get(NOTIFICATIONS).json() == {"notifications": [told]}
    edited = api.put(NOTIFICATIONS, json={"name": "me", "change": {"least": 0.5, "came": None, "digest": "hourly"}})
    assert edited.json()["about"] == "changes of at least 50% of the words of at least 3 words, every hour"
    refused = api.put(NOTIFICATIONS, json={"name": "me", "change": {"came": ["!!!"]}})
    assert (refused.status_code, refused.json()["error"]["message"]) == (400, "came: there is no word in '!!!'")
    for wrong in ({"name": "you"}, {"colour": "red"}, {"least": "much"}, {"from_beginning": True}):
        assert api.put(NOTIFICATIONS, json={"name": "me", "change": wrong}).status_code == 400, wrong
    assert api.put(NOTIFICATIONS, json={"name": "you", "change": {}}).status_code == 404
    assert api.post(f"{NOTIFICATIONS}/pause", json={"name": "me"}).json()["paused"]
    assert not api.post(f"{NOTIFICATIONS}/resume", json={"name": "me", "skip": True}).json()["paused"]
    assert api.get(f"{NOTIFICATIONS}/log", params={"name": "me"}).json() == {"messages": []}
    assert api.delete(NOTIFICATIONS, params={"name": "me"}).json() == {"notifications": []}
    for answer in (
        api.delete(NOTIFICATIONS, params={"name": "me"}),
        api.post(f"{NOTIFICATIONS}/test", json={"name": "me"}),
        api.get(f"{NOTIFICATIONS}/log", params={"name": "me"}),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not-found")


def test_a_test_message_is_sent_and_the_servers_answer_shown(api: TestClient, mailbox: MailServer) -> None:
    api.post(NOTIFICATIONS, json={"target": mailbox.target(), "name": "me"})
    tested = api.post(f"{NOTIFICATIONS}/test", json={"name": "me"})
    assert tested.json() == {"name": "me", "answer": "250 2.0.0 taken"}
    (mail,) = mailbox.mails()
    assert mail["Subject"] == "Changed: This is a test"


def test_a_test_that_fails_says_why_and_shows_no_secret(api: TestClient, data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    allow(data, f"127.0.0.1:{port}")
    target = f"mailto://me:a-long-password@127.0.0.1:{port}/?to=me@example.org"
    api.post(NOTIFICATIONS, json={"target": target, "name": "me"})
    tested = api.post(f"{NOTIFICATIONS}/test", json={"name": "me"})
    assert (tested.status_code, tested.json()["error"]["code"]) == (502, "not-told")
    assert tested.json()["error"]["message"] == (
        f"the mail server 127.0.0.1:{port} cannot be reached: Connection refused"
    )
    shown = tested.text + api.get(NOTIFICATIONS).text
    assert "a-long-password" not in shown


def test_what_a_guard_does_not_allow_is_not_dialled(api: TestClient) -> None:
    api.post(NOTIFICATIONS, json={"target": "mailto://127.0.0.1:2525/?to=me@example.org", "name": "me"})
    tested = api.post(f"{NOTIFICATIONS}/test", json={"name": "me"})
    assert tested.status_code == 502
    assert "guard.allow" in tested.json()["error"]["message"]


def test_the_path_and_query_of_a_webhook_are_secrets_too(api: TestClient) -> None:
    target = "https://hooks.example/services/T0/B0/hidden-part?key=hidden-too"
    made = api.post(NOTIFICATIONS, json={"target": target, "name": "hook", "site": "example.org"}).json()
    assert made["notification"]["target"] == "https://hooks.example/***"
    assert len(made["secret"]) > 30
    listed = api.get(NOTIFICATIONS)
    assert "hidden" not in listed.text
    assert made["secret"] not in listed.text


def test_webhooks_of_the_older_api_and_these_are_the_same(api: TestClient) -> None:
    hook = api.post("/api/v1/webhooks", json={"url": "https://told.example/x"}).json()["hook"]
    (listed,) = api.get(NOTIFICATIONS).json()["notifications"]
    assert (listed["name"], listed["kind"]) == (hook["id"], "webhook")
    assert api.delete(NOTIFICATIONS, params={"name": hook["id"]}).status_code == 200
    assert api.get("/api/v1/webhooks").json() == {"hooks": []}


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "target is missing"),
        ({"target": ""}, "target must not be empty"),
        ({"target": "me@example.org"}, "names no mail server"),
        ({"target": "mail.example.org"}, "is no target"),
        ({"target": "mailto://mail.example/"}, "names nobody to write to"),
        ({"target": "mailto://mail.example/?to=me@example.org", "digest": "weekly"}, "digest cannot be 'weekly'"),
        ({"target": "mailto://mail.example/?to=me@example.org", "zone": "Mars/Base"}, "is no time zone"),
        ({"target": "mailto://mail.example/?to=me@example.org", "at": "25:00"}, "at takes a time of day"),
        ({"target": "mailto://mail.example/?to=me@example.org", "quiet": "night"}, "quiet must be like"),
        ({"target": "mailto://mail.example/?to=me@example.org", "title": "{nmae}"}, "has no field {nmae}"),
        ({"target": "mailto://mail.example/?to=me@example.org", "least": 2}, "least must be at most 1"),
        ({"target": "mailto://mail.example/?to=me@example.org", "colour": "red"}, "'colour' is not known here"),
        ({"target": "mailto://mail.example/?to=me@example.org", "name": "../x"}, "takes letters"),
        ({"target": "mailto://mail.example/?to=me@example.org", "near": "total"}, "below"),
        ({"target": "nosuchservice://token"}, "nosuchservice"),
    ],
)
def test_what_is_asked_wrongly_adds_nothing_and_says_why(api: TestClient, asked: dict[str, object], says: str) -> None:
    answer = api.post(NOTIFICATIONS, json=asked)
    assert answer.status_code == 400
    assert says in answer.json()["error"]["message"]
    assert "--" not in answer.json()["error"]["message"]  # options of the command line are fields here
    assert api.get(NOTIFICATIONS).json() == {"notifications": []}


def test_a_name_is_given_once(api: TestClient) -> None:
    asked = {"target": "mailto://mail.example/?to=me@example.org", "name": "me"}
    assert api.post(NOTIFICATIONS, json=asked).status_code == 201
    again = api.post(NOTIFICATIONS, json=asked)
    assert (again.status_code, again.json()["error"]["code"]) == (400, "usage-error")
    assert 'there is a notification "me" already' in again.json()["error"]["message"]


def test_whoever_may_only_read_sees_notifications_and_changes_none(open_server: Open, data: Path) -> None:
    api = open_server(data, READER)
    reader = {"authorization": f"Bearer {READER.reader}"}
    assert api.get(NOTIFICATIONS, headers=reader).json() == {"notifications": []}
    refused = [
        api.post(NOTIFICATIONS, headers=reader, json={"target": "https://told.example/"}),
        *(
            api.post(f"{NOTIFICATIONS}/{each}", headers=reader, json={"name": "x"})
            for each in ("test", "pause", "resume")
        ),
        api.delete(NOTIFICATIONS, headers=reader, params={"name": "x"}),
    ]
    assert {each.status_code for each in refused} == {403}
