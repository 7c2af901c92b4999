"""Sitemaps and feeds as sources of links."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.pages.feeds import Ampersands, ListEntry, parse_feed, parse_sitemap, time_of

URLSET = """<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
<url><loc> https://example.org/a?x=1&amp;y=2 </loc><lastmod>2024-03-12T10:00:00+03:00</lastmod></url>
<url><loc>https://example.org/b</loc><image:image><image:loc>https://example.org/b.jpg</image:loc></image:image></url>
<url><lastmod>2024</lastmod></url>
</urlset>"""
INDEX = """<sitemapindex><sitemap><loc>https://example.org/1.xml.gz</loc><lastmod>2024-03</lastmod></sitemap></sitemapindex>"""
LAUGHS = """<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;&lol;&lol;">]>
<urlset><url><loc>http://example.org/&lol2;</loc></url></urlset>"""
OUTSIDE = """<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>&x;</loc></url></urlset>"""


def test_a_sitemap_names_pages_and_their_dates() -> None:
    listing = parse_sitemap(URLSET.encode())
    assert listing.whole
    assert listing.entries == (
        ListEntry("https://example.org/a?x=1&y=2", 1710226800.0),
        ListEntry("https://example.org/b"),
    )


def test_a_packed_index_names_sitemaps() -> None:
    listing = parse_sitemap(gzip.compress(INDEX.encode()))
    assert listing.entries == (ListEntry("https://example.org/1.xml.gz", 1709251200.0, is_list=True),)
    assert listing.whole


def test_a_text_sitemap_is_a_list_of_addresses() -> None:
    listing = parse_sitemap("\ufeffhttps://example.org/a\r\nhttps://example.org/ş\n\nnonsense\n".encode())
    assert [entry.href for entry in listing.entries] == ["https://example.org/a", "https://example.org/ş"]


@pytest.mark.parametrize("hostile", [LAUGHS, OUTSIDE])
def test_declarations_are_refused(hostile: str) -> None:
    assert parse_sitemap(hostile.encode()) == ((), False)
    assert parse_feed(hostile.encode()) == ((), False)


def test_broken_xml_gives_what_was_read_so_far() -> None:
    listing = parse_sitemap(URLSET.encode()[: URLSET.index("<image:image>")] + b"<oops")
    assert [entry.href for entry in listing.entries] == ["https://example.org/a?x=1&y=2"]
    assert not listing.whole


@pytest.mark.parametrize(
    "slip", ["\n", " \t\r\n", "\ufeff\n\ufeff", "<!-- <a> --> \n<!-- b -->", "Notice: x in y on line 3\n"]
)
@pytest.mark.parametrize("packed", [False, True])
def test_what_stands_before_the_declaration_does_not_matter(slip: str, packed: bool) -> None:
    pack = gzip.compress if packed else bytes
    assert parse_sitemap(pack((slip + URLSET).encode())) == parse_sitemap(URLSET.encode())
    assert parse_feed(slip.encode() + RSS.encode("cp1254")) == parse_feed(RSS.encode("cp1254"))


@pytest.mark.parametrize("slip", ["\n", "\n\ufeff", "<!-- a -->\n"])
def test_a_list_without_declaration_may_begin_with_white_space(slip: str) -> None:
    assert parse_sitemap((slip + INDEX).encode()) == parse_sitemap(INDEX.encode())
    wide = (slip.strip("\ufeff") + INDEX).encode("utf-16-le")
    assert parse_sitemap(wide, "text/xml; charset=utf-16").whole


def test_a_declaration_inside_a_list_is_not_its_beginning() -> None:
    inside = ATOM.replace("<entry>", "<summary><![CDATA[<?xml version='1.0'?>]]></summary><entry>")
    assert parse_feed(inside.encode()) == parse_feed(ATOM.encode())


AMPERSANDS = (
    "<rss><channel><item><link>/a?x=1&y=2&amp;z=3&copy=4&#38;b</link><title>Q&A &nbsp; R & D</title></item>"
    "<item><link><![CDATA[/b?x=1&y=2&amp;z]]></link></item><item><link>/c?x&y</link></item>"
    "<entry><link href='/d?x&y=&quot;'/></entry></channel></rss>"
)


def test_ampersands_that_begin_no_reference_are_ampersands() -> None:
    hrefs = ["/a?x=1&y=2&z=3&copy=4&b", "/b?x=1&y=2&amp;z", "/c?x&y", '/d?x&y="']
    assert parse_feed(AMPERSANDS.encode()) == (tuple(map(ListEntry, hrefs)), True)


@pytest.mark.parametrize("size", range(1, 30))
def test_ampersands_are_read_the_same_in_pieces_of_any_size(size: int) -> None:
    whole = Ampersands()(AMPERSANDS, True)
    escaped = Ampersands()
    starts = range(0, len(AMPERSANDS), size)
    assert "".join(escaped(AMPERSANDS[at : at + size], False) for at in starts) + escaped("", True) == whole


def test_limits_cut_a_list_off_and_say_so() -> None:
    many = "<urlset>" + "".join(f"<url><loc>http://example.org/{n}</loc></url>" for n in range(50)) + "</urlset>"
    few = parse_sitemap(many.encode(), max_entries=7)
    assert (len(few.entries), few.whole) == (7, False)
    short = parse_sitemap(many.encode(), max_bytes=300)
    assert (0 < len(short.entries) < 50, short.whole) == (True, False)
    exact = parse_sitemap(many.encode(), max_entries=50)
    assert (len(exact.entries), exact.whole) == (50, True)


def test_a_packed_bomb_is_unpacked_only_as_far_as_it_is_read() -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = packer.compress(b"<urlset><url><loc>http://example.org/a</loc></url>")
    bomb += b"".join(packer.compress(b" " * 1_000_000) for _ in range(60)) + packer.flush()
    listing = parse_sitemap(bomb, max_bytes=5_000_000)
    assert listing == ((ListEntry("http://example.org/a"),), False)


def test_a_torn_archive_gives_what_was_read_so_far() -> None:
    many = "<urlset>" + "".join(f"<url><loc>http://example.org/{n * n}</loc></url>" for n in range(5000)) + "</urlset>"
    listing = parse_sitemap(gzip.compress(many.encode())[:-2000])
    assert not listing.whole
    assert len(listing.entries) > 10


RSS = """<?xml version="1.0" encoding="windows-1254"?><rss version="2.0"><channel><link>http://example.org/</link>
<item><title>Işık</title><link>http://example.org/1</link><pubDate>Tue, 12 Mar 2024 07:00:00 GMT</pubDate></item>
<item><guid>http://example.org/2</guid></item><item><guid isPermaLink="false">x</guid></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><link rel="self" href="http://example.org/feed"/>
<entry><link rel="edit" href="/edit"/><link href="/a"/><published>2024-03-11T00:00:00Z</published>
<updated>2024-03-12T07:00:00Z</updated></entry></feed>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/">
<item rdf:about="http://example.org/r"><dc:date>2024-03-12T07:00:00Z</dc:date></item></rdf:RDF>"""


def test_feeds_of_all_three_kinds_name_their_entries() -> None:
    moment = 1710226800.0
    assert parse_feed(RSS.encode("cp1254")) == (
        (ListEntry("http://example.org/1", moment), ListEntry("http://example.org/2")),
        True,
    )
    assert parse_feed(ATOM.encode()) == ((ListEntry("/a", moment),), True)
    assert parse_feed(RDF.encode()) == ((ListEntry("http://example.org/r", moment),), True)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024", 1704067200.0),
        ("2024-03", 1709251200.0),
        ("2024-03-12", 1710201600.0),
        ("2024-03-12T07:00Z", 1710226800.0),
        ("Tue, 12 Mar 2024 10:00:00 +0300", 1710226800.0),
        ("yesterday", None),
        ("0001-01-01", None),
        ("9999-12-31T23:59:59-23:00", None),
        ("", None),
    ],
)
def test_dates_in_their_many_forms(text: str, seconds: float | None) -> None:
    assert time_of(text) == seconds


@given(st.text(max_size=40))
def test_any_text_is_a_date_or_none(text: str) -> None:
    moment = time_of(text)
    assert moment is None or moment > 0


@given(st.binary(max_size=200), st.integers(0, len(URLSET)), st.booleans())
def test_any_bytes_are_a_list_of_some_length(noise: bytes, at: int, packed: bool) -> None:
    mangled = URLSET.encode()[:at] + noise + URLSET.encode()[at:]
    data = gzip.compress(mangled, 1) if packed else mangled
    assert len(parse_sitemap(data).entries) <= 50
    parse_feed(data)
    parse_sitemap(noise)
