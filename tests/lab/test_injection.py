"""Noise and edits are put into judged articles, and what is compared is counted."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from levada.cli.app import app
from levada.lab.injection import EDIT_KINDS, NOISE_KINDS, articles_of, false_versions, missed_edits
from levada.lab.reading import open_corpus

SAID = "In year {} the council of town {} met again and decided, after a long debate, to repair the old bridge."


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """As `scrapinghub/article-extraction-benchmark` is laid out."""
    (tmp_path / "html").mkdir()
    truth = {}
    for number in range(6):
        lines = [SAID.format(1900 + year, number) for year in range(12)]
        body = f"<title>Bridge {number}</title><article><h1>Bridge {number}</h1>{''.join(f'<p>{x}</p>' for x in lines)}"
        (tmp_path / "html" / f"page{number}.html.gz").write_bytes(gzip.compress(f"{body}</article>".encode()))
        truth[f"page{number}"] = {"articleBody": "\n".join(lines)}
    (tmp_path / "ground-truth.json").write_text(json.dumps(truth))
    return tmp_path


def test_every_kind_makes_two_pages_that_are_not_the_same_and_that_a_reader_of_all_tells_apart(corpus: Path) -> None:
    articles = articles_of([open_corpus(corpus)])
    assert {article.judged.half for article in articles} == {"held back"}
    assert [len(article.paragraphs()[1]) for article in articles] == [12] * len(articles)
    for edit in EDIT_KINDS:
        assert not list(missed_edits(articles, edit, lambda body: body))
        assert len(list(missed_edits(articles, edit, lambda body: None))) == 20
    for kind in NOISE_KINDS:
        if kind != "cookies":  # a notice may be missing at both visits
            assert len(list(false_versions(articles, kind, lambda body: body))) == len(articles)
        assert not list(false_versions(articles, kind, lambda body: None))


def test_the_command_prints_each_kind_and_levada_misses_no_edit(corpus: Path) -> None:
    run = CliRunner().invoke(app, ["lab", "noise", "--corpus", str(corpus), "--json"])
    found = json.loads(run.stdout)
    own = [score for score in found["scores"] if score["reader"] == "levada"]
    assert [score["kind"] for score in own] == [*NOISE_KINDS, *EDIT_KINDS]
    assert sum(score["wrong"] for score in own if score["is_edit"]) == 0
    assert sum(score["wrong"] for score in own if not score["is_edit"]) <= 3


def test_a_corpus_without_articles_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "ground-truth.json").write_text("{}")
    run = CliRunner().invoke(app, ["lab", "noise", "--corpus", str(tmp_path)])
    assert run.exit_code == 1
    assert "four paragraphs" in str(run.exception)
