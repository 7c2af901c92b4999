"""The readers of main texts are compared on judged pages, each corpus by its own measure."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from levada.cli.app import app
from levada.core.errors import LevadaError
from levada.lab.reading import Judged, by_pieces, by_shingles, installed_readers, open_corpus, score

SAID = "The council met on Tuesday and decided, after a long debate, that the old bridge will be repaired. " * 8
MENU = "".join(f"<li><a href=/{name}>{name}</a></li>" for name in ("Home", "Sport", "Weather", "Imprint"))


def html(number: int) -> bytes:
    return (
        f"<title>Bridge {number}</title><ul>{MENU}</ul><article><h2>What next</h2><p>{SAID}</p><p>Part {number} of the "
        f"work begins in May.</p></article><div class=footer>© 2024 Council</div>"
    ).encode()


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    """As `scrapinghub/article-extraction-benchmark` is laid out."""
    folder = tmp_path / "articles"
    (folder / "html").mkdir(parents=True)
    for number in range(6):
        (folder / "html" / f"page{number}.html.gz").write_bytes(gzip.compress(html(number)))
    text = {f"page{n}": {"articleBody": f"What next {SAID} Part {n} of the work begins in May."} for n in range(6)}
    (folder / "ground-truth.json").write_text(json.dumps(text))
    return folder


@pytest.fixture
def pieces(tmp_path: Path) -> Path:
    """As `adbar/trafilatura` is laid out."""
    tests = tmp_path / "pieces" / "tests"
    for folder, number in (("cache", 0), ("eval", 1), ("eval", 2), ("eval", 3)):
        (tests / folder).mkdir(parents=True, exist_ok=True)
        (tests / folder / f"{number}.html").write_bytes(html(number))
    judged = {"with": ["met on  Tuesday", "begins in May."], "without": ["Weather", "Council"]}
    facts = {f"https://example.org/{n}": {"file": f"{n}.html", **judged} for n in range(4)}
    (tests / "evaldata.json").write_text(json.dumps(facts))
    return tmp_path / "pieces"


def test_shingles_count_words_in_their_order() -> None:
    page = Judged("a.html", Path("a.html"), text="one two three four five")
    assert by_shingles([page], ["one two three four five"]) == (1, 1)
    assert by_shingles([page], ["menu one two three four five menu"]) == (0.5, 1)
    assert by_shingles([page], ["two three four five"]) == (1, 0.5)
    assert by_shingles([page], [""]) == (0, 0)


def test_pieces_count_over_all_pages() -> None:
    page = Judged("a.html", Path("a.html"), inside=("one  two", "three"), outside=("menu",))
    assert by_pieces([page, page], ["one two\nthree", "menu three"]) == (3 / 4, 3 / 4)


def test_each_page_is_in_one_half_whatever_the_machine(articles: Path) -> None:
    assert [page.half for page in open_corpus(articles).pages] == [
        "held back",
        "held back",
        "held back",
        "tuned",
        "tuned",
        "held back",
    ]


def test_levada_reads_the_pages_of_both_corpora(articles: Path, pieces: Path) -> None:
    for path in (articles, pieces, pieces / "tests"):
        found = score(open_corpus(path), "held back", "levada", *installed_readers(["levada"])["levada"])
        assert found.pages >= 1
        assert (found.precision, found.recall, found.failures) == (1, 1, 0)


def test_a_reader_that_fails_has_found_nothing(articles: Path) -> None:
    def fails(body: bytes) -> str:
        raise ValueError("not mine")

    found = score(open_corpus(articles), "tuned", "fails", "1", fails)
    assert (found.recall, found.f1, found.failures) == (0, 0, found.pages)


def test_the_command_prints_every_reader_on_both_halves(articles: Path, pieces: Path) -> None:
    typed = ["lab", "reading", "--corpus", str(articles), "--corpus", str(pieces), "--readers", "levada,trafilatura"]
    printed = CliRunner().invoke(app, typed)
    assert printed.exit_code == 0, printed.output
    for heading in ("article-extraction-benchmark, tuned half", "trafilatura, held back half", "ms/page"):
        assert heading in printed.stdout
    told = CliRunner().invoke(app, [*typed, "--json"])
    scores = json.loads(told.stdout)["scores"]
    assert {(each["reader"], each["half"]) for each in scores} == {
        (reader, half) for reader in ("levada", "trafilatura") for half in ("tuned", "held back")
    }


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "neither ground-truth.json nor evaldata.json is there"),
        ({"evaldata.json": "[1]"}, "this is not the judgements of a corpus"),
        ({"evaldata.json": "{"}, "this is not JSON"),
        ({"evaldata.json": '{"a": {"with": [], "without": []}}'}, "a page has no file or no judgements"),
        ({"ground-truth.json": '{"a": {"articleBody": "b"}}'}, "1 pages are missing, the first is"),
    ],
)
def test_a_folder_that_is_no_corpus_is_refused(tmp_path: Path, files: dict[str, str], said: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(LevadaError, match=said):
        open_corpus(tmp_path)
