"""Bombs, endless, locked and broken documents end with a reason, in the memory of a document."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from levada.core.reasons import Reason
from levada.core.records import RawPage
from levada.pages.documents.gathering import Unreadable
from levada.pages.documents.recognition import document_kind, reader_of
from levada.pages.parse import parse_page
from tests.pages.documents.hostile import one_page, paragraphs, show, word, zipped

MOST_MEMORY = 300_000_000
REASONS = {
    "a zip bomb": "unpacked-bytes",
    "a zip bomb that calls itself a sheet": "unpacked-bytes",
    "entities in a document": "damaged",
    "entities in XML": "unpacked-bytes",
    "deep XML": "nesting",
    "deep JSON": "nesting",
    "wide JSON": "parse-memory",
    "endless pages": "damaged",
    "hollow pages": "damaged",
    "pages without number": "damaged",
    "a bomb in a PDF": "parser-died",
    "a PDF with a password": "encrypted",
    "a text with a password": "encrypted",
    "an office file with a password": "encrypted",
    "a book that is locked": "encrypted",
    "half a PDF": "damaged",
    "half an office file": "damaged",
    "no PDF": "damaged",
    "no JSON": "damaged",
    "a page of HTML afterwards": "None",
}


def test_hostile_documents_end_with_a_reason_in_little_memory() -> None:
    # In a process of its own, whose children are all parsers: the largest of them is the one that counts.
    command = [sys.executable, "-m", "tests.pages.documents.hostile"]
    said = subprocess.run(command, check=True, capture_output=True, timeout=110)
    found = json.loads(said.stdout)
    assert found["reasons"] == REASONS
    assert found["memory"] < MOST_MEMORY


@pytest.mark.parametrize("cut", range(0, 600, 40))
def test_a_document_that_breaks_off_anywhere_is_read_or_has_a_reason(cut: int) -> None:
    whole = one_page(show("The ferry leaves."))
    packed = word(paragraphs("The ferry leaves."))
    for body in (whole[:cut], packed[:cut], packed[:cut] + b"?" + packed[cut + 1 :], whole[:cut] + whole[cut + 7 :]):
        parsed = parse_page(RawPage("http://a.test/x", body, "application/octet-stream"))
        assert parsed.reason is not None or parsed.content_zstd


def test_a_part_that_says_less_than_it_unpacks_to_is_a_bomb_all_the_same() -> None:
    body = word(paragraphs("a" * 1_000))
    size = len(paragraphs("a" * 1_000)).to_bytes(4, "little")
    lying = body.replace(size, (100).to_bytes(4, "little"))
    assert lying != body
    with pytest.raises(Unreadable) as told:
        reader_of("word").read(lying, "", "http://a.test/x.docx")
    assert told.value.reason is Reason.DAMAGED


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("x.jar", zipped({"META-INF/MANIFEST.MF": b"", "A.class": b""})),
        ("x.zip", zipped({"readme.txt": b"hello"})),
        ("x.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)),
    ],
)
def test_other_archives_and_old_office_files_are_no_documents(name: str, body: bytes) -> None:
    page = RawPage(f"http://a.test/{name}", body, "application/octet-stream")
    assert document_kind(page) is None
    assert parse_page(page).reason is Reason.CONTENT_TYPE
