"""`levada settings` and `levada collections`, and the ways to name a collection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from levada.core.folder import DataFolder
from tests.cli.collection import build, command

settings, collections, search = command("settings"), command("collections"), command("search")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a collection, and nothing of the user besides."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    build(tmp_path / "levada-data")
    return tmp_path


def test_each_value_is_shown_with_its_source(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings("set", "politeness.delay=2").out == "politeness.delay: 1 -> 2, kept with the collection\n"
    monkeypatch.setenv("LEVADA_BUDGET_PER_HOUR", "70")
    (here / "levada.toml").write_text("[crawl]\nmax_depth = 4\n")
    rows = {each["key"]: each for each in json.loads(settings("--json").out)["settings"]}
    sources = {key: rows[key]["source"] for key in rows if rows[key]["source"] != "default"}
    assert {key: source for key, source in sources.items() if not key.startswith("clock")} == {
        "politeness.delay": "collection",
        "budget.per_hour": "environment",
        "crawl.max_depth": "file",
    }
    shown = settings("--changed").out
    assert "LEVADA_BUDGET_PER_HOUR" in shown
    assert "crawl.sitemaps" not in shown


def test_what_is_stronger_than_the_collection_is_said(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEVADA_POLITENESS_DELAY", "8")
    assert "but LEVADA_POLITENESS_DELAY is stronger, and says 8" in settings("set", "politeness.delay=4").out
    (here / "levada.toml").write_text("[crawl]\nmax_depth = 4\n")
    assert "but levada.toml says 4" in settings("set", "crawl.max_depth=5").out
    assert settings("set", "crawl.max_depth=5").out.startswith("nothing changed: crawl.max_depth is ")
    (here / "levada.toml").unlink()
    assert settings("unset", "crawl.max_depth").out == "crawl.max_depth: 5 -> 20, the default\n"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("set", "politeness.dely=1"), 2, "did you mean politeness.delay"),
        (("set", "crawl.scope=host"), 2, 'crawl.scope must be "sites" or "any", not "host"'),
        (("set", "politeness.delay"), 2, "levada settings set politeness.delay=VALUE"),
        (("set",), 2, "which setting?"),
        (("politenes",), 2, "there is no setting"),
        (("set", "politeness.delay=1", "--data", "nowhere"), 3, "there is no collection in nowhere"),
        (("set", "politeness.delay=1", "--changed"), 2, "neither --config nor --changed"),
    ],
)
def test_wrong_words_change_nothing(words: tuple[str, ...], code: int, says: str, here: Path) -> None:
    before = (here / "levada-data" / "settings.json").read_bytes()
    ended = settings(*words)
    assert (ended.code, says in ended.said) == (code, True), ended.said
    assert (here / "levada-data" / "settings.json").read_bytes() == before
    assert not (here / "nowhere").exists()


def test_a_key_and_its_value_may_be_two_words(here: Path) -> None:
    assert settings("set", "site.shop.example.select", "main .price").code == 0
    assert settings("set", "politeness.delay", "3").out == "politeness.delay: 1 -> 3, kept with the collection\n"
    assert '["main .price"]' in settings("site").out


def test_passwords_are_not_shown(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEVADA_STORE_SERVERS", "postgresql://me:hushhush@127.0.0.1/levada")
    for told in (settings("store"), settings("--json")):
        assert "****" in told.out
        assert "hushhush" not in told.out


def test_a_collection_is_named_by_flag_variable_or_name(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(here / "share" / "levada" / "blog")
    assert collections("add", "mine", here / "levada-data").code == 0
    rows = json.loads(collections("--json").out)["collections"]
    assert [(row["name"], row["pages"] > 0, row["crawling"]) for row in rows] == [
        ("blog", True, False),
        ("mine", True, False),
    ]
    assert settings("set", "crawl.max_depth=7", "--in", "mine").code == 0
    assert DataFolder(here / "levada-data").settings().crawl.max_depth == 7
    monkeypatch.setenv("LEVADA_DATA", str(here / "share" / "levada" / "blog"))
    assert settings("set", "crawl.max_depth=8").code == 0
    assert DataFolder(here / "share" / "levada" / "blog").settings().crawl.max_depth == 8
    assert "levada-data" not in settings("--json", "--in", "blog").out
    assert collections("remove", "mine").code == 0
    assert "did you mean blog?" in search("x", "--in", "blgo").said
    assert "two collections" in search("x", "--in", "blog", "--data", "y").said
    assert (here / "levada-data" / "levada.db").exists()
