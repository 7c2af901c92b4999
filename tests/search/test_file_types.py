"""The type of a file is what the server said, or what its address ends with."""

from __future__ import annotations

import pytest

from levada.search.file_types import file_type
from levada.testing.common import a_document

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.parametrize(
    ("said", "path", "found"),
    [
        ("text/html; charset=utf-8", "a.pdf", "html"),
        ("application/pdf", "download?id=1", "pdf"),
        ("Application/PDF", "a", "pdf"),
        (WORD, "a", "docx"),
        ("application/vnd.ms-excel.sheet.macroEnabled.12", "a", "xlsx"),
        ("application/ld+json", "a", "json"),
        ("application/atom+xml", "a", "xml"),
        ("application/xhtml+xml", "a", "html"),
        ("text/plain", "a.html", "text"),
        ("text/csv", "a", "csv"),
        ("application/octet-stream", "a.DOCX", "docx"),
        ("application/octet-stream", "a.pdf?download=1", "pdf"),
        ("", "a.tsv", "csv"),
        ("", "a.b/c", "html"),
        ("", "", "html"),
        ("application/x-unheard-of", "a.pdf", "html"),
    ],
)
def test_the_server_is_believed_before_the_address(said: str, path: str, found: str) -> None:
    headers = (("Date", "today"), ("Content-Type", said)) if said else ()
    assert file_type(a_document(1, "a.org", url=f"http://a.org/{path}", headers=headers)) == found
