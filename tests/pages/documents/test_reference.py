"""The text of documents has the words that LibreOffice and pdftotext find in them."""

from __future__ import annotations

import re
import tarfile
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from levada.core.records import RawPage, ReadPage
from levada.pages.documents.recognition import document_kind, reader_of
from tests import needs
from tests.pages.documents import corpus

ENOUGH = 0.95
_MARKS = re.compile("[\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\xad]")
_BY_CHARACTER = re.compile("([\u0900-\u097f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])")
_ARABIC = re.compile("[\u0600-\u06ff]")


@cache
def archive() -> dict[str, bytes]:
    with tarfile.open(corpus.ARCHIVE) as packed:
        return {entry.name: packed.extractfile(entry).read() for entry in packed}  # type: ignore[union-attr]


def read(name: str, body: bytes) -> ReadPage:
    kind = document_kind(RawPage(f"http://a.test/{name}", body))
    assert kind is not None
    return reader_of(kind).read(body, "", f"http://a.test/{name}")


def words(text: str) -> Counter[str]:
    """Folded words. East Asian and Indian text counts by character, for few tools agree about its words; and the
    letters of an Arabic word in any order, because pdftotext takes its ligatures apart the wrong way round."""
    plain = _BY_CHARACTER.sub(r" \1 ", _MARKS.sub("", unicodedata.normalize("NFKC", text)))
    found = re.findall(r"\w+", plain.casefold())
    return Counter("".join(sorted(word)) if _ARABIC.search(word) else word for word in found)


def agreement(text: str, reference: str) -> float:
    """Of the words of both, the share that the two have in common."""
    ours, theirs = words(text), words(reference)
    return 2 * (ours & theirs).total() / (ours.total() + theirs.total())


@pytest.mark.parametrize("kind", ["docx", "odt", "epub", "pdf", "xlsx", "ods", "pptx"])
def test_the_words_of_a_document_are_those_that_libreoffice_finds(kind: str) -> None:
    files = {name: body for name, body in archive().items() if name.endswith(f".{kind}")}
    assert len(files) == (corpus.KEPT_PDFS if kind == "pdf" else corpus.COUNT)
    found = {
        name: agreement(read(name, body).text, archive()[f"{name.partition('.')[0]}.txt"].decode())
        for name, body in files.items()
    }
    assert {name: share for name, share in found.items() if share < ENOUGH} == {}


def test_title_author_and_links_are_those_of_the_document() -> None:
    for kind in ("docx", "odt", "epub", "pdf", "xlsx", "ods", "pptx"):
        page = read(f"07.{kind}", archive()[f"{kind}/07.{kind}"])
        assert page.title.startswith("Report 7: ")
        if kind != "epub":  # LibreOffice leaves the author of e-books out
            assert page.author == "Ada Byron"
    linked = [read(name, body).links for name, body in archive().items() if name.endswith((".docx", ".odt", ".pdf"))]
    assert sum(any(link.startswith("https://example.org/") for link in links) for links in linked) > len(linked) / 2


def test_each_slide_is_a_page() -> None:
    for name, body in archive().items():
        if name.endswith(".pptx"):
            page = read(name, body)
            assert page.text.count("\f") + 1 == page.pages
            for number, text in enumerate(page.text.split("\f"), 1):
                assert text.startswith(f"{number}. ")


def test_the_words_of_a_pdf_that_a_browser_prints_are_those_of_pdftotext(tmp_path: Path) -> None:
    from tests.serve.browser_session import browser, chromium

    pdftotext = needs.program("pdftotext")
    if chromium() is None:
        needs.missing("chromium is not installed: run tests/servers/install.sh as root, or install it yourself")
    found = {}
    with browser() as opened:
        tab = opened.new_page()
        for seed in range(corpus.COUNT):
            tab.set_content(corpus.html_of(seed))
            path = tmp_path / f"{seed:02}.pdf"
            tab.pdf(path=path)
            page, reference = read(path.name, path.read_bytes()), corpus.text_of_pdf(pdftotext, path)
            assert page.pages == reference.count("\f")
            found[path.name] = agreement(page.text, reference)
    assert {name: share for name, share in found.items() if share < ENOUGH} == {}
