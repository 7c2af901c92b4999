"""The guide `documents.md`, typed as it stands there, on a site of pages and documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import levada as product
from tests.pages.documents.hostile import locked_pdf, one_page, paragraphs, show, word
from tests.pages.documents.test_readers import two_pages
from tests.story.commands import levada
from tests.story.guides import guide_commands, typed
from tests.story.test_watch_a_blog import blog_server

pytestmark = pytest.mark.timeout(240)

LARGE = 6 * 1024 * 1024  # more than a page may be
FILES = ("timetable.pdf", "report.docx", "rates.csv", "data.json", "locked.pdf", "large.pdf", "large.html", "deck")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a site, and its folder."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text(
        "<title>Harbour</title>" + "".join(f'<p>Read <a href="/{name}">{name}</a>.' for name in FILES)
    )
    (folder / "timetable.pdf").write_bytes(two_pages("The pier is old.", "The ferry leaves at noon."))
    (folder / "report.docx").write_bytes(word(paragraphs("Winter is cold at the quay.")))
    (folder / "rates.csv").write_text("currency,rate\nThaler,1.50\n")
    (folder / "data.json").write_text('{"harbour": {"depth": "twelve fathoms"}}')
    (folder / "locked.pdf").write_bytes(locked_pdf())
    (folder / "large.pdf").write_bytes(one_page(show("A lighthouse.") + b"%" + b"x" * LARGE))
    (folder / "large.html").write_bytes(b"<p>" + b"x " * (LARGE // 2))
    (folder / "deck").write_bytes(two_pages("A deck without an ending.", "Its second page shows a buoy."))
    with blog_server(folder) as address:
        yield address, folder


def test_the_guide_finds_shows_and_compares_documents(tmp_path: Path, site: tuple[str, Path]) -> None:
    address, folder = site
    (tmp_path / "levada.toml").write_text(f'[guard]\nallow = ["{address}"]\n[politeness]\ndelay = 0\n')
    instead = {"https://example.org": f"http://{address}", "pip install": "true"}

    said = []
    for command in guide_commands("documents"):
        if "check" in command:
            (folder / "timetable.pdf").write_bytes(two_pages("The pier is old.", "The ferry leaves at nine."))
        done = typed(command, tmp_path, instead)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        said.append(done.stdout)

    _, _, search, page, check = said
    assert "p. 2 · … The ferry leaves at noon." in search
    assert "Timetable" in page
    assert "by Ada Byron, 2 pages" in page
    assert page.splitlines()[-2:] == ["p. 2", "The ferry leaves at noon."]
    assert "-The ferry leaves at noon." in check.replace("- ", "-")
    assert "+The ferry leaves at nine." in check.replace("+ ", "+")


def test_documents_of_every_kind_are_searched_and_those_that_are_not_read_have_a_reason(
    tmp_path: Path, site: tuple[str, Path]
) -> None:
    address, _ = site
    (tmp_path / "levada.toml").write_text(f'[guard]\nallow = ["{address}"]\n[politeness]\ndelay = 0\n')
    done = levada("crawl", f"http://{address}/", "--once", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr

    with product.open(tmp_path / "levada-data") as collection:
        for words, name, page in (
            ("cold quay", "report.docx", 0),
            ("thaler", "rates.csv", 0),
            ("fathoms", "data.json", 0),
            ("lighthouse", "large.pdf", 0),
            ("buoy", "deck", 2),
        ):
            (hit,) = collection.search(words)
            assert (hit.url, hit.page) == (f"http://{address}/{name}", page)
        facts = collection.page(f"http://{address}/timetable.pdf").facts
        assert facts is not None
        assert (facts.author, facts.pages) == ("Ada Byron", 2)
        reasons = {name: collection.why(f"http://{address}/{name}").page.reason for name in FILES}
    assert {name: reason for name, reason in reasons.items() if reason} == {
        "locked.pdf": product.Reason.ENCRYPTED,
        "large.html": product.Reason.BYTES,
    }
    shown = levada("page", f"http://{address}/timetable.pdf", "--json", cwd=tmp_path)
    assert json.loads(shown.stdout)["pages"] == 2
    assert "The ferry leaves at noon." in levada("page", f"{address}/timetable.pdf", "--markdown", cwd=tmp_path).stdout
