"""A stored page as Markdown, in Python and as `levada page` shows it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import levada
from levada.core.settings import ParseSettings


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
    def nothing(page: object, title: str, settings: ParseSettings) -> None:
        return None

    monkeypatch.setattr("levada.parser.converting.convert", nothing)
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
