from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.collection import FRONT, PLAIN, SCRIPT, VAPUR, build, command

search = command("search")
postings = command("postings")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of its own: a search may write the index."""
    return build(tmp_path_factory.mktemp("searched") / "levada-data")


@pytest.mark.parametrize("typed", ["istanbul", "ISTANBUL", "İstanbul", "ıstanbul"])
def test_a_dotted_i_is_found_however_it_is_typed(data: Path, typed: str) -> None:
    answer = search(typed, "--data", data)
    assert answer.code == 0
    assert FRONT in answer.out
    assert VAPUR in answer.out
    assert "2 found" in answer.out
    assert "changed 10 h ago" in answer.out


def test_text_from_pages_is_shown_but_not_obeyed(data: Path) -> None:
    answer = search("haber", "--data", data)
    assert answer.code == 0
    assert "\x1b" not in answer.out
    assert "\x07" not in answer.out
    assert "kırmızı haber" in answer.out
    assert "<script>alert(1)</script> [bold]x[/bold]" in search("ferry", "--data", data).out


def test_json_has_the_facts_and_the_marks(data: Path) -> None:
    found = json.loads(search("ferry", "--json", "--data", data).out)
    assert found["total"] == 2
    assert [hit["url"] for hit in found["hits"]] == [SCRIPT, PLAIN]
    assert found["hits"][0]["snippet"][0] == {"text": "ferry", "asked": True}
    assert found["hits"][1]["changed_at"] == "2027-01-14T22:00:00.000Z"


def test_pages_of_hits_follow_each_other(data: Path) -> None:
    first = json.loads(search("ferry", "--limit", 1, "--json", "--data", data).out)
    second = json.loads(search("ferry", "--limit", 1, "--page", 2, "--json", "--data", data).out)
    assert [each["hits"][0]["url"] for each in (first, second)] == [SCRIPT, PLAIN]
    answer = search("ferry", "--limit", 1, "--page", 2, "--data", data)
    assert "  2. " in answer.out
    assert "2 found, 2 to 2 shown" in answer.out
    beyond = search("ferry", "--page", 7, "--data", data)
    assert beyond.code == 3
    assert "there is no page 7" in beyond.said


def test_filters_work_on_the_collections_own_clock(data: Path) -> None:
    assert json.loads(search("since:1h", "--json", "--data", data).out)["total"] == 1
    assert search("vapur site:example.net", "--data", data).code == 3


def test_nothing_found_is_status_3(data: Path) -> None:
    answer = search("yokböyle", "--data", data)
    assert (answer.code, answer.said) == (3, "nothing found for yokböyle\n")
    as_json = search("yokböyle", "--json", "--data", data)
    assert (as_json.code, json.loads(as_json.out)) == (
        3,
        {"total": 0, "hits": [], "did_you_mean": None, "notes": [], "facets": {}},
    )


def test_a_typing_error_is_corrected_and_said(data: Path) -> None:
    answer = search("vapru", "--data", data)
    assert answer.code == 0
    assert answer.out.startswith("did you mean vapur?")
    assert VAPUR in answer.out
    assert json.loads(search("vapru", "--json", "--data", data).out)["did_you_mean"] == "vapur"
    nothing = search("ferry", "AND", "tmies", "--data", data)
    assert (nothing.code, nothing.said) == (3, "nothing found for ferry AND tmies: did you mean ferry AND times?\n")


def test_hits_can_be_sorted_counted_and_put_together(data: Path) -> None:
    by_time = json.loads(search("istanbul", "--sort", "changed", "--json", "--data", data).out)
    assert [hit["url"] for hit in by_time["hits"]] == [VAPUR, FRONT]
    visited = json.loads(search("istanbul", "--sort", "checked", "--json", "--data", data).out)
    assert visited["hits"][0]["checked_at"] == "2027-01-15T07:50:00.000Z"
    (hit,) = json.loads(search("istanbul", "--one-per", "site", "--json", "--data", data).out)["hits"]
    assert (hit["more"], len(hit["others"])) == (1, 1)
    shown = search("istanbul", "--one-per", "site", "--facets", "--data", data).out
    assert "+ https://example.org/" in shown
    assert "        2  site:example.org\n" in shown
    assert "        2  lang:tr\n" in shown
    assert "        1  since:1h\n" in shown
    counted = json.loads(search("istanbul", "--facets", "--json", "--data", data).out)["facets"]
    assert counted["site"] == [{"value": "example.org", "count": 2, "filter": "site:example.org"}]


def test_a_note_is_said_beside_the_hits(data: Path) -> None:
    answer = search("vapur", "foo:saatleri", "--data", data)
    assert answer.code == 0
    assert "column 7: there is no field foo:, so it is searched for as a word" in answer.said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--sort", "newest"), "--sort must be relevance, changed or checked, not newest"),
        (("--one-per", "host"), "--one-per must be site or copies, not host"),
    ],
)
def test_an_order_that_does_not_exist_is_named(data: Path, options: tuple[str, str], said: str) -> None:
    answer = search("x", *options, "--data", data)
    assert answer.code == 2
    assert said in answer.said


def test_an_index_of_an_older_format_is_built_anew_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = build(tmp_path / "levada-data")
    search("istanbul", "--data", data)
    position = data / "index" / "position.json"
    position.write_text(json.dumps({**json.loads(position.read_text()), "format": 1}))
    assert "2 found" in search("istanbul", "--data", data).out
    (said,) = [each.message for each in caplog.records if "older Levada" in each.message]
    assert said.endswith("was written by an older Levada; it can be rebuilt from the documents, which is done now")
    caplog.clear()
    assert "2 found" in search("istanbul", "--data", data).out
    assert not caplog.records


def test_synonyms_come_from_a_file_and_what_is_wrong_in_it_is_said(tmp_path: Path) -> None:
    data = build(tmp_path / "levada-data")
    settings = command("settings")
    assert search("boat", "--data", data).code == 3
    (data / "words.txt").write_text("boat, ferry\n")
    assert settings("set", "search.synonyms=words.txt", "--data", data).code == 0
    assert "2 found" in search("boat", "--data", data).out
    (data / "words.txt").write_text("boat, ferry\nlonely\n")
    wrong = search("boat", "--data", data)
    assert wrong.code == 2
    assert "words.txt, line 2: a line needs two words at least" in wrong.said
    (data / "words.txt").unlink()
    assert "cannot read" in search("boat", "--data", data).said


@pytest.mark.parametrize("typed", ['"open', "site:", "(open", "titel:x", '"a b"~x', "since:soon", "OR", " ", "\x1b[0m"])
def test_a_query_that_means_nothing_is_wrong_usage(data: Path, typed: str) -> None:
    assert search(typed, "--data", data).code == 2


@pytest.mark.parametrize("wrong", [["x", "--limit", "0"], ["x", "--page", "-1"], [], ["x", "--limt", "3"]])
def test_wrong_options_are_wrong_usage(data: Path, wrong: list[str]) -> None:
    assert search(*wrong, "--data", data).code == 2


def test_hits_too_deep_are_wrong_usage(data: Path) -> None:
    assert search("ferry", "--page", 100_000, "--data", data).code == 2


def test_no_collection_is_said_in_one_line(tmp_path: Path) -> None:
    for run in (search, postings):
        answer = run("x", "--data", tmp_path / "none")
        assert answer.code == 3
        assert "levada crawl" in answer.said
        assert not (tmp_path / "none").exists()


def test_postings_are_the_papers_triples(data: Path) -> None:
    answer = postings("ferry", "--data", data)
    assert answer.code == 0
    (line,) = answer.out.splitlines()
    assert [triple.split("-")[2] for triple in line.split(", ")] == ["2", "1"]


def test_postings_say_which_number_is_which(data: Path) -> None:
    shown = postings("ferry", "--urls", "--data", data).out
    assert SCRIPT in shown
    assert "plain.example:8080" in shown
    rows = json.loads(postings("FERRY", "--json", "--data", data).out)["postings"]
    assert [(row["count"], row["url"]) for row in rows] == [(2, SCRIPT), (1, PLAIN)]


def test_postings_stop_at_the_limit_and_say_so(data: Path) -> None:
    assert postings("ferry", "--limit", 1, "--data", data).out.endswith("-2, ...\n")
    assert json.loads(postings("ferry", "--limit", 1, "--json", "--data", data).out)["more"] is True


def test_a_word_that_stands_nowhere_is_status_3(data: Path) -> None:
    assert postings("yokböyle", "--data", data).code == 3
    answer = postings("yokböyle", "--json", "--data", data)
    assert (answer.code, json.loads(answer.out)["postings"]) == (3, [])


@pytest.mark.parametrize("typed", ["two words", "", "!"])
def test_postings_take_one_word(data: Path, typed: str) -> None:
    assert postings(typed, "--data", data).code == 2


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("istanbul", "-otel"), "'-otel' reads like an option: write options first and then --, as in"),
        (("istanbul", "-otel"), "levada search -- istanbul -otel"),
        (("--limit", "5", "-hotel"), "levada search -- -hotel"),
        (('-"old town"', "ferry"), """levada search -- '-"old town"' ferry"""),
    ],
)
def test_a_minus_that_reads_like_an_option_is_told_how_to_be_written(typed: tuple[str, ...], told: str) -> None:
    answer = search(*typed)
    assert answer.code == 2
    assert told in answer.said


def test_after_two_dashes_a_minus_is_a_part_of_the_query(data: Path) -> None:
    assert "1 found" in search("--data", data, "--", "ferry", "-times").out
