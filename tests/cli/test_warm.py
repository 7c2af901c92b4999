"""`levada warm`, as somebody types it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from levada.bulk.loads import noted_load
from levada.bulk.maps import Map
from levada.cli.demo.output import warm_line
from levada.core.folder import DataFolder
from levada.core.records import Outcome
from levada.demo.story import warm_story
from levada.store.sqlite import SqliteStore
from tests.cli.collection import NOW, PLAIN, VAPUR, Answer, build, command, settle

Run = Callable[..., Answer]


@pytest.fixture
def run() -> Run:
    return command("warm")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return build(tmp_path / "data")


def test_it_says_how_many_pages_and_how_fast(run: Run, own: Path) -> None:
    done = run("--data", own)
    assert done.code == 0
    assert re.fullmatch(r"pages: 8 pages, [\d,]+ pages/s, in \S+/maps, generation 1\n", done.out)
    assert "8 pages" in done.said  # the progress, when piped
    with Map.open(str(own / "maps"), "pages") as pages:
        assert pages.get(VAPUR)[4] == "Vapur saatleri (yeni)"


def test_the_second_time_takes_what_was_visited_since(run: Run, own: Path) -> None:
    run("--data", own)
    with closing(SqliteStore(own / "levada.db")) as store:
        settle(store, PLAIN, NOW + 1, Outcome.UNCHANGED)
    told = json.loads(run("--data", own, "--json").out)
    assert (told["whole"], told["layers"], told["generation"]) == (False, 2, 2)
    assert 1 <= told["pages"] < 8
    assert "that may have been visited since the last time" in run("--data", own).out


def test_after_eight_layers_it_is_filled_whole_again(run: Run, own: Path) -> None:
    told = [json.loads(run("--data", own, "--json").out) for _ in range(9)]
    assert [each["layers"] for each in told] == [1, 2, 3, 4, 5, 6, 7, 8, 1]
    assert [each["whole"] for each in told] == [True] + [False] * 7 + [True]


def test_its_json_is_one_object_and_nothing_else(run: Run, own: Path) -> None:
    done = run("--data", own, "--json")
    told = json.loads(done.out)
    assert set(told) == {
        "name", "target", "generation", "pages", "whole", "layers", "seconds", "pages_per_second"
    }  # fmt: skip
    assert done.said == ""


def test_a_map_elsewhere_is_noted_in_the_data_folder(run: Run, own: Path, tmp_path: Path) -> None:
    assert run("--data", own, "--to", tmp_path / "there", "--name", "cards").code == 0
    noted = noted_load(own / "maps", "cards")
    assert noted is not None
    assert noted.target == str(tmp_path / "there")
    with Map.open(noted.target, "cards") as summaries:
        assert summaries.manifest.keys == 8


def test_the_folder_may_move(run: Run, own: Path, tmp_path: Path) -> None:
    run("--data", own)
    own.rename(tmp_path / "moved")
    assert run("--data", tmp_path / "moved").code == 0


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--data", "nowhere"), 3, "there is no collection"),
        (("--name", "../x"), 2, "is not a map name"),
        (("--to", "ftp://x/y"), 2, "is not a target"),
        (("--to", "redis://127.0.0.1:1/0"), 1, "127.0.0.1:1"),
    ],
)
def test_bad_input_is_one_clear_line(
    run: Run, own: Path, options: tuple[str, ...], code: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("levada.bulk.loads._sleep", lambda seconds: None)
    given = options if "--data" in options else ("--data", str(own), *options)
    done = run(*given)
    assert (done.code, done.out) == (code, "")
    assert words in done.said
    assert len(done.said.splitlines()) == 1
    assert not (own / "maps").exists()


def test_a_map_of_another_collection_is_refused_unless_it_is_to_be_replaced(
    run: Run, own: Path, tmp_path: Path
) -> None:
    other = build(tmp_path / "other")
    run("--data", own, "--to", tmp_path / "there")
    refused = run("--data", other, "--to", tmp_path / "there")
    assert refused.code == 3
    assert "--replace" in refused.said
    assert run("--data", other, "--to", tmp_path / "there", "--replace").code == 0


def test_the_demo_says_how_many_lookups_it_made(own: Path) -> None:
    story = warm_story(DataFolder(own), 1)
    assert story is not None
    assert story.pages == 8
    assert min(story.map_lookups, story.checked_lookups, story.store_lookups) > 0
    assert warm_line(story).startswith("Warm: 8 pages put into a map: ")
