"""Questions are asked over folders of real HTML files, read as a crawl reads them."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

from levada.cli.app import app
from levada.core.errors import LevadaError, UsageError
from levada.lab.judged_pages import read_pages
from levada.lab.search import compare
from levada.pages.links import anchors_in

PAGES = {
    "git/rebase.html": ("git rebase", "Reapply commits on top of another base. <a href='reset.html'>git reset</a>"),
    "git/reset.html": ("git reset", "Set the current head to a state. <a href='rebase.html'>rebase</a>"),
    "copy/reset.htm": ("git reset", "Set the current head to a state. <a href='rebase.html'>rebase</a>"),
    "sql/index.html": ("The manual", "How to create an index of a table."),
    "notes.txt": ("", "no page"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, (title, text) in PAGES.items():
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<html><head><title>{title}</title></head><body><h1>{title}</h1><p>{text}</p></body></html>")
    (tmp_path / "docs" / "link.html").symlink_to(tmp_path / "docs" / "sql" / "index.html")
    return tmp_path / "docs"


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    asked = [
        {"question": "undo a commit reset", "answers": ["copy/reset.htm", "git/nowhere.html"]},
        {"question": "create ind", "answers": ["sql/index.html"], "as_you_type": True},
        {"question": "what nobody answers", "answers": ["t/reset.html"]},
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in asked))
    return path


def test_pages_are_read_with_titles_and_links_and_copies_count_as_one(folder: Path, questions: Path) -> None:
    corpus = read_pages(folder, questions)
    titles = {each.name: each.title for each in corpus.documents}
    assert titles == {"copy/reset.htm": "git reset", "git/rebase.html": "git rebase", "sql/index.html": "The manual"}
    rebase = next(each for each in corpus.documents if each.name == "git/rebase.html")
    assert [text for _, text in anchors_in(rebase.anchors)] == ["git reset"]
    assert [(set(each.answers), each.as_you_type) for each in corpus.questions] == [
        ({"copy/reset.htm"}, False),
        ({"sql/index.html"}, True),
    ]


def test_every_engine_is_asked(folder: Path, questions: Path) -> None:
    ours = [score for score in compare(read_pages(folder, questions)) if score.engine == "levada"]
    assert [(score.half, score.questions, score.top3) for score in ours] == [
        ("tuned", 1, 1),
        ("held back", 1, 1),
        ("all", 2, 2),
    ]


def test_the_shipped_questions_can_be_read_and_none_is_asked_twice() -> None:
    lines = files("levada.lab").joinpath("data", "search_questions.jsonl").read_text().splitlines()
    asked = [json.loads(line) for line in lines]
    assert len({each["question"] for each in asked}) == len(asked) >= 48
    assert all(each["answers"] for each in asked)


@pytest.mark.parametrize(
    ("line", "said"),
    [("no json", "line 1"), ('{"question": "x"}', "line 1.*answers"), ('{"query": "x", "answers": []}', "line 1")],
)
def test_a_line_that_is_no_question_is_named(folder: Path, tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "bad.jsonl").write_text(f"{line}\n")
    with pytest.raises(LevadaError, match=said):
        read_pages(folder, tmp_path / "bad.jsonl")


def test_a_folder_that_answers_nothing_is_named(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(LevadaError, match="there is no such folder"):
        read_pages(tmp_path / "nowhere")
    with pytest.raises(LevadaError, match="none of its 4 pages answers"):
        read_pages(folder)
    with pytest.raises(LevadaError, match=r"--questions .*: No such file"):
        read_pages(folder, tmp_path / "nowhere.jsonl")


def test_the_command_prints_the_questions_among_the_first_three(folder: Path, questions: Path) -> None:
    asked = ["lab", "search", "--pages", str(folder), "--questions", str(questions)]
    assert "top 3" in CliRunner().invoke(app, asked).stdout
    with pytest.raises(UsageError, match="--questions needs --pages"):
        CliRunner().invoke(app, ["lab", "search", "--corpus", "x", "--questions", "y"], catch_exceptions=False)
