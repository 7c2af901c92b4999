"""Mail by a real server: each change is told once and in order, whatever the server or the machine does."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from levada.collection.notifications import Notifications, notification_runner
from levada.collection.view import CollectionView
from levada.core.clock import SystemClock
from levada.core.folder import DataFolder
from levada.core.settings import Settings
from levada.store.sqlite import SqliteStore
from levada.testing.store.visits import changed, first, links
from tests.faults import NOTIFICATION_POINTS
from tests.follow.test_webhooks import Hurried
from tests.servers.mail import BAD_DAYS, MailServer, mail_server

pytestmark = pytest.mark.timeout(300)

PAGES, ROUNDS = 100, 100
SENDING = 2.0  # seconds that a message has: a server that hangs is given up soon


def collection(path: Path, place: str, pages: int, rounds: int) -> Path:
    """Pages that have changed so often, and a mail server that may be reached."""
    folder = DataFolder(path)
    folder.make()
    folder.save_settings(Settings().replace({"guard.allow": [place]}))
    store = SqliteStore(folder.database)
    store.add(links("a", pages), [], 0.0)
    store.commit([first(lease, 1.0, "text") for lease in store.lease(0.0, pages, 60.0)])
    for step in range(1, rounds):
        now = step * 1000.0
        store.commit([changed(lease, now, f"text {step}") for lease in store.lease(now, pages, 60.0)])
    store.close()
    return path


def told(server: MailServer, recipient: str = "me@example.org") -> list[str]:
    """The changes in the order in which they were told, each message counted once by its id."""
    by_id: dict[str, list[str]] = {}
    for mail in server.mails():
        if mail["To"] == recipient:
            changes = mail["X-Levada-Changes"].split()
            assert by_id.setdefault(mail["Message-ID"], changes) == changes  # under one id always the same
    return [change for changes in by_id.values() for change in changes]


def test_ten_thousand_changes_are_told_once_and_in_order_by_a_server_that_fails_hangs_and_restarts(
    tmp_path: Path,
) -> None:
    with mail_server(tmp_path / "mail", BAD_DAYS, one_in=8) as server:
        view = CollectionView(collection(tmp_path / "data", server.place, PAGES, ROUNDS))
        Notifications(view).add(server.target(), name="me", from_beginning=True, most=40)

        async def run() -> None:
            runner = notification_runner(view, clock=Hurried(0.02), seconds=SENDING)
            running = asyncio.create_task(runner.run())
            while Notifications(view).get("me").told < PAGES * ROUNDS:  # noqa: ASYNC110 -- others send
                await asyncio.sleep(0.2)
            runner.stop()
            await running

        asyncio.run(run())
        sent = Notifications(view).log("me", 1_000)
        view.close()
        assert told(server) == [f"0-{seq}" for seq in range(1, PAGES * ROUNDS + 1)]
        assert {each.sent is not None for each in sent} == {True}
        assert sum(each.changes for each in sent) == PAGES * ROUNDS
        assert sum(each.attempts for each in sent) > 10  # bad days there were
        assert len(server.mails()) > len(sent)  # and messages that were repeated under their ids


class StoppedClock(SystemClock):
    """It shows the time at which a run of cron began."""

    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> float:
        return self.at


def test_digests_come_once_an_hour_and_once_a_day_to_a_collection_that_cron_crawls(tmp_path: Path) -> None:
    six, hour = 1_790_056_800.0, 3_600.0  # 06:00 UTC
    runs = [six + 300.0 + number * hour for number in range(27)]  # at five past, until 08:05 of the next day
    with mail_server(tmp_path / "mail") as server:
        data = collection(tmp_path / "data", server.place, 2, 1)
        for name, options in (("hour", {"digest": "hourly"}), ("day", {"digest": "daily", "at": "08:00"})):
            with closing(CollectionView(data)) as view:
                Notifications(view).add(server.target(f"to={name}@example.org"), name=name, zone="UTC", **options)
        for at in runs:  # each is a process of its own: nothing is kept between them but the files
            with closing(SqliteStore(DataFolder(data).database)) as store:
                store.commit([changed(lease, at, f"text {at}") for lease in store.lease(at, 2, 60.0)])
            with closing(CollectionView(data)) as view:
                assert asyncio.run(notification_runner(view, clock=StoppedClock(at)).flush()) == []
        with closing(CollectionView(data)) as view:
            sent = {name: [each.created for each in Notifications(view).log(name)][::-1] for name in ("hour", "day")}
        # A run sends what it has just found with what waits, so the run after it finds nothing older than itself.
        assert sent["hour"] == runs[1::2]
        assert sent["day"] == [at for at in runs if (at - six) % (24 * hour) == 2 * hour + 300.0]
        for name in ("hour", "day"):
            told_of = told(server, f"{name}@example.org")
            assert told_of == [f"0-{seq}" for seq in range(3, 3 + len(told_of))]
            assert len(told_of) >= 2 * (len(runs) - 1)  # all but what the last run found


def test_killed_at_any_point_nothing_is_lost_and_nothing_told_under_two_ids(tmp_path: Path) -> None:
    with mail_server(tmp_path / "mail", refused=[2]) as server:
        data = collection(tmp_path / "data", server.place, 2, 3)
        command = [sys.executable, "-m", "tests.follow.notify_with_kill", str(data), server.place]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=250, cwd=Path(__file__).parents[2])
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout) == {point: [-9, 0] for point in NOTIFICATION_POINTS}, ended.stderr
        for point in NOTIFICATION_POINTS:
            assert told(server, f"{point}@example.org") == [f"0-{seq}" for seq in range(1, 7)], point
            with closing(sqlite3.connect(tmp_path / f"at-{point}" / "hooks.db")) as book:
                assert book.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                assert book.execute("SELECT COUNT(*) FROM waiting").fetchone() == (0,)
                assert book.execute("SELECT COUNT(*) FROM outbox WHERE sent IS NULL").fetchone() == (0,)
