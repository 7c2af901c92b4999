"""Bytes in, facts out: whole pages through the one entry."""

from __future__ import annotations

import gzip
import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.errors import MissingExtra
from levada.core.reasons import Reason
from levada.core.records import DiscoveredBy, Link, Outcome, PageKind, PageRecord, PageState, ParsedPage, RawPage
from levada.pages.change import judge, page_digest
from levada.pages.compression import unpack_content, unpack_text, unpack_text_and_anchors
from levada.pages.html import LONGEST_HEADING, MOST_HEADINGS
from levada.pages.links import headings_in
from levada.pages.parse import ParseLimits, parse_page
from levada.pages.plugins import ReadingChoice
from levada.pages.text import READER

URL = "http://example.org/news/page.html"
ARTICLE = (
    "İstanbul'da ışıklı bir akşam: yeni köprü için çok daha büyük bir bütçe ayrıldı ve her şey gibi bu da bitti. " * 4
)
PAGE = f"""<!doctype html><html lang="tr"><head><title> Köprü
 açıldı </title><link rel="canonical" href="/news/page"><link rel="next" href="page2.html">
<link rel="alternate" type="application/rss+xml" href="/feed.xml"><link rel="stylesheet" href="/x.css"></head>
<body><nav><a href="/">Ana sayfa</a></nav><h1>Köprü</h1><p>{ARTICLE}</p>
<a href="other.html">Devamı</a><a href="http://ad.example/" rel="sponsored noopener">Reklam</a>
<map><area href="/map"></map><a href="mailto:a@b.c">Yaz</a><a href="file:///etc/passwd">x</a><a>y</a></body></html>"""


def parse(
    body: str | bytes, content_type: str = "text/html", kind: PageKind = PageKind.PAGE, **more: int | str
) -> ParsedPage:
    data = body.encode() if isinstance(body, str) else body
    return parse_page(RawPage(URL, data, content_type, kind), ParseLimits(**more))  # type: ignore[arg-type]


def text_of(page: ParsedPage) -> str:
    return unpack_text(page.content_zstd).decode()


def test_a_page_is_read_whole() -> None:
    page = parse(PAGE)
    assert (page.kind, page.reason, page.title, page.language, page.charset) == (
        PageKind.PAGE,
        None,
        "Köprü açıldı",
        "tr",
        "utf-8",
    )
    assert text_of(page).split("\n")[:2] == ["Köprü", ARTICLE.strip()]
    assert unpack_content(page.content_zstd) == (text_of(page).encode(), PAGE.encode())
    text = text_of(page).encode()
    assert page.text_digest == page_digest(text, page.title, asked=False, on_page=False, reader=READER)
    assert page.canonical == "http://example.org/news/page"
    assert page.links == (
        "http://example.org/news/page2.html",
        "http://example.org/",
        "http://example.org/news/other.html",
        "http://example.org/map",
    )
    assert page.marked == (
        Link("http://example.org/feed.xml", kind=PageKind.FEED),
        Link("http://ad.example/", nofollow=True),
    )
    assert [(refusal.url, refusal.reason) for refusal in page.refused] == [("file:///etc/passwd", Reason.SCHEME)]
    assert page.words > page.distinct_words > 15


def test_a_known_text_is_not_packed_again() -> None:
    known = parse(PAGE).text_digest
    page = parse_page(RawPage(URL, PAGE.encode() + b"<!-- other bytes -->", "text/html", known_text=known))
    assert page.text_digest == known
    assert page.content_zstd == b""
    assert page.links


@pytest.mark.parametrize("codec", ["windows-1254", "utf-16", "utf-8-sig"])
def test_the_alphabet_does_not_change_the_text(codec: str) -> None:
    page = parse(PAGE.encode(codec), f"text/html; charset={'windows-1254' if codec == 'windows-1254' else 'x'}")
    assert page.text_digest == parse(PAGE).text_digest


def test_shift_jis_declared_in_the_page() -> None:
    body = '<html lang="ja"><meta charset="shift_jis"><title>橋</title><p>東京都は新しい橋を建設する</p></html>'
    page = parse(body.encode("shift_jis"))
    assert (page.title, page.language, page.charset) == ("橋", "ja", "shift_jis")
    assert "新しい橋" in text_of(page)


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<head><noscript><img src=x></noscript><title>Real</title></head><h1>Heading</h1>", "Real"),
        ("<head><iframe src=x></iframe><svg><title>icon</title></svg><title>Real</title></head>", "Real"),
        ("<head><title>Real</title></head><svg><g><title>icon</title></g></svg>", "Real"),
        ("<svg><title>icon</title></svg><h1>Heading</h1>", "Heading"),
        ("<h1>Two<br>lines</h1>", "Two lines"),
        ("<h1><div>Two</div>li<b>n</b>es</h1>", "Two lines"),
        ("<h1><svg><title>icon</title></svg>Heading<style>.x{}</style><script>var a</script></h1>", "Heading"),
    ],
)
def test_the_title_is_the_pages_own_or_its_heading(html: str, title: str) -> None:
    assert parse(f"{html}<p>{ARTICLE}</p>").title == title


@pytest.mark.parametrize("where", ["title", "text", "link", "host", "base"])
def test_a_page_that_is_not_the_utf8_it_says_is_read_as_what_it_is(where: str) -> None:
    said = dict.fromkeys(("title", "text", "link", "host", "base"), "cafe") | {where: "café"}
    body = (
        f"<title>{said['title']}</title><base href='/{said['base']}/'><p>{'words and more ' * 20}{said['text']}</p>"
        f"<a href='{said['link']}'>x</a><a href='http://{said['host']}.example/'>y</a>"
    )
    page = parse(body.encode("cp1252"), "text/html; charset=utf-8")
    right = parse(body, "text/html; charset=utf-8")
    assert page.charset == "windows-1252"
    assert (page.title, text_of(page), page.links) == (right.title, text_of(right), right.links)
    assert parse(body, "text/html; charset=utf-8").charset == "utf-8"


def test_bytes_that_nobody_reads_do_not_tell_the_alphabet() -> None:
    body = f"<title>Köprü</title><script>/* café */</script><p>{ARTICLE}</p>".encode()
    page = parse(body.replace("café".encode(), "café".encode("cp1252")), "text/html; charset=utf-8")
    assert (page.title, page.charset, text_of(page)) == ("Köprü", "utf-8", ARTICLE.strip())


def test_a_page_that_is_deep_only_in_its_own_alphabet_is_too_deep() -> None:
    """In ISO-2022-JP the ends of its elements are letters, which UTF-8 does not show."""
    body = b"<meta charset=iso-2022-jp><title>\xff</title>" + b"<b>\x1b$B</b>!!\x1b(B" * 50
    page = parse(body, "text/html; charset=utf-8", max_nesting=40)
    assert (page.reason, page.charset) == (Reason.NESTING, "iso-2022-jp")
    assert parse(body, "text/html; charset=utf-8", max_nesting=60).reason is None


def test_a_page_may_hold_the_sign_for_what_cannot_be_read() -> None:
    page = parse("<title>\ufffd</title><p>a \ufffd <a href='/\ufffd'>é</a>", "text/html; charset=utf-8")
    assert (page.title, page.charset, text_of(page)) == ("\ufffd", "utf-8", "a \ufffd é")
    assert page.links == ("http://example.org/%EF%BF%BD",)


def test_a_base_on_the_web_counts_and_one_on_the_disk_does_not() -> None:
    web = parse('<base href="http://other.example/x/"><a href="y">z</a>')
    assert web.links == ("http://other.example/x/y",)
    disk = parse('<base href="file:///etc/"><a href="passwd">z</a>')
    assert disk.links == ("http://example.org/news/passwd",)
    assert disk.refused[0].reason is Reason.SCHEME


def test_a_canonical_of_another_site_is_told_and_a_bad_one_is_not() -> None:
    assert parse('<link rel="canonical" href="https://other.example/a#b"><p>x').canonical == "https://other.example/a"
    assert parse('<link rel="canonical" href="file:///a"><p>x').canonical is None
    assert parse('<link rel="canonical" href="http://["><p>x').canonical is None


@pytest.mark.parametrize(
    ("meta", "noindex", "nofollow"),
    [
        ('<meta name="robots" content="noindex">', True, False),
        ('<META NAME="ROBOTS" CONTENT="NoFollow, max-snippet:-1">', False, True),
        ('<meta name="levada" content="none">', True, True),
        ('<meta name="googlebot" content="noindex">', False, False),
        ('<meta name="robots" content="index, follow">', False, False),
        ('<meta name="robots" content="noindex nofollow">', True, True),
        ('<div></div><meta name="robots" content="noindex">', True, False),
    ],
)
def test_robots_in_the_page_are_obeyed(meta: str, noindex: bool, nofollow: bool) -> None:
    page = parse(f"{meta}<p>text<a href=/x>x</a>")
    assert (page.noindex, page.nofollow) == (noindex, nofollow)


@pytest.mark.parametrize(
    ("agent", "name", "obeyed"),
    [
        ("mybot", "mybot", True),
        ("MyBot/2.1 (+http://example.org)", " MYBOT ", True),
        ("mybot", "mybot/2", True),
        ("mybot", "robots", True),
        ("mybot", "levada", False),
        ("mybot", "mybot-news", False),
        ("mybot-news", "mybot", False),
        ("123", "", False),
    ],
)
def test_a_page_may_ask_the_agent_by_its_name(agent: str, name: str, obeyed: bool) -> None:
    assert parse(f'<meta name="{name}" content="noindex"><p>text', agent=agent).noindex is obeyed


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ("0; URL='/new'", "/new"),
        ("0;/new", "/new"),
        ("0;'/new' or so", "/new"),
        ("0.5 , /new", "/new"),
        ("5 new.html", "/news/new.html"),
        ("0;url.html", "/news/url.html"),
        ("url=/new", "/new"),
        ("0;/go?url=/new", "/go?url=/new"),
        ("0; url = /two words ", "/two%20words"),
    ],
)
def test_a_page_that_leaves_for_another_links_to_it(content: str, path: str) -> None:
    page = parse(f'<meta http-equiv="Refresh" content="{content}"><p>moved')
    assert page.links == (f"http://example.org{path}",)


@pytest.mark.parametrize("content", ["", "30", "30;", " 0.5 ", "30; url=", "30; url=''", "30;'", "new.html", "12.html"])
def test_a_page_that_only_loads_itself_again_links_nowhere(content: str) -> None:
    assert parse(f'<meta http-equiv="refresh" content="{content}"><p>news').links == ()


def test_the_frames_of_a_page_are_links() -> None:
    inner = '<frameset rows="1,*"><frame src="top.html"><frame name="empty"><frame src="/main"></frameset>'
    page = parse(f'<title>x</title><base href="/in/"><frameset cols="1,*"><frame src="left.html">{inner}</frameset>')
    assert page.links == tuple(f"http://example.org/{path}" for path in ("in/left.html", "in/top.html", "main"))


def test_a_page_that_names_nothing_but_a_feed_is_not_empty() -> None:
    page = parse("<link rel=alternate type=application/rss+xml href=/feed>")
    assert (page.reason, page.links) == (None, ())
    assert page.marked == (Link("http://example.org/feed", kind=PageKind.FEED),)


def test_all_links_of_an_index_are_taken_and_what_is_beyond_the_limit_is_counted() -> None:
    body = "".join(f'<a href="/{n}">x</a>' for n in range(30_000)) + f'<a href="/{"y" * 3000}">x</a>'
    page = parse(body)
    assert len(page.links) == 30_000
    assert [(each.reason, each.count) for each in page.refused] == [(Reason.URL_LENGTH, 1)]
    assert page.reason is None
    cut = parse(body, max_link_bytes=1_000_000)
    kept = len(cut.links)
    assert 5_000 < kept < 10_000
    assert cut.reason is Reason.LINKS
    assert sum(each.count for each in cut.refused if each.reason is Reason.LINKS) == 30_000 - kept


def test_a_sitemap_with_more_entries_than_the_protocol_allows_says_so() -> None:
    body = f"<urlset>{''.join(f'<url><loc>http://example.org/{n}</loc></url>' for n in range(9))}</urlset>"
    cut, whole = (parse(body, "text/xml", PageKind.SITEMAP, max_entries=most) for most in (8, 9))
    assert (len(cut.marked), cut.reason, cut.refused[0].reason) == (8, Reason.LINKS, Reason.LINKS)
    assert (len(whole.marked), whole.reason, whole.refused) == (9, None, ())


def test_thousands_of_shapes_in_a_drawing_are_not_nested_and_elements_of_html_are() -> None:
    drawing = f"<svg><title>A map</title><metadata><x:y/></metadata>{'<path d=M0/>' * 100}</svg>"
    assert parse(f"<p>{ARTICLE}</p>{drawing}", max_nesting=40).reason is None
    for deep in ("<div/>", "<svg></svg><x/>", "<svg><title><x/>", "<svg><p></p><path/>", "<svg><g>"):
        start, _, repeated = deep.rpartition("<")
        assert parse(start + f"<{repeated}" * 100, max_nesting=40).reason is Reason.NESTING, deep


@pytest.mark.parametrize("tag", ["div", "b", "p><div", "table><tr><td", "ul><li"])
def test_ten_thousand_levels_do_not_crash(tag: str) -> None:
    page = parse(f"<{tag}>" * 10_000 + "deep")
    assert page.reason is Reason.NESTING or "deep" in text_of(page)


def test_a_deep_page_within_the_limit_is_read() -> None:
    page = parse("<div>" * 4000 + "<a href=/x>deep</a>" + "</div>" * 4000)
    assert page.reason is None
    assert "deep" in text_of(page)


@pytest.mark.parametrize("unit", [b"\x00\xff<", b"<a href=", b"<!--", b"&#x", b"<p>x</p>", b"\xc3\x28 "])
def test_megabytes_of_garbage_are_survived(unit: bytes) -> None:
    parse(b"<html>" + unit * (1_000_000 // len(unit)))


def test_five_megabytes_of_noise_behind_a_page_do_not_hide_its_links() -> None:
    noise = Random(1).randbytes(5_000_000).replace(b"<", b"")
    page = parse(PAGE.encode() + b"\n" * 1024 + noise)
    assert len(page.links) + len(page.marked) == 6


@pytest.mark.parametrize(
    ("body", "content_type", "reason"),
    [
        (b"", "text/html", Reason.EMPTY),
        (b"<html></html>", "text/html", Reason.EMPTY),
        (b"%PDF-1.7 ...", "text/html", Reason.DAMAGED),
        (b"\x89PNG\r\n", "", Reason.CONTENT_TYPE),
        (b"<p>\x0b\x00</p>", "text/html", Reason.CONTENT_TYPE),
        (b"<p>\x08</p>", "application/octet-stream", Reason.CONTENT_TYPE),
        (b"{}", "application/json", Reason.EMPTY),
        (b"<svg></svg>", "image/svg+xml", Reason.CONTENT_TYPE),
        (b"<x/>", "application/xml", Reason.EMPTY),
        (b"PK\x03\x04 is no archive", "application/zip", Reason.CONTENT_TYPE),
    ],
)
def test_what_is_no_page_says_why(body: bytes, content_type: str, reason: Reason) -> None:
    assert parse(body, content_type).reason is reason


def test_a_stray_control_character_does_not_make_html_something_else() -> None:
    body = PAGE.replace("<h1>", "\x08\x1a<h1>").encode()
    assert parse(body).reason is None
    assert parse(body, "application/xhtml+xml; charset=utf-8").links == parse(PAGE).links


def test_plain_text_is_a_page_without_links() -> None:
    page = parse("İlk satır\n\nikinci  satır http://example.org/x", "text/plain; charset=utf-8")
    assert (page.title, text_of(page), (*page.links, *page.marked)) == (
        "İlk satır",
        "İlk satır\nikinci satır http://example.org/x",
        (),
    )


SITEMAP = (
    "<urlset><url><loc>http://example.org/a</loc><lastmod>2024-03-12</lastmod></url>"
    "<url><loc>file:///etc/passwd</loc></url></urlset>"
)


@pytest.mark.parametrize("kind", [PageKind.SITEMAP, PageKind.PAGE])
@pytest.mark.parametrize("packed", [False, True])
def test_a_sitemap_is_known_by_its_content(kind: PageKind, packed: bool) -> None:
    data = gzip.compress(SITEMAP.encode()) if packed else SITEMAP.encode()
    page = parse(data, "application/gzip" if packed else "text/xml", kind)
    assert page.kind is PageKind.SITEMAP
    assert (page.links, page.marked) == (
        (),
        (Link("http://example.org/a", DiscoveredBy.SITEMAP, False, 1710201600.0),),
    )
    assert page.refused[0].reason is Reason.SCHEME


def test_an_index_names_more_sitemaps() -> None:
    page = parse("<sitemapindex><sitemap><loc>/s.xml</loc></sitemap></sitemapindex>", "text/xml", PageKind.SITEMAP)
    assert page.marked == (Link("http://example.org/s.xml", DiscoveredBy.SITEMAP, kind=PageKind.SITEMAP),)


def test_an_error_page_in_place_of_a_sitemap_is_no_sitemap() -> None:
    page = parse("<!doctype html><html><p>Not found</p></html>", "text/html", PageKind.SITEMAP)
    assert (page.reason, page.links, page.marked) == (Reason.CONTENT_TYPE, (), ())


def test_a_feed_is_known_by_its_content() -> None:
    body = "\n<?xml version='1.0'?><!-- x --><rss><channel><item><link>/a</link></item></channel></rss>"
    for content_type in ("application/rss+xml", "text/xml", ""):
        page = parse(body, content_type)
        assert page.kind is PageKind.FEED
        assert page.marked == (Link("http://example.org/a", DiscoveredBy.FEED),)


def test_a_bomb_in_place_of_a_sitemap_ends_at_the_limit() -> None:
    bomb = gzip.compress(b"<urlset>" + b" " * 20_000_000)
    page = parse(bomb, "application/gzip", PageKind.SITEMAP, max_unpacked_bytes=1_000_000)
    assert (page.reason, page.links, page.marked) == (Reason.CONTENT_TYPE, (), ())


def test_a_page_whose_own_address_is_no_address_is_still_read() -> None:
    page = parse_page(RawPage("nonsense", b"<p>text <a href='http://example.org/x'>x</a>", "text/html"))
    assert page.links == ("http://example.org/x",)


def test_trafilatura_is_an_option() -> None:
    body = f"<html><body><article><h1>Köprü</h1><p>{ARTICLE}</p></article></body></html>"
    page = parse_page(
        RawPage(URL, body.encode(), "text/html"), ParseLimits(plugins=ReadingChoice("trafilatura").load())
    )
    assert "büyük bir bütçe" in text_of(page)


def test_a_missing_option_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with pytest.raises(MissingExtra, match=r"levada\[text\]"):
        parse_page(RawPage(URL, b"<p>x", "text/html"), ParseLimits(plugins=ReadingChoice("trafilatura").load()))


TYPES = st.sampled_from(["", "text/html", "text/plain", "application/xml", "text/html; charset=utf-16", "x/y", "\x00;"])


@given(st.binary(max_size=400), TYPES, st.sampled_from(PageKind), st.text(max_size=20))
@settings(max_examples=300)
def test_no_bytes_make_it_raise(body: bytes, content_type: str, kind: PageKind, url: str) -> None:
    page = parse_page(RawPage(url, body, content_type, kind))
    assert page.reason is not None or page.text_digest


@given(st.lists(st.tuples(st.integers(0, len(PAGE)), st.integers(0, 60), st.binary(max_size=12)), max_size=6))
@settings(max_examples=200)
def test_no_mangled_page_makes_it_raise(cuts: list[tuple[int, int, bytes]]) -> None:
    body = PAGE.encode()
    for at, length, noise in cuts:
        body = body[:at] + noise + body[at + length :]
    page = parse(body)
    urls = [*page.links, *(link.url for link in page.marked)]
    assert all(url.startswith(("http://", "https://")) for url in urls)
    assert len(set(urls)) == len(urls)


GERMAN = "Der Rat hat entschieden, dass die Brücke ein Jahr lang gesperrt und dann erneuert wird. " * 6
FAROESE = "Bygdarráðið hevur gjørt av, at brúgvin skal umvælast í ár. " * 8  # which the model does not know


@pytest.mark.parametrize(
    "body",
    [
        f"<html><body lang=fo><p>{FAROESE}</p>",
        f"<html lang=en><head><script>{'x' * 9000}</script></head><main lang=fo><p>{FAROESE}</p></main>",
        f"<html lang=en><body><p lang=is>eitt</p><div lang=da><article lang=fo><p>{FAROESE}</p></article></div>",
        f"<meta http-equiv=Content-Language content='fo, da'><p>{FAROESE}</p>",
        f"<html xml:lang=fo><p>{FAROESE}</p>",
    ],
)
def test_what_is_around_most_of_the_text_declares_its_language(body: str) -> None:
    assert parse(body).language == "fo"


def test_a_quotation_does_not_declare_the_language_of_its_page() -> None:
    body = f"<html lang=fo><p>{FAROESE}</p><div lang=de><p>{GERMAN[:80]}</p></div>"
    assert parse(body).language == "fo"


def test_the_address_of_a_page_helps_to_read_it() -> None:
    body = "<title>Şık</title><p>Şık</p>".encode("cp1254")
    page = parse_page(RawPage("https://example.com.tr/", body, "text/html"))
    assert (page.title, page.charset) == ("Şık", "windows-1254")


@pytest.mark.parametrize("content_type", ["text/html", "text/plain"])
def test_text_in_no_language_has_none(content_type: str) -> None:
    rows = "\n".join(f"{n * 7919 % 1000} {n * 104729 % 1000}.{n % 10}" for n in range(60))
    assert parse(f"<pre>{rows}</pre>" if "html" in content_type else rows, content_type).language == ""


def test_a_page_that_is_told_another_language_has_not_changed() -> None:
    one, other = (parse(f"<html lang={lang}><title>Rat</title><p>{GERMAN}</p>") for lang in ("en", "de"))
    assert one.text_digest == other.text_digest


def test_a_page_whose_encoding_an_earlier_version_guessed_wrong_has_not_changed() -> None:
    russian = "Совет решил, что мост не так надёжен, как это было, и он на год закрыт для всех. " * 4
    body = f"<title>Мост</title><p>{russian}</p>".encode("cp1251")
    earlier = page_digest(russian.encode("cp1251").decode("cp1252").encode(), "Ìîñò", asked=False, on_page=False)
    now = parse(body)
    assert russian.strip() in unpack_text(now.content_zstd).decode()
    assert now.text_digest is not None
    stored = PageRecord(
        1,
        URL,
        "example.org",
        PageKind.PAGE,
        PageState.LIVE,
        DiscoveredBy.LINK,
        0,
        0,
        0.0,
        version=1,
        text_digest=earlier,
    )
    assert judge(stored, 200, b"new", now).outcome == Outcome.UNCHANGED


def named(html: str) -> tuple[str, list[str]]:
    """The main text of a page, and its headings."""
    text, names = unpack_text_and_anchors(parse_page(RawPage(URL, html.encode(), "text/html")).content_zstd)
    return text.decode(), headings_in(names)


DOCUMENTED = """<title>asyncio</title><body><nav><h3>Navigation</h3><a href="/">Home</a></nav><main>
<h1>Coroutines and tasks<a class="headerlink" href="#c">¶</a></h1>
<p>This part of the manual says how coroutines are started, awaited and cancelled, and what happens to the others.</p>
<dl><dt id="asyncio.create_task"><code>asyncio.create_task(coro, *, name=None)</code></dt>
<dd>Wraps the coroutine into a task and schedules its execution, and returns the task.</dd>
<dt>plain term</dt><dd>It has no anchor, so it names nothing that others could point to on this page.</dd></dl>
</main></body>"""


def test_headings_and_defined_terms_are_kept_where_they_are_in_the_main_text() -> None:
    text, headings = named(DOCUMENTED)
    assert headings == ["Coroutines and tasks", "asyncio.create_task"]
    assert all(heading in text for heading in headings)


def test_headings_change_neither_text_nor_digest() -> None:
    marked = parse_page(RawPage(URL, DOCUMENTED.encode(), "text/html"))
    unmarked = DOCUMENTED.replace('<dt id="asyncio.create_task">', "<dt>")
    assert parse_page(RawPage(URL, unmarked.encode(), "text/html")).text_digest == marked.text_digest


def test_as_many_headings_are_kept_as_there_is_room_for() -> None:
    page = "".join(f"<h2>Part {n} {'x' * 200}</h2><p>What part {n} is about, in a few words.</p>" for n in range(300))
    _, headings = named(f"<title>Parts</title><main>{page}</main>")
    assert len(headings) == MOST_HEADINGS
    assert {len(each) for each in headings} == {LONGEST_HEADING}
