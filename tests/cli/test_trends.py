from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from levada.core.folder import DataFolder
from levada.core.records import DiscoveredBy, FoundUrl, Outcome
from levada.core.settings import ClockSettings, Settings
from levada.demo.child import serving
from levada.search.term_counts.sqlite import SqliteTrends
from levada.store.sqlite import SqliteStore
from tests.cli.collection import NOW, build, command, settle, version
from tests.needs import without_root
from tests.story.commands import levada, one_line

trends = command("trends")
HOUR = 3600.0
PAGES = 40


def changing(path: Path) -> Path:
    """Forty pages; in the last hour nine of them, on two sites, begin to speak of an eclipse."""
    folder = DataFolder(path)
    folder.make()
    folder.save_settings(Settings(clock=ClockSettings(speed=1e-12, origin=NOW, started=1.0)))
    store = SqliteStore(folder.database)
    urls = [f"http://{'ab'[n % 2]}.example/{n}" for n in range(PAGES)]
    store.add([FoundUrl(url, url.split("/")[2], how=DiscoveredBy.SEED, admit=True) for url in urls], [], NOW - 9 * HOUR)
    for n, url in enumerate(urls):
        settle(
            store,
            url,
            NOW - 9 * HOUR,
            Outcome.FIRST,
            new=version(f"Page {n}", "the sea and the bus, item", language="en"),
        )
    for n, url in enumerate(urls):
        text = f"the sea and the bus, item {n} " + ("\x1bEclipse!" if n < 9 else "")
        settle(store, url, NOW - HOUR, Outcome.CHANGED, new=version(f"Page {n}", text, language="en"))
    store.close()
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return changing(tmp_path_factory.mktemp("trends") / "levada-data")


def test_what_grew_is_shown_with_before_and_after(data: Path) -> None:
    answer = trends("--data", data)
    assert answer.code == 0
    first, second = answer.out.splitlines()
    assert first.startswith("Added more often since 2027-01-14 ")
    assert second == "  1. eclipse  en  9 of 40 changes, otherwise in 0 of 40 documents; on 2 sites"
    assert "\x1b" not in answer.out


def test_programs_get_the_facts_and_the_report(data: Path) -> None:
    found = json.loads(trends("--data", data, "--json").out)
    (trend,) = found["trends"]
    assert (trend["term"], trend["now"], trend["documents"], trend["against"]) == ("eclipse", 9, 9, "documents")
    assert trend["score"] > 10.83
    assert (found["since"] < found["until"], found["counting"]["position"]) == (True, 2 * PAGES)


def test_one_site_and_one_language_can_be_asked_for(data: Path) -> None:
    assert json.loads(trends("--data", data, "--site", "A.example", "--json").out)["trends"][0]["now"] == 5
    assert json.loads(trends("--data", data, "--lang", "EN", "--json").out)["trends"][0]["now"] == 9
    assert trends("--data", data, "--lang", "tr").code == 3
    assert json.loads(trends("--data", data, "--site", "nowhere", "--json").out)["trends"] == []


def test_a_site_that_is_an_address_is_refused(data: Path) -> None:
    answer = trends("--data", data, "--site", "http://a.example/")
    assert answer.code == 2
    assert "'http://a.example/' is not a host name, such as example.org" in answer.said


def test_nothing_is_counted_twice_however_often_it_is_asked(data: Path) -> None:
    before = json.loads(trends("--data", data, "--json").out)["counting"]
    assert (before["changes"], before["balance"][0]["method"]) == (PAGES, "levelled")
    assert json.loads(trends("--data", data, "--json").out)["counting"] == before
    counts = SqliteTrends(data / "trends.db")
    assert (counts.frequency("eclipse", "en"), counts.frequency("the"), counts.frequency("")) == (9, PAGES, PAGES)
    counts.close()


def test_the_load_of_the_workers_stands_beside_key_and_partial_grouping(data: Path) -> None:
    answer = trends("--data", data, "--balance")
    assert answer.code == 0
    assert [line.split()[0] for line in answer.out.splitlines()[2:5]] == ["levelled", "key", "partial"]
    assert "busiest terms" in answer.out
    facts = json.loads(trends("--data", data, "--balance", "--json").out)
    assert [sum(load["loads"]) for load in facts["balance"]] == [facts["records"]] * 3
    assert facts["balance"][1]["distribution_cost"] == 1.0
    assert len(facts["balance"][0]["loads"]) == 4


def test_counts_that_are_damaged_or_of_another_collection_are_made_again(tmp_path: Path) -> None:
    data = changing(tmp_path / "data")
    (data / "trends.db").write_bytes(b"nonsense" * 1000)
    assert "eclipse" in trends("--data", data).out
    counts = SqliteTrends(data / "trends.db")
    counts._connection.execute("UPDATE numbers SET n = 99999")
    counts.close()
    assert "eclipse" in trends("--data", data).out


def test_a_collection_that_may_only_be_read_is_read(data: Path) -> None:
    trends("--data", data)
    data.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        command = [*without_root(), sys.executable, "-m", "levada", "trends", "--data", str(data)]
        assert "eclipse" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    finally:
        data.chmod(stat.S_IRWXU)


@pytest.mark.parametrize("wrong", ["soon", "", "3x", "-1h", "2026-01-31", "99999999w"])
def test_a_window_that_is_none_is_wrong_usage(data: Path, wrong: str) -> None:
    answer = trends("--data", data, f"--window={wrong}")
    assert answer.code == 2
    assert "window" in answer.said


@pytest.mark.parametrize("wrong", [["--limit", "0"], ["x"], ["--lim", "3"]])
def test_wrong_options_are_wrong_usage(data: Path, wrong: list[str]) -> None:
    assert trends("--data", data, *wrong).code == 2


def test_no_collection_and_no_growth_are_status_3(tmp_path: Path) -> None:
    for more in ([], ["--balance"], ["--json"]):
        assert trends("--data", tmp_path / "none", *more).code == 3
        assert not (tmp_path / "none").exists()
    quiet = build(tmp_path / "quiet")
    answer = trends("--data", quiet)
    assert (answer.code, answer.said) == (3, "no term was added to pages more often than before\n")


def test_an_empty_collection_has_nothing_to_balance(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    SqliteStore(folder.database).close()
    assert trends("--data", tmp_path, "--balance").code == 3
    assert trends("--data", tmp_path).code == 3


def test_a_crawl_counts_while_it_runs_only_if_it_is_asked_to(tmp_path: Path) -> None:
    data, config = tmp_path / "data", tmp_path / "levada.toml"
    with serving("--speed", "1", "--pages", "40", "--no-hostile") as web:
        config.write_text(Path(web.config).read_text())
        crawl: list[str | Path] = ["crawl", "--once", "--data", data, "--config", config, *web.start]
        assert levada(*crawl, cwd=tmp_path).returncode == 0
        assert not (data / "trends.db").exists()
        config.write_text(f"{config.read_text()}\n[trends]\nlive = true\n")
        assert levada(*crawl, cwd=tmp_path).returncode == 0
    store, counts = SqliteStore.open_reader(data / "levada.db"), SqliteTrends(data / "trends.db")
    try:
        assert counts.position() == store.newest_seq() > 0
        assert counts.frequency("") == sum(1 for document in store.scan() if document.searchable)
    finally:
        store.close()
        counts.close()


def test_counts_that_cannot_be_written_are_said_in_one_line(data: Path, tmp_path: Path) -> None:
    blocked = changing(tmp_path / "data")
    (blocked / "trends.db").mkdir()
    assert "trends.db" in one_line(levada("trends", "--data", blocked, cwd=tmp_path), 1)
