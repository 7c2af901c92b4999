"""Checking pages now, as a user does: alone and beside a crawl of another process, on a real local site."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import levada
from levada.collection.commands import open_commands
from levada.core.commands import CheckNow
from levada.core.folder import DataFolder
from levada.serve.access import Tokens
from tests.serve.conftest import Open, open_server

__all__ = ["open_server"]

pytestmark = pytest.mark.timeout(300)  # each command is a process of its own

PAGES = ("one", "two", "three")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


class Site:
    """A site of files that a test edits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name in ("index", *PAGES):
            self.write(name, "as it was at first")
        self.open()
        self.name = f"127.0.0.1:{self._server.server_port}"

    def write(self, name: str, words: str) -> None:
        links = "".join(f'<a href="/{other}.html">page {other}</a> ' for other in PAGES)
        body = f"<p>The page called {name} says something of its own, {name} by name.</p><p>It is {words}.</p>{links}"
        (self.folder / f"{name}.html").write_text(f"<html><head><title>{name}</title></head><body>{body}</body></html>")

    def url(self, name: str) -> str:
        return f"http://{self.name}/{name}.html"

    def open(self, port: int = 0) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", port), partial(_Quiet, directory=str(self.folder)))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    opened = Site(tmp_path / "site")
    yield opened
    opened.close()


@pytest.fixture
def here(site: Site, tmp_path: Path) -> Path:
    """A folder with the collection of the site, crawled once."""
    (tmp_path / "levada.toml").write_text(f'[guard]\nallow = ["{site.name}"]\n[politeness]\ndelay = 0.0\n')
    done = run(tmp_path, "crawl", f"http://{site.name}/", "--once")
    assert done.returncode == 0, done.stderr
    return tmp_path


def run(here: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "levada", *words]
    return subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=100)


@contextmanager
def crawling(here: Path) -> Iterator[None]:
    """A crawl of its own process in the folder."""
    process = subprocess.Popen(
        [sys.executable, "-m", "levada", "crawl"], cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    live = here / "levada-data" / "live.json"
    try:
        while not live.exists():
            assert process.poll() is None
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a crawl"])
def test_an_edited_page_shows_its_diff_at_once(site: Site, here: Path, beside: bool) -> None:
    with crawling(here) if beside else nullcontext():
        site.write("two", "quite another text by now")
        checked = run(here, "check", site.url("two"), site.url("one"))
        assert checked.returncode == 0, checked.stderr
        assert f"\nchanged  {site.url('two')}" in f"\n{checked.stdout}"
        assert "-It is as it was at first." in checked.stdout
        assert "+It is quite another text by now." in checked.stdout
        assert f"unchanged  {site.url('one')}" in checked.stdout
        assert checked.stdout.splitlines()[-1] == "2 pages checked: 1 changed, 1 unchanged"

        site.write("three", "new as well")
        told = run(here, "check", "--site", site.name, "--json")
        *lines, last = [json.loads(line) for line in told.stdout.splitlines()]
        assert [(each["url"], each["outcome"]) for each in lines if each["changed"]] == [(site.url("three"), "changed")]
        assert lines[0]["diff"]["added"] == 1 or any(each["diff"] and each["diff"]["added"] == 1 for each in lines)
        assert last["checked"] >= 4
        assert run(here, "check", "--all", "--no-diff").returncode == 0

        site.write("four", "a page to which nothing leads")
        new = run(here, "check", site.url("four"), "--json")
        assert json.loads(new.stdout.splitlines()[0])["outcome"] == "new"

        (site.folder / "four.html").unlink()
        gone = run(here, "check", site.url("four"))
        assert (gone.returncode, gone.stdout.splitlines()[-1]) == (0, "1 page checked: 1 gone")


def test_a_sitemap_that_comes_and_goes_is_no_page(site: Site, here: Path) -> None:
    sitemap = site.folder / "sitemap.xml"
    entry = f"<url><loc>{site.url('one')}</loc></url>"
    sitemap.write_text(f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entry}</urlset>')
    for words in (("--site", site.name), ("--all",)):
        told = run(here, "check", *words)
        assert told.returncode == 0
        assert [line for line in told.stdout.splitlines() if "sitemap" in line or "gone" in line] == []
        sitemap.unlink(missing_ok=True)


def test_word_is_left_for_the_next_crawl(site: Site, here: Path) -> None:
    left = run(here, "check", "--no-wait", site.url("one"))
    assert left.returncode == 0
    assert "no crawl runs: the next one visits 1 page first" in left.stdout
    with closing(open_commands(DataFolder(here / "levada-data"))) as commands:
        assert [command for _, command in commands.pending()] == [CheckNow((site.url("one"),))]
    with levada.open(here / "levada-data") as news:
        before = news.why(site.url("one")).page.visits
        news.crawl(seconds=3)
        assert news.why(site.url("one")).page.visits == before + 1


def test_what_cannot_be_checked_is_said_in_one_sentence(site: Site, here: Path) -> None:
    for words, status, sentence in (
        ((), 2, "name pages, or one of --site HOST and --all"),
        (("--all", "--site", site.name), 2, "name pages, or one of"),
        (("--site", "nowhere.example"), 3, "no site nowhere.example is known"),
        (("ftp://example.org/",), 2, "is not an http or https address"),
    ):
        done = run(here, "check", *words)
        assert (done.returncode, done.stdout) == (status, ""), words
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1
    with levada.open(here / "levada-data") as news:
        news.pause()
    assert run(here, "check", site.url("one")).returncode == 3
    with levada.open(here / "levada-data") as news:
        news.resume()
        news.drop_site(site.name)
        news.crawl(seconds=1)
    dropped = run(here, "check", site.url("one"))
    assert dropped.returncode == 3
    assert "was dropped" in dropped.stderr


def test_a_visit_that_fails_has_its_own_exit_status_and_the_page_is_due_soon(site: Site, here: Path) -> None:
    site.close()
    failed = run(here, "check", site.url("one"))
    assert failed.returncode == 1
    assert failed.stdout.startswith(f"failed  {site.url('one')}  connect: nobody answers there: check the address")


def test_forgetting_the_settings_once_costs_no_days(site: Site, here: Path) -> None:
    """Without its settings the guard refuses the site; with them every page is due again at once."""
    settings = here / "levada.toml"
    kept = settings.read_text()
    settings.unlink()
    assert run(here, "check", "--all").returncode in (0, 3)
    settings.write_text("")
    run(here, "crawl", "--max-pages", "1", "--once")
    with levada.open(here / "levada-data") as news:
        for url in map(site.url, PAGES):
            news.settings = news.settings.replace({"guard.allow": []})
            assert news.check(url).reason is levada.Reason.ADDRESS
            assert (news.why(url).page.next_visit or 0) > time.time() + 3600
    settings.write_text(kept)
    assert run(here, "crawl", "--once").returncode == 0
    with levada.open(here / "levada-data") as news:
        for url in map(site.url, PAGES):
            page = news.why(url).page
            assert (page.failures, page.reason) == (0, None)


def test_the_api_leaves_word_for_the_crawl(site: Site, here: Path, open_server: Open) -> None:
    api = open_server(here / "levada-data", Tokens())
    told = api.post("/api/v1/check", json={"urls": [site.url("one")]})
    assert (told.status_code, told.json()["crawling"]) == (202, False)
    assert api.post("/api/v1/check", json={"site": site.name}).status_code == 202
    assert api.post("/api/v1/check", json={"every": True}).status_code == 202
    assert api.post("/api/v1/check", json={}).status_code == 400
    assert api.post("/api/v1/check", json={"site": "nowhere.example"}).status_code == 404
    with closing(open_commands(DataFolder(here / "levada-data"))) as commands:
        wanted = [command for _, command in commands.pending()]
    assert wanted == [CheckNow((site.url("one"),)), CheckNow(site=site.name), CheckNow(site="*")]


def test_a_check_goes_on_by_itself_when_the_crawl_beside_it_ends(site: Site, here: Path) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with crawling(here):
        with levada.open(here / "levada-data") as news:
            news.set_budget(1)  # the next visit is an hour away
            time.sleep(1.5)
        command = [sys.executable, "-m", "levada", "check", *map(site.url, PAGES)]
        check = subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, text=True, env=environment)
        time.sleep(2.0)
        with levada.open(here / "levada-data") as news:
            news.set_budget(None)
    assert check.stdout is not None
    out = check.stdout.read()
    check.stdout.close()
    assert check.wait(60) == 0
    assert out.splitlines()[-1] == "3 pages checked: 3 unchanged"


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a crawl"])
def test_a_check_says_when_no_trigger_is_met_and_nobody_is_told(site: Site, here: Path, beside: bool) -> None:
    assert run(here, "sites", "set", site.name, 'trigger=["appears: sold out"]').returncode == 0
    assert run(here, "check", site.url("two")).returncode == 0  # read by the rule
    with crawling(here) if beside else nullcontext():
        for words, told in (("another text", False), ("sold out", True)):
            site.write("two", words)
            checked = run(here, "check", site.url("two"))
            assert f"changed  {site.url('two')}" in checked.stdout
            assert ("nobody is told: no trigger is met" in checked.stdout) is not told
    with levada.open(here / "levada-data", create=False) as collection:
        told_of = [(each.what.value, each.version) for each in collection.changes() if each.url == site.url("two")]
    assert told_of == [("new", 1), ("changed", 3)]
