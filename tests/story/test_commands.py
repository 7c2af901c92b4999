"""A user's first session: serve, crawl, search, diff, why, export, interrupt, continue."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet
import pytest
from warcio.archiveiterator import ArchiveIterator

from levada.demo.child import Web, serving
from levada.demo.world import DemoWorld
from levada.store.sqlite import SqliteStore
from tests.story.collections import check_whole
from tests.story.commands import contents, levada, started, what_it_said

PAGES = 120
REPORT = {
    "pages",
    "fetched",
    "new",
    "changed",
    "unchanged",
    "gone",
    "failed",
    "refused",
    "found",
    "bytes",
    "seconds",
}
SOON = "\n[revisit]\nfirst = 600\nfloor = 60\n"  # pages are due again while the test looks on


class Crawled(NamedTuple):
    """A small web that changes fast, and a collection of it in which something has changed."""

    web: dict[str, Any]
    config: Path
    data: Path
    first: dict[str, Any]
    second: dict[str, Any]

    def run(self, *arguments: str | Path) -> str:
        ended = levada(*arguments, "--data", self.data, cwd=self.data.parent)
        assert ended.returncode == 0, ended.stderr
        assert "\x1b" not in ended.stdout + ended.stderr, "a pipe is no terminal"
        return ended.stdout

    def json(self, *arguments: str | Path) -> dict[str, Any]:
        said = self.run(*arguments, "--json")
        assert said.count("\n") == 1
        found: dict[str, Any] = json.loads(said)
        return found


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("commands")
    options = ("--speed", "1000", "--pages", str(PAGES), "--no-hostile")
    with started("demo", "--serve-only", *options, cwd=folder) as server:
        try:
            assert server.stdout is not None
            web = json.loads(server.stdout.readline())
            config = folder / "levada.toml"
            config.write_text(Path(web["config"]).read_text() + SOON)
            yield _crawl_until_changed(folder, web, config)
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=30)
    assert server.returncode == 0
    assert not Path(web["config"]).exists()


def _crawl_until_changed(folder: Path, web: dict[str, Any], config: Path) -> Crawled:
    command = ("crawl", "--config", config, "--data", "data", *web["start"], "--once", "--json")
    reports = []
    for _ in range(8):
        ended = levada(*command, cwd=folder)
        assert ended.returncode == 0, ended.stderr
        reports.append(json.loads(ended.stdout))
        if reports[-1]["changed"]:
            break
    return Crawled(web, config, folder / "data", reports[0], reports[-1])


def test_the_served_web_says_what_it_is_in_one_line(crawled: Crawled) -> None:
    assert {"start", "config", "port", "speed", "seed", "pages"} <= set(crawled.web)
    assert crawled.web["pages"] == PAGES
    assert all(url.startswith("http://") for url in crawled.web["start"])


def test_a_crawl_reports_in_one_object(crawled: Crawled) -> None:
    first, second = crawled.first, crawled.second
    assert set(first) >= REPORT
    assert first["pages"] == PAGES
    assert first["new"] >= PAGES
    assert first["stopped"] == "done"
    assert isinstance(first["failed"], dict)
    assert isinstance(first["refused"], dict)
    assert second["changed"] > 0
    assert second["pages"] == PAGES


def test_istanbul_is_found_however_it_is_written(crawled: Crawled) -> None:
    answers = [crawled.json("search", word, "--limit", "50") for word in ("İstanbul", "istanbul", "ISTANBUL")]
    assert answers[0]["total"] > 0
    assert answers[0]["hits"] == answers[1]["hits"] == answers[2]["hits"]
    assert "stanbul" in crawled.run("search", "istanbul")
    assert levada("search", "zyxwvut", "--data", crawled.data, cwd=crawled.data).returncode == 3


def test_postings_are_the_papers_triples(crawled: Crawled) -> None:
    assert re.fullmatch(r"\d+-\d+-\d+(, \d+-\d+-\d+)*\n", crawled.run("postings", "istanbul"))
    assert all(posting["count"] > 0 for posting in crawled.json("postings", "istanbul")["postings"])


def test_diff_and_why_tell_of_a_page_that_changed(crawled: Crawled) -> None:
    url = _changed_page(crawled.data)
    diff = crawled.json("diff", url)
    assert diff["to"]["version"] == diff["from"]["version"] + 1
    assert diff["hunks"]
    assert url in crawled.run("diff", url)
    why = crawled.json("why", url)
    assert why["visits"] >= 2
    assert "changed" in [visit["outcome"] for visit in why["history"]]
    assert why["because"]
    assert url in crawled.run("why", url)


def _changed_page(data: Path) -> str:
    store = SqliteStore.open_reader(data / "levada.db")
    try:
        return next(document.url for document in store.scan() if document.version > 1)
    finally:
        store.close()


def test_all_forms_of_export_hold_every_page(crawled: Crawled) -> None:
    folder, urls = crawled.data.parent, set(contents(crawled.data))
    assert len(urls) == PAGES
    lines = [json.loads(line) for line in crawled.run("export", "--jsonl").splitlines()]
    assert {line["url"] for line in lines} == urls
    assert {"url", "site", "title", "text", "fetched_at", "changed_at", "version"} <= set(lines[0])
    crawled.run("export", "--parquet", "--out", folder / "pages.parquet")
    assert set(pyarrow.parquet.read_table(folder / "pages.parquet")["url"].to_pylist()) == urls
    crawled.run("export", "--warc", "--out", folder / "pages.warc.gz")
    with folder.joinpath("pages.warc.gz").open("rb") as file:
        answers = [record for record in ArchiveIterator(file) if record.rec_type in ("response", "resource")]
        assert {record.rec_headers.get_header("WARC-Target-URI") for record in answers} == urls
    crawled.run("export", "--xml", folder / "xml")
    entries = [entry for file in folder.glob("xml/*.xml") for entry in ElementTree.parse(file).getroot()]
    assert {entry.findtext("url") for entry in entries} == urls
    assert all(entry.findtext("content") is not None for entry in entries)


def test_doctor_finds_nothing_wrong(crawled: Crawled) -> None:
    assert crawled.json("doctor")["ok"] is True


def test_max_pages_ends_a_crawl_and_one_without_urls_goes_on(crawled: Crawled, tmp_path: Path) -> None:
    command = ("crawl", "--config", crawled.config, "--json", "--data", tmp_path / "data")
    limited = levada(*command, *crawled.web["start"], "--max-pages", "7", cwd=tmp_path)
    assert limited.returncode == 0, limited.stderr
    report = json.loads(limited.stdout)
    assert (report["fetched"], report["stopped"]) == (7, "limit")
    assert 0 < report["pages"] <= 7
    rest = levada(*command, "--once", cwd=tmp_path)
    assert rest.returncode == 0, rest.stderr
    assert json.loads(rest.stdout)["pages"] == PAGES


# Ctrl-C


@pytest.fixture(scope="module")
def still_web() -> Iterator[Web]:
    with serving("--speed", "1", "--pages", str(PAGES), "--no-hostile") as running:
        yield running


@pytest.mark.parametrize(
    ("flags", "number", "status"),
    [([], signal.SIGINT, 0), (["--once"], signal.SIGINT, 130), (["--json"], signal.SIGTERM, 0)],
)
def test_an_interrupted_crawl_ends_in_good_order_and_the_same_command_goes_on(
    flags: list[str], number: signal.Signals, status: int, still_web: Web, tmp_path: Path
) -> None:
    command = ["crawl", *still_web.start, "--data", str(tmp_path / "data"), "--config", still_web.config, *flags]
    with started(*command, "--delay", "0.4", cwd=tmp_path) as running:
        _wait_for_a_page(tmp_path / "data", running)
        os.killpg(running.pid, number)  # as a terminal does: to all of its processes
        out, err = what_it_said(running)
    assert running.returncode == status, err
    assert "Traceback" not in err
    assert "levada:" not in err
    assert "\x1b" not in out + err
    if "--json" in flags:
        assert json.loads(out)["stopped"] == "interrupted"
    else:
        assert "pages stored in" in out
    stored = len(contents(tmp_path / "data"))
    assert 0 < stored < PAGES
    ended = levada(*(flag for flag in command if flag != "--once"), "--once", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    check_whole(tmp_path / "data", DemoWorld.build(still_web.seed, still_web.pages))


def test_a_crawl_interrupted_before_it_began_ends_quietly(still_web: Web, tmp_path: Path) -> None:
    command = ["crawl", *still_web.start, "--data", str(tmp_path / "data"), "--config", still_web.config]
    with started(*command, "--delay", "0.4", cwd=tmp_path) as running:
        _wait(running, lambda: tmp_path.joinpath("data", "lock").exists())
        os.killpg(running.pid, signal.SIGINT)
        _, err = what_it_said(running)
    assert running.returncode in (0, 130), err
    assert "Traceback" not in err
    assert "levada:" not in err


def _wait_for_a_page(data: Path, running: subprocess.Popen[str]) -> None:
    def is_stored() -> bool:
        with suppress(Exception):  # there is no store yet
            return bool(contents(data))
        return False

    _wait(running, is_stored)


def _wait(running: subprocess.Popen[str], is_so: Any) -> None:
    while not is_so():
        with suppress(subprocess.TimeoutExpired):
            running.wait(0.05)
        assert running.poll() is None, "it ended by itself"


# The demo


def test_the_demo_tells_its_story_in_one_object(tmp_path: Path) -> None:
    ended = levada("demo", "--json", "--seconds", "8", "--no-open", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    assert ended.stdout.count("\n") == 1
    story = json.loads(ended.stdout)
    assert set(story) >= REPORT
    assert set(story["freshness"]) == set(story["fetches"]) == {"levada", "round_robin"}
    assert all(0 < share <= 1 for share in story["freshness"].values())
    assert story["fetches"]["levada"] >= story["fetches"]["round_robin"] > 0
    assert story["pages"] > 50
    assert {"robots", "address", "scheme"} <= set(story["refused"])
    assert tmp_path.joinpath("levada-demo-data", "levada.db").exists()
    shutil.rmtree(tmp_path / "levada-demo-data")
