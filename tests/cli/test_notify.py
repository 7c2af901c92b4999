"""`levada notify`: what is typed wrongly is said in a sentence, adds nothing, and shows no secret."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from levada.collection.notifications import notify_beside
from levada.collection.view import CollectionView
from tests.cli.collection import Answer, build, command
from tests.serve.test_notifications import allow
from tests.servers.mail import MailServer, mail_server

GOOD = "mailto://mail.example/?to=me@example.org"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return build(tmp_path / "levada-data")


@pytest.fixture
def mailbox(tmp_path: Path, data: Path) -> Iterator[MailServer]:
    with mail_server(tmp_path / "mail", refused=[1]) as server:
        allow(data, server.place)
        yield server


def notify(data: Path, *words: object) -> Answer:
    return command("notify", *map(str, words))("--data", data)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("me@example.org", "write it like 'mailto://localhost/?to=me@example.org'"),
        ("mail.example.org", "is no target"),
        ("mailto://", "names no server"),
        ("mailto://mail.example/", "add ?to=me@example.org"),
        ("mailto://mail.example:99999/?to=me@example.org", "no valid port"),
        ("mailto://me:secret#word@mail.example/?to=me@example.org", "# is not written %23"),
        ("mailto://mail.example/?to=nobody", "'nobody' is no mail address"),
        ("mailto://mail.example/?too=me@example.org", "'too' is not known; known: from, name, to"),
        ("nosuch://token-of-mine", "Apprise knows no service nosuch"),
        ("slack://token-of-mine", "Apprise does not understand this target"),
        ("https://", "write it like https://example.org"),
        ("https://me:secret@example.org/", "leave them out"),
    ],
)
def test_a_wrong_target_is_said_with_how_to_write_it(data: Path, target: str, says: str) -> None:
    answer = notify(data, "add", target)
    assert answer.code == 2
    assert says in answer.said
    assert "secret" not in answer.said
    assert "token-of-mine" not in answer.said
    assert notify(data, "list").code == 3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--zone", "Europe/Lisboa"), '"Europe/Lisboa" is no time zone'),
        (("--digest", "daily", "--at", "7.30"), '--at takes a time of day such as "08:00", not "7.30"'),
        (("--digest", "weekly"), '--digest must be "hourly" or "daily", not "weekly"'),
        (("--quiet", "22-7"), '"22"'),
        (("--title", "{titel} changed"), "--title has no field {titel}; known: {name}, {count}"),
        (("--body", "{count}"), "--body has no field {count}; known: {name}, {title}"),
        (("--name", "my blog"), "--name takes letters"),
        (("--came", "!!!"), "--came: there is no word"),
        (("--near", "total"), "--below or --above"),
        (("--kind", "renamed"), "a change is new, changed, gone, back, not 'renamed'"),
        (("--site", "https://example.org/x"), "is not a host name"),
    ],
)
def test_a_wrong_option_is_said_and_nothing_is_added(data: Path, options: tuple[str, ...], says: str) -> None:
    answer = notify(data, "add", GOOD, *options)
    assert answer.code == 2
    assert says in answer.said
    assert notify(data, "list").code == 3


def test_a_name_that_is_taken_is_refused_and_the_first_stays(data: Path) -> None:
    assert notify(data, "add", GOOD, "--name", "me", "--site", "example.org").code == 0
    again = notify(data, "add", "mailto://other.example/?to=you@example.org", "--name", "me")
    assert (again.code, 'there is a notification "me" already' in again.said) == (2, True)
    (only,) = json.loads(notify(data, "list", "--json").out)["notifications"]
    assert only["target"] == GOOD


def test_a_name_that_is_not_there_is_said_with_those_that_are(data: Path) -> None:
    notify(data, "add", GOOD, "--name", "me")
    for action in ("test", "pause", "resume", "remove", "show", "log", "edit"):
        answer = notify(data, action, "you", *(["site=example.org"] if action == "edit" else []))
        assert (answer.code, 'there is no notification "you"; there are: me' in answer.said) == (3, True)


def test_options_are_edited_in_place_and_nothing_is_told_again(data: Path) -> None:
    notify(data, "add", GOOD, "--name", "me", "--site", "example.org", "--came", "price", "--quiet", "22:00-07:00")
    book = CollectionView(data).subscriptions()
    before = book.get("me")
    assert before is not None
    answer = notify(data, "edit", "me", "digest=daily", "at=07:30", "site=", "least-words=5", "went=a", "went=b c")
    assert answer.code == 0, answer.said
    after = book.get("me")
    assert after is not None
    assert (after.after, after.created, after.told, after.url) == (before.after, before.created, before.told, GOOD)
    assert (after.wanted.site, after.conditions.came, after.conditions.went) == ("", ("price",), ("a", "b c"))
    assert (after.schedule.digest, after.schedule.at, after.schedule.quiet) == ("daily", "07:30", "22:00-07:00")
    assert after.conditions.least_words == 5
    elsewhere = "mailto://mail.example.net/?to=you@example.org"
    assert notify(data, "edit", "me", f"target={elsewhere}", "quiet=").code == 0
    moved = book.get("me")
    assert moved is not None
    assert (moved.url, moved.schedule.quiet, moved.schedule.digest) == (elsewhere, "", "daily")
    book.close()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("digest", "'digest' has no value: write OPTION=VALUE"),
        ("digets=daily", "there is no option 'digets': did you mean digest"),
        ("digest=weekly", "edit(): Invalid enum value 'weekly'"),
        ("name=you", "name cannot be changed: add another notification and remove this one"),
        ("least=2", "edit(): Expected `float` <= 1.0"),
        ("zone=Europe/Lisboa", '"Europe/Lisboa" is no time zone'),
        ("target=https://example.org/told", "me is of the kind mail: add another notification"),
    ],
)
def test_a_wrong_edit_changes_nothing(data: Path, change: str, says: str) -> None:
    notify(data, "add", GOOD, "--name", "me")
    before = notify(data, "show", "me", "--json").out
    answer = notify(data, "edit", "me", "site=example.org", change)
    assert (answer.code, says in answer.said) == (2, True), answer.said
    assert notify(data, "show", "me", "--json").out == before


def test_without_apprise_the_package_to_install_is_named(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "apprise" else there(name, *more)
    )
    answer = notify(data, "add", "ntfy://ntfy.sh/topic")
    assert (answer.code, "pip install 'levada[notify]'" in answer.said) == (2, True)
    assert notify(data, "list").code == 3


def test_a_server_that_cannot_be_reached_fails_the_test_in_one_line(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    allow(data, f"127.0.0.1:{port}")
    notify(data, "add", f"mailto://me:a-secret@127.0.0.1:{port}/?to=me@example.org")
    answer = notify(data, "test", "mail")
    assert (answer.code, answer.out) == (1, "")
    assert answer.said.splitlines() == [f"the mail server 127.0.0.1:{port} cannot be reached: Connection refused"]


def sent_what_is_due(data: Path) -> list[str]:
    """As a crawl does at its end."""

    async def send() -> list[str]:
        stopping = asyncio.Event()
        stopping.set()
        return await notify_beside(data, stopping)

    return asyncio.run(send())


def test_a_message_that_was_refused_is_in_the_log_and_is_sent_again(data: Path, mailbox: MailServer) -> None:
    notify(data, "add", mailbox.target(), "--from-beginning", "--title", "{count} on {site}")
    assert sent_what_is_due(data) == ["mail: the server refused the message: 451 4.3.0 try again later"]
    waiting = notify(data, "log", "mail").out
    assert "waits" in waiting
    assert "failed 1 time: the server refused the message: 451" in waiting
    assert "0 changes told, 9 waiting, failing" in notify(data, "list").out
    assert sent_what_is_due(data) == []
    (message,) = json.loads(notify(data, "log", "--json").out)["messages"]
    assert (message["attempts"], message["changes"], bool(message["sent"])) == (1, 9, True)
    (mail,) = mailbox.mails()
    assert mail["Subject"] == message["title"] == "9 on example.org"
    assert mail["Message-ID"].startswith(f"<{message['message']}@")


def test_what_waits_is_skipped_when_it_is_asked_for(data: Path, mailbox: MailServer) -> None:
    notify(data, "add", mailbox.target(), "--from-beginning")
    sent_what_is_due(data)
    assert "0 changes told, 0 waiting, working" in notify(data, "resume", "mail", "--skip").out
    assert sent_what_is_due(data) == []
    assert mailbox.mails() == []
