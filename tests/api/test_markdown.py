"""A stored page as Markdown, in Python and as `levada page` shows it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import levada
from levada.export.markdown import file_name


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "levada", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_page_has_its_headings_and_absolute_links(news: levada.Collection) -> None:
    for document in news.rows():
        markdown = news.markdown(document.url)
        assert markdown.startswith("# ")
        assert "](/" not in markdown
        assert "<p>" not in markdown


def test_what_cannot_be_converted_is_its_text(news: levada.Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(self: object, page: object, title: str) -> None:
        return None

    monkeypatch.setattr("levada.parser.converting.MarkdownConverter.convert", nothing)
    url = next(news.rows()).url
    first = news.page(url).text.splitlines()[0]
    assert first.split()[0] in news.markdown(url)


def test_the_command_shows_a_page_in_each_form(news: levada.Collection) -> None:
    url = next(news.rows()).url
    shown = run("page", url, "--data", "news")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[1] == url
    assert run("page", url, "--data", "news", "--markdown").stdout == f"{news.markdown(url)}\n"
    assert run("page", url, "--data", "news", "--html").stdout.encode() == news.page(url).body
    facts = json.loads(run("page", url, "--data", "news", "--json").stdout)
    assert (facts["url"], facts["version"], facts["markdown"]) == (url, 1, news.markdown(url))


def test_an_export_has_the_markdown_of_each_page(news: levada.Collection, here: Path) -> None:
    whole = {row.url: news.markdown(row.url) for row in news.rows()}
    done = run("export", "--markdown", "--out", "pages.md", "--data", "news")
    assert done.returncode == 0, done.stderr
    assert all(markdown in (here / "pages.md").read_text() for markdown in whole.values())
    assert run("export", "--markdown", "--data", "news").stdout == (here / "pages.md").read_text()
    lines = run("export", "--jsonl", "--markdown", "--data", "news").stdout.splitlines()
    assert {row["url"]: row["markdown"] for row in map(json.loads, lines)} == whole
    for _ in range(2):  # the second replaces the first
        assert run("export", "--markdown", "--out", "notes/", "--force", "--data", "news").returncode == 0
    files = [path.read_text() for path in (here / "notes").glob("*/*.md")]
    assert len(files) == len(whole)
    assert all(f"url: {json.dumps(url)}\n" in "".join(files) for url in whole)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--markdown", "--out", "notes"], "end the name in .md for one file, or in / for a file per page"),
        (["--markdown", "--parquet"], "given: --markdown and --parquet"),
        (["--markdown", "--out", "full/", "--force"], "full contains more than an earlier export"),
    ],
)
def test_a_wrong_export_gets_a_sentence(here: Path, news: levada.Collection, words: list[str], said: str) -> None:
    (here / "full").mkdir(exist_ok=True)
    (here / "full" / "mine.txt").write_text("mine")
    done = run("export", *words, "--data", "news")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@given(st.lists(st.text(max_size=90), unique=True))
def test_each_page_of_a_site_has_a_file_of_its_own(paths: list[str]) -> None:
    urls = {f"{scheme}://a.test/{path}" for path in [*paths, "index", "", "x"] for scheme in ("https", "http")}
    names = {file_name(url) for url in urls}
    assert len(names) == len(urls)
    assert not any("/" in name or name.startswith(".") or len(name) > 100 for name in names)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["nowhere.example"], 3, "no page https://nowhere.example/ is known"),
        (["file:///etc/passwd"], 2, "not an http or https address"),
        (["{url}", "--version", "99"], 3, "no version 99"),
        (["{url}", "--html", "--json"], 2, "choose one of"),
    ],
)
def test_a_wrong_argument_gets_a_sentence(
    here: Path, news: levada.Collection, words: list[str], status: int, said: str
) -> None:
    url = next(news.rows()).url
    done = run("page", *[word.replace("{url}", url) for word in words], "--data", "news")
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
