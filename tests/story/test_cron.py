"""Run from cron every hour: the guide's own lines, hour after hour of a site that copies, repeats and changes.

`SIMULATED_HOURS=168` (`make week`) makes it a week.
"""

from __future__ import annotations

import os
import random
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from pathlib import Path

import pytest

import levada
from tests.house.tree import HOUSE, fenced
from tests.servers.mail import mail_server
from tests.story.guides import guide_commands

HOURS = int(os.environ.get("SIMULATED_HOURS", "12"))
BEGIN = 1_790_000_000.0  # the world's time at the first run
GUIDE = "cron"
SITE, MAIL, THEIR_PATH = "https://example.org", "mail.example.org:587", "/home/ada/.local/bin"

EDITIONS = {1: 1, 2: 2, 3: 5, 4: 12, 5: 24, 6: 0, 7: 0, 8: 0}  # hours between two editions of an article; 0: only one
COPIED = (6, 7, 8)
WITHDRAWN_AT, PUBLISHED_AT = 4, 6  # hours
KILLED_EVERY = 4  # hours: then a run is killed before the one that is to be whole
MOST_ALIKE = 25  # pages of the calendar that are stored before it is seen for what it is

SETTINGS = """
[guard]
allow = ["{}", "{}"]
[politeness]
delay = 0
[budget]
per_page_per_day = 24
[store]
keep_versions = 1000
"""

_HEADING = re.compile(r"^(New|Changed|Gone|Back): (.*?)\r?$", re.MULTILINE)

pytestmark = pytest.mark.timeout(120 + 60 * HOURS)


class Site:
    """A small magazine. It knows what it has shown of each page."""

    def __init__(self) -> None:
        self.hour = 0
        self.requests = 0
        self.shown: dict[str, list[str | None]] = defaultdict(list)  # by path: titles; None: there is no such page
        self.may_answer = threading.Event()
        self.may_answer.set()

    def answer(self, path: str) -> bytes | None:
        self.requests += 1
        title, text = self._page(path)
        self.shown[path].append(title)
        return None if title is None else f"<!doctype html><title>{title}</title><h1>{title}</h1>{text}".encode()

    def _page(self, path: str) -> tuple[str | None, str]:
        if path == "/":
            return self._front()
        if day := re.fullmatch(r"/calendar/(\d+)", path):
            return f"Calendar, day {day[1]}", _paragraph("calendar") + _link(f"/calendar/{int(day[1]) + 1}")
        if found := re.fullmatch(r"/(?:article|print)/(\d+)", path):
            return self._article(int(found[1]), printed=path.startswith("/print"))
        if path == "/withdrawn" and self.hour < WITHDRAWN_AT:
            return "Withdrawn", _paragraph("withdrawn")
        if path == "/late" and self.hour >= PUBLISHED_AT:
            return "Late", _paragraph("late")
        return None, ""

    def _front(self) -> tuple[str, str]:
        paths = [f"/article/{n}" for n in EDITIONS] + [f"/print/{n}" for n in COPIED] + ["/calendar/0", "/withdrawn"]
        late = self.hour >= PUBLISHED_AT
        paths += ["/late"] if late else []
        return f"Front, {'late' if late else 'early'}", _paragraph("front") + "".join(map(_link, paths))

    def _article(self, number: int, *, printed: bool) -> tuple[str | None, str]:
        every = EDITIONS.get(number)
        if every is None or (printed and number not in COPIED):
            return None, ""
        edition = self.hour // every if every else 0
        news = _paragraph(f"article {number} edition {edition}", words=25)
        return f"Article {number}, edition {edition}", _paragraph(f"article {number}") + news

    def editions(self) -> dict[str, list[str | None]]:
        """What a reader of all that was shown knows of each page: its titles in order, each once."""
        return {path: [title for title, _ in groupby(titles)] for path, titles in self.shown.items() if any(titles)}


def _paragraph(subject: str, words: int = 60) -> str:
    chance = random.Random(subject)
    return f"<p>{' '.join(''.join(chance.choices('abcdefghijklmnopqrstuvwxyz', k=7)) for _ in range(words))}.</p>"


def _link(path: str) -> str:
    return f'<p><a href="{path}">{path}</a></p>'


@contextmanager
def serving(site: Site) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.may_answer.wait(60)
            body = site.answer(self.path)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body or b"nothing here")

        def log_message(self, format: str, *given: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        site.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()


class Machine:
    """A user's machine: a home, a shell, and cron, which starts a line with few variables and no terminal."""

    def __init__(self, home: Path, site: Site, places: dict[str, str]) -> None:
        self.home = home
        self._site = site
        self._places = places
        path, line = next(fenced(HOUSE / "docs" / "guides" / f"{GUIDE}.md", "crontab")).strip().splitlines()
        self._path = self._ours(path.strip().removeprefix("PATH="))
        schedule, self._line = line.strip().split("  ", 1)
        assert schedule == "0 * * * *"

    def _ours(self, words: str) -> str:
        for theirs, ours in self._places.items():
            words = words.replace(theirs, ours)
        return words

    def _variables(self) -> dict[str, str]:
        now = BEGIN + 3_600.0 * self._site.hour
        clock = {"LEVADA_CLOCK_ORIGIN": repr(now), "LEVADA_CLOCK_STARTED": repr(time.time())}
        return {"HOME": str(self.home), "PATH": self._path, "SHELL": "/bin/sh", "LOGNAME": "ada", **clock}

    def type(self, commands: list[str]) -> None:
        """In one shell, one after another, until one fails."""
        words = " && ".join(map(self._ours, commands))
        done = subprocess.run(
            ["/bin/sh", "-c", words], env=self._variables(), cwd=self.home, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def cron(self) -> subprocess.Popen[str]:
        command = ["/bin/sh", "-c", self._line]
        return subprocess.Popen(
            command,
            cwd=self.home,
            env=self._variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def data(self) -> Path:
        return self.home / "watch" / "levada-data"


def ended(running: subprocess.Popen[str]) -> tuple[int, str]:
    errors = running.communicate(timeout=120)[1]
    return running.returncode, errors


def test_hour_after_hour_nothing_is_stored_twice_and_each_change_is_told_once(tmp_path: Path) -> None:
    site, home = Site(), tmp_path / "home"
    (home / "watch").mkdir(parents=True)
    typed = guide_commands(GUIDE)
    assert typed[-1] == "crontab -e"
    with serving(site) as web, mail_server(tmp_path / "mail") as mail:
        (home / "watch" / "levada.toml").write_text(SETTINGS.format(web, mail.place))
        binaries = shlex.quote(str(Path(sys.executable).parent))
        machine = Machine(home, site, {SITE: f"http://{web}", MAIL: mail.place, THEIR_PATH: binaries})
        machine.type(typed[:-1])
        known = check_pages(machine, web)
        with levada.open(machine.data) as watch:
            told_from = len(list(watch.changes()))
        for site.hour in range(1, HOURS):
            if site.hour % KILLED_EVERY == 0:
                kill_in_the_middle(machine, site, site.hour % 7)
            assert ended(machine.cron()) == (0, "")
            known |= check_pages(machine, web)
        check_overlapping(machine, site)
        check_log(machine, site, web)
        with levada.open(machine.data) as watch:
            later = list(watch.changes())[told_from:]
        check_mails(mail.mails(), later)
    assert "/withdrawn" in known
    assert "/late" in known or HOURS <= PUBLISHED_AT


def kill_in_the_middle(machine: Machine, site: Site, requests: int) -> None:
    """Kill a run with all its children after so many requests, or let it end before."""
    before, running = site.requests, machine.cron()
    while running.poll() is None and site.requests <= before + requests:
        time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    assert ended(running) in ((0, ""), (-signal.SIGKILL, ""))


def check_pages(machine: Machine, web: str) -> set[str]:
    """No page is stored under two addresses; returns the paths of those that are stored."""
    with levada.open(machine.data) as watch:
        stored = [row.url.removeprefix(f"http://{web}") for row in watch.rows()]
    assert len(stored) == len(set(stored))
    for number in COPIED:
        assert len({f"/article/{number}", f"/print/{number}"} & set(stored)) == 1
    assert sum(path.startswith("/calendar") for path in stored) <= MOST_ALIKE
    return set(stored)


def check_log(machine: Machine, site: Site, web: str) -> None:
    """The change log has each edition that the site has shown, once, in order, and nothing else."""
    logged: dict[str, list[str | None]] = defaultdict(list)
    with levada.open(machine.data) as watch:
        for change in watch.changes():
            gone = change.what == "gone"
            logged[change.url.removeprefix(f"http://{web}")].append(None if gone else change.title)
    truth = site.editions()
    for number in COPIED:
        copies = [logged.pop(f"/{way}/{number}", []) for way in ("article", "print")]
        assert sorted(copies) == [[], truth.pop(f"/article/{number}")]
        del truth[f"/print/{number}"]
    alike = {path for path in truth if path.startswith("/calendar")}
    assert {path for path in logged if path.startswith("/calendar")} <= alike
    assert all(len(logged.pop(path, [])) <= 1 for path in alike)
    for path in alike:
        del truth[path]
    assert logged == truth


def check_mails(mails: list[EmailMessage], changes: list[levada.ChangeEvent]) -> None:
    """Mails tell of each change since somebody wanted to know, once: a copy has the Message-ID of the first."""
    different = {str(mail["Message-ID"]): _text(mail) for mail in mails}
    headings = [found for text in different.values() for found in _HEADING.findall(text)]
    assert Counter(headings) == Counter((change.what.capitalize(), change.title) for change in changes)


def _text(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


def check_overlapping(machine: Machine, site: Site) -> None:
    """A run that takes longer than an hour: the next one says so, ends, and changes nothing."""
    site.hour += 24
    site.may_answer.clear()
    slow = machine.cron()
    while not (machine.data / "live.json").exists():
        assert slow.poll() is None
        time.sleep(0.05)
    status, errors = ended(machine.cron())
    site.may_answer.set()
    assert status == 1
    assert "is in use by another crawl (process " in errors
    assert errors.count("\n") == 1
    assert ended(slow) == (0, "")
