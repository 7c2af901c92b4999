"""Judged collections are read in both forms, and every engine is measured by the same figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from levada.cli.app import app
from levada.core.errors import LevadaError, UsageError
from levada.lab.search import compare, engines, gain_of, read_corpus, reciprocal_rank

# Written for this test: six documents, and four questions with their answers.
DOCUMENTS = """.I 1
.T
Harbour ferries
.A
someone
.W
The ferry leaves the
harbour at noon.
.I 2
.T
Bridge
.W
An old bridge crosses the river.
.I 3
.T
Tea
.W
Tea is grown on the hills above the sea.
.I 4
.T
Trains
.W
A train crosses the new bridge every hour.
.I 5
.T
Olives
.W
Olives are harvested in autumn.
.I 6
.T
Weather
.W
Autumn brings rain and wind from the sea.
"""
QUESTIONS = """.I 10
.W
When do ferries leave the harbour?
.I 20
.W
which trains cross bridges
.I 30
.W
nobody judged this one
.I 40
.W
harvest of olives in autumn
"""
JUDGED = "1 1 1\n2 4 1\n2 2 3\n4 5 -1\n4 99 1\n"


@pytest.fixture
def smart(tmp_path: Path) -> Path:
    (tmp_path / "tiny.all.6").write_text(DOCUMENTS)
    (tmp_path / "TINY.QRY").write_text(QUESTIONS)
    (tmp_path / "tinyqrel").write_text(JUDGED)
    return tmp_path


def test_the_files_of_smart_are_read(smart: Path) -> None:
    corpus = read_corpus(smart)
    assert [each.title for each in corpus.documents][:2] == ["Harbour ferries", "Bridge"]
    assert corpus.documents[0].text == "The ferry leaves the harbour at noon."
    assert [set(each.answers) for each in corpus.questions] == [{"1"}, {"4", "2"}, {"5"}], "by the question's place"


def test_the_files_of_beir_are_read(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "title": "T", "text": "x"}\n{"_id": "b", "text": "y"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "x?"}\n{"_id": "2", "text": "z?"}\n')
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\n")
    corpus = read_corpus(tmp_path)
    assert [(each.name, each.title) for each in corpus.documents] == [("a", "T"), ("b", "")]
    assert [(each.text, set(each.answers)) for each in corpus.questions] == [("x?", {"a"})]


@pytest.mark.parametrize("missing", ["tiny.all.6", "TINY.QRY", "tinyqrel"])
def test_a_missing_file_is_named(smart: Path, missing: str) -> None:
    (smart / missing).unlink()
    with pytest.raises(LevadaError, match="no file holds the"):
        read_corpus(smart)


def test_a_collection_without_answers_is_refused(smart: Path) -> None:
    (smart / "tinyqrel").write_text("1 99 1\n")
    with pytest.raises(LevadaError, match="no question has a document"):
        read_corpus(smart)


def test_every_engine_is_measured_on_both_halves(smart: Path) -> None:
    scores = list(compare(read_corpus(smart)))
    assert {score.engine for score in scores} == set(engines())
    assert [(score.half, score.questions) for score in scores[:3]] == [("tuned", 2), ("held back", 1), ("all", 3)]
    assert all(0 <= score.ndcg <= 1 and 0 <= score.mrr <= 1 for score in scores)
    assert scores[2].engine == "levada"
    assert scores[2].ndcg > 0.9, "ours knows forms, stop words and questions"


@given(st.lists(st.integers(0, 9), unique=True, min_size=1), st.frozensets(st.integers(0, 9), min_size=1))
def test_the_best_order_has_gain_one_and_no_other_more(found: list[int], answers: frozenset[int]) -> None:
    names, right = [str(each) for each in found], frozenset(map(str, answers))
    best = sorted({*names, *right}, key=lambda name: name not in right)
    assert gain_of(best, right) == pytest.approx(1.0)
    assert 0.0 <= gain_of(names, right) <= 1.0 + 1e-9
    first = next((place for place, name in enumerate(names, 1) if name in right), None)
    assert reciprocal_rank(names, right) == (0.0 if first is None else 1 / first)


def test_the_command_prints_rows_for_each_engine(smart: Path) -> None:
    scores = json.loads(CliRunner().invoke(app, ["lab", "search", "--corpus", str(smart), "--json"]).stdout)["scores"]
    assert {score["engine"] for score in scores} == set(engines())
    assert "nDCG@10" in CliRunner().invoke(app, ["lab", "search", "--corpus", str(smart)]).stdout


def test_the_command_needs_a_collection() -> None:
    with pytest.raises(UsageError, match="--corpus is missing"):
        CliRunner().invoke(app, ["lab", "search"], catch_exceptions=False)
