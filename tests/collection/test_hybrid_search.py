"""Hybrid search of a collection: by the built-in model, by a plug-in, without the extra, and after a forget."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

from levada.collection.forgetting.remains import find_remains
from levada.collection.forgetting.run import forget, wanted
from levada.collection.search import open_search
from levada.core.errors import SettingsError
from levada.core.folder import DataFolder
from levada.core.plugins import installed
from levada.core.search_records import Query
from levada.core.settings import IndexSettings, SearchSettings, Settings
from levada.search.hybrid.embedding import open_embedder
from levada.store.sqlite import SqliteStore
from levada.testing.store.visits import first, links
from tests import needs
from tests.cli.collection import build as build_news
from tests.cli.collection import command
from tests.collection.forgotten_folder import CANARY, FORGOTTEN, build
from tests.plugged import install

search, settings = command("search"), command("settings")
PLUG_IN = """
class Weekdays:
    model, dimensions, least_similarity = "weekdays 1", 2, 0.5
    def embed(self, texts):
        return [self.embed_query(text) for text in texts]
    def embed_query(self, text):
        if "fail" in text:
            raise KeyError("as the query says")
        return [float("ferry" in text.lower() or "sailing" in text), 0.1]
"""


@pytest.fixture
def without_wordllama(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.delitem(sys.modules, "levada.search.hybrid.static", raising=False)


def hybrid() -> Settings:
    return Settings(search=SearchSettings(hybrid=True))


def test_hybrid_search_is_off_unless_it_is_turned_on(tmp_path: Path) -> None:
    assert not Settings().search.hybrid
    data = build(tmp_path / "data")
    assert not (data / "index" / "vectors.db").exists()


def test_pages_are_found_by_meaning_from_the_next_search_on(tmp_path: Path) -> None:
    needs.package("wordllama")
    folder = DataFolder(tmp_path / "levada-data")
    folder.make()
    data = folder.path
    with closing(SqliteStore(folder.database)) as store:
        store.add(links("a.test", 2), [], 0.0)
        texts = ["The ferry leaves the harbour at noon, and sails between the islands.", "Bread with butter and jam."]
        for lease, text in zip(store.lease(0.0, 2, 60.0), texts, strict=True):
            store.commit([first(lease, 1.0, text)])
    assert search("boat", "--data", data).code == 3
    assert settings("set", "search.hybrid=true", "--data", data).code == 0
    found = search("boat", "--data", data).out
    assert "1 found" in found
    assert "ferry" in found
    assert search("xyzzyq", "--data", data).code == 3
    assert settings("set", "search.hybrid=false", "--data", data).code == 0
    assert search("boat", "--data", data).code == 3
    assert not (data / "index" / "vectors.db").exists()


def test_without_the_extra_one_sentence_says_what_to_install(tmp_path: Path, without_wordllama: None) -> None:
    data = build_news(tmp_path / "levada-data")
    assert settings("set", "search.hybrid=true", "--data", data).code == 0
    answer = search("ferry", "--data", data)
    assert (answer.code, answer.said) == (
        2,
        "search.hybrid: tokenizers is not installed: pip install 'levada[hybrid]'\n",
    )
    (listed,) = [each for each in installed() if each.group == "levada.embedders"]
    assert listed.trouble == "tokenizers is not installed: pip install 'levada[hybrid]'"


@pytest.mark.parametrize("shards", [1, 3])
def test_a_forgotten_site_leaves_no_vectors(tmp_path: Path, shards: int) -> None:
    needs.package("wordllama")
    made = Settings().replace({"search.hybrid": True, "store.shards": shards, "store.key": "url"})
    data = build(tmp_path / "data", made if shards > 1 else hybrid())
    held = [path for path in data.rglob("vectors.db") if FORGOTTEN.encode() in path.read_bytes()]
    assert held
    forget(data, wanted((), FORGOTTEN))
    assert not [path for path in data.rglob("vectors.db*") if FORGOTTEN.encode() in path.read_bytes()]
    assert find_remains(data, FORGOTTEN).found == ()
    with open_search(DataFolder(data)) as (_, index):
        assert index.search(Query(CANARY)).total == 0
        assert index.search(Query("harmless")).total == 1


def test_a_site_is_forgotten_without_the_extra_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs.package("wordllama")
    data = build(tmp_path / "data", hybrid())
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.delitem(sys.modules, "levada.search.hybrid.static", raising=False)
    assert forget(data, wanted((), FORGOTTEN)).finished
    assert find_remains(data, FORGOTTEN).found == ()


def test_an_embedder_of_another_package_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, {"levada.embedders": {"weekdays": "weekdays_plugin:Weekdays"}})
    (tmp_path / "weekdays_plugin.py").write_text(PLUG_IN)
    monkeypatch.syspath_prepend(str(tmp_path))
    data = build_news(tmp_path / "levada-data")
    chosen = ("search.hybrid=true", "search.embedder=weekdays")
    assert settings("set", *chosen, "--data", data).code == 0
    assert "2 found" in search("sailing", "--data", data).out
    failed = search("fail", "--data", data)
    assert failed.code != 0
    assert 'search.embedder: the plug-in "weekdays" failed (KeyError' in failed.said
    monkeypatch.delitem(sys.modules, "weekdays_plugin")


def test_hybrid_search_needs_the_built_in_index(tmp_path: Path) -> None:
    other = Settings(search=SearchSettings(hybrid=True), index=IndexSettings(engine="other"))
    with pytest.raises(SettingsError, match=r'index\.engine must be "tantivy", not "other"'):
        open_embedder(other)
