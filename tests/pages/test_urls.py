"""One address, one spelling."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from levada.core.errors import BadUrl
from levada.pages.urls import Resolver, canonical, front_page, origin_of, scheme_of, site_of

BASE = "https://example.org/a/b/page.html?x=1"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("http://example.org:80/a", "http://example.org/a"),
        ("https://example.org:443/a", "https://example.org/a"),
        ("http://example.org:8080/a", "http://example.org:8080/a"),
        ("http://example.org/a#part", "http://example.org/a"),
        ("http://example.org/?", "http://example.org/"),
        ("http://example.org/a/./b/../c", "http://example.org/a/c"),
        ("http://example.org/%7euser/%e7ay%2f", "http://example.org/~user/%E7ay%2F"),
        ("http://example.org/100%", "http://example.org/100%25"),
        ("http://example.org/a?utm_source=x&id=7&gclid=1&fbclid=2", "http://example.org/a?id=7"),
        ("http://example.org/a?PHPSESSID=77", "http://example.org/a"),
        ("http://example.org/a;jsessionid=AB12?b=1", "http://example.org/a?b=1"),
        ("http://example.org/a;JSESSIONID=AB12/c", "http://example.org/a/c"),
        ("http://example.org/a?zenid=1&&b=2&", "http://example.org/a?b=2"),
        ("http://example.org/a?sid=0123456789abcdef0123456789abcdef&b=2", "http://example.org/a?b=2"),
        ("http://example.org/a?SessionID=q1w2e3r4t5y6u7i8", "http://example.org/a"),
        ("http://example.org/a?sid=%61123456789abcdef", "http://example.org/a"),
        ("http://example.org/a;sid=q1w2e3r4t5y6u7i8/b", "http://example.org/a/b"),
        ("http://müller.de/ş", "http://xn--mller-kva.de/%C5%9F"),
        ("http://example.org./a.", "http://example.org/a."),
        ("  http://exa\nmple.org/a\tb ", "http://example.org/ab"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
    ],
)
def test_spellings_of_one_page_become_one(written: str, meant: str) -> None:
    assert canonical(written) == meant


@pytest.mark.parametrize(
    "rest",
    [
        "article.php?sid=1",
        "article.php?name=News&sid=20241",
        "agenda?session_id=12",
        "shop;sid=7/b",
        "a?sid=12345678901234567890",  # a number
        "a?sid=internationalization",  # a word
        "a?sid=q1w2e3r4t5y6u7i",  # short
        "a?sid=q1w2e3r4t5y6u7i8-the-bridge",
        "a;sid=q1w2e3r4t5y6u7i8-the-bridge",
    ],
)
def test_a_session_is_known_by_its_value_where_its_name_is_also_that_of_content(rest: str) -> None:
    assert canonical(f"http://example.org/{rest}") == f"http://example.org/{rest}"


@pytest.mark.parametrize(
    ("href", "meant"),
    [
        ("other.html", "https://example.org/a/b/other.html"),
        ("../up", "https://example.org/a/up"),
        ("/root", "https://example.org/root"),
        ("//cdn.example.net/x", "https://cdn.example.net/x"),
        ("\\\\cdn.example.net\\x", "https://cdn.example.net/x"),
        ("?y=2", "https://example.org/a/b/page.html?y=2"),
        ("#top", "https://example.org/a/b/page.html?x=1"),
        ("", "https://example.org/a/b/page.html?x=1"),
        ("http://other.example/", "http://other.example/"),
        ("https:page2", "https://example.org/a/b/page2"),
        ("https:/page2", "https://example.org/page2"),
        ("httpfoo.html", "https://example.org/a/b/httpfoo.html"),
        ("file:///etc/passwd", "file:///etc/passwd"),
        ("a:b", "a:b"),
    ],
)
def test_relative_addresses_are_read_against_the_page(href: str, meant: str) -> None:
    assert canonical(href, BASE) == meant


@pytest.mark.parametrize(
    "bad", ["", "no scheme", "http://", "http://a b/", "http://[::1", "http://a:99999/", "http://\ud800/"]
)
def test_what_is_no_address_is_a_bad_url(bad: str) -> None:
    with pytest.raises(BadUrl):
        canonical(bad)


def test_credentials_are_refused_and_not_repeated() -> None:
    with pytest.raises(BadUrl) as caught:
        canonical("https://user:secret@example.org/")
    assert "secret" not in str(caught.value)


def test_parts_of_an_address() -> None:
    assert site_of("http://example.org:8080/a?b") == "example.org:8080"
    assert origin_of("http://example.org:8080/a?b") == "http://example.org:8080"
    assert front_page("http://example.org:8080/a?b") == "http://example.org:8080/"
    assert scheme_of("MailTo:someone") == "mailto"
    assert scheme_of("/path:x") == ""
    assert site_of("mailto:x") == ""


PIECES = st.one_of(
    st.text(st.sampled_from("abA.%2e7E/;?&=#:@\\ jsessionid=utm_é\t"), max_size=40),
    st.lists(
        st.sampled_from(["?", "&", ";", "/", "%", "sid=", ";sid=", "s%69d=", "phpsessid=", "a1", "%61", "7" * 15]),
        max_size=12,
    ).map("".join),
)


@given(PIECES)
def test_canonical_is_idempotent(rest: str) -> None:
    try:
        once = canonical("http://example.org/" + rest)
    except BadUrl:
        return
    assert canonical(once) == once
    assert "#" not in once


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_a_bad_url(text: str) -> None:
    try:
        once = canonical(text)
    except BadUrl:
        return
    assert canonical(once) == once


@given(st.one_of(PIECES, st.text(max_size=30)), PIECES)
def test_a_fragment_leads_to_no_other_page(href: str, fragment: str) -> None:
    def read(written: str) -> str | None:
        try:
            return Resolver(BASE)(written)
        except BadUrl:
            return None

    whole = href.partition("#")[0]
    assume(not whole or whole[-1] > " ")  # white space ends an address, and is a part of it before a fragment
    assert read(f"{whole}#{fragment}") == read(whole)


@given(st.one_of(PIECES, st.text(max_size=30), PIECES.map("../".__add__)))
def test_an_href_means_the_same_wherever_its_scope_is_shared(href: str) -> None:
    resolver = Resolver(BASE)

    def read(base: str) -> str | None:
        try:
            return Resolver(base)(href)
        except BadUrl:
            return None

    scope = resolver.scope(href)
    assert scope is None or read(scope) == read(BASE)
