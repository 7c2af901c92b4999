"""What a page points at, and what of that is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from levada.core.reasons import Reason
from levada.core.records import DiscoveredBy, Link, PageKind
from levada.pages.links import RECORD_BYTES, LinkCollector

SHORT = len("http://example.org/1") + RECORD_BYTES
MUCH = 10_000


def collector(max_bytes: int = MUCH, max_refused: int = 5, max_length: int = 300) -> LinkCollector:
    return LinkCollector(
        "http://example.org/a/",
        "example.org",
        max_bytes=max_bytes,
        max_refused=max_refused,
        max_length=max_length,
    )


def test_links_are_kept_once_in_order() -> None:
    links = collector()
    for href in ("b", "/c", "b#x", "./b", "http://example.org/c"):
        links.add(href)
    assert links.links() == ("http://example.org/a/b", "http://example.org/c")


def test_an_href_that_other_pages_wrote_too_is_read_by_the_page_that_it_stands_on() -> None:
    found = {}
    for base in ("http://example.org/a/x", "http://example.org/a/y", "http://example.org/b/", "https://b.org/a/"):
        links = LinkCollector(base, "", max_bytes=MUCH, max_refused=5, max_length=300)
        for href in ("page", "/top", "?q=1", "http://c.org/", "//d.org/"):
            links.add(href)
        found[base] = list(links.links())
    both = ["http://c.org/", "http://d.org/"]
    assert found == {
        "http://example.org/a/x": [
            "http://example.org/a/page",
            "http://example.org/top",
            "http://example.org/a/x?q=1",
            *both,
        ],
        "http://example.org/a/y": [
            "http://example.org/a/page",
            "http://example.org/top",
            "http://example.org/a/y?q=1",
            *both,
        ],
        "http://example.org/b/": [
            "http://example.org/b/page",
            "http://example.org/top",
            "http://example.org/b/?q=1",
            *both,
        ],
        "https://b.org/a/": [
            "https://b.org/a/page",
            "https://b.org/top",
            "https://b.org/a/?q=1",
            "http://c.org/",
            "https://d.org/",
        ],
    }


def test_the_parts_of_a_page_are_that_page() -> None:
    written = ("b#x", "b#y", "../c#x", "#top", "b", "bad link #x", "mailto:a@b.c#x", "ftp://d.org/#x", "http://[#x")
    links = collector()
    for href in written * 2:  # the second time from memory
        links.add(href)
    assert links.links() == (
        "http://example.org/a/b",
        "http://example.org/c",
        "http://example.org/a/",
        "http://example.org/a/bad%20link%20",
    )
    assert [(each.url, each.reason) for each in links.refused()] == [
        ("ftp://d.org/#x", Reason.SCHEME),
        ("http://[#x", Reason.BAD_URL),
    ]


def test_letters_that_could_not_be_decoded_are_noticed_in_a_fragment() -> None:
    links = collector()
    for href in ("b", "b#x", "b#\ufffd"):
        assert not links.are_garbled
        links.add(href)
    assert links.are_garbled


def test_what_depends_on_a_page_alone_means_another_page_beside_it() -> None:
    found = []
    for base in ("http://index.example/a/", "http://index.example/a/x"):  # the first is its own directory
        links = LinkCollector(base, "", max_bytes=MUCH, max_refused=5, max_length=300)
        links.add_all(("", "?q=1", "#top"))
        found.append(list(links.links()))
    assert found == [
        ["http://index.example/a/", "http://index.example/a/?q=1"],
        ["http://index.example/a/x", "http://index.example/a/x?q=1"],
    ]


def test_many_links_at_once_are_taken_like_one_by_one() -> None:
    hrefs = [
        "b",
        "/c",
        "b#x",
        "ftp://example.org/",
        "/d",
        "/e",
        "mailto:a@b.c",
        "/c",
        "/f",
        "ftp://example.org/late",
    ]
    for most in (2, 4, 10):
        one_by_one, at_once = collector(most * SHORT), collector(most * SHORT)
        for links in (one_by_one, at_once):
            links.add("/c", nofollow=True)
        for href in hrefs:
            one_by_one.add(href)
        at_once.add_all(hrefs)
        assert (at_once.links(), at_once.marked()) == (one_by_one.links(), one_by_one.marked())
        assert at_once.refused() == one_by_one.refused()


B = "http://example.org/a/b"


def nofollow(links: LinkCollector) -> None:
    links.add("b", nofollow=True)


def plain(links: LinkCollector) -> None:
    links.add("b")


def plain_among_others(links: LinkCollector) -> None:
    links.add_all(["b"])


def feed(links: LinkCollector) -> None:
    links.add("b", kind=PageKind.FEED)


@pytest.mark.parametrize("vouch", [plain, plain_among_others])
def test_one_link_without_nofollow_is_enough(vouch: Callable[[LinkCollector], None]) -> None:
    before, after = collector(), collector()
    nofollow(before)
    assert (before.links(), before.marked()) == ((), (Link(B, nofollow=True),))
    vouch(before)
    vouch(after)
    nofollow(after)
    for links in (before, after):
        assert (links.links(), links.marked()) == ((B,), ())


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (nofollow, feed, (Link(B, kind=PageKind.FEED),)),
        (feed, nofollow, (Link(B, kind=PageKind.FEED),)),
        (feed, plain, (Link(B, kind=PageKind.FEED),)),
        (feed, plain_among_others, (Link(B, kind=PageKind.FEED),)),
        (nofollow, nofollow, (Link(B, nofollow=True),)),
    ],
)
def test_an_address_is_never_plain_and_marked(
    first: Callable[[LinkCollector], None], second: Callable[[LinkCollector], None], kept: tuple[Link, ...]
) -> None:
    links = collector()
    first(links)
    second(links)
    assert (links.links(), links.marked()) == ((), kept)


def test_plain_and_marked_links_are_each_in_the_order_of_the_page() -> None:
    links = collector()
    links.add("/feed", kind=PageKind.FEED)
    links.add("/next")  # more could be known of it, but nothing is
    links.add_all(["/z", "/y"])
    links.add("/ad", nofollow=True)
    links.add_all(["/x", "/y", "/feed"])
    assert links.links() == tuple(f"http://example.org/{name}" for name in ("next", "z", "y", "x"))
    assert [link.url for link in links.marked()] == ["http://example.org/feed", "http://example.org/ad"]


def test_what_is_no_page_is_no_link_and_the_rest_has_a_reason() -> None:
    links = collector()
    for href in ("javascript:void(0)", "mailto:a@b.c", " tel:+90", "JavaScript:x%zz"):
        links.add(href)
    assert (links.links(), links.marked(), links.refused()) == ((), (), ())
    for href in ("file:///etc/passwd", "ftp://example.org/x", "data:text/html,x", "http://[bad/", "/" + "x" * 301):
        links.add(href)
    reasons = [refusal.reason for refusal in links.refused()]
    assert reasons == [Reason.SCHEME] * 3 + [Reason.BAD_URL, Reason.URL_LENGTH]
    assert {refusal.site for refusal in links.refused()} == {"example.org"}


def test_numbers_are_bounded() -> None:
    links = collector(3 * SHORT, max_refused=2)
    for number in range(10, 60):
        links.add(f"/{number}")
        links.add(f"ftp://example.org/{number}")
    assert len(links.links()) == 3
    assert [(each.url, each.reason, each.count) for each in links.refused()] == [
        ("ftp://example.org/10", Reason.SCHEME, 49),
        ("ftp://example.org/11", Reason.SCHEME, 1),
        ("http://example.org/13", Reason.LINKS, 47),
    ]
    assert links.are_cut


def test_links_that_were_taken_before_are_not_refused_for_want_of_room() -> None:
    links = collector(2 * SHORT)
    links.add_all(["/1", "/2", "/1#x", "mailto:a@b.c", "/2"])
    assert (links.refused(), links.are_cut) == ((), False)


def test_plain_and_marked_links_share_the_room() -> None:
    links = collector(2 * SHORT + 8)
    links.add("/ad", nofollow=True)
    links.add("/feed", kind=PageKind.FEED)
    links.add_all(["/ad", "/1", "/2"])
    links.add("/late", nofollow=True)
    assert links.links() == ("http://example.org/ad", "http://example.org/1")
    assert links.marked() == (Link("http://example.org/feed", kind=PageKind.FEED),)


def test_a_base_that_is_no_web_address_is_refused_and_ignored() -> None:
    links = collector()
    links.rebase("file:///etc/")
    links.add("passwd")
    assert links.links() == ("http://example.org/a/passwd",)
    assert links.refused()[0].reason is Reason.SCHEME


def test_what_is_known_of_a_link_is_kept() -> None:
    links = collector()
    links.add("/s.xml", DiscoveredBy.SITEMAP, lastmod=5.0, kind=PageKind.SITEMAP)
    assert links.marked() == (Link("http://example.org/s.xml", DiscoveredBy.SITEMAP, False, 5.0, PageKind.SITEMAP),)
