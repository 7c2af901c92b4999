"""What a parser child read arrives as it was."""

from __future__ import annotations

from levada.core.reasons import Reason
from levada.core.records import DiscoveredBy, Link, PageKind, ParsedPage, RawPage, Refusal
from levada.pages.parse import parse_page
from levada.parser.channel import HEAD, decode_parsed, frame


def over_the_wire(parsed: ParsedPage) -> ParsedPage:
    message = frame(parsed)
    assert HEAD.unpack_from(message) == (len(message) - HEAD.size,)
    return decode_parsed(message[HEAD.size :])


def test_links_of_both_sorts_arrive_in_their_order() -> None:
    parsed = ParsedPage(
        PageKind.PAGE,
        links=("http://a.test/2", "http://a.test/1", "http://b.test/ğ"),
        marked=(
            Link("http://a.test/ad", nofollow=True),
            Link("http://a.test/feed", kind=PageKind.FEED),
            Link("http://a.test/s.xml", DiscoveredBy.SITEMAP, lastmod=5.0, kind=PageKind.SITEMAP),
        ),
        refused=(Refusal("ftp://a.test/", "a.test", Reason.SCHEME),),
    )
    assert over_the_wire(parsed) == parsed


def test_a_page_that_was_read_arrives_whole() -> None:
    body = b"""<title>T</title><link rel=alternate type=application/rss+xml href=/feed>
    <p>words <a href=b>b</a> <a href=c rel=nofollow>c</a> <a href=ftp://a.test/>d</a>"""
    parsed = parse_page(RawPage("http://a.test/a", body, "text/html"))
    assert (len(parsed.links), len(parsed.marked), len(parsed.refused)) == (1, 2, 1)
    assert over_the_wire(parsed) == parsed
