"""What each reader makes of its documents."""

from __future__ import annotations

import pytest

from levada.core.reasons import Reason
from levada.core.records import PageKind, ParsedPage, RawPage
from levada.pages.compression import unpack_text
from levada.pages.documents import gathering
from levada.pages.documents.gathering import DocumentText, title_or_name
from levada.pages.documents.pdf import date_of
from levada.pages.documents.recognition import document_kind, may_be_document
from levada.pages.documents.spreadsheet import shown_number
from levada.pages.parse import Form, form_of, parse_page
from tests.pages.documents.hostile import W, one_page, paragraphs, pdf, show, stream, word, zipped

AT = "https://example.org/files/Annual%20report.pdf"


def read(body: bytes, content_type: str = "application/octet-stream", url: str = AT) -> ParsedPage:
    parsed = parse_page(RawPage(url, body, content_type))
    assert parsed.reason is None
    return parsed


def text(body: bytes, content_type: str = "application/octet-stream", url: str = AT) -> str:
    return unpack_text(read(body, content_type, url).content_zstd).decode()


# Recognizing


@pytest.mark.parametrize("content_type", ["application/pdf", "text/html", "text/plain", "application/octet-stream", ""])
def test_a_pdf_is_known_by_its_first_bytes_whatever_the_server_says(content_type: str) -> None:
    assert text(one_page(show("The ferry leaves.")), content_type) == "The ferry leaves."


def test_an_office_file_is_known_by_its_parts() -> None:
    body = word(paragraphs("The ferry leaves."))
    assert text(body, "application/zip", "https://example.org/download?id=7") == "The ferry leaves."


@pytest.mark.parametrize(
    ("url", "kind"),
    [("/rates.csv", "csv"), ("/rates.json", "json"), ("/lines.jsonl", "json"), ("/page", None), ("/x.exe", None)],
)
def test_data_without_a_content_type_is_known_by_its_name(url: str, kind: str | None) -> None:
    assert document_kind(RawPage(f"http://a.test{url}", b"[1]", "application/octet-stream")) == kind


def test_pages_sitemaps_feeds_and_pictures_stay_what_they_are() -> None:
    forms = {
        ("text/html", b"<p>x"): Form.HTML,
        ("application/xml", b"<urlset/>"): Form.SITEMAP,
        ("text/xml", b"<rss/>"): Form.FEED,
        ("image/svg+xml", b"<svg/>"): Form.OTHER,
        ("text/plain", b"a,b\n"): Form.PLAIN,
        ("", b"{}"): Form.PLAIN,
        ("application/xml", b"<rates/>"): Form.DOCUMENT,
        ("application/json", b"{}"): Form.DOCUMENT,
    }
    assert {(kind, body): form_of(RawPage("http://a.test/", body, kind)) for kind, body in forms} == forms
    assert form_of(RawPage("http://a.test/", b"%PDF-1.7", kind=PageKind.SITEMAP)) is Form.OTHER


def test_a_body_may_be_as_large_as_documents_are_where_the_server_or_the_name_says_so() -> None:
    assert may_be_document("application/pdf; charset=binary", "https://example.org/x")
    assert may_be_document("application/octet-stream", "https://example.org/x.docx?download=1")
    assert not may_be_document("application/octet-stream", "https://example.org/x.iso")
    assert not may_be_document("text/html", "https://example.org/x.pdf")


# PDF


def two_pages(first: str, second: str, more: bytes = b"") -> bytes:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents %d 0 R/Resources<</Font<</F 7 0 R>>>>%s>>"
    return pdf(
        b"<</Type/Catalog/Pages 2 0 R/Lang(fr-CA)>>",
        b"<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>",
        page % (5, more),
        page % (6, b""),
        stream(show(first)),
        stream(show(second)),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Title(Timetable)/Author(Ada Byron)/CreationDate(D:20260102030405+01'00')/ModDate(D:20260203)>>",
        trailer=b"/Info 8 0 R",
    )


def test_a_form_feed_stands_between_the_pages_of_a_pdf() -> None:
    parsed = read(two_pages("The ferry leaves at noon.", "The bridge is closed."))
    assert unpack_text(parsed.content_zstd) == b"The ferry leaves at noon.\fThe bridge is closed."
    assert parsed.facts is not None
    assert (parsed.facts.pages, parsed.facts.author, parsed.facts.left_out) == (2, "Ada Byron", "")
    assert (parsed.title, parsed.published) == ("Timetable", date_of("D:20260203"))


def test_where_its_pages_end_is_no_change_of_a_document() -> None:
    one, other = (read(two_pages(*texts)) for texts in (("One two.", "Three."), ("One two.", "Three.")))
    moved = read(
        one_page(b"BT /F 12 Tf 50 700 Td (One two.) Tj 0 -20 Td (Three.) Tj ET"), url="https://e.test/Timetable"
    )
    assert one.text_digest == other.text_digest == moved.text_digest


def test_links_of_a_pdf_are_followed() -> None:
    link = b"/Annots[<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI(https://example.org/next)>>>>]"
    assert read(two_pages("One.", "See https://example.org/other.", link)).links == (
        "https://example.org/next",
        "https://example.org/other",
    )


def test_pages_of_a_pdf_without_text_are_said() -> None:
    parsed = read(two_pages("", "The bridge is closed."))
    assert unpack_text(parsed.content_zstd) == b"\fThe bridge is closed."
    assert parsed.facts is not None
    assert parsed.facts.left_out == "1 of 2 pages, which have no text"


def test_a_picture_of_a_page_is_stored_by_its_name() -> None:
    assert read(one_page(b"0 0 9 9 re f")).title == "Annual report.pdf"


def test_a_pdf_waits_for_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pypdfium2", None)
    assert parse_page(RawPage(AT, one_page(show("x")))).reason is Reason.NEEDS_EXTRA


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("D:20260131120000Z", 1_769_860_800.0),
        ("D:20260131130000+01'00'", 1_769_860_800.0),
        ("D:20260131", 1_769_817_600.0),
        ("2026-01-31T12:00:00Z", 1_769_860_800.0),
        ("yesterday", None),
        ("D:20269999", None),
    ],
)
def test_dates_of_a_pdf(written: str, seconds: float | None) -> None:
    assert date_of(written) == seconds


# Office files


def test_a_row_of_a_table_is_a_line() -> None:
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    rows = "".join(f"<w:tr>{cell.format(a)}{cell.format(b)}</w:tr>" for a, b in (("Name", "Year"), ("Ada", "1815")))
    body = f"<w:document {W}><w:body><w:tbl>{rows}</w:tbl></w:body></w:document>"
    assert text(word(body.encode())) == "Name | Year\nAda | 1815"


def test_what_an_editor_deleted_or_moved_away_is_no_text() -> None:
    run = "<w:r><w:{0}>{1}</w:{0}></w:r>"
    inner = f"<w:del>{run.format('delText', 'no')}</w:del><w:moveFrom>{run.format('t', 'old')}</w:moveFrom>"
    body = f"<w:document {W}><w:p>{inner}<w:ins>{run.format('t', 'new')}</w:ins></w:p></w:document>"
    assert text(word(body.encode())) == "new"


def test_links_of_an_office_file_are_followed_and_parts_are_not() -> None:
    relations = (
        '<Relationships><Relationship Id="a" Type="x/hyperlink" Target="https://example.org/a" TargetMode="External"/>'
        '<Relationship Id="b" Type="x/image" Target="media/b.png"/></Relationships>'
    )
    link = '<w:hyperlink r:id="{0}"><w:r><w:t>{0}</w:t></w:r></w:hyperlink>'
    names = f'{W} xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    body = f"<w:document {names}><w:p>{link.format('a')}{link.format('b')}</w:p></w:document>"
    packed = zipped({"word/document.xml": body.encode(), "word/_rels/document.xml.rels": relations.encode()})
    assert read(packed).links == ("https://example.org/a",)


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        ("1234.5", "", "1234.5"),
        ("1234.5", "#,##0.00", "1,234.50"),
        ("0.125", "0.0%", "12.5%"),
        ("46053", "yyyy-mm-dd", "2026-01-31"),
        ("46053.75", "m/d/yy h:mm", "2026-01-31 18:00"),
        ("0.75", "h:mm:ss", "18:00:00"),
        ("1.5", "[h]:mm:ss", "36:00:00"),
        ("12", '0" days"', "12"),
        ("1e300", "yyyy", "1e+300"),
        ("x", "0", "x"),
        ("nan", "yyyy", "nan"),
        ("inf", "0.00", "inf"),
    ],
)
def test_a_number_of_a_sheet_is_shown_by_its_format(value: str, code: str, shown: str) -> None:
    assert shown_number(value, code) == shown


# Data


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"name,year\nAda,1815\n", "name | year\nAda | 1815"),
        (b'name;note\r\n"Ada; B.";"two\nlines"\r\n', "name | note\nAda; B. | two lines"),
        (b"a\tb\nc\td", "a | b\nc | d"),
        ("größe,1\n".encode("latin-1"), "größe | 1"),
        ("größe,1\n".encode("utf-16"), "größe | 1"),
    ],
)
def test_rows_of_csv_are_lines(body: bytes, expected: str) -> None:
    assert text(body, "text/csv") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"name": "Ada", "born": {"year": 1815}}', "name: Ada\nborn.year: 1815"),
        (b'{"tags": ["a", "b"], "price": 1.50, "sold": true, "by": null}', "tags: a, b\nprice: 1.50\nsold: true"),
        (b'[{"id": 1}, {"id": 2}]', "id: 1\nid: 2"),
        (b'{"id": 1}\n{"id": 2}\n', "id: 1\nid: 2"),
        (b'"just a text"', "just a text"),
    ],
)
def test_values_of_json_are_lines_with_their_keys(body: bytes, expected: str) -> None:
    assert text(body, "application/json") == expected


def test_addresses_in_data_are_links() -> None:
    body = b'{"next": "https://example.org/2", "text": "see (https://example.org/a_(b)), please"}'
    assert read(body, "application/hal+json").links == ("https://example.org/2", "https://example.org/a_(b)")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<r><item><name>A</name><price>5</price></item></r>", "A\n5"),
        (b"<d><p>Hello <b>big</b> world</p></d>", "Hello big world"),
        (b"<rates><rate currency='USD' value='1.08'/></rates>", "currency: USD, value: 1.08"),
        (b"<?xml version='1.0' encoding='ISO-8859-1'?><r>gr\xf6\xdfe</r>", "größe"),
    ],
)
def test_elements_of_xml_are_lines_unless_they_stand_in_a_text(body: bytes, expected: str) -> None:
    assert text(body, "application/xml") == expected


# Text and title


def test_a_text_that_is_too_long_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DocumentText.__init__, "__defaults__", (20,))
    parsed = read(word(paragraphs("The ferry leaves.", "The bridge is closed.")))
    assert unpack_text(parsed.content_zstd) == b"The ferry leaves.\nThe"
    assert parsed.facts is not None
    assert "first" in parsed.facts.left_out


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Timetable 2026", "Timetable 2026"),
        ("Microsoft Word - Timetable", "Timetable"),
        ("untitled", "Annual report.pdf"),
        ("", "Annual report.pdf"),
        ("report_v7_final.docx", "Annual report.pdf"),
    ],
)
def test_a_title_that_is_none_gives_way_to_the_name_of_the_file(title: str, expected: str) -> None:
    assert title_or_name(title, AT) == expected


def test_a_form_feed_within_a_text_is_no_end_of_a_page() -> None:
    written = DocumentText()
    written.add_line("one\ftwo")
    assert written.text() == "one two"
    assert gathering.PAGE_BREAK == "\f"
